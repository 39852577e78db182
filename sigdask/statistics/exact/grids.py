"""Quotients of two sums by positive dynamic programming on a grid of numerators and denominators.

As in `windows`, in two dimensions: the grid is the coarsest that holds what units move, sheared until both
directions are as independent as they get, and what leaves a window around its middle is bounded and added above.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import compiled
from sigdask.statistics.exact.classes import Cells, Integers
from sigdask.statistics.exact.problems import QuotientProblem
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums.convolution import LOST, SLAB, TINY, UNIT
from sigdask.statistics.exact.sums.saddlepoint import log_tail
from sigdask.statistics.exact.ties import TieRule

NARROW = 1e-13
"""Share of p up to which what left the window is accepted; else it is done again in a wider one."""

BLOCK = 2**18
"""Cells that are held against the observed difference at a time."""

NANOSECONDS = 80
"""Of which, each."""

OF_A_PLACE = 3
"""Nanoseconds of a unit at one place: memory is slower than additions."""

SUMMED = 80
"""Roundings behind a sum of a block by pairs: at most 16 in a row, and one for each doubling (Higham 2002, 4.2)."""


OVERHEAD = 10**6


@dataclass(frozen=True, eq=False)
class StepGrid:
    """Units as steps on a grid of two directions.

    Attributes
    ----------
    kinds : int64 array, shape (n_kinds, 2)
        What units move, in steps; the smallest units first, the first direction never negative.
    counts : int64 array, shape (n_kinds,)
        Units of each kind.
    basis : int64 array, shape (2, 2)
        What a step of either direction is in numerator and denominator.
    observed : int64 array, shape (2,)
        The sum of all units' steps as observed.
    """

    kinds: Integers
    counts: Integers
    basis: Integers
    observed: Integers

    @staticmethod
    def of(cells: Cells) -> StepGrid:
        """Return what moves numerators and denominators in the fewest steps.

        Examples
        --------
        >>> grid = StepGrid.of(Cells.of(np.array([[2, 1], [2, 1], [0, 1], [0, -1]])))
        >>> (grid.steps @ grid.basis).tolist()
        [[0, 1], [0, 1], [2, 1], [2, 1]]
        """
        basis = _reduced(_basis(cells.vectors), cells)
        kinds = _coordinates(cells.vectors, basis)
        observed = (cells.counts - 2 * cells.moved) @ kinds
        flip = (kinds[:, 0] < 0) | ((kinds[:, 0] == 0) & (kinds[:, 1] < 0))
        kinds = np.where(flip[:, None], -kinds, kinds)
        order = np.lexsort((kinds[:, 1], kinds[:, 0], (kinds**2).sum(axis=1)))
        return StepGrid(kinds[order], cells.counts[order], basis, observed)

    @property
    def n(self) -> int:
        """Units."""
        return int(self.counts.sum())

    @cached_property
    def steps(self) -> Integers:
        """What each unit moves, shape (n, 2)."""
        return np.repeat(self.kinds, self.counts, axis=0)

    @cached_property
    def sizes(self) -> Integers:
        """Sizes of steps after each unit, added up, shape (n, 2)."""
        return np.cumsum(np.abs(self.steps), axis=0)

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """Variances of signed sums after each unit, shape (n, 2)."""
        return np.cumsum(self.steps.astype(np.float64) ** 2, axis=0)

    def widths(self, log_p: float) -> Integers:
        """Return how far signed sums are followed after each unit, shape (n, 2), where LOST of p may be lost."""
        reach = 2 * (math.log(4 * self.n / LOST) - log_p)
        return np.minimum(np.ceil(np.sqrt(reach * self.variances)).astype(np.int64) + 1, self.sizes)

    def lost(self, widths: Integers) -> float:
        """Return a bound of the probability of leaving the window after any unit (Hoeffding)."""
        inside = widths < self.sizes
        exponent = -(widths[inside].astype(np.float64) ** 2) / (2 * self.variances[inside])
        return float(np.sum(2 * np.exp(exponent))) * (1 + 1e-12)

    def bounds(self, widths: Integers) -> tuple[Integers, Integers]:
        """Return the first and last places on the grid that are kept after each unit, shape (n, 2)."""
        return (self.sizes - widths + 1) // 2, (self.sizes + widths) // 2


def _basis(vectors: Integers) -> Integers:
    """Return two generators of all integer combinations of vectors, one of which may be 0."""
    p, q = 0, 0  # the generator with a first component
    r = 0  # of those without
    for x, y in vectors.tolist():
        a, b = x, y
        while a:
            k = p // a
            p, q, a, b = a, b, p - k * a, q - k * b
        r = math.gcd(r, b)
        if r:
            q %= r
    return np.array([[p, q], [0, r]], np.int64)


def _coordinates(vectors: Integers, basis: Integers) -> Integers:
    (a, b), (c, d) = basis.tolist()
    determinant = a * d - b * c
    if determinant:
        x, y = vectors.T
        return np.column_stack([(x * d - y * c) // determinant, (y * a - x * b) // determinant])
    own = basis[int(basis[1].any())]  # one direction alone
    k = int(own.any() and np.abs(own).argmax())
    found = np.zeros_like(vectors)
    found[:, int(basis[1].any())] = vectors[:, k] // own[k] if own[k] else 0
    return found


def _reduced(basis: Integers, cells: Cells) -> Integers:
    """Shear a basis until its two coordinates are as little correlated as whole numbers allow (Lagrange, Gauss)."""
    while True:
        steps = _coordinates(cells.vectors, basis).astype(np.float64)
        squares = (steps * cells.counts[:, None]).T @ steps
        small = int(squares[1, 1] < squares[0, 0])
        if squares[small, small] == 0:
            return basis
        k = round(float(squares[0, 1] / squares[small, small]))
        if k == 0:
            return basis
        basis = basis.copy()
        basis[small] += k * basis[1 - small]


def log_p(problem: QuotientProblem, decision: TieRule) -> float:
    """Return about the logarithm of P(T >= |t|), of a difference that is nearly linear in what units move."""
    cells = problem.cells
    moved = cells.vectors @ decision.slopes()
    largest = float(np.abs(moved).max())
    if largest == 0:
        return -math.log(2)
    some = moved != 0
    observed = abs(float((cells.counts - 2 * cells.moved) @ moved))
    return math.floor(log_tail(np.abs(moved[some]) / largest, cells.counts[some], 1.02 * observed / largest)) - 2.0


def cost(problem: QuotientProblem) -> tuple[int, int]:
    """Return the additions with what the decision about each cell takes, and the bytes."""
    grid = StepGrid.of(problem.cells)
    low, high = grid.bounds(grid.widths(log_p(problem, TieRule.of(problem))))
    spans = (high - low + 1).astype(np.float64)
    cells = spans.prod(axis=1)
    operations = int(OF_A_PLACE * cells.sum() + NANOSECONDS * cells[-1]) + OVERHEAD
    return operations, int(16 * spans.max(axis=0).prod()) + 200 * BLOCK


def tails(problem: QuotientProblem, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|)."""
    grid, decision = StepGrid.of(problem.cells), TieRule.of(problem)
    expected = log_p(problem, decision)
    for _ in range(4):
        widths = grid.widths(expected)
        missed = grid.lost(widths)
        found, low = _distribution(grid, widths, check)
        sums = compared(grid, decision, found, low, check)
        if missed <= NARROW * sums[0] or sums[0] == 0:
            break
        expected = min(math.log(sums[0]), expected) - 3.0
    missed += grid.n * found.size * TINY
    k = (grid.n + SUMMED) * UNIT
    error = k / (1 - k)
    reached, passed = (
        TailProbability(max(p * (1 - error) - missed, 0.0), min(p * (1 + error) + missed, 1.0)) for p in sums
    )
    return reached, passed


