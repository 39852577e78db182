"""Problems: each unit's integer contribution to the difference of two systems, and the score as a function of sums.

Swapping a unit changes the sign of its contribution. Swapping all units negates the difference of scores, so the null
distribution is symmetric about 0, and two upper tails at |t| determine all three p-values
(`sigdask.statistics.exact.problems`).

Units with equal contributions, up to sign, are of one kind and only counted. K distinct vectors with multiplicities m
have prod(m + 1) cells, which are 2**n if all differ. `TieRule` compares differences after swaps with the observed one
by floats, and by fractions where floats are not clear.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.statistics.lattice import TIE
from sigdask.statistics.numbering import find_distinct_rows

MAX_UNITS = 62
"""Maximum number of units, so that arrangements are counted in 64-bit integers."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The distinguishable arrangements (cells) of units: how many units of each kind have their vector negated.

    Attributes
    ----------
    vectors : int64 array, shape (n_distinct, n_fields)
        Contribution of one unit of each kind.
    counts : int64 array, shape (n_distinct,)
        Units of each kind.
    moved : int64 array, shape (n_distinct,)
        How many units of each kind have their vector negated as observed.
    """

    vectors: Integers
    counts: Integers
    moved: Integers

    @staticmethod
    def from_vectors(vectors: Integers) -> Cells:
        """Return the cells of units whose vectors, shape (n_units, n_fields), are not zero."""
        if not len(vectors):
            return Cells(vectors, np.zeros(0, np.int64), np.zeros(0, np.int64))
        first = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
        sign = np.sign(first)
        keys, inverse = find_distinct_rows(vectors * sign[:, None])
        against = np.bincount(inverse, sign < 0, len(keys)).astype(np.int64)
        return Cells(keys, np.bincount(inverse, minlength=len(keys)), against)

    @cached_property
    def n(self) -> int:
        """The number of units."""
        return int(self.counts.sum())

    @property
    def is_counted(self) -> bool:
        """Whether arrangements are counted as integers instead of adding probabilities."""
        return self.n <= MAX_UNITS

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(int(m) + 1 for m in self.counts)

    def decode_numbers(self, start: int, stop: int) -> Integers:
        """Return how many units of each kind have their vector negated, for a range of cells, (n_cells, n_distinct)."""
        rest = np.arange(start, stop)
        found = np.empty((len(rest), len(self.counts)), np.int64)
        for k, m in enumerate(self.counts.tolist()):
            rest, found[:, k] = np.divmod(rest, m + 1)
        return found

    def compute_shifts(self, numbers: Integers) -> Integers:
        """Return the amount that each cell moves from a's observed sums to b's, shape (n_cells, n_fields)."""
        return (numbers - self.moved) @ self.vectors

    @cached_property
    def arrangement_counts(self) -> list[Integers] | list[Floats]:
        """For each kind, how many arrangements negate k of its units, for each k; shares if 64 bits are too few."""
        if self.is_counted:
            return [np.array([math.comb(m, k) for k in range(m + 1)]) for m in self.counts.tolist()]
        return [np.array([math.comb(m, k) / (1 << m) for k in range(m + 1)]) for m in self.counts.tolist()]

    def compute_weights(self, numbers: Integers) -> Integers | Floats:
        """Return the number of arrangements, or the probability, of each cell."""
        found = np.ones(len(numbers), self.arrangement_counts[0].dtype if self.arrangement_counts else np.int64)
        for k, kind_counts in enumerate(self.arrangement_counts):
            found *= kind_counts[numbers[:, k]]
        return found


@dataclass(frozen=True, eq=False)
class SumProblem:
    """A problem whose difference is a sum over units: accuracy, recall, WER, means of decimals, signed ranks.

    Attributes
    ----------
    differences : int64 array, shape (n_units,)
        Contribution of each unit to A's sum minus that to B's. They add up to the observed difference. Their sizes add
        up to less than 2**62.
    slack : int
        Maximum error of a swapped minus the observed difference, in steps; 0 if integers are exact. Twice the slack of
        a panel, which is in steps of the sum over swapped units.
    """

    differences: Integers
    slack: int = 0

    @cached_property
    def steps(self) -> StepSizes:
        """The sizes of the differences, divided by their common divisor."""
        return StepSizes.from_differences(self.differences, self.slack)


@dataclass(frozen=True, eq=False)
class StepSizes:
    """Units' absolute differences, divided by their common divisor; the statistic is the sum of a random subset.

    X is the sum of the sizes whose sign is that of the observed difference. The difference is 2 X - sum(weights).

    Attributes
    ----------
    weights : int64 array, shape (n,)
        Positive, ascending.
    reached : int
        X of the observed difference, mirrored to be 0 or more.
    slack : int
        Maximum distance of X from a true tie.
    known : int
        Arrangements that certainly tie although sums are inexact: they swap signs of equal differences.
    inexact : bool
        Whether sums are not exact.
    """

    weights: Integers
    reached: int
    slack: int
    known: int
    inexact: bool
    negative: bool

    @staticmethod
    def from_differences(differences: ArrayLike, slack: int = 0) -> StepSizes:
        """Return the sizes of the nonzero differences, divided by their common divisor."""
        d = np.asarray(differences, np.int64)
        d = d[d != 0]
        divisor = int(np.gcd.reduce(d)) if len(d) else 1
        d = d // max(divisor, 1)
        negative = bool(d.sum() < 0)
        oriented = -d if negative else d
        weights = np.sort(np.abs(d))
        return StepSizes(
            weights,
            reached=int(oriented[oriented > 0].sum()),
            slack=int(slack) // (2 * max(divisor, 1)),
            known=_count_certain_ties(oriented) if slack else 0,
            inexact=slack > 0,
            negative=negative,
        )

    @property
    def n(self) -> int:
        """The number of units with a nonzero difference."""
        return len(self.weights)

    @cached_property
    def total(self) -> int:
        """The sum of all sizes."""
        return int(self.weights.sum())

    @cached_property
    def squares(self) -> float:
        """The sum of squared sizes."""
        return float((self.weights.astype(np.float64) ** 2).sum())

    @property
    def thresholds(self) -> tuple[int, int]:
        """The smallest X at which the difference may be at least |t|, and at which it is certainly larger."""
        return self.reached - self.slack, self.reached + self.slack + 1

    @property
    def zero_is_reached(self) -> bool:
        """Whether |t| may be 0, so that every arrangement is at least as extreme."""
        return 2 * (self.reached - self.slack) <= self.total

    @cached_property
    def groups(self) -> tuple[Integers, Integers]:
        """Distinct sizes and their counts."""
        sizes, counts = np.unique(self.weights, return_counts=True)
        return sizes, counts.astype(np.int64)


def _count_certain_ties(d: Integers) -> int:
    sizes, inverse = np.unique(np.abs(d), return_inverse=True)
    wins = np.bincount(inverse, d > 0, len(sizes)).astype(int)
    n_units = np.bincount(inverse, minlength=len(sizes))
    return math.prod(math.comb(int(m), int(k)) for m, k in zip(n_units, wins, strict=True))


@dataclass(frozen=True, eq=False)
class QuotientProblem:
    """A problem whose score is a quotient of sums (precision, F, Jaccard), or a mean of a few (macro averages).

    Attributes
    ----------
    above, below : int64 array, shape (n_units, n_rows)
        Contribution of each unit to A's numerator and denominator minus that to B's.
    totals_above, totals_below : int64 array, shape (2, n_rows)
        Observed numerators and denominators of a and of b, concordant units included.
    zero_division : float
        The value of 0/0.
    """

    above: Integers
    below: Integers
    totals_above: Integers
    totals_below: Integers
    zero_division: float = 0.0

    @staticmethod
    def from_counts(
        a: ArrayLike,
        b: ArrayLike,
        totals: ArrayLike,
        numerators: ArrayLike,
        denominators: ArrayLike,
        zero_division: float = 0.0,
    ) -> QuotientProblem:
        """Return the problem for units' contributions to fields, and the weights of fields in a form.

        Parameters
        ----------
        a, b : int array, shape (n_units, n_fields)
            Contributions of the units that differ. Others may be included.
        totals : int array, shape (2, n_fields)
            Sums over all units of a and of b.
        numerators, denominators : int array, shape (n_rows, n_fields)
            Weights of the fields in a form.
        zero_division : float
            The value of 0/0.

        Examples
        --------
        >>> precision = QuotientProblem.from_counts([[2, 3]], [[1, 1]], [[5, 9], [4, 7]], [[1, 0]], [[0, 1]])
        >>> precision.above.tolist(), precision.totals_below.tolist()
        ([[1]], [[9], [7]])
        """
        d = np.asarray(a, np.int64) - np.asarray(b, np.int64)
        up, down = np.asarray(numerators, np.int64).T, np.asarray(denominators, np.int64).T
        sums = np.asarray(totals, np.int64)
        return QuotientProblem(d @ up, d @ down, sums @ up, sums @ down, float(zero_division))

    @cached_property
    def as_sums(self) -> SumProblem | None:
        """The same problem as a problem of sums, if no swap changes a denominator; else None."""
        if self.below.any():
            return None
        rows = self.totals_below[0].tolist()
        defined = [d for d in rows if d]
        common = math.lcm(*defined) if defined else 1
        weights = [common // d if d else 0 for d in rows]
        reach = int(np.abs(self.above).sum(axis=0, dtype=object) @ np.array(weights, object)) if rows else 0
        if reach >= 2**61:
            return None
        return SumProblem(self.above @ np.array(weights, np.int64))

    @cached_property
    def vectors(self) -> Integers:
        """Nonzero differences a - b of the units, shape (n, 2 * n_rows): numerators, then denominators."""
        d = np.hstack([self.above, self.below])
        return d[d.any(axis=1)]

    @cached_property
    def cells(self) -> Cells:
        """The distinguishable arrangements."""
        return Cells.from_vectors(self.vectors)

    @cached_property
    def totals(self) -> Integers:
        """Observed sums of a and of b, shape (2, 2 * n_rows): numerators, then denominators."""
        return np.hstack([self.totals_above, self.totals_below])

    def score(self, sums: NDArray[Any]) -> Floats:
        """Return the scores for sums of shape (..., 2 * n_rows): numerators, then denominators."""
        values = np.asarray(sums, np.float64)
        n_rows = values.shape[-1] // 2
        above, below = values[..., :n_rows], values[..., n_rows:]
        undefined = below == 0
        scores = np.where(undefined, self.zero_division, above) / np.where(undefined, 1.0, below)
        return np.asarray(scores.sum(axis=-1) / above.shape[-1])

    def true_score(self, sums: NDArray[Any]) -> Fraction:
        """Return the exact sum (not mean) of the quotients, for sums of shape (2 * n_rows,)."""
        values = np.asarray(sums).tolist()
        rows = zip(values[: len(values) // 2], values[len(values) // 2 :], strict=True)
        return sum((Fraction(n, d) if d else Fraction(self.zero_division) for n, d in rows), Fraction())


@dataclass(frozen=True, eq=False)
class EnumeratedScore:
    """A problem whose score may be any function of sums.

    Attributes
    ----------
    differences : int64 array, shape (n_units, n_fields)
        Contribution of each unit to A's sums minus that to B's.
    totals : int64 array, shape (2, n_fields)
        Observed sums of a and of b, concordant units included.
    score : callable
        Function from sums of shape (n, n_fields) to scores of shape (n,).
    """

    differences: Integers
    totals: Integers
    score: Callable[[NDArray[Any]], Floats]

    @cached_property
    def vectors(self) -> Integers:
        """Nonzero differences a - b of the units, shape (n, n_fields)."""
        d = np.asarray(self.differences, np.int64)
        return d[d.any(axis=1)]

    @cached_property
    def cells(self) -> Cells:
        """The distinguishable arrangements."""
        return Cells.from_vectors(self.vectors)


CellProblem = QuotientProblem | EnumeratedScore
Problem = SumProblem | CellProblem


@dataclass(frozen=True, eq=False)
class TieRule:
    """Comparison with the observed difference: by floats, and by fractions where these are unclear.

    Attributes
    ----------
    problem : QuotientProblem or EnumeratedScore
    observed : float
        The observed difference.
    true : Fraction or None
        The observed difference without rounding, if the score consists of quotients.
    sizes : float
        Sum of the absolute observed scores, if floats only show which cases need no fractions.
    """

    problem: CellProblem
    observed: float
    true: Fraction | None
    sizes: float = 0.0

    @staticmethod
    def from_problem(problem: CellProblem) -> TieRule:
        """Return the rule for a problem, with the observed difference and a bound on its error."""
        a, b = np.asarray(problem.score(problem.totals), np.float64)
        if isinstance(problem, EnumeratedScore):
            return TieRule(problem, float(a - b), None)
        true = problem.true_score(problem.totals[0]) - problem.true_score(problem.totals[1])
        return TieRule(problem, float(a - b), true, float(abs(a) + abs(b)))

    @property
    def is_negative(self) -> bool:
        """Whether the observed difference is negative."""
        return self.true < 0 if self.true is not None else self.observed < 0

    @property
    def is_zero(self) -> bool:
        """Whether the observed difference may be 0."""
        if self.true is not None:
            return self.true == 0
        scores = self.problem.score(self.problem.totals)
        return bool(abs(self.observed) <= TIE * float(np.abs(scores).sum()))

    def __call__(self, shifts: Integers) -> tuple[Bools, Bools, Bools]:
        """Return which shifts of sums from a to b, shape (n, n_fields), reach |t|, exceed it, and tie for certain."""
        a, b = self.problem.totals[0] - shifts, self.problem.totals[1] + shifts
        score_a, score_b = self.problem.score(a), self.problem.score(b)
        sign = -1.0 if self.is_negative else 1.0
        difference, size = sign * (score_a - score_b), abs(self.observed)
        tie = TIE * (np.abs(score_a) + np.abs(score_b) + self.sizes)
        reached, passed = difference >= size - tie, difference > size + tie
        if self.true is None:
            return reached, passed, np.asarray(~shifts.any(axis=1))
        for k in np.flatnonzero(reached & ~passed):
            assert isinstance(self.problem, QuotientProblem)
            exact = self.problem.true_score(a[k]) - self.problem.true_score(b[k])
            exact = -exact if self.is_negative else exact
            reached[k], passed[k] = exact >= abs(self.true), exact > abs(self.true)
        return reached, passed, reached & ~passed


Guarantee = Literal["exact", "certified", "bounds"]

TAILS = ("greater", "less", "two-sided")
"""The alternatives, in the order of a tally's columns."""

