"""Any score of few small sums by dynamic programming on the whole grid of their values.

Sums that are linear functions of others need no direction of their own. A place of the grid is one number, and
so is a unit's step; up to 62 units arrangements are counted in integers, beyond that probabilities are added.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import compiled
from sigdask.statistics.exact.classes import MOST_UNITS, Cells, Integers
from sigdask.statistics.exact.problems import EnumeratedScore, QuotientProblem
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums.convolution import SLAB, TINY, UNIT
from sigdask.statistics.exact.ties import TieRule

MOST_DIRECTIONS = 8
BLOCK = 2**17
NANOSECONDS = 25
"""Of a decision about a place, for each sum and once more."""


@dataclass(frozen=True, eq=False)
class ValueGrid:
    """The grid of all values of some sums.

    Attributes
    ----------
    steps : int64 array, shape (n, n_directions)
        What units move in each direction; the smallest first.
    sums : float64 array, shape (n_directions, n_fields)
        What a step of each direction is in all sums.
    observed : int64 array, shape (n_directions,)
        Where the observed sums stand.
    """

    steps: Integers
    sums: NDArray[np.float64]
    observed: Integers

    @staticmethod
    def of(cells: Cells) -> ValueGrid:
        """Choose directions that all sums follow from."""
        kept = _independent(cells)
        kinds = cells.vectors[:, kept]
        kinds = kinds // np.gcd.reduce(kinds, axis=0)
        sums = np.linalg.lstsq(kinds.astype(np.float64), cells.vectors.astype(np.float64), rcond=None)[0]
        order = np.argsort(np.abs(kinds).sum(axis=1), kind="stable")
        observed = (cells.counts - 2 * cells.moved) @ kinds
        return ValueGrid(np.repeat(kinds[order], cells.counts[order], axis=0), sums, observed)

    @property
    def n(self) -> int:
        """Units."""
        return len(self.steps)

    @property
    def shape(self) -> list[int]:
        """Values of each direction."""
        return [int(w) + 1 for w in np.abs(self.steps).sum(axis=0)]

    @property
    def size(self) -> int:
        """Places."""
        return math.prod(self.shape)

    @property
    def strides(self) -> Integers:
        """Places between neighbours in each direction."""
        return np.array([math.prod(self.shape[k + 1 :]) for k in range(len(self.shape))], np.int64)

    def shifts(self, places: Integers) -> Integers:
        """Return what is moved from a's sums to b's at some places, shape (n, n_fields)."""
        at = np.column_stack(np.unravel_index(places, self.shape))
        signed = 2 * at - (np.array(self.shape) - 1)
        return np.asarray(np.rint((self.observed - signed) @ self.sums / 2), np.int64)


def _independent(cells: Cells) -> list[int]:
    """Return the first columns that all others are linear functions of, those of the smallest sizes first."""
    sizes = cells.counts @ np.abs(cells.vectors)
    distinct = cells.vectors.astype(np.float64)
    kept: list[int] = []
    for k in np.argsort(sizes, kind="stable").tolist():
        if sizes[k] and np.linalg.matrix_rank(distinct[:, [*kept, k]]) > len(kept):
            kept.append(k)
    return kept


def cost(problem: QuotientProblem | EnumeratedScore) -> tuple[int, int] | None:
    """Return the operations and the bytes; None where there are too many directions."""
    vectors = problem.vectors
    if vectors.shape[1] > MOST_DIRECTIONS or not len(vectors):
        return None
    box = ValueGrid.of(problem.cells)
    operations = box.n * box.size // 2 + box.size * NANOSECONDS * (1 + vectors.shape[1])
    return operations, 8 * box.size + BLOCK * 8 * (20 + 6 * vectors.shape[1])


def count(problem: QuotientProblem | EnumeratedScore, decision: TieRule, check: Check) -> tuple[int, int, int]:
    """Return how many arrangements reach |t|, are past it for certain, and tie for certain."""
    found = [0, 0, 0]
    for ways, *groups in _decided(problem, decision, check):
        for k, some in enumerate(groups):
            found[k] += int(ways[some].sum())
    return found[0], found[1], found[2]


def tails(
    problem: QuotientProblem | EnumeratedScore, decision: TieRule, check: Check
) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|)."""
    parts: list[list[float]] = [[], [], []]
    n_places = 0
    for shares, *groups in _decided(problem, decision, check):
        n_places += len(shares)
        for own, some in zip(parts, groups, strict=True):
            own.append(math.fsum(shares[some]))
    reached, passed, known = (math.fsum(own) for own in parts)
    k = (len(problem.vectors) + 4) * UNIT
    error, missed = k / (1 - k), TINY * n_places * len(problem.vectors)
    least, most = (reached, passed) if decision.true is not None else (min(passed + known, reached), reached - known)
    return (
        TailProbability(max(least * (1 - error) - missed, 0.0), min(reached * (1 + error) + missed, 1.0)),
        TailProbability(max(passed * (1 - error) - missed, 0.0), min(max(most, passed) * (1 + error) + missed, 1.0)),
    )


Decided = tuple[NDArray[np.int64] | NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def _decided(problem: QuotientProblem | EnumeratedScore, decision: TieRule, check: Check) -> Iterator[Decided]:
    """Yield the arrangements of some places, and which reach |t|, pass it, tie for certain."""
    box = ValueGrid.of(problem.cells)
    found = _distribution(box, check)
    for start in range(0, len(found), BLOCK):
        places = np.flatnonzero(found[start : start + BLOCK]) + start
        if len(places):
            yield found[places], *decision(box.shifts(places))
        check()


def _distribution(box: ValueGrid, check: Check) -> NDArray[np.int64] | NDArray[np.float64]:
    """Return the arrangements, or the probability, of each place."""
    counted = box.n <= MOST_UNITS
    found: NDArray[Any] = np.zeros(box.size, np.int64 if counted else np.float64)
    factor = np.int64(1) if counted else np.float64(0.5)
    found[0] = 1
    reach = 0
    for step in box.steps:
        added = step * box.strides
        along, back = int(added[added > 0].sum()), -int(added[added < 0].sum())
        for last in range(reach + along + back, -1, -SLAB):
            _add(found, last, max(last - SLAB, -1), along, back, factor)
            check()
        reach += along + back
    return found


@compiled()
def _add(found, last, stop, along, back, factor):
    """Add a unit, which stands at either of two distances, from the last place down."""
    near, far = min(along, back), max(along, back)
    for x in range(last, max(stop, far - 1), -1):
        found[x] = (found[x - near] + found[x - far]) * factor
    for x in range(min(last, far - 1), max(stop, near - 1), -1):
        found[x] = found[x - near] * factor
    for x in range(min(last, near - 1), stop, -1):
        found[x] = 0
