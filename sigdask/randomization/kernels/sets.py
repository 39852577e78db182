"""Count the distinct terms that both systems of a pair have after swaps, for ranges of trials; bit-parallel and exact.

A swap row holds the swap bits of one unit, one bit a trial. A* and B* are the systems of a pair (i, j)
after swaps. A term that some unit has in both systems' lists is always present in both. Any other term is
absent from A* in the trials in which all units where i alone holds it are swapped and all units where j
alone holds it are not:
the conjunction of rows and complements; absent from B* in the opposite case. Terms of one discordant
unit, most of them, are present in exactly one of the two: a weighted sum of rows.

Absences are counted in bit planes (vertical counters) with carry-save adders: a full adder adds two
rows to a plane in five operations for 32 trials a word, and passes one row on to the next plane.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit
from sigdask.metrics.forms import Ratios
from sigdask.randomization.stream.swaps import COLUMN, Key, fill_counting_words, fill_swap_words

ROWS_BYTES = 2**19
"""What the swap rows of one slab may take, so that they stay in the L2 cache."""

WORD = 32
SINGLE, ABSENT_A, ABSENT_B = 0, 2, 4
"""Counters: of one-unit terms, and of terms absent from A* and B*; each for other and for gold terms."""

ALL_BITS = np.uint32(0xFFFFFFFF)


class SetPanel(Protocol):
    """Interface of a panel whose scores depend on the distinct terms that each system has in its units."""

    @property
    def key(self) -> Key:
        """Key of the stream."""
        ...

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Address of each unit in the stream."""
        ...

    @property
    def holdings(self) -> tuple[NDArray[np.int64], ...]:
        """For each system, the terms of its units, coded as term * n_units + unit."""
        ...

    @property
    def golden(self) -> NDArray[np.bool_]:
        """Whether each term is a gold term."""
        ...

    @property
    def pairs(self) -> NDArray[np.int64]:
        """The two systems of each pair."""
        ...

    @property
    def enumerated(self) -> bool:
        """Whether the trials enumerate all arrangements instead of sampling them."""
        ...

    @property
    def n_units(self) -> int:
        """Number of units."""
        ...

    def find_discordant_units(self, pair: int) -> NDArray[np.int64]:
        """Return the units in which the systems of a pair have different terms."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PairTerms:
    """The terms of one pair of systems, arranged for counting the terms present after swaps.

    Attributes
    ----------
    rows, weights : int64 array, shape (n_rows,)
        Rows of units with one-unit terms, and how many more of these i holds than j; not zero.
    row_gold : int64 array, shape (n_rows,)
        1 where the weight counts gold terms.
    starts : int64 array, shape (n_terms + 1,)
        The terms of several units, as ranges of `entries`.
    entries : int64 array
        2 * row + 1 where j alone holds the term, 2 * row where i alone does.
    term_gold : int64 array, shape (n_terms,)
        1 for gold terms.
    base : int64 array, shape (2, 2)
        Distinct (other, gold) terms of A* and B*, before what is absent is taken away.
    n_planes : int
        Bits of the largest count of absences.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.int64]
    row_gold: NDArray[np.int64]
    starts: NDArray[np.int64]
    entries: NDArray[np.int64]
    term_gold: NDArray[np.int64]
    base: NDArray[np.int64]
    n_planes: int


