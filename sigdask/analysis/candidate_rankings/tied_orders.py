"""Orders of tied candidates in which the difference of two ranked lists has its largest p-value.

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

from sigdask.statistics.candidates.lists import RankedList, count_n_best

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TiedOrders:
    """The orders of tied candidates that are least favourable to each hypothesis about a pair of lists.

    Attributes
    ----------
    orders : int32 array, shape (n_orders, n_candidates)
        The candidate at each rank.
    pairs : int64 array, shape (n_compared, 2)
        Orders that are held against each other: of each pair of lists one or two, by which of them is ahead.
    pair_index : int64 array, shape (n_pairs, n_cutoffs)
        Which of `pairs` each hypothesis takes.
    is_open : bool array, shape (n_pairs, n_cutoffs)
        Which hypotheses have orders with either list ahead, so that the largest p is 1.
    """

    orders: NDArray[np.int32]
    pairs: Integers
    pair_index: Integers
    is_open: NDArray[np.bool_]

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
            The score of each list over all orders of its ties, in the worst and in the best one.
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
