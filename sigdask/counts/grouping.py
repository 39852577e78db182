"""Numbering and grouping of rows with equal values; numbers follow the order of first appearance."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


def number_rows(*columns: NDArray[np.integer[Any]] | NDArray[np.bool_]) -> Integers:
    """Return a number for each row, in order of first appearance; rows that agree in all columns share a number.

    Examples
    --------
    >>> number_rows(np.array([7, 3, 7, 3]), np.array([0, 0, 1, 0])).tolist()
    [0, 1, 2, 1]
    """
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            _, codes = np.unique(column, return_inverse=True)
            numbers = numbers * (int(codes.max()) + 1) + codes
            _, numbers = np.unique(numbers, return_inverse=True)
    if not len(numbers) or not numbers.any():
        return numbers
    first_rows = np.unique(numbers, return_index=True)[1]
    rank = np.empty(len(first_rows), np.int64)
    rank[np.argsort(first_rows)] = np.arange(len(first_rows))
    return rank[numbers]


def group_rows(numbers: NDArray[np.integer[Any]]) -> list[Integers]:
    """Return, for each number from `number_rows`, the rows that have it in ascending order.

    Examples
    --------
    >>> [rows.tolist() for rows in group_rows(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    if not len(numbers):
        return []
    if not numbers.any():
        return [np.arange(len(numbers))]
    return np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])


def number_pairs(
    codes: NDArray[np.integer[Any]], pairs: Integers, value: Callable[[int, int], Hashable]
) -> NDArray[np.int64]:
    """Return a number for each pair of systems; pairs with the same value of a function share a number.

    The function is called once for each combination of codes.

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
    pair_codes = codes[pairs[:, 0]].astype(np.int64) * width + codes[pairs[:, 1]]
    _, first_indices, inverse = np.unique(pair_codes, return_index=True, return_inverse=True)
    value_numbers: dict[Hashable, int] = {}
    numbers = [value_numbers.setdefault(value(int(i), int(j)), len(value_numbers)) for i, j in pairs[first_indices]]
    return np.array(numbers, np.int64)[inverse]
