"""Pairs of rankings under max-T: each candidate's two ranks are exchanged with probability 1/2, at all n jointly.

Exchangeable ranks are another null than Fisher's on the two difference sets, which fixes the sizes of lists: here a
shuffled ranking may hold more or fewer than n candidates among its n best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.candidate_rankings.kernels import write_average_precisions, write_precisions
from sigdask.counts.lattice import TIE
from sigdask.identity import known_as
from sigdask.randomization.kernels.differences import raise_maxima
from sigdask.randomization.panels.digests import Digests, digest, packed
from sigdask.randomization.stream.shuffles import Key, swap_bits
from sigdask.randomization.tallies import FAMILY_TAILS, CountingMethod, Tally
from sigdask.statistics.candidates.lists import difference_sets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLAB_BYTES = 2**23
"""What the swaps and the differences of the trials that are counted at a time may take, each."""

SCALING_RUN, SCALING_TRIALS = 255, 1024
"""Swaps apart from those that are counted, from which deviations of average precision are taken: known to 2 %."""


@known_as("ExchangedRanks", "key orders gold pairs cutoffs", apart_from="scales")
@dataclass(frozen=True, eq=False)
class ExchangedRanks:
    """Hypotheses that two measures are as good: each pair at each n, or each pair by average precision.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    orders : int32 array, shape (n_measures, n_candidates)
        The candidate at each rank.
    gold : uint8 array, shape (n_candidates,)
        1 where a candidate is true.
    pairs : int64 array, shape (n_pairs, 2)
        Measures that are compared.
    cutoffs : int64 array, shape (n_measures, n_cutoffs)
        Candidates of each list, ascending: n, or those of the n best that are judged; none where average precision
        is compared.
    scales : float64 array, shape (n_hypotheses,)
        What a unit of each difference is worth in the maximum: 1 by its standard deviation under swaps, which no
        swap changes; 0 where nothing varies.
    """

    key: Key
    orders: NDArray[np.int32]
    gold: NDArray[np.uint8]
    pairs: Integers
    cutoffs: Integers
    scales: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=len(FAMILY_TAILS), grain=256, timed=256)
    is_whole: ClassVar[bool] = True
    enumerated: ClassVar[bool] = False

    @staticmethod
    def of_precision(
        key: Key, orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers, cutoffs: Integers
    ) -> ExchangedRanks:
        """Compare n-best precision at all n together."""
        return ExchangedRanks(key, orders, gold, pairs, cutoffs, _inverse(_deviations(orders, gold, pairs, cutoffs)))

    @staticmethod
    def of_average_precision(
        key: Key, orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers
    ) -> ExchangedRanks:
        """Compare average precision."""
        plain = ExchangedRanks(key, orders, gold, pairs, np.zeros((len(orders), 0), np.int64), np.ones(len(pairs)))
        squares = np.zeros(len(pairs))
        for differences, _ in plain.slabs(run=SCALING_RUN, first=0, n_trials=SCALING_TRIALS):
            squares += (differences**2).sum(axis=1)
        return ExchangedRanks(key, orders, gold, pairs, plain.cutoffs, _inverse(np.sqrt(squares / SCALING_TRIALS)))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of hypotheses and, always one, of metrics."""
        return len(self.scales), 1

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.orders.nbytes + self.gold.nbytes + self.pairs.nbytes

    @cached_property
    def observed(self) -> Floats:
        """Observed differences, shape (n_hypotheses,)."""
        return self._differences(np.zeros((1, len(self.gold)), np.bool_))[0][:, 0]

    @cached_property
    def statistics(self) -> Floats:
        """Observed differences as they are compared, shape (n_hypotheses,); -inf where nothing varies."""
        return np.where(self.scales > 0, np.abs(self.observed) * self.scales, -np.inf)

    @cached_property
    def order(self) -> Integers:
        """Hypotheses from the least to the most extreme."""
        return np.argsort(self.statistics, kind="stable")

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count, in trials `first` to `first + n_trials - 1` of a run, all tails of `FAMILY_TAILS`.

        The same candidates, seed and trials give the same counts on any machine, in any partition.
        """
        order = self.order
        own = np.where(self.scales > 0, self.statistics * (1 - TIE), -np.inf)
        counts = np.zeros((len(order), CountingMethod(n_tails=len(FAMILY_TAILS)).n_tails), np.int64)
        for differences, tie in self.slabs(run=run, first=first, n_trials=n_trials):
            largest = np.full(differences.shape[1], -np.inf)
            found = np.zeros((len(order), 4), np.int64)
            raise_maxima(
                differences[order], tie[order], self.observed[order], self.scales[order], own[order], 0, largest, found
            )
            counts[order, :3] += found[:, :3]
            counts[order, 4] += found[:, 3]
            largest.sort()
            counts[:, 3] += len(largest) - np.searchsorted(largest, own, side="left")
        return Tally(n_trials, counts[:, None, :])

    def slabs(self, *, run: int, first: int, n_trials: int):  # type: ignore[no-untyped-def]  # noqa: ANN201
        """Yield differences and their slack, shape (n_hypotheses, n_slab), for all trials."""
        size = max(1, SLAB_BYTES // max(len(self.gold), 16 * len(self.scales)))
        for start in range(first, first + n_trials, size):
            here = min(size, first + n_trials - start)
            yield self._differences(swap_bits(self.key, run=run, first=start, n_trials=here, n_units=len(self.gold)))

    def _differences(self, swapped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return differences and their slack, shape (n_hypotheses, n_trials), where candidates are exchanged."""
        out, tie = np.empty((2, len(self.scales), len(swapped)))
        if self.cutoffs.size:
            write_precisions(swapped, self.orders, self.gold, self.pairs, self.cutoffs, out, tie)
        else:
            write_average_precisions(swapped, self.orders, self.gold, self.pairs, out, tie)
        return out, tie

    def part(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> ExchangedRanks:
        """Return itself: it is counted as a whole."""
        return self

    def digests(self) -> Digests:
        """Return what it is as a whole, by content, shape (1, 1)."""
        return packed([bytes.fromhex(digest(self))]).reshape(1, 1)


@known_as("TiedRanks", "key orders gold pairs cutoffs used", apart_from="scales")
@dataclass(frozen=True, eq=False)
class TiedRanks(ExchangedRanks):
    """The same of lists with ties, each hypothesis in its own least favourable order.

    Attributes
    ----------
    used : int64 array
        The hypotheses that are tested, in their own order; of the others nothing is taken.
    """

    used: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def among(panel: ExchangedRanks, used: Integers) -> TiedRanks:
        """Keep some hypotheses of a panel."""
        scales = np.zeros_like(panel.scales)
        scales[used] = panel.scales[used]
        return TiedRanks(panel.key, panel.orders, panel.gold, panel.pairs, panel.cutoffs, scales, used)


def _deviations(orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers, cutoffs: Integers) -> Floats:
    """Return the standard deviation of each precision difference under swaps, linearised, (n_pairs * n_cutoffs,).

    With two lists of n candidates, on average, about a precision p, an exchanged candidate of one of them alone
    moves it by (gold - p) / n.
    """
    alone = difference_sets(orders, cutoffs, gold, pairs)
    above = np.concatenate([np.zeros((len(orders), 1), np.int64), np.cumsum(gold[orders], axis=1)], axis=1)
    true = np.take_along_axis(above, cutoffs, axis=1)
    a, b = pairs.T
    size = np.maximum((cutoffs[a] + cutoffs[b]) / 2, 1)
    precision = (true[a] + true[b]) / (2 * size)
    right, wrong = alone[:, :, 0] + alone[:, :, 2], alone[:, :, 1] + alone[:, :, 3]
    return np.asarray(np.sqrt(right * (1 - precision) ** 2 + wrong * precision**2) / size).ravel()


def _inverse(deviations: Floats) -> Floats:
    """Return 1 / deviation, 0 where nothing varies."""
    varies = deviations > np.finfo(np.float64).tiny
    return np.where(varies, 1.0, 0.0) / np.where(varies, deviations, 1.0)
