"""Tests that systems are within a margin of a baseline, on one test set under one metric.

0/1 scores are tested as matched proportions, without shuffles. Other means are tested by shuffles of scores that are
shifted by the margin, with the same shuffles as the comparison itself. Other metrics use the normal approximation with
the standard deviation under swaps. A test that shows one margin also shows all larger margins, so the smallest margin
comes from the same function as p (docs/statistics/margins.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.analysis.comparison.caveats import FEW_UNITS
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.analysis.comparison.study import prepare_study
from sigdask.counts import Counts
from sigdask.counts.precision import MAX_DIGITS, ExactNumbers, ScoreScale
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.nightly.gate.rules import ComparisonKey, MarginResult, WithinMargin, get_key
from sigdask.options import Alternative
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results.record import Result
from sigdask.statistics.matched_proportions import MatchedProportions

Count = Callable[[Sequence[Job]], Sequence[Tally]]
"""Function that counts jobs."""

MAX_SKEWNESS = 0.2
"""Skewness of the units' differences over the root of their number, from which the test's size is off by two points."""

MARGIN_STEPS = (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.25)
"""Margins tried by swaps around the point where p is alpha, relative to the distance from the observed difference."""


@dataclass(frozen=True, slots=True, eq=False)
class BaselinePair:
    """Contributions of each item to the mean scores of a system and of the baseline, signed so that more is better.

    Attributes
    ----------
    result : Result
        Result of the comparison.
    system : str
        The system that is not the baseline.
    numerators : float64 array, shape (n_items, 2)
        Contributions of each item for the system and for the baseline.
    weights : float64 array, shape (n_items,)
        Weight of each item.
    units : int64 array, shape (n_items,)
        The unit of each item.
    """

    result: Result
    system: str
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
class MarginTests:
    """Tests of one rule's margin by one metric on a test set.

    Attributes
    ----------
    counts : Counts
        The test set, with its unit.
    rule : NonInferior or Equivalent
        The margin and level.
    metric : BoundMetric, BoundSets or BlackBox
        Bound to `counts`.
    baseline : str
        The other system of each comparison.
    spec : CompareSpec
        Specification for counting the mean of shifted scores.
    count : callable
        Counts jobs.
    """

    counts: Counts
    rule: WithinMargin
    metric: AnyBound
    baseline: str
    spec: CompareSpec
    count: Count

    def compute(
        self, results: Sequence[Result], spreads: Mapping[ComparisonKey, float]
    ) -> Iterator[tuple[ComparisonKey, MarginResult]]:
        """Yield the margin test of every system against the baseline, given the results and swap deviations."""
        pairs = self._build_pairs(results, self.metric) if isinstance(self.metric, BoundMetric) else None
        if pairs is None:
            yield from ((get_key(r), self._compute_by_normal(r, spreads[get_key(r)])) for r in results)
            return
        swapped = []
        for pair in pairs:
            sides = [pair.match_proportions(side) for side in self.rule.sides]
            if proportions := [side for side in sides if side is not None]:
                p = max(m.compute_p_value(self.rule.margin, self.rule.alpha) for m in proportions)
                smallest = max(m.find_smallest_margin(self.rule.alpha) for m in proportions)
                margin = _reconcile_margin(p, smallest, self.rule)
                shown = max(proportions, key=lambda m: m.is_doubtful)
                margin_result = MarginResult(
                    p, shown.method, None, margin, proportions[0], is_doubtful=shown.is_doubtful
                )
                yield get_key(pair.result), margin_result
            else:
                swapped.append(pair)
        if swapped and isinstance(self.metric, BoundMetric):
            yield from self._compute_by_swaps(swapped, self.metric)

    def _build_pairs(self, results: Sequence[Result], metric: BoundMetric) -> list[BaselinePair] | None:
        counts = self.counts
        if (mean_parts := split_mean(counts, metric)) is None:
            return None
        numerators, denominators = mean_parts
        units = SwapUnits.from_counts(counts, self.spec.seed).index
        system_index = {name: k for k, name in enumerate(counts.systems)}
        sign = 1 if metric.higher_is_better else -1
        pairs = []
        for r in results:
            system = r.b if r.a == self.baseline else r.a
            columns = [system_index[system], system_index[self.baseline]]
            subset = None if r.subset is None else np.array(counts.group(r.subset["column"])) == r.subset["value"]
            has_weight = (denominators[:, 0] != 0) | (numerators[:, columns] != 0).any(axis=1)
            rows = counts.in_common(columns, subset, metric.held) & has_weight
            weights = denominators[rows, 0]
            pairs.append(BaselinePair(r, system, sign * numerators[rows][:, columns], weights, units[rows]))
        return pairs

    def _compute_by_normal(self, r: Result, sd: float) -> MarginResult:
        rule = self.rule
        gain = r.difference if (r.b == self.baseline) == r.higher_is_better else -r.difference
        smallest_p = 2.0**-r.n_units
        p = max(smallest_p, *(compute_normal_p(side * gain + rule.margin, sd) for side in rule.sides))
        smallest = math.inf
        if sd and smallest_p <= rule.alpha:
            smallest = max(float(scipy.special.ndtri(1 - rule.alpha)) * sd - side * gain for side in rule.sides)
        is_few = r.n_discordant < FEW_UNITS
        few_text = f", from {r.n_discordant} discordant units: p may be too small" if is_few else ""
        margin = _reconcile_margin(p, smallest, rule)
        return MarginResult(p, f"normal approximation{few_text}", None, margin, is_doubtful=is_few)

    def _compute_by_swaps(
        self, pairs: Sequence[BaselinePair], metric: BoundMetric
    ) -> Iterator[tuple[ComparisonKey, MarginResult]]:
        results_by_side = [self._swap_one_side(pairs, metric, side) for side in self.rule.sides]
        for pair, sides in zip(pairs, zip(*results_by_side, strict=True), strict=True):
            p = max(p for p, _, _ in sides)
            margins = [margin for _, margin, _ in sides if margin is not None]
            smallest = _reconcile_margin(p, max(margins), self.rule) if len(margins) == len(sides) else None
            doubts = _describe_doubts(pair, self.rule)
            margin_result = MarginResult(p, f"shifted shuffle{doubts}", sides[0][2], smallest, is_doubtful=bool(doubts))
            yield get_key(pair.result), margin_result

    def _swap_one_side(
        self, pairs: Sequence[BaselinePair], metric: BoundMetric, side: int
    ) -> list[tuple[float, float | None, int]]:
        """Return, for each pair, p, the smallest margin that swaps show, and the number of trials, in one direction."""
        rule = self.rule
        extra_margins = [_choose_margins(pair, rule, side) if self.spec.by is None else [] for pair in pairs]
        margins: dict[str, list[float]] = {}
        for pair, pair_margins in zip(pairs, extra_margins, strict=True):
            margins.setdefault(pair.system, []).extend(side * margin for margin in (rule.margin, *pair_margins))
        shifted_scores = shift_scores(self.counts, metric, self.baseline, margins)
        assert shifted_scores is not None  # the metric is a mean, or there were no pairs
        data, names = shifted_scores
        pair_spec = replace(self.spec, pairs=[(name, self.baseline) for name in names.values()])
        better: Alternative = "greater" if metric.higher_is_better == (side > 0) else "less"
        study = prepare_study([(data, pair_spec, better)], adjust="none", second_run=False)
        rows = study.build_results(self.count(study.jobs))
        results = {(r.subset["value"] if r.subset else None, r.a): r for r in rows}
        outcomes = []
        for pair, pair_margins in zip(pairs, extra_margins, strict=True):
            subset = pair.result.subset["value"] if pair.result.subset else None
            by_margin = {m: results[subset, names[pair.system, side * m]] for m in (rule.margin, *pair_margins)}
            shown_margins = [m for m, r in by_margin.items() if r.p_value <= rule.alpha]
            smallest = min(shown_margins) if pair_margins and shown_margins else None
            outcomes.append((by_margin[rule.margin].p_value, smallest, by_margin[rule.margin].n_trials))
        return outcomes


def _reconcile_margin(p: float, smallest: float, rule: WithinMargin) -> float:
    """Return the smallest margin shown, corrected for rounding: at most the rule's margin if and only if p <= alpha."""
    if p <= rule.alpha:
        return min(smallest, rule.margin)
    return max(smallest, math.nextafter(rule.margin, math.inf))


