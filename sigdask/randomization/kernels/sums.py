"""Sums of integer contributions over the swapped units, for ranges of trials.

For system s and field f of a panel, `moved[s, f][t]` is the sum over the units swapped in trial t
of (values of s) - (values of the first system). Only differences matter: the pseudo-system of pair
(i, j) sums to total_i + moved_j - moved_i. Columns that are zero everywhere cost nothing, equal
columns (up to sign) are summed once.

Two exact ways to sum one column over 128 units, whichever was measured to be faster:

- bit planes: sum_k 2^k popcount(word & plane_k), where few bits tell the values apart;
- byte tables: for each 8 units the 256 possible sums, one look-up a byte of the swap word.

and one for all columns at once, where it was measured to be faster: a matrix product (`dense`).

All stay in the L1/L2 cache: a slab of trials is summed column of units by column of units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import compiled
from sigdask.randomization.kernels import dense
from sigdask.randomization.kernels.bits import popcount
from sigdask.randomization.kernels.columns import DistinctColumns
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream.shuffles import BLOCK, COLUMN, counting_words, swap_words

SLAB_BYTES = 2**20
"""What the swap words and sums of one slab of trials may take, so that they stay in the L2 cache."""


@dataclass(frozen=True, slots=True, eq=False)
class ContributionPieces:
    """What columns of 128 units contribute to the summed columns, in flat arrays sorted by column of units.

    Attributes
    ----------
    columns : int64 array, shape (n_blocks,)
        Columns of 128 units that have discordant units.
    planes, tables : int64 array, shape (n_blocks + 1,)
        Where the bit planes, and the byte tables, of each of them begin and end.
    plane_targets : int32 array, shape (n_planes,)
        The summed column of each plane.
    masks : uint32 array, shape (n_planes, 4)
        Units whose value has bit k.
    weights : int array, shape (n_planes,)
        2**k, the highest one negative where values are (two's complement).
    table_targets : int32 array, shape (n_tables,)
        The summed column of each set of byte tables.
    values : int array, shape (n_tables, 128)
        The values themselves, in the smallest type that holds them.
    """

    columns: NDArray[np.int64]
    planes: NDArray[np.int64]
    plane_targets: NDArray[np.int32]
    masks: NDArray[np.uint32]
    weights: NDArray[Any]
    tables: NDArray[np.int64]
    table_targets: NDArray[np.int32]
    values: NDArray[Any]

    def cost(self, itemsize: int) -> float:
        """Return about how many seconds a trial takes to sum them here."""
        plane, table = piece_costs(itemsize)
        halves = np.where(self.masks[:, 2:].any(axis=1), 1.0, 0.5).sum()
        return float(halves * plane + self.values.reshape(-1, 4, 32).any(axis=2).sum() / 4 * table)


@dataclass(frozen=True, slots=True, eq=False)
class SumLayout:
    """A panel's contributions arranged for summing.

    Attributes
    ----------
    n_columns : int
        Distinct nonzero columns.
    column_of : int64 array, shape (n_systems, n_fields)
        Which summed column holds `moved[s, f]`; -1 where it is zero.
    sign_of : int64 array, shape (n_systems, n_fields)
        1 or -1: equal up to sign.
    largest : int
        Bound on any sum of one column.
    pieces : ContributionPieces or None
        The columns, by columns of 128 units.
    dense : DistinctColumns, or None
        The columns themselves, where a matrix product is faster than `pieces`.
    made : tuple of MovedSums, or None
        Sums that were made elsewhere, block by block, of a panel that is not here.
    """

    n_columns: int
    column_of: NDArray[np.int64]
    sign_of: NDArray[np.int64]
    largest: int
    pieces: ContributionPieces | None = None
    dense: DistinctColumns | None = None
    made: tuple[MovedSums, ...] | None = None

    @property
    def dtype(self) -> Any:
        """The type of the sums."""
        return self.dtype_for(1)

    def dtype_for(self, weight: int) -> Any:
        """Return int32 where sums of `weight` columns and their differences cannot overflow, else int64."""
        return np.int32 if self.largest * weight < 2**29 else np.int64

    @property
    def slab(self) -> int:
        """Trials summed at a time."""
        return int(np.clip(SLAB_BYTES // self._in_cache // 256 * 256, 1024, 16 * BLOCK))

    @property
    def per_trial(self) -> int:
        """Bytes that a trial takes while it is summed."""
        if self.dense is None:
            return self._in_cache
        return self._in_cache + 4 * (self.n_columns + min(self.dense.n_units, dense.UNITS))

    @property
    def per_chunk(self) -> int:
        """Bytes that a chunk of contributions takes while it is multiplied, however many trials there are."""
        return 0 if self.dense is None else 4 * self.n_columns * min(self.dense.n_units, dense.UNITS)

    @property
    def _in_cache(self) -> int:
        return 16 + self.n_columns * int(np.dtype(self.dtype).itemsize)


@dataclass(frozen=True, slots=True, eq=False)
class MovedSums:
    """Sums of some systems of a panel in a range of trials.

    Attributes
    ----------
    arranged : SumLayout
        Where the systems' columns stand; the first system is that of the whole panel.
    first : int
        The first trial.
    sums : int array, shape (n_columns, n_trials)
        In the smallest type that holds them.
    """

    arranged: SumLayout
    first: int
    sums: NDArray[Any]


def moved_sums(
    panel: ScoredSums, arranged: SumLayout, *, run: int, first: int, n_trials: int, room: SlabMemory | None = None
) -> NDArray[Any]:
    """Return the sums over swapped units, shape (n_columns, n_trials)."""
    room = room or SlabMemory.of(arranged, n_trials)
    words, out = room.of_trials(n_trials)
    if arranged.made is not None:
        _copy(arranged.made, first, out)
        return out
    out[:] = 0
    if panel.enumerated:
        counting_words(first, words)
    if arranged.dense is not None:
        _add_products(panel, arranged.dense, run, first, words, room, out)
        return out
    if arranged.pieces is not None:
        _add_pieces(panel, arranged.pieces, run, first, words, room, out)
    return out


def _copy(made: Sequence[MovedSums], first: int, out: NDArray[Any]) -> None:
    """Write the sums of all blocks from trial `first` on."""
    row = 0
    for block in made:
        start = first - block.first
        out[row : row + len(block.sums)] = block.sums[:, start : start + out.shape[1]]
        row += len(block.sums)


def _add_pieces(
    panel: ScoredSums,
    pieces: ContributionPieces,
    run: int,
    first: int,
    words: NDArray[np.uint32],
    room: SlabMemory,
    out: NDArray[Any],
) -> None:
    """Add bit planes and byte tables, a column of units at a time, to `out`."""
    borders = zip(pairwise(pieces.planes.tolist()), pairwise(pieces.tables.tolist()), strict=True)
    for column, (planes, tables) in zip(pieces.columns.tolist(), borders, strict=True):
        if not panel.enumerated:
            swap_words(panel.key, run, first, column, words)
        own = slice(*planes)
        add_all_planes(words, pieces.plane_targets[own], pieces.masks[own], pieces.weights[own], out)
        if tables[0] < tables[1]:
            own = slice(*tables)
            add_all_tables(words, pieces.table_targets[own], pieces.values[own].astype(out.dtype), room.table, out)


def _add_products(
    panel: ScoredSums,
    columns: DistinctColumns,
    run: int,
    first: int,
    words: NDArray[np.uint32],
    room: SlabMemory,
    out: NDArray[Any],
) -> None:
    """Add matrix products of contributions and swaps, a chunk of units at a time, to `out`."""
    n_columns, n_trials = out.shape
    column = -1
    for start in range(0, columns.n_units, dense.UNITS):
        addresses = panel.addresses[start : start + dense.UNITS]
        swaps = room.array("swaps", (len(addresses), n_trials), np.float32)
        for here in np.unique(addresses // COLUMN):
            if here != column and not panel.enumerated:
                swap_words(panel.key, run, first, int(here), words)
                column = here
            units = np.flatnonzero(addresses // COLUMN == here)
            dense.expand(words, addresses[units] % COLUMN, swaps[units[0] : units[-1] + 1])
        products = room.array("products", (n_columns, n_trials), np.float32)
        own = room.array("contributions", (n_columns, len(addresses)), np.float32)
        columns.write(slice(start, start + dense.UNITS), own)
        with dense.one_thread():
            np.matmul(own, swaps, out=products)
        dense.add_rounded(products, out)


@dataclass(frozen=True, slots=True, eq=False)
class SlabMemory:
    """Memory for one slab, made once a task and used again for each slab.

    Fresh arrays for each slab would be mapped and unmapped by the system every time, which stalls
    all threads of the process.
    """

    words: NDArray[np.uint32]
    sums: NDArray[Any]
    table: NDArray[Any]
    named: dict[str, NDArray[Any]] = field(default_factory=dict)

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return uninitialised memory that is the same for the same name."""
        size = int(np.prod(shape))
        if name not in self.named or self.named[name].size < size or self.named[name].dtype != dtype:
            self.named[name] = np.empty(size, dtype)
        return self.named[name][:size].reshape(shape)

    def of_trials(self, n_trials: int) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        """Return the swap words and sums of so many trials, without gaps between rows."""
        words, sums = (
            whole.ravel()[: len(whole) * n_trials].reshape(-1, n_trials) for whole in (self.words, self.sums)
        )
        return words, sums.reshape(len(self.sums), n_trials)

    @staticmethod
    def of(arranged: SumLayout, n_trials: int) -> SlabMemory:
        """Make room for slabs of `n_trials` trials."""
        return SlabMemory(
            np.empty((4, n_trials), np.uint32),
            np.empty((arranged.n_columns, n_trials), arranged.dtype),
            np.empty((16, 256), arranged.dtype),
        )


def combined(
    arranged: SumLayout, moved: NDArray[Any], fields: Sequence[int], weights: Sequence[int], out: NDArray[Any]
) -> NDArray[Any]:
    """Write weighted sums of fields of all systems into `out`, shape (n_systems, n_trials)."""
    columns = np.ascontiguousarray(arranged.column_of[:, list(fields)])
    signed = (arranged.sign_of[:, list(fields)] * np.asarray(weights)).astype(out.dtype)
    combine(moved, columns, signed, out)
    return out


def planes_worth(itemsize: int) -> int:
    """Return the number of bit planes up to which they beat byte tables here, by measurement.

    Machines without a vector popcount look up tables sooner. The choice changes no sum.
    """
    plane, table = piece_costs(itemsize)
    return int(table / plane)


@lru_cache(maxsize=2)
def piece_costs(itemsize: int) -> tuple[float, float]:
    """Measure the seconds a trial that one bit plane, and one set of byte tables, of 128 units take here."""
    dtype = {4: np.int32, 8: np.int64}[itemsize]
    words, sums = np.full((4, 2048), 0x5A5A5A5A, np.uint32), np.zeros(2048, dtype)
    masks, weights = np.full((8, 4), 0x0F0F0F0F, np.uint32), np.ones(8, dtype)
    table, values = np.empty((16, 256), dtype), np.ones(COLUMN, dtype)
    of_plane = dense.fastest(add_planes, words, masks, weights, sums) / len(weights)
    return of_plane / len(sums), dense.fastest(add_tables, words, values, table, sums) / len(sums)


@compiled()
def add_planes(words, masks, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add 2^k popcount(words & plane_k) over planes to `out`, shape (n_trials,)."""
    for p in range(masks.shape[0]):
        m0, m1, m2, m3 = masks[p, 0], masks[p, 1], masks[p, 2], masks[p, 3]
        weight = weights[p]
        if m2 | m3:
            for t in range(words.shape[1]):
                bits = popcount(words[0, t] & m0) + popcount(words[1, t] & m1)
                bits += popcount(words[2, t] & m2) + popcount(words[3, t] & m3)
                out[t] += weight * np.int32(bits)
        else:  # at most 64 units: topics, documents
            for t in range(words.shape[1]):
                bits = popcount(words[0, t] & m0) + popcount(words[1, t] & m1)
                out[t] += weight * np.int32(bits)


@compiled()
def add_all_planes(words, targets, masks, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add planes to the rows of `out`, shape (n_columns, n_trials), that they are of."""
    for p in range(targets.shape[0]):
        add_planes(words, masks[p : p + 1], weights[p : p + 1], out[targets[p]])


@compiled()
def add_all_tables(words, targets, values, table, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add values of swapped units to the rows of `out`, shape (n_columns, n_trials), that they are of."""
    for p in range(targets.shape[0]):
        add_tables(words, values[p], table, out[targets[p]])


@compiled()
def combine(moved, columns, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Set out[s] to the sum over k of weights[s, k] * moved[columns[s, k]]; column -1 is zero."""
    for s in range(columns.shape[0]):
        out[s, :] = 0
        for k in range(columns.shape[1]):
            weight = weights[s, k]
            if columns[s, k] >= 0 and weight != 0:
                row = moved[columns[s, k]]
                for t in range(row.shape[0]):
                    out[s, t] += weight * row[t]


@compiled()
def add_tables(words, values, table, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the values of the swapped units to `out`, shape (n_trials,), by tables of 8 units."""
    for g in range(16):
        table[g, 0] = 0
        for k in range(8):
            value = values[8 * g + k]
            for j in range(1 << k):
                table[g, (1 << k) + j] = table[g, j] + value
    low = np.uint32(255)
    for q in range(4):
        if not values[32 * q : 32 * q + 32].any():
            continue
        t0, t1, t2, t3 = table[4 * q], table[4 * q + 1], table[4 * q + 2], table[4 * q + 3]
        for t in range(words.shape[1]):
            w = words[q, t]
            here = t0[w & low] + t1[(w >> np.uint32(8)) & low]
            out[t] += here + t2[(w >> np.uint32(16)) & low] + t3[w >> np.uint32(24)]
