"""Panels that test pairs of rankings: each candidate's two ranks are swapped at random, for all n together.

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
from sigdask.randomization.panels.digests import Digests, digest, pack_digests
from sigdask.randomization.stream.swaps import Key, draw_swap_bits
from sigdask.randomization.tallies import FAMILY_TAILS, CountingMethod, Tally
from sigdask.statistics.candidates.lists import count_difference_sets

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SLAB_BYTES = 2**23
"""What the swaps and the differences of the trials that are counted at a time may take, each."""

SCALING_RUN, SCALING_TRIALS = 255, 1024
"""Swaps apart from those that are counted, from which deviations of average precision are taken: known to 2 %."""


@known_as("ExchangedRanks", "key orders gold pairs cutoffs", apart_from="scales")
@dataclass(frozen=True, eq=False)
class SwappedRanks:
    """Panel of the hypotheses that two measures are equally good, for each pair at each n, or by average precision.

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
    def build_precision_panel(
        key: Key, orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers, cutoffs: Integers
    ) -> SwappedRanks:
        """Return a panel that compares the n-best precision of pairs of measures, at all n together."""
        return SwappedRanks(
            key, orders, gold, pairs, cutoffs, _invert(_compute_deviations(orders, gold, pairs, cutoffs))
        )

    @staticmethod
    def build_average_precision_panel(
        key: Key, orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers
    ) -> SwappedRanks:
        """Return a panel that compares the average precision of pairs of measures."""
        plain = SwappedRanks(key, orders, gold, pairs, np.zeros((len(orders), 0), np.int64), np.ones(len(pairs)))
        squares = np.zeros(len(pairs))
        for differences, _ in plain.iter_slabs(run=SCALING_RUN, first=0, n_trials=SCALING_TRIALS):
            squares += (differences**2).sum(axis=1)
        return SwappedRanks(key, orders, gold, pairs, plain.cutoffs, _invert(np.sqrt(squares / SCALING_TRIALS)))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of hypotheses and of metrics, which is always 1."""
        return len(self.scales), 1

    @property
    def nbytes(self) -> int:
        """Approximate size of the panel's arrays in bytes."""
        return self.orders.nbytes + self.gold.nbytes + self.pairs.nbytes

    @cached_property
    def observed(self) -> Floats:
        """Observed differences, shape (n_hypotheses,)."""
        return self._compute_differences(np.zeros((1, len(self.gold)), np.bool_))[0][:, 0]

    @cached_property
    def statistics(self) -> Floats:
        """Standardised absolute differences, shape (n_hypotheses,); -inf where nothing varies."""
        return np.where(self.scales > 0, np.abs(self.observed) * self.scales, -np.inf)

    @cached_property
    def order(self) -> Integers:
        """Indices of the hypotheses, from the least to the most extreme."""
        return np.argsort(self.statistics, kind="stable")

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count all tails of `FAMILY_TAILS` in trials `first` to `first + n_trials - 1` of a run.

        The same candidates, seed and trials give the same counts on any machine, in any partition.
        """
        order = self.order
        thresholds = np.where(self.scales > 0, self.statistics * (1 - TIE), -np.inf)
        counts = np.zeros((len(order), CountingMethod(n_tails=len(FAMILY_TAILS)).n_tails), np.int64)
        for differences, tie in self.iter_slabs(run=run, first=first, n_trials=n_trials):
            largest = np.full(differences.shape[1], -np.inf)
            exceedances = np.zeros((len(order), 4), np.int64)
            raise_maxima(
                differences[order],
                tie[order],
                self.observed[order],
                self.scales[order],
                thresholds[order],
                0,
                largest,
                exceedances,
            )
            counts[order, :3] += exceedances[:, :3]
            counts[order, 4] += exceedances[:, 3]
            largest.sort()
            counts[:, 3] += len(largest) - np.searchsorted(largest, thresholds, side="left")
        return Tally(n_trials, counts[:, None, :])

    def iter_slabs(self, *, run: int, first: int, n_trials: int):  # type: ignore[no-untyped-def]  # noqa: ANN201
        """Yield the differences of all trials and their slack, each of shape (n_hypotheses, n_slab)."""
        size = max(1, SLAB_BYTES // max(len(self.gold), 16 * len(self.scales)))
        for start in range(first, first + n_trials, size):
            n_slab = min(size, first + n_trials - start)
            yield self._compute_differences(
                draw_swap_bits(self.key, run=run, first=start, n_trials=n_slab, n_units=len(self.gold))
            )

    def _compute_differences(self, swapped: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Return the differences after swaps and their slack, each of shape (n_hypotheses, n_trials)."""
        out, tie = np.empty((2, len(self.scales), len(swapped)))
        if self.cutoffs.size:
            write_precisions(swapped, self.orders, self.gold, self.pairs, self.cutoffs, out, tie)
        else:
            write_average_precisions(swapped, self.orders, self.gold, self.pairs, out, tie)
        return out, tie

    def select(self, _rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None) -> SwappedRanks:
        """Return the panel itself, whichever part is selected, as it is always counted as a whole."""
        return self

    def compute_digests(self) -> Digests:
        """Return the digest of the panel's contents, shape (1, 1)."""
        return pack_digests([bytes.fromhex(digest(self))]).reshape(1, 1)


@known_as("TiedRanks", "key orders gold pairs cutoffs used", apart_from="scales")
@dataclass(frozen=True, eq=False)
class TiedRanks(SwappedRanks):
    """Panel of hypotheses about lists with ties, each tested in the least favourable order of tied candidates.

    Attributes
    ----------
    used : int64 array
        The hypotheses that are tested, in their own order; of the others nothing is taken.
    """

    used: Integers = field(default_factory=lambda: np.empty(0, np.int64))

    @staticmethod
    def from_panel(panel: SwappedRanks, used: Integers) -> TiedRanks:
        """Return a panel that tests the `used` hypotheses only."""
        scales = np.zeros_like(panel.scales)
        scales[used] = panel.scales[used]
        return TiedRanks(panel.key, panel.orders, panel.gold, panel.pairs, panel.cutoffs, scales, used)


def _compute_deviations(
    orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers, cutoffs: Integers
) -> Floats:
    """Return the approximate standard deviation of each precision difference under swaps, (n_pairs * n_cutoffs,).

    With two lists of n candidates, on average, about a precision p, an exchanged candidate of one of them alone
    moves it by (gold - p) / n.
    """
    exclusive = count_difference_sets(orders, cutoffs, gold, pairs)
    above = np.concatenate([np.zeros((len(orders), 1), np.int64), np.cumsum(gold[orders], axis=1)], axis=1)
    true = np.take_along_axis(above, cutoffs, axis=1)
    a, b = pairs.T
    size = np.maximum((cutoffs[a] + cutoffs[b]) / 2, 1)
    precision = (true[a] + true[b]) / (2 * size)
    n_true, n_false = exclusive[:, :, 0] + exclusive[:, :, 2], exclusive[:, :, 1] + exclusive[:, :, 3]
    return np.asarray(np.sqrt(n_true * (1 - precision) ** 2 + n_false * precision**2) / size).ravel()


def _invert(deviations: Floats) -> Floats:
    """Return 1 / deviation, or 0 where nothing varies."""
    varies = deviations > np.finfo(np.float64).tiny
    return np.where(varies, 1.0, 0.0) / np.where(varies, deviations, 1.0)
