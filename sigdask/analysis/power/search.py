"""All that is asked of the power of comparisons, searched for in rounds: each counts one point of every search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sigdask.analysis.power.points import (
    Count,
    PowerPoint,
    PowerTarget,
    RejectionRule,
    first_difference,
    first_units,
    measured,
)
from sigdask.analysis.power.results import EXACT, FEW_EFFECTIVE, Power, PowerAt
from sigdask.randomization.kernels.dense import one_thread
from sigdask.statistics.power import tilting
from sigdask.statistics.power.crossing import Estimate, PowerCrossing

FEWEST = 2
"""Units that tell how others would differ."""

MOST_UNITS = 10**12
"""Of an answer; more are said to be needed by no end."""

FIRST_STEPS, ROUGHLY = 3, 4
"""Steps to the first look; how many times fewer samples the rough looks have."""

INSIDE = 1e-9
"""Share of the largest difference that tilting reaches by which searches stay below it."""


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """What is asked of every comparison.

    Attributes
    ----------
    power : float
        That is wanted.
    difference : float or None
        Whose units are wanted, a size.
    n_units : int or None
        With which differences are to be found; None for the present ones.
    """

    power: float
    difference: float | None = None
    n_units: int | None = None


@dataclass(slots=True)
class PowerSearch:
    """One comparison: what is looked for, and what is known so far."""

    place: PowerTarget
    sought: PowerQuestion
    test: RejectionRule
    reachable: tuple[float, float] | None = None
    note: str | None = None
    strength: float | None = None
    needed: PowerCrossing | None = None
    detectable: PowerCrossing | None = None
    curve: dict[tuple[int, float], PowerAt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find where to look first, or why there is nothing to look for."""
        observed, side = self.place.observed, self.place.side
        if observed.n_units < FEWEST:
            self.note = f"{observed.n_units} unit: power is told by how units differ, of which two are the least"
            return
        if not observed.differs or not (observed.difference or observed.influences.any()):
            self.note = "alike on every unit: nothing tells how far the systems would differ on others"
            return
        low, high = (
            side * tilting.reachable(observed.influences, observed.difference_at, end * side) for end in (-1, 1)
        )
        self.reachable = low, high
        if high <= 0:
            self.note = "no unit is on the side that is tested: tilting reaches no difference"
            return
        self.detectable = self._differences(max(low, 0.0), high)
        if self.sought.difference is not None:
            self._seek_units(self.sought.difference, low, high)

    def _seek_units(self, wanted: float, low: float, high: float) -> None:
        observed = self.place.observed
        self.strength = observed.strength_of(self.place.side * wanted)
        if self.strength is None:
            reach = f"{max(low, 0.0):.4g} to {high:.4g}"
            self.note = f"a difference of {wanted:g} is out of reach: the observed units reach {reach}"
            return
        weights = observed.weights(self.strength)
        sides, level = self.test.sides, self.test.level
        self.needed = PowerCrossing(
            wanted=self.sought.power,
            bar=self.test.bar,
            place=first_units(wanted, observed.spread_at(weights), self.test, self.sought.power),
            least=max(FEWEST, math.ceil(math.log2(sides / level) - 1e-12)),
            most=MOST_UNITS,
            whole=True,
            rough=self._is_rough,
        )

    def _differences(self, low: float, high: float) -> PowerCrossing:
        return PowerCrossing(
            wanted=self.sought.power,
            bar=self.test.bar,
            place=self._first_difference(low, high),
            least=low + INSIDE * (high - low),
            most=high - INSIDE * (high - low),
            whole=False,
            rough=self._is_rough,
        )

    def _first_difference(self, low: float, high: float) -> float:
        """Return about which difference is found, with the spread of units that differ by it."""
        observed, strength, guess = self.place.observed, 0.0, high
        for _ in range(FIRST_STEPS):
            spread = observed.spread_at(observed.weights(strength))
            guess = first_difference(self.n_asked, spread, self.test, self.sought.power)
            found = observed.strength_of(self.place.side * min(max(guess, low), high))
            if found is None:
                break
            strength = found
        return guess

    @property
    def _is_rough(self) -> bool:
        """Whether the first looks are of fewer samples: nothing is gained where power is exact."""
        return self.place.observed.signs is None

    @property
    def n_asked(self) -> int:
        """Units that differences are found with."""
        return self.sought.n_units or self.place.observed.n_units

    @property
    def seen(self) -> float:
        """The observed difference, above 0 where it is on the side that is asked about."""
        return self.place.side * self.place.observed.difference

    def first(self) -> Iterator[tuple[int, float, float]]:
        """Yield units, difference and tilt of the points that are asked for themselves."""
        observed = self.place.observed
        if self.reachable is None:
            return
        yield self.n_asked, self.seen, 0.0
        if self.strength is not None and self.sought.difference is not None:
            yield observed.n_units, self.sought.difference, self.strength

    def next(self) -> Iterator[tuple[PowerCrossing, int, float, float]]:
        """Yield the searches that go on, with the units, difference and tilt of where they look."""
        if self.needed is not None and self.needed.answer is None:
            assert self.sought.difference is not None
            assert self.strength is not None
            yield self.needed, int(self.needed.place), self.sought.difference, self.strength
        if self.detectable is not None and self.detectable.answer is None:
            here = self.detectable.place
            strength = self.place.observed.strength_of(self.place.side * here)
            if strength is None:
                self.detectable.answer = Estimate(math.inf, math.inf, math.inf)
            else:
                yield self.detectable, self.n_asked, here, strength

    def answer(self, names: tuple[str, str], test_set: str, unit: str) -> Power:
        """Return what was found."""
        observed, sought = self.place.observed, self.sought
        detectable = None if self.detectable is None else self.detectable.answer
        simulated = any(point.error for point in self.curve.values())
        return Power(
            test_set=test_set,
            a=names[0],
            b=names[1],
            metric=observed.panel.metrics[0].name,
            unit=unit,
            alternative=self.test.alternative,
            level=self.test.level,
            power=sought.power,
            n_units=observed.n_units,
            difference=observed.difference,
            ahead=names[0] if self.place.side > 0 else names[1],
            reachable=self.reachable,
            wanted_difference=sought.difference,
            needed=None if self.needed is None else self.needed.answer,
            at_wanted=self.curve.get((observed.n_units, sought.difference or 0.0)),
            n_asked=self.n_asked,
            detectable=detectable,
            at_observed=self.curve.get((self.n_asked, self.seen)),
            curve=tuple(self.curve[key] for key in sorted(self.curve)),
            method=self._method(),
            n_samples=self.test.n_samples if simulated else 0,
            n_effective=self._effective(self.strength),
            n_effective_detectable=self._effective(self._strength_of(detectable)),
            note=self.note,
        )

    @property
    def detected(self) -> float | None:
        """The smallest difference that is found, where enough units tell it."""
        found = None if self.detectable is None else self.detectable.answer
        effective = self._effective(self._strength_of(found))
        return found.value if found is not None and effective is not None and effective >= FEW_EFFECTIVE else None

    def _strength_of(self, difference: Estimate | None) -> float | None:
        if difference is None or not math.isfinite(difference.value):
            return None
        return self.place.observed.strength_of(self.place.side * difference.value)

    def _effective(self, strength: float | None) -> float | None:
        return None if strength is None else tilting.n_effective(self.place.observed.weights(strength))

    def _method(self) -> str:
        looked = self.needed.looks[-1].at if self.needed is not None and self.needed.looks else self.n_asked
        return EXACT if self.reachable is None else self.place.method(int(looked))


