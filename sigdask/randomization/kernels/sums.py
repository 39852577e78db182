"""Sums of integer contributions over the swapped units, for ranges of trials.

For system s and field f of a panel, `moved[s, f][t]` is the sum of (values of s) - (values of the base system) over
the units that are swapped in trial t. Only differences matter: after swaps, system i of pair (i, j) has the sum total_i
+ moved_j - moved_i. Columns of zeros cost nothing, and equal columns are summed once (BLEU has nine, of which
five differ).

There are two exact ways to sum one column over 128 units. Bit planes are used up to `MAX_PLANES`:

- bit planes: sum_k 2^k (popcount((word & plane_k) ^ minus_k) - popcount(minus_k)), if values need few bits. Plane k has
  the units whose value has bit k, and `minus_k` has those of them whose value is negative.
- byte tables: the 256 possible sums of each 8 units, with one look-up per byte of the swap word.

Both keep their data in the L1 and L2 cache. Measured with 1,000 units, a product of matrices takes 26 times as long
for one pair of 0/1, 17 times for 129 systems, and 22 times for one pair of scores with four decimals, because every
bit of a swap becomes a number; for 50 systems with four decimals 1.4 times. For 129 systems and 50 topics it would
take 0.6 times as long, which is a tenth of counting.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.io.caches import LazyKernel, cached_njit
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream import BLOCK, COLUMN, SWAP, fill_counting_words, get_run_word, philox

MAX_PLANES = 10
"""Maximum number of bit planes of a column. More are summed by byte tables, which take as long as 14 planes (8 in 64
bits) where popcount is a vector instruction.
"""

SLAB_BYTES = 2**20
"""Maximum bytes of the swap words and sums of one slab of trials, so that they stay in the L2 cache."""


@dataclass(frozen=True, slots=True, eq=False)
class SumLayout:
    """A panel's contributions, arranged so that they can be summed over the units that each trial swaps.

    A summed column holds the contributions of one system to one field minus those of its base system.

    Attributes
    ----------
    n_columns : int
        Distinct nonzero columns.
    column_of : int64 array, shape (n_systems, n_fields)
        Summed column of `moved[s, f]`, or -1 if it is zero.
    largest : int
        Bound on any sum of one column.
    blocks : int64 array, shape (n_blocks,)
        Groups of 128 addresses that have kept units.
    planes : (int32 array, int array, uint32 array), of length n_planes, n_planes and shape (n_blocks, n_planes, 2, 4)
        The summed column of each bit plane, its weight 2**k, and the units whose value has bit k, without its sign,
        and those of them whose value is negative.
    tables : (int32 array, int array), of length n_tables and shape (n_blocks, n_tables, 128)
        The other summed columns, and their values in the panel's type.
    """

    n_columns: int
    column_of: Integers
    largest: int
    blocks: Integers
    planes: tuple[NDArray[np.int32], NDArray[Any], NDArray[np.uint32]]
    tables: tuple[NDArray[np.int32], NDArray[Any]]

    def get_dtype(self, weight: int = 1) -> Any:
        """Return the type for sums of `weight` columns: int32 if their differences cannot overflow, else int64."""
        return find_sum_type(self.largest * weight)

    @property
    def slab_size(self) -> int:
        """Number of trials summed at a time."""
        return int(np.clip(SLAB_BYTES // self.bytes_per_trial // 256 * 256, 1024, 16 * BLOCK))

    @property
    def bytes_per_trial(self) -> int:
        """Bytes needed for each trial during summing."""
        return 16 + self.n_columns * int(np.dtype(self.get_dtype()).itemsize)


def find_sum_type(largest: int) -> Any:
    """Return the type of sums up to a size: int32 if their differences cannot overflow, else int64."""
    return np.int32 if largest < 2**29 else np.int64


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
    blocks, block_of_unit = np.unique(panel.addresses // COLUMN, return_inverse=True)
    slots = block_of_unit * COLUMN + panel.addresses % COLUMN
    seen: dict[bytes, int] = {}
    plane_targets, bits, table_targets = list[int](), list[int](), list[int]()
    masks, values = list[NDArray[np.uint32]](), list[NDArray[Any]]()
    largest = 0
    for s in range(1, n_systems):
        base = panel.get_base_system(s)
        for f in range(n_fields) if s != base else ():
            column = panel.values[:, s, f] - panel.values[:, base, f]  # within the type, which holds differences
            if not column.any():
                continue
            n_seen = len(seen)
            target = column_of[s, f] = seen.setdefault(hashlib.blake2b(column).digest(), n_seen)
            if target < n_seen:
                continue
            sizes = np.abs(column)
            largest = max(largest, int(sizes.sum(dtype=np.int64)))
            placed = np.zeros(len(blocks) * COLUMN, column.dtype)
            placed[slots] = column
            n_bits = int(sizes.max()).bit_length()
            if n_bits > MAX_PLANES:
                table_targets.append(target)
                values.append(placed.reshape(-1, COLUMN))
                continue
            for k in range(n_bits):
                plane_targets.append(target)
                bits.append(k)
                masks.append(_pack_plane(placed, k))
    weights = np.array([1 << k for k in bits], find_sum_type(largest))
    shape = (len(blocks), 0)
    stacked_masks = np.stack(masks, axis=1) if masks else np.empty((*shape, 2, 4), np.uint32)
    stacked_values = np.stack(values, axis=1) if values else np.empty((*shape, COLUMN), panel.values.dtype)
    return SumLayout(
        len(seen), column_of, largest, blocks, (np.array(plane_targets, np.int32), weights, stacked_masks),
        (np.array(table_targets, np.int32), stacked_values),
    )  # fmt: skip


def _pack_plane(numbers: NDArray[Any], k: int) -> NDArray[np.uint32]:
    """Return the units whose number has bit k, without its sign, and those that are negative, (n_blocks, 2, 4)."""
    has_bit = (np.abs(numbers) >> k & 1).astype(np.bool_)
    packed = np.packbits([has_bit, has_bit & (numbers < 0)], axis=1, bitorder="little")
    return np.ascontiguousarray(packed.view("<u4").reshape(2, -1, 4).swapaxes(0, 1))


BLOCKS_AT_ONCE = 256
"""Groups of 128 units that one call of a kernel sums."""


def compute_moved_sums(
    panel: ScoredSums, arranged: SumLayout, *, run: int, first: int, n_trials: int, room: SlabMemory | None = None
) -> NDArray[Any]:
    """Return the sum of each distinct column over the units that each trial swaps, shape (n_columns, n_trials)."""
    room = room or SlabMemory()
    words = room.get_array("words", (4, n_trials), np.uint32)
    out = room.get_array("moved", (arranged.n_columns, n_trials), arranged.get_dtype())
    table = room.get_array("table", (16, 256), arranged.get_dtype())
    out[:] = 0
    if panel.enumerated:
        fill_counting_words(first, words)
    stream = (*map(np.uint32, panel.key), get_run_word(run, SWAP), first, not panel.enumerated)
    (plane_targets, weights, masks), (table_targets, values) = arranged.planes, arranged.tables
    for start in range(0, len(arranged.blocks), BLOCKS_AT_ONCE):
        some = slice(start, start + BLOCKS_AT_ONCE)
        planes = plane_targets, weights, masks[some]
        tables = table_targets, values[some].astype(out.dtype)
        add_blocks(stream, arranged.blocks[some], planes, tables, words, table, out)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class SlabMemory:
    """Memory for the arrays of one slab, allocated once for each task and reused for all its slabs.

    Fresh arrays for each slab would be mapped and unmapped by the system every time, which stalls
    all threads of the process.
    """

    named_arrays: dict[Any, NDArray[Any]] = field(default_factory=dict)

    def get_array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an uninitialised array, in the same memory each time the same arguments are given."""
        key = name, shape, np.dtype(dtype)
        if key not in self.named_arrays:
            self.named_arrays[key] = np.empty(shape, dtype)
        return self.named_arrays[key]


