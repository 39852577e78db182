"""Panels that test pairs of rankings, and the least favourable orders of ties.

Each candidate's two ranks are swapped at random, for all n together. Exchangeable ranks are another null than Fisher's
on the two difference sets, which fixes the sizes of lists: here a shuffled ranking may hold more or fewer than n
candidates among its n best. A candidate that is swapped takes its rank in the other ranking, so at each rank of a
shuffled ranking stand none, one or two candidates. What differs from the observed lists are sums over ranks, so no list
is sorted again.

Tied candidates are tested in the order with the smallest difference. Of the list that is ahead, false
candidates of a tie come first, and of the other one true candidates. Among equals, candidates come first that the other
list ranks low, so that the two lists share as few candidates as possible. Both raise p: the difference is the smallest
of all orders, and the most candidates are swapped across it. In enumerations of all orders of small lists no other
order had a larger p of n-best precision, by swaps or by Fisher's test. Average precision had one in some lists.
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.precision import TIE
from sigdask.io.caches import cached_njit
from sigdask.randomization.kernels.scored import raise_maxima
from sigdask.randomization.panels.digests import WholePanel
from sigdask.randomization.stream import Key, draw_swap_bits
from sigdask.randomization.tallies import FAMILY_TAILS, CountingMethod, Tally
from sigdask.statistics.candidates import RankedList, count_difference_sets, count_n_best


@cached_njit()
def write_precisions(swapped, orders, gold, pairs, cutoffs, out, tie):
    """Write the difference in n-best precision of each pair and n, for each trial, into `out`.

    Parameters
    ----------
    swapped : bool array, shape (n_trials, n_candidates)
    orders : int32 array, shape (n_measures, n_candidates)
        The candidate at each rank.
    gold : uint8 array, shape (n_candidates,)
    pairs : int64 array, shape (n_pairs, 2)
    cutoffs : int64 array, shape (n_measures, n_cutoffs)
        Candidates of each list; ascending.
    out, tie : float64 array, shape (n_pairs * n_cutoffs, n_trials)
        Differences, and how far they may miss a tie.
    """
    n_measures, n_cutoffs = cutoffs.shape
    true = np.zeros((n_measures, n_cutoffs), np.int64)
    for m in range(n_measures):
        for c in range(n_cutoffs):
            for r in range(cutoffs[m, c]):
                true[m, c] += gold[orders[m, r]]
    moved = np.empty((n_measures, n_cutoffs), np.int64)
    moved_true = np.empty((n_measures, n_cutoffs), np.int64)
    for t in range(swapped.shape[0]):
        for m in range(n_measures):
            size, size_true, r = np.int64(0), np.int64(0), 0
            for c in range(n_cutoffs):
                while r < cutoffs[m, c]:
                    candidate = orders[m, r]
                    bit = np.int64(swapped[t, candidate])
                    size += bit
                    size_true += bit & np.int64(gold[candidate])
                    r += 1
                moved[m, c], moved_true[m, c] = size, size_true
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            for c in range(n_cutoffs):
                shift, shift_true = moved[b, c] - moved[a, c], moved_true[b, c] - moved_true[a, c]
                size_a, size_b = cutoffs[a, c] + shift, cutoffs[b, c] - shift
                x = (true[a, c] + shift_true) / size_a if size_a > 0 else 0.0
                y = (true[b, c] - shift_true) / size_b if size_b > 0 else 0.0
                out[p * n_cutoffs + c, t] = x - y
                tie[p * n_cutoffs + c, t] = 2.0 * TIE * (x + y)


@cached_njit()
def write_average_precisions(swapped, orders, gold, pairs, out, tie):  # noqa: C901  # one loop a level
    """Write the difference in average precision of each pair, for each trial, into `out`.

    Two candidates at one rank are tied: the precision at this rank counts both.

    Parameters
    ----------
    swapped, orders, gold, pairs
        As in `write_precisions`.
    out, tie : float64 array, shape (n_pairs, n_trials)
        Differences, and their rounding errors within which they tie.
    """
    n_measures, n = orders.shape
    n_true = max(gold.sum(), 1)
    true = np.zeros((n_measures, n), np.int32)
    for m in range(n_measures):
        size_true = np.int32(0)
        for r in range(n):
            size_true += np.int32(gold[orders[m, r]])
            true[m, r] = size_true
    moved = np.empty((n_measures, n), np.int32)
    moved_true = np.empty((n_measures, n), np.int32)
    for t in range(swapped.shape[0]):
        for m in range(n_measures):
            size, size_true = np.int32(0), np.int32(0)
            for r in range(n):
                candidate = orders[m, r]
                bit = np.int32(swapped[t, candidate])
                size += bit
                size_true += bit & np.int32(gold[candidate])
                moved[m, r], moved_true[m, r] = size, size_true
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            x, y = 0.0, 0.0
            before_a, before_b = np.int32(0), np.int32(0)
            for r in range(n):
                shift_true = moved_true[b, r] - moved_true[a, r]
                now_a, now_b = true[a, r] + shift_true, true[b, r] - shift_true
                if now_a == before_a and now_b == before_b:
                    continue
                shift = moved[b, r] - moved[a, r]
                if now_a != before_a:
                    x += (now_a - before_a) * (now_a / (r + 1 + shift))
                if now_b != before_b:
                    y += (now_b - before_b) * (now_b / (r + 1 - shift))
                before_a, before_b = now_a, now_b
            out[p, t] = (x - y) / n_true
            tie[p, t] = 2.0 * TIE * (x + y) / n_true


SLAB_BYTES = 2**23
"""Maximum bytes of the swaps, and of the differences, of the trials that are counted at a time."""

SCALING_RUN, SCALING_TRIALS = 255, 1024
"""Run and number of trials that estimate the deviations of average precision, to 2 %. These trials are never counted.
"""


@dataclass(frozen=True, eq=False)
class SwappedRanks(WholePanel):
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
        Length of each list, ascending: n, or the number of judged candidates among the n best. Empty if average
        precision is compared.
    scales : float64 array, shape (n_hypotheses,)
        Factor of each difference in the maximum: 1 / its standard deviation under swaps. 0 if nothing varies, or if the
        hypothesis is not tested.
    """

    key: Key
    orders: NDArray[np.int32]
    gold: NDArray[np.uint8]
    pairs: Integers
    cutoffs: Integers
    scales: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=len(FAMILY_TAILS), grain=256, timed=256)
    enumerated: ClassVar[bool] = False

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "swapped ranks", self.key, self.orders, self.gold, self.pairs, self.cutoffs, self.scales

    @staticmethod
    def build_precision_panel(
        key: Key,
        orders: NDArray[np.int32],
        gold: NDArray[np.uint8],
        pairs: Integers,
        cutoffs: Integers,
        tested: Integers | slice = slice(None),
    ) -> SwappedRanks:
        """Return a panel that compares the n-best precision of pairs of measures, at all tested n together."""
        scales = np.zeros(len(pairs) * cutoffs.shape[1])
        scales[tested] = _invert(_compute_deviations(orders, gold, pairs, cutoffs))[tested]
        return SwappedRanks(key, orders, gold, pairs, cutoffs, scales)

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
            columns = (differences, tie, self.observed, self.scales, thresholds)
            raise_maxima(*(column[order] for column in columns), 0, largest, exceedances)
            counts[order] += exceedances
        return Tally(n_trials, counts[:, None, :])

    def iter_slabs(self, *, run: int, first: int, n_trials: int):
        """Yield the differences of all trials and their slack, each of shape (n_hypotheses, n_slab)."""
        size = max(1, SLAB_BYTES // max(len(self.gold), 16 * len(self.scales)))
        for start in range(first, first + n_trials, size):
            n_slab = min(size, first + n_trials - start)
            yield self._compute_differences(
                draw_swap_bits(self.key, run=run, first=start, n_trials=n_slab, n_units=len(self.gold))
            )

    def _compute_differences(self, swapped: Bools) -> tuple[Floats, Floats]:
        """Return the differences after swaps and their slack, each of shape (n_hypotheses, n_trials)."""
        out, tie = np.empty((2, len(self.scales), len(swapped)))
        if self.cutoffs.size:
            write_precisions(swapped, self.orders, self.gold, self.pairs, self.cutoffs, out, tie)
        else:
            write_average_precisions(swapped, self.orders, self.gold, self.pairs, out, tie)
        return out, tie


def _compute_deviations(
    orders: NDArray[np.int32], gold: NDArray[np.uint8], pairs: Integers, cutoffs: Integers
) -> Floats:
    """Return the approximate standard deviation of each precision difference under swaps, (n_pairs * n_cutoffs,).

    If two lists of n candidates have a mean precision of p, swapping a candidate that is in only one of them changes
    the difference by (gold - p) / n.
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


@dataclass(frozen=True, slots=True, eq=False)
class TiedOrders:
    """The orders of tied candidates that are least favourable to each hypothesis about a pair of lists.

    Attributes
    ----------
    orders : int32 array, shape (n_orders, n_candidates)
        The candidate at each rank.
    pairs : int64 array, shape (n_compared, 2)
        Orders that are compared: for each pair of lists one or two, depending on which list is ahead.
    pair_index : int64 array, shape (n_pairs, n_cutoffs)
        Index in `pairs` of each hypothesis.
    is_open : bool array, shape (n_pairs, n_cutoffs)
        Whether a hypothesis has orders with either list ahead, so that the largest p is 1.
    """

    orders: NDArray[np.int32]
    pairs: Integers
    pair_index: Integers
    is_open: Bools

    @staticmethod
    def from_lists(
        ranked: Sequence[RankedList],
        gold: NDArray[np.integer],
        pairs: Integers,
        mean: Floats,
        lowest: Floats,
        highest: Floats,
    ) -> TiedOrders:
        """Return the least favourable orders for some pairs of lists.

        Parameters
        ----------
        ranked : sequence of RankedList, length n_lists
        gold : int array, shape (n_candidates,)
            1 where a candidate is true.
        pairs : int64 array, shape (n_pairs, 2)
            Lists that are compared.
        mean, lowest, highest : float64 array, shape (n_lists, n_cutoffs)
            The score of each list: its mean over all orders of ties, and in the worst and the best order.
        """
        a, b = pairs.T
        is_ahead = mean[a] >= mean[b]  # (n_pairs, n_cutoffs)
        compared, pair_index = np.unique(2 * np.arange(len(pairs))[:, None] + is_ahead, return_inverse=True)
        rows: dict[tuple[int, int, bool, bool], int] = {}
        orders: list[Integers] = []
        flat_pairs: list[int] = []
        for number in compared.tolist():
            list_a, list_b = pairs[number // 2].tolist()
            is_ahead_a = bool(number % 2)
            for m, against, is_first in ((list_a, list_b, True), (list_b, list_a, False)):
                is_tied = ranked[m].n_distinct < len(gold)
                key = (m, against, is_ahead_a == is_first, is_first) if is_tied else (m, -1, True, True)
                if key not in rows:
                    rows[key] = len(orders)
                    orders.append(
                        _order_ties(
                            ranked[m], ranked[against], gold, is_ahead=is_ahead_a == is_first, is_first=is_first
                        )
                    )
                flat_pairs.append(rows[key])
        is_open = (lowest[a] <= highest[b]) & (lowest[b] <= highest[a])
        is_open &= (lowest[a] < highest[a]) | (lowest[b] < highest[b])
        order_pairs = np.array(flat_pairs, np.int64).reshape(-1, 2)
        return TiedOrders(np.array(orders, np.int32), order_pairs, pair_index.reshape(is_ahead.shape), is_open)


def count_true_in_n_best(ranked: Sequence[RankedList], cutoffs: Integers) -> tuple[Floats, Floats, Floats]:
    """Return the number of true candidates in each n best: its mean, minimum and maximum over all orders of ties."""
    results = [count_n_best(entry, cutoffs) for entry in ranked]
    return tuple(
        np.array([getattr(entry, name) for entry in results], np.float64) for name in ("mean", "lowest", "highest")
    )  # type: ignore[return-value]


def resolve_ties(ranked: RankedList, gold: NDArray[np.integer], *, true_first: bool) -> RankedList:
    """Return the list with its tied candidates in their best or worst order."""
    start = np.empty(len(gold), np.int64)
    start[ranked.order] = ranked.start
    return RankedList.from_scores(-start.astype(np.float64), gold == 1, np.where((gold == 1) == true_first, 0, 1))


def _order_ties(
    ranked: RankedList, opponent: RankedList, gold: NDArray[np.integer], *, is_ahead: bool, is_first: bool
) -> Integers:
    start, opponent_start = np.empty((2, len(gold)), np.int64)
    start[ranked.order], opponent_start[opponent.order] = ranked.start, opponent.start
    number = np.arange(len(gold))
    keys = (number if is_first else -number, -opponent_start, gold if is_ahead else -gold.astype(np.int64), start)
    return np.lexsort(keys)