def search(asks: Sequence[PowerSearch], test: RejectionRule, count: Count, *, asked: bool = True) -> None:
    """Look for all answers, in rounds; without the points that are `asked` for themselves where these are not."""
    with one_thread():  # limited once: to limit and free it in every task costs more than the products
        _search(asks, test, count, asked=asked)


def _search(asks: Sequence[PowerSearch], test: RejectionRule, count: Count, *, asked: bool) -> None:
    wanted: list[tuple[PowerSearch, PowerCrossing | None, int, float, float]]
    wanted = [(ask, None, *point) for ask in asks for point in ask.first() if asked]
    wanted += [] if asked else [(ask, *looked) for ask in asks for looked in ask.next()]
    while wanted:
        points = [
            PowerPoint(ask.place, strength, n_units, test.n_samples // (ROUGHLY if crossing and crossing.rough else 1))
            for ask, crossing, n_units, _, strength in wanted
        ]
        for (ask, crossing, n_units, difference, _), (power, error) in zip(
            wanted, measured(points, test, count), strict=True
        ):
            if crossing is None or not crossing.rough:
                ask.curve[n_units, difference] = PowerAt(n_units, difference, power, error)
            if crossing is not None:
                crossing.learn(power, error)
        wanted = [(ask, *looked) for ask in asks for looked in ask.next()]
