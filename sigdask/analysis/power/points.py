"""Power at some points: exactly where tests are sign tests, by samples that the engine counts elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from sigdask.analysis.power.results import EXACT, NORMAL, SIMULATED
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job
from sigdask.randomization.power.population import ObservedPair, SystemPairs
from sigdask.randomization.power.resampled import PowerSamples
from sigdask.randomization.tallies import Tally
from sigdask.statistics.power.sign_power import sign_power

Count = Callable[[Sequence[Job]], Sequence[Tally]]

MOST_SIMULATED = 50_000
"""Contributions of units to a sample (units times fields) beyond which the normal approximation serves."""

MOST_EXACT = 10**7
"""Units of a sign test beyond which it serves as well."""

TOGETHER = 64
"""Points of one job."""


@dataclass(frozen=True, slots=True, eq=False)
class RejectionRule:
    """How each sample is judged.

    Attributes
    ----------
    alternative : str
        Of the test.
    level : float
        That p is held against.
    n_samples : int
        Of each point.
    """

    alternative: Alternative
    level: float
    n_samples: int

    @property
    def sides(self) -> int:
        """Sides of the test."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def bar(self) -> float:
        """The normal deviate that the test asks for."""
        return -float(special.ndtri(self.level / self.sides))


@dataclass(frozen=True, slots=True, eq=False)
class PowerTarget:
    """A pair of systems among others under a metric, and the side on which it is to differ.

    Attributes
    ----------
    pairs : SystemPairs
        Of one metric.
    row : int
        The pair.
    side : int
        1 where A is to score more, else -1.
    """

    pairs: SystemPairs
    row: int
    side: int

    @property
    def observed(self) -> ObservedPair:
        """Its units."""
        return self.pairs[self.row]

    def method(self, n_units: int) -> str:
        """Return how the power of a sample of some units is found."""
        if self.observed.signs is not None and n_units <= MOST_EXACT:
            return EXACT
        return SIMULATED if n_units * self.observed.n_fields <= MOST_SIMULATED else NORMAL


@dataclass(frozen=True, slots=True, eq=False)
class PowerPoint:
    """Units of a sample, and the tilt that they are drawn under."""

    place: PowerTarget
    strength: float
    n_units: int
    n_samples: int


def measured(points: Sequence[PowerPoint], test: RejectionRule, count: Count) -> list[tuple[float, float]]:
    """Return the power at some points, each with its standard error."""
    found: list[tuple[float, float]] = [(math.nan, 0.0)] * len(points)
    methods = [point.place.method(point.n_units) for point in points]
    for k, (point, method) in enumerate(zip(points, methods, strict=True)):
        if method == EXACT:
            found[k] = _exact(point, test), 0.0
        elif method == NORMAL:
            found[k] = _normal(point, test), 0.0
    listed = [*_jobs([k for k, method in enumerate(methods) if method == SIMULATED], points, test)]
    for (own, _), tally in zip(listed, count([job for _, job in listed]) if listed else (), strict=True):
        for k, rejected in zip(own, tally.counts[:, 0, 0].tolist(), strict=True):
            share = rejected / tally.n_trials
            careful = (rejected + 1) / (tally.n_trials + 2)  # no error of 0 where all or none are rejected
            found[k] = share, math.sqrt(careful * (1 - careful) / tally.n_trials)
    return found


def _jobs(own: Sequence[int], points: Sequence[PowerPoint], test: RejectionRule) -> Iterator[tuple[list[int], Job]]:
    """Yield the points that are simulated, some together, and the job that counts them."""
    groups: dict[tuple[int, int], list[int]] = {}
    for k in own:
        groups.setdefault((id(points[k].place.pairs), points[k].n_samples), []).append(k)
    for alike in groups.values():
        for start in range(0, len(alike), TOGETHER):
            some = alike[start : start + TOGETHER]
            yield some, Job(
                PowerSamples(
                    points[some[0]].place.pairs, test.alternative, test.level,
                    np.array([points[k].place.row for k in some]),
                    np.array([points[k].strength for k in some]),
                    np.array([points[k].n_units for k in some]),
                ),
                points[some[0]].n_samples,
                label="the power of comparisons",
            )  # fmt: skip


def _exact(point: PowerPoint, test: RejectionRule) -> float:
    observed, weights = point.place.observed, point.place.observed.weights(point.strength)
    ahead = observed.apart * point.place.side
    wins, losses = float(weights[ahead > 0].sum()), float(weights[ahead < 0].sum())
    return sign_power(point.n_units, wins, losses, test.level, test.sides)


def _normal(point: PowerPoint, test: RejectionRule) -> float:
    observed, weights = point.place.observed, point.place.observed.weights(point.strength)
    return normal_power(point.n_units, abs(observed.difference_at(weights)), observed.spread_at(weights), test)


def normal_power(n_units: float, difference: float, spread: float, test: RejectionRule) -> float:
    """Return the power by the normal approximation.

    The swaps' standard deviation is that of the second moment about 0, which holds the difference itself.
    """
    reach = difference * math.sqrt(n_units) - test.bar * math.hypot(spread, difference)
    return float(special.ndtr(reach / spread)) if spread else float(reach >= 0)


def first_units(difference: float, spread: float, test: RejectionRule, power: float) -> float:
    """Return about how many units find a difference."""
    asked = test.bar * math.hypot(spread, difference) + float(special.ndtri(power)) * spread
    return max((asked / difference) ** 2, 1.0)


def first_difference(n_units: int, spread: float, test: RejectionRule, power: float) -> float:
    """Return about which difference some units find."""
    return (test.bar + float(special.ndtri(power))) * spread / math.sqrt(n_units)
