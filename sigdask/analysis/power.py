"""Power analysis: the number of units that detect a difference, and the difference that the present units detect.

Power is exact for sign tests. Otherwise it is simulated, or computed by the normal approximation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

from sigdask.analysis.comparison.classical import compute_unit_correlations
from sigdask.analysis.comparison.equal_scores import as_sums_panel
from sigdask.analysis.comparison.pairs import CompareSpec, bind_metric, build_full_panels, list_comparisons
from sigdask.analysis.comparison.study import build_specs, iter_dependence_notes
from sigdask.counts import Counts
from sigdask.counts.fields import Floats
from sigdask.counts.texts import ScopeNote
from sigdask.errors import InputError
from sigdask.execution.run import connect_once, count_with_options, extract_with_options, limit_blas_threads
from sigdask.interface import spell
from sigdask.metrics.base import BoundMetric
from sigdask.options import OPTIONS, Alternative, PowerOptions, SelectionOptions, fill_options
from sigdask.randomization.power import ObservedPair, PowerSamples, can_decide
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results.comparisons import get_version
from sigdask.results.export import ListedResults
from sigdask.statistics import power as tilting
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
    method : str
        "exact" (sign tests), "simulated", or "normal approximation" (beyond the units that are simulated).
    n_samples : int
        Number of samples for each power. 0 if nothing was simulated.
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


@dataclass(frozen=True, slots=True, repr=False)
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

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, made of plain Python values."""
        header = {"kind": "power", "sigdask": get_version(), "seed": self.seed, "alpha": self.alpha}
        return header | {"adjust": self.adjust, "notes": list(self.notes), "power": to_plain(self.found)}


Count = Callable[[Sequence[Job]], Sequence[Tally]]

MAX_SIMULATED = 50_000
"""Maximum unit sums of a sample (units times fields). Beyond it, the normal approximation is used."""

MAX_EXACT = 10**7
"""Maximum units of an exact sign test. Beyond it, the normal approximation is used."""

MIN_UNITS, MAX_UNITS = 2, 10**12
"""Minimum number of units from which power is estimated, and the largest number that is reported as needed."""

ROUGH_FACTOR = 4
"""Factor by which rough checks use fewer samples."""

MARGIN = 1e-9
"""Searches stay below this share of the largest difference that tilting can reach."""


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
    n_samples: int

    @property
    def n_sides(self) -> int:
        """Number of sides of the test."""
        return 2 if self.alternative == "two-sided" else 1

    @property
    def critical_z(self) -> float:
        """The normal deviate that the test statistic must reach for rejection."""
        return -float(scipy.special.ndtri(self.level / self.n_sides))

    @property
    def power_z(self) -> float:
        """The normal deviate of the requested power."""
        return float(scipy.special.ndtri(self.power))


