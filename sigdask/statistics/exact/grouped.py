"""Any score over all arrangements that can be told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.exact.classes import Cells, Integers
from sigdask.statistics.exact.problems import EnumeratedScore, QuotientProblem
from sigdask.statistics.exact.result import Check, ChosenMethod, TailProbability, about
from sigdask.statistics.exact.ties import TieRule

MOST_CELLS = 2**34
BLOCK = 2**16
"""Cells that are scored at a time."""
NANOSECONDS = 60
"""Of a cell, about."""
UNIT = 2.0**-53


def ways(problem: QuotientProblem | EnumeratedScore) -> Iterator[ChosenMethod]:
    """Yield how it can be done."""
    cells = problem.cells
    if not cells.n:
        yield ChosenMethod("no difference", "exact", 1, 0)
    elif cells.size <= MOST_CELLS:
        exact = cells.is_counted
        distinct = len(cells.counts) == cells.n
        yield ChosenMethod(
            "enumeration" if distinct else "collapse",
            "exact" if exact else "certified",
            cells.size * NANOSECONDS * (1 + problem.vectors.shape[1]),
            BLOCK * 8 * (20 + 6 * problem.vectors.shape[1]),
        )


def why_none(problem: QuotientProblem | EnumeratedScore) -> str:
    """Say why there is no method."""
    cells = problem.cells
    return (
        f"{cells.n} discordant units of {len(cells.counts)} kinds make {about(cells.size)} arrangements "
        f"that are distinct, and {problem.vectors.shape[1]} sums are too many for a grid of their values"
    )


def count(problem: QuotientProblem | EnumeratedScore, check: Check) -> tuple[int, int, int]:
    """Return how many arrangements reach |t|, ties included; are past it for certain; and tie for certain."""
    cells = problem.cells
    reached = passed = known = 0
    for numbers, high, low, same in _compared(problem, cells):
        weights = cells.weights(numbers)
        reached += int(weights[high].sum())
        passed += int(weights[low].sum())
        known += int(weights[same].sum())
        check()
    return reached, passed, known


def tails(problem: QuotientProblem | EnumeratedScore, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|), of too many units to count arrangements."""
    cells = problem.cells
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
        TailProbability(max(least * (1 - error) - tiny, 0.0), min(reached * (1 + error) + tiny, 1.0)),
        TailProbability(max(passed * (1 - error) - tiny, 0.0), min(most * (1 + error) + tiny, 1.0)),
    )


Compared = tuple[Integers, NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def _compared(problem: QuotientProblem | EnumeratedScore, cells: Cells) -> Iterator[Compared]:
    """Yield cells, which of them reach |t|, pass it, and tie for certain."""
    decide = TieRule.of(problem)
    for start in range(0, cells.size, BLOCK):
        numbers = cells.numbers(start, min(start + BLOCK, cells.size))
        yield numbers, *decide(cells.shifts(numbers))
