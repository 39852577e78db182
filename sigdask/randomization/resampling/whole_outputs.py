"""The bootstrap under a metric of whole outputs, which is called once for each system and resample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.errors import InputError
from sigdask.identity import known_as
from sigdask.randomization.panels.digests import Digests, digest, pack_digests
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.resampling.cells import N_CELLS, add_values, compute_widths
from sigdask.randomization.stream.swaps import draw_units
from sigdask.randomization.tallies import CountingMethod, Tally

DEFAULT_RESAMPLES = 1000
"""Of a black box, which is called twice for each."""

ASSUMED = 1 / 64
"""Deviation that cells are made for, as a share of the scores: a black box is not called to find out."""

AT_ONCE = 64
"""Resamples that are drawn at a time."""

Floats = NDArray[np.float64]


@known_as("BootstrapOutputs", "panel widths", apart_from="origins ties")
@dataclass(frozen=True, eq=False)
class BootstrapOutputs:
    """The bootstrap of two systems under a metric of whole outputs, counted in cells.

    Rows of counts are the difference a - b, the score of a and the score of b.

    Attributes
    ----------
    panel : OutputsPanel
        The outputs.
    origins, ties, widths : float64 array, shape (3,)
        As in `Bootstrap`.
    """

    panel: OutputsPanel
    origins: Floats
    ties: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, grain=1, timed=2, vectorised=False)
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False
    shape: ClassVar[tuple[int, int]] = (3, 1)

    @staticmethod
    def from_panel(panel: OutputsPanel) -> BootstrapOutputs:
        """Return the bootstrap of a panel, with widths of cells chosen from the size of the observed scores."""
        origins = _stack_rows(panel.scores[:, 0])
        sizes = np.abs(origins)
        sizes[0] = sizes[1] + sizes[2]
        return BootstrapOutputs(panel, origins, np.asarray(TIE * sizes), compute_widths(ASSUMED * sizes, sizes))

    @property
    def nbytes(self) -> float:
        """Size of the outputs in bytes, given as infinite, since it is unknown and may be large."""
        return self.panel.nbytes

    @cached_property
    def items_by_unit(self) -> list[NDArray[np.int64]]:
        """Items of each unit that has any, in the order of the units."""
        order = np.argsort(self.panel.index, kind="stable")
        _, starts = np.unique(self.panel.index[order], return_index=True)
        return np.split(order, starts[1:])

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count how many resampled values fall into each cell, for resamples `first` to `first + n_trials - 1`."""
        counts = np.zeros((*self.shape, N_CELLS), np.int64)
        values = np.stack(list(self._iter_values(run, first, n_trials)), axis=1)
        add_values(values, self.origins, self.ties, self.widths, counts[:, 0])
        return Tally(n_trials, counts)

    def _iter_values(self, run: int, first: int, n_trials: int) -> Iterator[Floats]:
        """Yield the difference and both scores of each resample."""
        panel = self.panel
        for start in range(first, first + n_trials, AT_ONCE):
            n_block = min(AT_ONCE, first + n_trials - start)
            for units in draw_units(panel.key, run=run, first=start, n_trials=n_block, n_units=len(self.items_by_unit)):
                drawn = np.concatenate([self.items_by_unit[u] for u in units])
                gold = None if panel.gold is None else panel.gold[drawn]
                resampled = replace(panel, a=panel.a[drawn], b=panel.b[drawn], gold=gold, index=panel.index[drawn])
                yield _stack_rows(_compute_scores(resampled))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without cached arrays, which are recomputed where they are needed."""
        return BootstrapOutputs, (self.panel, self.origins, self.ties, self.widths)

    def select(
        self, _rows: Sequence[int] | NDArray[np.int64], _columns: Sequence[int] | None = None
    ) -> BootstrapOutputs:
        """Return the bootstrap itself, as it is always counted as a whole."""
        return self

    def compute_digests(self) -> Digests:
        """Return the digest of the whole bootstrap, shape (1, 1)."""
        return pack_digests([bytes.fromhex(digest(self))]).reshape(1, 1)


def _stack_rows(scores: Floats) -> Floats:
    return np.array([scores[0] - scores[1], *scores])


def _compute_scores(panel: OutputsPanel) -> Floats:
    try:
        return panel.scores[:, 0]
    except InputError:  # a score that resampled outputs do not have
        return np.full(2, np.nan)
