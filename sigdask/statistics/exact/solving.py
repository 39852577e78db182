"""A chosen method carried out."""

from __future__ import annotations

from fractions import Fraction

from sigdask.statistics.exact import binomials, collapse, polynomial, tilted, windows
from sigdask.statistics.exact.found import ALL, Check, Chosen, Exact, Refused, Tail, TooLargeError, counted, judged
from sigdask.statistics.exact.planning import plan
from sigdask.statistics.exact.problems import Problem, Quotients, Scored, Steps, Sums


def nothing() -> None:
    """Look at no deadline."""


def solve(problem: Problem, chosen: Chosen | None = None, *, check: Check = nothing) -> Exact:
    """Compute the three p-values of a problem.

    Parameters
    ----------
    problem : Sums or Quotients or Scored
        The question.
    chosen : Chosen, optional
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
    >>> found = solve(Sums(np.array([12, 24, 13, 13, 0, 10, 18, 8, 46, 14])))
    >>> found.two_sided.p_hi, found.method, found.guarantee
    (0.00390625, 'polynomial', 'exact')
    """
    taken = plan(problem) if chosen is None else chosen
    if isinstance(taken, Refused):
        raise TooLargeError(taken.reason)
    if taken.method == "no difference":
        return judged(taken, 0, ALL, Tail(Fraction(0), Fraction(0)), negative=False, zero=True)
    if isinstance(problem, Quotients) and problem.as_sums is not None:
        problem = problem.as_sums
    if isinstance(problem, Sums):
        return _of_sums(problem.steps, taken, check)
    return _of_cells(problem, taken, check)


def _of_sums(steps: Steps, chosen: Chosen, check: Check) -> Exact:
    if chosen.method == "polynomial":
        reached, passed = polynomial.count(steps, check)
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
    if chosen.method == "binomial":
        tails = [binomials.upper(steps.n, x) for x in steps.thresholds]
    elif chosen.method == "dp":
        tails = list(windows.tails(steps, check))
    else:
        tails = list(tilted.tails(steps, check))
    return judged(chosen, steps.n, *_with_ties(steps, *tails), negative=steps.negative, zero=steps.zero_is_reached)


def _with_ties(steps: Steps, reached: Tail, passed: Tail) -> tuple[Tail, Tail]:
    """Return limits of P(T >= |t|) and P(T > |t|), of sums that may miss true ties."""
    if not steps.inexact:
        return reached, passed
    known = Fraction(steps.known, 1 << steps.n)
    if isinstance(passed.low, Fraction):
        return Tail(min(passed.low + known, reached.high), reached.high), Tail(
            passed.low, max(reached.high - known, passed.high)
        )
    return (
        Tail(min(passed.low + float(known), reached.high), reached.high),
        Tail(passed.low, max(float(reached.high) - float(known), float(passed.high))),
    )


def _of_cells(problem: Quotients | Scored, chosen: Chosen, check: Check) -> Exact:
    decision = collapse.Decision.of(problem)
    n = len(problem.vectors)
    if chosen.guarantee == "exact":
        reached, passed, known = collapse.count(problem, check)
        return counted(
            chosen,
            n,
            reached=reached,
            passed=passed,
            known=known,
            negative=decision.negative,
            zero=decision.zero,
            exact=decision.true is not None,
        )
    reached, passed = collapse.tails(problem, check)
    return judged(chosen, n, reached, passed, negative=decision.negative, zero=decision.zero)
