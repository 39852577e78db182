"""Power analysis: the number of units that detect a difference, and the difference that the present units detect.

Power is exact for sign tests. Otherwise it is simulated, or computed by the normal approximation. Searches of several
comparisons advance together, one point at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy

from sigdask.analysis.comparison.nesting import find_coarsest
from sigdask.analysis.comparison.pairs import CompareSpec, list_pairs
from sigdask.analysis.comparison.study import SetAnalysis, build_specs
from sigdask.counts import Counts
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.execution.extract import extract_with_options
from sigdask.execution.run import connect_once, count_with_options
from sigdask.interface import spell
from sigdask.metrics.base import BoundMetric
from sigdask.options import OPTIONS, Alternative, PowerOptions, SelectionOptions, fill_options
from sigdask.randomization.kernels.blas import limit_blas_threads
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power import ObservedPair, PowerSamples, SystemPairs, can_decide
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results.comparisons import get_version
from sigdask.results.export import ListedResults
from sigdask.statistics import power as tilting
from sigdask.statistics.bounds import MAX_TRIALS
from sigdask.statistics.power import Estimate, PowerCrossing, compute_sign_power
from sigdask.text import format_count, to_plain

EXACT, SIMULATED, NORMAL = "exact", "simulated", "normal approximation"


@dataclass(frozen=True, slots=True)
class PowerAt:
    """The power at one number of units and one difference.

    Attributes
    ----------
    n_units : int
        Units of each sample.
    difference : float
        Size of the difference of scores.
    power : float
        Share of samples that the test rejects.
    error : float
        Its standard error by Monte Carlo. 0 if the power is exact.
    """

    n_units: int
    difference: float
    power: float
    error: float


FEW_EFFECTIVE = 10.0
"""Minimum effective number of units of a tilted population. Fewer are too few to be trusted."""


@dataclass(frozen=True, slots=True)
class Power:
    """The power of one comparison.

    Attributes
    ----------
    test_set, a, b, metric, unit : str
        The comparison, and its swapped unit.
    alternative : str
        Alternative of the test.
    level : float
        Level with which each p is compared.
    power : float
        The requested power.
    n_units : int
        Number of observed units.
    difference : float
        The observed score_a - score_b.
    ahead : str
        The system that is assumed to score higher by the difference in question. It is the worse one if lower scores
        are better.
    reachable : tuple of float, or None
        Smallest and largest difference that tilting the observed units can reach. None if all units are equal.
    wanted_difference : float or None
        The requested difference.
    needed : Estimate or None
        Number of units that detect it with the power you set.
    at_wanted : PowerAt or None
        Power of the present units for this difference.
    n_asked : int
        Number of units for `detectable`.
    detectable : Estimate or None
        Smallest difference that they detect with the power you set. Infinite if no reachable difference is detected.
    curve : tuple of PowerAt
        Points of the search: the power for numbers of units and differences.
    method : str
        "exact" (sign tests), "simulated", or "normal approximation" (beyond the units that are simulated).
    n_samples : int
        Number of samples for each point of the curve. 0 if nothing was simulated.
    n_effective : float or None
        Effective number of units for the requested difference: as many equally likely units would vary as much.
    n_effective_detectable : float or None
        Effective number of units for the detectable difference.
    note : str or None
        A remark on the result, or the reason why there is none.
    """

    test_set: str
    a: str
    b: str
    metric: str
    unit: str
    alternative: str
    level: float
    power: float
    n_units: int
    difference: float
    ahead: str
    reachable: tuple[float, float] | None
    wanted_difference: float | None
    needed: Estimate | None
    at_wanted: PowerAt | None
    n_asked: int
    detectable: Estimate | None
    curve: tuple[PowerAt, ...]
    method: str
    n_samples: int
    n_effective: float | None
    n_effective_detectable: float | None
    note: str | None

    @property
    def is_needed_uncertain(self) -> bool:
        """Whether `needed` rests on fewer than ten effective units (`n_effective`)."""
        return self.n_effective is not None and self.n_effective < FEW_EFFECTIVE

    @property
    def is_detectable_uncertain(self) -> bool:
        """Whether `detectable` rests on fewer than ten effective units (`n_effective_detectable`)."""
        return self.n_effective_detectable is not None and self.n_effective_detectable < FEW_EFFECTIVE

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with null for infinite values."""
        return dict(to_plain(self))


