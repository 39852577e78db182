"""Tests that systems are within a margin of a baseline, of one test set under one metric.

0/1 scores are tested as matched proportions, which takes no shuffles; other means by shuffles of scores
shifted by the margin, on the same shuffles as the comparison itself; other metrics by the normal
approximation with the swap standard deviation. What a test says of one margin it says of all larger
ones, so the smallest margin that it shows comes from the same function as p (docs/statistics.md).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.analysis.comparison.caveats import FEW_UNITS
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.analysis.comparison.study import prepare
from sigdask.counts import Counts
from sigdask.counts.lattice import MOST_DIGITS, ScoreScale
from sigdask.counts.precision import ExactNumbers
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.forms import Ratios
from sigdask.nightly.gate import Equivalent, Key, MarginResult, WithinMargin, key_of
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.tallies import Tally
from sigdask.results.record import Result
from sigdask.statistics.matched_proportions import MatchedProportions

AnyBound = BoundMetric | BoundSets | BlackBox
Count = Callable[[Sequence[Job]], Sequence[Tally]]
"""Counts jobs."""

SKEWED = 0.2
"""Skewness of the units' differences over the root of their number from which the size is off by two points."""

RUNGS = (-0.1, -0.05, -0.02, 0.0, 0.02, 0.05, 0.1, 0.25)
"""Margins tried by shuffles, relative to their distance from the observed difference, about where p is alpha."""


@dataclass(frozen=True, slots=True, eq=False)
class BaselinePair:
    """A system and the baseline item by item, under a mean; turned so that more is better.

    Attributes
    ----------
    result : Result
        What was counted of the two.
    system : str
        Which of its two systems is not the baseline.
    above : float64 array, shape (n_items, 2)
        What each item adds for the system and for the baseline.
    below : float64 array, shape (n_items,)
        Its weight.
    units : int64 array, shape (n_items,)
        The unit of each item.
    """

    result: Result
    system: str
    above: NDArray[np.float64]
    below: NDArray[np.float64]
    units: NDArray[np.int64]

    def matched(self, side: int) -> MatchedProportions | None:
        """Return the items that differ, where scores are 0 and 1, or 0 and one other value and not constant.

        Side -1 exchanges the two systems.
        """
        worth = float(np.abs(self.above).max(initial=0.0)) or 1.0
        both = {0.0, worth if (self.above > 0).any() else -worth}
        if not len(self.below) or not (self.below == 1).all() or not set(np.unique(self.above)) <= both:
            return None
        if worth != 1 and not np.ptp(self.above[:, 0] - self.above[:, 1]):
            return None  # one constant value is no sign of a score of 0 and 1
        return MatchedProportions.of(side * np.sign(self.above[:, 0] - self.above[:, 1]), self.units, worth)

    def unit_sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the differences and weights of the units, shape (n_units,) each."""
        _, index = np.unique(self.units, return_inverse=True)
        columns = (self.above[:, 0] - self.above[:, 1], self.below)
        differences, weights = (np.asarray(np.bincount(index, weights=c), np.float64) for c in columns)
        return differences, weights


def margins_shown(
    counts: Counts,
    rule: WithinMargin,
    metric: AnyBound,
    results: Sequence[Result],
    baseline: str,
    spreads: Mapping[Key, float],
    wanted: CompareSpec,
    count: Count,
) -> Iterator[tuple[Key, MarginResult]]:
    """Test one metric: every system against the baseline.

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    rule : NonInferior or Equivalent
        The margin and level.
    metric : BoundMetric, BoundSets or BlackBox
        Bound to `counts`.
    results : sequence of Result
        Of systems against the baseline under the metric.
    baseline : str
        The other system of each.
    spreads : mapping of Key to float
        Swap standard deviations.
    wanted : CompareSpec
        How the mean of shifted scores is counted.
    count : callable
        Counts it.
    """
    pairs = _pairs(counts, metric, results, baseline, wanted) if isinstance(metric, BoundMetric) else None
    if pairs is None:
        yield from ((key_of(r), _by_normal(rule, r, baseline, spreads[key_of(r)])) for r in results)
        return
    shuffled = []
    for pair in pairs:
        if matched := [found for side in _sides(rule) if (found := pair.matched(side)) is not None]:
            yield key_of(pair.result), _by_proportions(rule, matched)
        else:
            shuffled.append(pair)
    if shuffled and isinstance(metric, BoundMetric):
        yield from _by_shuffles(counts, rule, metric, shuffled, baseline, wanted, count)


def _pairs(
    counts: Counts, metric: BoundMetric, results: Sequence[Result], baseline: str, wanted: CompareSpec
) -> list[BaselinePair] | None:
    if (found := shares(counts, metric)) is None:
        return None
    above, below = found
    units, place = SwapUnits.of(counts, wanted.seed).index, {name: k for k, name in enumerate(counts.systems)}
    sign = 1 if metric.higher_is_better else -1
    pairs = []
    for r in results:
        system = r.b if r.a == baseline else r.a
        own = [place[system], place[baseline]]
        subset = None if r.subset is None else np.array(counts.group(r.subset["column"])) == r.subset["value"]
        counted = counts.in_common(own, subset, metric.held) & ((below[:, 0] != 0) | (above[:, own] != 0).any(axis=1))
        pairs.append(BaselinePair(r, system, sign * above[counted][:, own], below[counted, 0], units[counted]))
    return pairs


def _sides(rule: WithinMargin) -> tuple[int, ...]:
    """Return the directions tested: that the system is not worse, and of equivalence that it is not better."""
    return (1, -1) if isinstance(rule, Equivalent) else (1,)


def _settled(p: float, smallest: float, rule: WithinMargin) -> float:
    """Return the smallest margin on the side of the rule's that p says: rounding alone may part them."""
    if p <= rule.alpha:
        return min(smallest, rule.margin)
    return max(smallest, math.nextafter(rule.margin, math.inf))


