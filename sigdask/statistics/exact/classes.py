"""Distinguishable arrangements, in which units that move the same, up to sign, are of one kind and only counted.

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
    """The distinguishable arrangements (cells) of units: how many units of each kind have their vector negated.

    Attributes
    ----------
    vectors : int64 array, shape (n_distinct, n_fields)
        What one unit of each kind moves.
    counts : int64 array, shape (n_distinct,)
        Units of each kind.
    moved : int64 array, shape (n_distinct,)
        How many units of each kind have their vector negated as observed.
    """

    vectors: Integers
    counts: Integers
    moved: Integers

    @staticmethod
    def from_vectors(vectors: Integers) -> Cells:
        """Return the cells of units whose vectors, shape (n_units, n_fields), are not zero."""
        if not len(vectors):
            return Cells(vectors, np.zeros(0, np.int64), np.zeros(0, np.int64))
        first = vectors[np.arange(len(vectors)), (vectors != 0).argmax(axis=1)]
        sign = np.sign(first)
        keys, inverse = _find_distinct_rows(vectors * sign[:, None])
        against = np.bincount(inverse, sign < 0, len(keys)).astype(np.int64)
        return Cells(keys, np.bincount(inverse, minlength=len(keys)), against)

    @cached_property
    def n(self) -> int:
        """The number of units."""
        return int(self.counts.sum())

    @property
    def is_counted(self) -> bool:
        """Whether arrangements are counted as integers instead of adding probabilities."""
        return self.n <= MOST_UNITS

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(int(m) + 1 for m in self.counts)

    def decode_numbers(self, start: int, stop: int) -> Integers:
        """Return how many units of each kind have their vector negated, for a range of cells, (n_cells, n_distinct)."""
        rest = np.arange(start, stop)
        found = np.empty((len(rest), len(self.counts)), np.int64)
        for k, m in enumerate(self.counts.tolist()):
            rest, found[:, k] = np.divmod(rest, m + 1)
        return found

    def compute_shifts(self, numbers: Integers) -> Integers:
        """Return what each cell moves from a's observed sums to b's, shape (n_cells, n_fields)."""
        return (numbers - self.moved) @ self.vectors

    @cached_property
    def arrangement_counts(self) -> list[NDArray[np.int64]] | list[NDArray[np.float64]]:
        """For each kind, how many arrangements negate k of its units, for each k; shares if 64 bits are too few."""
        if self.is_counted:
            return [np.array([math.comb(m, k) for k in range(m + 1)]) for m in self.counts.tolist()]
        return [_compute_shares(m) for m in self.counts.tolist()]

    def compute_weights(self, numbers: Integers) -> NDArray[np.int64] | NDArray[np.float64]:
        """Return the number of arrangements, or the probability, of each cell."""
        found = np.ones(len(numbers), self.arrangement_counts[0].dtype if self.arrangement_counts else np.int64)
        for k, kind_counts in enumerate(self.arrangement_counts):
            found *= kind_counts[numbers[:, k]]
        return found


def _find_distinct_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Return the sorted distinct rows, and the index of each row among them, by integer keys if 64 bits suffice."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    widths = [int(b) - int(a) + 1 for a, b in zip(low, high, strict=True)]
    if math.prod(widths) >= 2**62:
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        return distinct, inverse.ravel()
    keys = np.zeros(len(rows), np.int64)
    for k, width in enumerate(widths):
        keys = keys * width + (rows[:, k] - low[k])
    if math.prod(widths) <= FEW_KEYS:
        occupied = np.flatnonzero(np.bincount(keys))
        inverse = np.zeros(math.prod(widths), np.int64)
        inverse[occupied] = np.arange(len(occupied))
        return _decode_rows(occupied, widths, low), inverse[keys]
    distinct, inverse = np.unique(keys, return_inverse=True)
    return _decode_rows(distinct, widths, low), inverse


def _decode_rows(keys: Integers, widths: Sequence[int], low: Integers) -> Integers:
    rows = np.empty((len(keys), len(widths)), np.int64)
    for k in reversed(range(len(widths))):
        keys, rows[:, k] = np.divmod(keys, widths[k])
    return rows + low


def _compute_shares(m: int) -> NDArray[np.float64]:
    return np.array([math.comb(m, k) / (1 << m) for k in range(m + 1)])