@dataclass(frozen=True, slots=True)
class PowerResults(ListedResults[Power]):
    """The power of all comparisons of one call.

    Attributes
    ----------
    found : tuple of Power
        Power of each comparison, in the order of metrics and pairs.
    alpha : float
        Level of the test.
    adjust : str
        "none", or "holm": the first step of Holm, whose level all comparisons share.
    seed : int
        Seed of the random stream.
    notes : tuple of str
        Notes on all comparisons together.
    """

    found: tuple[Power, ...]
    alpha: float
    adjust: str
    seed: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return a summary with a line for each comparison."""
        lines = (
            f"{power.a} and {power.b} by {power.metric}, with power {power.power:g}: "
            + (f"{power.needed.value:,.0f} units detect {power.wanted_difference:g}; " if power.needed else "")
            + (f"{power.n_asked:,} units detect {power.detectable.value:.3g}" if power.detectable else str(power.note))
            for power in self.found
        )
        warnings = [f"warning: {note}" for note in self.notes if isinstance(note, ScopeNote)]
        return "\n".join([f"Powers: {format_count(len(self), 'comparison')}, alpha {self.alpha:g}", *warnings, *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, made of plain Python values."""
        header = {"sigdask": get_version(), "alpha": self.alpha, "adjust": self.adjust, "seed": self.seed}
        return header | {"notes": list(self.notes), "power": [power.to_dict() for power in self.found]}


Count = Callable[[Sequence[Job]], Sequence[Tally]]

MAX_SIMULATED = 50_000
"""Maximum unit sums of a sample (units times fields). Beyond it, the normal approximation is used."""

MAX_EXACT = 10**7
"""Maximum units of an exact sign test. Beyond it, the normal approximation is used."""

POINTS_PER_JOB = 64


@dataclass(frozen=True, slots=True, eq=False)
class RejectionRule:
    """How samples are tested in a power analysis: alternative, level, and number of samples.

    Attributes
    ----------
    alternative : str
        Alternative of the test.
    level : float
        Level with which p is compared.
    n_samples : int
        Samples of each point.
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
        return -float(scipy.special.ndtri(self.level / self.n_sides))


@dataclass(frozen=True, slots=True, eq=False)
class PowerTarget:
    """A pair of systems under a metric, and which of them is assumed to score higher.

    Attributes
    ----------
    pairs : SystemPairs
        Pairs of systems under one metric.
    row : int
        The pair.
    side : int
        1 if A is assumed to score higher, -1 if B.
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
            observed, weights = point.target.observed, point.target.observed.compute_weights(point.strength)
            leads = observed.numerator_differences * point.target.side
            wins, losses = float(weights[leads > 0].sum()), float(weights[leads < 0].sum())
            results[k] = compute_sign_power(point.n_units, wins, losses, rule.level, rule.n_sides), 0.0
        elif method == NORMAL:
            results[k] = _compute_normal(point, rule), 0.0
    batches = [*_iter_jobs([k for k, method in enumerate(methods) if method == SIMULATED], points, rule)]
    for (indices, _), tally in zip(batches, count([job for _, job in batches]) if batches else (), strict=True):
        for k, rejected in zip(indices, tally.counts[:, 0, 0].tolist(), strict=True):
            share = rejected / tally.n_trials
            careful = (rejected + 1) / (tally.n_trials + 2)  # avoids an error of 0 if all or none are rejected
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


def _compute_normal(point: PowerPoint, rule: RejectionRule) -> float:
    """Return the power at a point by the normal approximation.

    The standard deviation under swaps comes from the second moment about 0, which includes the difference itself.
    """
    observed, weights = point.target.observed, point.target.observed.compute_weights(point.strength)
    difference, spread = abs(observed.compute_difference(weights)), observed.compute_spread(weights)
    margin = difference * math.sqrt(point.n_units) - rule.critical_z * math.hypot(spread, difference)
    return float(scipy.special.ndtr(margin / spread)) if spread else float(margin >= 0)


def guess_units(difference: float, spread: float, rule: RejectionRule, power: float) -> float:
    """Return the approximate number of units that detect a difference with the given power."""
    required = rule.critical_z * math.hypot(spread, difference) + float(scipy.special.ndtri(power)) * spread
    return max((required / difference) ** 2, 1.0)


