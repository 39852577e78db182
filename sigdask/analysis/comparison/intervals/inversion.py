"""Intervals that hold all differences that the randomization test of a mean does not reject (inverted tests)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.bootstrap import NOT_COUNTED
from sigdask.analysis.comparison.intervals.effects import write_effects
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.cells import compute_quantiles
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.shifts import ShiftPanel, compute_numerators_and_weights, compute_score_value
from sigdask.results.columns.intervals import INVERSION, METHODS, Intervals
from sigdask.statistics.intervals import count_rejected, invert_test

Integers = NDArray[np.int64]

DEFAULT_TRIALS = 2**17
"""Trials by default: the Monte Carlo error of an end is then below 1 % of a standard error."""

MAX_SWAPS, MIN_TRIALS = 2 * 10**8, 10_000
"""Swaps of units by default, at most but for so many trials: a second or two of a core."""

UNBOUNDED = "so few units, or trials, cannot reject any difference at this confidence"


@dataclass(frozen=True, slots=True, eq=False)
class SampledInversion:
    """Intervals of means by the inverted test, from random trials; attributes as in `BootstrapComparisons`."""

    panel: Panel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job

    @staticmethod
    def from_panel(
        panel: Panel, indices: Integers, row: Integers, column: Integers, spec: IntervalSpec, trials: int
    ) -> SampledInversion:
        """Return the intervals of comparisons, with a job that counts the trials of the inverted test."""
        names = ", ".join(metric.name for metric in panel.metrics)
        default_trials = (
            max(MIN_TRIALS, min(trials, DEFAULT_TRIALS, MAX_SWAPS // panel.n_units)) if spec.kind == "auto" else trials
        )
        job = Job(ShiftPanel.from_panel(panel), spec.resamples or default_trials, label=f"intervals by {names}")
        return SampledInversion(panel, indices, row, column, spec.confidence, job)

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        _reset_rows(self.panel, self.indices, self.row, self.column, columns, reasons)
        shift_panel, tally = self.job.panel, tallies[self.job]
        assert isinstance(shift_panel, ShiftPanel)
        if tally.n_trials == 0:
            reasons |= dict.fromkeys(self.indices.tolist(), NOT_COUNTED)
            return
        k = count_rejected(self.confidence, tally.n_trials, is_exact=False)
        share = k / tally.n_trials
        n_pairs = len(self.panel.pairs)
        for side, column, target_share, unbounded in (
            (0, columns.low, share, -np.inf),
            (1, columns.high, 1 - share, np.inf),
        ):
            rows = (2 * self.column + side) * n_pairs + self.row
            shares, steps = np.full(len(rows), target_share), np.zeros(len(rows))
            ends = compute_quantiles(
                tally.counts[rows, 0], shares, shift_panel.origins[rows], shift_panel.widths[rows], steps
            )
            column[self.indices] = np.where(k > 0, ends, unbounded)
        columns.method.codes[self.indices] = METHODS.index(INVERSION)
        columns.n_resamples[self.indices] = tally.n_trials
        if k == 0:
            reasons |= dict.fromkeys(self.indices.tolist(), UNBOUNDED)


@dataclass(frozen=True, slots=True, eq=False)
class EnumeratedInversion:
    """Intervals of means by the inverted test, over so few units that all arrangements are counted without a job."""

    panel: Panel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None = None

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], _tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        _reset_rows(self.panel, self.indices, self.row, self.column, columns, reasons)
        for k, row, m in zip(self.indices.tolist(), self.row.tolist(), self.column.tolist(), strict=True):
            above, below = compute_numerators_and_weights(self.panel, m)
            i, j = self.panel.pairs[row]
            ends = invert_test(above[:, i] - above[:, j], below, self.confidence)
            worth = compute_score_value(self.panel, m)
            columns.low[k], columns.high[k] = ends[0] * worth, ends[1] * worth
            if not np.isfinite(ends[0]):
                reasons[k] = UNBOUNDED
        columns.method.codes[self.indices] = METHODS.index(INVERSION)


def _reset_rows(
    panel: Panel, indices: Integers, row: Integers, column: Integers, columns: Intervals, reasons: dict[int, str]
) -> None:
    """Write effect sizes, and clear bootstrap intervals of the differences; intervals of both scores stay."""
    for rows in (columns.low, columns.high, columns.plain_low, columns.plain_high):
        rows[indices] = np.nan
    columns.method.codes[indices], columns.n_resamples[indices] = 0, 0
    for k in indices.tolist():
        reasons.pop(k, None)
    jackknives = [Jackknife.from_panel(panel, m) for m in range(len(panel.metrics))]
    write_effects(panel, indices, row, column, jackknives, columns)
