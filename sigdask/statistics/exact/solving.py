"""A chosen method carried out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sigdask.statistics.exact import bisection, boxes, grids, grouped, tilted_grids
from sigdask.statistics.exact.classes import Integers
from sigdask.statistics.exact.planning import plan
from sigdask.statistics.exact.problems import Problem, Quotients, Scored, Steps, Sums
from sigdask.statistics.exact.result import ALL, Check, Chosen, Exact, Refused, Tail, TooLargeError, counted, judged
from sigdask.statistics.exact.sums import (
    binomials,
    convolution,
    lattice_bounds,
    meet_in_the_middle,
    polynomial,
    saddlepoint,
    tilted,
)
from sigdask.statistics.exact.ties import Decision


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


def count_parts(problem: Problem, first: int, n: int, *, check: Check = nothing) -> Integers:
    """Count some parts of a problem that is met in the middle; counts of all parts add up.

    Parameters
    ----------
    problem : Sums
        The question, with at most 62 units that differ.
    first, n : int
        The parts, of 0 to `Chosen.n_parts` - 1.
    check : callable
        As in `solve`.

    Returns
    -------
    int64 array, shape (n, 2)
        Of each, arrangements that may reach the size of the observed difference, and that pass it for certain.
    """
    return meet_in_the_middle.count(sums_of(problem).steps, first, n, check)


def of_parts(problem: Problem, chosen: Chosen, counts: Integers) -> Exact:
    """Return what the counts of all parts, added up, say."""
    reached, passed = np.asarray(counts, np.int64).tolist()
    return _of_counts(sums_of(problem).steps, chosen, reached, passed)


def approximate(problem: Problem) -> Exact:
    """Return the saddlepoint approximation of a sum at once: of no guarantee, and never what is judged.

    Both limits are the same number, a few per cent of p off it where n is small, less far out in the tail.
    """
    steps = sums_of(problem).steps
    found = Chosen("saddlepoint", "approximate", 100 * steps.n, 100 * steps.n)
    if not steps.n or 2 * steps.thresholds[0] <= steps.total:
        return judged(found, steps.n, ALL, Tail(0.0, 0.0), negative=steps.negative, zero=True)
    p = saddlepoint.approximate(*steps.groups, 2 * steps.thresholds[0] - steps.total)
    return judged(found, steps.n, Tail(p, p), Tail(p, p), negative=steps.negative, zero=False)


def sums_of(problem: Problem) -> Sums:
    """Return a problem as one of sums, which it must be."""
    own = problem.as_sums if isinstance(problem, Quotients) else problem
    assert isinstance(own, Sums)
    return own


def _of_counts(steps: Steps, chosen: Chosen, reached: int, passed: int) -> Exact:
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


def _of_sums(steps: Steps, chosen: Chosen, check: Check) -> Exact:
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
    decision = Decision.of(problem)
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


def _counts(problem: Quotients | Scored, decision: Decision, chosen: Chosen, check: Check) -> tuple[int, int, int]:
    if chosen.method == "bisection":
        return *bisection.count(_table(problem, decision), decision), 0
    if chosen.method == "box-dp":
        return boxes.count(problem, decision, check)
    return grouped.count(problem, check)


def _tails(problem: Quotients | Scored, decision: Decision, chosen: Chosen, check: Check) -> tuple[Tail, Tail]:
    if chosen.method == "bisection":
        return bisection.tails(problem, _table(problem, decision), decision, check)
    if chosen.method == "grid-dp":
        assert isinstance(problem, Quotients)
        return grids.tails(problem, check)
    if chosen.method == "grid-fft":
        assert isinstance(problem, Quotients)
        return tilted_grids.tails(problem, check)
    if chosen.method == "box-dp":
        return boxes.tails(problem, decision, check)
    return grouped.tails(problem, check)


def _table(problem: Quotients | Scored, decision: Decision) -> bisection.Table:
    assert isinstance(problem, Quotients)
    table = bisection.Table.of(problem, decision)
    assert table is not None
    return table
