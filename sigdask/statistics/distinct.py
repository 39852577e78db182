"""Thousands of comparisons share few counts: what is worked out of pairs of counts is so of the distinct ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def distinct_pairs(k: Integers, n: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the distinct pairs (k, n), in the order of n and then of k, and the place of each among them.

    Examples
    --------
    >>> k, n, places = distinct_pairs(np.array([3, 1, 3]), np.array([9, 9, 9]))
    >>> k.tolist(), n.tolist(), places.tolist()
    ([1, 3], [9, 9], [1, 0, 1])
    """
    order = np.lexsort((k, n))
    first = np.ones(len(k), np.bool_)
    first[1:] = (np.diff(k[order]) != 0) | (np.diff(n[order]) != 0)
    places = np.empty(len(k), np.int64)
    places[order] = np.cumsum(first) - 1
    return k[order][first], n[order][first], places
