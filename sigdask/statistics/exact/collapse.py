"""Any score over all arrangements that can be told apart: units that move the same, up to sign, are a binomial.

K distinct vectors with multiplicities m make prod(m + 1) cells, 2**n of them where all differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.statistics.exact.found import Check, Chosen, Tail
from sigdask.statistics.exact.problems import Integers, Quotients, Scored

MOST_CELLS = 2**34
BLOCK = 2**16
"""Cells that are scored at a time."""
NANOSECONDS = 60
"""Of a cell, about."""
MOST_UNITS = 62
UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class Cells:
    """The arrangements of units, collapsed.

    Attributes
    ----------
    vectors : int64 array, shape (n_distinct, n_fields)
        What one unit of each kind moves.
    counts : int64 array, shape (n_distinct,)
        Units of each kind.
    moved : int64 array, shape (n_distinct,)
        How many of them are against their vector as observed.
    """

    vectors: Integers
    counts: Integers
    moved: Integers

    @staticmethod
    def of(vectors: Integers) -> Cells:
        """Collapse what units move, shape (n_units, n_fields), none of which is all 0."""
        if not len(vectors):
            return Cells(vectors, np.zeros(0, np.int64), np.zeros(0, np.int64))
        first = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
        sign = np.sign(first)
        distinct, place = np.unique(vectors * sign[:, None], axis=0, return_inverse=True)
        place = place.ravel()
        against = np.bincount(place, sign < 0, len(distinct)).astype(np.int64)
        return Cells(distinct, np.bincount(place, minlength=len(distinct)), against)

    @cached_property
    def n(self) -> int:
        """Units."""
        return int(self.counts.sum())

    @cached_property
    def size(self) -> int:
        """Cells."""
        return math.prod(int(m) + 1 for m in self.counts)

    def numbers(self, start: int, stop: int) -> Integers:
        """Return how many units of each kind are against their vector in some cells, shape (n_cells, n_distinct)."""
        rest = np.arange(start, stop)
        found = np.empty((len(rest), len(self.counts)), np.int64)
        for k, m in enumerate(self.counts.tolist()):
            rest, found[:, k] = np.divmod(rest, m + 1)
        return found

    def shifts(self, numbers: Integers) -> Integers:
        """Return what cells move from a's sums to b's, relative to what was observed, shape (n_cells, n_fields)."""
        return (numbers - self.moved) @ self.vectors

    @cached_property
    def ways(self) -> list[NDArray[np.int64]] | list[NDArray[np.float64]]:
        """Arrangements behind a number of units of each kind: how many, or as a share where 64 bits hold none."""
        if self.n <= MOST_UNITS:
            return [np.array([math.comb(m, k) for k in range(m + 1)]) for m in self.counts.tolist()]
        return [_shares(m) for m in self.counts.tolist()]

    def weights(self, numbers: Integers) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the arrangements, or the probability, of each cell."""
        found = np.ones(len(numbers), self.ways[0].dtype if self.ways else np.int64)
        for k, each in enumerate(self.ways):
            found *= each[numbers[:, k]]
        return found


def _shares(m: int) -> NDArray[np.float64]:
    return np.array([math.comb(m, k) / (1 << m) for k in range(m + 1)])


def ways(problem: Quotients | Scored) -> Iterator[Chosen]:
    """Yield how it can be done."""
    cells = Cells.of(problem.vectors)
    if not cells.n:
        yield Chosen("no difference", "exact", 1, 0)
    elif cells.size <= MOST_CELLS:
        exact = cells.n <= MOST_UNITS
        distinct = len(cells.counts) == cells.n
        yield Chosen(
            "enumeration" if distinct else "collapse",
            "exact" if exact else "certified",
            cells.size * NANOSECONDS * (1 + problem.vectors.shape[1]),
            BLOCK * 8 * (20 + 6 * problem.vectors.shape[1]),
        )


def why_none(problem: Quotients | Scored) -> str:
    """Say why there is no method."""
    cells = Cells.of(problem.vectors)
    return (
        f"{cells.n} discordant units of {len(cells.counts)} kinds make {float(cells.size):.2g} arrangements "
        "that can be told apart, and the score is no sum or quotient whose values fit a grid"
    )


