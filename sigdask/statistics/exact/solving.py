"""A chosen method carried out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sigdask.statistics.exact import bisection, boxes, grids, grouped, tilted_grids
from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.planning import plan
from sigdask.statistics.exact.problems import EnumeratedScore, Problem, QuotientProblem, StepSizes, SumProblem
from sigdask.statistics.exact.result import (
    ALL,
    Check,
    ChosenMethod,
    ExactTails,
    NoMethod,
    TailProbability,
    TooLargeError,
    counted,
    judged,
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


def nothing() -> None:
    """Look at no deadline."""


def solve(problem: Problem, chosen: ChosenMethod | None = None, *, check: Check = nothing) -> ExactTails:
    """Compute the three p-values of a problem.

    Parameters
    ----------
    problem : SumProblem or QuotientProblem or EnumeratedScore
        The question.
    chosen : ChosenMethod, optional
        What `plan` gave; planned within the usual limits where left out.
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
    taken = plan(problem) if chosen is None else chosen
    if isinstance(taken, NoMethod):
        raise TooLargeError(taken.reason)
    if taken.method == "no difference":
        return judged(taken, 0, ALL, TailProbability(Fraction(0), Fraction(0)), negative=False, zero=True)
    if isinstance(problem, QuotientProblem) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, SumProblem):
        return _of_sums(problem.steps, taken, check)
    return _of_cells(problem, taken, check)


def count_parts(problem: Problem, first: int, n: int, *, check: Check = nothing) -> Integers:
    """Count some parts of a problem that is met in the middle; counts of all parts add up.

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
        Of each, arrangements that may reach the size of the observed difference, and that pass it for certain.
    """
    return meet_in_the_middle.count(sums_of(problem).steps, first, n, check)


def of_parts(problem: Problem, chosen: ChosenMethod, counts: Integers) -> ExactTails:
    """Return what the counts of all parts, added up, say."""
    reached, passed = np.asarray(counts, np.int64).tolist()
    return _of_counts(sums_of(problem).steps, chosen, reached, passed)


def approximate(problem: Problem) -> ExactTails:
    """Return the saddlepoint approximation of a sum at once: of no guarantee, and never what is judged.

    Both limits are the same number, a few per cent of p off it where n is small, less far out in the tail.
    """
    steps = sums_of(problem).steps
    found = ChosenMethod("saddlepoint", "approximate", 100 * steps.n, 100 * steps.n)
    if not steps.n or 2 * steps.thresholds[0] <= steps.total:
        return judged(found, steps.n, ALL, TailProbability(0.0, 0.0), negative=steps.negative, zero=True)
    p = saddlepoint.approximate(*steps.groups, 2 * steps.thresholds[0] - steps.total)
    return judged(found, steps.n, TailProbability(p, p), TailProbability(p, p), negative=steps.negative, zero=False)


def sums_of(problem: Problem) -> SumProblem:
    """Return a problem as one of sums, which it must be."""
    own = problem.as_sums if isinstance(problem, QuotientProblem) else problem
    assert isinstance(own, SumProblem)
    return own


def _of_counts(steps: StepSizes, chosen: ChosenMethod, reached: int, passed: int) -> ExactTails:
    return counted(
        chosen,
        steps.n,
        reached=reached,
        passed=passed,
        known=steps.known,
        negative=steps.negative,
        zero=steps.zero_is_reached,
        exact=not steps.inexact,
    )


def _of_sums(steps: StepSizes, chosen: ChosenMethod, check: Check) -> ExactTails:
    if chosen.method == "polynomial":
        return _of_counts(steps, chosen, *polynomial.count(steps, check))
    if chosen.method == "meet-in-the-middle":
        return _of_counts(
            steps, chosen, *meet_in_the_middle.count(steps, 0, chosen.n_parts, check).sum(axis=0).tolist()
        )
    if chosen.method == "binomial":
        tails = [binomials.upper(steps.n, x) for x in steps.thresholds]
    elif chosen.method == "dp":
        tails = list(convolution.tails(steps, check))
    elif chosen.method == "lattice-bounds":
        tails = list(lattice_bounds.tails(steps, check))
    else:
        tails = list(tilted.tails(steps, check))
    return judged(chosen, steps.n, *_with_ties(steps, *tails), negative=steps.negative, zero=steps.zero_is_reached)


def _with_ties(
    steps: StepSizes, reached: TailProbability, passed: TailProbability
) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(T >= |t|) and P(T > |t|), of sums that may miss true ties."""
    if not steps.inexact:
        return reached, passed
    known = Fraction(steps.known, 1 << steps.n)
    if isinstance(passed.low, Fraction):
        return TailProbability(min(passed.low + known, reached.high), reached.high), TailProbability(
            passed.low, max(reached.high - known, passed.high)
        )
    return (
        TailProbability(min(passed.low + float(known), reached.high), reached.high),
        TailProbability(passed.low, max(float(reached.high) - float(known), float(passed.high))),
    )


def _of_cells(problem: QuotientProblem | EnumeratedScore, chosen: ChosenMethod, check: Check) -> ExactTails:
    decision = TieRule.of(problem)
    negative, zero, n = decision.negative, decision.zero, len(problem.vectors)
    if chosen.guarantee == "exact":
        reached, passed, known = _counts(problem, decision, chosen, check)
        return counted(
            chosen,
            n,
            reached=reached,
            passed=passed,
            known=known,
            negative=negative,
            zero=zero,
            exact=decision.true is not None,
        )
    return judged(chosen, n, *_tails(problem, decision, chosen, check), negative=negative, zero=zero)


def _counts(
    problem: QuotientProblem | EnumeratedScore, decision: TieRule, chosen: ChosenMethod, check: Check
) -> tuple[int, int, int]:
    if chosen.method == "bisection":
        return *bisection.count(_table(problem, decision), decision), 0
    if chosen.method == "box-dp":
        return boxes.count(problem, decision, check)
    return grouped.count(problem, check)


def _tails(
    problem: QuotientProblem | EnumeratedScore, decision: TieRule, chosen: ChosenMethod, check: Check
) -> tuple[TailProbability, TailProbability]:
    if chosen.method == "bisection":
        return bisection.tails(problem, _table(problem, decision), decision, check)
    if chosen.method == "grid-dp":
        assert isinstance(problem, QuotientProblem)
        return grids.tails(problem, check)
    if chosen.method == "grid-fft":
        assert isinstance(problem, QuotientProblem)
        return tilted_grids.tails(problem, check)
    if chosen.method == "box-dp":
        return boxes.tails(problem, decision, check)
    return grouped.tails(problem, check)


def _table(problem: QuotientProblem | EnumeratedScore, decision: TieRule) -> bisection.ArrangementTable:
    assert isinstance(problem, QuotientProblem)
    table = bisection.ArrangementTable.of(problem, decision)
    assert table is not None
    return table