def guess_difference(n_units: int, spread: float, rule: RejectionRule, power: float) -> float:
    """Return the approximate difference that a number of units detects with the given power."""
    return (rule.critical_z + float(scipy.special.ndtri(power))) * spread / math.sqrt(n_units)


MIN_UNITS = 2
"""Minimum number of units from which power is estimated."""

MAX_UNITS = 10**12
"""Largest number of units that is reported. If more are needed, the answer is that no number is enough."""

FIRST_STEPS, ROUGH_FACTOR = 3, 4
"""Steps before the first check, and the factor by which rough checks use fewer samples."""

MARGIN = 1e-9
"""Searches stay below this share of the largest difference that tilting can reach."""

LARGE_SHARE = 0.25
"""A difference of shares of at least this size is probably meant in points of 100."""

ONE_POINT = "One point of accuracy, F1 or another share is 0.01"


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """A power analysis's question: power, difference and number of units, the same for every comparison.

    Attributes
    ----------
    power : float
        The requested power.
    difference : float or None
        Size of the difference for which units are requested.
    n_units : int or None
        Number of units for which the detectable difference is requested; None for the observed number.
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
            self.note = f"{observed.n_units} unit: power depends on how units vary, so at least 2 are needed"
            return
        if not observed.panel.n_discordant[0, 0] or not (observed.difference or observed.influences.any()):
            self.note = "the systems are equal on every unit, so the data do not show how they would differ on others"
            return
        low, high = (
            side * tilting.find_extreme_difference(observed.influences, observed.compute_difference, end * side)
            for end in (-1, 1)
        )
        self.reachable = low, high
        if high <= 0:
            self.note = "no unit favours the tested side, so no reweighting of the units gives such a difference"
            return
        self.detectable = self._build_difference_search(max(low, 0.0), high)
        if self.question.difference is not None:
            self._start_unit_search(self.question.difference, low, high)

    def _start_unit_search(self, difference: float, low: float, high: float) -> None:
        observed = self.target.observed
        self.strength = observed.find_strength(self.target.side * difference)
        if high <= 1 + MARGIN <= difference + 2 * MARGIN:
            self.strength = None
            reach = f"it must be below {high:.4g}"
            self.note = f"a difference of {difference:g} is impossible with units like these: {reach}. {ONE_POINT}"
            return
        if self.strength is None:
            reach = f"{max(low, 0.0):.4g} to {high:.4g}"
            self.note = f"a difference of {difference:g} is impossible with units like these: possible are {reach}"
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
        observed, strength, guess = self.target.observed, 0.0, high
        for _ in range(FIRST_STEPS):
            spread = observed.compute_spread(observed.compute_weights(strength))
            guess = guess_difference(self.n_requested, spread, self.rule, self.question.power)
            new_strength = observed.find_strength(self.target.side * min(max(guess, low), high))
            if new_strength is None:
                break
            strength = new_strength
        return PowerCrossing(
            target=self.question.power,
            bar=self.rule.critical_z,
            place=guess,
            lower=low + MARGIN * (high - low),
            upper=high - MARGIN * (high - low),
            is_integer=False,
            rough=self._is_rough,
        )

    @property
    def _is_rough(self) -> bool:
        """Whether the first points are simulated with fewer samples; False if power is exact."""
        return self.target.observed.sign_counts is None

    @property
    def n_requested(self) -> int:
        """Number of units that the question asks about, by default the number of observed units."""
        return self.question.n_units or self.target.observed.n_units

    def iter_first_points(self) -> Iterator[tuple[int, float, float]]:
        """Yield the units, difference and tilt strength of the point that the question itself asks for.

        The power at the observed difference is no such point: it restates p (Hoenig & Heisey 2001, "The abuse of
        power").
        """
        if self.reachable is not None and self.strength is not None and self.question.difference is not None:
            yield self.target.observed.n_units, self.question.difference, self.strength

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
            curve=tuple(self.curve[key] for key in sorted(self.curve)),
            method=self._choose_method(),
            n_samples=self.rule.n_samples if is_simulated else 0,
            n_effective=self._count_effective(self.strength),
            n_effective_detectable=self._count_effective(self._find_strength(detectable)),
            note=self.note,
        )

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


def run_searches(searches: Sequence[PowerSearch], rule: RejectionRule, count: Count) -> None:
    """Run all searches together to their end."""

    def list_next() -> list[tuple[PowerSearch, PowerCrossing | None, int, float, float]]:
        return [(search, *next_point) for search in searches for next_point in search.iter_next_points()]

    first = [(search, None, *point) for search in searches for point in search.iter_first_points()]
    pending = first or list_next()
    with limit_blas_threads():  # limited once: to limit and free it in every task costs more than the products
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
            pending = list_next()


SAMPLES, FEWER_SAMPLES, MANY_COMPARISONS = 2_000, 500, 100
"""Samples for each point, fewer samples for many comparisons, and how many comparisons are many."""


def estimate_powers(
    counts: Counts, spec: CompareSpec, question: PowerQuestion, options: PowerOptions, count: Count
) -> PowerResults:
    """Return the estimated power of every comparison of a test set.

    Parameters
    ----------
    counts : Counts
        The data of the systems.
    spec : CompareSpec
        Metrics, pairs, unit and seed.
    question : PowerQuestion
        The question for each comparison.
    options : PowerOptions
        The test, its level, and the number of samples of each point (None for 2,000, and 500 for more than 100
        comparisons).
    count : callable
        Counts jobs: `count_jobs`.

    Raises
    ------
    InputError
        The question has no answer for any comparison. The message says why.
    """
    grouped = counts.with_unit(find_coarsest(counts, spec.levels) if spec.levels else counts.unit)
    comparisons = [*_iter_comparisons(grouped, spec)]
    if not comparisons:
        raise InputError(
            "no two systems have an item in common, so there is no comparison whose power could be computed"
        )
    n, alpha, alternative = len(comparisons), options["alpha"], options["alternative"]
    level = alpha / n if options["adjust"] == "holm" else alpha
    if not can_decide(level):
        raise InputError(
            f"level {level:.3g}: simulations at such a small level take too long",
            remedy="raise alpha, or compare fewer systems",
        )
    n_samples = options["samples"] or (SAMPLES if n <= MANY_COMPARISONS else FEWER_SAMPLES)
    rule = RejectionRule(alternative, level, n_samples)
    searches = [
        PowerSearch(PowerTarget(pairs, row, _get_side(pairs, row, alternative)), question, rule)
        for pairs, row, _ in comparisons
    ]
    _check_answerable(searches, [names for *_, names in comparisons], question)
    run_searches(searches, rule, count)
    powers = tuple(
        power_search.build_power(names, grouped.name, grouped.unit)
        for power_search, (*_, names) in zip(searches, comparisons, strict=True)
    )
    notes = (
        *_warn_of_correlation(counts, spec, alpha),
        *_question_difference(powers),
        *_iter_notes(powers, options, level),
    )
    return PowerResults(powers, alpha, options["adjust"], spec.seed, notes)


def build_question(options: PowerOptions) -> PowerQuestion:
    """Return the question of a power analysis, with a positive difference; raise if its options are not valid."""
    power, difference = options["power"], options["difference"]
    if not options["alpha"] < power < 1:
        share = f"; write {power / 100:g} for {power:g} %" if 1 < power < 100 else ""
        raise InputError(f"power = {power:g}: must lie between alpha ({options['alpha']:g}) and 1{share}")
    for name, number, least in (("units", options["units"], 2), ("samples", options["samples"], 100)):
        if number is not None and not least <= number <= MAX_TRIALS:
            raise InputError(f"must be at least {least}", option=name, found=number)
    if difference is None:
        return PowerQuestion(power, None, options["units"])
    if difference == 0:
        raise InputError("difference = 0: must be above 0")
    if not np.isfinite(difference):
        raise InputError(f"difference = {difference}: must be a number")
    if difference < 0 and (alternative := options["alternative"]) != "two-sided":
        raise InputError(
            f"difference = {difference:g}: must be positive; alternative {alternative} already says which system is "
            "better"
        )
    return PowerQuestion(power, abs(difference), options["units"])


def _iter_comparisons(counts: Counts, spec: CompareSpec) -> Iterator[tuple[SystemPairs, int, tuple[str, str]]]:
    """Yield each comparison as the pairs of its panel, its row among them, and the names of its systems."""
    units, pairs = SwapUnits.from_counts(counts, spec.seed), list_pairs(counts, spec.pairs, spec.baseline)
    if not len(pairs):
        raise InputError("power needs at least two systems", remedy="give another file or column")
    for metric in spec.bind_metrics(counts).metrics:
        if not isinstance(metric, BoundMetric):
            raise InputError(
                f"metric {metric if isinstance(metric, str) else metric.name}: power needs a metric that is "
                "computed from sums over items. Metrics of agreement with people, of sets, and functions of whole "
                "outputs are not"
            )
        position_of: dict[int, tuple[SystemPairs, int]] = {}
        for placed in PanelGroups.from_metrics(counts, [metric], pairs).build(units, every_unit=True):
            system_pairs = SystemPairs(placed.panel)
            if placed.panel.n_units:  # otherwise the two have no item in common
                position_of |= {k: (system_pairs, row) for row, k in enumerate(placed.pair_indices.tolist())}
        for k in sorted(position_of):
            a, b = pairs[k]
            yield *position_of[k], (counts.systems[a], counts.systems[b])


def _get_side(pairs: SystemPairs, row: int, alternative: Alternative) -> int:
    if alternative == "two-sided":
        return 1 if pairs[row].difference >= 0 else -1
    return 1 if alternative == "greater" else -1


def _check_answerable(
    searches: Sequence[PowerSearch], names: Sequence[tuple[str, str]], question: PowerQuestion
) -> None:
    """Raise if the question has no answer for any comparison."""
    if any(
        (power_search.needed if question.difference is not None else power_search.detectable) is not None
        for power_search in searches
    ):
        return
    a, b = names[0]
    suffix = f" (and {len(searches) - 1} more comparisons like it)" if len(searches) > 1 else ""
    raise InputError(f"{a} and {b} by {searches[0].target.observed.panel.metrics[0].name}: {searches[0].note}{suffix}")


def _warn_of_correlation(counts: Counts, spec: CompareSpec, alpha: float) -> Iterator[str]:
    """Yield a warning for each coarser column within which differences are correlated, as in `compare`."""
    if counts.groups:
        for note in SetAnalysis.from_spec(counts, spec, alpha=alpha, second_run=False).notes:
            if note.kind == "dependence":
                yield ScopeNote(f"the answer below is too optimistic: {note.text}")


def _question_difference(powers: Sequence[Power]) -> Iterator[str]:
    """Yield a warning if the requested difference of shares was probably meant in points of 100."""
    for power in powers:
        difference = power.wanted_difference or 0.0
        if power.reachable is not None and difference >= LARGE_SHARE and power.reachable[1] <= 1 + MARGIN:
            points = f"difference {difference:g} is {100 * difference:g} points of {power.metric}"
            yield ScopeNote(f"{points}: is that what you mean? {ONE_POINT}")
            return


def _iter_notes(powers: Sequence[Power], options: PowerOptions, level: float) -> Iterator[str]:
    n = len(powers)
    if n > 1 and options["adjust"] == "none":
        yield (
            f"each comparison is tested alone at {options['alpha']:g}; the {n:,} together, adjusted, need more "
            f"units: {spell('adjust', 'holm')} tests each at the level of Holm's first step"
        )
    elif n > 1:
        yield (
            f"each comparison is tested at {level:.3g}, the first step of Holm, so power is at least as high as stated"
        )


def compute_powers(counts: Counts | Any, options: PowerOptions) -> PowerResults:
    """Compute how many units are needed to detect a difference, or which difference some units detect.

    Parameters
    ----------
    counts : Counts, or what `compare_all` takes
        The data of the systems.
    options : PowerOptions
        The options of `sigdask.power`, which describes them.
    """
    all_options = fill_options(PowerOptions, options)
    if all_options["difference"] is not None and all_options["units"] is not None:
        raise InputError("difference and units: give one of them; sigdask computes the other")
    question = build_question(all_options)
    selection = fill_options(
        SelectionOptions, {name: value for name, value in options.items() if name in OPTIONS and name != "adjust"}
    )
    [(counts, spec)] = build_specs([counts], selection)
    [counts] = extract_with_options([(counts, spec.find_metrics(counts))], selection)
    with connect_once(selection["cluster"], selection["workers"]) as connected:
        count = partial(count_with_options, options={**selection, "cluster": connected})
        return estimate_powers(counts, spec, question, all_options, count)
