"""The paired bootstrap of a panel: units drawn with replacement, for all its systems alike, and scored again.

What is counted is in which cell each resample's difference and each system's score lies, so that
tallies add and can be kept; intervals are made of them by `sigdask.statistics.intervals`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.identity import known_as
from sigdask.metrics.forms import scores_or_nan
from sigdask.randomization.panels.digests import Digests, digest, packed
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.cells import N_CELLS, add_differences, add_values, width_of
from sigdask.randomization.resampling.jackknife import binary_size
from sigdask.randomization.resampling.sums import WeightedSums
from sigdask.randomization.stream.shuffles import draw
from sigdask.randomization.tallies import CountingMethod, Tally

PILOT = 256
"""Resamples that tell how wide cells must be."""

MOST_NUMBERS = 2**20
"""Differences that are written out at a time."""

Floats = NDArray[np.float64]


@known_as("Bootstrap", "panel widths", apart_from="origins ties")
@dataclass(frozen=True, eq=False)
class Bootstrap:
    """The resampled differences and scores of a panel's pairs and systems, counted as a whole.

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
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False

    @staticmethod
    def of(panel: Panel) -> Bootstrap:
        """Look at some resamples to see how wide cells must be."""
        nothing = np.zeros(0)
        made = Bootstrap(panel, nothing, nothing, nothing)
        i, j = panel.pairs.T
        observed = [made._scored(m, panel.totals[None])[:, 0] for m in range(len(panel.metrics))]
        origins = np.concatenate([np.concatenate([own[i] - own[j], own]) for own in observed])
        sizes = np.concatenate([np.concatenate([np.abs(own[i]) + np.abs(own[j]), np.abs(own)]) for own in observed])
        ties, seen = np.asarray(TIE * sizes), list(made._scores(0, 0, PILOT))
        deviations = np.concatenate(
            [made._deviations(np.concatenate([own[m] for own in seen], axis=1)) for m in range(len(observed))]
        )
        return replace(
            made, origins=origins, ties=ties, widths=width_of(np.where(deviations > ties, deviations, 0), sizes)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and, always one, of metrics."""
        return self.n_rows * len(self.panel.metrics), 1

    @property
    def n_rows(self) -> int:
        """Rows of each metric."""
        return len(self.panel.pairs) + len(self.panel.totals)

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.panel.nbytes

    @cached_property
    def sums(self) -> WeightedSums:
        """What units contribute, arranged for summing."""
        return WeightedSums.of(self.panel)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count the cells of resamples `first` to `first + n_trials - 1` of a run."""
        counts = np.zeros((*self.shape, N_CELLS), np.int64)
        n_pairs = len(self.panel.pairs)
        for scores in self._scores(run, first, n_trials):
            for m, own in enumerate(scores):
                rows = slice(m * self.n_rows, (m + 1) * self.n_rows)
                cells, known = counts[rows, 0], (self.origins[rows], self.ties[rows], self.widths[rows])
                add_differences(own, self.panel.pairs, *(x[:n_pairs] for x in known), cells[:n_pairs])
                add_values(own, *(x[n_pairs:] for x in known), cells[n_pairs:])
        return Tally(n_trials, counts)

    def _scores(self, run: int, first: int, n_trials: int) -> Iterator[list[Floats]]:
        """Yield the scores of some resamples under each metric, shape (n_systems, n_some)."""
        fill = partial(draw, self.panel.key, run)
        for totals in self.sums.blocks(fill, first, n_trials):
            yield [self._scored(m, totals) for m in range(len(self.panel.metrics))]

    def _scored(self, m: int, totals: NDArray[np.int64]) -> Floats:
        sums = self.panel.sums(m, totals)
        return np.ascontiguousarray(scores_or_nan(self.panel.metrics[m].form, sums).T)

    def _deviations(self, scores: Floats) -> Floats:
        """Return the standard deviations of differences and of scores, shape (n_rows,), of what is defined."""
        scores = np.where(np.isfinite(scores), scores, scores[:, :1])
        unit = binary_size(scores)
        scores = scores / unit
        i, j = self.panel.pairs.T
        step = max(1, MOST_NUMBERS // scores.shape[1])
        each = [(scores[i[k : k + step]] - scores[j[k : k + step]]).std(axis=1) for k in range(0, len(i), step)]
        return np.asarray(unit * np.nan_to_num(np.concatenate([*each, scores.std(axis=1)])))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel without what is arranged for summing, which is made where it is needed."""
        return Bootstrap, (self.panel, self.origins, self.ties, self.widths)

    def part(self, _rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None) -> Bootstrap:
        """Return itself: it is counted as a whole."""
        return self

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return packed([bytes.fromhex(digest(self))]).reshape(1, 1)
