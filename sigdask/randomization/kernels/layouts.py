"""Arrange panels for summing: distinct columns, and the bit planes and tables that sum them.

A column holds one system's contributions to one field, minus those of its base system. Columns are held in
no type wider than the panel's, and no Python object is made for a column and 128 units: a panel of 1,000
systems and 10^5 items has 782,000 of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.randomization.kernels.sums import ContributionPieces, SumLayout
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream import COLUMN

MAX_PLANES = 10
"""Maximum number of bit planes of a column. More are summed by byte tables, which take as long as 14 planes (8 in 64
bits) where popcount is a vector instruction.
"""

MAX_NUMBERS = 2**21
"""Maximum number of unit sums split into bit planes at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class DistinctColumns:
    """The distinct nonzero columns of a panel: contributions to a field minus those of a base system, up to sign.

    Attributes
    ----------
    values : int array, shape (n_units, n_systems, n_fields)
        The panel's contributions, in a type that holds their differences.
    systems, bases, fields : int64 array, shape (n_columns,)
        The first system that has the column, the base system that is subtracted, and the field.
    signs : int array, shape (n_columns,)
        1 or -1, so that each column's first nonzero number is positive.
    """

    values: NDArray[Any]
    systems: Integers
    bases: Integers
    fields: Integers
    signs: NDArray[Any]

    def __len__(self) -> int:
        return len(self.systems)

    @property
    def n_units(self) -> int:
        """Number of units of each column."""
        return len(self.values)

    def compute_values(self, units: slice) -> NDArray[Any]:
        """Return the columns for some units, shape (n_columns, n_units), in the contributions' type."""
        values = self.values[units]
        differences = values[:, self.systems, self.fields] - values[:, self.bases, self.fields]
        return np.asarray((differences * self.signs).T)


_layouts: WeakKeyDictionary[ScoredSums, SumLayout] = WeakKeyDictionary()


def get_layout(panel: ScoredSums) -> SumLayout:
    """Return a panel's layout for summing, which is built once and cached as long as the panel lives."""
    cached = _layouts.get(panel)
    if cached is None:
        cached = _layouts[panel] = _build_layout(panel)
    return cached


def _build_layout(panel: ScoredSums) -> SumLayout:
    _, n_systems, n_fields = panel.values.shape
    column_of = np.full((n_systems, n_fields), -1, np.int64)
    sign_of = np.ones((n_systems, n_fields), np.int64)
    seen: dict[bytes, int] = {}
    origins: list[tuple[int, int]] = []
    largest = 0
    for s in range(1, n_systems):
        base = panel.get_base_system(s)
        for f in range(n_fields) if s != base else ():
            column = panel.values[:, s, f] - panel.values[:, base, f]  # within the type, which holds differences
            nonzero = column != 0
            start = int(nonzero.argmax()) if len(nonzero) else 0
            if not nonzero.any():
                continue
            sign_of[s, f] = 1 if column[start] > 0 else -1
            column *= column.dtype.type(sign_of[s, f])
            column_of[s, f] = seen.setdefault(hashlib.blake2b(column).digest(), len(origins))
            if column_of[s, f] == len(origins):
                origins.append((s, f))
                largest = max(largest, int(np.abs(column).sum(dtype=np.int64)))
    systems, fields = np.array(origins, np.int64).reshape(-1, 2).T
    bases = np.array([panel.get_base_system(s) for s in systems.tolist()], np.int64)
    signs = sign_of[systems, fields].astype(panel.values.dtype)
    columns = DistinctColumns(panel.values, systems, bases, fields, signs)
    empty = SumLayout(len(columns), column_of, sign_of, largest)
    return replace(empty, pieces=_build_pieces(columns, panel.addresses, empty.dtype))


def _find_starts(addresses: Integers) -> Integers:
    """Return the index of the first unit in each group of 128 addresses."""
    return np.flatnonzero(np.diff(addresses // COLUMN, prepend=-1))


def _build_pieces(columns: DistinctColumns, addresses: Integers, dtype: Any) -> ContributionPieces:
    """Return the columns as bit planes and byte tables, decomposed some groups of 128 units at a time."""
    starts = _find_starts(addresses)
    runs = _iter_runs(starts, len(addresses), len(columns))
    parts = [_decompose(columns, addresses, run, dtype) for run in runs]
    planes, n_tables, plane_targets, masks, weights, table_targets, values = zip(*parts, strict=True)
    return ContributionPieces(
        columns=addresses[starts] // COLUMN,
        planes=_compute_borders(planes),
        plane_targets=np.concatenate(plane_targets),
        masks=np.concatenate(masks),
        weights=np.concatenate(weights),
        tables=_compute_borders(n_tables),
        table_targets=np.concatenate(table_targets),
        values=np.concatenate(values),
    )


def _compute_borders(numbers: tuple[Integers, ...]) -> Integers:
    return np.concatenate([[0], np.cumsum(np.concatenate(numbers))]).astype(np.int64)


def _iter_runs(starts: Integers, n_units: int, n_columns: int) -> Iterator[Integers]:
    """Yield the borders of groups of 128 units, in runs of as many groups as are decomposed at once.

    Without units, the only run has no group.
    """
    ends = np.append(starts, n_units)
    step = max(1, MAX_NUMBERS // (COLUMN * max(n_columns, 1)))
    for k in range(0, max(len(starts), 1), step):
        yield ends[k : k + step + 1]


def _decompose(columns: DistinctColumns, addresses: Integers, ends: Integers, dtype: Any) -> tuple[NDArray[Any], ...]:
    """Return how many bit planes and tables each group of 128 units has, and their arrays for `ContributionPieces`."""
    units, n_blocks = slice(ends[0], ends[-1]), len(ends) - 1
    slots = np.repeat(np.arange(n_blocks), np.diff(ends)) * COLUMN + addresses[units] % COLUMN
    numbers = np.zeros((len(columns), n_blocks * COLUMN), columns.values.dtype)
    numbers[:, slots] = columns.compute_values(units)
    numbers = numbers.reshape(len(columns), n_blocks, COLUMN)
    masks = _pack_planes(numbers)  # (n_blocks, n_columns, n_bits, 2, 4)
    used = masks[:, :, :, 0].any(axis=3)
    n_planes = used.sum(axis=2)  # (n_blocks, n_columns)
    by_table = n_planes > MAX_PLANES
    block, target, k = np.nonzero(used & ~by_table[:, :, None])
    table_block, table_target = np.nonzero(by_table)
    return (
        np.bincount(block, minlength=n_blocks),
        np.bincount(table_block, minlength=n_blocks),
        target.astype(np.int32),
        masks[block, target, k],
        (1 << k).astype(dtype),
        table_target.astype(np.int32),
        numbers[table_target, table_block],
    )


def _pack_planes(numbers: NDArray[Any]) -> NDArray[np.uint32]:
    """Return masks of units by bit k of their sizes, all and negative ones, (n_blocks, n_columns, n_bits, 2, 4)."""
    n_columns, n_blocks, _ = numbers.shape
    sizes, is_negative = np.abs(numbers).view(f"u{numbers.itemsize}"), numbers < 0
    planes = np.empty((n_blocks, n_columns, int(sizes.max(initial=0)).bit_length(), 2, 4), np.uint32)
    for k in range(planes.shape[2]):
        has_bit = (sizes >> k & 1).astype(np.bool_)
        for j, units in enumerate((has_bit, has_bit & is_negative)):
            packed = np.packbits(units, axis=2, bitorder="little")
            planes[:, :, k, j] = packed.view("<u4").transpose(1, 0, 2)
    return planes
