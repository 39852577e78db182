"""P-values of any score, by enumeration of all distinguishable arrangements."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.exact.classes import Cells, Integers
from sigdask.statistics.exact.problems import EnumeratedScore, QuotientProblem
from sigdask.statistics.exact.result import Check, ChosenMethod, TailProbability, format_about
from sigdask.statistics.exact.ties import TieRule

MOST_CELLS = 2**34
BLOCK = 2**16
"""Cells that are scored at a time."""
NANOSECONDS_PER_CELL = 60
"""Of a cell, about."""
ROUNDOFF = 2.0**-53


def iter_methods(problem: QuotientProblem | EnumeratedScore) -> Iterator[ChosenMethod]:
    """Yield the way to enumerate a problem's arrangements, in full or collapsed, unless there are too many."""
    cells = problem.cells
    if not cells.n:
        yield ChosenMethod("no difference", "exact", 1, 0)
    elif cells.size <= MOST_CELLS:
        exact = cells.is_counted
        distinct = len(cells.counts) == cells.n
        yield ChosenMethod(
            "enumeration" if distinct else "collapse",
            "exact" if exact else "certified",
            cells.size * NANOSECONDS_PER_CELL * (1 + problem.vectors.shape[1]),
            BLOCK * 8 * (20 + 6 * problem.vectors.shape[1]),
        )


def describe_no_method(problem: QuotientProblem | EnumeratedScore) -> str:
    """Return, as part of a sentence, why no exact method applies to a problem."""
    cells = problem.cells
    return (
        f"{cells.n} discordant units of {len(cells.counts)} kinds make {format_about(cells.size)} arrangements "
        f"that are distinct, and {problem.vectors.shape[1]} sums are too many for a grid of their values"
    )


def count_arrangements(problem: QuotientProblem | EnumeratedScore, check: Check) -> tuple[int, int, int]:
    """Return how many arrangements may have a difference of at least |t|, certainly a larger one, and certainly tie."""
    cells = problem.cells
    reached = passed = tied = 0
    for numbers, high, low, ties in _iter_compared(problem, cells):
        weights = cells.compute_weights(numbers)
        reached += int(weights[high].sum())
        passed += int(weights[low].sum())
        tied += int(weights[ties].sum())
        check()
    return reached, passed, tied


def compute_tails(problem: QuotientProblem | EnumeratedScore, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|), for too many units to count arrangements."""
    cells = problem.cells
    sums: list[list[float]] = [[], [], []]
    for numbers, *groups in _iter_compared(problem, cells):
        weights = cells.compute_weights(numbers)
        for part_sums, mask in zip(sums, groups, strict=True):
            part_sums.append(math.fsum(weights[mask]))
        check()
    error = 2 * (2 * len(cells.counts) + 2) * ROUNDOFF
    reached, passed, tied = (math.fsum(part_sums) for part_sums in sums)
    tiny = 2.0**-1074 * (cells.size + 1)
    lowest, highest = min(passed + tied, reached), max(reached - tied, passed)
    return (
        TailProbability(max(lowest * (1 - error) - tiny, 0.0), min(reached * (1 + error) + tiny, 1.0)),
        TailProbability(max(passed * (1 - error) - tiny, 0.0), min(highest * (1 + error) + tiny, 1.0)),
    )


ComparedCells = tuple[Integers, NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]


def _iter_compared(problem: QuotientProblem | EnumeratedScore, cells: Cells) -> Iterator[ComparedCells]:
    """Yield blocks of cells, and masks of the cells that reach |t|, pass it and certainly tie."""
    decide = TieRule.from_problem(problem)
    for start in range(0, cells.size, BLOCK):
        numbers = cells.decode_numbers(start, min(start + BLOCK, cells.size))
        yield numbers, *decide(cells.compute_shifts(numbers))