COSTS: dict[str, tuple[float, float]] = {
    "polynomial": (4.0, 1e9),
    "dp": (2.0, 5e8),
    "meet-in-the-middle": (2.0, math.inf),
    "grid-dp": (1.2, math.inf),
}
"""Measured nanoseconds of an operation of each method (by default 1), and the bytes at which memory halves the speed.
"""

SECONDS_A_PROBLEM = 2e-4
"""Seconds of a problem in addition to its operations."""

CLOSE_SHARE = 1e-6
"""Limits that differ by less than this share count as one number."""

SMALLEST_FLOAT = math.ulp(0.0)
"""Upper limit of a probability that is too small for a float."""


class PValueLimits(NamedTuple):
    """Limits of a p-value."""

    p_lo: float
    p_hi: float


MAX_ESTIMATE = 10**100
"""Larger estimates count as infinite, because they may not fit into a float."""


@dataclass(frozen=True, slots=True)
class ChosenMethod:
    """A method to compute exact p-values, with its guarantee and estimated cost.

    Attributes
    ----------
    method : str
        Its name.
    guarantee : {"exact", "certified", "bounds"}
        p_lo = p_hi; with a bound of its rounding; between limits.
    operations : int
        Predicted: additions, comparisons or the like, of a nanosecond or so each. A function of the data alone.
    n_bytes : int
        Predicted memory.
    """

    method: str
    guarantee: Guarantee
    operations: int
    n_bytes: int

    @property
    def seconds(self) -> float:
        """Estimated seconds on one core; machine-independent, from constants measured once."""
        nanoseconds, slow_bytes = COSTS.get(self.method, (1.0, math.inf))
        slowdown = 1 + min(self.n_bytes, MAX_ESTIMATE) / slow_bytes
        return SECONDS_A_PROBLEM + 1e-9 * nanoseconds * slowdown * min(self.operations, MAX_ESTIMATE)


