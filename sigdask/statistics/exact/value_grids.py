"""P-values of any score: enumeration of distinguishable arrangements, or dynamic programming on a grid of sums.

The grid holds all values of a few small sums. Sums that are linear functions of others have no dimension of their own.
A cell of the grid is one number, and so is a unit's step. Up to 62 units arrangements are counted in integers; beyond,
probabilities are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.statistics.exact.convolution import ROUNDOFF, SLAB, TINY
from sigdask.statistics.exact.problems import MAX_UNITS, CellProblem, Cells, TieRule
from sigdask.statistics.exact.result import ChosenMethod, ProbabilityLimits

MAX_CELLS = 2**34
CELL_BLOCK = 2**16
"""Cells scored at a time."""
NANOSECONDS_PER_CELL = 60
"""Approximate nanoseconds of a cell."""


DecidedPoints = tuple[Integers | Floats, Bools, Bools, Bools]
"""Numbers or shares of arrangements at each point, and whether each point reaches |t|, exceeds it and certainly ties.
"""


def iter_cell_methods(problem: CellProblem) -> Iterator[ChosenMethod]:
    """Yield the way to enumerate a problem's arrangements, in full or collapsed, unless there are too many."""
    cells = problem.cells
    if not cells.n:
        yield ChosenMethod("no difference", "exact", 1, 0)
    elif cells.size <= MAX_CELLS:
        exact = cells.is_counted
        distinct = len(cells.counts) == cells.n
        yield ChosenMethod(
            "enumeration" if distinct else "collapse",
            "exact" if exact else "certified",
            cells.size * NANOSECONDS_PER_CELL * (1 + problem.vectors.shape[1]),
            CELL_BLOCK * 8 * (20 + 6 * problem.vectors.shape[1]),
        )


def iter_cells(problem: CellProblem, decision: TieRule) -> Iterator[DecidedPoints]:
    """Yield how many arrangements blocks of cells have, and masks of those that reach |t|, pass it and surely tie."""
    cells = problem.cells
    for start in range(0, cells.size, CELL_BLOCK):
        numbers = cells.decode_numbers(start, min(start + CELL_BLOCK, cells.size))
        yield cells.compute_weights(numbers), *decision(cells.compute_shifts(numbers))


def count_points(points: Iterable[DecidedPoints]) -> list[int]:
    """Return how many arrangements may have a difference of at least |t|, certainly a larger one, and certainly tie."""
    counts = [0, 0, 0]
    for ways, *groups in points:
        for k, mask in enumerate(groups):
            counts[k] += int(ways[mask].sum())
    return counts


def sum_points(points: Iterable[DecidedPoints]) -> tuple[list[float], int]:
    """Return the probabilities corresponding to the numbers of `count_points`, and the number of points."""
    parts: list[list[float]] = [[], [], []]
    n_points = 0
    for shares, *groups in points:
        n_points += len(shares)
        for part_sums, mask in zip(parts, groups, strict=True):
            part_sums.append(math.fsum(shares[mask]))
    return [math.fsum(part_sums) for part_sums in parts], n_points


