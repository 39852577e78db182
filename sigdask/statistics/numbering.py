"""Numbers of rows: the same number for equal rows, in the order of their first appearance."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers


def number_rows(*columns: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Integers:
    """Return a number for each row, in order of first appearance; rows that agree in all columns share a number.

    Examples
    --------
    >>> number_rows(np.array([7, 3, 7, 3]), np.array([0, 0, 1, 0])).tolist()
    [0, 1, 2, 1]
    """
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if (column != column[:1]).any():
            codes = find_distinct(column)[1]
            numbers = find_distinct(numbers * (codes.max() + 1) + codes)[1]
    if not numbers.any():  # as of one comparison or subset
        return numbers
    return np.argsort(np.argsort(find_first_rows(numbers)))[numbers]


def find_first_rows(numbers: NDArray[np.integer[Any]]) -> Integers:
    """Return the first row that has each number from 0 on."""
    first_rows = np.zeros(numbers.max(initial=0) + 1, np.int64)
    first_rows[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several values, the last one is assigned
    return first_rows


def group_rows(numbers: NDArray[np.integer[Any]]) -> list[Integers]:
    """Return, for each number from `number_rows`, the rows that have it in ascending order.

    Examples
    --------
    >>> [rows.tolist() for rows in group_rows(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    if not numbers.any():
        return [np.arange(len(numbers))] if len(numbers) else []
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])


DENSE = 4
"""Maximum ratio of the range of integers to their number for which distinct values are found without sorting."""


def find_distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """Return the distinct values in ascending order, and the index of each value among them, as `numpy.unique` does.

    Integers that lie close together are not sorted, which is several times faster.

    Examples
    --------
    >>> distinct, indices = find_distinct(np.array([7, 5, 7, 9]))
    >>> distinct.tolist(), indices.tolist()
    ([5, 7, 9], [1, 0, 1, 2])
    """
    if len(values) and values.dtype.kind in "iu":
        low, high = int(values.min()), int(values.max())
        if high - low < DENSE * len(values):
            offsets = values - values.dtype.type(low) if low else values
            is_present = np.zeros(high - low + 1, np.bool_)
            is_present[offsets] = True
            distinct = (np.flatnonzero(is_present) + low).astype(values.dtype)
            return distinct, (np.cumsum(is_present) - 1)[offsets]
    distinct, indices = np.unique(values, return_inverse=True)
    return distinct, indices


def find_distinct_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Return the sorted distinct rows, and the index of each row among them, by integer keys if 64 bits suffice.

    Examples
    --------
    >>> distinct, indices = find_distinct_rows(np.array([[9, 3], [9, 1], [9, 3]]))
    >>> distinct.tolist(), indices.tolist()
    ([[9, 1], [9, 3]], [1, 0, 1])
    """
    low, high = rows.min(axis=0, initial=0).tolist(), rows.max(axis=0, initial=0).tolist()
    widths = [b - a + 1 for a, b in zip(low, high, strict=True)]
    if not len(rows) or math.prod(widths) >= 2**62:
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        return distinct, inverse.ravel()
    keys = np.zeros(len(rows), np.int64)
    for k, width in enumerate(widths):
        keys = keys * width + (rows[:, k] - low[k])
    inverse = find_distinct(keys)[1]
    return rows[find_first_rows(inverse)], inverse


def number_pairs(
    codes: NDArray[np.integer[Any]], pairs: Integers, value: Callable[[int, int], Hashable]
) -> NDArray[np.int64]:
    """Return a number for each pair of systems; pairs with the same value of a function share a number.

    The function is called once for each combination of codes.

    Parameters
    ----------
    codes : int array, shape (n_systems,)
        Code of each system. Systems with equal codes share their value.
    pairs : int64 array, shape (n_pairs, 2)
        Systems.
    value : callable
        Function of two systems.
    """
    groups = number_rows(*codes[pairs].T)
    first_rows = np.unique(groups, return_index=True)[1]
    known: dict[Hashable, int] = {}
    numbers = [known.setdefault(value(i, j), len(known)) for i, j in pairs[first_rows].tolist()]
    return np.array(numbers, np.int64)[groups]
