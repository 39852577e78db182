"""Panel of random samples of candidates: precision as it would be estimated if only the sample had been judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import known_as
from sigdask.randomization.panels.digests import Digests, digest, pack_digests
from sigdask.randomization.stream.swaps import Key, draw_sample_ranks
from sigdask.randomization.tallies import CountingMethod, Tally

Integers = NDArray[np.int64]

SLAB_BYTES = 2**24
"""What the random numbers of the samples drawn at a time may take."""


@known_as("RandomSamples", "key orders gold cutoffs size n_samples")
@dataclass(frozen=True, eq=False)
class RandomSamples:
    """Panel of random samples of candidates, drawn without replacement; each trial draws one sample.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    orders : int32 array, shape (n_measures, n_candidates)
        The candidate at each rank.
    gold : uint8 array, shape (n_candidates,)
        1 where a candidate is true.
    cutoffs : int64 array, shape (n_cutoffs,)
        Each n.
    size : int
        Candidates of a sample.
    n_samples : int
        Samples in all.
    """

    key: Key
    orders: NDArray[np.int32]
    gold: NDArray[np.uint8]
    cutoffs: Integers
    size: int
    n_samples: int

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=2, grain=1, timed=1)
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples, and of measures times cutoffs."""
        return self.n_samples, len(self.orders) * len(self.cutoffs)

    @property
    def nbytes(self) -> int:
        """Approximate size of the panel's arrays in bytes."""
        return self.orders.nbytes + self.gold.nbytes

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count, for each sample and each n best, the sampled candidates and the true candidates among them.

        A sample has its own rows in the counts, those of others are 0: tallies of other samples add to it.
        """
        counts = np.zeros((*self.shape, 2), np.int64)
        size = max(1, SLAB_BYTES // (4 * len(self.gold)))
        for start in range(first, first + n_trials, size):
            n_slab = min(size, first + n_trials - start)
            counts[start : start + n_slab] = self._count_samples(run, start, n_slab)
        return Tally(n_trials, counts)

    def _count_samples(self, run: int, first: int, n_trials: int) -> Integers:
        """Count judged and true candidates in some samples, shape (n_trials, n_measures * n_cutoffs, 2)."""
        n = len(self.gold)
        random = draw_sample_ranks(self.key, run=run, first=first, n_trials=n_trials, n_units=n)
        is_drawn = np.zeros((n_trials, n), np.bool_)
        selected = np.argsort(random, axis=1, kind="stable")[:, : self.size]
        np.put_along_axis(is_drawn, selected, values=True, axis=1)
        counts = np.empty((n_trials, len(self.orders), len(self.cutoffs), 2), np.int64)
        for m, order in enumerate(self.orders[:, : self.cutoffs.max()]):
            in_list = is_drawn[:, order]
            counts[:, m, :, 0] = np.cumsum(in_list, axis=1)[:, self.cutoffs - 1]
            counts[:, m, :, 1] = np.cumsum(in_list & (self.gold[order] > 0), axis=1)[:, self.cutoffs - 1]
        return counts.reshape(n_trials, -1, 2)

    def select(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> RandomSamples:
        """Return the panel itself, whichever part is selected, as it is always counted as a whole."""
        return self

    def compute_digests(self) -> Digests:
        """Return the digest of the panel's contents, shape (1, 1)."""
        return pack_digests([bytes.fromhex(digest(self))]).reshape(1, 1)