def format_about(number: float) -> str:
    """Return a number as short text, even if it is larger than any float.

    Examples
    --------
    >>> format_about(3 * 10**9), format_about(10**400), format_about(12)
    ('3.0e+09', '1e+400', '12')
    """
    if number < 10**4:
        return str(number)
    return f"{number:.1e}" if number < 10**300 else f"1e+{math.floor(math.log10(number))}"


@dataclass(frozen=True, slots=True)
class NoMethod:
    """The answer that no exact method fits within the limits, with the reason.

    Attributes
    ----------
    reason : str
        The reason as part of a sentence.
    needed : ChosenMethod or None
        The cheapest method, which exceeds the limits. None if there is no method.
    """

    reason: str
    needed: ChosenMethod | None = None


class TooLargeError(InputError):
    """Error for a problem that no exact method solves within the limits."""


@dataclass(frozen=True, slots=True)
class ExactTails:
    """Limits of the three p-values (greater, less, two-sided), computed without sampling.

    Attributes
    ----------
    method, guarantee
        As in `ChosenMethod`.
    greater, less, two_sided : PValueLimits
        p of the raw difference a - b. Ties count.
    rationals : mapping of str to Fraction, or None
        p as fractions by alternative, if known.
    """

    method: str
    guarantee: Guarantee
    greater: PValueLimits
    less: PValueLimits
    two_sided: PValueLimits
    rationals: dict[str, Fraction] | None = None

    @property
    def limits(self) -> Floats:
        """Lower and upper limits of the p-values, shape (3, 2), in the order of `TAILS`."""
        return np.array([self.greater, self.less, self.two_sided])


