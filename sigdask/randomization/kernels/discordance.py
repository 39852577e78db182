"""In how many units two systems differ: by the bits of what each contributes, 64 units at a time."""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sigdask.randomization.kernels.bits import popcount

WORD = 64
ROOM_BYTES = 2**20
"""What the bits of all systems take at a time, so that they stay in the cache."""


def discordant(
    values: NDArray[Any], fields: Sequence[int], pairs: NDArray[np.int64], weights: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the weight of the units in which the systems of each pair differ.

    Parameters
    ----------
    values : int array, shape (n_units, n_systems, n_fields)
        What each contributes.
    fields : sequence of int
        Where a difference counts.
    pairs : int64 array, shape (n_pairs, 2)
    weights : int64 array, shape (n_units,)
        None of them negative.
    """
    counts = np.zeros(len(pairs), np.int64)
    lowest = [values[:, :, f].min(initial=0) for f in fields]
    n_bits = [
        (int(values[:, :, f].max(initial=0)) - int(low)).bit_length() for f, low in zip(fields, lowest, strict=True)
    ]
    words = max(1, ROOM_BYTES // 8 // max(values.shape[1] * sum(n_bits), 1))
    for start in range(0, len(values), words * WORD):
        here = slice(start, start + words * WORD)
        planes = [
            _packed(values[here, :, f].T - low, bits) for f, low, bits in zip(fields, lowest, n_bits, strict=True)
        ]  # (n_systems, bits, n_words) each
        own = weights[here]
        _add_discordant(
            np.ascontiguousarray(np.concatenate(planes, axis=1)),
            _packed(own[None], int(own.max(initial=0)).bit_length())[0],
            pairs,
            counts,
        )
    return counts


def _packed(numbers: NDArray[Any], n_bits: int) -> NDArray[np.uint64]:
    """Return bit k of rows of numbers, which may have wrapped around, 64 a word: shape (n_rows, n_bits, n_words)."""
    n_rows, n_numbers = numbers.shape
    room = np.zeros((n_rows, n_bits, -(-n_numbers // WORD) * 8), np.uint8)
    for k in range(n_bits):
        bits = np.packbits((numbers >> k & 1).astype(np.bool_), axis=1, bitorder="little")
        room[:, k, : bits.shape[1]] = bits
    return room.view("<u8")


@njit(nogil=True, cache=True)
def _add_discordant(bits, weights, pairs, counts):
    """Add the weight of words in which bits differ.

    Parameters
    ----------
    bits : uint64 array, shape (n_systems, n_bits, n_words)
    weights : uint64 array, shape (n_weight_bits, n_words)
    pairs : int64 array, shape (n_pairs, 2)
    counts : int64 array, shape (n_pairs,)
    """
    differs = np.empty(bits.shape[2], np.uint64)
    for p in range(pairs.shape[0]):
        a, b = bits[pairs[p, 0]], bits[pairs[p, 1]]
        differs[:] = 0
        for k in range(bits.shape[1]):
            for w in range(differs.shape[0]):
                differs[w] |= a[k, w] ^ b[k, w]
        for k in range(weights.shape[0]):
            found = np.int64(0)
            for w in range(differs.shape[0]):
                found += np.int64(popcount(differs[w] & weights[k, w]))
            counts[p] += found << k