def _choose_margins(pair: BaselinePair, rule: WithinMargin, side: int) -> list[float]:
    """Return margins to try in the search for the smallest one that swaps show, near its normal approximation.

    It solves (D + margin N)^2 = z^2 sum (d + margin n)^2 over the units' differences d and weights n.
    """
    d, n = pair.sum_units()
    d = side * d
    z2 = float(scipy.special.ndtri(rule.alpha)) ** 2
    a = n.sum() ** 2 - z2 * (n @ n)
    b = d.sum() * n.sum() - z2 * (d @ n)
    c = d.sum() ** 2 - z2 * (d @ d)
    if a <= 0 or rule.alpha >= 0.5 or not d.any():
        return []
    gain = float(d.sum() / n.sum())
    distance = float((math.sqrt(max(b * b - a * c, 0.0)) - b) / a) + gain
    if not distance > 0:
        return []
    digits = 2 - math.floor(math.log10(distance))
    return sorted({round((1 + step) * distance - gain, digits) for step in MARGIN_STEPS})


def _describe_doubts(pair: BaselinePair, rule: WithinMargin) -> str:
    """Return text on why p may be too small, or "": few units differ, or rare differences are large."""
    d, _ = pair.sum_units()
    n_differ = int(np.count_nonzero(d))
    if n_differ < FEW_UNITS:
        return f", from {n_differ} discordant units: p may be too small"
    centred = d - d.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    skewness = float(np.mean(centred**3)) / spread**3 if spread else 0.0
    against = max(-side * skewness for side in rule.sides) / math.sqrt(len(d))
    return f", differences of skewness {skewness:.2g}: p may be too small" if against > MAX_SKEWNESS else ""


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
    counts: Counts, metric: BoundMetric, baseline: str, margins: Mapping[str, Sequence[float]]
) -> tuple[Counts, dict[tuple[str, float], str]] | None:
    """Return the item scores of the baseline, and those of the other systems improved by each of their margins.

    If a system is worse than the baseline by the margin on each item, the two are exchangeable in these scores. So a
    one-sided test of their mean tests non-inferiority. None if the metric is not a mean over items that all systems
    share.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.
    baseline : str
        The system whose scores are not shifted.
    margins : mapping of str to sequence of float
        Shifts of each other system, on the metric's scale.

    Returns
    -------
    (Counts, mapping of (system, margin) to str), or None
        The shifted scores, and the name of each shifted system.
    """
    mean_parts = split_mean(counts, metric)
    if mean_parts is None:
        return None
    numerators, items = mean_parts
    system_index = {name: k for k, name in enumerate(counts.systems)}
    moves = [(name, margin) for name, system_margins in margins.items() for margin in dict.fromkeys(system_margins)]
    columns = [system_index[baseline], *(system_index[name] for name, _ in moves)]
    shifts = np.array([0.0, *(margin for _, margin in moves)]) * (1 if metric.higher_is_better else -1)
    decimals = all(ScoreScale.from_scores(column).digits is not None for column in (*numerators[:, columns].T, shifts))
    scores = numerators[:, columns] + shifts * items
    rounding = _compute_rounding(counts, metric)[columns]
    names = {move: f"{move[0]} within {float(move[1])!r}" for move in moves}
    data = replace(
        counts,
        systems=(baseline, *names.values()),
        fields=ExactNumbers(
            {
                "score": np.round(scores, MAX_DIGITS) if decimals else scores,
                "items": items.astype(np.int64) if (items == np.rint(items)).all() else items,
            },
            {"score": tuple(rounding.tolist())} if rounding.any() else {},
        ),
        present=None if counts.present is None else counts.present[:, columns],
        labels=(),
        predicted_labels=(),
        held={} if metric.held is None else {"score": metric.held[:, columns]},
        outputs=None,
        replicates=(),
        suggested=("mean",),
    )
    return data, names


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
    if sd == 0:  # the spread is unknown, so nothing is shown
        return 1.0
    return max(0.5 * math.erfc(difference / sd / math.sqrt(2)), sys.float_info.min)  # p is never 0
