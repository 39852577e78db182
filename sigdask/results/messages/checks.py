"""Texts made from the columns of a table: the details of checks and tests, and the notes on each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.results.messages.intervals import iter_interval_notes
from sigdask.results.messages.notes import Note
from sigdask.statistics.bounds import estimate_trials_to_decide
from sigdask.statistics.crosscheck import KNOWN_DIGITS, describe_arrangements, describe_runs, describe_trials
from sigdask.statistics.rounding import format_limits, format_p_equals, round_up
from sigdask.text import format_count

if TYPE_CHECKING:
    from sigdask.results.table import CheckResults, ClassicalColumn, Table

SECOND_RUN = "second run"

DROPPED_PLACEHOLDER = "{dropped}"
"""Stands in what a test says for the number of observations that it drops."""

NOT_REACHED = Note("not-reached", "not reached: no trial is counted yet, and 1 bounds every p")
STOP_UNKNOWN = Note("stop-unknown", "the trial to stop at is not looked for yet: p is the largest that it can be")

RowNotes = Iterator[tuple[int, Note]]


def describe_checks(table: Table, name: str) -> list[str]:
    """Return the sentence on the outcome of one check for each row, empty where the row has no such check.

    Parameters
    ----------
    table : Table
        The rows, a few thousand at a time.
    name : str
        Of the check.
    """
    checked = table.checks[name]
    messages = checked.why.to_list()
    rows = np.flatnonzero(checked.verdict > 0)
    check_texts = _describe_second_runs(table, rows) if name == SECOND_RUN else _describe_known_p(table, checked, rows)
    for row, text in zip(rows.tolist(), check_texts, strict=True):
        messages[row] = text
    for row, text in checked.kept.items():
        messages[row] = text
    return messages


def _describe_second_runs(table: Table, rows: NDArray[np.intp]) -> Sequence[str]:
    _, extreme = table.total_counts
    agreement = format_p_values(table.agreement_p[rows])
    columns = (extreme[rows], table.second_extreme[rows], table.second_trials[rows])
    return [*map(describe_runs, *(column.tolist() for column in columns), agreement)]


def _describe_known_p(table: Table, checked: CheckResults, rows: NDArray[np.intp]) -> Sequence[str]:
    trials, extreme = (column[rows].tolist() for column in table.total_counts)
    known_p = format_p_values(checked.p_value[rows], KNOWN_DIGITS)
    fits = format_p_values(checked.fit[rows])
    return [
        describe_arrangements(p, k, n) if exact else describe_trials(p, k, n, fit)
        for p, k, n, fit, exact in zip(known_p, extreme, trials, fits, table.is_enumerated[rows].tolist(), strict=True)
    ]


def describe_test(test: ClassicalColumn) -> list[str]:
    """Return the sentence on a classical test for each row, empty where the test was not requested."""
    messages = test.detail.to_list()
    has_placeholder = np.array([DROPPED_PLACEHOLDER in text for text in test.detail.values], np.bool_)[
        test.detail.codes
    ]
    for row, n in zip(np.flatnonzero(has_placeholder).tolist(), test.n_dropped[has_placeholder].tolist(), strict=True):
        messages[row] = messages[row].replace(DROPPED_PLACEHOLDER, f"{n:,}")
    return messages


def format_p_values(values: NDArray[np.float64], digits: int = 3) -> list[str]:
    """Return a text such as "p = 0.03" for each number, formatting equal rounded numbers only once."""
    distinct, positions = np.unique(round_up(values, digits), return_inverse=True)
    p_texts = [format_p_equals(value, digits=digits) for value in distinct.tolist()]
    return [p_texts[position] for position in positions.tolist()]


def build_notes(table: Table) -> dict[int, tuple[Note, ...]]:
    """Return the notes of each row that has any, in the order in which they are shown."""
    notes_by_row: dict[int, list[Note]] = {}
    for iter_notes in (
        _note_identical,
        _note_upper_bound,
        _note_undefined,
        _note_not_reached,
        _note_undecided,
        _note_stop_unknown,
        _note_second_look,
        iter_interval_notes,
    ):
        for row, note in iter_notes(table):
            notes_by_row.setdefault(row, []).append(note)
    new_notes = {row: tuple(row_notes) for row, row_notes in notes_by_row.items() if row not in table.notes}
    return new_notes | {row: row_notes for row, row_notes in table.notes.items() if row_notes}


def _note_identical(table: Table) -> RowNotes:
    for row in np.flatnonzero(table.n_discordant == 0).tolist():
        step = table.step[row]
        finely = f" by {step:.2g} or more, as finely as such large scores can be distinguished" if step else ""
        yield row, Note("identical", f"identical: no unit differs in what the metric counts{finely}")


def _note_upper_bound(table: Table) -> RowNotes:
    """Yield notes on rows whose p from trials is an upper bound, as scores of very unequal size may tie by rounding."""
    for row in np.flatnonzero((table.step < 0) & (table.n_trials > 0) & ~table.is_enumerated).tolist():
        text = (
            f"p by trials is an upper bound: some differences are smaller than {-table.step[row]:.2g}, to which sums "
            "with such large scores can be distinguished, and trials count what may tie as a tie"
        )
        yield row, Note("upper-bound", text, {"step": -float(table.step[row])})


def _note_undefined(table: Table) -> RowNotes:
    for names, scores in ((table.a, table.undefined_a), (table.b, table.undefined_b)):
        for row in np.flatnonzero(~np.isnan(scores)).tolist():
            name, score = names[row], float(scores[row])
            yield row, Note("zero-division", f"{name}: 0/0 scored {score:g}", {"system": name, "score": score})


def _note_not_reached(table: Table) -> RowNotes:
    yield from (
        (row, NOT_REACHED) for row in np.flatnonzero((table.n_trials == 0) & np.isnan(table.exact_high)).tolist()
    )


def _note_undecided(table: Table) -> RowNotes:
    """Yield a note for each row whose Monte Carlo interval of the unadjusted p contains alpha."""
    rows = np.flatnonzero(table.is_open & (table.n_trials > 0))
    columns = (table.p_low, table.p_high, table.n_extreme, table.n_trials, ~np.isnan(table.p_adjusted))
    for row, low, high, extreme, trials, is_adjusted in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        note = build_undecided_note(low, high, extreme / trials, table.alpha)
        yield row, Note("unadjusted-undecided", f"unadjusted p {note.text}", note.numbers) if is_adjusted else note


@lru_cache(maxsize=4096)
def build_undecided_note(low: float, high: float, rate: float, alpha: float) -> Note:
    """Return the note that the Monte Carlo interval of p contains alpha, with the number of trials to decide."""
    needed = estimate_trials_to_decide(rate, alpha)
    remedy = (
        f"about {format_count(needed, 'trial')} would decide" if needed else "no number of trials is likely to decide"
    )
    text = f"undecided at {alpha:g}: the 99 % interval of p is {format_limits(low, high, alpha)}; {remedy}"
    return Note("undecided", text, {"alpha": alpha, "low": low, "high": high, "needed": needed})


def _note_stop_unknown(table: Table) -> RowNotes:
    for stops in table.stops:
        yield from ((row, STOP_UNKNOWN) for row in np.flatnonzero(stops.is_unknown).tolist())


def _note_second_look(table: Table) -> RowNotes:
    for row in np.flatnonzero(table.seen_with).tolist():
        n_seen = int(table.seen_with[row])
        yield (
            row,
            Note(
                "second-look",
                f"second look: p was first had with {format_count(n_seen, 'trial')}",
                {"n_trials": n_seen},
            ),
        )