def sum_fields(
    arranged: SumLayout, moved: NDArray[Any], fields: Sequence[int], weights: Sequence[int], out: NDArray[Any]
) -> NDArray[Any]:
    """Write each system's weighted sum of some fields over the swapped units to `out`, shape (n_systems, n_trials)."""
    columns = np.ascontiguousarray(arranged.column_of[:, list(fields)])
    combine_columns(moved, columns, np.array(weights, out.dtype), out)
    return out


def _generate_popcount(_context: Any, word: Any) -> Any:
    """Return the number of set bits of a word (LLVM's ctpop)."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


def _build_intrinsic(function: Any) -> Any:
    from numba.extending import intrinsic

    return intrinsic(function)


popcount = LazyKernel(_generate_popcount, _build_intrinsic)


@cached_njit()
def is_zero(values):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return whether all values are zero."""
    for value in values:  # noqa: SIM110
        if value != 0:
            return False
    return True


@cached_njit()
def add_plane(words, masks, weight, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add one column's sums over the swapped units to `out`, shape (n_trials,), by counting the bits of a plane.

    A swapped unit adds its weight. A unit with a negative value adds it if it is not swapped, and the weights of all
    negative values are subtracted.
    """
    m0, m1, m2, m3 = masks[0, 0], masks[0, 1], masks[0, 2], masks[0, 3]
    s0, s1, s2, s3 = masks[1, 0], masks[1, 1], masks[1, 2], masks[1, 3]
    n_negative = np.int32(popcount(s0) + popcount(s1) + popcount(s2) + popcount(s3))
    if m2 | m3:
        for t in range(words.shape[1]):
            bits = popcount((words[0, t] & m0) ^ s0) + popcount((words[1, t] & m1) ^ s1)
            bits += popcount((words[2, t] & m2) ^ s2) + popcount((words[3, t] & m3) ^ s3)
            out[t] += weight * (np.int32(bits) - n_negative)
    elif m0 | m1:  # at most 64 units: topics, documents
        for t in range(words.shape[1]):
            bits = popcount((words[0, t] & m0) ^ s0) + popcount((words[1, t] & m1) ^ s1)
            out[t] += weight * (np.int32(bits) - n_negative)


@cached_njit()
def add_blocks(stream, blocks, planes, tables, words, table, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the sums of some groups of 128 units over swapped units to `out`, shape (n_columns, n_trials).

    `words` are drawn for each group, or given if all arrangements are counted.
    """
    k0, k1, c1, first, is_drawn = stream
    plane_targets, weights, masks = planes
    table_targets, values = tables
    for c in range(blocks.shape[0]):
        if is_drawn:
            philox(k0, k1, c1, np.uint32(blocks[c]), first, words)
        for p in range(plane_targets.shape[0]):
            add_plane(words, masks[c, p], weights[p], out[plane_targets[p]])
        for p in range(table_targets.shape[0]):
            add_tables(words, values[c, p], table, out[table_targets[p]])


@cached_njit()
def combine_columns(moved, columns, weights, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write weighted sums of columns: out[s] = sum_k weights[k] * moved[columns[s, k]], where column -1 is 0."""
    for s in range(columns.shape[0]):
        out[s, :] = 0
        for k in range(columns.shape[1]):
            if columns[s, k] >= 0 and weights[k] != 0:
                weight, row = weights[k], moved[columns[s, k]]
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
