"""The arrangements that can be told apart: units that move the same, up to sign, are a binomial.

K distinct vectors with multiplicities m make prod(m + 1) cells, 2**n of them where all differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

FEW_KEYS = 2**16
"""Rows that are told apart by counting, not by sorting."""

MOST_UNITS = 62
"""So that arrangements are counted in integers of 64 bits."""


@dataclass(frozen=True, eq=False)
class Cells:
    """The arrangements of units, collapsed.

    Attributes
    ----------
    vectors : int64 array, shape (n_distinct, n_fields)
        What one unit of each kind moves.
    counts : int64 array, shape (n_distinct,)
        Units of each kind.
    moved : int64 array, shape (n_distinct,)
        How many of them are against their vector as observed.
    """

    vectors: Integers
    counts: Integers
    moved: Integers

    @staticmethod
    def of(vectors: Integers) -> Cells:
        """Collapse what units move, shape (n_units, n_fields), none of which is all 0."""
        if not len(vectors):
            return Cells(vectors, np.zeros(0, np.int64), np.zeros(0, np.int64))
        first = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
        sign = np.sign(first)
        keys, place = _distinct(vectors * sign[:, None])
        against = np.bincount(place, sign < 0, len(keys)).astype(np.int64)
        return Cells(keys, np.bincount(place, minlength=len(keys)), against)

    @cached_property
    def n(self) -> int:
        """Units."""
        return int(self.counts.sum())

    @property
    def is_counted(self) -> bool:
        """Whether arrangements are counted, not their probabilities added."""
        return self.n <= MOST_UNITS

    @cached_property
    def size(self) -> int:
        """Cells."""
        return math.prod(int(m) + 1 for m in self.counts)

    def numbers(self, start: int, stop: int) -> Integers:
        """Return how many units of each kind are against their vector in some cells, shape (n_cells, n_distinct)."""
        rest = np.arange(start, stop)
        found = np.empty((len(rest), len(self.counts)), np.int64)
        for k, m in enumerate(self.counts.tolist()):
            rest, found[:, k] = np.divmod(rest, m + 1)
        return found

    def shifts(self, numbers: Integers) -> Integers:
        """Return what cells move from a's sums to b's, relative to what was observed, shape (n_cells, n_fields)."""
        return (numbers - self.moved) @ self.vectors

    @cached_property
    def ways(self) -> list[NDArray[np.int64]] | list[NDArray[np.float64]]:
        """Arrangements behind a number of units of each kind: how many, or as a share where 64 bits hold none."""
        if self.is_counted:
            return [np.array([math.comb(m, k) for k in range(m + 1)]) for m in self.counts.tolist()]
        return [_shares(m) for m in self.counts.tolist()]

    def weights(self, numbers: Integers) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the arrangements, or the probability, of each cell."""
        found = np.ones(len(numbers), self.ways[0].dtype if self.ways else np.int64)
        for k, each in enumerate(self.ways):
            found *= each[numbers[:, k]]
        return found


def _distinct(rows: Integers) -> tuple[Integers, Integers]:
    """Return distinct rows, sorted, and the place of each, by one integer a row where 64 bits hold it."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    widths = [int(b) - int(a) + 1 for a, b in zip(low, high, strict=True)]
    if math.prod(widths) >= 2**62:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.ravel()
    keys = np.zeros(len(rows), np.int64)
    for k, width in enumerate(widths):
        keys = keys * width + (rows[:, k] - low[k])
    if math.prod(widths) <= FEW_KEYS:
        there = np.flatnonzero(np.bincount(keys))
        place = np.zeros(math.prod(widths), np.int64)
        place[there] = np.arange(len(there))
        return _rows_of(there, widths, low), place[keys]
    distinct, place = np.unique(keys, return_inverse=True)
    return _rows_of(distinct, widths, low), place


def _rows_of(keys: Integers, widths: Sequence[int], low: Integers) -> Integers:
    found = np.empty((len(keys), len(widths)), np.int64)
    for k in reversed(range(len(widths))):
        keys, found[:, k] = np.divmod(keys, widths[k])
    return found + low


def _shares(m: int) -> NDArray[np.float64]:
    return np.array([math.comb(m, k) / (1 << m) for k in range(m + 1)])
