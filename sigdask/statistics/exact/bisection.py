"""P-values of quotients with at most two kinds of units, by bisection for one threshold per table row.

If y units of one kind are swapped, the difference rises or falls with the number x of swapped units of the other kind.
So the smallest x that reaches the observed difference is found by bisection, and p is the sum of P(y) P(X >= x(y)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import accumulate, product

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.statistics.exact import binomials
from sigdask.statistics.exact.binomials import ROUNDOFF
from sigdask.statistics.exact.grids import estimate_log_p
from sigdask.statistics.exact.problems import Cells, ProbabilityLimits, QuotientProblem, TieRule
from sigdask.statistics.exact.sums import bound_outside

LOST_SHARE = 1e-16
ACCEPTED_LOSS = 1e-13
MAX_TABLE_SIZE = 2**13
"""Maximum cells of a table that is evaluated as a whole. For small tables, fewer calls matter more than fewer
decisions.
"""

NANOSECONDS_PER_DECISION = 150
"""Nanoseconds of one decision."""


@dataclass(frozen=True, eq=False)
class ArrangementTable:
    """The arrangements of at most two kinds of units, as a table by how many units of either kind are swapped.

    Attributes
    ----------
    cells : Cells
        The units, collapsed.
    across, along : int
        The kind for which a threshold is found, and the kind of the rows; -1 for none.
    falls : bool
        Whether the difference decreases as more units of the first kind are swapped.
    """

    cells: Cells
    across: int
    along: int
    falls: bool

    @property
    def widths(self) -> tuple[int, int]:
        """The numbers of units of the first and of the second kind."""
        counts = self.cells.counts.tolist()
        return counts[self.across], counts[self.along] if self.along >= 0 else 0

    @staticmethod
    def from_problem(problem: QuotientProblem, decision: TieRule) -> ArrangementTable | None:
        """Return the table of a problem that bisection can search; None if scores are not monotone or may be 0/0."""
        cells = problem.cells
        if not 1 <= len(cells.counts) <= 2:
            return None
        for across in sorted(range(len(cells.counts)), key=lambda k: -int(cells.counts[k])):
            falls = _is_falling(problem, cells, across)
            if falls is not None:
                along = 1 - across if len(cells.counts) == 2 else -1
                return ArrangementTable(cells, across, along, falls != decision.is_negative)
        return None

    def count_swapped(self, x: Integers, y: Integers) -> Integers:
        """Return how many units of each kind have their vector negated, at positions x of rows y of the table."""
        found = np.zeros((len(x), len(self.cells.counts)), np.int64)
        found[:, self.across] = self.widths[0] - x if self.falls else x
        if self.along >= 0:
            found[:, self.along] = y
        return found

    def find_thresholds(self, decision: TieRule, y: Integers) -> Integers:
        """Return, for each row, the smallest x at which the difference reaches and exceeds |t|, shape (2, n_rows)."""
        width = self.widths[0] + 1
        if width * len(y) <= MAX_TABLE_SIZE:
            numbers = self.count_swapped(np.tile(np.arange(width), len(y)), np.repeat(y, width))
            short = [~enough.reshape(-1, width) for enough in decision(self.cells.compute_shifts(numbers))[:2]]
            return np.array([is_short.sum(axis=1) for is_short in short])
        rows = np.concatenate([y, y])
        second = np.arange(len(rows)) >= len(y)
        low, high = np.zeros(len(rows), np.int64), np.full(len(rows), self.widths[0] + 1)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            numbers = self.count_swapped(np.minimum(middle, self.widths[0]), rows)
            reached, passed, _ = decision(self.cells.compute_shifts(numbers))
            enough = np.where(second, passed, reached)
            high = np.where(open_ & enough, middle, high)
            low = np.where(open_ & ~enough, middle + 1, low)
        return low.reshape(2, -1)


def _is_falling(problem: QuotientProblem, cells: Cells, across: int) -> bool | None:
    """Return whether a - b decreases as more units of a kind are swapped; None if that varies.

    The slope of n / d has the sign of n' d - n d', in which the kind's own number cancels.
    """
    up, down = cells.vectors[across].tolist()
    corners = np.array(list(product(*((0, m) for m in cells.counts.tolist()))))
    shifts = cells.compute_shifts(corners)
    sums = np.concatenate([problem.totals[0] - shifts, problem.totals[1] + shifts])
    if (sums[:, 1] <= 0).any():
        return None
    slopes = up * sums[:, 1] - down * sums[:, 0]
    return None if slopes.min() < 0 < slopes.max() else bool(slopes.max() > 0)


def is_exact(n: int) -> bool:
    """Return whether arrangements of n units are counted as integers instead of adding probabilities."""
    return n <= binomials.MAX_FRACTION


def estimate_cost(table: ArrangementTable, expected: float) -> tuple[int, int]:
    """Return the estimated nanoseconds and bytes of the bisection, if the log of p is about `expected`."""
    across, along = table.widths
    n, (low, high) = table.cells.n, _find_row_range(table, expected)
    searched = 2 * (high - low + 1) * (across + 1).bit_length() * NANOSECONDS_PER_DECISION
    row_bytes = 400 * (high - low + 1)
    if is_exact(n):
        return searched + (across + along) * (n // 8 + 40), row_bytes + n**2 // 8
    return searched + 40 * (high - low), row_bytes + 100 * across


def count_arrangements(problem: QuotientProblem, decision: TieRule) -> list[int]:
    """Return how many arrangements have a difference of at least |t|, how many a larger one, and 0 for unclear ties."""
    table = ArrangementTable.from_problem(problem, decision)
    assert table is not None
    across, along = table.widths
    rows = _compute_coefficients(along)
    tails = [0, *accumulate(_compute_coefficients(across))][::-1]  # by k, the sum of C(across, j) over j >= k
    thresholds = table.find_thresholds(decision, np.arange(along + 1)).tolist()
    counts = [sum(c * tails[x] for c, x in zip(rows, row_thresholds, strict=True)) for row_thresholds in thresholds]
    return [*counts, 0]


def compute_tails(problem: QuotientProblem, decision: TieRule) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|)."""
    table = ArrangementTable.from_problem(problem, decision)
    assert table is not None
    expected = estimate_log_p(problem)
    for _ in range(4):
        low, high = _find_row_range(table, expected)
        limits = _sum_rows(table, decision, low, high)
        missed = bound_outside(table.widths[1], low, high)
        smallest = float(limits[0].low)
        if missed <= ACCEPTED_LOSS * smallest or smallest == 0:
            break
        expected = min(math.log(smallest), expected) - 3.0
    reached, passed = (ProbabilityLimits(tail.low, min(float(tail.high) + missed, 1.0)) for tail in limits)
    return reached, passed


