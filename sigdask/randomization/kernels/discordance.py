"""Count the units on which the two systems of each pair differ, and on which either has more."""

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.io.caches import LazyKernel, cached_njit

WORD = 64
ROOM_BYTES = 2**20
"""Maximum bytes of the bits of all systems at a time, so that they stay in the cache."""

FEW = 4
"""Up to this number of pairs NumPy is used, because loading the kernel takes longer than it saves."""


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
def is_zero(values):
    """Return whether all values are zero."""
    for value in values:  # noqa: SIM110
        if value != 0:
            return False
    return True


def sum_discordant_weights(values: NDArray[Any], fields: Sequence[int], pairs: Integers, weights: Integers) -> Integers:
    """Return the total weight of the units in which the systems of each pair differ.

    Parameters
    ----------
    values : int array, shape (n_units, n_systems, n_fields)
        Contributions of each unit.
    fields : sequence of int
        Fields in which units may differ.
    pairs : int64 array, shape (n_pairs, 2)
    weights : int64 array, shape (n_units,), or shape (0,) where each unit counts as one
        Not negative.
    """
    if not len(weights):
        weights = np.ones(len(values), np.int64)
    if len(pairs) <= FEW:
        contributions = values[:, :, list(fields)]
        differ = [(contributions[:, a] != contributions[:, b]).any(axis=1) for a, b in pairs.tolist()]
        return np.array([weights[is_discordant].sum() for is_discordant in differ], np.int64)
    counts = np.zeros(len(pairs), np.int64)
    if not len(values):
        return counts
    lowest = [values[:, :, f].min() for f in fields]
    n_bits = [(int(values[:, :, f].max()) - int(low)).bit_length() for f, low in zip(fields, lowest, strict=True)]
    words = max(1, ROOM_BYTES // 8 // max(values.shape[1] * sum(n_bits), 1))
    for start in range(0, len(values), words * WORD):
        block = slice(start, start + words * WORD)
        planes = [
            _pack_bits(values[block, :, f].T - low, bits) for f, low, bits in zip(fields, lowest, n_bits, strict=True)
        ]  # (n_systems, bits, n_words) each
        block_weights = weights[block]
        _add_discordant(
            np.ascontiguousarray(np.concatenate(planes, axis=1)),
            _pack_bits(block_weights[None], int(block_weights.max(initial=0)).bit_length())[0],
            pairs,
            np.empty(-(-len(block_weights) // WORD), np.uint64),
            counts,
        )
    return counts


def _pack_bits(numbers: NDArray[Any], n_bits: int) -> NDArray[np.uint64]:
    """Return the lowest bits of rows of numbers, packed 64 numbers to a word, shape (n_rows, n_bits, n_words)."""
    n_rows, n_numbers = numbers.shape
    room = np.zeros((n_rows, n_bits, -(-n_numbers // WORD) * 8), np.uint8)
    for k in range(n_bits):
        bits = np.packbits((numbers >> k & 1).astype(np.bool_), axis=1, bitorder="little")
        room[:, k, : bits.shape[1]] = bits
    return room.view("<u8")


@cached_njit()
def _add_discordant(bits, weights, pairs, differs, counts):
    """Add to `counts`, for each pair, the total weight of the units on which its systems differ.

    Parameters
    ----------
    bits : uint64 array, shape (n_systems, n_bits, n_words)
    weights : uint64 array, shape (n_weight_bits, n_words)
    pairs : int64 array, shape (n_pairs, 2)
    differs : uint64 array, shape (n_words,)
        Overwritten.
    counts : int64 array, shape (n_pairs,)
    """
    for p in range(pairs.shape[0]):
        a, b = bits[pairs[p, 0]], bits[pairs[p, 1]]
        differs[:] = 0
        for k in range(bits.shape[1]):
            for w in range(differs.shape[0]):
                differs[w] |= a[k, w] ^ b[k, w]
        for k in range(weights.shape[0]):
            n_bits = np.int64(0)
            for w in range(differs.shape[0]):
                n_bits += np.int64(popcount(differs[w] & weights[k, w]))
            counts[p] += n_bits << k


def add_signs(
    values: NDArray[Any], pairs: Integers, least: Integers, most: Integers, wins: Integers, losses: Integers
) -> None:
    """Add each pair's numbers of wins and losses, and update the smallest and largest size of its nonzero differences.

    Parameters
    ----------
    values : int64 array, shape (n_units, n_systems)
    pairs : int64 array, shape (n_pairs, 2)
    least, most : int64 array, shape (n_pairs,)
        The smallest and the largest size of a nonzero difference so far; updated.
    wins, losses : int64 array, shape (n_pairs,)
        Added to.
    """
    if len(pairs) <= FEW:
        d = values[:, pairs[:, 0]] - values[:, pairs[:, 1]]
        wins += (d > 0).sum(axis=0)
        losses += (d < 0).sum(axis=0)
        sizes = np.abs(d)
        np.maximum(most, sizes.max(axis=0, initial=0), out=most)
        np.minimum(least, np.where(d, sizes, np.iinfo(np.int64).max).min(axis=0, initial=least.max()), out=least)
        return
    lowest, highest = int(values.min(initial=0)), int(values.max(initial=0))
    kind = next(t for t in (np.int8, np.int16, np.int32, np.int64) if highest - lowest <= np.iinfo(t).max)
    by_system = np.ascontiguousarray((values - lowest).astype(kind).T)  # a type that holds differences as well
    _add_signs_compiled(by_system, pairs, least, most, wins, losses)


@cached_njit()
def _add_signs_compiled(values, pairs, least, most, wins, losses):
    """Add wins and losses, and update the sizes of differences, except for pairs whose sizes already vary."""
    number = values.dtype.type
    for p in range(pairs.shape[0]):
        if least[p] < most[p]:  # not alike, which nothing below can change
            continue
        a, b = values[pairs[p, 0]], values[pairs[p, 1]]
        more, less, above, below = 0, 0, number(0), number(0)
        for u in range(values.shape[1]):
            more += a[u] > b[u]
            less += a[u] < b[u]
            d = number(a[u] - b[u])
            above = max(above, d)
            below = min(below, d)
        wins[p] += more
        losses[p] += less
        most[p] = max(most[p], np.int64(above), -np.int64(below))
        if more + less and most[p] > 1:  # differences of 1 are all alike
            nearest = least[p]
            for u in range(values.shape[1]):
                d = abs(np.int64(number(a[u] - b[u])))
                nearest = min(nearest, d) if d else nearest
            least[p] = nearest
        elif more + less:
            least[p] = min(least[p], most[p])
