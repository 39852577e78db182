"""Where power crosses what is wanted, as units or the difference grow, with power measured at few places.

Near the crossing the probit of power grows about as the difference, or as the root of the units: each measured power
tells where to look next, and how far its own error carries. What is measured at all places rests on the same random
numbers, so that it hardly ever falls where it should grow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scipy import special

CONFIDENT = 1.959963984540054
"""Standard errors to both sides: 95 %."""

CLOSE = 1.0
"""Standard errors within which a measured power is at the crossing: what is left is interpolated."""

NARROW = 1e-4
"""Relative width of what the crossing of exact powers lies within."""

LONGEST_STEP = 4.0
MOST_LOOKS = 60


@dataclass(frozen=True, slots=True)
class Estimate:
    """What was estimated, with its 95 % interval by Monte Carlo error; both are one where the value is exact.

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
    """The power at one place, with its standard error, 0 where it is exact."""

    at: float
    power: float
    error: float


@dataclass(slots=True)
class PowerCrossing:
    """The search for the place where power crosses what is wanted.

    Attributes
    ----------
    wanted : float
        Power.
    bar : float
        Normal deviate that the test asks for.
    place : float
        Where to look first.
    least, most : float
        Where to look at all.
    whole : bool
        Numbers of units, which are whole, instead of differences.
    rough : bool
        Whether powers are measured roughly yet: what they find is looked at again, closely.
    """

    wanted: float
    bar: float
    place: float
    least: float
    most: float
    whole: bool
    rough: bool = False
    below: MeasuredPower | None = None
    above: MeasuredPower | None = None
    looks: list[MeasuredPower] = field(default_factory=list)
    answer: Estimate | None = None

    def __post_init__(self) -> None:
        """Start within bounds."""
        self.place = self._bounded(self.place)

    def learn(self, power: float, error: float) -> None:
        """Take the power that was measured at `place`; then there is an answer, or another place."""
        here = MeasuredPower(self.place, power, error)
        self.looks.append(here)
        if power >= self.wanted:
            self.above = here
        else:
            self.below = here
        if here.at >= self.most and power < self.wanted:
            self.answer = Estimate(math.inf, math.inf, math.inf)
        elif (here.at <= self.least and power >= self.wanted) or self._is_bracketed():
            self.answer = self._between()
        elif error and abs(power - self.wanted) <= CLOSE * error:
            self.answer = self._from(here)
        else:
            self.place = self._next(here)
        if self.rough and self.answer is not None:
            self._look_closely(self.answer.value)

    def _look_closely(self, value: float) -> None:
        """Begin again where rough powers led."""
        self.place = self._bounded(value)
        self.rough, self.answer, self.below, self.above = False, None, None, None

    def _is_bracketed(self) -> bool:
        if self.below is None or self.above is None:
            return len(self.looks) >= MOST_LOOKS
        if self.whole and self.above.at - self.below.at <= 1:
            return True
        width = (self.above.at - self.below.at) / self.above.at
        return len(self.looks) >= MOST_LOOKS or (not self.whole and width <= NARROW)

    def _between(self) -> Estimate:
        """Return the smallest place known to have the power wanted."""
        here = self.above or self.looks[-1]
        if not here.error:
            return Estimate(here.at, here.at, here.at)
        near = self._from(here)
        return Estimate(here.at, min(here.at, near.low), max(here.at, near.high))

    def _from(self, here: MeasuredPower) -> Estimate:
        """Return the crossing as a measured power near it tells."""
        value, low, high = (
            self._at(here, power)
            for power in (here.power, here.power + CONFIDENT * here.error, here.power - CONFIDENT * here.error)
        )
        return Estimate(self._rounded(value), self._rounded(low, up=False), self._rounded(high))

    def _at(self, here: MeasuredPower, power: float) -> float:
        """Return where the power is as wanted, if it is this at a place."""
        grown = float(special.ndtri(min(max(power, LEAST), 1 - LEAST))) + self.bar
        factor = (float(special.ndtri(self.wanted)) + self.bar) / max(grown, 0.1)
        return self._bounded(here.at * (factor**2 if self.whole else factor), rounded=False)

    def _next(self, here: MeasuredPower) -> float:
        """Return where to look next: as the powers around it tell, within what is known."""
        guess = self._at(here, here.power)
        if self.below is None or self.above is None:
            guess = min(max(guess, here.at / LONGEST_STEP), here.at * LONGEST_STEP)
            beyond = here.at * (0.97 if here is self.above else 1.03)
            return self._bounded(
                min(guess, beyond) if here is self.above else max(guess, beyond), up=here is self.below
            )
        low, high = self.below.at, self.above.at
        if not low < guess < high or len(self.looks) > 6:
            guess = math.sqrt(low * high) if low > 0 else (low + high) / 2
        guess = self._bounded(guess)
        return min(max(guess, low + 1), high - 1) if self.whole else guess

    def _bounded(self, place: float, *, rounded: bool = True, up: bool = True) -> float:
        bounded = min(max(place, self.least), self.most)
        return self._rounded(bounded, up=up) if rounded else bounded

    def _rounded(self, place: float, *, up: bool = True) -> float:
        if not self.whole or math.isinf(place):
            return place
        return float(math.ceil(place - 1e-9) if up else math.floor(place + 1e-9))


LEAST = 1e-4
"""Powers nearer to 0 and 1 tell no slope."""
