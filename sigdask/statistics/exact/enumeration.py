"""P-values of any score by enumeration of the distinguishable arrangements (cells).

Up to 62 units arrangements are counted in integers; beyond, probabilities are added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.statistics.exact.binomials import ROUNDOFF
from sigdask.statistics.exact.problems import CellProblem, ChosenMethod, ProbabilityLimits, TieRule
from sigdask.statistics.exact.sums import TINY

MAX_CELLS = 2**34
CELL_BLOCK = 2**16
"""Cells scored at a time."""
NANOSECONDS_PER_CELL = 60
"""Approximate nanoseconds of a cell."""


DecidedPoints = tuple[Integers | Floats, Bools, Bools, Bools]
"""Numbers or shares of arrangements at each point, and whether each point reaches |t|, exceeds it and certainly ties.
"""


def iter_methods(problem: CellProblem) -> Iterator[ChosenMethod]:
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


def count_arrangements(problem: CellProblem, decision: TieRule) -> list[int]:
    """Return the numbers of `count_points` by enumeration."""
    return count_points(iter_cells(problem, decision))


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


def compute_tails(problem: CellProblem, decision: TieRule) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|) by enumeration, for too many units to count arrangements."""
    sums, n_cells = sum_points(iter_cells(problem, decision))
    return bound_tails(sums, 2 * (2 * len(problem.cells.counts) + 2) * ROUNDOFF, TINY * (n_cells + 1))


def bound_tails(sums: Sequence[float], error: float, missed: float) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(T >= |t|) and P(T > |t|) from the sums of `sum_points`, with their relative error."""
    reached, passed, tied = sums
    return (
        ProbabilityLimits.from_rounded(min(passed + tied, reached), reached, error, missed),
        ProbabilityLimits.from_rounded(passed, max(reached - tied, passed), error, missed),
    )
