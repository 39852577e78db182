"""Intervals for very many units: jackknife standard errors and a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.analysis.comparison.intervals.effects import write_effects
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.results.columns.intervals import METHODS, NORMAL, Intervals
from sigdask.statistics.intervals import compute_level

Integers = NDArray[np.int64]

MANY_UNITS = 10_000
"""Units above which intervals are normal by default: resampling them takes seconds and moves no end that is shown."""


@dataclass(frozen=True, slots=True, eq=False)
class NormalIntervals:
    """Normal intervals of means and smooth scores of sums; attributes as in `BootstrapComparisons`."""

    panel: Panel
    indices: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None = None

    def write_intervals(self, columns: Intervals, _reasons: dict[int, str], _tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`."""
        panel, indices, row, column = self.panel, self.indices, self.row, self.column
        jackknives = [Jackknife.from_panel(panel, m) for m in range(len(panel.metrics))]
        write_effects(panel, indices, row, column, jackknives, columns)
        errors = np.stack([jackknife.error for jackknife in jackknives], axis=1)
        reach = special.ndtri(1 - compute_level(self.confidence) / 2) * errors
        n_pairs, (i, j) = len(panel.pairs), panel.pairs[row].T
        _write_ends(columns.low, columns.high, reach[row, column], indices, panel.differences[row, column])
        scores = panel.pair_scores[row, column]
        _write_ends(columns.a_low, columns.a_high, reach[n_pairs + i, column], indices, scores[:, 0])
        _write_ends(columns.b_low, columns.b_high, reach[n_pairs + j, column], indices, scores[:, 1])
        columns.method.codes[indices] = METHODS.index(NORMAL)


def _write_ends(low: NDArray[np.float64], high: NDArray[np.float64], reach: NDArray[np.float64], indices: Integers,
           middle: NDArray[np.float64]) -> None:  # fmt: skip
    low[indices], high[indices] = middle - reach, middle + reach
