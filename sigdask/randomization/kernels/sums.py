"""Sums of integer contributions over the swapped units, for ranges of trials.

For system s and field f of a panel, `moved[s, f][t]` is the sum of (values of s) - (values of the first system) over
the units that are swapped in trial t. Only differences matter: after swaps, system i of pair (i, j) has the sum total_i
+ moved_j - moved_i. Columns of zeros cost nothing, and columns that are equal up to sign are summed once.

There are two exact ways to sum one column over 128 units. Bit planes are used up to `layouts.MAX_PLANES`:

- bit planes: sum_k 2^k (popcount((word & plane_k) ^ minus_k) - popcount(minus_k)), if values need few bits. Plane k has
  the units whose value has bit k, and `minus_k` has those of them whose value is negative.
- byte tables: the 256 possible sums of each 8 units, with one look-up per byte of the swap word.

Both keep their data in the L1 and L2 cache. For 0/1 and 129 systems, a product of matrices in float32 takes 6 times as
long. With four decimals it would gain a tenth on 50 units, and a third on 1,000.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.io.caches import cached_njit
from sigdask.randomization.kernels.discordance import is_zero, popcount
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream import BLOCK, SWAP, fill_counting_words, get_run_word, philox

SLAB_BYTES = 2**20
"""Maximum bytes of the swap words and sums of one slab of trials, so that they stay in the L2 cache."""


@dataclass(frozen=True, slots=True, eq=False)
class ContributionPieces:
    """All contributions of a panel, split into bit planes and byte tables for each group of 128 units.

    Attributes
    ----------
    columns : int64 array, shape (n_blocks,)
        Columns of 128 units that have discordant units.
    planes, tables : int64 array, shape (n_blocks + 1,)
        Boundaries of each block's bit planes, and of its byte tables.
    plane_targets : int32 array, shape (n_planes,)
        The summed column of each plane.
    masks : uint32 array, shape (n_planes, 2, 4)
        Units whose value has bit k, without its sign, and those of them whose value is negative.
    weights : int array, shape (n_planes,)
        2**k.
    table_targets : int32 array, shape (n_tables,)
        The summed column of each set of byte tables.
    values : int array, shape (n_tables, 128)
        The values themselves, in the smallest type that holds them.
    """

    columns: Integers
    planes: Integers
    plane_targets: NDArray[np.int32]
    masks: NDArray[np.uint32]
    weights: NDArray[Any]
    tables: Integers
    table_targets: NDArray[np.int32]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class SumLayout:
    """A panel's contributions, arranged so that they can be summed over the units that each trial swaps.

    Attributes
    ----------
    n_columns : int
        Distinct nonzero columns.
    column_of : int64 array, shape (n_systems, n_fields)
        Summed column of `moved[s, f]`, or -1 if it is zero.
    sign_of : int64 array, shape (n_systems, n_fields)
        1 or -1, because columns that differ only in sign are stored once.
    largest : int
        Bound on any sum of one column.
    pieces : ContributionPieces or None
        The columns, by columns of 128 units.
    """

    n_columns: int
    column_of: Integers
    sign_of: Integers
    largest: int
    pieces: ContributionPieces | None = None

    @property
    def dtype(self) -> Any:
        """The type of the sums."""
        return self.get_dtype(1)

    def get_dtype(self, weight: int) -> Any:
        """Return the type for sums of `weight` columns: int32 if their differences cannot overflow, else int64."""
        return np.int32 if self.largest * weight < 2**29 else np.int64

    @property
    def slab_size(self) -> int:
        """Number of trials summed at a time."""
        return int(np.clip(SLAB_BYTES // self.bytes_per_trial // 256 * 256, 1024, 16 * BLOCK))

    @property
    def bytes_per_trial(self) -> int:
        """Bytes needed for each trial during summing."""
        return 16 + self.n_columns * int(np.dtype(self.dtype).itemsize)


def compute_moved_sums(
    panel: ScoredSums, arranged: SumLayout, *, run: int, first: int, n_trials: int, room: SlabMemory | None = None
) -> NDArray[Any]:
    """Return the sum of each distinct column over the units that each trial swaps, shape (n_columns, n_trials)."""
    room = room or SlabMemory.from_layout(arranged, n_trials)
    words = room.words.ravel()[: 4 * n_trials].reshape(4, n_trials)  # without gaps between rows
    out = room.sums.ravel()[: len(room.sums) * n_trials].reshape(len(room.sums), n_trials)
    out[:] = 0
    if panel.enumerated:
        fill_counting_words(first, words)
    if arranged.pieces is not None:
        _add_pieces(panel, arranged.pieces, run, first, words, room, out)
    return out


COLUMNS_AT_ONCE = 256
"""Columns of 128 units that one call of a kernel sums."""

Words = NDArray[np.uint32]


def _add_pieces(
    panel: ScoredSums,
    pieces: ContributionPieces,
    run: int,
    first: int,
    words: Words,
    room: SlabMemory,
    out: NDArray[Any],
) -> None:
    """Add the sums over swapped units to `out` by bit planes and byte tables, 128 units at a time."""
    stream = (*map(np.uint32, panel.key), get_run_word(run, SWAP), first, not panel.enumerated)
    for start in range(0, len(pieces.columns), COLUMNS_AT_ONCE):
        borders = slice(start, start + COLUMNS_AT_ONCE + 1)
        planes, tables = pieces.planes[borders], pieces.tables[borders]
        values = pieces.values[tables[0] : tables[-1]].astype(out.dtype)
        add_pieces(
            stream,
            pieces.columns[start : start + COLUMNS_AT_ONCE],
            (planes, pieces.plane_targets, pieces.masks, pieces.weights),
            (tables, pieces.table_targets, values),
            words,
            room.table,
            out,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SlabMemory:
    """Memory for the arrays of one slab, allocated once for each task and reused for all its slabs.

    Fresh arrays for each slab would be mapped and unmapped by the system every time, which stalls
    all threads of the process.
    """

    words: NDArray[np.uint32]
    sums: NDArray[Any]
    table: NDArray[Any]
    named_arrays: dict[str, NDArray[Any]] = field(default_factory=dict)

    def get_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an uninitialised array, in the same memory each time the same name is given."""
        size = int(np.prod(shape))
        if (
            name not in self.named_arrays
            or self.named_arrays[name].size < size
            or self.named_arrays[name].dtype != dtype
        ):
            self.named_arrays[name] = np.empty(size, dtype)
        return self.named_arrays[name][:size].reshape(shape)

    @staticmethod
    def from_layout(arranged: SumLayout, n_trials: int) -> SlabMemory:
        """Allocate memory for slabs of `n_trials` trials."""
        return SlabMemory(
            np.empty((4, n_trials), np.uint32),
            np.empty((arranged.n_columns, n_trials), arranged.dtype),
            np.empty((16, 256), arranged.dtype),
        )


