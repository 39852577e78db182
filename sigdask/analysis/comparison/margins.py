"""Tests that systems are within a margin of each other, on one test set under one metric.

0/1 scores are tested as matched proportions, without shuffles. Other means are tested by shuffles of scores that are
shifted by the margin, with the same shuffles as the comparison itself. Other metrics use the normal approximation with
the standard deviation under swaps. A test that shows one margin also shows all larger margins, so the smallest margin
comes from the same function as p, or from the normal approximation (docs/statistics/margins.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.analysis.comparison.caveats import FEW_UNITS
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.judge import judge_counts
from sigdask.analysis.comparison.pairs import CompareSpec, Comparisons, CountedCells
from sigdask.counts import Counts
from sigdask.counts.factors import group_rows, number_rows
from sigdask.counts.fields import Floats, Integers
from sigdask.counts.precision import MAX_DIGITS, ExactNumbers, ScoreScale
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.options import Alternative
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.slabs import Job, Tallies
from sigdask.results.columns import CodedColumn, Columns, Subset
from sigdask.statistics.matched_proportions import MatchedProportions

MAX_SKEWNESS = 0.2
"""Skewness of the units' differences over the root of their number, from which the test's size is off by two points."""

NOT_WORSE, NOT_BETTER = 1, -1
"""Sides of the tests: the first system is not worse, and not better, than the second by the margin."""


@dataclass(frozen=True, slots=True)
class MarginResult:
    """A test of a margin for one pair of systems: one-sided, or the larger of both sides.

    Attributes
    ----------
    p_value : float
        One-sided p for a difference at least as bad as the margin. For equivalence, the larger of two.
    method : str
        The test and its limitations.
    n_trials : int or None
        Trials (or arrangements) of swaps of the shifted scores.
    smallest_margin : float or None
        Smallest margin that would be shown at the level. Infinite if there is none, None if unknown.
    matched : MatchedProportions or None
        Items with different 0/1 scores.
    is_doubtful : bool
        Whether p may be too small: few units differ, or rare differences are large.
    """

    p_value: float
    method: str
    n_trials: int | None = None
    smallest_margin: float | None = None
    matched: MatchedProportions | None = None
    is_doubtful: bool = False


def align_smallest(result: MarginResult, margin: float, alpha: float) -> MarginResult:
    """Return a test whose smallest margin is corrected for rounding: at most the margin if and only if p <= alpha."""
    smallest = result.smallest_margin
    if smallest is not None:
        is_shown = result.p_value <= alpha
        smallest = min(smallest, margin) if is_shown else max(smallest, math.nextafter(margin, math.inf))
    return replace(result, smallest_margin=smallest)


@dataclass(frozen=True, slots=True, eq=False)
class MarginPair:
    """Contributions of each item to the mean scores of two systems, signed so that more is better.

    Attributes
    ----------
    a, b : str
        The system, and the one that it is compared with.
    subset : Subset or None
        The items on which they are compared; None for all.
    numerators : float64 array, shape (n_items, 2)
        Contributions of each item for both systems.
    weights : float64 array, shape (n_items,)
        Weight of each item.
    units : int64 array, shape (n_items,)
        The unit of each item.
    """

    a: str
    b: str
    subset: Subset | None
    numerators: NDArray[np.float64]
    weights: NDArray[np.float64]
    units: NDArray[np.int64]

    def match_proportions(self, side: int) -> MatchedProportions | None:
        """Return the matched proportions of items with two scores (0 and another), or None for other scores.

        Side -1 swaps the two systems.
        """
        worth = float(np.abs(self.numerators).max(initial=0.0)) or 1.0
        two_values = {0.0, worth if (self.numerators > 0).any() else -worth}
        if not len(self.weights) or not (self.weights == 1).all() or not set(np.unique(self.numerators)) <= two_values:
            return None
        if worth != 1 and not np.ptp(self.numerators[:, 0] - self.numerators[:, 1]):
            return None  # a single constant is not evidence of 0/1 scores
        return MatchedProportions.from_differences(
            side * np.sign(self.numerators[:, 0] - self.numerators[:, 1]), self.units, worth
        )

    def sum_units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the summed differences and weights of the units, shape (n_units,) each."""
        _, index = np.unique(self.units, return_inverse=True)
        columns = (self.numerators[:, 0] - self.numerators[:, 1], self.weights)
        differences, weights = (np.asarray(np.bincount(index, weights=c), np.float64) for c in columns)
        return differences, weights


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedJobs:
    """Comparisons of scores that are shifted by a margin, and the jobs that count them.

    Attributes
    ----------
    jobs : ComparisonJobs
        The comparisons.
    higher_is_better : bool
        Whether more is better.
    rows : mapping of (Subset or None, str, str) to int
        The comparisons by subset, shifted system and other system.
    """

    jobs: ComparisonJobs
    higher_is_better: bool
    rows: Mapping[tuple[Subset | None, str, str], int]

    @staticmethod
    def from_pairs(
        counts: Counts, metric: BoundMetric, spec: CompareSpec, pairs: Sequence[MarginPair], shift: float
    ) -> ShiftedJobs:
        """Return the comparisons of pairs of systems, of which the first is shifted."""
        names = {pair.a: f"{pair.a} within {shift!r}" for pair in pairs}
        shifted_scores = shift_scores(counts, metric, [*dict.fromkeys(pair.b for pair in pairs)], names, shift)
        assert shifted_scores is not None  # the metric is a mean, or there were no pairs
        spec = replace(
            spec, metrics=["mean"], pairs=[*dict.fromkeys((names[pair.a], pair.b) for pair in pairs)], baseline=None,
            method="randomization" if spec.method == "randomization" else "auto",
        )  # fmt: skip
        jobs = ComparisonJobs.from_spec(shifted_scores, spec, second_run=False)
        c, systems = jobs.comparisons, {name: system for system, name in names.items()}
        places = ((c.subset[k], shifted_scores.systems[c.a[k]], shifted_scores.systems[c.b[k]]) for k in range(len(c)))
        rows = {(subset, systems[a], b): k for k, (subset, a, b) in enumerate(places)}
        return ShiftedJobs(jobs, metric.higher_is_better, rows)

    def compute_p_values(self, side: int, tallies: Tallies) -> tuple[Floats, NDArray[np.int64]]:
        """Return the p-value of each comparison in one direction, and its number of trials."""
        better: Alternative = "greater" if self.higher_is_better == (side > 0) else "less"
        return judge_counts([self.jobs], tallies, better)


