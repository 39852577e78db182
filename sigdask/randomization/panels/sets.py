"""Panels for scores of sets: the terms that a system has in any unit, recomputed after each trial's swaps.

A term counts for a system after swaps if at least one of its units holds it, so the score is no sum over
units. A trial needs only which units hold each term, for each system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import Array, Bools, Floats, Integers
from sigdask.metrics.base import BoundSets
from sigdask.randomization.kernels.sets import count_terms, transpose_blocks
from sigdask.randomization.panels import RescoredPanel, Uncached, number_bits
from sigdask.randomization.panels.build import number_by_items
from sigdask.randomization.panels.digests import Digests, digest_values, hash_content, hash_terms, mix_bits
from sigdask.randomization.panels.scored_sums import build_empty
from sigdask.randomization.panels.sums import Pair, SwapUnits, is_whole_selection
from sigdask.randomization.stream import COLUMN, Key, fill_counting_words, fill_swap_words
from sigdask.randomization.tallies import CountingMethod
from sigdask.statistics.numbering import group_rows, number_rows

DEVIATION_TRIALS = 4096
"""Trials that estimate the deviation of a set metric, to 1.1 %."""


@dataclass(frozen=True, eq=False)
class PresencePanel(Uncached, RescoredPanel):
    """Systems of one test set with pairs and set metrics that share swaps; arrays only.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    addresses : int64 array, shape (n_units,)
        Address of each unit. In an enumeration, its bit, or -1 if it needs no swap.
    holdings : tuple of int64 array
        For each system, its distinct `term * n_units + unit`, sorted.
    golden : bool array, shape (n_terms,)
        Whether each term is a gold term.
    pairs : int64 array, shape (n_pairs, 2)
        Indices of the systems compared.
    metrics : tuple of BoundSets
        Scores compared.
    n_items : int
        Number of items of all units.
    enumerated : bool
        Whether trials are all arrangements of the discordant units instead of random ones.
    terms : uint64 array, shape (n_terms,)
        Content of each term as a number.
    """

    key: Key
    addresses: Integers
    holdings: tuple[Integers, ...]
    golden: Bools
    pairs: Integers
    metrics: tuple[BoundSets, ...]
    n_items: int
    enumerated: bool = False
    terms: NDArray[np.uint64] = field(default_factory=build_empty)

    manner: ClassVar[CountingMethod] = CountingMethod()
    kind: ClassVar[str] = "a score of sets"
    deviation_trials: ClassVar[int] = DEVIATION_TRIALS

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return self.n_items, self.n_units

    def iter_trial_scores(self, *, run: int, first: int, n_trials: int) -> Iterator[tuple[int, int, Floats]]:
        """Yield pairs and metrics, each with both systems' scores after the swaps of some trials, shape (2, n_some)."""
        for p, term_counts in iter_distinct_terms(self, run=run, first=first, n_trials=n_trials):
            sums = np.full((2, term_counts.shape[2], 3), float(self.totals[0, 2]))
            sums[..., :2] = term_counts.swapaxes(1, 2)
            for m, metric in enumerate(self.metrics):
                yield p, m, metric.form.score(sums)

    def compute_digests(self) -> Digests:
        """Return the digest of each pair and metric, shape (n_pairs, n_metrics)."""
        shared, contents = ("sets", self.key, self.enumerated), self.hash_contents(0).tolist()
        return digest_values(((*shared, m.form, m.fields, both) for both in contents for m in self.metrics), self.shape)

    def hash_contents(self, _column: int) -> NDArray[np.uint64]:
        """Return content hashes of both systems of each pair, each with the gold terms, shape (n_pairs, 2)."""
        gold_hash = mix_bits(self.terms[self.golden]).sum(dtype=np.uint64)
        n = max(self.n_units, 1)
        system_hashes = [hash_terms(self.terms[held // n], self.addresses[held % n]) for held in self.holdings]
        return mix_bits(np.array(system_hashes, np.uint64) ^ gold_hash)[self.pairs]

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both systems of each pair, shape (n_pairs, n_metrics, 2)."""
        return np.moveaxis(self.scores[self.pairs], 1, 2)

    @property
    def zero_division_scores(self) -> Floats:
        """Scores that were given in place of 0/0, and NaN for all other scores of pairs, (n_pairs, n_metrics, 2)."""
        scores = np.full((len(self.totals), len(self.metrics)), np.nan)
        for m, metric in enumerate(self.metrics):
            scores[metric.form.is_undefined(self.totals[:, list(metric.fields)]), m] = metric.form.zero_division
        return np.moveaxis(scores[self.pairs], 1, 2)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return len(self.pairs), len(self.metrics)

    @property
    def n_units(self) -> int:
        """Number of units, concordant ones included."""
        return len(self.addresses)

    @cached_property
    def totals(self) -> Integers:
        """Numbers of distinct right terms, of distinct terms and of distinct gold terms, shape (n_systems, 3)."""
        system_terms = [np.unique(held // self.n_units) for held in self.holdings]
        n_gold = np.count_nonzero(self.golden)
        return np.array([[np.count_nonzero(self.golden[terms]), len(terms), n_gold] for terms in system_terms])

    @cached_property
    def scores(self) -> Floats:
        """Observed scores, shape (n_systems, n_metrics)."""
        return np.column_stack([metric.form.score(self.totals) for metric in self.metrics])

    @cached_property
    def n_discordant(self) -> Integers:
        """Number of units in which the systems of a pair have different terms, shape (n_pairs, n_metrics)."""
        counts = [[len(self.find_discordant_units(pair))] * len(self.metrics) for pair in range(len(self.pairs))]
        return np.array(counts, np.int64).reshape(self.shape)

    @cached_property
    def layout(self) -> SetLayout:
        """The terms, arranged for counting."""
        pairs = range(len(self.pairs))
        units = [self.find_discordant_units(pair) for pair in pairs]
        swapped = self.addresses[np.unique(np.concatenate(units))] if units else np.empty(0, np.int64)
        columns = np.unique(swapped // COLUMN)
        row_of = np.searchsorted(columns, self.addresses // COLUMN) * COLUMN + self.addresses % COLUMN
        return SetLayout(columns, tuple(_build_pair_terms(self, pair, row_of) for pair in pairs))

    def find_discordant_units(self, pair: int) -> Integers:
        """Return the units in which the systems of a pair have different terms."""
        i, j = self.pairs[pair]
        return np.unique(np.setxor1d(self.holdings[i], self.holdings[j], assume_unique=True) % self.n_units)

    def build_enumeration(self, pair: int, metric: int) -> PresencePanel:
        """Return the panel of one pair under one metric, whose trials are all arrangements."""
        return replace(
            self,
            addresses=number_bits(self.find_discordant_units(pair), self.n_units),
            holdings=tuple(self.holdings[system] for system in self.pairs[pair]),
            pairs=np.array([[0, 1]]),
            metrics=(self.metrics[metric],),
            enumerated=True,
        )

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> PresencePanel:
        """Return the panel of some of its pairs and metrics."""
        columns = range(len(self.metrics)) if columns is None else columns
        if is_whole_selection(rows, columns, self.shape):
            return self
        pairs = self.pairs[np.asarray(rows, np.int64)]
        return replace(self, pairs=pairs, metrics=tuple(self.metrics[k] for k in columns))


ROWS_BYTES = 2**19
"""Maximum bytes of the swap rows of one slab, so that they stay in the L2 cache."""

WORD = 32


@dataclass(frozen=True, slots=True, eq=False)
class PairTerms:
    """The terms of one pair of systems, arranged for counting the terms present after swaps.

    Attributes
    ----------
    rows, weights : int64 array, shape (n_rows,)
        Rows of units with terms that are in one unit only, and how many more of these i holds than j. Not zero.
    row_gold : int64 array, shape (n_rows,)
        1 where the weight counts gold terms.
    starts : int64 array, shape (n_terms + 1,)
        The terms of several units, as ranges of `entries`.
    entries : int64 array
        2 * row + 1 if only j holds the term, 2 * row if only i does.
    term_gold : int64 array, shape (n_terms,)
        1 for gold terms.
    base : int64 array, shape (2, 2)
        Numbers of distinct (other, gold) terms of A* and B*, before absent terms are subtracted.
    n_planes : int
        Bits of the largest count of absences.
    """

    rows: Integers
    weights: Integers
    row_gold: Integers
    starts: Integers
    entries: Integers
    term_gold: Integers
    base: Integers
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

    columns: Integers
    pairs: tuple[PairTerms, ...]

    @property
    def slab_size(self) -> int:
        """Number of trials counted at a time."""
        words = ROWS_BYTES // (4 * COLUMN * max(len(self.columns), 1))
        return WORD * int(np.clip(words // 8 * 8, 8, 128))


def _build_pair_terms(panel: PresencePanel, pair: int, row_of: Integers) -> PairTerms:
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
    # How many terms both would have after a swap if none were absent. With x the swap bit of its row and w its weight,
    # A* lacks (terms of j alone) + sum of w x of the one-unit terms; a negative w x is w + |w| (1 - x), and only
    # |w| x or |w| (1 - x) is counted.
    base, first_side = np.zeros((2, 2), np.int64), side[first_index]
    for g in (0, 1):
        is_single = (number == 1) & (gold == g)
        n_all = np.count_nonzero(panel.golden[constant] == bool(g)) + np.count_nonzero(gold == g)
        shift = np.count_nonzero(is_single & (first_side == 1)) + int(weights[(row_gold == g) & (weights < 0)].sum())
        base[0, g], base[1, g] = n_all - shift, n_all - np.count_nonzero(is_single) + shift
    largest = int(max(np.abs(weights).sum(), len(starts) - 1, 1))
    return PairTerms(
        rows, weights, row_gold, starts, entries[is_multiple], gold[number > 1], base, largest.bit_length() + 1
    )  # fmt: skip


def _sum_single_rows(entries: Integers, gold: Integers) -> tuple[Integers, Integers, Integers]:
    """Return swap rows with one-unit terms, how many more of these i has than j, and whether they are gold terms."""
    keys, inverse = np.unique(entries // 2 * 2 + gold, return_inverse=True)
    weights = np.zeros(len(keys), np.int64)
    np.add.at(weights, inverse, 1 - 2 * (entries % 2))
    is_nonzero = weights != 0
    return keys[is_nonzero] // 2, weights[is_nonzero], keys[is_nonzero] % 2


def iter_distinct_terms(
    panel: PresencePanel, *, run: int, first: int, n_trials: int
) -> Iterator[tuple[int, NDArray[np.int32]]]:
    """Yield pairs of systems, each with the numbers of right terms and of all terms of both systems after swaps.

    For some trials, `counts[s, 0]` are the right terms of system s and `counts[s, 1]` all its terms; shape (2, 2, n).
    """
    arranged = panel.layout
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


def build_swap_rows(
    panel: PresencePanel, arranged: SetLayout, *, run: int, first: int, n_words: int
) -> NDArray[np.uint32]:
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


def build_set_panels(
    counts: Counts,
    units: SwapUnits,
    metrics: Sequence[BoundSets],
    pairs: Sequence[Pair] | Integers,
    *,
    subset: Bools | None = None,
) -> list[tuple[PresencePanel, Integers]]:
    """Build the panels of set metrics on one test set or a subset of its items, one for each group of pairs.

    Returns
    -------
    list of (PresencePanel, int64 array)
        Panels of pairs that have the same items, and the indices of their pairs in `pairs`.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    assert counts.outputs is not None
    gold, columns, hashes = get_incidence(counts.outputs)
    panels = []
    for members in group_rows(number_rows(number_by_items(counts, pairs))):
        mask = counts.in_common(pairs[members[0]].tolist(), subset)
        addresses, index = np.unique(units.index[mask], return_inverse=True)
        unit_of = np.full(counts.n_items, -1, np.int64)
        unit_of[mask] = index
        systems, positions = np.unique(pairs[members], return_inverse=True)
        holdings = []
        for items, terms in (columns[s] for s in systems.tolist()):
            is_held = unit_of[items] >= 0
            holdings.append(np.unique(terms[is_held] * max(len(addresses), 1) + unit_of[items][is_held]))
        golden = np.zeros(len(hashes), np.bool_)
        golden[gold[1][mask[gold[0]]]] = True
        panel = PresencePanel(
            key=units.key,
            addresses=addresses,
            holdings=tuple(holdings),
            golden=golden,
            pairs=positions.reshape(-1, 2),
            metrics=tuple(metrics),
            n_items=int(np.count_nonzero(mask)),
            terms=hashes,
        )
        panels.append((panel, members))
    return panels


Entries = tuple[Integers, Integers]


Incidence = tuple[Entries, tuple[Entries, ...], NDArray[np.uint64]]

_incidences: WeakKeyDictionary[Outputs, Incidence] = WeakKeyDictionary()


def get_incidence(outputs: Outputs) -> Incidence:
    """Return which items hold which terms, for the gold standard and each system, and a hash of each term.

    The result is cached as long as the outputs live, since every subset and unit of a test set needs it.
    """
    cached = _incidences.get(outputs)
    if cached is None:
        assert outputs.gold is not None
        code: dict[str, int] = {}
        gold = _list_entries(outputs.gold, code)
        columns = tuple(_list_entries(column, code) for column in outputs.systems)
        cached = _incidences[outputs] = gold, columns, np.array([hash_content(term) for term in code], np.uint64)
    return cached


def _list_entries(column: Array, code: dict[str, int]) -> Entries:
    items = np.repeat(np.arange(len(column)), [len(terms) for terms in column])
    codes = (code.setdefault(term, len(code)) for terms in column for term in terms)
    return items, np.fromiter(codes, np.int64, len(items))
