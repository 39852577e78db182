"""Choose the method for exact p-values: the cheapest method with the best guarantee that stays within limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sigdask.statistics.exact import bisection, grouped, step_grids, tilted_grids, value_grids
from sigdask.statistics.exact.problems import Problem, QuotientProblem, StepSizes, SumProblem
from sigdask.statistics.exact.result import ChosenMethod, Guarantee, NoMethod, format_about
from sigdask.statistics.exact.sums import binomials, convolution, lattice_bounds, meet_in_the_middle, polynomial, tilted
from sigdask.statistics.exact.ties import TieRule


@dataclass(frozen=True, slots=True)
class MethodLimits:
    """The largest cost a method may have.

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
        """Return whether a method stays within the limits."""
        return way.operations <= self.operations and way.n_bytes <= self.n_bytes and way.seconds <= self.seconds


DEFAULT_LIMITS = MethodLimits()

CHEAP, CHEAP_UNIT = 3 * 10**6, 100
"""Operations, and operations for each unit, that are no more than it takes to look at further ways."""

GUARANTEE_ORDER = (("exact", "certified"), ("numeric",), ("bounds",))
"""Guarantees, the best first; exact and certified ones are alike as good."""


def choose_method(problem: Problem, limits: MethodLimits = DEFAULT_LIMITS) -> ChosenMethod | NoMethod:
    """Return the cheapest method with the best guarantee within the limits, without computing any p-value.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or EnumeratedScore
        The question.
    limits : MethodLimits
        What the method may take.

    Returns
    -------
    ChosenMethod or NoMethod
        The method with the fewest operations among methods of the best guarantee; or why no method fits.

    Examples
    --------
    >>> import numpy as np
    >>> choose_method(SumProblem(np.array([1, -1, 1, 1, 0]))).method
    'binomial'
    """
    methods = list(_iter_until_cheap(problem))
    if not methods:
        assert not isinstance(problem, SumProblem)  # of which there is always a method
        return NoMethod(grouped.describe_no_method(problem))
    fitting = [w for w in methods if limits.admit(w)]
    for guarantees in GUARANTEE_ORDER:
        best = [w for w in fitting if w.guarantee in guarantees]
        if best:
            return min(best, key=lambda w: w.operations)
    cheapest = min(methods, key=lambda w: (w.operations, w.n_bytes))
    return NoMethod(_describe_excess(cheapest, limits), cheapest)


def _iter_until_cheap(problem: Problem) -> Iterator[ChosenMethod]:
    """Yield applicable methods, up to the first that costs no more than it takes to consider further methods."""
    n = len(problem.differences if isinstance(problem, SumProblem) else problem.vectors)
    for way in iter_methods(problem):
        yield way
        if way.guarantee in GUARANTEE_ORDER[0] and way.operations <= CHEAP + CHEAP_UNIT * n:
            return


def iter_methods(problem: Problem) -> Iterator[ChosenMethod]:
    """Yield every applicable method, whatever its cost."""
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        yield from _iter_sum_methods(problem.steps)
    else:
        one_row = isinstance(problem, QuotientProblem) and problem.above.shape[1] == 1 and len(problem.vectors)
        if isinstance(problem, QuotientProblem) and one_row:
            yield from _iter_table_methods(problem)
        yield from grouped.iter_methods(problem)
        cost = value_grids.estimate_cost(problem)
        if cost is not None:
            yield ChosenMethod("box-dp", "exact" if problem.cells.is_counted else "certified", *cost)
        if isinstance(problem, QuotientProblem) and one_row:
            yield ChosenMethod("grid-dp", "certified", *step_grids.estimate_cost(problem))
            if tilted_grids.is_smooth(problem):
                yield ChosenMethod("grid-fft", "numeric", *tilted_grids.estimate_cost(problem))


def _iter_sum_methods(steps: StepSizes) -> Iterator[ChosenMethod]:
    n = steps.n
    if n == 0:
        yield ChosenMethod("no difference", "exact", 1, 0)
        return
    if len(steps.groups[0]) == 1:
        exact = n <= binomials.LARGEST_FRACTION
        yield ChosenMethod("binomial", "exact" if exact else "certified", binomials.estimate_operations(n), 100 * n)
        return
    yield ChosenMethod("polynomial", "exact", polynomial.estimate_operations(steps), polynomial.estimate_bytes(steps))
    yield ChosenMethod("dp", "certified", convolution.estimate_operations(steps), convolution.estimate_bytes(steps))
    if n <= meet_in_the_middle.MOST_UNITS:
        yield ChosenMethod(
            "meet-in-the-middle",
            "exact",
            meet_in_the_middle.estimate_operations(n),
            meet_in_the_middle.estimate_bytes(n),
            meet_in_the_middle.compute_n_parts(n),
        )
    yield ChosenMethod("tilted-fft", "numeric", tilted.estimate_operations(steps), tilted.estimate_bytes(steps))
    coarse = lattice_bounds.CoarseSizes.from_steps(steps)
    if coarse.step > 1 and coarse.steps.n:
        yield ChosenMethod(
            "lattice-bounds",
            "bounds",
            lattice_bounds.estimate_operations(coarse),
            lattice_bounds.estimate_bytes(coarse),
        )


def _iter_table_methods(problem: QuotientProblem) -> Iterator[ChosenMethod]:
    decision = TieRule.from_problem(problem)
    table = bisection.ArrangementTable.from_problem(problem, decision)
    if table is not None:
        expected = 0.0 if bisection.is_exact(table.cells.n) else step_grids.estimate_log_p(problem, decision)
        guarantee: Guarantee = "exact" if bisection.is_exact(table.cells.n) else "certified"
        yield ChosenMethod(
            "bisection",
            guarantee,
            bisection.estimate_operations(table, expected),
            bisection.estimate_bytes(table, expected),
        )


def _describe_excess(cheapest: ChosenMethod, limits: MethodLimits) -> str:
    return (
        f"{cheapest.method} would take {format_about(cheapest.operations)} operations and "
        f"{format_about(cheapest.n_bytes // 10**6)} MB, "
        f"of {format_about(limits.operations)} and {format_about(limits.n_bytes // 10**6)} MB allowed"
    )