@dataclass(frozen=True, slots=True, eq=False)
class MarginTests:
    """Tests of a margin for pairs of systems by one metric on a test set.

    Attributes
    ----------
    margin : float
        The margin on the metric's own scale, above 0.
    alpha : float
        Level of each test. It orders the tables of the unconditional exact test, and decides the smallest margin.
    sides : tuple of int
        Sides that are tested: `NOT_WORSE`, `NOT_BETTER` or both.
    pairs : list of MarginPair, or None
        The pairs; None if the metric is not a mean of items.
    shifted : mapping of int to ShiftedJobs
        Jobs of pairs that are tested by swaps, by side; empty if there are none.
    finds_smallest : bool
        Whether the smallest margin that is shown is found.
    """

    margin: float
    alpha: float
    sides: tuple[int, ...]
    pairs: list[MarginPair] | None
    shifted: Mapping[int, ShiftedJobs]
    finds_smallest: bool = False

    @staticmethod
    def from_pairs(
        counts: Counts,
        metric: AnyBound,
        compared: Sequence[tuple[str, str, Subset | None]],
        spec: CompareSpec,
        *,
        margin: float,
        alpha: float,
        sides: tuple[int, ...] = (NOT_WORSE, NOT_BETTER),
        finds_smallest: bool = False,
    ) -> MarginTests:
        """Return the tests of pairs of systems, each in a subset, with the jobs to count.

        Parameters
        ----------
        counts : Counts
            The test set, with its unit.
        metric : BoundMetric, BoundSets or BlackBox
            Bound to `counts`.
        compared : sequence of (str, str, Subset or None)
            The pairs: system, the one that it is compared with, and subset.
        spec : CompareSpec
            Specification for counting the mean of shifted scores.
        margin, alpha, sides
            As in the class.
        finds_smallest : bool
            Also find the smallest margin that is shown.
        """
        pairs = _build_pairs(counts, metric, compared, spec.seed) if isinstance(metric, BoundMetric) else None
        swapped = [pair for pair in pairs or () if pair.match_proportions(NOT_WORSE) is None]
        shifted = {
            side: ShiftedJobs.from_pairs(counts, metric, spec, swapped, side * margin)
            for side in sides
            if swapped and isinstance(metric, BoundMetric)
        }
        return MarginTests(margin, alpha, sides, pairs, shifted, finds_smallest)

    @property
    def jobs(self) -> list[Job]:
        """The jobs to count."""
        return [job for shifted in self.shifted.values() for job in shifted.jobs.jobs]

    def build_results(
        self, tallies: Tallies, gains: Sequence[float], sds: Sequence[float], units: Sequence[tuple[int, int]]
    ) -> list[list[MarginResult]]:
        """Return the results of each side, each with one for every pair.

        Parameters
        ----------
        tallies : mapping of Job to Tally
            Tallies of `jobs`.
        gains : sequence of float
            How much better the system of each pair is.
        sds : sequence of float
            Standard deviation of each pair's difference under swaps.
        units : sequence of (int, int)
            Numbers of units and of discordant units of each pair.
        """
        if self.pairs is None:
            observed = [*zip(gains, sds, units, strict=True)]
            return [[self._compute_by_normal(side, *values) for values in observed] for side in self.sides]
        return [self._test_means(side, self.pairs, tallies) for side in self.sides]

    def _test_means(self, side: int, pairs: Sequence[MarginPair], tallies: Tallies) -> list[MarginResult]:
        shifted = self.shifted.get(side)
        p_and_trials = None if shifted is None else shifted.compute_p_values(side, tallies)
        results = []
        for pair in pairs:
            if (matched := pair.match_proportions(side)) is not None:
                p = matched.compute_p_value(self.margin, self.alpha)
                smallest = matched.find_smallest_margin(self.alpha) if self.finds_smallest else None
                is_doubtful = matched.is_doubtful
                results.append(MarginResult(p, matched.method, None, smallest, matched, is_doubtful=is_doubtful))
            elif shifted is not None and p_and_trials is not None:
                row, doubts = shifted.rows[pair.subset, pair.a, pair.b], _describe_doubts(pair, side)
                p, n_trials = (values[row].item() for values in p_and_trials)
                smallest = _approximate_smallest_margin(pair, self.alpha, side)
                method = f"shifted shuffle{doubts}"
                results.append(MarginResult(p, method, n_trials, smallest, is_doubtful=bool(doubts)))
        return results

    def _compute_by_normal(self, side: int, gain: float, sd: float, units: tuple[int, int]) -> MarginResult:
        n_units, n_discordant = units
        smallest_p = 2.0**-n_units
        p = max(smallest_p, compute_normal_p(side * gain + self.margin, sd))
        smallest = math.inf
        if sd and smallest_p <= self.alpha:
            smallest = float(scipy.special.ndtri(1 - self.alpha)) * sd - side * gain
        is_few = n_discordant < FEW_UNITS
        few_text = f", from {n_discordant} discordant units: p may be too small" if is_few else ""
        return MarginResult(p, f"normal approximation{few_text}", None, smallest, is_doubtful=is_few)


