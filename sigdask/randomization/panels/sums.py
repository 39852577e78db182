"""Panels of sums: the systems, pairs and metrics that share one set of swaps.

Items are summed into units, and units are in canonical order, which gives them their addresses in the random stream.
Pairs share arrays if they can. A pair with missing items, another scale or a subset of the items has a panel of its own
*on the same addresses*. So adding a system or a subset changes no other count.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.fields import Floats, Integers
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.metrics.forms import Correlation, Ratios
from sigdask.randomization.panels.digests import Digests, compute_pair_digests, hash_fields
from sigdask.randomization.panels.scored_sums import PanelMetric, ScoredSums, compute_swap_deviations
from sigdask.randomization.slabs import iter_slabs
from sigdask.randomization.stream import Key, compute_stream_keys
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally
from sigdask.statistics.bounds import MAX_TRIALS
from sigdask.statistics.exact.sums import count_reaching
from sigdask.statistics.lattice import TIE
from sigdask.statistics.numbering import group_rows, number_rows

Pair = tuple[int, int]
ENUMERATED_UNITS = 20
"""Maximum number of discordant units for which all arrangements are enumerated."""

DEFAULT_TRIALS = 2**20

TOGETHER, MIN_TOGETHER, MAX_TOGETHER = 2**23, 64, 1024
"""Maximum of pairs times arrangements in a panel of all arrangements, and its minimum and maximum number of pairs."""

ENUMERATION_SECONDS = 2e-8
"""Approximate seconds of an arrangement of a single pair, and of many pairs that are counted together."""

PAIRS_AT_ONCE = 10

SUMMING_SECONDS = 2e-4
"""Approximate seconds of all arrangements of a pair whose sums have a distribution."""

MAX_NUMBERS = 2**22
"""Maximum number of unit sums that are processed at a time, or stored in such a panel."""

SUMS = "sums"
"""Kind of the panels that families consist of."""


@dataclass(frozen=True, slots=True, eq=False)
class SwapUnits:
    """Units in canonical order; the outputs of a unit are swapped together.

    Attributes
    ----------
    key : tuple of int
        Key of the test set's stream.
    index : int64 array, shape (n_items,)
        Address of each item's unit.
    n_units : int
        Number of units.
    content : int
        64 bits of a digest of their ids. It does not depend on the test set's name.
    """

    key: Key
    index: Integers
    n_units: int
    content: int = 0

    @staticmethod
    def from_counts(counts: Counts, seed: int) -> SwapUnits:
        """Group the items of `counts` into units."""
        names = counts.ids if counts.unit == "item" else counts.group(counts.unit)
        if names is None:
            key, content = _compute_key_and_content(seed, counts.name, counts.n_items)
            return SwapUnits(key, np.arange(counts.n_items), counts.n_items, content)
        names = Texts.from_values(names)
        texts = names.levels if names.is_encoded else names
        if texts.has_empty:
            position = next(k for k, name in enumerate(names) if not name)
            raise InputError(
                f"column {counts.unit!r} is empty at item {position + 1}; fill it in every row. (Merged cells of a "
                "spreadsheet have their value in the first row only)"
            )
        units, address = _order_units(texts)
        key, content = _compute_key_and_content(seed, counts.name, units)
        index = address[names.codes] if names.is_encoded else address
        return SwapUnits(key, index, len(units), content)


def _order_units(texts: Texts) -> tuple[Texts, Integers]:
    """Return distinct units in canonical order, and the address of each text's unit."""
    forms = texts.canonical
    order, tied = forms.sorted
    address = np.empty(len(forms), np.int64)
    address[order] = np.cumsum(~tied) - 1
    return forms[order[~tied]], address


def _compute_key_and_content(seed: int, name: str, units: Sequence[str] | int) -> tuple[Key, int]:
    """Return the key of a test set's stream, and a hash of its units from their ids or their number."""
    keys = compute_stream_keys(dict.fromkeys([(seed, name), (0, "")]), units)
    low, high = keys[-1]  # without seed and name
    return keys[0], high << 32 | low


