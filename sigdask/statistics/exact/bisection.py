"""Quotients of which units move two things at most, as single responses do: a threshold for each row of a table.

With y units of one kind exchanged, the difference grows or falls with the number x of the other kind, so that the
smallest x that reaches the observed difference is found by bisection, and p is the sum of P(y) P(X >= x(y)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from sigdask.statistics.exact.classes import Cells, Integers
from sigdask.statistics.exact.grids import log_p
from sigdask.statistics.exact.problems import EnumeratedScore, QuotientProblem
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums import binomials
from sigdask.statistics.exact.ties import TieRule

LOST = 1e-16
NARROW = 1e-13
UNIT = 2.0**-53
AT_ONCE = 2**13
"""Places of a table that is looked at as a whole: fewer calls take less than fewer decisions."""

NANOSECONDS = 150
"""Of one decision."""


@dataclass(frozen=True, eq=False)
class ArrangementTable:
    """The arrangements of units of two kinds.

    Attributes
    ----------
    cells : Cells
        The units, collapsed.
    across, along : int
        The kind of which a threshold is found, and the kind of the rows; -1 for none.
    falls : bool
        Whether the difference falls as more of the first kind are exchanged.
    """

    cells: Cells
    across: int
    along: int
    falls: bool

    @property
    def widths(self) -> tuple[int, int]:
        """Units of the first and of the second kind."""
        counts = self.cells.counts.tolist()
        return counts[self.across], counts[self.along] if self.along >= 0 else 0

    @staticmethod
    def of(problem: QuotientProblem, decision: TieRule) -> ArrangementTable | None:
        """Return how a threshold is found; None where differences neither grow nor fall, or may be 0/0."""
        cells = problem.cells
        if not 1 <= len(cells.counts) <= 2:
            return None
        for across in sorted(range(len(cells.counts)), key=lambda k: -int(cells.counts[k])):
            falls = _falls(problem, cells, across)
            if falls is not None:
                along = 1 - across if len(cells.counts) == 2 else -1
                return ArrangementTable(cells, across, along, falls != decision.negative)
        return None

    def numbers(self, x: Integers, y: Integers) -> Integers:
        """Return how many units of each kind are exchanged."""
        found = np.zeros((len(x), len(self.cells.counts)), np.int64)
        found[:, self.across] = self.widths[0] - x if self.falls else x
        if self.along >= 0:
            found[:, self.along] = y
        return found

    def thresholds(self, decision: TieRule, y: Integers) -> Integers:
        """Return the smallest x that reaches |t| in each row, and that passes it, shape (2, n_rows)."""
        width = self.widths[0] + 1
        if width * len(y) <= AT_ONCE:
            numbers = self.numbers(np.tile(np.arange(width), len(y)), np.repeat(y, width))
            short = [~enough.reshape(-1, width) for enough in decision(self.cells.shifts(numbers))[:2]]
            return np.array([one.sum(axis=1) for one in short])
        rows = np.concatenate([y, y])
        second = np.arange(len(rows)) >= len(y)
        low, high = np.zeros(len(rows), np.int64), np.full(len(rows), self.widths[0] + 1)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            numbers = self.numbers(np.minimum(middle, self.widths[0]), rows)
            reached, passed, _ = decision(self.cells.shifts(numbers))
            enough = np.where(second, passed, reached)
            high = np.where(open_ & enough, middle, high)
            low = np.where(open_ & ~enough, middle + 1, low)
        return low.reshape(2, -1)


def _falls(problem: QuotientProblem, cells: Cells, across: int) -> bool | None:
    """Say whether a - b falls as more units of a kind are exchanged; None where that depends on the others.

    The slope of n / d has the sign of n' d - n d', in which the kind's own number cancels.
    """
    up, down = cells.vectors[across].tolist()
    corners = np.array(list(product(*((0, m) for m in cells.counts.tolist()))))
    shifts = cells.shifts(corners)
    sums = np.concatenate([problem.totals[0] - shifts, problem.totals[1] + shifts])
    if (sums[:, 1] <= 0).any():
        return None
    slopes = up * sums[:, 1] - down * sums[:, 0]
    return None if slopes.min() < 0 < slopes.max() else bool(slopes.max() > 0)


def is_exact(n: int) -> bool:
    """Whether arrangements are counted as integers."""
    return n <= binomials.LARGEST_FRACTION


def operations(table: ArrangementTable, expected: float) -> int:
    """Return about how many nanoseconds it takes."""
    across, along = table.widths
    low, high = _rows(table, expected)
    searched = 2 * (high - low + 1) * (across + 1).bit_length() * NANOSECONDS
    return searched + ((across + along) * (table.cells.n // 8 + 40) if is_exact(table.cells.n) else 40 * (high - low))


def n_bytes(table: ArrangementTable, expected: float) -> int:
    """Return the memory it takes."""
    low, high = _rows(table, expected)
    return 400 * (high - low + 1) + (table.cells.n**2 // 8 if is_exact(table.cells.n) else 100 * table.widths[0])


def count(table: ArrangementTable, decision: TieRule) -> tuple[int, int]:
    """Return how many arrangements reach |t| and pass it."""
    across, along = table.widths
    tails = _tail_counts(across)
    rows = _coefficients(along)
    reached, passed = table.thresholds(decision, np.arange(along + 1)).tolist()
    return (
        sum(c * tails[x] for c, x in zip(rows, reached, strict=True)),
        sum(c * tails[x] for c, x in zip(rows, passed, strict=True)),
    )


def tails(
    problem: QuotientProblem | EnumeratedScore, table: ArrangementTable, decision: TieRule, check: Check
) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|)."""
    assert isinstance(problem, QuotientProblem)
    expected = log_p(problem, decision)
    for _ in range(4):
        low, high = _rows(table, expected)
        found = _sums(table, decision, low, high)
        check()
        missed = _lost(table.widths[1], low, high)
        least = float(found[0].low)
        if missed <= NARROW * least or least == 0:
            break
        expected = min(math.log(least), expected) - 3.0
    reached, passed = (TailProbability(one.low, min(float(one.high) + missed, 1.0)) for one in found)
    return reached, passed


