"""One ranked list of candidates: how many of its n best are true, for any order of ties, and average precision.

What tied candidates leave open is told as a mean over all their orders, with the least and the most of any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.bounds import clopper_pearson

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RankedList:
    """A ranked list of candidates, best first, with tied candidates next to each other.

    Attributes
    ----------
    order : int64 array, shape (n_candidates,)
        The candidate at each rank.
    above : int64 array, shape (n_candidates + 1,)
        True candidates among so many best, in this order.
    start, stop : int64 array, shape (n_candidates,)
        First rank that is tied with each, from 0, and the one after the last.
    """

    order: Integers
    above: Integers
    start: Integers
    stop: Integers

    @staticmethod
    def from_scores(scores: Floats, gold: NDArray[np.bool_], tie_order: Integers) -> RankedList:
        """Rank candidates by their scores, larger ones first.

        Parameters
        ----------
        scores : float64 array, shape (n_candidates,)
        gold : bool array, shape (n_candidates,)
            Which are true.
        tie_order : int64 array, shape (n_candidates,)
            Which of two tied candidates comes first: that of the smaller number.
        """
        order = np.lexsort((tie_order, -scores))
        sorted_scores = scores[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = sorted_scores[1:] != sorted_scores[:-1]
        starts = np.flatnonzero(is_first)
        group = np.cumsum(is_first) - 1
        stops = np.append(starts[1:], len(order))
        return RankedList(order, np.concatenate([[0], np.cumsum(gold[order])]), starts[group], stops[group])

    @property
    def n_distinct(self) -> int:
        """Number of different scores."""
        return len(np.unique(self.start))


@dataclass(frozen=True, slots=True, eq=False)
class NBest:
    """The number of true candidates among the n best: arrays of shape (n_cutoffs,).

    Attributes
    ----------
    mean : float64
        Over all orders of the candidates that are tied at n.
    lowest, highest : int64
        In the worst and the best of these orders.
    found : int64
        In the order of the list itself.
    n_tied : int64
        Candidates with the score of the n-th; 1 where no other has it.
    """

    mean: Floats
    lowest: Integers
    highest: Integers
    found: Integers
    n_tied: Integers


def count_n_best(ranked: RankedList, cutoffs: Integers) -> NBest:
    """Count the true candidates among the n best.

    Parameters
    ----------
    ranked : RankedList
        The list.
    cutoffs : int64 array, shape (n_cutoffs,)
        Each n, from 1 to the number of candidates.

    Examples
    --------
    >>> gold, scores = np.array([1, 0, 1, 0], bool), np.array([9.0, 5.0, 5.0, 1.0])
    >>> found = count_n_best(RankedList.from_scores(scores, gold, np.arange(4)), np.array([1, 2, 3]))
    >>> found.mean.tolist(), found.lowest.tolist(), found.highest.tolist()
    ([1.0, 1.5, 2.0], [1, 1, 2], [1, 2, 2])
    """
    start, stop = ranked.start[cutoffs - 1], ranked.stop[cutoffs - 1]
    size, n_taken = stop - start, cutoffs - start
    certain = ranked.above[start]
    true = ranked.above[stop] - certain
    return NBest(
        mean=certain + n_taken * true / size,
        lowest=certain + np.maximum(0, n_taken - (size - true)),
        highest=certain + np.minimum(n_taken, true),
        found=ranked.above[cutoffs],
        n_tied=size,
    )


def compute_outward_interval(count: Floats, n: Integers, confidence: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits of count / n, with counts that are no integers rounded outwards.

    Examples
    --------
    >>> low, high = compute_outward_interval(np.array([30.0, 29.5]), np.array([100, 100]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.2124, 0.2036], [0.3998, 0.3998])
    """
    low, _ = clopper_pearson(np.floor(count).astype(np.int64), n, confidence)
    _, high = clopper_pearson(np.ceil(count).astype(np.int64), n, confidence)
    return low, high


def average_precision(ranked: RankedList) -> float:
    """Return the average precision of a list: the mean precision at its true candidates, over all orders of ties.

    References
    ----------
    McSherry & Najork 2008, "Computing information retrieval performance measures efficiently in the presence of
    tied scores", section 2.

    Examples
    --------
    >>> gold = np.array([1, 0, 1], bool)
    >>> average_precision(RankedList.from_scores(np.array([3.0, 2.0, 1.0]), gold, np.arange(3)))
    0.8333333333333333
    >>> ranked = RankedList.from_scores(np.zeros(2), np.array([1, 0], bool), np.arange(2))
    >>> average_precision(ranked)  # the mean of 1 and 1/2
    0.75
    """
    index = np.arange(len(ranked.order))
    size = ranked.stop - ranked.start
    certain = ranked.above[ranked.start]
    true = ranked.above[ranked.stop] - certain
    others_before = np.where(size > 1, (index - ranked.start) * (true - 1) / np.maximum(size - 1, 1), 0.0)
    terms = true / size * (certain + 1 + others_before) / (index + 1)
    return float(terms.sum() / ranked.above[-1])


def count_difference_sets(
    orders: NDArray[np.integer[Any]], sizes: Integers, gold: NDArray[Any], pairs: Integers
) -> Integers:
    """Count the true and false candidates that only one of two lists contains.

    Parameters
    ----------
    orders : int array, shape (n_lists, n_candidates)
        The candidate at each rank of each list.
    sizes : int64 array, shape (n_lists, n_cutoffs)
        How many of its best each list takes, ascending.
    gold : array, shape (n_candidates,)
        Not 0 where a candidate is true.
    pairs : int64 array, shape (n_pairs, 2)
        Lists A and B.

    Returns
    -------
    int64 array, shape (n_pairs, n_cutoffs, 4)
        True and false of A without B, true and false of B without A.

    Examples
    --------
    >>> orders = np.array([[0, 1, 2, 3], [3, 1, 0, 2]])
    >>> sizes, gold = np.array([[1, 2], [1, 2]]), np.array([1, 0, 0, 1])
    >>> count_difference_sets(orders, sizes, gold, np.array([[0, 1]])).tolist()
    [[[1, 0, 1, 0], [1, 0, 1, 0]]]
    """
    kinds = (gold != 0, gold == 0)
    first_cutoffs = [
        np.searchsorted(list_sizes, np.argsort(order), side="right")
        for list_sizes, order in zip(sizes, orders, strict=True)
    ]
    counts = np.empty((len(pairs), sizes.shape[1], 2, 2), np.int64)
    list_counts = [[_count_taken(entered[kind], sizes.shape[1]) for kind in kinds] for entered in first_cutoffs]
    for row, (a, b) in enumerate(pairs.tolist()):
        later_cutoffs = np.maximum(first_cutoffs[a], first_cutoffs[b])
        shared = [_count_taken(later_cutoffs[kind], sizes.shape[1]) for kind in kinds]
        for side, m in enumerate((a, b)):
            for kind in range(2):
                counts[row, :, side, kind] = list_counts[m][kind] - shared[kind]
    return counts.reshape(len(pairs), -1, 4)


def _count_taken(entered: Integers, n_cutoffs: int) -> Integers:
    """Return how many candidates each cutoff includes, given the first cutoff that includes each candidate."""
    return np.asarray(np.cumsum(np.bincount(entered, minlength=n_cutoffs + 1)[:n_cutoffs]))