def _by_proportions(rule: WithinMargin, matched: Sequence[MatchedProportions]) -> MarginResult:
    p = max(m.p_value(rule.margin, rule.alpha) for m in matched)
    smallest = max(m.smallest_margin(rule.alpha) for m in matched)
    return MarginResult(p, matched[0].method, None, _settled(p, smallest, rule), matched[0])


def _by_normal(rule: WithinMargin, r: Result, baseline: str, sd: float) -> MarginResult:
    gain = r.difference if (r.b == baseline) == r.higher_is_better else -r.difference
    least = 2.0**-r.n_units
    p = max(least, *(normal_p(side * gain + rule.margin, sd) for side in _sides(rule)))
    smallest = math.inf
    if sd and least <= rule.alpha:
        smallest = max(float(special.ndtri(1 - rule.alpha)) * sd - side * gain for side in _sides(rule))
    is_few = r.n_discordant < FEW_UNITS
    few = f", from {r.n_discordant} discordant units: p may be too small" if is_few else ""
    return MarginResult(p, f"normal approximation{few}", None, _settled(p, smallest, rule), is_doubtful=is_few)


def _by_shuffles(
    counts: Counts,
    rule: WithinMargin,
    metric: BoundMetric,
    pairs: Sequence[BaselinePair],
    baseline: str,
    wanted: CompareSpec,
    count: Count,
) -> Iterator[tuple[Key, MarginResult]]:
    found = [_one_side(counts, rule, metric, pairs, baseline, wanted, count, side) for side in _sides(rule)]
    for pair, sides in zip(pairs, zip(*found, strict=True), strict=True):
        p = max(p for p, _, _ in sides)
        margins = [smallest for _, smallest, _ in sides]
        known = [m for m in margins if m is not None]
        smallest = _settled(p, max(known), rule) if len(known) == len(margins) else None
        doubts = _doubts(pair, rule)
        shown = MarginResult(p, f"shifted shuffle{doubts}", sides[0][2], smallest, is_doubtful=bool(doubts))
        yield key_of(pair.result), shown


def _one_side(
    counts: Counts,
    rule: WithinMargin,
    metric: BoundMetric,
    pairs: Sequence[BaselinePair],
    baseline: str,
    wanted: CompareSpec,
    count: Count,
    side: int,
) -> list[tuple[float, float | None, int]]:
    """Return p, the smallest margin that is shown and the number of trials of each pair, in one direction."""
    rungs = [_rungs(pair, rule, side) if wanted.by is None else [] for pair in pairs]
    margins: dict[str, list[float]] = {}
    for pair, own in zip(pairs, rungs, strict=True):
        margins.setdefault(pair.system, []).extend(side * margin for margin in (rule.margin, *own))
    moved = shifted(counts, metric, baseline, margins)
    assert moved is not None  # the metric is a mean, or there were no pairs
    data, names = moved
    asked = replace(wanted, pairs=[(name, baseline) for name in names.values()])
    better: Alternative = "greater" if metric.higher_is_better == (side > 0) else "less"
    study = prepare([(data, asked, better)], adjust="none", second_run=False)
    counted = {(r.subset["value"] if r.subset else None, r.a): r for r in study.results(count(study.jobs))}
    found = []
    for pair, own in zip(pairs, rungs, strict=True):
        subset = pair.result.subset["value"] if pair.result.subset else None
        by_margin = {m: counted[subset, names[pair.system, side * m]] for m in (rule.margin, *own)}
        shown = [m for m, r in by_margin.items() if r.p_value <= rule.alpha]
        one = by_margin[rule.margin]
        found.append((one.p_value, min(shown) if own and shown else None, one.n_trials))
    return found