@dataclass(frozen=True, eq=False)
class Panel(ScoredSums):
    """A panel of sums: systems of one test set, with pairs and metrics that share swaps."""

    manner: ClassVar[CountingMethod] = CountingMethod()
    is_whole: ClassVar[bool] = False
    kind: ClassVar[str] = SUMS

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        data = (self.addresses, self.sizes, self.values, self.totals, self.lattices)
        return "panel", self.kind, self.key, *data, self.pairs, self.metrics, self.extent, self.enumerated

    @property
    def extent(self) -> tuple[int, int]:
        """Numbers of items and units, concordant ones included."""
        return self.n_items, self.n_units

    def tally(self, *, run: int = 0, first: int = 0, n_trials: int = DEFAULT_TRIALS) -> Tally:
        """Count exceedances in trials `first` to `first + n_trials - 1` of a run.

        The same data, seed and trials give the same counts on any machine, in any partition.

        Parameters
        ----------
        run : int
            0 for the first run, 1 for the second; at most 255.
        first, n_trials : int
            The range of trials.
        """
        _check_range(first, n_trials)
        counts = np.zeros((len(self.metrics), len(self.pairs), len(TAILS)), np.int64)  # contiguous for each kernel
        for slab in iter_slabs(self, run=run, first=first, n_trials=n_trials):
            for m in range(len(self.metrics)):
                slab.kernels[m].count(slab, counts[m])
        return Tally(n_trials, np.ascontiguousarray(counts.swapaxes(0, 1)))

    def compute_digests(self) -> Digests:
        """Return the digest of each pair and metric, shape (n_pairs, n_metrics)."""
        return compute_pair_digests([self])[0]

    def hash_contents(self, column: int) -> NDArray[np.uint64]:
        """Return content hashes of both systems of each pair, from the fields of one metric, shape (n_pairs, 2)."""
        return hash_fields(self.contents, self.lattices, self.metrics[column].fields)[self.pairs]

    def estimate_swap_deviations(self) -> Floats:
        """Return the standard deviation of each difference under swaps, shape (n_pairs, n_metrics).

        Exact for scores that are means, linearised for others.
        """
        return np.column_stack([compute_swap_deviations(self, m) for m in range(len(self.metrics))])

    @property
    def pair_scores(self) -> Floats:
        """Observed scores of both systems of each pair, shape (n_pairs, n_metrics, 2)."""
        return self.scores[self.pairs].swapaxes(1, 2)

    @property
    def tie_widths(self) -> Floats:
        """How far apart a pair's observed scores may be and still tie, shape (n_pairs, n_metrics)."""
        width = float(TIE) * np.abs(self.pair_scores).sum(axis=2)
        for m, linear in enumerate(self.linear):
            if linear:
                width[:, m] = np.maximum(width[:, m], self.slack[:, m] * self.compute_step_value(m))
            else:
                width[:, m] += self.observed_error_bounds[:, m]
        return np.asarray(width)

    def is_mean(self, column: int) -> bool:
        """Return whether a score is a mean with a denominator that no swap can change."""
        return self.linear[column]

    def is_coarse(self, column: int) -> bool:
        """Return whether some of a metric's item scores differ by less than a step of their lattice."""
        return any(self.lattices[f].is_coarse for f in self.list_compared_fields(column))

    def get_score_step(self, column: int) -> float:
        """Return the step to which a metric's item scores are rounded; 0 if exact, negative if some differ by less."""
        lattices = [self.lattices[f] for f in self.metrics[column].fields]
        largest_step = max((lattice.step for lattice in lattices if lattice.slack), default=0.0)
        return -largest_step if self.is_coarse(column) else largest_step

    @property
    def zero_division_scores(self) -> Floats:
        """Scores that were given in place of 0/0, and NaN for all other scores of pairs, (n_pairs, n_metrics, 2)."""
        scores = np.full((len(self.totals), len(self.metrics)), np.nan)
        for m, metric in enumerate(self.metrics):
            if isinstance(metric.form, Ratios | Correlation):
                undefined = metric.form.is_undefined(self.to_arguments(m, self.totals))
                scores[undefined, m] = metric.form.zero_division
        if np.isnan(scores).all():
            return np.broadcast_to(np.nan, (*self.shape, 2))
        return scores[self.pairs].swapaxes(1, 2)

    def iter_enumerations(self, rows: Integers, column: int) -> Iterator[tuple[Integers, Panel]]:
        """Yield some pairs in groups, each with a panel whose trials are all arrangements under one metric.

        The pairs of a group have equally many discordant units, and swaps change denominators in all of them or in
        none. A pair with a score of inexact sums is its own group, because the sums of other pairs would widen its
        ties.
        """
        is_linear = self.linear[column]
        linear = np.ones(len(rows), np.bool_) if is_linear else self.compute_constant_denominators(rows, column) > 0
        separate = np.where(~linear & self.is_rounded(column), np.arange(1, len(rows) + 1), 0)
        for group in group_rows(number_rows(self.n_discordant[rows, column], linear, separate)):
            members = rows[group]
            size = compute_max_together(int(self.n_discordant[members[0], column]), len(self.metrics[column].fields))
            for start in range(0, len(members), size):
                yield members[start : start + size], self._build_arrangements(members[start : start + size], column)

    def build_enumeration(self, row: int, column: int) -> Panel:
        """Return the panel of one pair under one metric, whose trials are all arrangements."""
        return self._build_arrangements(np.array([row]), column)

    def _build_arrangements(self, rows: Integers, column: int) -> EnumeratedPairs:
        """Return a panel whose trials are all arrangements of pairs with equally many discordant units."""
        metric, system_pairs = self.metrics[column], self.pairs[rows]
        fields = list(metric.fields)
        differ = (
            (self.values[:, i][:, fields] != self.values[:, j][:, fields]).any(axis=1) for i, j in system_pairs.tolist()
        )
        units = np.stack([np.flatnonzero(is_discordant) for is_discordant in differ])  # (n_rows, d)
        values = self.values[
            units[:, None, :, None], system_pairs[:, :, None, None], fields
        ]  # (n_rows, 2, d, n_fields)
        panel = EnumeratedPairs(
            key=self.key,
            addresses=np.arange(units.shape[1]),
            values=values.transpose(2, 0, 1, 3).reshape(units.shape[1], 2 * len(rows), len(fields)),
            totals=self.totals[system_pairs.ravel()][:, fields],
            lattices=tuple(self.lattices[f] for f in fields),
            pairs=np.arange(2 * len(rows)).reshape(-1, 2),
            metrics=(PanelMetric(metric.name, metric.form, tuple(range(len(fields))), metric.higher_is_better),),
            sizes=np.ascontiguousarray(self.sizes[units].T),
            n_items=self.n_items,
            n_units=self.n_units,
            enumerated=True,
            contents=self.contents[system_pairs.ravel()][:, fields] if len(self.contents) else self.contents,
        )
        if self.linear[column]:
            vars(panel)["linear"] = (True,)  # a denominator that no swap changes here does not change there either
        return panel

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> Panel:
        """Return the panel of some of its pairs and metrics, with the systems that they need."""
        columns = range(len(self.metrics)) if columns is None else columns
        if is_whole_selection(rows, columns, self.shape):
            return self
        used, pairs = np.unique(self.pairs[np.asarray(rows, np.int64)], return_inverse=True)
        return replace(
            self,
            values=np.asfortranarray(self.values[:, used]),
            totals=self.totals[used],
            pairs=pairs.reshape(-1, 2),
            metrics=tuple(self.metrics[k] for k in columns),
            contents=self.contents[used] if len(self.contents) else self.contents,
        )


