"""Count the distinct terms that both systems of a pair have after swaps, for ranges of trials; bit-parallel and exact.

A swap row holds the swap bits of one unit, one bit a trial. A* and B* are the systems of a pair (i, j)
after swaps. A term that some unit has in both systems' lists is always present in both. Any other term is
absent from A* in the trials in which all units where i alone holds it are swapped and all units where j
alone holds it are not:
the conjunction of rows and complements; absent from B* in the opposite case. Terms of one discordant
unit, most of them, are present in exactly one of the two: a weighted sum of rows.

Absences are counted in bit planes (vertical counters) with carry-save adders: a full adder adds two
rows to a plane in five operations for 32 trials a word, and passes one row on to the next plane. A product of the swaps
with the terms of each unit takes 670 times as long for 400 units and 1,500 terms.
"""

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from sigdask.io.caches import cached_njit
from sigdask.randomization.kernels.sums import is_zero

SINGLE, ABSENT_A, ABSENT_B = 0, 2, 4
"""Counters of one-unit terms, and of terms absent from A* and B*. Each exists for gold terms and for others."""

ALL_BITS = np.uint32(0xFFFFFFFF)


@cached_njit()
def transpose_blocks(blocks):
    """Transpose bits: row r, bit b and row b, bit r trade places in each block, (n_blocks, 32, n_words).

    Warren, Hacker's Delight, section 7-3, on whole rows of words.
    """
    for q in range(blocks.shape[0]):
        block = blocks[q]
        step = 16
        mask = np.uint32(0x0000FFFF)
        while step:
            shift = np.uint32(step)
            k = 0
            while k < 32:
                upper, lower = block[k], block[k + step]
                for g in range(upper.shape[0]):
                    t = np.uint32(((upper[g] >> shift) ^ lower[g]) & mask)
                    lower[g] ^= t
                    upper[g] ^= np.uint32(t << shift)
                k = (k + step + 1) & ~step
            step >>= 1
            mask = np.uint32(mask ^ np.uint32(mask << np.uint32(step)))


@cached_njit()
def _add_row(planes, waiting, full, level, row):
    """Add 2^level times a row of bits, one for each trial, to a counter of bit planes; `row` is overwritten."""
    k = level
    while full[k]:
        plane, waiting_row = planes[k], waiting[k]
        for g in range(row.shape[0]):
            x, y, z = plane[g], waiting_row[g], row[g]
            u = x ^ y
            plane[g] = u ^ z
            row[g] = (x & y) | (u & z)
        full[k] = False
        k += 1
    waiting_row = waiting[k]
    for g in range(row.shape[0]):  # to copy a whole array would take seconds more to compile
        waiting_row[g] = row[g]
    full[k] = True


@cached_njit()
def _add_waiting_rows(planes, waiting, full, row):
    """Add the rows of bits that wait for a carry-save addition to the bit planes of a counter."""
    row[:] = 0
    for k in range(planes.shape[0]):
        plane, waiting_row = planes[k], waiting[k]
        if not full[k]:
            waiting_row[:] = 0
        for g in range(row.shape[0]):
            x, y, z = plane[g], waiting_row[g], row[g]
            u = x ^ y
            plane[g] = u ^ z
            row[g] = (x & y) | (u & z)
        full[k] = False


@cached_njit()
def count_terms(rows, single_rows, weights, row_gold, starts, entries, term_gold, base, planes, waiting, counts):
    """Write the numbers of right terms and of all terms that both systems of one pair have after swaps.

    Parameters
    ----------
    rows : uint32 array, shape (n_rows, n_words)
        From `build_swap_rows`.
    single_rows, weights, row_gold, starts, entries, term_gold, base
        As in `PairTerms`.
    planes, waiting : uint32 array, shape (6, n_planes, n_words)
        Zeros, and room.
    counts : int32 array, shape (2, 2, 32 * n_words)
        Written: right and all terms of A* and B*.
    """
    n_words = rows.shape[1]
    full = np.zeros((6, planes.shape[1]), np.bool_)
    a, b = np.empty(n_words, np.uint32), np.empty(n_words, np.uint32)
    for k in range(single_rows.shape[0]):
        row = rows[single_rows[k]]
        flip = ALL_BITS if weights[k] < 0 else np.uint32(0)
        weight = abs(weights[k])
        level = 0
        counter = SINGLE + row_gold[k]
        while weight >> level:
            if (weight >> level) & 1:
                for g in range(n_words):
                    a[g] = row[g] ^ flip
                _add_row(planes[counter], waiting[counter], full[counter], level, a)
            level += 1
    for t in range(term_gold.shape[0]):
        any_a, any_b = _mark_absent(rows, entries[starts[t] : starts[t + 1]], a, b)
        if any_a:
            counter = ABSENT_A + term_gold[t]
            _add_row(planes[counter], waiting[counter], full[counter], 0, a)
        if any_b:
            counter = ABSENT_B + term_gold[t]
            _add_row(planes[counter], waiting[counter], full[counter], 0, b)
    for counter in range(6):
        _add_waiting_rows(planes[counter], waiting[counter], full[counter], a)
    _unpack_counters(planes, base, counts)


@cached_njit()
def _mark_absent(rows, entries, a, b):
    """Set the bits of the trials in which A* (`a`) or B* (`b`) lacks a term; return whether any bit is set."""
    a[:] = ALL_BITS
    b[:] = ALL_BITS
    any_a, any_b = True, True
    for e in range(entries.shape[0]):
        row = rows[entries[e] >> 1]
        flip = ALL_BITS if entries[e] & 1 else np.uint32(0)
        any_bits_a, any_bits_b = np.uint32(0), np.uint32(0)
        for g in range(row.shape[0]):
            x = row[g] ^ flip
            a[g] &= x
            b[g] &= ~x
            any_bits_a |= a[g]
            any_bits_b |= b[g]
        any_a, any_b = any_bits_a != 0, any_bits_b != 0
        if not (any_a or any_b):
            break
    return any_a, any_b


@cached_njit()
def _unpack_counters(planes, base, counts):
    """Write the numbers of right terms and of all terms in each trial, from counters of bit planes."""
    for gold in range(2):
        for s in range(2):
            counts[s, 1 - gold, :] = base[s, gold]
        _subtract_counter(planes[SINGLE + gold], 1, counts[0, 1 - gold])
        _subtract_counter(planes[SINGLE + gold], -1, counts[1, 1 - gold])
        _subtract_counter(planes[ABSENT_A + gold], 1, counts[0, 1 - gold])
        _subtract_counter(planes[ABSENT_B + gold], 1, counts[1, 1 - gold])
    for s in range(2):
        for t in range(counts.shape[2]):
            counts[s, 1, t] += counts[s, 0, t]


@cached_njit()
def _subtract_counter(planes, sign, out):
    """Subtract `sign` times each trial's count in a counter of bit planes from `out`, shape (32 * n_words,)."""
    n_words = planes.shape[1]
    one = np.uint32(1)
    for k in range(planes.shape[0]):
        plane = planes[k]
        if is_zero(plane):
            continue
        unit = np.int32(sign * (1 << k))
        for r in range(32):
            shift = np.uint32(r)
            section = out[r * n_words : (r + 1) * n_words]
            for g in range(n_words):
                section[g] -= unit * np.int32((plane[g] >> shift) & one)
