"""Intervals of the paired bootstrap: BCa, and percentiles where it is not defined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.effects import enter_effects
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.bootstrap import Bootstrap
from sigdask.randomization.resampling.cells import UNDEFINED, quantiles, share_below
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.randomization.resampling.whole_outputs import DEFAULT_RESAMPLES as OF_OUTPUTS
from sigdask.randomization.resampling.whole_outputs import BootstrapOutputs
from sigdask.results.columns.intervals import BCA, METHODS, PERCENTILE, Intervals
from sigdask.statistics.intervals import bca_shares, level_of

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
    """Comparisons of sums, whose units are resampled.

    Attributes
    ----------
    panel : Panel
        With all its units.
    own : int64 array, shape (n_own,)
        The comparisons.
    row, column : int64 array, shape (n_own,)
        Pair and metric of each in the panel.
    confidence : float
        Of the intervals.
    job : Job
        Its panel is the panel's `Bootstrap`.
    """

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job

    @staticmethod
    def of(panel: Panel, own: Integers, row: Integers, column: Integers, wanted: IntervalSpec) -> BootstrapComparisons:
        """Resample a panel."""
        names = ", ".join(metric.name for metric in panel.metrics)
        job = Job(Bootstrap.of(panel), wanted.resamples or DEFAULT_RESAMPLES, label=f"intervals by {names}")
        return BootstrapComparisons(panel, own, row, column, wanted.confidence, job)

    def enter(self, columns: Intervals, why: dict[int, str], tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        drawn, tally = self.job.panel, tallies[self.job]
        assert isinstance(drawn, Bootstrap)
        jackknives = [Jackknife.of(self.panel, m) for m in range(len(self.panel.metrics))]
        enter_effects(self.panel, self.own, self.row, self.column, jackknives, columns)
        if tally.n_trials == 0:
            why |= dict.fromkeys(self.own.tolist(), NOT_COUNTED)
            return
        steps = np.concatenate([_steps(self.panel, m, drawn.n_rows) for m in range(len(jackknives))])
        acceleration = np.concatenate([one.acceleration for one in jackknives])
        below = tally.counts[:, 0]
        found = IntervalEnds.of(below, acceleration, drawn.origins, drawn.widths, steps, self.confidence)
        start = self.column * drawn.n_rows
        i, j = self.panel.pairs[self.row].T
        n_pairs = len(self.panel.pairs)
        found.enter(columns, self.own, start + self.row, start + n_pairs + i, start + n_pairs + j)
        columns.n_resamples[self.own] = tally.n_trials
        why |= found.remarks(self.own, start + self.row, tally.n_trials)


def _steps(panel: Panel, m: int, n_rows: int) -> Floats:
    """Return how finely resampled means are distinguished, where each unit weighs the same; 0 of other scores."""
    step = 0.0
    if panel.linear[m]:
        weights = panel.values[:, 0][:, list(panel.metrics[m].fields)] @ np.array(panel.ratio(m).denominators[0])
        step = panel.unit_of(m) if (weights == weights[0]).all() else 0.0
    return np.full(n_rows, step)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalEnds:
    """Ends of intervals, BCa ones and those of percentiles: arrays of shape (n,), of which some have no BCa."""

    low: Floats
    high: Floats
    plain_low: Floats
    plain_high: Floats
    is_bca: NDArray[np.bool_]
    n_undefined: Integers

    @staticmethod
    def of(
        counts: Integers, acceleration: Floats, origins: Floats, widths: Floats, steps: Floats, confidence: float
    ) -> IntervalEnds:
        """Read the ends off cells, shape (n, N_CELLS)."""
        alpha = level_of(confidence)
        low, high = bca_shares(share_below(counts), acceleration, confidence)
        is_bca = np.isfinite(low)
        known = origins, widths, steps
        plain = [quantiles(counts, np.full(len(counts), share), *known) for share in (alpha / 2, 1 - alpha / 2)]
        corrected = [
            np.where(is_bca, quantiles(counts, np.where(is_bca, share, alpha / 2), *known), one)
            for share, one in zip((low, high), plain, strict=True)
        ]
        return IntervalEnds(corrected[0], corrected[1], plain[0], plain[1], is_bca, counts[:, UNDEFINED])

    def enter(self, columns: Intervals, own: Integers, row: Integers, a: Integers, b: Integers) -> None:
        """Put the ends of differences and of both scores into columns."""
        columns.low[own], columns.high[own] = self.low[row], self.high[row]
        columns.plain_low[own], columns.plain_high[own] = self.plain_low[row], self.plain_high[row]
        columns.a_low[own], columns.a_high[own] = self.low[a], self.high[a]
        columns.b_low[own], columns.b_high[own] = self.low[b], self.high[b]
        code = np.where(self.is_bca[row], METHODS.index(BCA), METHODS.index(PERCENTILE))
        columns.method.codes[own] = np.where(np.isnan(self.low[row]), 0, code)

    def remarks(self, own: Integers, row: Integers, n_resamples: int) -> dict[int, str]:
        """Return what is to be known of some, by comparison."""
        found = {}
        for k, at in zip(own.tolist(), row.tolist(), strict=True):
            if np.isnan(self.low[at]):
                found[k] = NO_SCORES
            elif self.n_undefined[at]:
                n = int(self.n_undefined[at])
                found[k] = f"{n:,} of {n_resamples:,} resamples have no score: the interval is of the others"
            elif not self.is_bca[at]:
                found[k] = NO_BCA
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ResampledOutputs:
    """Two systems under a metric of whole outputs whose units are resampled (see `BootstrapComparisons`)."""

    own: Integers
    confidence: float
    job: Job

    @staticmethod
    def of(panel: OutputsPanel, own: Integers, wanted: IntervalSpec) -> ResampledOutputs:
        """Resample whole outputs."""
        n_resamples = wanted.resamples or OF_OUTPUTS
        job = Job(BootstrapOutputs.of(panel), n_resamples, label=f"intervals by {panel.metric.name}")
        return ResampledOutputs(own, wanted.confidence, job)

    def enter(self, columns: Intervals, why: dict[int, str], tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        drawn, tally = self.job.panel, tallies[self.job]
        assert isinstance(drawn, BootstrapOutputs)
        if tally.n_trials == 0:
            why |= dict.fromkeys(self.own.tolist(), NOT_COUNTED)
            return
        nothing = np.full(3, np.nan)
        found = IntervalEnds.of(tally.counts[:, 0], nothing, drawn.origins, drawn.widths, np.zeros(3), self.confidence)
        found.enter(columns, self.own, *(np.full(len(self.own), k) for k in range(3)))
        columns.n_resamples[self.own] = tally.n_trials
        why |= found.remarks(self.own, np.zeros(len(self.own), np.int64), tally.n_trials)
        why |= {k: WHOLE_OUTPUTS for k in self.own.tolist() if why[k] == NO_BCA}
