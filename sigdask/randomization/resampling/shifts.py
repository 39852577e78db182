"""The inverted randomization test of a mean: shifts of the difference at which each trial is as extreme as observed.

Where each unit's difference is shifted by D times its weight, a trial that swaps the units of a set S is
as extreme as the observed difference, in one direction, just where the mean of S (or of its complement)
has D on its other side. So each trial gives two shifts, the means of S and of the units it leaves, and the
interval ends where enough of the smaller ones lie below, and of the larger ones above. These are counted in cells,
0 with one of its own, so that the interval holds 0 just where the test of as many trials does not reject.

References
----------
Hartigan 1969, Journal of the American Statistical Association 64:1303. Garthwaite 1996, Biometrics 52:1387.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.randomization.panels.digests import ResampledPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.sums import INNER, N_CELLS, WeightedSums, add_to_histogram, compute_widths
from sigdask.randomization.stream import COLUMN, fill_swap_words
from sigdask.randomization.tallies import CountingMethod, Tally

COARSER = 4
"""Width of cells relative to those of resamples, so that they reach both ends, and 0 if it is near."""

NEAR = INNER // 64
"""Cells begin at a shift of 0 if it is within so many standard errors."""


@dataclass(frozen=True, eq=False)
class ShiftPanel(ResampledPanel):
    """Shifts of pairs' differences at which each trial becomes as extreme as observed, counted in cells.

    Rows are, for each metric in turn, the smaller shifts of all pairs and then the larger ones.

    Attributes
    ----------
    panel : Panel
        Panel with all its units, whose metrics are means.
    origins, widths : float64 array, shape (n_rows,)
        Origins and widths of the cells.
    """

    panel: Panel
    origins: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, timed=64)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "shifts", self.panel, self.origins, self.widths

    @staticmethod
    def from_panel(panel: Panel) -> ShiftPanel:
        """Return the shifts of a panel, with cells chosen from the observed differences and their standard errors."""
        origins, widths = [], []
        for m in range(len(panel.metrics)):
            above, below = compute_numerators_and_weights(panel, m)
            n_pairs = len(panel.pairs)
            value, total = compute_score_value(panel, m), float(below.sum())
            observed, errors = np.empty(n_pairs), np.empty(n_pairs)
            for p, (a, b) in enumerate(panel.pairs.tolist()):
                d = (above[:, a] - above[:, b]).astype(np.float64)
                observed[p] = d.sum() / total
                errors[p] = np.sqrt(((d - observed[p] * below) ** 2).sum()) / total
            width = COARSER * compute_widths(errors * value, np.abs(observed) * value)
            is_near = np.abs(observed) <= NEAR * errors
            origins += [np.where(is_near, 0.0, observed * value)] * 2
            widths += [width] * 2
        return ShiftPanel(panel, np.concatenate(origins), np.concatenate(widths))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows of counts over all metrics, and 1."""
        return len(self.origins), 1

    @cached_property
    def weighted_sums(self) -> WeightedSums:
        """Contributions of the panel's units, arranged for summing over swapped units."""
        return WeightedSums.from_panel(self.panel)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count how many shifts fall into each cell, for the test's trials `first` to `first + n_trials - 1`."""
        panel, counts = self.panel, np.zeros((*self.shape, N_CELLS), np.int64)
        n_pairs = len(panel.pairs)
        for totals in self.weighted_sums.iter_blocks(partial(_fill_swaps, panel, run), first, n_trials):
            for m in range(len(panel.metrics)):
                above = np.ascontiguousarray(panel.compute_numerators(m, totals).T)  # (n_systems, n_some)
                weights = panel.compute_denominators(m, totals[:, 0])
                all_numerators = panel.compute_numerators(m, panel.totals)
                all_weights = panel.compute_denominators(m, panel.totals[0])
                shifts = np.empty((2, n_pairs, len(weights)))
                slack = np.ascontiguousarray(panel.slack[:, m])
                _write_means(above, weights, all_numerators, all_weights, panel.pairs, slack, shifts)
                shifts *= compute_score_value(panel, m)
                rows = slice(2 * m * n_pairs, 2 * (m + 1) * n_pairs)
                cell_bounds = self.origins[rows], np.zeros(2 * n_pairs), self.widths[rows]
                add_to_histogram(shifts.reshape(2 * n_pairs, -1), *cell_bounds, counts[rows, 0])
        return Tally(n_trials, counts)


def compute_numerators_and_weights(panel: Panel, m: int) -> tuple[Integers, Integers]:
    """Return contributions of each unit to a mean's numerators, (n_units, n_systems), and denominator, (n_units,)."""
    return panel.compute_numerators(m, panel.values), panel.compute_denominators(m, panel.values[:, 0])


def compute_score_value(panel: Panel, m: int) -> float:
    """Return the score that a numerator of 1 and a denominator of 1 give."""
    return panel.compute_step_value(m) * float(panel.compute_denominators(m, panel.totals[0]))


def _fill_swaps(panel: Panel, run: int, first: int, kinds: NDArray[Any], out: NDArray[np.floating]) -> None:
    """Fill `out`, shape (n_trials, n_kinds), with how many units of each kind are swapped."""
    out[:] = 0
    words = np.empty((4, len(out)), np.uint32)
    columns = panel.addresses // COLUMN
    for column in np.unique(columns):
        fill_swap_words(panel.key, run, first, int(column), words)
        units = np.flatnonzero(columns == column)
        _count_swaps(words, panel.addresses[units] % COLUMN, kinds[units], out)


@cached_njit()
def _count_swaps(words, bits, kinds, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for t in range(out.shape[0]):
        for k in range(kinds.shape[0]):
            out[t, kinds[k]] += (words[bits[k] // 32, t] >> np.uint32(bits[k] % 32)) & np.uint32(1)


@cached_njit()
def _write_means(above, weights, all_numerators, all_weights, pairs, slack, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write mean differences of swapped and of other units, the smaller first, to `out`, (2, n_pairs, n_trials)."""
    for p in range(pairs.shape[0]):
        i, j = pairs[p]
        total = all_numerators[i] - all_numerators[j]
        for t in range(weights.shape[0]):
            swapped = above[i, t] - above[j, t]
            swapped_mean = _compute_mean(swapped, weights[t], slack[p])
            other_mean = _compute_mean(total - swapped, all_weights - weights[t], slack[p])
            if np.isnan(swapped_mean) or np.isnan(other_mean):
                # the observed difference, or its negative: extreme at any shift
                swapped_mean, other_mean = -np.inf, np.inf
            out[0, p, t] = min(swapped_mean, other_mean)
            out[1, p, t] = max(swapped_mean, other_mean)


@cached_njit(inline="always")
def _compute_mean(above, below, slack):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if below == 0:  # units without weight: no shift changes the sign of their sum
        return np.nan if abs(above) <= slack else np.copysign(np.inf, above)
    return 0.0 if abs(above) <= slack else above / below
