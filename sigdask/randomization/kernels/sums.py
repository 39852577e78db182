"""Sums of integer contributions over the swapped units, for ranges of trials.

For system s and field f of a panel, `moved[s, f][t]` is the sum over the units swapped in trial t
of (values of s) - (values of the first system, or of the first of its pair). Only differences matter: the
pseudo-system of pair (i, j) sums to total_i + moved_j - moved_i. Columns that are zero everywhere cost nothing, equal
columns (up to sign) are summed once.

Two exact ways to sum one column over 128 units, whichever was measured to be faster:

- bit planes: sum_k 2^k popcount(word & plane_k), where few bits tell the values apart;
- byte tables: for each 8 units the 256 possible sums, one look-up a byte of the swap word.

and one for all columns at once, where it was measured to be faster: a matrix product (`dense`).

All stay in the L1/L2 cache: a slab of trials is summed column of units by column of units.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numba.extending import intrinsic
from numpy.typing import NDArray

from sigdask.randomization.kernels import dense
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.shuffles import BLOCK, COLUMN, counting_words, swap_words

SLAB_BYTES = 2**20
"""What the swap words and sums of one slab of trials may take, so that they stay in the L2 cache."""


FEWEST_DENSE = 8
"""Columns from which a matrix product is considered."""


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """What one column of 128 units contributes to one summed column.

    Attributes
    ----------
    target : int
        The summed column.
    masks : uint32 array, shape (n_planes, 4)
        Units whose value has bit k; empty where byte tables are used.
    weights : int array, shape (n_planes,)
        2**k, the last one negative (two's complement).
    values : int array, shape (128,)
        The values themselves, for byte tables.
    """

    target: int
    masks: NDArray[np.uint32]
    weights: NDArray[Any]
    values: NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A panel's contributions arranged for summing.

    Attributes
    ----------
    n_columns : int
        Distinct nonzero columns.
    column_of : int64 array, shape (n_systems, n_fields)
        Which summed column holds `moved[s, f]`; -1 where it is zero.
    sign_of : int64 array, shape (n_systems, n_fields)
        1 or -1: equal up to sign.
    pieces : tuple of (int, tuple of Piece)
        By column of 128 units that has discordant units.
    largest : int
        Bound on any sum of one column.
    dense : float32 array, shape (n_columns, n_kept), or None
        The columns themselves, where a matrix product is faster than `pieces`.
    """

    n_columns: int
    column_of: NDArray[np.int64]
    sign_of: NDArray[np.int64]
    pieces: tuple[tuple[int, tuple[Piece, ...]], ...]
    largest: int
    dense: NDArray[np.float32] | None = None

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
        n_units = int(self.dense.shape[1])
        return self._in_cache + 4 * (self.n_columns + min(n_units, dense.UNITS))

    @property
    def _in_cache(self) -> int:
        return 16 + self.n_columns * int(np.dtype(self.dtype).itemsize)


_layouts: WeakKeyDictionary[ScoredSums, Layout] = WeakKeyDictionary()


def layout(panel: ScoredSums) -> Layout:
    """Arrange a panel for summing (kept as long as the panel: a family may have thousands)."""
    found = _layouts.get(panel)
    if found is None:
        found = _layouts[panel] = _arranged(panel)
    return found


def _arranged(panel: ScoredSums) -> Layout:
    _, n_systems, n_fields = panel.values.shape
    columns: list[NDArray[np.int64]] = []
    seen: dict[bytes, int] = {}
    column_of = np.full((n_systems, n_fields), -1, np.int64)
    sign_of = np.ones((n_systems, n_fields), np.int64)
    for s in range(1, n_systems):
        base = panel.base_of(s)
        for f in range(n_fields) if s != base else ():
            column = panel.values[:, s, f].astype(np.int64) - panel.values[:, base, f]
            nonzero = np.flatnonzero(column)
            if not len(nonzero):
                continue
            sign_of[s, f] = 1 if column[nonzero[0]] > 0 else -1
            column = column * sign_of[s, f]
            column_of[s, f] = seen.setdefault(column.tobytes(), len(columns))
            if column_of[s, f] == len(columns):
                columns.append(column)
    largest = max((int(np.abs(c).sum()) for c in columns), default=0)
    empty = Layout(len(columns), column_of, sign_of, (), largest)
    pieces = tuple(_pieces(panel.addresses, columns, empty.dtype))
    return replace(empty, pieces=pieces, dense=_dense(columns, pieces, empty.dtype))


def _dense(
    columns: list[NDArray[np.int64]], pieces: Sequence[tuple[int, tuple[Piece, ...]]], dtype: Any
) -> NDArray[np.float32] | None:
    """Return the columns as a matrix where its product is faster, else None."""
    if len(columns) < FEWEST_DENSE:
        return None
    matrix = np.stack(columns)
    by_pieces = sum(_cost(piece, np.dtype(dtype).itemsize) for _, own in pieces for piece in own)
    if not dense.fits(matrix) or dense.cost(*matrix.shape) >= by_pieces:
        return None
    return matrix.astype(np.float32)


def _cost(piece: Piece, itemsize: int) -> float:
    """Return about how many seconds a trial takes to sum a piece here."""
    plane, table = piece_costs(itemsize)
    if len(piece.masks):
        return len(piece.masks) * plane * (1.0 if piece.masks[:, 2:].any() else 0.5)
    return table * float(piece.values.reshape(4, 32).any(axis=1).mean())


def _pieces(
    addresses: NDArray[np.int64], columns: list[NDArray[np.int64]], dtype: Any
) -> Iterator[tuple[int, tuple[Piece, ...]]]:
    blocks, block_of = np.unique(addresses // COLUMN, return_inverse=True)
    found: list[list[Piece]] = [[] for _ in blocks]
    for target, column in enumerate(columns):
        values = np.zeros((len(blocks), COLUMN), np.int64)
        values[block_of, addresses % COLUMN] = column
        for k, piece in _in_blocks(target, values, dtype):
            found[k].append(piece)
    yield from zip(blocks.tolist(), map(tuple, found), strict=True)


def _in_blocks(target: int, values: NDArray[np.int64], dtype: Any) -> Iterator[tuple[int, Piece]]:
    """Yield the pieces of a column, shape (n_blocks, 128), of the blocks that it is not 0 in."""
    lowest, highest = values.min(axis=1), values.max(axis=1)
    negative: NDArray[np.bool_] = lowest < 0
    n_bits = [max((~low if low < 0 else 0).bit_length(), high.bit_length()) + (low < 0)
              for low, high in zip(lowest.tolist(), highest.tolist(), strict=True)]  # fmt: skip
    planes = range(max(n_bits, default=0))
    masks = np.empty((len(values), len(planes), 4), np.uint32)
    for plane in planes:  # of two's complement; bit u of word q is unit 32 q + u
        bits = ((values >> plane) & 1).astype(np.bool_)
        masks[:, plane] = np.packbits(bits, axis=1, bitorder="little").view("<u4")
    used, most = masks.any(axis=2), planes_worth(np.dtype(dtype).itemsize)
    for k in np.flatnonzero(np.array(n_bits)).tolist():
        weights = 1 << np.arange(n_bits[k])
        weights[-1] *= -1 if negative[k] else 1
        own = used[k, : n_bits[k]]
        if np.count_nonzero(own) > most:
            yield k, Piece(target, np.empty((0, 4), np.uint32), np.empty(0, dtype), values[k].astype(dtype))
        else:
            yield k, Piece(target, masks[k, : n_bits[k]][own], weights[own].astype(dtype), np.empty(0, dtype))


def moved_sums(
    panel: ScoredSums, arranged: Layout, *, run: int, first: int, n_trials: int, room: Room | None = None
) -> NDArray[Any]:
    """Return the sums over swapped units, shape (n_columns, n_trials)."""
    room = room or Room.of(arranged, n_trials)
    words, out = room.words[:, :n_trials], room.sums[:, :n_trials]
    out[:] = 0
    if panel.enumerated:
        counting_words(first, words)
    if arranged.dense is not None:
        _add_products(panel, arranged.dense, run, first, words, room, out)
        return out
    for column, pieces in arranged.pieces:
        if not panel.enumerated:
            swap_words(panel.key, run, first, column, words)
        for piece in pieces:
            if len(piece.masks):
                add_planes(words, piece.masks, piece.weights, out[piece.target])
            else:
                add_tables(words, piece.values, room.table, out[piece.target])
    return out


def _add_products(
    panel: ScoredSums,
    matrix: NDArray[np.float32],
    run: int,
    first: int,
    words: NDArray[np.uint32],
    room: Room,
    out: NDArray[Any],
) -> None:
    """Add matrix products of contributions and swaps, a chunk of units at a time, to `out`."""
    n_columns, n_units = matrix.shape
    n_trials = out.shape[1]
    column = -1
    for start in range(0, n_units, dense.UNITS):
        addresses = panel.addresses[start : start + dense.UNITS]
        swaps = room.array("swaps", (len(addresses), n_trials), np.float32)
        for here in np.unique(addresses // COLUMN):
            if here != column and not panel.enumerated:
                swap_words(panel.key, run, first, int(here), words)
                column = here
            own = np.flatnonzero(addresses // COLUMN == here)
            dense.expand(words, addresses[own] % COLUMN, swaps[own[0] : own[-1] + 1])
        products = room.array("products", (n_columns, n_trials), np.float32)
        with dense.one_thread():
            np.matmul(matrix[:, start : start + dense.UNITS], swaps, out=products)
        dense.add_rounded(products, out)


@dataclass(frozen=True, slots=True, eq=False)
class Room:
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

    @staticmethod
    def of(arranged: Layout, n_trials: int) -> Room:
        """Make room for slabs of `n_trials` trials."""
        return Room(
            np.empty((4, n_trials), np.uint32),
            np.empty((arranged.n_columns, n_trials), arranged.dtype),
            np.empty((16, 256), arranged.dtype),
        )


def combined(
    arranged: Layout, moved: NDArray[Any], fields: Sequence[int], weights: Sequence[int], out: NDArray[Any]
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


@intrinsic  # type: ignore[untyped-decorator]
def popcount(_context: Any, word: Any) -> Any:
    """Return the number of set bits (LLVM's ctpop)."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
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