@dataclass(frozen=True, slots=True, eq=False)
class SetLayout:
    """A panel of sets, arranged for counting the distinct terms after swaps.

    Attributes
    ----------
    columns : int64 array
        Columns of 128 units that are swapped; the rows of column k are 128 k to 128 k + 127.
    pairs : tuple of PairTerms
        Terms of each pair.
    """

    columns: NDArray[np.int64]
    pairs: tuple[PairTerms, ...]

    @property
    def slab_size(self) -> int:
        """Number of trials counted at a time."""
        words = ROWS_BYTES // (4 * COLUMN * max(len(self.columns), 1))
        return WORD * int(np.clip(words // 8 * 8, 8, 128))


_arrangements: WeakKeyDictionary[SetPanel, SetLayout] = WeakKeyDictionary()


def get_arrangement(panel: SetPanel) -> SetLayout:
    """Return a panel's layout for counting, which is built once and cached as long as the panel lives."""
    cached = _arrangements.get(panel)
    if cached is None:
        cached = _arrangements[panel] = _arrange_panel(panel)
    return cached


def _arrange_panel(panel: SetPanel) -> SetLayout:
    units = [panel.find_discordant_units(pair) for pair in range(len(panel.pairs))]
    swapped = panel.addresses[np.unique(np.concatenate(units))] if units else np.empty(0, np.int64)
    columns = np.unique(swapped // COLUMN)
    row_of = np.searchsorted(columns, panel.addresses // COLUMN) * COLUMN + panel.addresses % COLUMN
    return SetLayout(columns, tuple(_build_pair_terms(panel, pair, row_of) for pair in range(len(panel.pairs))))


def _build_pair_terms(panel: SetPanel, pair: int, row_of: NDArray[np.int64]) -> PairTerms:
    a, b = (panel.holdings[system] for system in panel.pairs[pair])
    shared = np.intersect1d(a, b, assume_unique=True)
    constant = np.zeros(len(panel.golden), np.bool_)
    constant[shared // panel.n_units] = True
    exclusive = [np.setdiff1d(held, shared, assume_unique=True) for held in (a, b)]
    codes = np.concatenate(exclusive)
    side = np.repeat([0, 1], [len(held) for held in exclusive])
    moving = ~constant[codes // panel.n_units]
    order = np.argsort(codes[moving], kind="stable")
    codes, side = codes[moving][order], side[moving][order]
    terms, first_index, number = np.unique(codes // panel.n_units, return_index=True, return_counts=True)
    entries = 2 * row_of[codes % panel.n_units] + side
    gold = panel.golden[terms].astype(np.int64)
    rows, weights, row_gold = _sum_single_rows(entries[first_index[number == 1]], gold[number == 1])
    is_multiple = np.repeat(number > 1, number)
    starts = np.concatenate([[0], np.cumsum(number[number > 1])]).astype(np.int64)
    base = _count_base_terms(panel.golden[constant], gold, side[first_index], number == 1, weights, row_gold)
    largest = int(max(np.abs(weights).sum(), len(starts) - 1, 1))
    return PairTerms(
        rows, weights, row_gold, starts, entries[is_multiple], gold[number > 1], base, largest.bit_length() + 1
    )  # fmt: skip


def _sum_single_rows(
    entries: NDArray[np.int64], gold: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return swap rows with one-unit terms, how many more of these i has than j, and whether they are gold terms."""
    keys, inverse = np.unique(entries // 2 * 2 + gold, return_inverse=True)
    weights = np.zeros(len(keys), np.int64)
    np.add.at(weights, inverse, 1 - 2 * (entries % 2))
    is_nonzero = weights != 0
    return keys[is_nonzero] // 2, weights[is_nonzero], keys[is_nonzero] % 2


def _count_base_terms(
    constant: NDArray[np.bool_],
    gold: NDArray[np.int64],
    side: NDArray[np.int64],
    single: NDArray[np.bool_],
    weights: NDArray[np.int64],
    row_gold: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return how many terms both systems would have after a swap if none were absent, (other, gold), shape (2, 2).

    With x the swap bit of its row and w its weight, A* lacks (terms of j alone) + sum of w x of the
    one-unit terms; a negative w x is w + |w| (1 - x), and only |w| x or |w| (1 - x) is counted.
    """
    base = np.zeros((2, 2), np.int64)
    for g in (0, 1):
        n_all = np.count_nonzero(constant == bool(g)) + np.count_nonzero(gold == g)
        n_single = np.count_nonzero(single & (gold == g))
        n_single_j = np.count_nonzero(single & (gold == g) & (side == 1))
        shift = n_single_j + int(weights[(row_gold == g) & (weights < 0)].sum())
        base[0, g] = n_all - shift
        base[1, g] = n_all - n_single + shift
    return base


def iter_distinct_terms(
    panel: SetPanel, *, run: int, first: int, n_trials: int
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield pairs of systems, each with the numbers of right terms and of all terms of both systems after swaps.

    For some trials, `counts[s, 0]` are the right terms of system s and `counts[s, 1]` all its terms; shape (2, 2, n).
    """
    arranged = get_arrangement(panel)
    for start in range(first, first + n_trials, arranged.slab_size):
        size = min(arranged.slab_size, first + n_trials - start)
        rows = build_swap_rows(panel, arranged, run=run, first=start, n_words=-(-size // WORD))
        for pair, terms in enumerate(arranged.pairs):
            counts = np.empty((2, 2, rows.shape[1] * WORD), np.int32)
            planes = np.zeros((6, terms.n_planes + 1, rows.shape[1]), np.uint32)
            waiting = np.empty_like(planes)
            count_terms(
                rows, terms.rows, terms.weights, terms.row_gold, terms.starts, terms.entries, terms.term_gold,
                terms.base, planes, waiting, counts,
            )  # fmt: skip
            yield pair, counts[:, :, :size]


def build_swap_rows(panel: SetPanel, arranged: SetLayout, *, run: int, first: int, n_words: int) -> NDArray[np.uint32]:
    """Return each unit's swap bits, shape (n_rows, n_words): bit r of word g is trial first + r * n_words + g."""
    rows = np.empty((len(arranged.columns), 4, WORD * n_words), np.uint32)
    for k, column in enumerate(arranged.columns):
        if panel.enumerated:
            fill_counting_words(first, rows[k])
        else:
            fill_swap_words(panel.key, run, first, int(column), rows[k])
    turned = rows.reshape(-1, WORD, n_words)
    transpose_blocks(turned)
    return turned.reshape(-1, n_words)


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
    waiting[k, :] = row
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
        if not plane.any():
            continue
        unit = np.int32(sign * (1 << k))
        for r in range(32):
            shift = np.uint32(r)
            section = out[r * n_words : (r + 1) * n_words]
            for g in range(n_words):
                section[g] -= unit * np.int32((plane[g] >> shift) & one)


@cached_njit(error_model="numpy")
def score_counts(counts, n_gold, above, below, zero_division, out):
    """Write the score of each trial's numbers of right terms and of all terms to `out`, shape (n_trials,)."""
    for t in range(out.shape[0]):
        numerator = above[0] * counts[0, t] + above[1] * counts[1, t] + above[2] * n_gold
        denominator = below[0] * counts[0, t] + below[1] * counts[1, t] + below[2] * n_gold
        undefined = denominator == 0.0
        out[t] = (zero_division if undefined else numerator) / (1.0 if undefined else denominator)


def compute_scores(counts: NDArray[np.int32], n_gold: int, form: Ratios) -> NDArray[np.float64]:
    """Return the scores of both systems after swaps, from their numbers of terms, shape (2, n_trials)."""
    above, below = (np.array(weights[0], np.float64) for weights in (form.numerators, form.denominators))
    out = np.empty((2, counts.shape[2]))
    for s in (0, 1):
        score_counts(counts[s], n_gold, above, below, form.zero_division, out[s])
    return out
