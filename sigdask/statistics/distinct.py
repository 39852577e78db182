"""Distinct pairs of counts, so that results shared by many comparisons are computed once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def find_distinct_pairs(k: Integers, n: Integers) -> tuple[Integers, Integers, Integers]:
    """Return the distinct pairs (k, n), sorted by n then k, and the index of each pair among them.

    Examples
    --------
    >>> k, n, places = find_distinct_pairs(np.array([3, 1, 3]), np.array([9, 9, 9]))
    >>> k.tolist(), n.tolist(), places.tolist()
    ([1, 3], [9, 9], [1, 0, 1])
    """
    order = np.lexsort((k, n))
    is_first = np.ones(len(k), np.bool_)
    is_first[1:] = (np.diff(k[order]) != 0) | (np.diff(n[order]) != 0)
    inverse = np.empty(len(k), np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return k[order][is_first], n[order][is_first], inverse