def _rungs(pair: BaselinePair, rule: WithinMargin, side: int) -> list[float]:
    """Return margins about the smallest that shuffles would show, by the normal approximation of shifted shuffles.

    It solves (D + margin N)^2 = z^2 sum (d + margin n)^2 over the units' differences d and weights n.
    """
    d, n = pair.unit_sums()
    d = side * d
    z2 = float(special.ndtri(rule.alpha)) ** 2
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
    return sorted({round((1 + rung) * distance - gain, digits) for rung in RUNGS})


def _doubts(pair: BaselinePair, rule: WithinMargin) -> str:
    """Say where p may be too small: few units differ, or rare differences in the tested direction are large."""
    d, _ = pair.unit_sums()
    n_differ = int(np.count_nonzero(d))
    if n_differ < FEW_UNITS:
        return f", from {n_differ} discordant units: p may be too small"
    centred = d - d.mean()
    spread = float(np.sqrt(np.mean(centred**2)))
    skewness = float(np.mean(centred**3)) / spread**3 if spread else 0.0
    against = max(-side * skewness for side in _sides(rule)) / math.sqrt(len(d))
    return f", differences of skewness {skewness:.2g}: p may be too small" if against > SKEWED else ""


def shares(counts: Counts, metric: BoundMetric) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return what each item adds to a mean and how much it weighs, or None where the metric is no mean.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.

    Returns
    -------
    (float64 array, shape (n_items, n_systems); float64 array, shape (n_items, 1)), or None
        A mean is the sum of the first over that of the second, which all systems share.
    """
    form = metric.form
    if not isinstance(form, Ratios) or len(form.numerators) != 1:
        return None
    shape = (counts.n_items, counts.n_systems)
    fields = [np.broadcast_to(metric.field(name, counts), shape) for name in metric.fields]
    above = sum((w * f for w, f in zip(form.numerators[0], fields, strict=True)), np.zeros(shape))
    below = sum((w * f for w, f in zip(form.denominators[0], fields, strict=True)), np.zeros(shape))
    return (above, below[:, :1]) if (below == below[:, :1]).all() else None


def shifted(
    counts: Counts, metric: BoundMetric, baseline: str, margins: Mapping[str, Sequence[float]]
) -> tuple[Counts, dict[tuple[str, float], str]] | None:
    """Return item scores of the baseline, and of systems moved by margins in the better direction.

    Where a system's score is worse than the baseline's by the margin, item by item, the two are
    exchangeable in what is returned, so that a one-sided test of its `mean` tests non-inferiority. None
    where the metric is no mean over items that all systems share.

    Parameters
    ----------
    counts : Counts
        The aligned systems.
    metric : BoundMetric
        Bound to `counts`.
    baseline : str
        The system that is not moved.
    margins : mapping of str to sequence of float
        By how much each of the others is moved, on the metric's scale.

    Returns
    -------
    (Counts, mapping of (system, margin) to str), or None
        The moved scores, and what each moved system is called there.
    """
    found = shares(counts, metric)
    if found is None:
        return None
    above, items = found
    place = {name: k for k, name in enumerate(counts.systems)}
    moves = [(name, margin) for name, own in margins.items() for margin in dict.fromkeys(own)]
    columns = [place[baseline], *(place[name] for name, _ in moves)]
    by = np.array([0.0, *(margin for _, margin in moves)]) * (1 if metric.higher_is_better else -1)
    decimals = all(ScoreScale.of(column).digits is not None for column in (*above[:, columns].T, by))
    scores = above[:, columns] + by * items
    rounding = _rounding(counts, metric)[columns]
    names = {move: f"{move[0]} within {float(move[1])!r}" for move in moves}
    data = replace(
        counts,
        systems=(baseline, *names.values()),
        fields=ExactNumbers(
            {
                "score": np.round(scores, MOST_DIGITS) if decimals else scores,
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


def _rounding(counts: Counts, metric: BoundMetric) -> NDArray[np.float64]:
    """Return how far what an item adds to a mean may lie from what was meant, shape (n_systems,)."""
    form = metric.form
    assert isinstance(form, Ratios)
    off = [np.array(metric.rounding(name, counts)) for name in metric.fields]
    return sum((abs(w) * r for w, r in zip(form.numerators[0], off, strict=True)), np.zeros(counts.n_systems))


def normal_p(difference: float, sd: float) -> float:
    """Return P(Z >= difference / sd), the one-sided p of a difference with this standard error.

    Examples
    --------
    >>> round(normal_p(1.96, 1.0), 4)
    0.025
    """
    if sd == 0:  # nothing tells how far differences spread, so nothing is shown
        return 1.0
    return max(0.5 * math.erfc(difference / sd / math.sqrt(2)), sys.float_info.min)  # no p is 0
