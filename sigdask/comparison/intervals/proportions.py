"""Score intervals of 0/1 scores by item: Tango's of their difference, Wilson's of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.intervals.columns import METHODS, TANGO, Intervals
from sigdask.comparison.intervals.effects import enter_effects
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import numerators_and_weights, worth_of
from sigdask.statistics.intervals import wilson
from sigdask.statistics.matched_proportions import score_interval

Integers = NDArray[np.int64]


def are_matched(panel: Panel) -> NDArray[np.bool_]:
    """Say which pairs and metrics of a panel are of scores of 0 and 1 by item, shape (n_pairs, n_metrics).

    Of 0 and another number, the same in both systems, as well: of 0 and 100, as percentages are. A system that has
    nothing but 0 goes with any other.
    """
    found = np.zeros(panel.shape, np.bool_)
    if panel.n_units != panel.n_items:
        return found
    i, j = panel.pairs.T
    for m in np.flatnonzero(panel.linear):
        above, below = numerators_and_weights(panel, int(m))
        right = above.max(axis=0, initial=0)  # what a right item is worth, of each system; 0 where it has none
        is_two = ((above == 0) | (above == right)).all(axis=0) & (above[below == 0] == 0).all(axis=0)
        is_one = bool(((below == 0) | (below == below.max(initial=0))).all())
        most, least = np.maximum(right[i], right[j]), np.minimum(right[i], right[j])
        is_same = (most > 0) & ((least == most) | (least == 0))
        found[:, m] = is_two[i] & is_two[j] & is_same & is_one & (panel.slack[:, m] == 0)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class MatchedItems:
    """Comparisons of 0/1 scores by item; attributes as in `Resampled`."""

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None = None

    def enter(self, columns: Intervals, _why: dict[int, str], _tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        panel, confidence = self.panel, self.confidence
        jackknives = [Jackknife.of(panel, m) for m in range(len(panel.metrics))]
        enter_effects(panel, self.own, self.row, self.column, jackknives, columns)
        for m in range(len(panel.metrics)):
            mine = self.column == m
            own, (i, j) = self.own[mine], panel.pairs[self.row[mine]].T
            above, below = numerators_and_weights(panel, m)
            most, n = above.max(axis=0), np.count_nonzero(below)
            right = np.maximum(most[i], most[j])
            worth = right / below.max() * worth_of(panel, m)
            wins, losses = panel.signs[self.row[mine], m].T
            ends = score_interval(wins, losses, n, confidence)
            columns.low[own], columns.high[own] = (end * worth for end in ends)
            for side, low, high in ((i, columns.a_low, columns.a_high), (j, columns.b_low, columns.b_high)):
                ends = wilson(panel.numerators(m)[side] / right, n, confidence)
                low[own], high[own] = (end * worth for end in ends)
        columns.method.codes[self.own] = METHODS.index(TANGO)