@dataclass(frozen=True, slots=True, eq=False)
class MarginJobs:
    """Tests of a margin for the comparisons of one test set, with their jobs.

    Attributes
    ----------
    comparisons : Comparisons
        The comparisons.
    tests : list of (int64 array, MarginTests)
        Comparisons by each metric, and their tests in both directions.
    """

    comparisons: Comparisons
    tests: list[tuple[Integers, MarginTests]]

    @staticmethod
    def from_comparisons(jobs: ComparisonJobs, spec: CompareSpec, margin: float, alpha: float) -> MarginJobs:
        """Return the tests of all comparisons, with the specification of their test set."""
        c, systems, tests = jobs.comparisons, jobs.spec.counts.systems, []
        for rows in group_rows(number_rows(c.metric)):
            compared = [(systems[int(c.a[k])], systems[int(c.b[k])], c.subset[k]) for k in rows.tolist()]
            metric = c.get_metric(rows[0])
            of_metric = MarginTests.from_pairs(jobs.spec.counts, metric, compared, spec, margin=margin, alpha=alpha)
            tests.append((rows, of_metric))
        return MarginJobs(c, tests)

    @property
    def cells(self) -> list[CountedCells]:
        """The jobs to count. Their counts are not those of single comparisons."""
        jobs = [job for _, tests in self.tests for job in tests.jobs]
        return [CountedCells.from_whole(job, np.zeros(0, np.int64)) for job in jobs]

    def build_columns(self, difference: Floats, tallies: Tallies) -> Columns:
        """Return the columns of the tests, given the observed differences and the tallies of the jobs."""
        c = self.comparisons
        margin, not_worse, not_better = np.full((3, len(c)), np.nan)
        methods = [""] * len(c)
        for rows, tests in self.tests:
            gains = difference[rows] * (1 if c.get_metric(rows[0]).higher_is_better else -1)
            units = [*zip(c.n_units[rows].tolist(), c.n_discordant[rows].tolist(), strict=True)]
            sds = [np.nan] * len(rows) if tests.pairs is not None else estimate_deviations(c, rows)
            worse, better = tests.build_results(tallies, gains.tolist(), sds, units)
            margin[rows] = tests.margin
            not_worse[rows] = [result.p_value for result in worse]
            not_better[rows] = [result.p_value for result in better]
            for k, *sides in zip(rows.tolist(), worse, better, strict=True):
                methods[k] = max(sides, key=lambda side: side.is_doubtful).method
        return {
            "margin.margin": margin,
            "margin.p_not_worse": not_worse,
            "margin.p_not_better": not_better,
            "margin.method": CodedColumn.from_values(methods),
        }