@dataclass(frozen=True, slots=True)
class ProbabilityLimits:
    """Limits of a probability: floats, or the same fraction twice."""

    low: float | Fraction
    high: float | Fraction

    @staticmethod
    def from_rounded(low: float, high: float, error: float, missed: float = 0.0) -> ProbabilityLimits:
        """Return limits that hold although both ends may be off by a relative error, and a missed probability."""
        return ProbabilityLimits(max(low * (1 - error) - missed, 0.0), min(high * (1 + error) + missed, 1.0))


def are_close(limits: Floats) -> bool:
    """Return whether limits of p-values, shape (n, 2), are so close that each two count as one number.

    Those of a p that is too small for a float differ by their whole size, and are still close.
    """
    low, high = limits.T
    return bool(((high - low < CLOSE_SHARE * high) | (high < sys.float_info.min)).all())


CERTAIN = ProbabilityLimits(Fraction(1), Fraction(1))


def compute_p_from_counts(
    chosen: ChosenMethod, n: int, counts: Sequence[int], *, negative: bool, zero: bool, exact: bool
) -> ExactTails:
    """Return the three p-values from two counts among 2**n arrangements.

    Parameters
    ----------
    chosen : ChosenMethod
        The method that counted them.
    n : int
        Units.
    counts : sequence of int, length 3
        Numbers of arrangements whose difference may be at least |t|, is certainly larger, and certainly ties.
    negative : bool
        Whether the observed difference is negative.
    zero : bool
        Whether the observed difference may be 0.
    exact : bool
        Whether all arrangements that may tie do.
    """
    (reached, passed, tied), n_arrangements = counts, 1 << n
    min_reached = reached if exact else min(passed + tied, reached)
    max_passed = passed if exact else max(reached - tied, passed)
    at_least = ProbabilityLimits(Fraction(min_reached, n_arrangements), Fraction(reached, n_arrangements))
    above = ProbabilityLimits(Fraction(passed, n_arrangements), Fraction(max_passed, n_arrangements))
    return compute_p_from_tails(chosen, at_least, above, negative=negative, zero=zero)


