"""Searches for required units and detectable differences; all searches advance one point at a time together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sigdask.analysis.power.points import (
    Count,
    PowerPoint,
    PowerTarget,
    RejectionRule,
    guess_difference,
    guess_units,
    measure_power,
)
from sigdask.analysis.power.results import EXACT, FEW_EFFECTIVE, Power, PowerAt
from sigdask.randomization.kernels.dense import limit_blas_threads
from sigdask.statistics.power import tilting
from sigdask.statistics.power.crossing import Estimate, PowerCrossing

MIN_UNITS = 2
"""Units that tell how others would differ."""

MAX_UNITS = 10**12
"""Of an answer; more are said to be needed by no end."""

FIRST_STEPS, ROUGH_FACTOR = 3, 4
"""Steps to the first look; how many times fewer samples the rough looks have."""

MARGIN = 1e-9
"""Share of the largest difference that tilting reaches by which searches stay below it."""


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """What a power analysis is asked: power, difference and number of units, the same for every comparison.

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
    """The search for required units and the detectable difference of one comparison, with its state."""

    target: PowerTarget
    question: PowerQuestion
    rule: RejectionRule
    reachable: tuple[float, float] | None = None
    note: str | None = None
    strength: float | None = None
    needed: PowerCrossing | None = None
    detectable: PowerCrossing | None = None
    curve: dict[tuple[int, float], PowerAt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the searches, or note why there is nothing to search for."""
        observed, side = self.target.observed, self.target.side
        if observed.n_units < MIN_UNITS:
            self.note = f"{observed.n_units} unit: power is told by how units differ, of which two are the least"
            return
        if not observed.has_difference or not (observed.difference or observed.influences.any()):
            self.note = "alike on every unit: nothing tells how far the systems would differ on others"
            return
        low, high = (
            side * tilting.find_extreme_difference(observed.influences, observed.compute_difference, end * side)
            for end in (-1, 1)
        )
        self.reachable = low, high
        if high <= 0:
            self.note = "no unit is on the side that is tested: tilting reaches no difference"
            return
        self.detectable = self._build_difference_search(max(low, 0.0), high)
        if self.question.difference is not None:
            self._start_unit_search(self.question.difference, low, high)

    def _start_unit_search(self, difference: float, low: float, high: float) -> None:
        observed = self.target.observed
        self.strength = observed.find_strength(self.target.side * difference)
        if self.strength is None:
            reach = f"{max(low, 0.0):.4g} to {high:.4g}"
            self.note = f"a difference of {difference:g} is out of reach: the observed units reach {reach}"
            return
        weights = observed.compute_weights(self.strength)
        sides, level = self.rule.n_sides, self.rule.level
        self.needed = PowerCrossing(
            target=self.question.power,
            bar=self.rule.critical_z,
            place=guess_units(difference, observed.compute_spread(weights), self.rule, self.question.power),
            lower=max(MIN_UNITS, math.ceil(math.log2(sides / level) - 1e-12)),
            upper=MAX_UNITS,
            is_integer=True,
            rough=self._is_rough,
        )

    def _build_difference_search(self, low: float, high: float) -> PowerCrossing:
        return PowerCrossing(
            target=self.question.power,
            bar=self.rule.critical_z,
            place=self._guess_difference(low, high),
            lower=low + MARGIN * (high - low),
            upper=high - MARGIN * (high - low),
            is_integer=False,
            rough=self._is_rough,
        )

    def _guess_difference(self, low: float, high: float) -> float:
        """Return a first approximation of the detectable difference, from the spread of tilted units."""
        observed, strength, guess = self.target.observed, 0.0, high
        for _ in range(FIRST_STEPS):
            spread = observed.compute_spread(observed.compute_weights(strength))
            guess = guess_difference(self.n_requested, spread, self.rule, self.question.power)
            new_strength = observed.find_strength(self.target.side * min(max(guess, low), high))
            if new_strength is None:
                break
            strength = new_strength
        return guess

    @property
    def _is_rough(self) -> bool:
        """Whether the first points are simulated with fewer samples; False if power is exact."""
        return self.target.observed.sign_counts is None

    @property
    def n_requested(self) -> int:
        """Number of units that the question asks about, by default the number of observed units."""
        return self.question.n_units or self.target.observed.n_units

    @property
    def observed_difference(self) -> float:
        """The observed difference, positive if it is on the tested side."""
        return self.target.side * self.target.observed.difference

    def iter_first_points(self) -> Iterator[tuple[int, float, float]]:
        """Yield the units, difference and tilt strength of the points that the question itself asks for."""
        observed = self.target.observed
        if self.reachable is None:
            return
        yield self.n_requested, self.observed_difference, 0.0
        if self.strength is not None and self.question.difference is not None:
            yield observed.n_units, self.question.difference, self.strength

    def iter_next_points(self) -> Iterator[tuple[PowerCrossing, int, float, float]]:
        """Yield each unfinished search with the units, difference and tilt strength of its next point."""
        if self.needed is not None and self.needed.answer is None:
            assert self.question.difference is not None
            assert self.strength is not None
            yield self.needed, int(self.needed.place), self.question.difference, self.strength
        if self.detectable is not None and self.detectable.answer is None:
            difference = self.detectable.place
            strength = self.target.observed.find_strength(self.target.side * difference)
            if strength is None:
                self.detectable.answer = Estimate(math.inf, math.inf, math.inf)
            else:
                yield self.detectable, self.n_requested, difference, strength

    def build_power(self, names: tuple[str, str], test_set: str, unit: str) -> Power:
        """Return the power of the comparison as found by the search."""
        observed, question = self.target.observed, self.question
        detectable = None if self.detectable is None else self.detectable.answer
        is_simulated = any(point.error for point in self.curve.values())
        return Power(
            test_set=test_set,
            a=names[0],
            b=names[1],
            metric=observed.panel.metrics[0].name,
            unit=unit,
            alternative=self.rule.alternative,
            level=self.rule.level,
            power=question.power,
            n_units=observed.n_units,
            difference=observed.difference,
            ahead=names[0] if self.target.side > 0 else names[1],
            reachable=self.reachable,
            wanted_difference=question.difference,
            needed=None if self.needed is None else self.needed.answer,
            at_wanted=self.curve.get((observed.n_units, question.difference or 0.0)),
            n_asked=self.n_requested,
            detectable=detectable,
            at_observed=self.curve.get((self.n_requested, self.observed_difference)),
            curve=tuple(self.curve[key] for key in sorted(self.curve)),
            method=self._choose_method(),
            n_samples=self.rule.n_samples if is_simulated else 0,
            n_effective=self._count_effective(self.strength),
            n_effective_detectable=self._count_effective(self._find_strength(detectable)),
            note=self.note,
        )

    @property
    def detectable_difference(self) -> float | None:
        """The smallest detectable difference; None if it is unknown or rests on too few effective units."""
        estimate = None if self.detectable is None else self.detectable.answer
        effective = self._count_effective(self._find_strength(estimate))
        return estimate.value if estimate is not None and effective is not None and effective >= FEW_EFFECTIVE else None

    def _find_strength(self, difference: Estimate | None) -> float | None:
        if difference is None or not math.isfinite(difference.value):
            return None
        return self.target.observed.find_strength(self.target.side * difference.value)

    def _count_effective(self, strength: float | None) -> float | None:
        return None if strength is None else tilting.compute_n_effective(self.target.observed.compute_weights(strength))

    def _choose_method(self) -> str:
        last_units = (
            self.needed.looks[-1].position if self.needed is not None and self.needed.looks else self.n_requested
        )
        return EXACT if self.reachable is None else self.target.choose_method(int(last_units))


def run_searches(
    searches: Sequence[PowerSearch], rule: RejectionRule, count: Count, *, with_first: bool = True
) -> None:
    """Run all searches together to their end; `with_first` includes the points that the question itself asks for."""
    with limit_blas_threads():  # limited once: to limit and free it in every task costs more than the products
        _run_rounds(searches, rule, count, with_first=with_first)


def _run_rounds(searches: Sequence[PowerSearch], rule: RejectionRule, count: Count, *, with_first: bool) -> None:
    pending: list[tuple[PowerSearch, PowerCrossing | None, int, float, float]]
    pending = [
        (power_search, None, *point)
        for power_search in searches
        for point in power_search.iter_first_points()
        if with_first
    ]
    pending += (
        []
        if with_first
        else [
            (power_search, *next_point) for power_search in searches for next_point in power_search.iter_next_points()
        ]
    )
    while pending:
        points = [
            PowerPoint(
                power_search.target,
                strength,
                n_units,
                rule.n_samples // (ROUGH_FACTOR if crossing and crossing.rough else 1),
            )
            for power_search, crossing, n_units, _, strength in pending
        ]
        for (power_search, crossing, n_units, difference, _), (power, error) in zip(
            pending, measure_power(points, rule, count), strict=True
        ):
            if crossing is None or not crossing.rough:
                power_search.curve[n_units, difference] = PowerAt(n_units, difference, power, error)
            if crossing is not None:
                crossing.add_power(power, error)
        pending = [
            (power_search, *next_point) for power_search in searches for next_point in power_search.iter_next_points()
        ]
