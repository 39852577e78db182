"""Compute exact p-values by a chosen method, or approximate p-values by a saddlepoint."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sigdask.statistics.exact import bisection, grouped, step_grids, tilted_grids, value_grids
from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.planning import choose_method
from sigdask.statistics.exact.problems import EnumeratedScore, Problem, QuotientProblem, StepSizes, SumProblem
from sigdask.statistics.exact.result import (
    CERTAIN,
    Check,
    ChosenMethod,
    ExactTails,
    NoMethod,
    TailProbability,
    TooLargeError,
    compute_p_from_counts,
    compute_p_from_tails,
)
from sigdask.statistics.exact.sums import (
    binomials,
    convolution,
    lattice_bounds,
    meet_in_the_middle,
    polynomial,
    saddlepoint,
    tilted,
)
from sigdask.statistics.exact.ties import TieRule


def skip_check() -> None:
    """Do nothing; the default deadline check."""


def solve(problem: Problem, chosen: ChosenMethod | None = None, *, check: Check = skip_check) -> ExactTails:
    """Compute the three p-values of a problem.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or EnumeratedScore
        The question.
    chosen : ChosenMethod, optional
        What `choose_method` gave; planned within the usual limits where left out.
    check : callable
        Called every fifth of a second or so; what it raises ends the computation.

    Raises
    ------
    TooLargeError
        Where no method fits.

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
        return compute_p_from_tails(
            method, 0, CERTAIN, TailProbability(Fraction(0), Fraction(0)), negative=False, zero=True
        )
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        return _solve_sums(problem.steps, method, check)
    return _solve_cells(problem, method, check)


def count_parts(problem: Problem, first: int, n: int, *, check: Check = skip_check) -> Integers:
    """Return the counts of arrangements for some parts of a problem that is solved by meeting in the middle.

    Counts of all parts add up.

    Parameters
    ----------
    problem : SumProblem
        The question, with at most 62 units that differ.
    first, n : int
        The parts, of 0 to `ChosenMethod.n_parts` - 1.
    check : callable
        As in `solve`.

    Returns
    -------
    int64 array, shape (n, 2)
        For each part, arrangements that may reach the size of the observed difference, and that certainly pass it.
    """
    return meet_in_the_middle.count_arrangements(convert_to_sums(problem).steps, first, n, check)


def combine_parts(problem: Problem, chosen: ChosenMethod, counts: Integers) -> ExactTails:
    """Return the p-values from the summed counts of all parts."""
    reached, passed = np.asarray(counts, np.int64).tolist()
    return _solve_counts(convert_to_sums(problem).steps, chosen, reached, passed)


def approximate(problem: Problem) -> ExactTails:
    """Return the three p-values of a problem of sums by saddlepoint approximation, without any guarantee.

    Both limits are the same number, a few per cent of p off it where n is small, less far out in the tail.
    """
    steps = convert_to_sums(problem).steps
    method = ChosenMethod("saddlepoint", "approximate", 100 * steps.n, 100 * steps.n)
    if not steps.n or 2 * steps.thresholds[0] <= steps.total:
        return compute_p_from_tails(
            method, steps.n, CERTAIN, TailProbability(0.0, 0.0), negative=steps.negative, zero=True
        )
    p = saddlepoint.approximate_tail(*steps.groups, 2 * steps.thresholds[0] - steps.total)
    return compute_p_from_tails(
        method, steps.n, TailProbability(p, p), TailProbability(p, p), negative=steps.negative, zero=False
    )


def convert_to_sums(problem: Problem) -> SumProblem:
    """Return a problem as a problem of sums; swaps must not change any denominator."""
    sum_problem = problem.as_sums if isinstance(problem, QuotientProblem) else problem
    assert isinstance(sum_problem, SumProblem)
    return sum_problem


def _solve_counts(steps: StepSizes, chosen: ChosenMethod, reached: int, passed: int) -> ExactTails:
    return compute_p_from_counts(
        chosen,
        steps.n,
        reached=reached,
        passed=passed,
        tied=steps.known,
        negative=steps.negative,
        zero=steps.zero_is_reached,
        exact=not steps.inexact,
    )


