"""Intervals of 0/1 scores by item: Tango's or the conditional exact one of their difference, Wilson's of each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.effects import enter_effects
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import numerators_and_weights, worth_of
from sigdask.results.columns.intervals import CONDITIONAL, METHODS, TANGO, Intervals
from sigdask.statistics.intervals import wilson
from sigdask.statistics.matched_proportions import conditional_interval, score_interval

Integers = NDArray[np.int64]


TIE = 2.0**-44
"""Relative spread of real differences that rounding may account for."""

MOST_NUMBERS = 2**22
"""Differences of units that are looked at together."""

ONE_SIDED = "it is one-sided, as the test is: the other end is the largest difference that the differing items allow"


def are_matched(panel: Panel) -> NDArray[np.bool_]:
    """Say which pairs and metrics of a panel are of scores of 0 and 1 by item, shape (n_pairs, n_metrics).

    Of 0 and another number, the same in both systems, as well: of 0 and 100, as percentages are. A system that has
    nothing but 0 goes with any other. One constant value other than 0 and 1 is no such score, nor is a constant
    difference of any other size.
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
        is_same = (least == most) | (least == 0)
        value = most / below.max(initial=1) * worth_of(panel, int(m))
        is_same &= (most == 0) | (np.abs(value - 1) <= TIE) | ~_are_constant(panel, int(m))
        found[:, m] = is_two[i] & is_two[j] & is_same & is_one & (panel.slack[:, m] == 0)
    return found


def are_constant(panel: Panel) -> NDArray[np.bool_]:
    """Say in which pairs and metrics every unit has the same difference, shape (n_pairs, n_metrics).

    Nothing then shows how much differences vary. Scores that are no means count where no unit differs at all.
    """
    found = panel.n_discordant == 0
    for m in np.flatnonzero(panel.linear):
        found[:, m] |= _are_constant(panel, int(m))
    return np.asarray(found)


def _are_constant(panel: Panel, m: int) -> NDArray[np.bool_]:
    """Say of which pairs all units have the same difference under a mean, shape (n_pairs,)."""
    above, below = numerators_and_weights(panel, m)
    weighed = below > 0
    if not weighed.any():
        return np.ones(len(panel.pairs), np.bool_)
    by_unit = above[weighed] / below[weighed, None]
    most = np.abs(by_unit).max(axis=0)
    found = np.zeros(len(panel.pairs), np.bool_)
    size = max(MOST_NUMBERS // len(by_unit), 1)
    for start in range(0, len(found), size):
        i, j = panel.pairs[start : start + size].T
        spread = np.ptp(by_unit[:, i] - by_unit[:, j], axis=0)
        rounding = TIE * (most[i] + most[j]) if panel.steps(m) else 0.0
        found[start : start + size] = spread <= rounding
    return found


@dataclass(frozen=True, slots=True, eq=False)
class MatchedItems:
    """Comparisons of 0/1 scores by item; attributes as in `Resampled`, the method's name and the test's alternative."""

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    method: str = TANGO
    alternative: Alternative = "two-sided"
    job: Job | None = None

    def enter(self, columns: Intervals, why: dict[int, str], _tallies: Tallies) -> None:
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
            right = np.where(right > 0, right, max(most.max(initial=0), 1))  # of two systems without a right item
            worth = right / below.max() * worth_of(panel, m)
            wins, losses = panel.signs[self.row[mine], m].T
            if self.method == TANGO:
                ends = score_interval(wins, losses, n, confidence)
            else:
                ends = conditional_interval(wins, losses, n, confidence, self.alternative)
            columns.low[own], columns.high[own] = (end * worth for end in ends)
            for side, low, high in ((i, columns.a_low, columns.a_high), (j, columns.b_low, columns.b_high)):
                ends = wilson(panel.numerators(m)[side] / right, n, confidence)
                low[own], high[own] = (end * worth for end in ends)
        columns.method.codes[self.own] = METHODS.index(self.method)
        if self.method == CONDITIONAL and self.alternative != "two-sided":
            why |= dict.fromkeys(self.own.tolist(), ONE_SIDED)
