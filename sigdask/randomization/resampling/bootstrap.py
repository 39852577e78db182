"""The paired bootstrap of a panel: units drawn with replacement, jointly for all systems, and scored.

Each resample's differences and scores are counted by the cell in which they lie, so that tallies add up
and can be stored. `sigdask.statistics.bounds` computes intervals from the counts.

`BootstrapOutputs` is the bootstrap under a metric computed by a function, which is called once for each system and
resample.

References
----------
Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7. Koehn 2004, "Statistical
significance tests for machine translation evaluation", EMNLP.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from sigdask.counts.fields import Floats, Integers
from sigdask.counts.precision import TIE
from sigdask.errors import InputError
from sigdask.metrics.forms import compute_scores_or_nan
from sigdask.randomization.panels.digests import ResampledPanel
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.sums import (
    N_CELLS,
    WeightedSums,
    add_differences,
    add_to_histogram,
    compute_binary_size,
    compute_widths,
)
from sigdask.randomization.stream import draw_kind_counts, draw_units
from sigdask.randomization.tallies import CountingMethod, Tally

PILOT = 256
"""Number of resamples that determine the width of cells."""

MAX_NUMBERS = 2**20
"""Maximum number of differences held at a time."""


@dataclass(frozen=True, eq=False)
class Bootstrap(ResampledPanel):
    """The bootstrap of a panel: resampled differences of its pairs and scores of its systems, counted in cells.

    Rows are, for each metric in turn, the differences of all pairs and then the scores of all systems.

    Attributes
    ----------
    panel : Panel
        With all its units, concordant ones included.
    origins, ties, widths : float64 array, shape (n_rows,)
        Observed values, how far off a value still ties, and the widths of cells.
    """

    panel: Panel
    origins: Floats
    ties: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, timed=64)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "bootstrap", self.panel, self.widths

    @staticmethod
    def from_panel(panel: Panel) -> Bootstrap:
        """Return the bootstrap of a panel, with widths of cells chosen from a few resamples."""
        empty = np.zeros(0)
        draft = Bootstrap(panel, empty, empty, empty)
        i, j = panel.pairs.T
        observed = [draft._compute_scores(m, panel.totals[None])[:, 0] for m in range(len(panel.metrics))]
        origins = np.concatenate([np.concatenate([values[i] - values[j], values]) for values in observed])
        sizes = np.concatenate(
            [np.concatenate([np.abs(values[i]) + np.abs(values[j]), np.abs(values)]) for values in observed]
        )
        ties, pilot_scores = np.asarray(TIE * sizes), list(draft._iter_scores(0, 0, PILOT))
        deviations = np.concatenate(
            [
                draft._compute_deviations(np.concatenate([values[m] for values in pilot_scores], axis=1))
                for m in range(len(observed))
            ]
        )
        return replace(
            draft, origins=origins, ties=ties, widths=compute_widths(np.where(deviations > ties, deviations, 0), sizes)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows of counts over all metrics, and 1."""
        return self.n_rows * self.panel.shape[1], 1

    @property
    def n_rows(self) -> int:
        """Number of rows of counts for each metric: one for each pair and one for each system."""
        return len(self.panel.pairs) + len(self.panel.totals)

    @cached_property
    def weighted_sums(self) -> WeightedSums:
        """Contributions of the panel's units, arranged for summing over each resample."""
        return WeightedSums.from_panel(self.panel)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count how many resampled values fall into each cell, for resamples `first` to `first + n_trials - 1`."""
        counts = np.zeros((*self.shape, N_CELLS), np.int64)
        n_pairs = len(self.panel.pairs)
        for scores in self._iter_scores(run, first, n_trials):
            for m, metric_scores in enumerate(scores):
                rows = slice(m * self.n_rows, (m + 1) * self.n_rows)
                cells, bounds = counts[rows, 0], (self.origins[rows], self.ties[rows], self.widths[rows])
                add_differences(metric_scores, self.panel.pairs, *(x[:n_pairs] for x in bounds), cells[:n_pairs])
                add_to_histogram(metric_scores, *(x[n_pairs:] for x in bounds), cells[n_pairs:])
        return Tally(n_trials, counts)

    def _iter_scores(self, run: int, first: int, n_trials: int) -> Iterator[list[Floats]]:
        """Yield the scores of some resamples under each metric, shape (n_systems, n_some)."""
        fill = partial(draw_kind_counts, self.panel.key, run)
        for totals in self.weighted_sums.iter_blocks(fill, first, n_trials):
            yield [self._compute_scores(m, totals) for m in range(len(self.panel.metrics))]

    def _compute_scores(self, m: int, totals: Integers) -> Floats:
        sums = self.panel.to_arguments(m, totals)
        return np.ascontiguousarray(compute_scores_or_nan(self.panel.metrics[m].form, sums).T)

    def _compute_deviations(self, scores: Floats) -> Floats:
        """Return the standard deviations over resamples of pairs' differences and systems' scores, shape (n_rows,)."""
        scores = np.where(np.isfinite(scores), scores, scores[:, :1])
        unit = compute_binary_size(scores)
        scores = scores / unit
        i, j = self.panel.pairs.T
        step = max(1, MAX_NUMBERS // scores.shape[1])
        deviations = [(scores[i[k : k + step]] - scores[j[k : k + step]]).std(axis=1) for k in range(0, len(i), step)]
        return np.asarray(unit * np.nan_to_num(np.concatenate([*deviations, scores.std(axis=1)])))


DEFAULT_RESAMPLES = 1000
"""Default number of resamples of a metric of whole outputs, which is called twice for each."""

ASSUMED = 1 / 64
"""Assumed standard deviation as a share of the scores, by which cells are sized. A metric of whole outputs is not
called to measure it.
"""

AT_ONCE = 64
"""Resamples drawn at a time."""


@dataclass(frozen=True, eq=False)
class BootstrapOutputs(Bootstrap):
    """The bootstrap of two systems under a metric of whole outputs, counted in cells.

    Rows of counts are the difference a - b, the score of a and the score of b.

    Attributes
    ----------
    panel : OutputsPanel
        The outputs.
    """

    panel: OutputsPanel  # type: ignore[assignment]

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, grain=1, timed=2, vectorised=False)
    n_rows: ClassVar[int] = 3

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "bootstrap of outputs", self.panel, self.widths

    @staticmethod
    def from_panel(panel: OutputsPanel) -> BootstrapOutputs:  # type: ignore[override]
        """Return the bootstrap of a panel, with widths of cells chosen from the size of the observed scores."""
        a, b = panel.scores[:, 0]
        origins, sizes = np.array([a - b, a, b]), np.array([abs(a) + abs(b), abs(a), abs(b)])
        return BootstrapOutputs(panel, origins, np.asarray(TIE * sizes), compute_widths(ASSUMED * sizes, sizes))

    @cached_property
    def items_by_unit(self) -> list[Integers]:
        """Items of each unit that has any, in the order of the units."""
        order = np.argsort(self.panel.index, kind="stable")
        _, starts = np.unique(self.panel.index[order], return_index=True)
        return np.split(order, starts[1:])

    def _iter_scores(self, run: int, first: int, n_trials: int) -> Iterator[list[Floats]]:
        """Yield the scores of some resamples, shape (2, n_some); NaN where resampled outputs have no score."""
        panel, n_units = self.panel, len(self.items_by_unit)
        for start in range(first, first + n_trials, AT_ONCE):
            scores = np.full((2, min(AT_ONCE, first + n_trials - start)), np.nan)
            drawn_units = draw_units(panel.key, run=run, first=start, n_trials=scores.shape[1], n_units=n_units)
            for t, units in enumerate(drawn_units):
                drawn = np.concatenate([self.items_by_unit[u] for u in units])
                with suppress(InputError):
                    scores[:, t] = panel.select_items(drawn).scores[:, 0]
            yield [scores]