def _solve_sums(steps: StepSizes, chosen: ChosenMethod, check: Check) -> ExactTails:
    if chosen.method == "polynomial":
        return _solve_counts(steps, chosen, *polynomial.count_arrangements(steps, check))
    if chosen.method == "meet-in-the-middle":
        return _solve_counts(
            steps, chosen, *meet_in_the_middle.count_arrangements(steps, 0, chosen.n_parts, check).sum(axis=0).tolist()
        )
    if chosen.method == "binomial":
        tails = [binomials.compute_tail(steps.n, x) for x in steps.thresholds]
    elif chosen.method == "dp":
        tails = list(convolution.compute_tails(steps, check))
    elif chosen.method == "lattice-bounds":
        tails = list(lattice_bounds.compute_tails(steps, check))
    else:
        tails = list(tilted.compute_tails(steps, check))
    return compute_p_from_tails(
        chosen, steps.n, *_add_ties(steps, *tails), negative=steps.negative, zero=steps.zero_is_reached
    )


def _add_ties(
    steps: StepSizes, reached: TailProbability, passed: TailProbability
) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|) that hold although inexact sums may hide which arrangements tie."""
    if not steps.inexact:
        return reached, passed
    tie_share = Fraction(steps.known, 1 << steps.n)
    if isinstance(passed.low, Fraction):
        return TailProbability(min(passed.low + tie_share, reached.high), reached.high), TailProbability(
            passed.low, max(reached.high - tie_share, passed.high)
        )
    return (
        TailProbability(min(passed.low + float(tie_share), reached.high), reached.high),
        TailProbability(passed.low, max(float(reached.high) - float(tie_share), float(passed.high))),
    )


def _solve_cells(problem: QuotientProblem | EnumeratedScore, chosen: ChosenMethod, check: Check) -> ExactTails:
    decision = TieRule.from_problem(problem)
    negative, zero, n = decision.is_negative, decision.is_zero, len(problem.vectors)
    if chosen.guarantee == "exact":
        reached, passed, tied = _count_cells(problem, decision, chosen, check)
        return compute_p_from_counts(
            chosen,
            n,
            reached=reached,
            passed=passed,
            tied=tied,
            negative=negative,
            zero=zero,
            exact=decision.true is not None,
        )
    return compute_p_from_tails(
        chosen, n, *_compute_tails(problem, decision, chosen, check), negative=negative, zero=zero
    )


def _count_cells(
    problem: QuotientProblem | EnumeratedScore, decision: TieRule, chosen: ChosenMethod, check: Check
) -> tuple[int, int, int]:
    if chosen.method == "bisection":
        return *bisection.count_arrangements(_build_table(problem, decision), decision), 0
    if chosen.method == "box-dp":
        return value_grids.count_arrangements(problem, decision, check)
    return grouped.count_arrangements(problem, check)


def _compute_tails(
    problem: QuotientProblem | EnumeratedScore, decision: TieRule, chosen: ChosenMethod, check: Check
) -> tuple[TailProbability, TailProbability]:
    if chosen.method == "bisection":
        return bisection.compute_tails(problem, _build_table(problem, decision), decision, check)
    if chosen.method == "grid-dp":
        assert isinstance(problem, QuotientProblem)
        return step_grids.compute_tails(problem, check)
    if chosen.method == "grid-fft":
        assert isinstance(problem, QuotientProblem)
        return tilted_grids.compute_tails(problem, check)
    if chosen.method == "box-dp":
        return value_grids.compute_tails(problem, decision, check)
    return grouped.compute_tails(problem, check)


def _build_table(problem: QuotientProblem | EnumeratedScore, decision: TieRule) -> bisection.ArrangementTable:
    assert isinstance(problem, QuotientProblem)
    table = bisection.ArrangementTable.from_problem(problem, decision)
    assert table is not None
    return table