def _distribution(grid: StepGrid, widths: Integers, check: Check) -> tuple[NDArray[np.float64], Integers]:
    """Return the probability of each place of the window, and its first place."""
    low, high = grid.bounds(widths)
    shape = tuple((high - low + 1).max(axis=0).tolist())
    old, new = np.zeros(shape), np.zeros(shape)
    old[0, 0] = 1.0
    at = np.zeros((2, 2), np.int64)  # first and last places of `old`
    each = max(SLAB // (shape[0] * shape[1]), 1)
    for start in range(0, grid.n, each):
        some = slice(start, start + each)
        old, new = _add(old, new, at, grid.steps[some], low[some], high[some])
        check()
    return old[: at[1, 0] - at[0, 0] + 1, : at[1, 1] - at[0, 1] + 1], at[0]


@compiled()
def _add(old, new, at, steps, low, high):
    """Add units one after the other; return the arrays, the newest first."""
    for k in range(steps.shape[0]):
        a, b = steps[k, 0], steps[k, 1]
        without, along = max(-b, 0), max(b, 0)  # a place of the second direction, without the unit and with it
        first, last = low[k], high[k]
        for i in range(first[0], last[0] + 1):
            row = new[i - first[0]]
            row[: last[1] - first[1] + 1] = 0.0
            if at[0, 0] <= i <= at[1, 0]:
                _shift(row, old[i - at[0, 0]], at[0, 1] + without, at[1, 1] + without, first[1], last[1])
            if at[0, 0] <= i - a <= at[1, 0]:
                _shift(row, old[i - a - at[0, 0]], at[0, 1] + along, at[1, 1] + along, first[1], last[1])
        at[0, 0], at[0, 1], at[1, 0], at[1, 1] = first[0], first[1], last[0], last[1]
        old, new = new, old
    return old, new


@compiled()
def _shift(row, other, start, stop, first, last):
    """Add half of a row that holds places start to stop to one that holds first to last."""
    begin, end = max(start, first), min(stop, last)
    to, of = begin - first, begin - start
    for j in range(end - begin + 1):
        row[to + j] += 0.5 * other[of + j]


def compared(
    grid: StepGrid, decision: TieRule, found: NDArray[np.float64], low: Integers, check: Check
) -> tuple[float, float]:
    """Return the sums of what reaches |t| and of what passes it."""
    parts: tuple[list[float], list[float]] = ([], [])
    rows = max(BLOCK // found.shape[1], 1)
    for start in range(0, len(found), rows):
        block = found[start : start + rows]
        i, j = np.nonzero(block)
        places = np.column_stack([i + start, j]) + low
        signed = 2 * places - grid.sizes[-1]
        shifts = (grid.observed - signed) @ grid.basis // 2
        own = block[i, j]
        reached, passed, _ = decision(shifts)
        parts[0].append(float(own[reached].sum()))
        parts[1].append(float(own[passed].sum()))
        check()
    return math.fsum(parts[0]), math.fsum(parts[1])