def _check_range(first: int, n_trials: int) -> None:
    if n_trials < 1 or first < 0 or first + n_trials > MAX_TRIALS:
        raise InputError(f"trials {first} to {first + n_trials - 1}: must lie in 0 to 2**48 - 1, at least one")


def is_whole_selection(rows: Sequence[int] | Integers, columns: Sequence[int], shape: tuple[int, int]) -> bool:
    """Return whether selected rows and columns are all pairs and metrics of a panel, in its order."""
    if (len(rows), len(columns)) != shape:
        return False
    return all(np.array_equal(selected, np.arange(n)) for selected, n in ((rows, shape[0]), (columns, shape[1])))


def compute_max_together(n_discordant: int, n_fields: int) -> int:
    """Return how many pairs at most to count in one panel of all arrangements, given their discordant units."""
    fitting = MAX_NUMBERS // max(2 * n_discordant * n_fields, 1)
    return min(max(TOGETHER >> n_discordant, MIN_TOGETHER), MAX_TOGETHER, max(fitting, 1))


@dataclass(frozen=True, eq=False)
class EnumeratedPairs(Panel):
    """A panel whose trials are all arrangements of several pairs, which have equally many discordant units.

    There is one metric. Pair k has systems 2k and 2k + 1 and its own units: unit u is the u-th that differs in it, with
    `sizes` of shape (n_kept, n_pairs). If pairs of several panels are joined, the numbers of items and units are those
    of the first.
    """

    @cached_property
    def sharing_key(self) -> tuple[Hashable, ...] | None:
        """Key that must be equal for panels of one metric to be counted together; None if never."""
        is_separate = self.is_approximate(0)
        return None if is_separate else (self.key, self.lattices, len(self.addresses), self.linear[0])

    @property
    def max_pairs(self) -> int:
        """Maximum number of pairs to count together."""
        return compute_max_together(len(self.addresses), self.values.shape[2])

    @property
    def seconds_per_trial(self) -> float:
        """Predicted seconds of an arrangement of all pairs."""
        if self.linear[0]:
            return SUMMING_SECONDS * len(self.pairs) / float(2 ** len(self.addresses))
        return ENUMERATION_SECONDS * max(len(self.pairs) / PAIRS_AT_ONCE, 1)

    def tally(self, *, run: int = 0, first: int = 0, n_trials: int = DEFAULT_TRIALS) -> Tally:
        """Count exceedances in some arrangements: of linear metrics by the distribution of sums, without trials."""
        if not self.linear[0]:
            return super().tally(run=run, first=first, n_trials=n_trials)
        _check_range(first, n_trials)
        i, j = self.pairs.T
        numerators, totals = self.compute_numerators(0, self.values), self.compute_numerators(0, self.totals)
        observed, slack = totals[i] - totals[j], self.slack[:, 0]
        is_mirrored, size = observed < 0, np.abs(observed)
        # a difference after swaps is t + 2 D, where D sums the steps; mirrored, so that t is not negative
        steps = np.where(is_mirrored, -1, 1) * (numerators[:, j] - numerators[:, i])
        thresholds = np.column_stack([-slack, slack + 1, slack + 1 - size])
        reached = count_reaching(first, first + n_trials, steps.T, thresholds)
        greater, less, opposite = reached[:, 0], n_trials - reached[:, 1], n_trials - reached[:, 2]
        both = np.where(size <= 2 * slack, n_trials, greater + opposite)  # if the two ends meet, every trial counts
        tails = np.where(is_mirrored, less, greater), np.where(is_mirrored, greater, less), both
        return Tally(n_trials, np.stack(tails, axis=1)[:, None])

    @property
    def counting_key(self) -> Hashable:
        """Key that must be equal for panels of any test sets to be counted together by `join`; None if never."""
        shared = self.sharing_key
        return (self.metrics[0].form, *shared[1:]) if shared is not None and self.linear[0] else None

    def join(self, others: Sequence[EnumeratedPairs]) -> EnumeratedPairs:
        """Return the panel of these pairs and those of other panels with the same metric and `sharing_key`."""
        panels = (self, *others)
        return replace(
            self,
            values=np.concatenate([panel.values for panel in panels], axis=1),
            totals=np.concatenate([panel.totals for panel in panels]),
            contents=np.concatenate([panel.contents for panel in panels]),
            pairs=np.arange(sum(len(panel.totals) for panel in panels)).reshape(-1, 2),
            sizes=np.concatenate([panel.sizes for panel in panels], axis=1),
        )

    @cached_property
    def slack(self) -> Integers:
        """Rounding error within which differences of sums tie, in lattice steps, shape (n_pairs, 1)."""
        return np.asarray(self.sizes.sum(axis=0)[:, None] * self.count_slack_steps(0))

    @cached_property
    def linear(self) -> tuple[bool, ...]:
        """Whether no swap can change the denominator of any pair, as a tuple of one for the one metric."""
        return (bool(self.compute_constant_denominators(np.arange(len(self.pairs)), 0).all()),)

    def get_base_system(self, system: int) -> int:
        """Return the system whose contributions are subtracted from another's before summing: the pair's first."""
        return system // 2 * 2

    def select(self, rows: Sequence[int] | Integers, columns: Sequence[int] | None = None) -> EnumeratedPairs:
        """Return the panel of some of its pairs."""
        if is_whole_selection(rows, (0,) if columns is None else columns, self.shape):
            return self
        selected = np.asarray(rows, np.int64)
        systems = (2 * selected[:, None] + np.arange(2)).ravel()
        return replace(
            self,
            values=np.ascontiguousarray(self.values[:, systems]),
            totals=self.totals[systems],
            contents=self.contents[systems] if len(self.contents) else self.contents,
            pairs=self.pairs[: len(selected)],
            sizes=np.ascontiguousarray(self.sizes[:, selected]),
        )