def count(problem: Quotients | Scored, check: Check) -> tuple[int, int, int]:
    """Return how many arrangements reach |t|, ties included; are past it for certain; and tie for certain."""
    cells = Cells.of(problem.vectors)
    reached = passed = known = 0
    for numbers, high, low, same in _compared(problem, cells):
        weights = cells.weights(numbers)
        reached += int(weights[high].sum())
        passed += int(weights[low].sum())
        known += int(weights[same].sum())
        check()
    return reached, passed, known


def tails(problem: Quotients | Scored, check: Check) -> tuple[Tail, Tail]:
    """Return limits of P(T >= |t|) and P(T > |t|), of too many units to count arrangements."""
    cells = Cells.of(problem.vectors)
    sums: list[list[float]] = [[], [], []]
    for numbers, *groups in _compared(problem, cells):
        weights = cells.weights(numbers)
        for own, some in zip(sums, groups, strict=True):
            own.append(math.fsum(weights[some]))
        check()
    error = 2 * (2 * len(cells.counts) + 2) * UNIT
    reached, passed, known = (math.fsum(own) for own in sums)
    tiny = 2.0**-1074 * (cells.size + 1)
    least, most = min(passed + known, reached), max(reached - known, passed)
    return (
        Tail(max(least * (1 - error) - tiny, 0.0), min(reached * (1 + error) + tiny, 1.0)),
        Tail(max(passed * (1 - error) - tiny, 0.0), min(most * (1 + error) + tiny, 1.0)),
    )


Compared = tuple[Integers, NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def _compared(problem: Quotients | Scored, cells: Cells) -> Iterator[Compared]:
    """Yield cells, which of them reach |t|, pass it, and tie for certain."""
    decide = Decision.of(problem)
    for start in range(0, cells.size, BLOCK):
        numbers = cells.numbers(start, min(start + BLOCK, cells.size))
        yield numbers, *decide(cells.shifts(numbers))


@dataclass(frozen=True, eq=False)
class Decision:
    """How shuffled sums are held against the observed ones: by floats, and where these cannot say, in fractions.

    Attributes
    ----------
    problem : Quotients or Scored
    observed : float
        The observed difference.
    true : Fraction or None
        The same without rounding, where the score is made of quotients.
    """

    problem: Quotients | Scored
    observed: float
    true: Fraction | None
    slack: float = 0.0

    @staticmethod
    def of(problem: Quotients | Scored) -> Decision:
        """Look at the observed sums."""
        totals = problem.totals
        a, b = np.asarray(problem.score(totals), np.float64)
        slack = 0.0
        if isinstance(problem, Scored):
            if problem.movement is not None:
                slack = float(np.sum(problem.movement(totals)))
            return Decision(problem, float(a - b), None, slack)
        return Decision(problem, float(a - b), problem.true_score(totals[0]) - problem.true_score(totals[1]))

    @property
    def negative(self) -> bool:
        """Whether the observed difference is negative."""
        return self.true < 0 if self.true is not None else self.observed < 0

    @property
    def zero(self) -> bool:
        """Whether the observed difference may be 0."""
        if self.true is not None:
            return self.true == 0
        scores = self.problem.score(self.problem.totals)
        return abs(self.observed) <= TIE * float(np.abs(scores).sum()) + self.slack

    def __call__(self, shifts: Integers) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Say which shifts of sums from a to b, shape (n, n_fields), reach |t|, pass it, and tie for certain."""
        a, b = self.problem.totals[0] - shifts, self.problem.totals[1] + shifts
        own, other = self.problem.score(a), self.problem.score(b)
        sign = -1.0 if self.negative else 1.0
        difference, size = sign * (own - other), abs(self.observed)
        tie = TIE * (np.abs(own) + np.abs(other))
        if isinstance(self.problem, Scored) and self.problem.movement is not None:
            tie = tie + self.problem.movement(a) + self.problem.movement(b) + self.slack
        reached, passed = difference >= size - tie, difference > size + tie
        if self.true is None:
            return reached, passed, ~shifts.any(axis=1)
        for k in np.flatnonzero(reached & ~passed):
            assert isinstance(self.problem, Quotients)
            exact = self.problem.true_score(a[k]) - self.problem.true_score(b[k])
            exact = -exact if self.negative else exact
            reached[k], passed[k] = exact >= abs(self.true), exact > abs(self.true)
        return reached, passed, reached & ~passed