def sum_fields(
    arranged: SumLayout, moved: NDArray[Any], fields: Sequence[int], weights: Sequence[int], out: NDArray[Any]
) -> NDArray[Any]:
    """Write each system's weighted sum of some fields over the swapped units to `out`, shape (n_systems, n_trials)."""
    columns = np.ascontiguousarray(arranged.column_of[:, list(fields)])
    signed = (arranged.sign_of[:, list(fields)] * np.asarray(weights)).astype(out.dtype, order="C")
    combine_columns(moved, columns, signed, out)
    return out


@cached_njit()
def add_planes(words, masks, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add one column's sums over the swapped units to `out`, shape (n_trials,), by counting bits of planes.

    A swapped unit adds its weight. A unit with a negative value adds it if it is not swapped, and the weights of all
    negative values are subtracted.
    """
    for p in range(masks.shape[0]):
        m0, m1, m2, m3 = masks[p, 0, 0], masks[p, 0, 1], masks[p, 0, 2], masks[p, 0, 3]
        s0, s1, s2, s3 = masks[p, 1, 0], masks[p, 1, 1], masks[p, 1, 2], masks[p, 1, 3]
        n_negative = np.int32(popcount(s0) + popcount(s1) + popcount(s2) + popcount(s3))
        weight = weights[p]
        if m2 | m3:
            for t in range(words.shape[1]):
                bits = popcount((words[0, t] & m0) ^ s0) + popcount((words[1, t] & m1) ^ s1)
                bits += popcount((words[2, t] & m2) ^ s2) + popcount((words[3, t] & m3) ^ s3)
                out[t] += weight * (np.int32(bits) - n_negative)
        else:  # at most 64 units: topics, documents
            for t in range(words.shape[1]):
                bits = popcount((words[0, t] & m0) ^ s0) + popcount((words[1, t] & m1) ^ s1)
                out[t] += weight * (np.int32(bits) - n_negative)


@cached_njit()
def add_pieces(stream, columns, planes, tables, words, table, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the sums of some columns of 128 units over swapped units to `out`, shape (n_columns, n_trials).

    `words` are drawn for each column, or given if all arrangements are counted. `planes` and `tables` begin with the
    bounds of each column's bit planes, and of its rows of values. The first row is the call's first.
    """
    k0, k1, c1, first, is_drawn = stream
    plane_borders, plane_targets, masks, weights = planes
    table_borders, table_targets, values = tables
    for c in range(columns.shape[0]):
        if is_drawn:
            philox(k0, k1, c1, np.uint32(columns[c]), first, words)
        for p in range(plane_borders[c], plane_borders[c + 1]):
            add_planes(words, masks[p : p + 1], weights[p : p + 1], out[plane_targets[p]])
        for p in range(table_borders[c], table_borders[c + 1]):
            add_tables(words, values[p - table_borders[0]], table, out[table_targets[p]])


@cached_njit()
def combine_columns(moved, columns, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write weighted sums of columns: out[s] = sum_k weights[s, k] * moved[columns[s, k]], where column -1 is 0."""
    for s in range(columns.shape[0]):
        out[s, :] = 0
        for k in range(columns.shape[1]):
            weight = weights[s, k]
            if columns[s, k] >= 0 and weight != 0:
                row = moved[columns[s, k]]
                for t in range(row.shape[0]):
                    out[s, t] += weight * row[t]


@cached_njit()
def add_tables(words, values, table, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the sum of the swapped units' values to `out`, shape (n_trials,), by tables of all sums of 8 units."""
    for g in range(16):
        table[g, 0] = 0
        for k in range(8):
            value = values[8 * g + k]
            for j in range(1 << k):
                table[g, (1 << k) + j] = table[g, j] + value
    low = np.uint32(255)
    for q in range(4):
        if is_zero(values[32 * q : 32 * q + 32]):
            continue
        t0, t1, t2, t3 = table[4 * q], table[4 * q + 1], table[4 * q + 2], table[4 * q + 3]
        for t in range(words.shape[1]):
            w = words[q, t]
            low_sum = t0[w & low] + t1[(w >> np.uint32(8)) & low]
            out[t] += low_sum + t2[(w >> np.uint32(16)) & low] + t3[w >> np.uint32(24)]
