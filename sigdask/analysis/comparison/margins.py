"""Tests that systems are within a margin of each other, on one test set under one metric.

0/1 scores are tested as matched proportions, without shuffles. Other means are tested by shuffles of scores that are
shifted by the margin, with the same shuffles as the comparison itself. Other metrics use the normal approximation with
the standard deviation under swaps (docs/statistics/margins.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.analysis.comparison.families import FEW_UNITS
from sigdask.analysis.comparison.jobs import JoinedComparisons, plan_jobs
from sigdask.analysis.comparison.judge import judge_counts
from sigdask.analysis.comparison.pairs import CompareSpec, Comparisons
from sigdask.counts import Counts
from sigdask.counts.fields import Floats, Integers
from sigdask.counts.precision import MAX_DIGITS, ExactNumbers
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.options import Alternative
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.slabs import Job, Tallies
from sigdask.results.columns import Columns, Subset, encode
from sigdask.statistics.classical import MatchedProportions
from sigdask.statistics.lattice import ScoreScale
from sigdask.statistics.numbering import group_rows, number_rows

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
    matched : MatchedProportions or None
        Items with different 0/1 scores.
    is_doubtful : bool
        Whether p may be too small: few units differ, or rare differences are large.
    """

    p_value: float
    method: str
    n_trials: int | None = None
    matched: MatchedProportions | None = None
    is_doubtful: bool = False


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

    def find_doubts(self, side: int) -> str:
        """Return text on why p may be too small, or "": few units differ, or rare differences are large."""
        _, index = np.unique(self.units, return_inverse=True)
        d = np.bincount(index, weights=self.numerators[:, 0] - self.numerators[:, 1])
        n_differ = int(np.count_nonzero(d))
        if n_differ < FEW_UNITS:
            return f", from {n_differ} discordant units: p may be too small"
        skewness = float(scipy.stats.skew(d)) if np.ptp(d) else 0.0
        is_against = -side * skewness / math.sqrt(len(d)) > MAX_SKEWNESS
        return f", differences of skewness {skewness:.2g}: p may be too small" if is_against else ""


@dataclass(frozen=True, slots=True, eq=False)
class MarginTests:
    """Tests of a margin for pairs of systems by one metric on a test set.

    Attributes
    ----------
    spec : CompareSpec
        What was asked: the margin on the metric's own scale, above 0; and the level of each test, which orders the
        tables of the unconditional exact test.
    metric : BoundMetric, BoundSets or BlackBox
        The metric.
    sides : tuple of int
        Sides that are tested: `NOT_WORSE`, `NOT_BETTER` or both.
    pairs : list of MarginPair, or None
        The pairs; None if the metric is not a mean of items.
    shifted : mapping of int to Comparisons
        By side, comparisons of pairs of systems of which the first is shifted, for pairs that are tested by swaps.
    """

    spec: CompareSpec
    metric: AnyBound
    sides: tuple[int, ...]
    pairs: list[MarginPair] | None
    shifted: Mapping[int, Comparisons]

    @staticmethod
    def from_pairs(
        counts: Counts,
        metric: AnyBound,
        compared: Sequence[tuple[str, str, Subset | None]],
        spec: CompareSpec,
        sides: tuple[int, ...] = (NOT_WORSE, NOT_BETTER),
    ) -> MarginTests:
        """Return the tests of pairs of systems (a system, the one it is compared with, subset), with jobs to count.

        `counts` is the test set with its unit, to which the metric is bound. The rest is as in the class.
        """
        pairs = _build_pairs(counts, metric, compared, spec.seed) if isinstance(metric, BoundMetric) else None
        swapped = [pair for pair in pairs or () if pair.match_proportions(NOT_WORSE) is None]
        shifted = {
            side: _plan_shifted(counts, metric, spec, swapped, side)
            for side in sides
            if swapped and isinstance(metric, BoundMetric)
        }
        return MarginTests(spec, metric, sides, pairs, shifted)

    @property
    def margin(self) -> float:
        """The margin."""
        assert self.spec.margin is not None
        return self.spec.margin

    @property
    def jobs(self) -> list[Job]:
        """The jobs to count."""
        return [part.job for comparisons in self.shifted.values() for part in comparisons.cells]

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
        results, places = [], dict[tuple[Subset | None, str, str], int]()
        if (c := self.shifted.get(side)) is not None:
            better: Alternative = "greater" if self.metric.higher_is_better == (side > 0) else "less"
            p_values, n_trials = judge_counts(JoinedComparisons.from_sets(c), tallies, better)
            systems = c.counts.systems
            places = {(c.subsets[c.subset[k]], systems[c.a[k]], systems[c.b[k]]): k for k in range(len(c))}
        for pair in pairs:
            if (matched := pair.match_proportions(side)) is not None:
                p = matched.compute_p_value(self.margin, self.spec.alpha)
                results.append(MarginResult(p, matched.method, None, matched, is_doubtful=matched.is_doubtful))
            else:
                row = places[pair.subset, _name_shifted(pair.a, side * self.margin), pair.b]
                p, n, doubts = float(p_values[row]), int(n_trials[row]), pair.find_doubts(side)
                results.append(MarginResult(p, f"shifted shuffle{doubts}", n, is_doubtful=bool(doubts)))
        return results

    def _compute_by_normal(self, side: int, gain: float, sd: float, units: tuple[int, int]) -> MarginResult:
        n_units, n_discordant = units
        # the spread may be unknown, and a score missing; if no swap changes the score, there is no doubt
        z = (side * gain + self.margin) / sd if sd else side * gain + math.inf
        p = 1.0 if math.isnan(z) else max(2.0**-n_units, 0.5 * math.erfc(z / math.sqrt(2)), sys.float_info.min)
        is_few = n_discordant < FEW_UNITS
        few_text = f", from {n_discordant} discordant units: p may be too small" if is_few else ""
        return MarginResult(p, f"normal approximation{few_text}", is_doubtful=is_few)