def _find_row_range(table: ArrangementTable, expected: float) -> tuple[int, int]:
    """Return the first and last row to compute: all rows if arrangements are counted, else the likely rows."""
    along = table.widths[1]
    if is_exact(table.cells.n):
        return 0, along
    reach = math.ceil(math.sqrt((math.log(2 / LOST_SHARE) - expected) * along / 2)) + 1
    return max(along // 2 - reach, 0), min((along + 1) // 2 + reach, along)


def _sum_rows(table: ArrangementTable, decision: TieRule, low: int, high: int) -> list[ProbabilityLimits]:
    across, along = table.widths
    rows, error = binomials.compute_probabilities(along, low, high)
    limits = []
    for x in table.find_thresholds(decision, np.arange(low, high + 1)):
        tail, tail_error = binomials.compute_tails(across, x)
        p = math.fsum(rows * tail)
        wrong = (error + tail_error + 2 * ROUNDOFF) * (1 + 1e-6)
        tiny = (len(rows) + 1) * 2.0**-1070
        limits.append(ProbabilityLimits.from_rounded(p, p, wrong, tiny))
    return limits


def _compute_coefficients(m: int) -> list[int]:
    coefficients = [1]
    for k in range(m):
        coefficients.append(coefficients[-1] * (m - k) // (k + 1))
    return coefficients
