"""Intervals of very many units: standard errors of the unit jackknife, and a normal distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.analysis.comparison.intervals.effects import enter_effects
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.results.columns.intervals import METHODS, NORMAL, Intervals
from sigdask.statistics.intervals import level_of

Integers = NDArray[np.int64]

MANY_UNITS = 10_000
"""Units above which intervals are normal by default: resampling them takes seconds and moves no end that is shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """Comparisons of so many units that means and smooth scores of sums are normal; attributes as in `Resampled`."""

    panel: Panel
    own: Integers
    row: Integers
    column: Integers
    confidence: float
    job: Job | None = None

    def enter(self, columns: Intervals, _why: dict[int, str], _tallies: Tallies) -> None:
        """Put what was found into the rows of columns."""
        panel, own, row, column = self.panel, self.own, self.row, self.column
        jackknives = [Jackknife.of(panel, m) for m in range(len(panel.metrics))]
        enter_effects(panel, own, row, column, jackknives, columns)
        errors = np.stack([one.error for one in jackknives], axis=1)
        reach = special.ndtri(1 - level_of(self.confidence) / 2) * errors
        n_pairs, (i, j) = len(panel.pairs), panel.pairs[row].T
        _enter(columns.low, columns.high, reach[row, column], own, panel.differences[row, column])
        scores = panel.scores_of_pairs[row, column]
        _enter(columns.a_low, columns.a_high, reach[n_pairs + i, column], own, scores[:, 0])
        _enter(columns.b_low, columns.b_high, reach[n_pairs + j, column], own, scores[:, 1])
        columns.method.codes[own] = METHODS.index(NORMAL)


def _enter(low: NDArray[np.float64], high: NDArray[np.float64], reach: NDArray[np.float64], own: Integers,
           middle: NDArray[np.float64]) -> None:  # fmt: skip
    low[own], high[own] = middle - reach, middle + reach
