"""Rows that have the same: numbered in the order in which they first come."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def numbered(*columns: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Integers:
    """Return numbers of rows by what they have in all of some columns, in the order in which it first comes.

    Examples
    --------
    >>> numbered(np.array([7, 3, 7, 3]), np.array([0, 0, 1, 0])).tolist()
    [0, 1, 2, 1]
    """
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            _, codes = np.unique(column, return_inverse=True)
            found = found * (int(codes.max()) + 1) + codes
            _, found = np.unique(found, return_inverse=True)
    if not len(found) or not found.any():
        return found
    first = np.unique(found, return_index=True)[1]
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[found]


def rows_of(numbers: NDArray[np.integer[Any]]) -> list[Integers]:
    """Return the rows of each number, ascending, of numbers as `numbered` gives them.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_of(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    if not len(numbers):
        return []
    if not numbers.any():
        return [np.arange(len(numbers))]
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])


def of_pairs(
    codes: NDArray[np.integer[Any]], pairs: Integers, value: Callable[[int, int], Hashable]
) -> NDArray[np.int64]:
    """Return numbers of pairs of systems by a value that follows from a code of each, taken once for each two codes.

    Parameters
    ----------
    codes : int array, shape (n_systems,)
        What systems of one code share.
    pairs : int64 array, shape (n_pairs, 2)
        Systems.
    value : callable
        Takes two systems.
    """
    if not len(pairs):
        return np.zeros(0, np.int64)
    width = int(codes.max()) + 1
    both = codes[pairs[:, 0]].astype(np.int64) * width + codes[pairs[:, 1]]
    _, where, which = np.unique(both, return_index=True, return_inverse=True)
    places: dict[Hashable, int] = {}
    found = [places.setdefault(value(int(i), int(j)), len(places)) for i, j in pairs[where]]
    return np.array(found, np.int64)[which]
