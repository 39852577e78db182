"""Intervals of means of 0/1 item scores: Tango's or conditional exact for differences, Wilson's for scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.effects import write_effects
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import compute_numerators_and_weights, compute_score_value
from sigdask.results.columns.intervals import CONDITIONAL, METHODS, TANGO, Intervals
from sigdask.statistics.intervals import wilson
from sigdask.statistics.matched_proportions import compute_conditional_interval, compute_score_interval

Integers = NDArray[np.int64]


TIE = 2.0**-44
"""Relative spread of real differences that rounding may account for."""

MOST_NUMBERS = 2**22
"""Differences of units that are looked at together."""

ONE_SIDED = "it is one-sided, as the test is: the other end is the largest difference that the differing items allow"


def are_matched(panel: Panel) -> NDArray[np.bool_]:
    """Return which pairs and metrics have 0/1 scores by item, shape (n_pairs, n_metrics).

    Of 0 and another number, the same in both systems, as well: of 0 and 100, as percentages are. A system that has
    nothing but 0 goes with any other. One constant value other than 0 and 1 is no such score, nor is a constant
    difference of any other size.
    """
    result = np.zeros(panel.shape, np.bool_)
    if panel.n_units != panel.n_items:
        return result
    i, j = panel.pairs.T
    for m in np.flatnonzero(panel.linear):
        above, below = compute_numerators_and_weights(panel, int(m))
        item_score = above.max(axis=0, initial=0)  # what a right item is worth, of each system; 0 where it has none
        is_two = ((above == 0) | (above == item_score)).all(axis=0) & (above[below == 0] == 0).all(axis=0)
        is_equal_weight = bool(((below == 0) | (below == below.max(initial=0))).all())
        larger, smaller = np.maximum(item_score[i], item_score[j]), np.minimum(item_score[i], item_score[j])
        is_same = (smaller == larger) | (smaller == 0)
        value = larger / below.max(initial=1) * compute_score_value(panel, int(m))
        is_same &= (larger == 0) | (np.abs(value - 1) <= TIE) | ~_has_constant_means(panel, int(m))
        result[:, m] = is_two[i] & is_two[j] & is_same & is_equal_weight & (panel.slack[:, m] == 0)
    return result


def are_constant(panel: Panel) -> NDArray[np.bool_]:
    """Return for which pairs and metrics all units have the same difference, shape (n_pairs, n_metrics).

    Nothing then shows how much differences vary. Scores that are no means count where no unit differs at all.
    """
    result = panel.n_discordant == 0
    for m in np.flatnonzero(panel.linear):
        result[:, m] |= _has_constant_means(panel, int(m))
    return np.asarray(result)


def _has_constant_means(panel: Panel, m: int) -> NDArray[np.bool_]:
    """Return for which pairs all units have the same difference under a metric that is a mean, shape (n_pairs,)."""
    above, below = compute_numerators_and_weights(panel, m)
    weighed = below > 0
    if not weighed.any():
        return np.ones(len(panel.pairs), np.bool_)
    by_unit = above[weighed] / below[weighed, None]
    largest = np.abs(by_unit).max(axis=0)
    result = np.zeros(len(panel.pairs), np.bool_)
    size = max(MOST_NUMBERS // len(by_unit), 1)
    for start in range(0, len(result), size):
        i, j = panel.pairs[start : start + size].T
        spread = np.ptp(by_unit[:, i] - by_unit[:, j], axis=0)
        rounding = TIE * (largest[i] + largest[j]) if panel.count_slack_steps(m) else 0.0
        result[start : start + size] = spread <= rounding
    return result


@dataclass(frozen=True, slots=True, eq=False)
class BinaryIntervals:
    """Intervals of comparisons of 0/1 item scores, by the interval's `method` and `alternative`."""

    panel: Panel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    method: str = TANGO
    alternative: Alternative = "two-sided"
    job: Job | None = None

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], _tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        panel, confidence = self.panel, self.confidence
        jackknives = [Jackknife.from_panel(panel, m) for m in range(len(panel.metrics))]
        write_effects(panel, self.indices, self.row, self.column, jackknives, columns)
        for m in range(len(panel.metrics)):
            in_metric = self.column == m
            rows, (i, j) = self.indices[in_metric], panel.pairs[self.row[in_metric]].T
            above, below = compute_numerators_and_weights(panel, m)
            largest, n = above.max(axis=0), np.count_nonzero(below)
            item_score = np.maximum(largest[i], largest[j])
            item_score = np.where(
                item_score > 0, item_score, max(largest.max(initial=0), 1)
            )  # of two systems without a right item
            worth = item_score / below.max() * compute_score_value(panel, m)
            wins, losses = panel.sign_counts[self.row[in_metric], m].T
            if self.method == TANGO:
                ends = compute_score_interval(wins, losses, n, confidence)
            else:
                ends = compute_conditional_interval(wins, losses, n, confidence, self.alternative)
            columns.low[rows], columns.high[rows] = (end * worth for end in ends)
            for side, low, high in ((i, columns.a_low, columns.a_high), (j, columns.b_low, columns.b_high)):
                ends = wilson(panel.compute_observed_numerators(m)[side] / item_score, n, confidence)
                low[rows], high[rows] = (end * worth for end in ends)
        columns.method.codes[self.indices] = METHODS.index(self.method)
        if self.method == CONDITIONAL and self.alternative != "two-sided":
            reasons |= dict.fromkeys(self.indices.tolist(), ONE_SIDED)