@dataclass(slots=True, eq=False)
class PowerSearch:
    """The search for required units and the detectable difference of one comparison, with its state.

    Attributes
    ----------
    observed : ObservedPair
        The observed units.
    names : tuple of str
        Names of the two systems.
    question : PowerQuestion
        What is asked.
    count : callable
        Counts jobs: `count_jobs`.
    side : int
        1 if A is assumed to score higher, -1 if B.
    reachable, note, needed, at_wanted, detectable, n_samples
        As in `Power`.
    strength : float or None
        Strength of the tilt that gives the requested difference.
    method : str
        Method of the last number of units that was measured.
    """

    observed: ObservedPair
    names: tuple[str, str]
    question: PowerQuestion
    count: Count
    side: int = 1
    reachable: tuple[float, float] | None = None
    note: str | None = None
    strength: float | None = None
    needed: Estimate | None = None
    at_wanted: PowerAt | None = None
    detectable: Estimate | None = None
    method: str = EXACT
    n_samples: int = 0

    def __post_init__(self) -> None:
        """Find the reachable differences, or note why there is nothing to search for."""
        observed, question = self.observed, self.question
        is_lower = observed.difference < 0 if question.alternative == "two-sided" else question.alternative == "less"
        self.side = side = -1 if is_lower else 1
        if observed.n_units < MIN_UNITS:
            self.note = f"{observed.n_units} unit: power depends on how units vary, so at least 2 are needed"
            return
        if not observed.panel.n_discordant[0, 0] or not (observed.difference or observed.influences.any()):
            self.note = "the systems are equal on every unit, so the data do not show how they would differ on others"
            return
        low, high = self.reachable = tuple(  # type: ignore[assignment]
            side * tilting.find_extreme_difference(observed.influences, observed.compute_difference, end * side)
            for end in (-1, 1)
        )
        self.method = self.choose_method(self.n_requested)
        if high <= 0:
            self.note = "no unit favours the tested side, so no reweighting of the units gives such a difference"
        elif (difference := question.difference) is not None:
            self.strength, reach = self._find_strength(difference), f"possible are {max(low, 0.0):.4g} to {high:.4g}"
            if self.strength is None:
                self.note = f"a difference of {difference:g} is impossible with units like these: {reach}"

    @property
    def n_requested(self) -> int:
        """Number of units that the question asks about, by default the number of observed units."""
        return self.question.n_units or self.observed.n_units

    def _find_strength(self, difference: float) -> float | None:
        return tilting.find_strength(self.observed.influences, self.observed.compute_difference, self.side * difference)

    def compute_weights(self, strength: float) -> Floats:
        """Return the probabilities of the units under a tilt."""
        return tilting.compute_weights(self.observed.influences, strength)

    def compute_spread(self, strength: float) -> float:
        """Return the standard deviation of the influences under a tilt."""
        weights, influences = self.compute_weights(strength), self.observed.influences
        return float(np.sqrt(weights @ (influences - weights @ influences) ** 2))

    def choose_method(self, n_units: int) -> str:
        """Return the method that computes the power of samples of `n_units` units."""
        if self.observed.is_sign_test and n_units <= MAX_EXACT:
            return EXACT
        return SIMULATED if n_units * self.observed.n_fields <= MAX_SIMULATED else NORMAL

    def run(self) -> None:
        """Find the number of units for the requested difference, and the detectable difference, if there are any.

        The power at the observed difference is not computed: it restates p (Hoenig & Heisey 2001, "The abuse of
        power").
        """
        if self.reachable is None or self.reachable[1] <= 0:
            return
        difference, strength = self.question.difference, self.strength
        if difference is not None and strength is not None:
            n_units = self.observed.n_units
            self.at_wanted = PowerAt(n_units, difference, *self._measure(n_units, strength))
            self._find_units(difference, strength)
        self._find_difference(*self.reachable)

    def _find_units(self, difference: float, strength: float) -> None:
        question, spread = self.question, self.compute_spread(strength)
        required = question.critical_z * math.hypot(spread, difference) + question.power_z * spread
        fewest = max(MIN_UNITS, math.ceil(math.log2(question.n_sides / question.level) - 1e-12))
        crossing = self._build_crossing(max((required / difference) ** 2, 1.0), fewest, MAX_UNITS, is_integer=True)
        while crossing.answer is None:
            crossing.add_power(*self._measure(int(crossing.place), strength, is_rough=crossing.rough))
        self.needed, self.method = crossing.answer, self.choose_method(int(crossing.looks[-1].position))

    def _find_difference(self, low: float, high: float) -> None:
        low, z = max(low, 0.0), self.question.critical_z + self.question.power_z
        guess = z * self.compute_spread(0.0) / math.sqrt(self.n_requested)
        margin = MARGIN * (high - low)
        crossing = self._build_crossing(guess, low + margin, high - margin, is_integer=False)
        while crossing.answer is None:
            if (found := self._find_strength(crossing.place)) is None:
                crossing.answer = Estimate(math.inf, math.inf, math.inf)
            else:
                crossing.add_power(*self._measure(self.n_requested, found, is_rough=crossing.rough))
        self.detectable = crossing.answer

    def _build_crossing(self, place: float, lower: float, upper: float, *, is_integer: bool) -> PowerCrossing:
        """Return a search whose first points are simulated with fewer samples, unless power is exact."""
        question, is_rough = self.question, not self.observed.is_sign_test
        return PowerCrossing(question.power, question.critical_z, place, lower, upper, is_integer, is_rough)

    def _measure(self, n_units: int, strength: float, *, is_rough: bool = False) -> tuple[float, float]:
        """Return the power of samples of `n_units` units, and its standard error."""
        if self.choose_method(n_units) != SIMULATED:
            return self._compute_power(n_units, strength), 0.0
        question = self.question
        self.n_samples = question.n_samples
        samples = PowerSamples(self.observed, question.alternative, question.level, strength, n_units)
        n_samples = question.n_samples // (ROUGH_FACTOR if is_rough else 1)
        [tally] = self.count([Job(samples, n_samples, label="the power of comparisons")])
        rejected, n = int(tally.counts[0, 0, 0]), tally.n_trials
        careful = (rejected + 1) / (n + 2)  # avoids an error of 0 if all or none are rejected
        return rejected / n, math.sqrt(careful * (1 - careful) / n)

    def _compute_power(self, n_units: int, strength: float) -> float:
        """Return the power of the sign test, or power by the normal approximation.

        The standard deviation under swaps comes from the second moment about 0, which includes the difference itself.
        """
        observed, question = self.observed, self.question
        weights, spread = self.compute_weights(strength), self.compute_spread(strength)
        if self.choose_method(n_units) == EXACT:
            leads = observed.leads * self.side
            wins, losses = float(weights[leads > 0].sum()), float(weights[leads < 0].sum())
            return compute_sign_power(n_units, wins, losses, question.level, question.n_sides)
        difference = abs(observed.compute_difference(weights))
        margin = difference * math.sqrt(n_units) - question.critical_z * math.hypot(spread, difference)
        return float(scipy.special.ndtr(margin / spread)) if spread else float(margin >= 0)

    def build_power(self, test_set: str, unit: str) -> Power:
        """Return the power of the comparison as found by the search."""
        observed, question, detectable = self.observed, self.question, self.detectable
        is_found = detectable is not None and math.isfinite(detectable.value)
        strengths = self.strength, self._find_strength(detectable.value) if detectable and is_found else None
        n_effective = [
            None if strength is None else tilting.compute_n_effective(self.compute_weights(strength))
            for strength in strengths
        ]
        return Power(
            test_set=test_set,
            a=self.names[0],
            b=self.names[1],
            metric=observed.panel.metrics[0].name,
            unit=unit,
            alternative=question.alternative,
            level=question.level,
            power=question.power,
            n_units=observed.n_units,
            difference=observed.difference,
            ahead=self.names[0] if self.side > 0 else self.names[1],
            reachable=self.reachable,
            wanted_difference=question.difference,
            needed=self.needed,
            at_wanted=self.at_wanted,
            n_asked=self.n_requested,
            detectable=detectable,
            method=self.method,
            n_samples=self.n_samples,
            n_effective=n_effective[0],
            n_effective_detectable=n_effective[1],
            note=self.note,
        )


