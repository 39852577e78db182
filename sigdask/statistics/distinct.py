"""Thousands of rows have few distinct values: what is worked out once for each, and the rows that have it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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


def grouped(*codes: NDArray[Any]) -> Iterator[Integers]:
    """Yield the rows that have the same codes in all columns, ascending, in the order of the codes.

    Examples
    --------
    >>> [rows.tolist() for rows in grouped(np.array([2, 0, 2]))]
    [[1], [0, 2]]
    """
    order = np.lexsort(codes[::-1])
    if not len(order):
        return
    first = np.zeros(len(order), np.bool_)
    for column in codes:
        first[1:] |= np.diff(column[order]) != 0
    yield from np.split(order, np.flatnonzero(first))