def plan_margins(comparisons: Comparisons) -> list[tuple[Integers, MarginTests]]:
    """Return the comparisons by each metric, and their tests of the margin in both directions."""
    c, systems, tests = comparisons, comparisons.counts.systems, []
    for rows in group_rows(number_rows(c.metric)):
        compared = [(systems[int(c.a[k])], systems[int(c.b[k])], c.subsets[c.subset[k]]) for k in rows.tolist()]
        tests.append((rows, MarginTests.from_pairs(c.counts, c.get_metric(rows[0]), compared, c.spec)))
    return tests


def build_margin_columns(
    comparisons: Comparisons, planned: Sequence[tuple[Integers, MarginTests]], difference: Floats, tallies: Tallies
) -> Columns:
    """Return the columns of planned tests, given the observed differences and the tallies of the jobs."""
    c = comparisons
    margin, not_worse, not_better = np.full((3, len(c)), np.nan)
    methods, is_doubtful = [""] * len(c), np.zeros(len(c), np.bool_)
    for rows, tests in planned:
        gains = difference[rows] * (1 if tests.metric.higher_is_better else -1)
        units = [*zip(c.n_units[rows].tolist(), c.n_discordant[rows].tolist(), strict=True)]
        sds = [np.nan] * len(rows) if tests.pairs is not None else estimate_deviations(c, rows)
        worse, better = tests.build_results(tallies, gains.tolist(), sds, units)
        margin[rows] = tests.margin
        not_worse[rows] = [result.p_value for result in worse]
        not_better[rows] = [result.p_value for result in better]
        for k, *sides in zip(rows.tolist(), worse, better, strict=True):
            worst = max(sides, key=lambda side: side.is_doubtful)
            methods[k], is_doubtful[k] = worst.method, worst.is_doubtful
    return {
        "margin.margin": margin,
        "margin.p_not_worse": not_worse,
        "margin.p_not_better": not_better,
        "margin.method": encode(methods),
        "margin.is_doubtful": is_doubtful,
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


def _name_shifted(system: str, shift: float) -> str:
    return f"{system} within {shift!r}"


def _plan_shifted(
    counts: Counts, metric: BoundMetric, spec: CompareSpec, pairs: Sequence[MarginPair], side: int
) -> Comparisons:
    """Return the comparisons of pairs of systems, of which the first is shifted by the margin."""
    shift = side * (spec.margin or 0.0)
    names = {pair.a: _name_shifted(pair.a, shift) for pair in pairs}
    scores = shift_scores(counts, metric, [*dict.fromkeys(pair.b for pair in pairs)], names, shift)
    spec = replace(
        spec, metrics=["mean"], pairs=[*dict.fromkeys((names[pair.a], pair.b) for pair in pairs)], baseline=None,
        method="randomization" if spec.method == "randomization" else "auto", second_run=False,
    )  # fmt: skip
    return plan_jobs(scores, spec)


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
) -> Counts:
    """Return the item scores of some systems as they are, and those of others improved by a shift.

    If a system is worse than another by the shift on each item, the two are exchangeable in these scores. So a
    one-sided test of their mean tests non-inferiority.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        A mean over items that all systems share, bound to `counts`.
    unshifted : sequence of str
        Systems whose scores are not shifted.
    names : mapping of str to str
        Names of the shifted scores, by system.
    shift : float
        On the metric's scale.
    """
    mean_parts = split_mean(counts, metric)
    assert mean_parts is not None
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