def check_question(options: PowerOptions) -> None:
    """Raise unless the options ask a question that has an answer."""
    power, difference = options["power"], options["difference"]
    if difference is not None and options["units"] is not None:
        raise InputError(
            f"{spell('difference')} and {spell('units')}: give only one of them; sigdask computes the other"
        )
    if power <= options["alpha"]:
        raise InputError(f"power = {power:g}: must be above alpha ({options['alpha']:g})")


def _iter_comparisons(counts: Counts, spec: CompareSpec) -> Iterator[tuple[ObservedPair, tuple[str, str]]]:
    """Yield the observed units of each comparison and the names of its systems, in the order of metrics and pairs."""
    if counts.n_systems < 2:
        raise InputError("power needs at least two systems", remedy="give another file or column")
    for metric in (bind_metric(m, counts) for m in spec.find_metrics(counts)):
        if not isinstance(metric, BoundMetric):
            raise InputError(
                f"metric {metric.name}: power needs a metric that is "
                "computed from sums over items. Metrics of agreement with people, of sets, and functions of whole "
                "outputs are not"
            )
        c = list_comparisons(counts, replace(spec, metrics=[metric]))
        panels, panel, row, _ = build_full_panels(c)
        for k in range(len(c)):
            observed = ObservedPair(as_sums_panel(panels[panel[k]].select([int(row[k])])))
            yield observed, (counts.systems[c.a[k]], counts.systems[c.b[k]])


