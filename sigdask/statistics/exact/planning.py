"""Which method is taken: the cheapest of the best guarantee that fits the limits, a function of the data alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sigdask.statistics.exact import bisection, boxes, grids, grouped, tilted_grids
from sigdask.statistics.exact.problems import Problem, QuotientProblem, StepSizes, SumProblem
from sigdask.statistics.exact.result import ChosenMethod, Guarantee, NoMethod, about
from sigdask.statistics.exact.sums import binomials, convolution, lattice_bounds, meet_in_the_middle, polynomial, tilted
from sigdask.statistics.exact.ties import TieRule


@dataclass(frozen=True, slots=True)
class MethodLimits:
    """What a method may take.

    Attributes
    ----------
    operations : int
        Of a nanosecond or so each.
    n_bytes : int
        Of memory.
    seconds : float
        Estimated seconds of one core (`ChosenMethod.seconds`).
    """

    operations: int = 10**11
    n_bytes: int = 2 * 10**9
    seconds: float = math.inf

    def admit(self, way: ChosenMethod) -> bool:
        """Return whether a method fits."""
        return way.operations <= self.operations and way.n_bytes <= self.n_bytes and way.seconds <= self.seconds


DEFAULT_LIMITS = MethodLimits()

CHEAP, CHEAP_UNIT = 3 * 10**6, 100
"""Operations, and operations for each unit, that are no more than it takes to look at further ways."""

ORDER = (("exact", "certified"), ("numeric",), ("bounds",))
"""Guarantees, the best first; exact and certified ones are alike as good."""


def plan(problem: Problem, limits: MethodLimits = DEFAULT_LIMITS) -> ChosenMethod | NoMethod:
    """Choose a method without computing anything.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or Scored
        The question.
    limits : MethodLimits
        What the method may take.

    Returns
    -------
    Chosen or Refused
        The method that takes the fewest operations of those with the best guarantee; or what would be needed.

    Examples
    --------
    >>> import numpy as np
    >>> plan(SumProblem(np.array([1, -1, 1, 1, 0]))).method
    'binomial'
    """
    known = list(_until_cheap(problem))
    if not known:
        assert not isinstance(problem, SumProblem)  # of which there is always a method
        return NoMethod(grouped.why_none(problem))
    fitting = [w for w in known if limits.admit(w)]
    for guarantees in ORDER:
        among = [w for w in fitting if w.guarantee in guarantees]
        if among:
            return min(among, key=lambda w: w.operations)
    least = min(known, key=lambda w: (w.operations, w.n_bytes))
    return NoMethod(_why_not(least, limits), least)


def _until_cheap(problem: Problem) -> Iterator[ChosenMethod]:
    """Yield ways until one costs no more than it does to look at the others."""
    n = len(problem.differences if isinstance(problem, SumProblem) else problem.vectors)
    for way in ways(problem):
        yield way
        if way.guarantee in ORDER[0] and way.operations <= CHEAP + CHEAP_UNIT * n:
            return


def ways(problem: Problem) -> Iterator[ChosenMethod]:
    """Yield every method that there is, whatever it takes."""
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        yield from _ways_of_sums(problem.steps)
    else:
        one_row = isinstance(problem, QuotientProblem) and problem.above.shape[1] == 1 and len(problem.vectors)
        if isinstance(problem, QuotientProblem) and one_row:
            yield from _ways_of_tables(problem)
        yield from grouped.ways(problem)
        cost = boxes.cost(problem)
        if cost is not None:
            yield ChosenMethod("box-dp", "exact" if problem.cells.is_counted else "certified", *cost)
        if isinstance(problem, QuotientProblem) and one_row:
            yield ChosenMethod("grid-dp", "certified", *grids.cost(problem))
            if tilted_grids.is_smooth(problem):
                yield ChosenMethod("grid-fft", "numeric", *tilted_grids.cost(problem))


def _ways_of_sums(steps: StepSizes) -> Iterator[ChosenMethod]:
    n = steps.n
    if n == 0:
        yield ChosenMethod("no difference", "exact", 1, 0)
        return
    if len(steps.groups[0]) == 1:
        exact = n <= binomials.LARGEST_FRACTION
        yield ChosenMethod("binomial", "exact" if exact else "certified", binomials.operations(n), 100 * n)
        return
    yield ChosenMethod("polynomial", "exact", polynomial.operations(steps), polynomial.n_bytes(steps))
    yield ChosenMethod("dp", "certified", convolution.operations(steps), convolution.n_bytes(steps))
    if n <= meet_in_the_middle.MOST_UNITS:
        yield ChosenMethod(
            "meet-in-the-middle",
            "exact",
            meet_in_the_middle.operations(n),
            meet_in_the_middle.n_bytes(n),
            meet_in_the_middle.n_parts(n),
        )
    yield ChosenMethod("tilted-fft", "numeric", tilted.operations(steps), tilted.n_bytes(steps))
    coarse = lattice_bounds.CoarseSizes.of(steps)
    if coarse.step > 1 and coarse.steps.n:
        yield ChosenMethod(
            "lattice-bounds", "bounds", lattice_bounds.operations(coarse), lattice_bounds.n_bytes(coarse)
        )


def _ways_of_tables(problem: QuotientProblem) -> Iterator[ChosenMethod]:
    decision = TieRule.of(problem)
    table = bisection.ArrangementTable.of(problem, decision)
    if table is not None:
        expected = 0.0 if bisection.is_exact(table.cells.n) else grids.log_p(problem, decision)
        guarantee: Guarantee = "exact" if bisection.is_exact(table.cells.n) else "certified"
        yield ChosenMethod(
            "bisection", guarantee, bisection.operations(table, expected), bisection.n_bytes(table, expected)
        )


def _why_not(least: ChosenMethod, limits: MethodLimits) -> str:
    return (
        f"{least.method} would take {about(least.operations)} operations and {about(least.n_bytes // 10**6)} MB, "
        f"of {about(limits.operations)} and {about(limits.n_bytes // 10**6)} MB allowed"
    )
