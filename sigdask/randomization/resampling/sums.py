"""Weighted sums of units' contributions for all systems of a panel, by a matrix product that is exact in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.kernels.dense import limit_blas_threads
from sigdask.randomization.panels.digests import mix_bits
from sigdask.randomization.panels.scored_sums import ScoredSums

WEIGHT_BYTES = 2**23
"""Weights of one block of trials."""

MOST_TRIALS = 4096
EXACT = {np.float32: 2.0**24, np.float64: 2.0**53}
"""Below it sums of integers are exact."""

FEW_KINDS = 0.5
"""Share of the units below which units that contribute alike are taken together."""

FEW = 256
"""Kinds whose numbers are bytes, so that those of a million units stay in a cache."""

Fill = Callable[[int, NDArray[Any], NDArray[Any]], None]
"""Called with the first trial, the kind of each unit and an array of shape (n_trials, n_kinds) for their weights."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSums:
    """A panel's contributions, arranged for sums with weights of units; each distinct column is held once.

    Attributes
    ----------
    kinds : uint8 or int32 array, shape (n_units,)
        Units of one kind contribute the same.
    columns : tuple of float array, shape (n_kinds, n_columns)
        Parts that add up to the contributions: one, unless sums are too large to be exact.
    weights : tuple of float
        What a step of each part is worth.
    column_of : int64 array, shape (n_systems, n_fields)
        The column of each system and field.
    """

    kinds: NDArray[Any]
    columns: tuple[NDArray[Any], ...]
    weights: tuple[int, ...]
    column_of: NDArray[np.int64]

    @staticmethod
    def from_panel(panel: ScoredSums) -> WeightedSums:
        """Return the arranged contributions of a panel that has all its units."""
        n_units, n_systems, n_fields = panel.values.shape
        seen: dict[bytes, int] = {}
        column_of = np.empty((n_systems, n_fields), np.int64)
        distinct: list[NDArray[Any]] = []
        for s in range(n_systems):
            for f in range(n_fields):
                column = np.ascontiguousarray(panel.values[:, s, f])
                column_of[s, f] = seen.setdefault(column.tobytes(), len(seen))
                if len(distinct) < len(seen):
                    distinct.append(column)
        columns = np.stack(distinct, axis=1) if distinct else np.zeros((n_units, 0), np.int8)
        kinds, columns = _group_units(columns)
        largest = max(int(columns.max(initial=0)), -int(columns.min(initial=0))) * max(n_units, 1)
        kind = next((kind for kind, limit in EXACT.items() if largest < limit), None)
        if kind is not None:
            return WeightedSums(kinds, (columns.astype(kind),), (1,), column_of)
        high = columns.astype(np.int64) >> PART_BITS
        low = columns.astype(np.int64) - (high << PART_BITS)
        return WeightedSums(kinds, (high.astype(np.float64), low.astype(np.float64)), (1 << PART_BITS, 1), column_of)

    def iter_blocks(self, fill: Fill, first: int, n_trials: int) -> Iterator[NDArray[np.int64]]:
        """Yield weighted sums for consecutive ranges of trials, shape (n_some, n_systems, n_fields)."""
        n_kinds, kind = len(self.columns[0]), self.columns[0].dtype
        size = int(np.clip(WEIGHT_BYTES // (max(n_kinds, 1) * kind.itemsize), 1, min(MOST_TRIALS, n_trials)))
        room = np.empty((size, n_kinds), kind)
        for start in range(first, first + n_trials, size):
            weights = room[: min(size, first + n_trials - start)]
            fill(start, self.kinds, weights)
            with limit_blas_threads():
                parts = [weights @ columns for columns in self.columns]
            sums = sum(part.astype(np.int64) * worth for part, worth in zip(parts, self.weights, strict=True))
            yield np.asarray(sums)[:, self.column_of]


def _group_units(columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Group units with equal contributions: return the kind of each unit, and the contributions of each kind.

    If most units differ, each unit is a kind of its own.
    """
    kinds, first_units = find_kinds(len(columns), list(columns.T))
    return kinds, columns[first_units]


def find_kinds(n_units: int, columns: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Group units with equal values: return the kind of each unit, and the first unit of each kind.

    If most units differ, each unit is a kind of its own.

    Parameters
    ----------
    n_units : int
        Number of units.
    columns : sequence of int array, shape (n_units,)
        Units of one kind have the same in each.
    """
    hashed = np.zeros(n_units, np.uint64)
    for column in columns:
        hashed = mix_bits(hashed ^ column.astype(np.uint64))
    _, first_units, kinds = np.unique(hashed, return_index=True, return_inverse=True)
    if len(first_units) > FEW_KINDS * n_units or any(
        (column[first_units][kinds] != column).any() for column in columns
    ):
        return np.arange(n_units, dtype=np.int32), np.arange(n_units)
    return kinds.astype(np.uint8 if len(first_units) <= FEW else np.int32), first_units


PART_BITS = 30
"""Of the lower part of contributions whose sums are too large for floats."""
