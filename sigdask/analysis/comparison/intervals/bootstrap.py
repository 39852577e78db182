"""Intervals of the paired bootstrap: BCa, or percentiles where BCa is not defined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.effects import write_effects
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.bootstrap import Bootstrap
from sigdask.randomization.resampling.cells import UNDEFINED, compute_quantiles, compute_share_below
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.whole_outputs import DEFAULT_RESAMPLES as DEFAULT_OUTPUT_RESAMPLES
from sigdask.randomization.resampling.whole_outputs import BootstrapOutputs
from sigdask.results.columns.intervals import BCA, METHODS, PERCENTILE, Intervals
from sigdask.statistics.intervals import compute_bca_shares, compute_level

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

DEFAULT_RESAMPLES = 10_000

NOT_COUNTED = "no resample is counted yet"
NO_SCORES = "no resample has a score"
NO_BCA = (
    "no resample lies below the observed value, or none above, or units are too skewed: what corrects bias and "
    "skewness is not defined, so percentiles stand as they are"
)
WHOLE_OUTPUTS = (
    "a metric of whole outputs is not asked for a score without each unit: percentiles are not corrected for skewness"
)


@dataclass(frozen=True, slots=True, eq=False)
class BootstrapComparisons:
    """Bootstrap intervals of comparisons whose scores are made of sums.

    Attributes
    ----------
    panel : Panel
        With all its units.
    indices : int64 array, shape (n_own,)
        The comparisons.
    row, column : int64 array, shape (n_own,)
        Pair and metric of each in the panel.
    confidence : float
        Of the intervals.
    job : Job
        Its panel is the panel's `Bootstrap`.
    """

    panel: Panel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job

    @staticmethod
    def from_panel(
        panel: Panel, indices: Integers, row: Integers, column: Integers, spec: IntervalSpec
    ) -> BootstrapComparisons:
        """Return the intervals of comparisons, with a job that resamples the units of their panel."""
        names = ", ".join(metric.name for metric in panel.metrics)
        job = Job(Bootstrap.from_panel(panel), spec.resamples or DEFAULT_RESAMPLES, label=f"intervals by {names}")
        return BootstrapComparisons(panel, indices, row, column, spec.confidence, job)

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        resampled, tally = self.job.panel, tallies[self.job]
        assert isinstance(resampled, Bootstrap)
        jackknives = [Jackknife.from_panel(self.panel, m) for m in range(len(self.panel.metrics))]
        write_effects(self.panel, self.indices, self.row, self.column, jackknives, columns)
        if tally.n_trials == 0:
            reasons |= dict.fromkeys(self.indices.tolist(), NOT_COUNTED)
            return
        steps = np.concatenate([_compute_steps(self.panel, m, resampled.n_rows) for m in range(len(jackknives))])
        acceleration = np.concatenate([jackknife.acceleration for jackknife in jackknives])
        below = tally.counts[:, 0]
        ends = IntervalEnds.from_counts(
            below, acceleration, resampled.origins, resampled.widths, steps, self.confidence
        )
        start = self.column * resampled.n_rows
        i, j = self.panel.pairs[self.row].T
        n_pairs = len(self.panel.pairs)
        ends.write_ends(columns, self.indices, start + self.row, start + n_pairs + i, start + n_pairs + j)
        columns.n_resamples[self.indices] = tally.n_trials
        reasons |= ends.list_remarks(self.indices, start + self.row, tally.n_trials)


def _compute_steps(panel: Panel, m: int, n_rows: int) -> Floats:
    """Return the smallest gap between resampled means, for each row; 0 if weights differ or scores are no means."""
    step = 0.0
    if panel.linear[m]:
        weights = panel.values[:, 0][:, list(panel.metrics[m].fields)] @ np.array(panel.get_ratio(m).denominators[0])
        step = panel.compute_step_value(m) if (weights == weights[0]).all() else 0.0
    return np.full(n_rows, step)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalEnds:
    """Ends of bootstrap intervals, BCa where defined and else percentile: arrays of shape (n,)."""

    low: Floats
    high: Floats
    plain_low: Floats
    plain_high: Floats
    is_bca: NDArray[np.bool_]
    n_undefined: Integers

    @staticmethod
    def from_counts(
        counts: Integers, acceleration: Floats, origins: Floats, widths: Floats, steps: Floats, confidence: float
    ) -> IntervalEnds:
        """Return the ends computed from histograms of resampled values, shape (n, N_CELLS)."""
        alpha = compute_level(confidence)
        low, high = compute_bca_shares(compute_share_below(counts), acceleration, confidence)
        is_bca = np.isfinite(low)
        grid = origins, widths, steps
        plain = [compute_quantiles(counts, np.full(len(counts), share), *grid) for share in (alpha / 2, 1 - alpha / 2)]
        corrected = [
            np.where(is_bca, compute_quantiles(counts, np.where(is_bca, share, alpha / 2), *grid), percentile)
            for share, percentile in zip((low, high), plain, strict=True)
        ]
        return IntervalEnds(corrected[0], corrected[1], plain[0], plain[1], is_bca, counts[:, UNDEFINED])

    def write_ends(self, columns: Intervals, indices: Integers, row: Integers, a: Integers, b: Integers) -> None:
        """Write the interval ends of differences and of both systems' scores into the rows of `columns`."""
        columns.low[indices], columns.high[indices] = self.low[row], self.high[row]
        columns.plain_low[indices], columns.plain_high[indices] = self.plain_low[row], self.plain_high[row]
        columns.a_low[indices], columns.a_high[indices] = self.low[a], self.high[a]
        columns.b_low[indices], columns.b_high[indices] = self.low[b], self.high[b]
        code = np.where(self.is_bca[row], METHODS.index(BCA), METHODS.index(PERCENTILE))
        columns.method.codes[indices] = np.where(np.isnan(self.low[row]), 0, code)

    def list_remarks(self, indices: Integers, row: Integers, n_resamples: int) -> dict[int, str]:
        """Return a remark for each comparison with resamples that lack a score, or with an interval that is not BCa."""
        found = {}
        for k, end_row in zip(indices.tolist(), row.tolist(), strict=True):
            if np.isnan(self.low[end_row]):
                found[k] = NO_SCORES
            elif self.n_undefined[end_row]:
                n = int(self.n_undefined[end_row])
                found[k] = f"{n:,} of {n_resamples:,} resamples have no score: the interval is of the others"
            elif not self.is_bca[end_row]:
                found[k] = NO_BCA
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ResampledOutputs:
    """Bootstrap intervals of two systems under a metric of whole outputs."""

    indices: Integers
    confidence: float
    job: Job

    @staticmethod
    def from_panel(panel: OutputsPanel, indices: Integers, spec: IntervalSpec) -> ResampledOutputs:
        """Return the intervals of one comparison, with a job that resamples its systems' outputs."""
        n_resamples = spec.resamples or DEFAULT_OUTPUT_RESAMPLES
        job = Job(BootstrapOutputs.from_panel(panel), n_resamples, label=f"intervals by {panel.metric.name}")
        return ResampledOutputs(indices, spec.confidence, job)

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        resampled, tally = self.job.panel, tallies[self.job]
        assert isinstance(resampled, BootstrapOutputs)
        if tally.n_trials == 0:
            reasons |= dict.fromkeys(self.indices.tolist(), NOT_COUNTED)
            return
        nans = np.full(3, np.nan)
        ends = IntervalEnds.from_counts(
            tally.counts[:, 0], nans, resampled.origins, resampled.widths, np.zeros(3), self.confidence
        )
        ends.write_ends(columns, self.indices, *(np.full(len(self.indices), k) for k in range(3)))
        columns.n_resamples[self.indices] = tally.n_trials
        reasons |= ends.list_remarks(self.indices, np.zeros(len(self.indices), np.int64), tally.n_trials)
        reasons |= {k: WHOLE_OUTPUTS for k in self.indices.tolist() if reasons[k] == NO_BCA}
