"""Remarks below the answer: checks that disagree, causes of contested results, warnings and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sigdask.report.summary.headline import Verdict
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.notes import CHANGES_VERDICTS, Note, NoteKind, drop_duplicates, remove_kind
from sigdask.results.record import Result
from sigdask.results.table import Table, get_equal_scores
from sigdask.text import make_printable

if TYPE_CHECKING:
    from sigdask.analysis.independence import Independence

MAX_ALARMS = 100
"""Maximum number of comparisons with disagreeing cross-checks that are named."""

MAX_NOTES = 5
"""Maximum number of notes on single comparisons that are printed."""

EXPLANATORY_KINDS: frozenset[NoteKind] = frozenset({"interval", "larger-of-two"})
"""Kinds of notes on all results that change no verdict. They are printed among the details."""

ESSENTIAL_KINDS: frozenset[NoteKind] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "second-look", "few-units-decide"}
)
"""Kinds of notes on single comparisons that are needed to read the answer. All others are printed among the details."""


def select_warnings(results: ComparisonResults, *, verbose: bool = False) -> list[Note]:
    """Return the notes on all results that are warnings, or all notes if details are requested."""
    notes = remove_kind(results.notes, "scope")  # which comes before the answer
    return [note for note in notes if verbose or _is_warning(note)]


def _is_warning(note: Note) -> bool:
    """Return whether a note may change what a reader concludes; few units do if they cannot reach the level."""
    return bool(note.numbers["n_unreachable"]) if note.kind == "few-units" else note.kind not in EXPLANATORY_KINDS


def iter_urgent_warnings(results: ComparisonResults, *, verbose: bool = False) -> Iterator[str]:
    """Yield lines with the notes on all results that could change a verdict, to be read next to the verdict."""
    for note in select_warnings(results, verbose=verbose):
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
    """Yield lines on checks that disagree, on contested results, and the notes that the answer depends on.

    Checks that agree are details.
    """
    if verbose or not summary.is_checked:
        yield f"checks: {summary.checks}"
    disagreeing = np.flatnonzero(results.table.has_disagreement)
    yield from list_alarms(iter_results(results.table.take(disagreeing[:MAX_ALARMS])))
    if len(disagreeing) > MAX_ALARMS:
        yield f"!!! and cross-checks of {len(disagreeing) - MAX_ALARMS:,} more comparisons"
    if len(disagreeing):
        yield "!!! Do not use these p-values; run `sigdask verify` and report this."
    if len({*zip(results.table.a.codes.tolist(), results.table.b.codes.tolist(), strict=True)}) > 1:
        yield from _describe_causes(results.table)  # the verdict on a single pair names them
    notes = [] if verbose else _collect_notes(shown)
    yield from (make_printable(f"note: {text}") for text in notes[:MAX_NOTES])
    if len(notes) > MAX_NOTES:
        yield f"note: and {len(notes) - MAX_NOTES:,} more notes (-v shows them)"


def _describe_causes(table: Table) -> Iterator[str]:
    """Yield a line with the known causes of contested results, each with their number."""
    cause = get_equal_scores(table).cause
    causes = Counter(cause[row] for row in np.flatnonzero(table.is_contested).tolist())
    if table.deciding is not None:
        causes["few units that decide"] = int(np.count_nonzero(table.deciding.n_deciding))
    if named := [f"{name} ({n:,})" for name, n in causes.most_common() if name and n]:
        yield make_printable(f"causes of contested results: {', '.join(named)}")


def _collect_notes(shown: Sequence[Result]) -> list[str]:
    """Return the notes that the answer depends on; each names its comparison if notes differ."""
    kinds = ESSENTIAL_KINDS if len(shown) == 1 else ESSENTIAL_KINDS - {"few-units-decide"}  # which are counted then
    noted = [(r, note) for r in shown for note in r.notes if note.kind in kinds]
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
