"""Orders of tied candidates under which a difference of two ranked lists has its largest p-value.

Of the list that is ahead, false candidates of a tie come first, and of the other one true candidates. Among equals,
candidates come first that the other list ranks low, so that the two lists share as few candidates as possible. Both
raise p: the difference is the smallest of all orders, and the most candidates are exchanged about it. In enumerations
of all orders of small lists no other order had a larger p, by exchange or by Fisher's test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.candidates.lists import RankedList, n_best

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TiedOrders:
    """The least favourable order of each hypothesis: a pair of lists at one n, or by average precision.

    Attributes
    ----------
    orders : int32 array, shape (n_orders, n_candidates)
        The candidate at each rank.
    pairs : int64 array, shape (n_compared, 2)
        Orders that are held against each other: of each pair of lists one or two, by which of them is ahead.
    place : int64 array, shape (n_pairs, n_cutoffs)
        Which of `pairs` each hypothesis takes.
    is_open : bool array, shape (n_pairs, n_cutoffs)
        Which hypotheses have orders with either list ahead, so that the largest p is 1.
    """

    orders: NDArray[np.int32]
    pairs: Integers
    place: Integers
    is_open: NDArray[np.bool_]

    @staticmethod
    def of(
        ranked: Sequence[RankedList],
        gold: NDArray[np.integer],
        pairs: Integers,
        mean: Floats,
        lowest: Floats,
        highest: Floats,
    ) -> TiedOrders:
        """Find the orders of some pairs.

        Parameters
        ----------
        ranked : sequence of RankedList, length n_lists
        gold : int array, shape (n_candidates,)
            1 where a candidate is true.
        pairs : int64 array, shape (n_pairs, 2)
            Lists that are compared.
        mean, lowest, highest : float64 array, shape (n_lists, n_cutoffs)
            The score of each list over all orders of its ties, in the worst and in the best one.
        """
        a, b = pairs.T
        is_ahead = mean[a] >= mean[b]  # (n_pairs, n_cutoffs)
        compared, place = np.unique(2 * np.arange(len(pairs))[:, None] + is_ahead, return_inverse=True)
        rows: dict[tuple[int, int, bool, bool], int] = {}
        made: list[Integers] = []
        found: list[int] = []
        for number in compared.tolist():
            one, other = pairs[number // 2].tolist()
            ahead = bool(number % 2)
            for m, against, first in ((one, other, True), (other, one, False)):
                is_tied = ranked[m].n_distinct < len(gold)
                key = (m, against, ahead == first, first) if is_tied else (m, -1, True, True)
                if key not in rows:
                    rows[key] = len(made)
                    made.append(_order(ranked[m], ranked[against], gold, ahead=ahead == first, first=first))
                found.append(rows[key])
        is_open = (lowest[a] <= highest[b]) & (lowest[b] <= highest[a])
        is_open &= (lowest[a] < highest[a]) | (lowest[b] < highest[b])
        found_pairs = np.array(found, np.int64).reshape(-1, 2)
        return TiedOrders(np.array(made, np.int32), found_pairs, place.reshape(is_ahead.shape), is_open)


def n_best_of(ranked: Sequence[RankedList], cutoffs: Integers) -> tuple[Floats, Floats, Floats]:
    """Return how many of the n best of each list are true: the mean over all orders of ties, the least and the most."""
    found = [n_best(one, cutoffs) for one in ranked]
    return tuple(np.array([getattr(one, name) for one in found], np.float64) for name in ("mean", "lowest", "highest"))  # type: ignore[return-value]


def with_ties_resolved(ranked: RankedList, gold: NDArray[np.integer], *, true_first: bool) -> RankedList:
    """Return a list whose tied candidates stand in its best or its worst order."""
    start = np.empty(len(gold), np.int64)
    start[ranked.order] = ranked.start
    return RankedList.of(-start.astype(np.float64), gold == 1, np.where((gold == 1) == true_first, 0, 1))


def _order(ranked: RankedList, other: RankedList, gold: NDArray[np.integer], *, ahead: bool, first: bool) -> Integers:
    start, start_of_other = np.empty((2, len(gold)), np.int64)
    start[ranked.order], start_of_other[other.order] = ranked.start, other.start
    number = np.arange(len(gold))
    keys = (number if first else -number, -start_of_other, gold if ahead else -gold.astype(np.int64), start)
    return np.lexsort(keys)