def estimate_deviations(comparisons: Comparisons, rows: Integers) -> list[float]:
    """Return the standard deviation under swaps of some comparisons' differences."""
    c, deviations = comparisons, np.zeros(len(comparisons))
    for group in group_rows(number_rows(c.panel[rows])):
        in_panel = rows[group]
        values = c.get_panel(in_panel[0]).estimate_swap_deviations()
        deviations[in_panel] = values[c.row[in_panel], c.column[in_panel]]
    return [float(value) for value in deviations[rows]]


def _build_pairs(
    counts: Counts, metric: BoundMetric, compared: Sequence[tuple[str, str, Subset | None]], seed: int
) -> list[MarginPair] | None:
    """Return the contributions to the mean of each pair; None if the metric is not a mean of items."""
    if (mean_parts := split_mean(counts, metric)) is None:
        return None
    numerators, denominators = mean_parts
    units = SwapUnits.from_counts(counts, seed).index
    system_index = {name: k for k, name in enumerate(counts.systems)}
    masks = {s: None if s is None else counts.group(s.column).equals(s.value) for _, _, s in compared}
    sign = 1 if metric.higher_is_better else -1
    pairs = []
    for a, b, subset in compared:
        columns = [system_index[a], system_index[b]]
        has_weight = (denominators[:, 0] != 0) | (numerators[:, columns] != 0).any(axis=1)
        rows = counts.in_common(columns, masks[subset], metric.held) & has_weight
        contributions = sign * numerators[rows][:, columns]
        pairs.append(MarginPair(a, b, subset, contributions, denominators[rows, 0], units[rows]))
    return pairs


def _approximate_smallest_margin(pair: MarginPair, alpha: float, side: int) -> float | None:
    """Return the smallest margin that swaps show by their normal approximation; None if it has none.

    It solves (D + margin N)^2 = z^2 sum (d + margin n)^2 over the units' differences d and weights n.
    """
    d, n = pair.sum_units()
    d = side * d
    z2 = float(scipy.special.ndtri(alpha)) ** 2
    a = n.sum() ** 2 - z2 * (n @ n)
    b = d.sum() * n.sum() - z2 * (d @ n)
    c = d.sum() ** 2 - z2 * (d @ d)
    if a <= 0 or alpha >= 0.5 or not d.any():
        return None
    return float((math.sqrt(max(b * b - a * c, 0.0)) - b) / a)


