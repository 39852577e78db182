"""Intervals that invert the randomization test of a mean: the differences that it does not reject."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.bootstrap import NOT_COUNTED
from sigdask.analysis.comparison.intervals.effects import enter_effects
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.cells import quantiles
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import ShiftPanel, numerators_and_weights, worth_of
from sigdask.results.columns.intervals import INVERSION, METHODS, Intervals
from sigdask.statistics.intervals import inverted, rejected

Integers = NDArray[np.int64]

ENOUGH = 2**17
"""Trials by default: the Monte Carlo error of an end is then below 1 % of a standard error."""

DRAWN, FEWEST = 2 * 10**8, 10_000
"""Swaps of units by default, at most but for so many trials: a second or two of a core."""

UNBOUNDED = "so few units, or trials, cannot reject any difference at this confidence"


@dataclass(frozen=True, slots=True, eq=False)
class InvertedComparisons:
    """Comparisons of means, by trials of the test; attributes as in `Resampled`."""

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job

    @staticmethod
    def of(
        panel: Panel, own: Integers, row: Integers, column: Integers, wanted: IntervalSpec, trials: int
    ) -> InvertedComparisons:
        """Invert the test of a panel by as many trials as it has itself, by default enough, or those asked for."""
        names = ", ".join(metric.name for metric in panel.metrics)
        enough = max(FEWEST, min(trials, ENOUGH, DRAWN // panel.n_units)) if wanted.kind == "auto" else trials
        job = Job(ShiftPanel.of(panel), wanted.resamples or enough, label=f"intervals by {names}")
        return InvertedComparisons(panel, own, row, column, wanted.confidence, job)

    def enter(self, columns: Intervals, why: dict[int, str], tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        _begin(self.panel, self.own, self.row, self.column, columns, why)
        drawn, tally = self.job.panel, tallies[self.job]
        assert isinstance(drawn, ShiftPanel)
        if tally.n_trials == 0:
            why |= dict.fromkeys(self.own.tolist(), NOT_COUNTED)
            return
        k = rejected(self.confidence, tally.n_trials, is_exact=False)
        share = k / tally.n_trials
        n_pairs = len(self.panel.pairs)
        for side, column, at, none in ((0, columns.low, share, -np.inf), (1, columns.high, 1 - share, np.inf)):
            rows = (2 * self.column + side) * n_pairs + self.row
            shares, steps = np.full(len(rows), at), np.zeros(len(rows))
            ends = quantiles(tally.counts[rows, 0], shares, drawn.origins[rows], drawn.widths[rows], steps)
            column[self.own] = np.where(k > 0, ends, none)
        columns.method.codes[self.own] = METHODS.index(INVERSION)
        columns.n_resamples[self.own] = tally.n_trials
        if k == 0:
            why |= dict.fromkeys(self.own.tolist(), UNBOUNDED)


@dataclass(frozen=True, slots=True, eq=False)
class InvertedByAll:
    """Comparisons of means over so few units that all arrangements are taken; attributes as in `Resampled`."""

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None = None

    def enter(self, columns: Intervals, why: dict[int, str], _tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        _begin(self.panel, self.own, self.row, self.column, columns, why)
        for k, row, m in zip(self.own.tolist(), self.row.tolist(), self.column.tolist(), strict=True):
            above, below = numerators_and_weights(self.panel, m)
            i, j = self.panel.pairs[row]
            ends = inverted(above[:, i] - above[:, j], below, self.confidence)
            worth = worth_of(self.panel, m)
            columns.low[k], columns.high[k] = ends[0] * worth, ends[1] * worth
            if not np.isfinite(ends[0]):
                why[k] = UNBOUNDED
        columns.method.codes[self.own] = METHODS.index(INVERSION)


def _begin(
    panel: Panel, own: Integers, row: Integers, column: Integers, columns: Intervals, why: dict[int, str]
) -> None:
    """Enter sizes of effect, and leave of what was resampled the intervals of both scores alone."""
    for rows in (columns.low, columns.high, columns.plain_low, columns.plain_high):
        rows[own] = np.nan
    columns.method.codes[own], columns.n_resamples[own] = 0, 0
    for k in own.tolist():
        why.pop(k, None)
    jackknives = [Jackknife.of(panel, m) for m in range(len(panel.metrics))]
    enter_effects(panel, own, row, column, jackknives, columns)
