"""Search for the number of units, or the difference, at which power reaches a target.

Near the crossing the probit of power grows about as the difference, or as the root of the units: each measured power
tells where to look next, and how far its own error carries. What is measured at all places rests on the same random
numbers, so that it hardly ever falls where it should grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scipy import special

Z_95 = 1.959963984540054
"""Standard errors to both sides: 95 %."""

CLOSE_ERRORS = 1.0
"""Standard errors within which a measured power is at the crossing: what is left is interpolated."""

NARROW_WIDTH = 1e-4
"""Relative width of what the crossing of exact powers lies within."""

LONGEST_STEP = 4.0
MOST_LOOKS = 60


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate with its 95 % Monte Carlo interval, which has no width where the value is exact.

    Attributes
    ----------
    value, low, high : float
        Infinite where no value within bounds has the power wanted.
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
        Normal deviate that the test asks for.
    place : float
        Where to look first.
    lower, upper : float
        Where to look at all.
    is_integer : bool
        Numbers of units, which are whole, instead of differences.
    rough : bool
        Whether powers are measured roughly yet: what they find is looked at again, closely.
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
        if self.rough and self.answer is not None:
            self._restart(self.answer.value)

    def _restart(self, value: float) -> None:
        """Restart the search with precise measurements, from the answer of the rough ones."""
        self.place = self._clip(value)
        self.rough, self.answer, self.below, self.above = False, None, None, None

    def _is_bracketed(self) -> bool:
        if self.below is None or self.above is None:
            return len(self.looks) >= MOST_LOOKS
        if self.is_integer and self.above.position - self.below.position <= 1:
            return True
        width = (self.above.position - self.below.position) / self.above.position
        return len(self.looks) >= MOST_LOOKS or (not self.is_integer and width <= NARROW_WIDTH)

    def _estimate_bracketed(self) -> Estimate:
        """Return the smallest measured position whose power reaches the target, with its interval."""
        measured = self.above or self.looks[-1]
        if not measured.error:
            return Estimate(measured.position, measured.position, measured.position)
        near = self._estimate_from(measured)
        return Estimate(measured.position, min(measured.position, near.low), max(measured.position, near.high))

    def _estimate_from(self, measured: MeasuredPower) -> Estimate:
        """Return the position of the target power, extrapolated from the power measured near it."""
        value, low, high = (
            self._extrapolate(measured, power)
            for power in (
                measured.power,
                measured.power + Z_95 * measured.error,
                measured.power - Z_95 * measured.error,
            )
        )
        return Estimate(self._round(value), self._round(low, round_up=False), self._round(high))

    def _extrapolate(self, measured: MeasuredPower, power: float) -> float:
        """Return the position where power reaches the target, extrapolated from the power at a measured position."""
        grown = float(special.ndtri(min(max(power, MIN_POWER), 1 - MIN_POWER))) + self.bar
        factor = (float(special.ndtri(self.target)) + self.bar) / max(grown, 0.1)
        return self._clip(measured.position * (factor**2 if self.is_integer else factor), rounded=False)

    def _choose_next(self, measured: MeasuredPower) -> float:
        """Return the next position to measure, between the last ones known to have too little and enough power."""
        guess = self._extrapolate(measured, measured.power)
        if self.below is None or self.above is None:
            guess = min(max(guess, measured.position / LONGEST_STEP), measured.position * LONGEST_STEP)
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
"""Powers nearer to 0 and 1 tell no slope."""
