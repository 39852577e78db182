"""What columns say in words: what each check found, and the notes on a row; nothing else words them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sigdask.results.messages.intervals import remarks
from sigdask.results.messages.notes import Note
from sigdask.statistics.bounds import trials_to_decide
from sigdask.statistics.crosscheck import KNOWN_DIGITS, of_arrangements, of_runs, of_trials
from sigdask.statistics.rounding import limits_text, p_equals, rounded_up
from sigdask.text import count_noun

if TYPE_CHECKING:
    from sigdask.results.table import CheckResults, ClassicalColumn, Table

SECOND_RUN = "second run"

DROPPED = "{dropped}"
"""Stands in what a test says for the number of observations that it drops."""

NOT_REACHED = Note("not-reached", "not reached: no trial is counted yet, and 1 bounds every p")
NOT_FOUND = Note("stop-unknown", "the trial to stop at is not looked for yet: p is the largest that it can be")

Said = Iterator[tuple[int, Note]]


def details(table: Table, name: str) -> list[str]:
    """Return what one check says of each row; nothing where the row has no such check.

    Parameters
    ----------
    table : Table
        The rows, a few thousand at a time.
    name : str
        Of the check.
    """
    checked = table.checks[name]
    said = checked.why.listed()
    rows = np.flatnonzero(checked.verdict > 0)
    made = _runs(table, rows) if name == SECOND_RUN else _known(table, checked, rows)
    for row, text in zip(rows.tolist(), made, strict=True):
        said[row] = text
    for row, text in checked.kept.items():
        said[row] = text
    return said


def _runs(table: Table, rows: NDArray[np.intp]) -> Sequence[str]:
    _, extreme = table.counted
    agreement = p_values(table.agreement_p[rows])
    columns = (extreme[rows], table.second_extreme[rows], table.second_trials[rows])
    return [*map(of_runs, *(column.tolist() for column in columns), agreement)]


def _known(table: Table, checked: CheckResults, rows: NDArray[np.intp]) -> Sequence[str]:
    trials, extreme = (column[rows].tolist() for column in table.counted)
    known = p_values(checked.p_value[rows], KNOWN_DIGITS)
    fits = p_values(checked.fit[rows])
    return [
        of_arrangements(p, k, n) if exact else of_trials(p, k, n, fit)
        for p, k, n, fit, exact in zip(known, extreme, trials, fits, table.enumerated[rows].tolist(), strict=True)
    ]


def of_test(own: ClassicalColumn) -> list[str]:
    """Return what a classical test says of each row; nothing where it was not asked for."""
    said = own.detail.listed()
    told = np.array([DROPPED in text for text in own.detail.values], np.bool_)[own.detail.codes]
    for row, n in zip(np.flatnonzero(told).tolist(), own.n_dropped[told].tolist(), strict=True):
        said[row] = said[row].replace(DROPPED, f"{n:,}")
    return said


def p_values(values: NDArray[np.float64], digits: int = 3) -> list[str]:
    """Return `p_equals` of each number; the text of equal ones, rounded, is made once."""
    distinct, places = np.unique(rounded_up(values, digits), return_inverse=True)
    made = [p_equals(value, digits=digits) for value in distinct.tolist()]
    return [made[place] for place in places.tolist()]


def notes(table: Table) -> dict[int, tuple[Note, ...]]:
    """Return the notes of the rows that have some, in the order in which they are shown."""
    found: dict[int, list[Note]] = {}
    for said in (_identical, _upper_bound, _undefined, _not_reached, _undecided, _stop_unknown, _second_look, remarks):
        for row, note in said(table):
            found.setdefault(row, []).append(note)
    told = {row: tuple(own) for row, own in found.items() if row not in table.notes}
    return told | {row: own for row, own in table.notes.items() if own}


def _identical(table: Table) -> Said:
    for row in np.flatnonzero(table.n_discordant == 0).tolist():
        step = table.step[row]
        finely = f" by {step:.2g} or more, as finely as such large scores can be distinguished" if step else ""
        yield row, Note("identical", f"identical: no unit differs in what the metric counts{finely}")


def _upper_bound(table: Table) -> Said:
    """Say where trials count as ties what may be none, since scores are of very unequal size."""
    for row in np.flatnonzero((table.step < 0) & (table.n_trials > 0) & ~table.enumerated).tolist():
        text = (
            f"p by trials is an upper bound: some differences are smaller than {-table.step[row]:.2g}, to which sums "
            "with such large scores can be distinguished, and trials count what may tie as a tie"
        )
        yield row, Note("upper-bound", text, {"step": -float(table.step[row])})


def _undefined(table: Table) -> Said:
    for names, scores in ((table.a, table.undefined_a), (table.b, table.undefined_b)):
        for row in np.flatnonzero(~np.isnan(scores)).tolist():
            name, score = names[row], float(scores[row])
            yield row, Note("zero-division", f"{name}: 0/0 scored {score:g}", {"system": name, "score": score})


def _not_reached(table: Table) -> Said:
    yield from (
        (row, NOT_REACHED) for row in np.flatnonzero((table.n_trials == 0) & np.isnan(table.exact_high)).tolist()
    )


def _undecided(table: Table) -> Said:
    """Say of p where trials would decide; where the verdict is of an adjusted one, that it is of p alone."""
    rows = np.flatnonzero(table.is_open & (table.n_trials > 0))
    columns = (table.p_low, table.p_high, table.n_extreme, table.n_trials, ~np.isnan(table.p_adjusted))
    for row, low, high, extreme, trials, is_adjusted in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        note = undecided(low, high, extreme / trials, table.alpha)
        yield row, Note("unadjusted-undecided", f"unadjusted p {note.text}", note.numbers) if is_adjusted else note


@lru_cache(maxsize=4096)
def undecided(low: float, high: float, rate: float, alpha: float) -> Note:
    """Say that the interval of p holds alpha, and what would decide."""
    needed = trials_to_decide(rate, alpha)
    remedy = (
        f"about {count_noun(needed, 'trial')} would decide" if needed else "no number of trials is likely to decide"
    )
    text = f"undecided at {alpha:g}: the 99 % interval of p is {limits_text(low, high, alpha)}; {remedy}"
    return Note("undecided", text, {"alpha": alpha, "low": low, "high": high, "needed": needed})


def _stop_unknown(table: Table) -> Said:
    for stops in table.stops:
        yield from ((row, NOT_FOUND) for row in np.flatnonzero(stops.is_unknown).tolist())


def _second_look(table: Table) -> Said:
    for row in np.flatnonzero(table.seen_with).tolist():
        seen = int(table.seen_with[row])
        yield (
            row,
            Note("second-look", f"second look: p was first had with {count_noun(seen, 'trial')}", {"n_trials": seen}),
        )