def compute_p_from_tails(
    chosen: ChosenMethod, at_least: ProbabilityLimits, above: ProbabilityLimits, *, negative: bool, zero: bool
) -> ExactTails:
    """Return the three p-values from limits of P(T >= |t|) and P(T > |t|)."""
    opposite = ProbabilityLimits(_compute_complement(above.high, 0.0), _compute_complement(above.low, 1.0))
    double = ProbabilityLimits(_double(at_least.low), 1 if zero else _double(at_least.high))
    if zero and at_least.low == at_least.high and above.low == above.high:
        double = CERTAIN
    greater, less = (opposite, at_least) if negative else (at_least, opposite)
    tails = dict(zip(TAILS, (greater, less, double), strict=True))
    is_closed = all(tail.low == tail.high and isinstance(tail.low, Fraction) for tail in tails.values())
    guarantee: Guarantee = "exact" if is_closed else chosen.guarantee
    limits = [_convert_to_floats(tail, closed=is_closed) for tail in tails.values()]
    if not is_closed:
        guarantee = "certified" if are_close(np.array(limits)) else "bounds"
    rationals = {name: Fraction(tail.high) for name, tail in tails.items()} if is_closed else None
    return ExactTails(chosen.method, guarantee, limits[0], limits[1], limits[2], rationals)


def _compute_complement(p: float | Fraction, outwards: float) -> float | Fraction:
    return 1 - p if isinstance(p, Fraction) else math.nextafter(1.0 - p, outwards)


def _double(p: float | Fraction) -> float | Fraction:
    return min(2 * p, Fraction(1) if isinstance(p, Fraction) else 1.0)


def _convert_to_floats(tail: ProbabilityLimits, *, closed: bool) -> PValueLimits:
    """Return limits of a probability as floats: the nearest float if exact, otherwise rounded outwards.

    The upper limit is never 0.
    """
    low, high = float(tail.low), float(tail.high)
    if not closed:
        low = math.nextafter(low, 0.0) if low != tail.low else low
        high = math.nextafter(high, 1.0) if high != tail.high else high
    return PValueLimits(min(max(low, 0.0), 1.0), min(max(high, SMALLEST_FLOAT), 1.0))