def _describe_doubts(pair: MarginPair, side: int) -> str:
    """Return text on why p may be too small, or "": few units differ, or rare differences are large."""
    d, _ = pair.sum_units()
    n_differ = int(np.count_nonzero(d))
    if n_differ < FEW_UNITS:
        return f", from {n_differ} discordant units: p may be too small"
    centred = d - d.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    skewness = float(np.mean(centred**3)) / spread**3 if spread else 0.0
    is_against = -side * skewness / math.sqrt(len(d)) > MAX_SKEWNESS
    return f", differences of skewness {skewness:.2g}: p may be too small" if is_against else ""


def split_mean(counts: Counts, metric: BoundMetric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return each item's contribution to a mean and its weight, or None if the metric is not a mean of items.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.

    Returns
    -------
    (float64 array, shape (n_items, n_systems); float64 array, shape (n_items, 1)), or None
        Contributions and weights. The mean is the ratio of their sums. All systems share the weights.
    """
    form = metric.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    shape = (counts.n_items, counts.n_systems)
    fields = [np.broadcast_to(metric.get_field(name, counts), shape) for name in metric.fields]
    numerators = sum((w * f for w, f in zip(form.numerators[0], fields, strict=True)), np.zeros(shape))
    denominators = sum((w * f for w, f in zip(form.denominators[0], fields, strict=True)), np.zeros(shape))
    return (numerators, denominators[:, :1]) if (denominators == denominators[:, :1]).all() else None


def shift_scores(
    counts: Counts, metric: BoundMetric, unshifted: Sequence[str], names: Mapping[str, str], shift: float
) -> Counts | None:
    """Return the item scores of some systems as they are, and those of others improved by a shift.

    If a system is worse than another by the shift on each item, the two are exchangeable in these scores. So a
    one-sided test of their mean tests non-inferiority. None if the metric is not a mean over items that all systems
    share.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.
    unshifted : sequence of str
        Systems whose scores are not shifted.
    names : mapping of str to str
        Names of the shifted scores, by system.
    shift : float
        On the metric's scale.
    """
    mean_parts = split_mean(counts, metric)
    if mean_parts is None:
        return None
    numerators, items = mean_parts
    columns = [counts.systems.index(name) for name in (*unshifted, *names)]
    shifts = (shift if metric.higher_is_better else -shift) * (np.arange(len(columns)) >= len(unshifted))
    decimals = all(ScoreScale.from_scores(column).digits is not None for column in (*numerators[:, columns].T, shifts))
    scores = numerators[:, columns] + shifts * items
    rounding = _compute_rounding(counts, metric)[columns]
    return replace(
        counts,
        systems=(*unshifted, *names.values()),
        fields=ExactNumbers(
            {
                "score": np.round(scores, MAX_DIGITS) if decimals else scores,
                "items": items.astype(np.int64) if (items == np.rint(items)).all() else items,
            },
            {"score": tuple(rounding.tolist())},
        ),
        present=None if counts.present is None else counts.present[:, columns],
        labels=(),
        predicted_labels=(),
        held={} if metric.held is None else {"score": metric.held[:, columns]},
        outputs=None,
        replicates=(),
        suggested=("mean",),
    )


def _compute_rounding(counts: Counts, metric: BoundMetric) -> NDArray[np.float64]:
    """Return, for each system, the largest rounding error of an item's contribution to a mean, shape (n_systems,)."""
    form = metric.form
    assert isinstance(form, Ratios)
    field_errors = [np.array(metric.get_rounding(name, counts)) for name in metric.fields]
    return sum((abs(w) * r for w, r in zip(form.numerators[0], field_errors, strict=True)), np.zeros(counts.n_systems))


def compute_normal_p(difference: float, sd: float) -> float:
    """Return the one-sided p-value of a difference with a standard error, by the normal distribution.

    Examples
    --------
    >>> round(compute_normal_p(1.96, 1.0), 4)
    0.025
    """
    if sd == 0 or math.isnan(difference):  # the spread or a score is unknown, so nothing is shown
        return 1.0
    return max(0.5 * math.erfc(difference / sd / math.sqrt(2)), sys.float_info.min)  # p is never 0
