"""Columns in which many texts are equal, such as groups, labels and systems of long tables, and grouping of their rows.

Distinct values are numbered in the order of their first appearance.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts, to_integers


@dataclass(frozen=True, eq=False)
class Factor(Sequence[str]):
    """A column of texts with many repetitions, stored as levels and codes; behaves like a tuple of str.

    Attributes
    ----------
    levels : Texts
        The different texts, sorted by their bytes.
    codes : array of int, shape (n,)
        The index of each cell's text in `levels`, in the smallest type that holds all.

    Examples
    --------
    >>> column = Factor.from_values(["b", "a", "b"])
    >>> column.levels.tolist(), column.codes.tolist(), column[2]
    (['a', 'b'], [1, 0, 1], 'b')
    """

    levels: Texts
    codes: NDArray[Any]

    @staticmethod
    def from_values(values: Iterable[Any]) -> Factor:
        """Encode a column as levels and codes."""
        if isinstance(values, Factor):
            return values
        encoded = Texts.from_values(values).array.dictionary_encode()
        texts = Texts(encoded.dictionary)
        order, _ = texts.sorted
        rank = np.empty(len(texts), np.min_scalar_type(-1 - len(texts)))
        rank[order] = np.arange(len(texts))
        return Factor(texts[order], rank[to_integers(encoded.indices)])

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Factor: ...
    def __getitem__(self, which: Any) -> str | Factor:
        if not isinstance(which, slice | np.ndarray):
            return self.levels[int(self.codes[which])]
        used: NDArray[Any]
        used, codes = np.unique(self.codes[which], return_inverse=True)
        return Factor(self.levels[used], codes.astype(np.min_scalar_type(-1 - len(used))))

    def __iter__(self) -> Iterator[str]:
        return map(self.levels.tolist().__getitem__, self.codes.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Factor | tuple | list) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[str]:
        """Return the cells as a list."""
        return list(self)

    @cached_property
    def first_occurrences(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Levels in order of first occurrence in the column, and for each level the row where it first occurs."""
        first_rows = np.zeros(len(self.levels), np.intp)
        first_rows[self.codes[::-1]] = np.arange(len(self) - 1, -1, -1)
        return np.argsort(first_rows), first_rows

    def equals(self, text: str) -> NDArray[np.bool_]:
        """Return a mask of the cells that equal a text."""
        is_equal: NDArray[np.bool_] = self.levels.equals(text)[self.codes]
        return is_equal

    def rename_levels(self, names: Mapping[str, str]) -> Factor:
        """Return the column with some texts replaced by others."""
        if not names:
            return self
        levels = Factor.from_values([names.get(level, level) for level in self.levels])
        return Factor(levels.levels, levels.codes[self.codes])


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
        if (column != column[:1]).any():
            codes = find_distinct(column)[1]
            numbers = find_distinct(numbers * (codes.max() + 1) + codes)[1]
    first_rows = np.zeros(numbers.max(initial=0) + 1, np.int64)
    first_rows[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several values, the last one is assigned
    return np.argsort(np.argsort(first_rows))[numbers]


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


class Codes(dict[str, int]):
    """Codes of texts, shared by all files; a new text gets the next one."""

    def __missing__(self, text: str) -> int:
        self[text] = code = len(self)
        return code

    def map_codes(self, codes: NDArray[np.int64], convert: Callable[[str], str]) -> NDArray[np.int64]:
        """Return the codes of converted texts, given the codes of the texts."""
        texts, (used, rows) = list(self), np.unique(codes, return_inverse=True)
        return np.array([self[convert(texts[code])] for code in used.tolist()], np.int64)[rows]
