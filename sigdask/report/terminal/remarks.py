"""What is to be known of an answer, in one place below it: checks, borderline results, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sigdask.report.summary.answer import chance
from sigdask.report.summary.borderline import all_causes
from sigdask.report.summary.verdict import Verdict
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.messages.notes import Kind, Note, distinct, without
from sigdask.results.record import Result
from sigdask.results.views import result_views
from sigdask.text import printable

MOST_ALARMS = 100
"""Comparisons whose cross-checks disagree that are named."""

MOST_NOTES = 5
"""Notes on single comparisons that are told."""

MOST_CLOSE = 3
"""Borderline results that are named in a line."""

EXPLAINING: frozenset[Kind] = frozenset({"exact-by-holm", "intervals-alone"})
"""Notes on all results that explain and warn of nothing: told among the details."""

TELLING: frozenset[Kind] = frozenset(
    {"upper-bound", "zero-division", "not-reached", "undecided", "stop-unknown", "second-look"}
)
"""Notes on single comparisons that the answer is not to be read without; others are told among the details."""


def warnings(results: ComparisonResults, *, verbose: bool = False) -> list[Note]:
    """Return the notes on all results that a reader is warned by; all of them where details are asked for."""
    notes = without(results.notes, "scope")  # which stands before the answer
    return [note for note in notes if verbose or note.kind not in EXPLAINING]


def lines(results: ComparisonResults, found: Verdict, shown: Sequence[Result], *, verbose: bool) -> Iterator[str]:
    """Yield what was checked, which results are borderline, and what else the answer is not to be read without."""
    yield f"checks: {found.checks}"
    yield from _alarms(results)
    if len(shown) == len(results) and len(found.close):
        yield printable(f"{borderline(found.causes)}: {_named(results, found)}")
    notes = [] if verbose else _notes(shown)
    yield from (printable(f"note: {text}") for text in notes[:MOST_NOTES])
    if len(notes) > MOST_NOTES:
        yield f"note: and {len(notes) - MOST_NOTES:,} more notes (-v shows them)"


def title(found: Verdict) -> str:
    """Return what stands above a table of borderline results alone."""
    return borderline(found.causes) if len(found.close) else ""


def borderline(causes: Sequence[str]) -> str:
    """Say what borderline results are: which of a seed and units could change their verdicts."""
    one = len(causes) == 1
    return f"borderline result{'' if one else 's'} ({all_causes(causes)} could change the verdict)"


def which(found: Verdict, n_shown: int) -> str:
    """Say which of many comparisons are shown, and how many of them are close."""
    n = len(found.close)
    close = f"{n:,} borderline {'result' if n == 1 else 'results'}" if n else "no borderline results"
    if not found.is_ranking:
        return f"{close}; the {n_shown} smallest p are shown"
    return close if n_shown == n else f"{close}, the {n_shown} closest shown"


def _named(results: ComparisonResults, found: Verdict) -> str:
    several = len({score.name for score in results.table.metric.values}) > 1 or len(results) == 1
    rows = found.close[:MOST_CLOSE]
    named = [_call(r, results.alpha, several=several) for r in result_views(results.table.take(rows))]
    if len({*found.causes}) > 1:
        named = [f"{text} [{cause}]" for text, cause in zip(named, found.causes, strict=False)]
    more = len(found.close) - len(named)
    return ", ".join(named) + (f" and {more:,} more" if more else "")


def _call(r: Result, alpha: float, *, several: bool) -> str:
    where = f" ({r.subset['value']})" if r.subset else ""
    return f"{r.a} and {r.b}{f' on {r.metric}' if several else ''}{where}, {chance(r, alpha)}"


def _notes(shown: Sequence[Result]) -> list[str]:
    """Return what is to be known of single comparisons; of several, which of them is meant."""
    told = [(r, note) for r in shown for note in r.notes if note.kind in TELLING]
    if len(shown) == 1 or len(distinct([note for _, note in told])) < len(told):
        return [note.text for note in distinct([note for _, note in told])]
    return [f"{r.a} and {r.b} on {r.metric}: {note.text}" for r, note in told]


def _alarms(results: ComparisonResults) -> list[str]:
    alarming = np.flatnonzero(results.table.disagrees)
    said = [
        printable(f"!!! CROSS-CHECK DISAGREES: {r.a} and {r.b} by {r.metric}: {check.name}: {check.detail}")
        for r in result_views(results.table.take(alarming[:MOST_ALARMS]))
        for check in r.disagreements()
    ]
    if len(alarming) > MOST_ALARMS:
        said.append(f"!!! and cross-checks of {len(alarming) - MOST_ALARMS:,} more comparisons")
    return [*said, "!!! Do not use these p-values; run `sigdask verify` and report this."] if said else []
