"""Power analysis: the number of units that detect a difference, and the difference that the present units detect.

Power is exact for sign tests. Otherwise it is simulated, or computed by the normal approximation. Searches of several
comparisons advance together, one point at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

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


SAMPLES, FEWER_SAMPLES, MANY_COMPARISONS = 2_000, 500, 100
"""Samples for each point, fewer samples for many comparisons, and how many comparisons are many."""


@dataclass(frozen=True, slots=True)
class PowerQuestion:
    """The question of a power analysis, and how samples are tested, the same for every comparison.

    Attributes
    ----------
    power : float
        The requested power.
    difference : float or None
        Size of the difference for which units are requested.
    n_units : int or None
        Number of units for which the detectable difference is requested; None for the observed number.
    alternative : str
        Alternative of the test.
    level : float
        Level with which p is compared.
    n_samples : int
        Samples of each point.
    """

    power: float
    difference: float | None
    n_units: int | None
    alternative: Alternative
    level: float
    n_samples: int = SAMPLES

    @property
    def n_sides(self) -> int:
        """Number of sides of the test."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def critical_z(self) -> float:
        """The normal deviate that the test statistic must reach for rejection."""
        return -float(scipy.special.ndtri(self.level / self.n_sides))


@dataclass(slots=True, eq=False)
class PowerSearch:
    """The search for required units and the detectable difference of one comparison, with its state.

    Attributes
    ----------
    pairs : SystemPairs
        Pairs of systems under one metric.
    row : int
        The pair.
    side : int
        1 if A is assumed to score higher, -1 if B.
    question : PowerQuestion
        What is asked.
    reachable, note, curve
        As in `Power`.
    strength : float or None
        Strength of the tilt that gives the requested difference.
    needed, detectable : PowerCrossing or None
        The searches for the number of units, and for the difference.
    """

    pairs: SystemPairs
    row: int
    side: int
    question: PowerQuestion
    reachable: tuple[float, float] | None = None
    note: str | None = None
    strength: float | None = None
    needed: PowerCrossing | None = None
    detectable: PowerCrossing | None = None
    curve: dict[tuple[int, float], PowerAt] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the searches, or note why there is nothing to search for."""
        observed, side = self.observed, self.side
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
        self._start_difference_search(max(low, 0.0), high)
        if self.question.difference is not None:
            self._start_unit_search(self.question.difference, low, high)

    @property
    def observed(self) -> ObservedPair:
        """The observed units of the pair."""
        return self.pairs[self.row]

    @property
    def n_requested(self) -> int:
        """Number of units that the question asks about, by default the number of observed units."""
        return self.question.n_units or self.observed.n_units

    def _find_strength(self, difference: float) -> float | None:
        return self.observed.find_strength(self.side * difference)

    def _start_unit_search(self, difference: float, low: float, high: float) -> None:
        question = self.question
        self.strength = self._find_strength(difference)
        if self.strength is None or high <= 1 + MARGIN <= difference + 2 * MARGIN:
            reach = f"possible are {max(low, 0.0):.4g} to {high:.4g}"
            if high <= 1 + MARGIN <= difference + 2 * MARGIN:
                reach = f"it must be below {high:.4g}. {ONE_POINT}"
            self.strength = None
            self.note = f"a difference of {difference:g} is impossible with units like these: {reach}"
            return
        spread = self.observed.compute_spread(self.observed.compute_weights(self.strength))
        required = question.critical_z * math.hypot(spread, difference)
        required += float(scipy.special.ndtri(question.power)) * spread
        lower = max(MIN_UNITS, math.ceil(math.log2(question.n_sides / question.level) - 1e-12))
        self.needed = self._build_search(max((required / difference) ** 2, 1.0), lower, MAX_UNITS, is_integer=True)

    def _start_difference_search(self, low: float, high: float) -> None:
        observed, strength, guess = self.observed, 0.0, high
        z = self.question.critical_z + float(scipy.special.ndtri(self.question.power))
        for _ in range(FIRST_STEPS):
            guess = z * observed.compute_spread(observed.compute_weights(strength)) / math.sqrt(self.n_requested)
            new_strength = self._find_strength(min(max(guess, low), high))
            if new_strength is None:
                break
            strength = new_strength
        margin = MARGIN * (high - low)
        self.detectable = self._build_search(guess, low + margin, high - margin, is_integer=False)

    def _build_search(self, place: float, lower: float, upper: float, *, is_integer: bool) -> PowerCrossing:
        """Return a search whose first points are simulated with fewer samples, unless power is exact."""
        target, bar, is_rough = self.question.power, self.question.critical_z, self.observed.sign_counts is None
        return PowerCrossing(target, bar, place, lower, upper, is_integer, is_rough)

    def iter_first_points(self) -> Iterator[PowerPoint]:
        """Yield the point that the question itself asks for.

        The power at the observed difference is no such point: it restates p (Hoenig & Heisey 2001, "The abuse of
        power").
        """
        if self.reachable is not None and self.strength is not None and self.question.difference is not None:
            yield PowerPoint(self, None, self.observed.n_units, self.question.difference, self.strength)

    def iter_next_points(self) -> Iterator[PowerPoint]:
        """Yield the next point of each unfinished search."""
        if self.needed is not None and self.needed.answer is None:
            assert self.question.difference is not None
            assert self.strength is not None
            yield PowerPoint(self, self.needed, int(self.needed.place), self.question.difference, self.strength)
        if self.detectable is not None and self.detectable.answer is None:
            difference = self.detectable.place
            if (strength := self._find_strength(difference)) is None:
                self.detectable.answer = Estimate(math.inf, math.inf, math.inf)
            else:
                yield PowerPoint(self, self.detectable, self.n_requested, difference, strength)

    def choose_method(self, n_units: int) -> str:
        """Return the method that computes the power of samples of `n_units` units."""
        if self.observed.sign_counts is not None and n_units <= MAX_EXACT:
            return EXACT
        return SIMULATED if n_units * self.observed.n_fields <= MAX_SIMULATED else NORMAL

    def build_power(self, names: tuple[str, str], test_set: str, unit: str) -> Power:
        """Return the power of the comparison as found by the search."""
        observed, question = self.observed, self.question
        detectable = None if self.detectable is None else self.detectable.answer
        is_found = detectable is not None and math.isfinite(detectable.value)
        strengths = self.strength, self._find_strength(detectable.value) if detectable and is_found else None
        n_effective = [
            None if strength is None else tilting.compute_n_effective(observed.compute_weights(strength))
            for strength in strengths
        ]
        looks = self.needed.looks if self.needed is not None else []
        last_units = int(looks[-1].position) if looks else self.n_requested
        return Power(
            test_set=test_set,
            a=names[0],
            b=names[1],
            metric=observed.panel.metrics[0].name,
            unit=unit,
            alternative=question.alternative,
            level=question.level,
            power=question.power,
            n_units=observed.n_units,
            difference=observed.difference,
            ahead=names[0] if self.side > 0 else names[1],
            reachable=self.reachable,
            wanted_difference=question.difference,
            needed=None if self.needed is None else self.needed.answer,
            at_wanted=self.curve.get((observed.n_units, question.difference or 0.0)),
            n_asked=self.n_requested,
            detectable=detectable,
            curve=tuple(self.curve[key] for key in sorted(self.curve)),
            method=EXACT if self.reachable is None else self.choose_method(last_units),
            n_samples=question.n_samples if any(point.error for point in self.curve.values()) else 0,
            n_effective=n_effective[0],
            n_effective_detectable=n_effective[1],
            note=self.note,
        )


class PowerPoint(NamedTuple):
    """A point to measure: the search, which of its two crossings it belongs to, units, difference and its tilt."""

    search: PowerSearch
    crossing: PowerCrossing | None
    n_units: int
    difference: float
    strength: float

    @property
    def n_samples(self) -> int:
        """Number of samples to draw."""
        is_rough = self.crossing is not None and self.crossing.rough
        return self.search.question.n_samples // (ROUGH_FACTOR if is_rough else 1)

    def compute_exact(self) -> float:
        """Return the power of the sign test."""
        observed, question = self.search.observed, self.search.question
        weights, leads = observed.compute_weights(self.strength), observed.numerator_differences * self.search.side
        wins, losses = float(weights[leads > 0].sum()), float(weights[leads < 0].sum())
        return compute_sign_power(self.n_units, wins, losses, question.level, question.n_sides)

    def compute_normal(self) -> float:
        """Return the power by the normal approximation.

        The standard deviation under swaps comes from the second moment about 0, which includes the difference itself.
        """
        observed = self.search.observed
        weights = observed.compute_weights(self.strength)
        difference, spread = abs(observed.compute_difference(weights)), observed.compute_spread(weights)
        bar = self.search.question.critical_z * math.hypot(spread, difference)
        margin = difference * math.sqrt(self.n_units) - bar
        return float(scipy.special.ndtr(margin / spread)) if spread else float(margin >= 0)

    def record(self, power: float, error: float) -> None:
        """Record the measured power in the search."""
        if self.crossing is None or not self.crossing.rough:
            self.search.curve[self.n_units, self.difference] = PowerAt(self.n_units, self.difference, power, error)
        if self.crossing is not None:
            self.crossing.add_power(power, error)


def run_searches(searches: Sequence[PowerSearch], count: Count) -> None:
    """Run all searches together to their end."""
    pending = [point for search in searches for point in search.iter_first_points()]
    with limit_blas_threads():  # limited once: to limit and free it in every task costs more than the products
        while True:
            pending = pending or [point for search in searches for point in search.iter_next_points()]
            if not pending:
                return
            measured = measure_power(pending, count)
            for point, (power, error) in zip(pending, measured, strict=True):
                point.record(power, error)
            pending = []


def measure_power(points: Sequence[PowerPoint], count: Count) -> list[tuple[float, float]]:
    """Return (power, standard error) at each of some points."""
    results: list[tuple[float, float]] = [(math.nan, 0.0)] * len(points)
    groups: dict[tuple[int, int], list[int]] = {}
    for k, point in enumerate(points):
        method = point.search.choose_method(point.n_units)
        if method == SIMULATED:
            groups.setdefault((id(point.search.pairs), point.n_samples), []).append(k)
        else:
            results[k] = point.compute_exact() if method == EXACT else point.compute_normal(), 0.0
    batches = [
        group[start : start + POINTS_PER_JOB]
        for group in groups.values()
        for start in range(0, len(group), POINTS_PER_JOB)
    ]
    jobs = [_build_job([points[k] for k in batch]) for batch in batches]
    for batch, tally in zip(batches, count(jobs) if jobs else (), strict=True):
        for k, rejected in zip(batch, tally.counts[:, 0, 0].tolist(), strict=True):
            careful = (rejected + 1) / (tally.n_trials + 2)  # avoids an error of 0 if all or none are rejected
            results[k] = rejected / tally.n_trials, math.sqrt(careful * (1 - careful) / tally.n_trials)
    return results


def _build_job(points: Sequence[PowerPoint]) -> Job:
    """Return the job that simulates points of the same pairs and number of samples."""
    first, question = points[0], points[0].search.question
    rows, strengths, sizes = (
        np.array(column) for column in zip(*((p.search.row, p.strength, p.n_units) for p in points), strict=True)
    )
    samples = PowerSamples(first.search.pairs, question.alternative, question.level, rows, strengths, sizes)
    return Job(samples, first.n_samples, label="the power of comparisons")


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
    question = replace(question, level=level, n_samples=n_samples)
    searches = [PowerSearch(pairs, row, _get_side(pairs, row, alternative), question) for pairs, row, _ in comparisons]
    _check_answerable(searches, [names for *_, names in comparisons], question)
    run_searches(searches, count)
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
    question = PowerQuestion(power, difference, options["units"], options["alternative"], options["alpha"])
    if difference is None:
        return question
    if difference == 0:
        raise InputError("difference = 0: must be above 0")
    if not np.isfinite(difference):
        raise InputError(f"difference = {difference}: must be a number")
    if difference < 0 and (alternative := options["alternative"]) != "two-sided":
        raise InputError(
            f"difference = {difference:g}: must be positive; alternative {alternative} already says which system is "
            "better"
        )
    return replace(question, difference=abs(difference))


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
    raise InputError(f"{a} and {b} by {searches[0].observed.panel.metrics[0].name}: {searches[0].note}{suffix}")


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