def _rows(table: ArrangementTable, expected: float) -> tuple[int, int]:
    """Return the first and last row that are looked at: all, where arrangements are counted."""
    along = table.widths[1]
    if is_exact(table.cells.n):
        return 0, along
    reach = math.ceil(math.sqrt((math.log(2 / LOST) - expected) * along / 2)) + 1
    return max(along // 2 - reach, 0), min((along + 1) // 2 + reach, along)


def _lost(along: int, low: int, high: int) -> float:
    """Return a bound of P(Y < low or Y > high) (Hoeffding)."""
    if low == 0 and high == along:
        return 0.0
    return 2 * math.exp(-2 * (min(along / 2 - low, high - along / 2) + 1) ** 2 / along) * (1 + 1e-12)


def _sums(table: ArrangementTable, decision: TieRule, low: int, high: int) -> list[TailProbability]:
    across, along = table.widths
    rows, error = binomials.shares(along, low, high)
    found = []
    for x in table.thresholds(decision, np.arange(low, high + 1)):
        tail, own = binomials.uppers(across, x)
        p = math.fsum(rows * tail)
        wrong = (error + own + 2 * UNIT) * (1 + 1e-6)
        tiny = (len(rows) + 1) * 2.0**-1070
        found.append(TailProbability(max(p * (1 - wrong) - tiny, 0.0), min(p * (1 + wrong) + tiny, 1.0)))
    return found


def _coefficients(m: int) -> list[int]:
    found = [1]
    for k in range(m):
        found.append(found[-1] * (m - k) // (k + 1))
    return found


def _tail_counts(m: int) -> list[int]:
    """Return the sums of the binomial coefficients from each on, and 0."""
    found = [0]
    for c in _coefficients(m):
        found.append(found[-1] + c)
    return found[::-1]
