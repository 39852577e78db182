"""Distinct terms of both pseudo-systems of a pair, for ranges of trials; bit-parallel and exact.

A swap row holds the swap bits of one unit, one bit a trial. Of a pair (i, j), a term that some unit
has in both lists is always present in both pseudo-systems. Any other is absent from A* in the trials
in which all units where i alone holds it are swapped and all units where j alone holds it are not:
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

from sigdask.io.compiled_cache import compiled
from sigdask.metrics.forms import Ratios
from sigdask.randomization.stream.shuffles import COLUMN, Key, counting_words, swap_words

ROWS_BYTES = 2**19
"""What the swap rows of one slab may take, so that they stay in the L2 cache."""

WORD = 32
SINGLE, ABSENT_A, ABSENT_B = 0, 2, 4
"""Counters: of one-unit terms, and of terms absent from A* and B*; each for other and for gold terms."""

EVERY = np.uint32(0xFFFFFFFF)


class Sets(Protocol):
    """What is asked of a panel of sets; see there."""

    @property
    def key(self) -> Key:
        """Return the key of the stream."""
        ...

    @property
    def addresses(self) -> NDArray[np.int64]:
        """Return the address of each unit."""
        ...

    @property
    def holdings(self) -> tuple[NDArray[np.int64], ...]:
        """Return which terms each system holds in which units."""
        ...

    @property
    def golden(self) -> NDArray[np.bool_]:
        """Return which terms are gold terms."""
        ...

    @property
    def pairs(self) -> NDArray[np.int64]:
        """Return the systems compared."""
        ...

    @property
    def enumerated(self) -> bool:
        """Whether trials are all arrangements."""
        ...

    @property
    def n_units(self) -> int:
        """Return the number of units."""
        ...

    def discordant(self, pair: int) -> NDArray[np.int64]:
        """Return the units in which the systems of a pair hold other terms."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PairTerms:
    """What the trials of one pair need.

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
class ArrangedPanel:
    """A panel arranged for counting.

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
    def slab(self) -> int:
        """Trials counted at a time."""
        words = ROWS_BYTES // (4 * COLUMN * max(len(self.columns), 1))
        return WORD * int(np.clip(words // 8 * 8, 8, 128))


_arranged: WeakKeyDictionary[Sets, ArrangedPanel] = WeakKeyDictionary()


def arrange(panel: Sets) -> ArrangedPanel:
    """Arrange a panel for counting (kept as long as the panel)."""
    found = _arranged.get(panel)
    if found is None:
        found = _arranged[panel] = _in_columns(panel)
    return found


def _in_columns(panel: Sets) -> ArrangedPanel:
    units = [panel.discordant(pair) for pair in range(len(panel.pairs))]
    swapped = panel.addresses[np.unique(np.concatenate(units))] if units else np.empty(0, np.int64)
    columns = np.unique(swapped // COLUMN)
    row_of = np.searchsorted(columns, panel.addresses // COLUMN) * COLUMN + panel.addresses % COLUMN
    return ArrangedPanel(columns, tuple(_pair_terms(panel, pair, row_of) for pair in range(len(panel.pairs))))


def _pair_terms(panel: Sets, pair: int, row_of: NDArray[np.int64]) -> PairTerms:
    a, b = (panel.holdings[system] for system in panel.pairs[pair])
    both = np.intersect1d(a, b, assume_unique=True)
    constant = np.zeros(len(panel.golden), np.bool_)
    constant[both // panel.n_units] = True
    alone = [np.setdiff1d(own, both, assume_unique=True) for own in (a, b)]
    codes = np.concatenate(alone)
    side = np.repeat([0, 1], [len(own) for own in alone])
    moving = ~constant[codes // panel.n_units]
    order = np.argsort(codes[moving], kind="stable")
    codes, side = codes[moving][order], side[moving][order]
    terms, first, number = np.unique(codes // panel.n_units, return_index=True, return_counts=True)
    entries = 2 * row_of[codes % panel.n_units] + side
    gold = panel.golden[terms].astype(np.int64)
    rows, weights, row_gold = _single_rows(entries[first[number == 1]], gold[number == 1])
    several = np.repeat(number > 1, number)
    starts = np.concatenate([[0], np.cumsum(number[number > 1])]).astype(np.int64)
    base = _base(panel.golden[constant], gold, side[first], number == 1, weights, row_gold)
    largest = int(max(np.abs(weights).sum(), len(starts) - 1, 1))
    return PairTerms(
        rows, weights, row_gold, starts, entries[several], gold[number > 1], base, largest.bit_length() + 1
    )  # fmt: skip


def _single_rows(
    entries: NDArray[np.int64], gold: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sum one-unit terms by row: held by i count 1, by j -1; gold terms apart."""
    keys, inverse = np.unique(entries // 2 * 2 + gold, return_inverse=True)
    weights = np.zeros(len(keys), np.int64)
    np.add.at(weights, inverse, 1 - 2 * (entries % 2))
    kept = weights != 0
    return keys[kept] // 2, weights[kept], keys[kept] % 2


def _base(
    constant: NDArray[np.bool_],
    gold: NDArray[np.int64],
    side: NDArray[np.int64],
    single: NDArray[np.bool_],
    weights: NDArray[np.int64],
    row_gold: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the distinct terms, shape (2, 2), less what the counted rows leave out.

    With x the swap bit of its row and w its weight, A* lacks (terms of j alone) + sum of w x of the
    one-unit terms; a negative w x is w + |w| (1 - x), and only |w| x or |w| (1 - x) is counted.
    """
    base = np.zeros((2, 2), np.int64)
    for g in (0, 1):
        n_all = np.count_nonzero(constant == bool(g)) + np.count_nonzero(gold == g)
        n_single = np.count_nonzero(single & (gold == g))
        of_j = np.count_nonzero(single & (gold == g) & (side == 1))
        shift = of_j + int(weights[(row_gold == g) & (weights < 0)].sum())
        base[0, g] = n_all - shift
        base[1, g] = n_all - n_single + shift
    return base


def distinct_terms(panel: Sets, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield (pair, counts); counts[s, 0] and counts[s, 1] are right and all terms, shape (2, 2, n)."""
    arranged = arrange(panel)
    for start in range(first, first + n_trials, arranged.slab):
        here = min(arranged.slab, first + n_trials - start)
        rows = swap_rows(panel, arranged, run=run, first=start, n_words=-(-here // WORD))
        for pair, terms in enumerate(arranged.pairs):
            counts = np.empty((2, 2, rows.shape[1] * WORD), np.int32)
            planes = np.zeros((6, terms.n_planes + 1, rows.shape[1]), np.uint32)
            waiting = np.empty_like(planes)
            count_terms(
                rows, terms.rows, terms.weights, terms.row_gold, terms.starts, terms.entries, terms.term_gold,
                terms.base, planes, waiting, counts,
            )  # fmt: skip
            yield pair, counts[:, :, :here]


def swap_rows(panel: Sets, arranged: ArrangedPanel, *, run: int, first: int, n_words: int) -> NDArray[np.uint32]:
    """Return the swap bits by unit, shape (n_rows, n_words): trial `first + r * n_words + g` is bit r of word g."""
    rows = np.empty((len(arranged.columns), 4, WORD * n_words), np.uint32)
    for k, column in enumerate(arranged.columns):
        if panel.enumerated:
            counting_words(first, rows[k])
        else:
            swap_words(panel.key, run, first, int(column), rows[k])
    turned = rows.reshape(-1, WORD, n_words)
    transpose(turned)
    return turned.reshape(-1, n_words)


@compiled()
def transpose(blocks):
    """Exchange row r, bit b with row b, bit r in each block of `blocks`, shape (n_blocks, 32, n_words).

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


@compiled()
def _add(planes, waiting, full, level, row):
    """Add 2^level times a row of bits to a vertical counter; `row` is used up."""
    k = level
    while full[k]:
        plane, other = planes[k], waiting[k]
        for g in range(row.shape[0]):
            x, y, z = plane[g], other[g], row[g]
            u = x ^ y
            plane[g] = u ^ z
            row[g] = (x & y) | (u & z)
        full[k] = False
        k += 1
    waiting[k, :] = row
    full[k] = True


@compiled()
def _flush(planes, waiting, full, row):
    """Add the rows that still wait."""
    row[:] = 0
    for k in range(planes.shape[0]):
        plane, other = planes[k], waiting[k]
        if not full[k]:
            other[:] = 0
        for g in range(row.shape[0]):
            x, y, z = plane[g], other[g], row[g]
            u = x ^ y
            plane[g] = u ^ z
            row[g] = (x & y) | (u & z)
        full[k] = False


@compiled()
def count_terms(rows, single_rows, weights, row_gold, starts, entries, term_gold, base, planes, waiting, counts):
    """Count the distinct terms of one pair.

    Parameters
    ----------
    rows : uint32 array, shape (n_rows, n_words)
        From `swap_rows`.
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
        flip = EVERY if weights[k] < 0 else np.uint32(0)
        weight = abs(weights[k])
        level = 0
        counter = SINGLE + row_gold[k]
        while weight >> level:
            if (weight >> level) & 1:
                for g in range(n_words):
                    a[g] = row[g] ^ flip
                _add(planes[counter], waiting[counter], full[counter], level, a)
            level += 1
    for t in range(term_gold.shape[0]):
        any_a, any_b = _absent(rows, entries[starts[t] : starts[t + 1]], a, b)
        if any_a:
            counter = ABSENT_A + term_gold[t]
            _add(planes[counter], waiting[counter], full[counter], 0, a)
        if any_b:
            counter = ABSENT_B + term_gold[t]
            _add(planes[counter], waiting[counter], full[counter], 0, b)
    for counter in range(6):
        _flush(planes[counter], waiting[counter], full[counter], a)
    _unpack(planes, base, counts)


@compiled()
def _absent(rows, entries, a, b):
    """Set bits in `a` and `b` in the trials in which A* and B* lack a term; say whether there are any."""
    a[:] = EVERY
    b[:] = EVERY
    any_a, any_b = True, True
    for e in range(entries.shape[0]):
        row = rows[entries[e] >> 1]
        flip = EVERY if entries[e] & 1 else np.uint32(0)
        left, right = np.uint32(0), np.uint32(0)
        for g in range(row.shape[0]):
            x = row[g] ^ flip
            a[g] &= x
            b[g] &= ~x
            left |= a[g]
            right |= b[g]
        any_a, any_b = left != 0, right != 0
        if not (any_a or any_b):
            break
    return any_a, any_b


@compiled()
def _unpack(planes, base, counts):
    """Turn vertical counters into counts a trial."""
    for gold in range(2):
        for s in range(2):
            counts[s, 1 - gold, :] = base[s, gold]
        _subtract(planes[SINGLE + gold], 1, counts[0, 1 - gold])
        _subtract(planes[SINGLE + gold], -1, counts[1, 1 - gold])
        _subtract(planes[ABSENT_A + gold], 1, counts[0, 1 - gold])
        _subtract(planes[ABSENT_B + gold], 1, counts[1, 1 - gold])
    for s in range(2):
        for t in range(counts.shape[2]):
            counts[s, 1, t] += counts[s, 0, t]


@compiled()
def _subtract(planes, sign, out):
    """Take `sign` times a vertical counter away from `out`, shape (32 * n_words,)."""
    n_words = planes.shape[1]
    one = np.uint32(1)
    for k in range(planes.shape[0]):
        plane = planes[k]
        if not plane.any():
            continue
        unit = np.int32(sign * (1 << k))
        for r in range(32):
            shift = np.uint32(r)
            part = out[r * n_words : (r + 1) * n_words]
            for g in range(n_words):
                part[g] -= unit * np.int32((plane[g] >> shift) & one)


@compiled(error_model="numpy")
def set_scores(counts, n_gold, above, below, zero_division, out):
    """Score counts of right and all terms, shape (2, n_trials), into `out`."""
    for t in range(out.shape[0]):
        up = above[0] * counts[0, t] + above[1] * counts[1, t] + above[2] * n_gold
        down = below[0] * counts[0, t] + below[1] * counts[1, t] + below[2] * n_gold
        undefined = down == 0.0
        out[t] = (zero_division if undefined else up) / (1.0 if undefined else down)


def scores_of(counts: NDArray[np.int32], n_gold: int, form: Ratios) -> NDArray[np.float64]:
    """Return the scores of both pseudo-systems, shape (2, n_trials)."""
    above, below = (np.array(weights[0], np.float64) for weights in (form.numerators, form.denominators))
    out = np.empty((2, counts.shape[2]))
    for s in (0, 1):
        set_scores(counts[s], n_gold, above, below, form.zero_division, out[s])
    return out
