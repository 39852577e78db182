"""Power for given units and differences: exact for sign tests, else simulated or by normal approximation."""

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
from sigdask.statistics.power.sign_power import compute_sign_power

Count = Callable[[Sequence[Job]], Sequence[Tally]]

MAX_SIMULATED = 50_000
"""Contributions of units to a sample (units times fields) beyond which the normal approximation serves."""

MAX_EXACT = 10**7
"""Units of a sign test beyond which it serves as well."""

POINTS_PER_JOB = 64
"""Points of one job."""


@dataclass(frozen=True, slots=True, eq=False)
class RejectionRule:
    """How samples are tested in a power analysis: alternative, level, and number of samples.

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
    def n_sides(self) -> int:
        """Number of sides of the test."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def critical_z(self) -> float:
        """The normal deviate that the test statistic must reach for rejection."""
        return -float(special.ndtri(self.level / self.n_sides))


@dataclass(frozen=True, slots=True, eq=False)
class PowerTarget:
    """A pair of systems under a metric, and which of them is assumed to score higher.

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
        """The observed units of the pair."""
        return self.pairs[self.row]

    def choose_method(self, n_units: int) -> str:
        """Return the method that computes the power of samples of `n_units` units."""
        if self.observed.sign_counts is not None and n_units <= MAX_EXACT:
            return EXACT
        return SIMULATED if n_units * self.observed.n_fields <= MAX_SIMULATED else NORMAL


@dataclass(frozen=True, slots=True, eq=False)
class PowerPoint:
    """A point of a power curve: the target, the tilt strength, and the numbers of units and of samples."""

    target: PowerTarget
    strength: float
    n_units: int
    n_samples: int


def measure_power(points: Sequence[PowerPoint], rule: RejectionRule, count: Count) -> list[tuple[float, float]]:
    """Return (power, standard error) at each of some points."""
    results: list[tuple[float, float]] = [(math.nan, 0.0)] * len(points)
    methods = [point.target.choose_method(point.n_units) for point in points]
    for k, (point, method) in enumerate(zip(points, methods, strict=True)):
        if method == EXACT:
            results[k] = _compute_exact(point, rule), 0.0
        elif method == NORMAL:
            results[k] = _compute_normal(point, rule), 0.0
    batches = [*_iter_jobs([k for k, method in enumerate(methods) if method == SIMULATED], points, rule)]
    for (indices, _), tally in zip(batches, count([job for _, job in batches]) if batches else (), strict=True):
        for k, rejected in zip(indices, tally.counts[:, 0, 0].tolist(), strict=True):
            share = rejected / tally.n_trials
            careful = (rejected + 1) / (tally.n_trials + 2)  # no error of 0 where all or none are rejected
            results[k] = share, math.sqrt(careful * (1 - careful) / tally.n_trials)
    return results


def _iter_jobs(
    indices: Sequence[int], points: Sequence[PowerPoint], rule: RejectionRule
) -> Iterator[tuple[list[int], Job]]:
    """Yield batches of points to simulate, each with the job that counts it."""
    groups: dict[tuple[int, int], list[int]] = {}
    for k in indices:
        groups.setdefault((id(points[k].target.pairs), points[k].n_samples), []).append(k)
    for group in groups.values():
        for start in range(0, len(group), POINTS_PER_JOB):
            batch = group[start : start + POINTS_PER_JOB]
            yield batch, Job(
                PowerSamples(
                    points[batch[0]].target.pairs, rule.alternative, rule.level,
                    np.array([points[k].target.row for k in batch]),
                    np.array([points[k].strength for k in batch]),
                    np.array([points[k].n_units for k in batch]),
                ),
                points[batch[0]].n_samples,
                label="the power of comparisons",
            )  # fmt: skip


def _compute_exact(point: PowerPoint, rule: RejectionRule) -> float:
    observed, weights = point.target.observed, point.target.observed.compute_weights(point.strength)
    leads = observed.numerator_differences * point.target.side
    wins, losses = float(weights[leads > 0].sum()), float(weights[leads < 0].sum())
    return compute_sign_power(point.n_units, wins, losses, rule.level, rule.n_sides)


def _compute_normal(point: PowerPoint, rule: RejectionRule) -> float:
    observed, weights = point.target.observed, point.target.observed.compute_weights(point.strength)
    return compute_normal_power(
        point.n_units, abs(observed.compute_difference(weights)), observed.compute_spread(weights), rule
    )


def compute_normal_power(n_units: float, difference: float, spread: float, rule: RejectionRule) -> float:
    """Return the power of a number of units at a difference by the normal approximation.

    The swaps' standard deviation is that of the second moment about 0, which holds the difference itself.
    """
    margin = difference * math.sqrt(n_units) - rule.critical_z * math.hypot(spread, difference)
    return float(special.ndtr(margin / spread)) if spread else float(margin >= 0)


def guess_units(difference: float, spread: float, rule: RejectionRule, power: float) -> float:
    """Return the approximate number of units that detect a difference with the given power."""
    required = rule.critical_z * math.hypot(spread, difference) + float(special.ndtri(power)) * spread
    return max((required / difference) ** 2, 1.0)


def guess_difference(n_units: int, spread: float, rule: RejectionRule, power: float) -> float:
    """Return the approximate difference that a number of units detects with the given power."""
    return (rule.critical_z + float(special.ndtri(power))) * spread / math.sqrt(n_units)
