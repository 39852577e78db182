"""Results: the chosen method or why there is none, and three p-values with limits.

The null distribution is symmetric about 0, so all p-values follow from two upper tails at the size of the observed
difference: one counts everything that may tie, and the other only what is certainly larger.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from sigdask.counts.fields import Floats
from sigdask.errors import InputError

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

    def get_limits(self, alternative: str) -> PValueLimits:
        """Return the limits of the p-value for one alternative."""
        return (self.greater, self.less, self.two_sided)[TAILS.index(alternative)]


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