def compute_cell_tails(problem: CellProblem, decision: TieRule) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|) by enumeration, for too many units to count arrangements."""
    (reached, passed, tied), n_cells = sum_points(iter_cells(problem, decision))
    error, tiny = 2 * (2 * len(problem.cells.counts) + 2) * ROUNDOFF, TINY * (n_cells + 1)
    return (
        ProbabilityLimits.from_rounded(min(passed + tied, reached), reached, error, tiny),
        ProbabilityLimits.from_rounded(passed, max(reached - tied, passed), error, tiny),
    )


# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"


MAX_DIRECTIONS = 8
BLOCK = 2**17
NANOSECONDS = 25
"""Nanoseconds of a decision about a point, for each sum and once more."""


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """The grid of all values of the sums that a score is computed from.

    Attributes
    ----------
    steps : int64 array, shape (n, n_directions)
        Steps of each unit in each direction, the smallest unit first.
    sums : float64 array, shape (n_directions, n_fields)
        Change of all sums by a step in each direction.
    observed : int64 array, shape (n_directions,)
        Grid position of the observed sums.
    """

    steps: Integers
    sums: Floats
    observed: Integers

    @staticmethod
    def from_cells(cells: Cells) -> ValueGrid:
        """Return the grid for some cells, in as few directions as determine all sums linearly."""
        sizes, distinct = cells.counts @ np.abs(cells.vectors), cells.vectors.astype(np.float64)
        columns: list[int] = []  # from which all other sums follow linearly, those that move little first
        for k in np.argsort(sizes, kind="stable").tolist():
            if sizes[k] and np.linalg.matrix_rank(distinct[:, [*columns, k]]) > len(columns):
                columns.append(k)
        kinds = cells.vectors[:, columns]
        kinds = kinds // np.gcd.reduce(kinds, axis=0)
        sums = np.linalg.lstsq(kinds.astype(np.float64), distinct, rcond=None)[0]
        order = np.argsort(np.abs(kinds).sum(axis=1), kind="stable")
        observed = (cells.counts - 2 * cells.moved) @ kinds
        return ValueGrid(np.repeat(kinds[order], cells.counts[order], axis=0), sums, observed)

    @property
    def n(self) -> int:
        """The number of units."""
        return len(self.steps)

    @property
    def shape(self) -> list[int]:
        """The number of values in each direction."""
        return [int(w) + 1 for w in np.abs(self.steps).sum(axis=0)]

    @property
    def size(self) -> int:
        """The number of grid points."""
        return math.prod(self.shape)

    @property
    def strides(self) -> Integers:
        """Distances in memory between neighbours in each direction."""
        return np.array([math.prod(self.shape[k + 1 :]) for k in range(len(self.shape))], np.int64)

    def compute_shifts(self, positions: Integers) -> Integers:
        """Return what moves from a's observed sums to b's at each of some grid points, shape (n, n_fields)."""
        coordinates = np.column_stack(np.unravel_index(positions, self.shape))
        signed = 2 * coordinates - (np.array(self.shape) - 1)
        return np.asarray(np.rint((self.observed - signed) @ self.sums / 2), np.int64)


def estimate_cost(problem: CellProblem) -> tuple[int, int] | None:
    """Return the estimated operations and bytes; None if there are too many directions."""
    vectors = problem.vectors
    if vectors.shape[1] > MAX_DIRECTIONS or not len(vectors):
        return None
    box = ValueGrid.from_cells(problem.cells)
    operations = box.n * box.size // 2 + box.size * NANOSECONDS * (1 + vectors.shape[1])
    return operations, 8 * box.size + BLOCK * 8 * (20 + 6 * vectors.shape[1])


def compute_tails(problem: CellProblem, decision: TieRule) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|) by dynamic programming."""
    (reached, passed, tied), n_points = sum_points(iter_points(problem, decision))
    k = (len(problem.vectors) + 4) * ROUNDOFF
    error, missed = k / (1 - k), TINY * n_points * len(problem.vectors)
    lowest, highest = (reached, passed) if decision.true is not None else (min(passed + tied, reached), reached - tied)
    return (
        ProbabilityLimits.from_rounded(lowest, reached, error, missed),
        ProbabilityLimits.from_rounded(passed, max(highest, passed), error, missed),
    )


def iter_points(problem: CellProblem, decision: TieRule) -> Iterator[DecidedPoints]:
    """Yield how many arrangements grid points have, and masks of points that reach |t|, pass it and certainly tie."""
    box = ValueGrid.from_cells(problem.cells)
    distribution = _compute_distribution(box)
    for start in range(0, len(distribution), BLOCK):
        positions = np.flatnonzero(distribution[start : start + BLOCK]) + start
        if len(positions):
            yield distribution[positions], *decision(box.compute_shifts(positions))


def _compute_distribution(box: ValueGrid) -> Integers | Floats:
    """Return the number of arrangements, or the probability, of each grid point."""
    is_counted = box.n <= MAX_UNITS
    distribution: NDArray[Any] = np.zeros(box.size, np.int64 if is_counted else np.float64)
    factor = np.int64(1) if is_counted else np.float64(0.5)
    distribution[0] = 1
    reach = 0
    for step in box.steps:
        added = step * box.strides
        forward, backward = int(added[added > 0].sum()), -int(added[added < 0].sum())
        for last in range(reach + forward + backward, -1, -SLAB):
            _add_unit(distribution, last, max(last - SLAB, -1), forward, backward, factor)
        reach += forward + backward
    return distribution


@cached_njit()
def _add_unit(distribution, last, stop, forward, backward, factor):
    """Add a unit to the distribution in place: it shifts sums by `forward` or by `backward` grid points.

    Grid points are updated from `last` down to `stop`, which is excluded.
    """
    near, far = min(forward, backward), max(forward, backward)
    for x in range(last, max(stop, far - 1), -1):
        distribution[x] = (distribution[x - near] + distribution[x - far]) * factor
    for x in range(min(last, far - 1), max(stop, near - 1), -1):
        distribution[x] = distribution[x - near] * factor
    for x in range(min(last, near - 1), stop, -1):
        distribution[x] = 0