def _warn_of_correlation(counts: Counts, spec: CompareSpec) -> Iterator[str]:
    """Yield a warning for each coarser column within which differences are correlated, as in `compare`."""
    dependences = compute_unit_correlations(list_comparisons(counts, spec)) if counts.groups else {}
    for note in iter_dependence_notes(dependences, counts.unit):
        yield ScopeNote(f"the answer below is too optimistic: {note.text}")


def _iter_notes(n: int, options: PowerOptions, level: float) -> Iterator[str]:
    if n > 1 and options["adjust"] == "none":
        yield (
            f"each comparison is tested alone at {options['alpha']:g}; the {n:,} together, adjusted, need more "
            f"units: {spell('adjust', 'holm')} tests each at the level of Holm's first step"
        )
    elif n > 1:
        yield (
            f"each comparison is tested at {level:.3g}, the first step of Holm, so power is at least as high as stated"
        )


def compute_powers(data: Counts | Any, options: PowerOptions) -> PowerResults:
    """Compute how many units are needed to detect a difference, or which difference some units detect.

    Parameters
    ----------
    data : Counts, or what `compare_all` takes
        The data of the systems.
    options : PowerOptions
        The options of `sigdask.power`, which describes them.

    Raises
    ------
    InputError
        The question has no answer for any comparison. The message says why.
    """
    asked = fill_options(PowerOptions, options)
    check_question(asked)
    selection = fill_options(
        SelectionOptions, {name: value for name, value in options.items() if name in OPTIONS and name != "adjust"}
    )
    [(counts, spec)] = build_specs([data], selection)
    [counts] = extract_with_options([(counts, spec.find_metrics(counts))], selection)
    grouped = counts.with_unit(spec.unit or counts.unit)
    comparisons = [*_iter_comparisons(grouped, spec)]
    n, alpha, difference = len(comparisons), asked["alpha"], asked["difference"]
    level = alpha / n if asked["adjust"] == "holm" else alpha
    if not can_decide(level):
        raise InputError(
            f"level {level:.3g}: simulations at such a small level take too long",
            remedy="raise alpha, or compare fewer systems",
        )
    question = PowerQuestion(
        asked["power"], difference, asked["units"], asked["alternative"], level,
        asked["samples"] or (SAMPLES if n <= MANY_COMPARISONS else FEWER_SAMPLES),
    )  # fmt: skip
    with (
        connect_once(selection["cluster"], selection["workers"]) as connected,
        limit_blas_threads(),  # limited once: to limit and free it in every task costs more than the products
    ):
        count = partial(count_with_options, options={**selection, "cluster": connected})
        searches = [PowerSearch(*comparison, question, count) for comparison in comparisons]
        if not any(search.note is None for search in searches):
            (a, b), note, metric = searches[0].names, searches[0].note, searches[0].observed.panel.metrics[0].name
            others = f" (and {format_count(n - 1, 'more comparison')} without an answer)" * (n > 1)
            raise InputError(f"{a} and {b} by {metric}: {note}{others}")
        for search in searches:
            search.run()
    powers = tuple(search.build_power(grouped.name, grouped.unit) for search in searches)
    notes = (*_warn_of_correlation(grouped, spec), *_iter_notes(n, asked, level))
    return PowerResults(powers, alpha, asked["adjust"], spec.seed, notes)
