"""One ranked list: how many of its n best are true, whatever the order of tied candidates, and its average precision.

What tied candidates leave open is told as a mean over all their orders, with the least and the most of any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.bounds import interval

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RankedList:
    """A list, best first, with its tied candidates side by side.

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
    def of(scores: Floats, gold: NDArray[np.bool_], before: Integers) -> RankedList:
        """Rank candidates by their scores, larger ones first.

        Parameters
        ----------
        scores : float64 array, shape (n_candidates,)
        gold : bool array, shape (n_candidates,)
            Which are true.
        before : int64 array, shape (n_candidates,)
            Which of two tied candidates comes first: that of the smaller number.
        """
        order = np.lexsort((before, -scores))
        found = scores[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = found[1:] != found[:-1]
        starts = np.flatnonzero(first)
        group = np.cumsum(first) - 1
        stops = np.append(starts[1:], len(order))
        return RankedList(order, np.concatenate([[0], np.cumsum(gold[order])]), starts[group], stops[group])

    @property
    def n_distinct(self) -> int:
        """Number of different scores."""
        return len(np.unique(self.start))


@dataclass(frozen=True, slots=True, eq=False)
class NBest:
    """How many of the n best are true: arrays of shape (n_cutoffs,).

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


def n_best(ranked: RankedList, cutoffs: Integers) -> NBest:
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
    >>> found = n_best(RankedList.of(scores, gold, np.arange(4)), np.array([1, 2, 3]))
    >>> found.mean.tolist(), found.lowest.tolist(), found.highest.tolist()
    ([1.0, 1.5, 2.0], [1, 1, 2], [1, 2, 2])
    """
    start, stop = ranked.start[cutoffs - 1], ranked.stop[cutoffs - 1]
    size, taken = stop - start, cutoffs - start
    certain = ranked.above[start]
    true = ranked.above[stop] - certain
    return NBest(
        mean=certain + taken * true / size,
        lowest=certain + np.maximum(0, taken - (size - true)),
        highest=certain + np.minimum(taken, true),
        found=ranked.above[cutoffs],
        n_tied=size,
    )


def outward_interval(count: Floats, n: Integers, confidence: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits of count / n, those of the whole numbers about a mean of counts.

    Examples
    --------
    >>> low, high = outward_interval(np.array([30.0, 29.5]), np.array([100, 100]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.2124, 0.2036], [0.3998, 0.3998])
    """
    low, _ = interval(np.floor(count).astype(np.int64), n, confidence)
    _, high = interval(np.ceil(count).astype(np.int64), n, confidence)
    return low, high


def average_precision(ranked: RankedList) -> float:
    """Return the mean of the precision at each true candidate, over all orders of tied ones.

    References
    ----------
    McSherry & Najork 2008, "Computing information retrieval performance measures efficiently in the presence of
    tied scores", section 2.

    Examples
    --------
    >>> gold = np.array([1, 0, 1], bool)
    >>> average_precision(RankedList.of(np.array([3.0, 2.0, 1.0]), gold, np.arange(3)))
    0.8333333333333333
    >>> average_precision(RankedList.of(np.zeros(2), np.array([1, 0], bool), np.arange(2)))  # the mean of 1 and 1/2
    0.75
    """
    place = np.arange(len(ranked.order))
    size = ranked.stop - ranked.start
    certain = ranked.above[ranked.start]
    true = ranked.above[ranked.stop] - certain
    others = np.where(size > 1, (place - ranked.start) * (true - 1) / np.maximum(size - 1, 1), 0.0)
    terms = true / size * (certain + 1 + others) / (place + 1)
    return float(terms.sum() / ranked.above[-1])


def difference_sets(orders: NDArray[np.integer[Any]], sizes: Integers, gold: NDArray[Any], pairs: Integers) -> Integers:
    """Count the true and the false candidates that one of two lists alone has.

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
    >>> difference_sets(orders, sizes, gold, np.array([[0, 1]])).tolist()
    [[[1, 0, 1, 0], [1, 0, 1, 0]]]
    """
    kinds = (gold != 0, gold == 0)
    first = [np.searchsorted(own, np.argsort(order), side="right") for own, order in zip(sizes, orders, strict=True)]
    found = np.empty((len(pairs), sizes.shape[1], 2, 2), np.int64)
    alone = [[_taken(entered[kind], sizes.shape[1]) for kind in kinds] for entered in first]
    for row, (a, b) in enumerate(pairs.tolist()):
        both = np.maximum(first[a], first[b])
        shared = [_taken(both[kind], sizes.shape[1]) for kind in kinds]
        for side, m in enumerate((a, b)):
            for kind in range(2):
                found[row, :, side, kind] = alone[m][kind] - shared[kind]
    return found.reshape(len(pairs), -1, 4)


def _taken(entered: Integers, n_cutoffs: int) -> Integers:
    """Return how many are taken at each cutoff, of candidates that enter at some."""
    return np.asarray(np.cumsum(np.bincount(entered, minlength=n_cutoffs + 1)[:n_cutoffs]))
