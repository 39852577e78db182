"""P-values of scores of two independent sums (numerator and denominator), by dynamic programming on their grid.

Dynamic programming is as in `convolution`, in two dimensions. Sums that are linear functions of these two have no
dimension of their own. The grid is the coarsest that holds the contributions. It is sheared until both directions are
nearly independent. Up to 62 units, arrangements are counted in integers on the whole grid. Beyond, probabilities are
added, and the probability outside a window around the grid's middle is bounded and added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.statistics.exact.binomials import ROUNDOFF
from sigdask.statistics.exact.enumeration import DecidedPoints, bound_tails, count_points, sum_points
from sigdask.statistics.exact.problems import MAX_UNITS, CellProblem, Cells, ProbabilityLimits, QuotientProblem, TieRule
from sigdask.statistics.exact.sums import LOST_SHARE, SLAB, TINY, estimate_log_tail

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"


ACCEPTED_LOSS = 1e-13
"""Maximum share of p that may leave the window. Beyond it, a wider window is used."""

BLOCK = 2**18
"""Cells compared with the observed difference at a time."""

NANOSECONDS_PER_CELL = 80
"""Nanoseconds of each of these cells."""

NANOSECONDS_PER_POINT = 3
"""Nanoseconds of a unit at one grid point. Memory is slower than additions."""

OVERHEAD = 10**6


@dataclass(frozen=True, eq=False)
class StepGrid:
    """Changes of two sums by each unit, as steps on a two-dimensional grid.

    Attributes
    ----------
    kinds : int64 array, shape (n_kinds, 2)
        Steps of each kind of unit. The smallest units come first, and the first direction is never negative.
    counts : int64 array, shape (n_kinds,)
        Units of each kind.
    sums : float64 array, shape (2, n_fields)
        Change of all sums by a step in each direction.
    observed : int64 array, shape (2,)
        The sum of all units' steps as observed.
    """

    kinds: Integers
    counts: Integers
    sums: Floats
    observed: Integers

    @staticmethod
    def from_cells(cells: Cells) -> StepGrid | None:
        """Return the coarsest lattice of steps that holds every change of the sums that a swapped unit can cause.

        None if more than two of the sums are independent.

        Examples
        --------
        >>> grid = StepGrid.from_cells(Cells.from_vectors(np.array([[2, 1], [2, 1], [0, 1], [0, -1]])))
        >>> (grid.steps @ grid.sums).round(9).tolist()
        [[0.0, 1.0], [0.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
        """
        vectors = _select_independent(cells.vectors)
        if vectors.shape[1] > 2:
            return None
        kinds = _compute_coordinates(vectors, _reduce_basis(_compute_basis(vectors), vectors, cells.counts))
        sums = np.linalg.lstsq(kinds.astype(np.float64), cells.vectors.astype(np.float64), rcond=None)[0]
        observed = (cells.counts - 2 * cells.moved) @ kinds
        flip = (kinds[:, 0] < 0) | ((kinds[:, 0] == 0) & (kinds[:, 1] < 0))
        kinds = np.where(flip[:, None], -kinds, kinds)
        order = np.lexsort((kinds[:, 1], kinds[:, 0], (kinds**2).sum(axis=1)))
        return StepGrid(kinds[order], cells.counts[order], sums, observed)

    @property
    def n(self) -> int:
        """The number of units."""
        return int(self.counts.sum())

    @cached_property
    def steps(self) -> Integers:
        """The steps of each unit, shape (n, 2)."""
        return np.repeat(self.kinds, self.counts, axis=0)

    @cached_property
    def sizes(self) -> Integers:
        """Sums of the absolute steps of the units up to each unit, shape (n, 2)."""
        return np.cumsum(np.abs(self.steps), axis=0)

    @cached_property
    def variances(self) -> Floats:
        """Variances of the randomly signed sums of the units up to each unit, shape (n, 2)."""
        return np.cumsum(self.steps.astype(np.float64) ** 2, axis=0)

    def compute_widths(self, log_p: float) -> Integers:
        """Return half widths of the window of signed sums after each unit, (n, 2), if LOST_SHARE of p may be lost."""
        if log_p == -math.inf:
            return self.sizes
        reach = 2 * (math.log(4 * self.n / LOST_SHARE) - log_p)
        return np.minimum(np.ceil(np.sqrt(reach * self.variances)).astype(np.int64) + 1, self.sizes)

    def bound_lost_probability(self, widths: Integers) -> float:
        """Return a bound on the probability that signed sums leave the window after any unit (Hoeffding)."""
        inside = widths < self.sizes
        exponent = -(widths[inside].astype(np.float64) ** 2) / (2 * self.variances[inside])
        return float(np.sum(2 * np.exp(exponent))) * (1 + 1e-12)

    def compute_bounds(self, widths: Integers) -> tuple[Integers, Integers]:
        """Return the first and the last grid point of the window after each unit, each of shape (n, 2)."""
        return (self.sizes - widths + 1) // 2, (self.sizes + widths) // 2

    def compute_shifts(self, points: Integers) -> Integers:
        """Return what moves from a's observed sums to b's at each of some grid points, shape (n, n_fields)."""
        return np.asarray(np.rint((self.observed - 2 * points + self.sizes[-1]) @ self.sums / 2), np.int64)


def _select_independent(vectors: Integers) -> Integers:
    """Return two columns on which all others depend linearly, or as many as show that there are more, or one and 0."""
    if vectors.shape[1] == 2:
        return vectors
    sizes, chosen = np.abs(vectors).sum(axis=0), vectors[:, :0]
    for k in np.argsort(sizes, kind="stable").tolist():  # those that move little first
        extended = np.column_stack([chosen, vectors[:, k]])
        if chosen.shape[1] <= 2 and np.linalg.matrix_rank(extended.astype(np.float64)) > chosen.shape[1]:
            chosen = extended
    return chosen if chosen.shape[1] > 1 else np.column_stack([chosen, np.zeros(len(vectors), np.int64)])


def _compute_basis(vectors: Integers) -> Integers:
    """Return two vectors whose integer combinations are the same as those of the given vectors; either may be 0."""
    p, q = 0, 0  # the generator with a nonzero first component
    r = 0  # of those with a zero first component
    for x, y in vectors.tolist():
        a, b = x, y
        while a:
            k = p // a
            p, q, a, b = a, b, p - k * a, q - k * b
        r = math.gcd(r, b)
        if r:
            q %= r
    return np.array([[p, q], [0, r]], np.int64)


def _compute_coordinates(vectors: Integers, basis: Integers) -> Integers:
    (a, b), (c, d) = basis.tolist()
    determinant = a * d - b * c
    if determinant:
        x, y = vectors.T
        return np.column_stack([(x * d - y * c) // determinant, (y * a - x * b) // determinant])
    direction = basis[int(basis[1].any())]  # only one direction
    k = int(direction.any() and np.abs(direction).argmax())
    coordinates = np.zeros_like(vectors)
    coordinates[:, int(basis[1].any())] = vectors[:, k] // direction[k] if direction[k] else 0
    return coordinates


def _reduce_basis(basis: Integers, vectors: Integers, counts: Integers) -> Integers:
    """Return a basis of the same grid in which steps are as uncorrelated as integers allow (Lagrange, Gauss)."""
    while True:
        steps = _compute_coordinates(vectors, basis).astype(np.float64)
        squares = (steps * counts[:, None]).T @ steps
        small = int(squares[1, 1] < squares[0, 0])
        if squares[small, small] == 0:
            return basis
        k = round(float(squares[0, 1] / squares[small, small]))
        if k == 0:
            return basis
        basis = basis.copy()
        basis[small] += k * basis[1 - small]


def estimate_log_p(problem: QuotientProblem) -> float:
    """Estimate log P(T >= |t|), rather too low, to plan how the p-value is computed."""
    cells = problem.cells
    n, d = problem.totals.sum(axis=0).astype(np.float64)
    moved = cells.vectors @ (np.array([1 / d, -n / d**2]) if d else np.zeros(2))  # linearised at the systems' mean
    largest = float(np.abs(moved).max())
    if largest == 0:
        return -math.log(2)
    is_moving = moved != 0
    observed = abs(float((cells.counts - 2 * cells.moved) @ moved))
    sizes = np.abs(moved[is_moving]) / largest
    return math.floor(estimate_log_tail(sizes, cells.counts[is_moving], 1.02 * observed / largest)) - 2.0


def _estimate_window(problem: CellProblem) -> float:
    """Return the log of p for which the window is chosen; minus infinity for the whole grid."""
    if isinstance(problem, QuotientProblem) and problem.above.shape[1] == 1 and not problem.cells.is_counted:
        return estimate_log_p(problem)
    return -math.inf


def estimate_cost(problem: CellProblem) -> tuple[int, int] | None:
    """Return the estimated nanoseconds, with the comparison of each grid point with |t|, and the bytes.

    None if the score has more than two independent sums.
    """
    grid = StepGrid.from_cells(problem.cells)
    if grid is None:
        return None
    low, high = grid.compute_bounds(grid.compute_widths(_estimate_window(problem)))
    spans = (high - low + 1).astype(np.float64)
    cells = spans.prod(axis=1)
    operations = int(NANOSECONDS_PER_POINT * cells.sum() + NANOSECONDS_PER_CELL * cells[-1]) + OVERHEAD
    return operations, int(16 * spans.max(axis=0).prod()) + 200 * BLOCK


def count_arrangements(problem: CellProblem, decision: TieRule) -> list[int]:
    """Return how many arrangements may have a difference of at least |t|, certainly a larger one, and certainly tie."""
    grid = StepGrid.from_cells(problem.cells)
    assert grid is not None
    return count_points(_iter_points(grid, decision, *_compute_distribution(grid, grid.sizes)))


def compute_tails(problem: CellProblem, decision: TieRule) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|)."""
    grid = StepGrid.from_cells(problem.cells)
    assert grid is not None
    expected = _estimate_window(problem)
    for _ in range(4):
        widths = grid.compute_widths(expected)
        missed = grid.bound_lost_probability(widths)
        (reached, passed, tied), n_points = sum_points(
            _iter_points(grid, decision, *_compute_distribution(grid, widths))
        )
        if missed <= ACCEPTED_LOSS * reached or reached == 0:
            break
        expected = min(math.log(reached), expected) - 3.0
    k = (grid.n + 4) * ROUNDOFF
    return bound_tails((reached, passed, tied), k / (1 - k), missed + grid.n * n_points * TINY)


def _compute_distribution(grid: StepGrid, widths: Integers) -> tuple[NDArray[Any], Integers]:
    """Return the number of arrangements, or the probability, of each grid point, and the window's first point."""
    low, high = grid.compute_bounds(widths)
    shape = tuple((high - low + 1).max(axis=0).tolist())
    is_counted = grid.n <= MAX_UNITS
    old, new = np.zeros((2, *shape), np.int64 if is_counted else np.float64)
    factor = np.int64(1) if is_counted else np.float64(0.5)
    old[0, 0] = 1
    window = np.zeros((2, 2), np.int64)  # first and last places of `old`
    n_units = max(SLAB // (shape[0] * shape[1]), 1)
    for start in range(0, grid.n, n_units):
        units = slice(start, start + n_units)
        old, new = _add_units(old, new, window, grid.steps[units], low[units], high[units], factor)
    return old[: window[1, 0] - window[0, 0] + 1, : window[1, 1] - window[0, 1] + 1], window[0]


@cached_njit()
def _add_units(old, new, window, steps, low, high, factor):
    """Add units to the distribution one after the other; return the arrays of the new and of the last distribution."""
    for k in range(steps.shape[0]):
        a, b = steps[k, 0], steps[k, 1]
        without, along = max(-b, 0), max(b, 0)  # a place of the second direction, without the unit and with it
        first, last = low[k], high[k]
        for i in range(first[0], last[0] + 1):
            row = new[i - first[0]]
            row[: last[1] - first[1] + 1] = 0
            for place, shift in ((i, without), (i - a, along)):
                if window[0, 0] <= place <= window[1, 0]:
                    start, stop = window[0, 1] + shift, window[1, 1] + shift
                    _add_row(row, old[place - window[0, 0]], start, stop, first[1], last[1], factor)
        window[0, 0], window[0, 1], window[1, 0], window[1, 1] = first[0], first[1], last[0], last[1]
        old, new = new, old
    return old, new


@cached_njit()
def _add_row(row, source, start, stop, first, last, factor):
    """Add a multiple of `source`, for grid points start to stop, to `row`, for grid points first to last."""
    begin, end = max(start, first), min(stop, last)
    target_offset, source_offset = begin - first, begin - start
    for j in range(end - begin + 1):
        row[target_offset + j] += factor * source[source_offset + j]


def _iter_points(
    grid: StepGrid, decision: TieRule, distribution: NDArray[Any], low: Integers
) -> Iterator[DecidedPoints]:
    """Yield the shares of grid points, and masks of those that reach |t|, pass it and certainly tie."""
    rows = max(BLOCK // distribution.shape[1], 1)
    for start in range(0, len(distribution), rows):
        block = distribution[start : start + rows]
        i, j = np.nonzero(block)
        yield block[i, j], *decision(grid.compute_shifts(np.column_stack([i + start, j]) + low))
