"""Choose the method for exact p-values, and compute them by it.

The method is the cheapest one with the best guarantee that stays within limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sigdask.statistics.exact import binomials, bisection, enumeration, grids, sums
from sigdask.statistics.exact.problems import (
    CERTAIN,
    CellProblem,
    ChosenMethod,
    ExactTails,
    Guarantee,
    NoMethod,
    ProbabilityLimits,
    Problem,
    QuotientProblem,
    StepSizes,
    SumProblem,
    TieRule,
    TooLargeError,
    compute_p_from_counts,
    compute_p_from_tails,
    format_about,
)


@dataclass(frozen=True, slots=True)
class MethodLimits:
    """The largest cost a method may have.

    Attributes
    ----------
    operations : int
        Maximum number of operations, of about a nanosecond each.
    n_bytes : int
        Maximum memory in bytes.
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
"""Operations, and operations for each unit, for which a method is used without comparing it with others."""


def choose_method(problem: Problem, limits: MethodLimits = DEFAULT_LIMITS) -> ChosenMethod | NoMethod:
    """Return the cheapest method within the limits, without computing any p-value.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or EnumeratedScore
        The question.
    limits : MethodLimits
        Limits of the method.

    Returns
    -------
    ChosenMethod or NoMethod
        The method with the fewest operations; or why no method fits.

    Examples
    --------
    >>> import numpy as np
    >>> choose_method(SumProblem(np.array([1, -1, 1, 1, 0]))).method
    'binomial'
    """
    methods, n_units = [], len(problem.differences if isinstance(problem, SumProblem) else problem.vectors)
    for way in iter_methods(problem):
        methods.append(way)
        if way.operations <= CHEAP + CHEAP_UNIT * n_units:
            break
    if not methods:
        assert not isinstance(problem, SumProblem)  # problems that always have a method
        cells = problem.cells
        return NoMethod(
            f"the {cells.n} units on which the systems differ can be swapped in {format_about(cells.size)} "
            "distinct ways, too many to count one by one, and the metric has too many sums "
            f"({problem.vectors.shape[1]}) to count their values instead"
        )
    if fitting := [w for w in methods if limits.admit(w)]:
        return min(fitting, key=lambda w: w.operations)
    cheapest = min(methods, key=lambda w: (w.operations, w.n_bytes))
    reason = (
        f"{cheapest.method} would take {format_about(cheapest.operations)} operations and "
        f"{format_about(cheapest.n_bytes // 10**6)} MB"
    )
    return NoMethod(reason, cheapest)


def iter_methods(problem: Problem) -> Iterator[ChosenMethod]:
    """Yield every applicable method, whatever its cost."""
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        yield from _iter_sum_methods(problem.steps)
        return
    if isinstance(problem, QuotientProblem) and problem.above.shape[1] == 1 and len(problem.vectors) > 0:
        decision = TieRule.from_problem(problem)
        if (table := bisection.ArrangementTable.from_problem(problem, decision)) is not None:
            is_exact = bisection.is_exact(table.cells.n)
            expected = 0.0 if is_exact else grids.estimate_log_p(problem)
            guarantee: Guarantee = "exact" if is_exact else "certified"
            yield ChosenMethod("bisection", guarantee, *bisection.estimate_cost(table, expected))
    yield from enumeration.iter_methods(problem)
    if problem.cells.n and (cost := grids.estimate_cost(problem)) is not None:
        yield ChosenMethod("grid-dp", "exact" if problem.cells.is_counted else "certified", *cost)


def _iter_sum_methods(steps: StepSizes) -> Iterator[ChosenMethod]:
    n = steps.n
    if n == 0:
        yield ChosenMethod("no difference", "exact", 1, 0)
    elif len(steps.groups[0]) == 1:
        guarantee: Guarantee = "exact" if n <= binomials.MAX_FRACTION else "certified"
        yield ChosenMethod("binomial", guarantee, *binomials.estimate_cost(n))
    else:
        yield ChosenMethod("polynomial", "exact", *sums.estimate_polynomial_cost(steps))
        yield ChosenMethod("dp", "certified", *sums.estimate_convolution_cost(steps))
        if n <= sums.MAX_UNITS:
            yield ChosenMethod("meet-in-the-middle", "exact", *sums.estimate_pairing_cost(n))


def solve(problem: Problem, chosen: ChosenMethod | None = None) -> ExactTails:
    """Compute the three p-values of a problem.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or EnumeratedScore
        The question.
    chosen : ChosenMethod, optional
        Result of `choose_method`. By default it is called with the usual limits.

    Raises
    ------
    TooLargeError
        No method fits.

    Examples
    --------
    >>> import numpy as np
    >>> found = solve(SumProblem(np.array([12, 24, 13, 13, 0, 10, 18, 8, 46, 14])))
    >>> found.two_sided.p_hi, found.method, found.guarantee
    (0.00390625, 'polynomial', 'exact')
    """
    method = choose_method(problem) if chosen is None else chosen
    if isinstance(method, NoMethod):
        raise TooLargeError(method.reason)
    if method.method == "no difference":
        impossible = ProbabilityLimits(Fraction(0), Fraction(0))
        return compute_p_from_tails(method, CERTAIN, impossible, negative=False, zero=True)
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        return _solve_sums(problem.steps, method)
    return _solve_cells(problem, method)


def _solve_sums(steps: StepSizes, chosen: ChosenMethod) -> ExactTails:
    if chosen.method in {"polynomial", "meet-in-the-middle"}:
        count = sums.count_coefficients if chosen.method == "polynomial" else sums.count_pairings
        return compute_p_from_counts(
            chosen, steps.n, (*count(steps), steps.known),
            negative=steps.negative, zero=steps.zero_is_reached, exact=not steps.inexact,
        )  # fmt: skip
    if chosen.method == "binomial":
        reached, passed = (binomials.compute_tail(steps.n, x) for x in steps.thresholds)
    else:
        reached, passed = sums.compute_convolved_tails(steps)
    tails = reached, passed
    if steps.inexact:  # limits that hold although inexact sums may hide which arrangements tie
        tie_share: Any = Fraction(steps.known, 1 << steps.n)
        tie_share = tie_share if isinstance(passed.low, Fraction) else float(tie_share)
        tails = (
            ProbabilityLimits(min(passed.low + tie_share, reached.high), reached.high),
            ProbabilityLimits(passed.low, max(reached.high - tie_share, passed.high)),
        )
    return compute_p_from_tails(chosen, *tails, negative=steps.negative, zero=steps.zero_is_reached)


def _solve_cells(problem: CellProblem, chosen: ChosenMethod) -> ExactTails:
    module = {"bisection": bisection, "grid-dp": grids}.get(chosen.method, enumeration)
    decision = TieRule.from_problem(problem)
    negative, zero = decision.is_negative, decision.is_zero
    if chosen.guarantee != "exact":
        tails = module.compute_tails(problem, decision)
        return compute_p_from_tails(chosen, *tails, negative=negative, zero=zero)
    counts = module.count_arrangements(problem, decision)
    n_units, is_exact = len(problem.vectors), decision.true is not None
    return compute_p_from_counts(chosen, n_units, counts, negative=negative, zero=zero, exact=is_exact)
