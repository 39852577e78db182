"""Remarks below the answer: checks, borderline results, warnings and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sigdask.report.summary.checks import merge_causes
from sigdask.report.summary.headline import Verdict
from sigdask.report.summary.sentences import format_verdict_p
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.notes import CHANGES_VERDICTS, Note, NoteKind, drop_duplicates, remove_kind
from sigdask.results.record import Result
from sigdask.text import make_printable

if TYPE_CHECKING:
    from sigdask.analysis.independence import Independence

MAX_ALARMS = 100
"""Maximum number of comparisons with disagreeing cross-checks that are named."""

MAX_NOTES = 5
"""Maximum number of notes on single comparisons that are printed."""

MAX_BORDERLINE = 3
"""Maximum number of borderline results named in a line."""

EXPLANATORY_KINDS: frozenset[NoteKind] = frozenset({"intervals-alone"})
"""Kinds of notes on all results that explain and do not warn. They are printed among the details."""

ESSENTIAL_KINDS: frozenset[NoteKind] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "second-look"}
)
"""Kinds of notes on single comparisons that are needed to read the answer. All others are printed among the details."""


def select_warnings(results: ComparisonResults, *, verbose: bool = False) -> list[Note]:
    """Return the notes on all results that are warnings, or all notes if details are requested."""
    notes = remove_kind(results.notes, "scope")  # which comes before the answer
    return [note for note in notes if verbose or note.kind not in EXPLANATORY_KINDS]


def iter_urgent_warnings(results: ComparisonResults) -> Iterator[str]:
    """Yield lines with the notes on all results that could change a verdict, to be read next to the verdict."""
    for note in results.notes:
        if note.kind in CHANGES_VERDICTS:
            yield make_printable(f"warning: {note.text}")


def iter_other_warnings(results: ComparisonResults, *, verbose: bool = False) -> Iterator[str]:
    """Yield lines with all other warnings, such as how files were read."""
    for note in select_warnings(results, verbose=verbose):
        if note.kind not in CHANGES_VERDICTS:
            yield make_printable(f"warning: {note.text}")


def iter_warnings(results: ComparisonResults) -> Iterator[str]:
    """Yield the texts of all warnings that are printed by default, those that could change a verdict first."""
    notes = select_warnings(results)
    for is_urgent in (True, False):
        yield from (note.text for note in notes if (note.kind in CHANGES_VERDICTS) == is_urgent)


def iter_remarks(
    results: ComparisonResults, summary: Verdict, shown: Sequence[Result], *, verbose: bool
) -> Iterator[str]:
    """Yield lines on the checks made, on borderline results, and the notes that the answer depends on."""
    yield f"checks: {summary.checks}"
    disagreeing = np.flatnonzero(results.table.has_disagreement)
    yield from list_alarms(iter_results(results.table.take(disagreeing[:MAX_ALARMS])))
    if len(disagreeing) > MAX_ALARMS:
        yield f"!!! and cross-checks of {len(disagreeing) - MAX_ALARMS:,} more comparisons"
    if len(disagreeing):
        yield "!!! Do not use these p-values; run `sigdask verify` and report this."
    if len(shown) == len(results) and len(summary.close):
        yield make_printable(f"{describe_borderline(summary.causes)}: {_name_borderline(results, summary)}")
    notes = [] if verbose else _collect_notes(shown)
    yield from (make_printable(f"note: {text}") for text in notes[:MAX_NOTES])
    if len(notes) > MAX_NOTES:
        yield f"note: and {len(notes) - MAX_NOTES:,} more notes (-v shows them)"


def format_title(summary: Verdict) -> str:
    """Return the title of a table of borderline results, or "" if there are none."""
    return describe_borderline(summary.causes) if len(summary.close) else ""


def describe_borderline(causes: Sequence[str]) -> str:
    """Return a label for borderline results, with what could change their verdicts."""
    return f"borderline result{'' if len(causes) == 1 else 's'} ({merge_causes(causes)} could change the verdict)"


def describe_shown(summary: Verdict, n_shown: int) -> str:
    """Return text on how many comparisons are borderline, and which ones are shown."""
    n = len(summary.close)
    close = f"{n:,} borderline {'result' if n == 1 else 'results'}" if n else "no borderline results"
    if not summary.is_ranking:
        return f"{close}; the {n_shown} smallest p are shown"
    return close if n_shown == n else f"{close}, the {n_shown} closest shown"


def _name_borderline(results: ComparisonResults, summary: Verdict) -> str:
    with_metric = len({score.name for score in results.table.metric.values}) > 1 or len(results) == 1
    names = []
    for r in iter_results(results.table.take(summary.close[:MAX_BORDERLINE])):
        scope = (f" on {r.metric}" if with_metric else "") + (f" ({r.subset['value']})" if r.subset else "")
        names.append(f"{r.a} and {r.b}{scope}, {format_verdict_p(r, results.alpha)}")
    if len({*summary.causes}) > 1:
        names = [f"{text} [{cause}]" for text, cause in zip(names, summary.causes, strict=False)]
    n_more = len(summary.close) - len(names)
    return ", ".join(names) + (f" and {n_more:,} more" if n_more else "")


def _collect_notes(shown: Sequence[Result]) -> list[str]:
    """Return the notes that the answer depends on; each names its comparison if notes differ."""
    noted = [(r, note) for r in shown for note in r.notes if note.kind in ESSENTIAL_KINDS]
    distinct = [*drop_duplicates([note for _, note in noted])]
    if len(shown) == 1 or len(distinct) < len(noted):
        return [note.text for note in distinct]
    return [f"{r.a} and {r.b} on {r.metric}: {note.text}" for r, note in noted]


def list_alarms(results: Iterable[Result | Independence]) -> list[str]:
    """Return a line for each cross-check that disagrees."""
    return [
        make_printable(f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}")
        for r in results
        for check in r.disagreements()
    ]
