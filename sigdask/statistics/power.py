"""Statistical power: populations with a given difference, power of sign tests, and search for a power.

Populations: the observed units with exponential weights. Unit u is drawn with probability w_u proportional to exp(s
L_u), where L_u is its influence on the difference of scores. Of all weights that give the wanted (linearised)
difference, these are closest to equal weights in Kullback-Leibler distance. Scores are not shifted, so each drawn score
was observed (Efron 1981, "Nonparametric standard errors and confidence intervals", Canadian Journal of Statistics 9,
section 7; Davison & Hinkley 1997, "Bootstrap Methods and their Application", section 4).

Sign test: power is exact for given probabilities of winning, losing and tying a unit. The number of units that do not
tie is binomial, and so is the number of wins among them, so power is a sum of binomial tails. Miettinen 1968, "The
matched pairs design in the case of all-or-none responses", Biometrics 24, approximates it. The randomization test of
0/1 scores is this test.

Search for the number of units, or the difference, at which power reaches a target: near the target the probit of power
grows about as the difference, or as the square root of the number of units. Each measured power therefore says where to
look next, and how far its own error reaches. All measurements use the same random numbers, so measured power rarely
falls where true power grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy

from sigdask.counts.fields import Floats, Integers
from sigdask.statistics.bounds import binomial_pmf

Z_95 = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""

CLOSE_ERRORS = 1.0
"""A measured power within this many standard errors of the target is at the crossing. The rest is interpolated."""

NARROW_WIDTH = 1e-4
"""Relative width of an interval that contains the crossing of exact powers."""

MAX_STEP = 4.0
MAX_LOOKS = 60


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % Monte Carlo interval, which has zero width if the value is exact.

    Attributes
    ----------
    value, low, high : float
        Infinite if no value within bounds has the requested power.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeasuredPower:
    """The power at one position (a number of units, or a difference), with its standard error, 0 if exact."""

    position: float
    power: float
    error: float


@dataclass(slots=True)
class PowerCrossing:
    """The search for the position (a number of units, or a difference) at which power reaches the target.

    Attributes
    ----------
    target : float
        Power.
    bar : float
        Normal deviate at which the test rejects.
    place : float
        Start of the search.
    lower, upper : float
        Range of the search.
    is_integer : bool
        Whether positions are numbers of units (integers) instead of differences.
    rough : bool
        Whether powers are still measured roughly. Crossings are then measured again accurately.
    """

    target: float
    bar: float
    place: float
    lower: float
    upper: float
    is_integer: bool
    rough: bool = False
    below: MeasuredPower | None = None
    above: MeasuredPower | None = None
    looks: list[MeasuredPower] = field(default_factory=list)
    answer: Estimate | None = None

    def __post_init__(self) -> None:
        """Move the first position into the bounds of the search."""
        self.place = self._clip(self.place)

    def add_power(self, power: float, error: float) -> None:
        """Record the power measured at `place`, and set the answer or the next position to measure."""
        measured = MeasuredPower(self.place, power, error)
        self.looks.append(measured)
        if power >= self.target:
            self.above = measured
        else:
            self.below = measured
        if measured.position >= self.upper and power < self.target:
            self.answer = Estimate(math.inf, math.inf, math.inf)
        elif (measured.position <= self.lower and power >= self.target) or self._is_bracketed():
            self.answer = self._estimate_bracketed()
        elif error and abs(power - self.target) <= CLOSE_ERRORS * error:
            self.answer = self._estimate_from(measured)
        else:
            self.place = self._choose_next(measured)
        if self.rough and self.answer is not None:  # start again with precise measurements
            self.place = self._clip(self.answer.value)
            self.rough, self.answer, self.below, self.above = False, None, None, None

    def _is_bracketed(self) -> bool:
        if self.below is None or self.above is None:
            return len(self.looks) >= MAX_LOOKS
        if self.is_integer and self.above.position - self.below.position <= 1:
            return True
        width = (self.above.position - self.below.position) / self.above.position
        return len(self.looks) >= MAX_LOOKS or (not self.is_integer and width <= NARROW_WIDTH)

    def _estimate_bracketed(self) -> Estimate:
        """Return the smallest measured position whose power reaches the target, with its interval."""
        measured = self.above or self.looks[-1]
        if not measured.error:
            return Estimate(measured.position, measured.position, measured.position)
        near = self._estimate_from(measured)
        return Estimate(measured.position, min(measured.position, near.low), max(measured.position, near.high))

    def _estimate_from(self, measured: MeasuredPower) -> Estimate:
        """Return the position of the target power, extrapolated from the power measured near it."""
        value, low, high = (self._extrapolate(measured, measured.power + z * measured.error) for z in (0, Z_95, -Z_95))
        return Estimate(self._round(value), self._round(low, round_up=False), self._round(high))

    def _extrapolate(self, measured: MeasuredPower, power: float) -> float:
        """Return the position where power reaches the target, extrapolated from the power at a measured position."""
        grown = float(scipy.special.ndtri(min(max(power, MIN_POWER), 1 - MIN_POWER))) + self.bar
        factor = (float(scipy.special.ndtri(self.target)) + self.bar) / max(grown, 0.1)
        return self._clip(measured.position * (factor**2 if self.is_integer else factor), rounded=False)

    def _choose_next(self, measured: MeasuredPower) -> float:
        """Return the next position to measure, between the last ones known to have too little and enough power."""
        guess = self._extrapolate(measured, measured.power)
        if self.below is None or self.above is None:
            guess = min(max(guess, measured.position / MAX_STEP), measured.position * MAX_STEP)
            beyond = measured.position * (0.97 if measured is self.above else 1.03)
            return self._clip(
                min(guess, beyond) if measured is self.above else max(guess, beyond), round_up=measured is self.below
            )
        low, high = self.below.position, self.above.position
        if not low < guess < high or len(self.looks) > 6:
            guess = math.sqrt(low * high) if low > 0 else (low + high) / 2
        guess = self._clip(guess)
        return min(max(guess, low + 1), high - 1) if self.is_integer else guess

    def _clip(self, value: float, *, rounded: bool = True, round_up: bool = True) -> float:
        bounded = min(max(value, self.lower), self.upper)
        return self._round(bounded, round_up=round_up) if rounded else bounded

    def _round(self, value: float, *, round_up: bool = True) -> float:
        if not self.is_integer or math.isinf(value):
            return value
        return float(math.ceil(value - 1e-9) if round_up else math.floor(value + 1e-9))


MIN_POWER = 1e-4
"""Powers closer to 0 or 1 than this are not used for a slope."""


REACH = 9.0
"""Numbers of discordant units more standard deviations away than this are ignored."""


def compute_critical_wins(n: Integers, alpha: float, sides: int) -> Integers:
    """Return the smallest number of wins among n untied units with which the sign test rejects; n + 1 if there is none.

    Parameters
    ----------
    n : int64 array, shape (...)
        Units without ties.
    alpha : float
        Level of the test.
    sides : int
        1 or 2.

    Examples
    --------
    >>> compute_critical_wins(np.array([5, 6, 34]), 0.05, 2)
    array([ 6,  6, 24])
    """
    from scipy.stats import binom

    return np.asarray(binom.isf(alpha / sides, n, 0.5)).astype(np.int64) + 1


def compute_sign_power(n_units: int, wins: float, losses: float, alpha: float, sides: int) -> float:
    """Return the probability that the sign test rejects, one-sided for more wins than losses or two-sided.

    Parameters
    ----------
    n_units : int
        Number of units, drawn independently.
    wins, losses : float
        Probability that a unit is won, and lost.
    alpha : float
        Level of the test.
    sides : int
        1 to test for more wins than losses, 2 to test both sides.

    Examples
    --------
    >>> round(compute_sign_power(34, 0.7, 0.3, 0.05, 2), 12), round(compute_sign_power(34, 0.5, 0.5, 0.05, 2), 12)
    (0.554460693742, 0.024306510109)
    """
    from scipy.stats import binom

    differing = min(wins + losses, 1.0)
    middle, spread = n_units * differing, np.sqrt(n_units * differing * (1 - differing)) + 1
    low, high = max(int(middle - REACH * spread), 0), min(int(middle + REACH * spread) + 1, n_units)
    n = np.arange(low, high + 1)
    bars = compute_critical_wins(n, alpha, sides)
    share = wins / differing if differing else 0.5
    rejection = sum(binom.sf(bars - 1, n, p) for p in (share, 1 - share)[:sides])
    return float(binomial_pmf(n, n_units, differing) @ rejection)


FIRST, LAST = -6, 40
"""Powers of two between which strengths are tried, in standard deviations of the influences."""

CONCENTRATED = 1e-12
"""Tilting stops if the units of largest influence hold all but this share of the weight."""

ROUNDING = 1e-11
"""Relative rounding error of a difference, for instance if all units differ by it."""


def compute_weights(influences: Floats, strength: float) -> Floats:
    """Return the probabilities of the units under a tilt of this strength, shape (n_units,).

    Examples
    --------
    >>> compute_weights(np.array([0.0, 1.0]), 0.0)
    array([0.5, 0.5])
    """
    exponents = strength * influences
    grown = np.exp(exponents - exponents.max())
    return np.asarray(grown / grown.sum())


def find_extreme_difference(influences: Floats, difference: Callable[[Floats], float], side: int) -> float:
    """Return the largest or smallest difference of scores that tilting can produce.

    Parameters
    ----------
    influences : array, shape (n_units,)
        Influence of each unit on the difference.
    difference : callable
        The difference of scores under some weights.
    side : int
        1 for the largest, -1 for the smallest.
    """
    return side * max(
        side * difference(compute_weights(influences, strength)) for strength in _list_strengths(influences, side)
    )


def find_strength(influences: Floats, difference: Callable[[Floats], float], target: float) -> float | None:
    """Return the strength of the tilt that gives the target difference; None if no tilt does.

    Parameters
    ----------
    influences, difference
        As in `find_extreme_difference`.
    target : float
        Difference of scores.

    Examples
    --------
    >>> d = np.array([-1.0, 0.0, 2.0])
    >>> s = find_strength(d, lambda w: float(w @ d), 1.5)
    >>> round(float(compute_weights(d, s) @ d), 12)
    1.5
    >>> find_strength(d, lambda w: float(w @ d), 2.5) is None
    True
    """
    from scipy.optimize import brentq

    def missing(strength: float) -> float:
        return difference(compute_weights(influences, strength)) - target

    start, close = missing(0.0), ROUNDING * abs(target)
    if abs(start) <= close:
        return 0.0
    previous = 0.0
    for strength in _list_strengths(influences, -1 if start > 0 else 1):
        remaining = missing(strength)
        if abs(remaining) <= close:
            return strength
        if (remaining > 0) != (start > 0):
            return float(brentq(missing, previous, strength, xtol=1e-300, rtol=1e-13))
        previous = strength
    return None


def _list_strengths(influences: Floats, side: int) -> list[float]:
    """Return tilt strengths of one sign, growing until all weight is on the units of largest influence."""
    spread = float(influences.std())
    if spread == 0:
        return [0.0]
    extreme = (influences * side).max()
    strengths: list[float] = []
    for power in range(FIRST, LAST):
        strengths.append(side * 2.0**power / spread)
        if compute_weights(influences, strengths[-1])[influences * side < extreme].sum() < CONCENTRATED:
            break
    return strengths


def compute_n_effective(probabilities: Floats) -> float:
    """Return the number of equally likely units that gives the same precision (Kish 1965): 1 / sum of squares."""
    return float(1 / (probabilities**2).sum())
