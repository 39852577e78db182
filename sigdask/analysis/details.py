"""Details of single comparisons: the null distribution, and the units that decide.

The null distribution has the differences of all arrangements if they are few. Otherwise it has those of the first
trials of the first run, as many as take some tens of milliseconds. All comparisons get details if they are few, else
those of a gate and doubtful ones.

Tables of units have both systems' scores on every unit, and the contribution of each unit to the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from sigdask.analysis.comparison.classical import sum_units
from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.analysis.comparison.study import Study
from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.errors import InputError
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.randomization.influence import PairPanel, compute_effects, compute_unit_contributions, iter_differences
from sigdask.randomization.panels.agreement import DecisionPanel
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import Subset
from sigdask.results.export import LEAVE_ONE_OUT, NO_CONTRIBUTION, SHARE, build_unit_data
from sigdask.results.table import Table

MAX_BARS = 61
ROUNDING = 1e-9
"""Numbers are the same if they differ by less than this share of their range."""


@dataclass(frozen=True, slots=True, eq=False)
class EqualWidthBars:
    """Histogram bars of equal width.

    Attributes
    ----------
    low, width : float
        Lower edge of the first bar, and the width of each.
    counts : int64 array, shape (n_bars,)
        Numbers in each.
    marked : int64 array, shape (n_bars,)
        Number of marked values in each bar.
    """

    low: float
    width: float
    counts: Integers
    marked: Integers

    @staticmethod
    def from_values(values: Floats, marked: Bools) -> EqualWidthBars:
        """Return a histogram of one or more values and of the marked values among them."""
        minimum, maximum = float(values.min()), float(values.max())
        reach = maximum - minimum
        if reach <= 0:
            return EqualWidthBars(minimum - 0.5, 1.0, np.array([len(values)]), np.array([np.count_nonzero(marked)]))
        gaps = np.diff(np.sort(values))
        step = float(gaps[gaps > ROUNDING * reach].min(initial=reach))
        n_steps = max(round(reach / step) + 1, 1)
        width = step * -(-n_steps // MAX_BARS)
        low = minimum - step / 2
        bar_index = np.clip(((values - low) / width).astype(np.int64), 0, int((maximum - low) / width))
        n_bars = int(bar_index.max()) + 1
        return EqualWidthBars(
            low, width, np.bincount(bar_index, minlength=n_bars), np.bincount(bar_index[marked], minlength=n_bars)
        )


MAX_TRIALS, MIN_TRIALS = 2**13, 2**10

MAX_WORK = 2**28
"""Maximum number of unit sums per pair that are added up for its details."""

BOX_TRIALS_RATIO, MIN_BOX_TRIALS = 100, 16
"""For metrics of whole outputs, whose trials are slow: one in this many trials is repeated, and at least so many."""


@dataclass(frozen=True, slots=True, eq=False)
class NullDistribution:
    """The null distribution of one difference, as a histogram.

    Attributes
    ----------
    observed : float
        The difference itself.
    n_trials, n_extreme : int
        Number of trials drawn, and of those at least as extreme as the observed difference, under the alternative.
    is_whole : bool
        Whether these are all arrangements.
    histogram : EqualWidthBars
        Histogram of the differences. The extreme ones are marked.
    """

    observed: float
    n_trials: int
    n_extreme: int
    is_whole: bool
    histogram: EqualWidthBars


def draw_null_distribution(panel: PairPanel, row: int, column: int, tail: int, n_asked: int) -> NullDistribution:
    """Return the null distribution of the difference of a pair under one metric, the same on any machine.

    Parameters
    ----------
    panel : Panel or RescoredPanel
        The panel that was counted.
    row, column
        The pair and the metric in the panel.
    tail : int
        The tail of the alternative.
    n_asked : int
        Requested trials.
    """
    if not isinstance(panel, Panel | PresencePanel):
        most = max(n_asked // BOX_TRIALS_RATIO, MIN_BOX_TRIALS)
    else:
        size = 2 * len(panel.metrics[column].fields) if isinstance(panel, Panel) else 2
        most = int(np.clip(MAX_WORK // max(len(panel.addresses) * size, 1), MIN_TRIALS, MAX_TRIALS))
    n_arrangements = 1 << min(int(panel.n_discordant[row, column]), 40)
    if is_whole := n_arrangements <= most:
        [swapped] = iter_differences(panel.build_enumeration(row, column), n_trials=n_arrangements)
    else:
        [swapped] = iter_differences(panel.select([row], [column]), n_trials=min(most, n_asked))
    is_extreme = swapped.extreme[:, tail]
    histogram = EqualWidthBars.from_values(swapped.differences, is_extreme)
    return NullDistribution(swapped.observed, len(is_extreme), int(is_extreme.sum()), is_whole, histogram)


MAX_ITEMS = 3
"""Maximum number of items of a unit whose texts are shown."""

MAX_CHARACTERS, MAX_LISTED = 400, 60
"""Maximum characters of a text, and members of a list, that are shown."""

CUT = " […]"

CACHED_COLUMNS = 2
"""Number of systems whose outputs are held at a time."""


@dataclass(frozen=True, slots=True)
class ItemDetails:
    """Texts of one item of a unit, shortened if long, or None if the data lack them.

    Attributes
    ----------
    name : str
        Its id, or its position.
    prompt : str or None
        Input: a source text, a prompt.
    gold : tuple of str
        Gold standard: references, labels.
    a, b : str
        Outputs of the two systems.
    """

    name: str
    prompt: str | None
    gold: tuple[str, ...]
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class UnitDetails:
    """One unit with some of its items.

    Attributes
    ----------
    name : str
        Value of its items in the column of units. For single items, their id or position.
    n_items : int
        Number of items that both systems have.
    items : tuple of ItemDetails
        Some of them.
    """

    name: str
    n_items: int
    items: tuple[ItemDetails, ...]


UnitSelection = tuple[tuple[int, int], AnyBound, Bools | None]
"""The systems, the metric and the items of a comparison; None for all items."""


@dataclass(frozen=True, eq=False)
class UnitIndex:
    """The units of one test set, with their details and scores.

    Attributes
    ----------
    comparisons : Comparisons
        The comparisons of the test set by its swapped units.
    """

    comparisons: Comparisons

    @cached_property
    def _items_by_unit(self) -> tuple[Integers, Integers]:
        """Items ordered by unit, and the index at which the items of each unit begin."""
        units = self.comparisons.units
        order = np.argsort(units.index, kind="stable")
        return order, np.searchsorted(units.index[order], np.arange(units.n_units + 1))

    @property
    def counts(self) -> Counts:
        """The test set."""
        return self.comparisons.counts

    def list_details(
        self, selection: UnitSelection, addresses: Iterable[int], scores: Floats
    ) -> tuple[UnitDetails, ...]:
        """Return the details of units in a comparison; `scores` of the two systems have shape (n_units, 2)."""
        pair, metric, mask = selection
        is_used = self.counts.in_common(pair, mask, metric.held)
        order, starts = self._items_by_unit
        details = []
        for address, unit_scores in zip(addresses, scores, strict=True):
            name, items = self.names[address], order[starts[address] : starts[address + 1]]
            items = items[is_used[items]].tolist()
            if "topics" in self.counts.fields:  # rankings are too long to read
                a, b = map(format_value, unit_scores)
                item_details: tuple[ItemDetails, ...] = (ItemDetails(name, None, (), a, b),)
            else:
                item_details = tuple(
                    self._build_item(item, pair) for item in self._sort_by_difference(items, pair)[:MAX_ITEMS]
                )
            details.append(UnitDetails(name, len(items), item_details))
        return tuple(details)

    @cached_property
    def names(self) -> Sequence[str]:
        """The name of each unit, by its address."""
        counts, units = self.counts, self.comparisons.units
        if counts.unit == "item" and counts.ids is None:
            return [str(k + 1) for k in range(units.n_units)]
        first = np.zeros(units.n_units, np.int64)
        first[units.index[::-1]] = np.arange(len(units.index))[::-1]
        names = counts.ids if counts.unit == "item" else counts.group(counts.unit)
        assert names is not None
        return [names[item] for item in first.tolist()]

    def iter_scores(
        self, pair: tuple[int, int], metric: AnyBound, subset: Subset | None, mask: Bools | None
    ) -> Iterator[pa.Table]:
        """Yield the units of one comparison; nothing if the systems have no item in common."""
        counts, names = self.counts, self.names
        addresses, sizes, scores, contributions, kind, note = self.compute_scores(pair, metric, mask)
        if len(addresses):
            a, b = (counts.systems[system] for system in pair)
            labels = (counts.name, None if subset is None else subset.value, counts.unit, metric.name, a, b)
            ids = [names[address] for address in addresses.tolist()]
            yield build_unit_data(labels, ids, sizes, scores, contributions, kind, note)

    def compute_scores(
        self, pair: tuple[int, int], metric: AnyBound, mask: Bools | None
    ) -> tuple[Integers, Integers, Floats, Floats, str, str]:
        """Return addresses, sizes, scores and contributions of units, in the order of the data, with kind and note."""
        counts, units = self.counts, self.comparisons.units
        items = counts.in_common(pair, mask, metric.held)
        addresses, first, index, sizes = np.unique(units.index[items], True, True, True)
        order = np.argsort(first)
        addresses, index, sizes = addresses[order], np.argsort(order)[index], sizes[order]
        if isinstance(metric, BoundMetric):
            sums = sum_units(counts, metric, np.array(pair), np.flatnonzero(items), index)
            scores, contributions, adds_up = compute_effects(metric.form, sums)
            return addresses, sizes, scores, contributions, SHARE if adds_up else LEAVE_ONE_OUT, ""
        scores = np.full((len(addresses), 2), np.nan)
        return addresses, sizes, scores, scores[:, 0], NO_CONTRIBUTION, NO_SUMS

    def _sort_by_difference(self, items: list[int], pair: tuple[int, int]) -> list[int]:
        """Return the items of a unit, beginning with items on which the two outputs differ."""
        if len(items) <= MAX_ITEMS or self.counts.outputs is None:
            return items
        a, b = (self._get_outputs(system) for system in pair)
        return sorted(items, key=lambda item: bool(a[item] == b[item]))

    def _build_item(self, item: int, pair: tuple[int, int]) -> ItemDetails:
        outputs, ids = self.counts.outputs, self.counts.ids
        a, b = (None if outputs is None else format_value(self._get_outputs(system)[item]) for system in pair)
        prompt = None if outputs is None or outputs.asked is None else outputs.asked[item]
        name = str(item + 1) if ids is None else ids[item]
        return ItemDetails(name, None if prompt is None else format_value(prompt), self._get_gold(item), a, b)

    def _get_gold(self, item: int) -> tuple[str, ...]:
        outputs = self.counts.outputs
        if outputs is None or outputs.gold is None:
            return ()
        answer = outputs.gold[item]
        is_several = isinstance(answer, tuple) and self._is_text
        return tuple(map(format_value, answer)) if is_several else (format_value(answer),)

    @property
    def _is_text(self) -> bool:
        """Whether the gold standard consists of references of a text."""
        return "segments" in self.counts.fields

    @property
    def field_names(self) -> tuple[str, str]:
        """The names of an item's input and gold standard in these data."""
        return ("source", "reference") if self._is_text else ("asked", "right")

    @cached_property
    def _get_outputs(self) -> Callable[[int], Any]:
        """Function that returns the outputs of a system; those of the last two systems are cached."""
        assert self.counts.outputs is not None
        return lru_cache(CACHED_COLUMNS)(self.counts.outputs.systems.__getitem__)


def format_value(value: Any) -> str:
    """Return an output or a gold standard as text, with a visible mark if it is shortened.

    Examples
    --------
    >>> format_value("a cat"), format_value(True), format_value(("B", "O")), format_value(0.25)
    ('a cat', 'yes', 'B O', '0.25')
    >>> format_value(frozenset({"b", "a"})), format_value({"d1": 1, "d0": 0})
    ('a, b', 'd0: 0, d1: 1')
    >>> format_value("x" * 500) == "x" * 396 + " […]"
    True
    """
    text = _format_plain(value)
    return text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - len(CUT)] + CUT


def _format_plain(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return _join_some(
            ", ", (f"{_format_plain(key)}: {_format_plain(item)}" for key, item in sorted(value.items())), len(value)
        )
    if isinstance(value, (set, frozenset)):
        return _join_some(", ", sorted(map(_format_plain, value)), len(value))
    if isinstance(value, (list, tuple, np.ndarray)):
        return _join_some(" ", map(_format_plain, value), len(value))
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)[: MAX_CHARACTERS + 1]


def _join_some(separator: str, parts: Iterable[str], n: int) -> str:
    joined = separator.join(islice(parts, MAX_LISTED))
    return joined + CUT if n > MAX_LISTED else joined


MAX_DECIDING = 10
"""Number of decisive units named for each side."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitShares:
    """The shares of units in the difference of one comparison.

    Attributes
    ----------
    add_up : bool
        Whether their sum is the difference.
    n_for_a, n_for_b, n_alike : int
        Numbers of units that raise the difference of scores, that lower it, and that do neither.
    histogram : EqualWidthBars or None
        Histogram of the contributions other than 0. Negative ones are marked. None if there are none.
    addresses : int64 array, shape (n_named,)
        The units that decide: those that raise the difference most, then those that lower it most, by size.
    values : float64 array, shape (n_named,)
        Their contributions.
    scores : float64 array, shape (n_named, 2)
        Scores of both systems on each of these units alone. NaN if scores are no means.
    """

    add_up: bool
    n_for_a: int
    n_for_b: int
    n_alike: int
    histogram: EqualWidthBars | None
    addresses: Integers
    values: Floats
    scores: Floats

    @staticmethod
    def from_panel(panel: Panel | PresencePanel, row: int, column: int) -> UnitShares:
        """Return the shares of the units in a pair's difference under one metric."""
        all_values = compute_unit_contributions(panel, row, column)
        size = np.abs(np.nan_to_num(all_values))
        nonzero = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
        values = all_values[nonzero]
        order = np.argsort(-values, kind="stable")
        above = order[: min(MAX_DECIDING, np.count_nonzero(values > 0))]
        below = order[::-1][: min(MAX_DECIDING, np.count_nonzero(values < 0))]
        deciding = np.concatenate([above, below])
        is_mean = isinstance(panel, Panel) and panel.linear[column]
        scores = np.full((len(deciding), 2), np.nan)
        if is_mean:
            assert isinstance(panel, Panel)
            sums = panel.values[nonzero[deciding]][:, panel.pairs[row]].astype(np.int64)
            scores = panel.metrics[column].form.score(panel.to_arguments(column, sums))
        return UnitShares(
            add_up=is_mean,
            n_for_a=int(np.count_nonzero(values > 0)),
            n_for_b=int(np.count_nonzero(values < 0)),
            n_alike=panel.extent[1] - len(values),
            histogram=EqualWidthBars.from_values(values, values < 0) if len(values) else None,
            addresses=panel.addresses[nonzero[deciding]],
            values=values[deciding],
            scores=scores,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDetails:
    """Details of one comparison.

    Attributes
    ----------
    row : int
        Row in the table of results.
    alternative : str
        The alternative, which decides which differences are extreme.
    null : NullDistribution
        Distribution of the difference under swaps.
    shares : UnitShares or None
        Contributions of units. None for a metric of whole outputs, which scores no unit.
    deciding_units : tuple of UnitDetails
        The units that decide, as `shares` lists them.
    field_names : tuple of str
        Names of inputs and gold standard in these data.
    """

    row: int
    alternative: str
    null: NullDistribution
    shares: UnitShares | None
    deciding_units: tuple[UnitDetails, ...]
    field_names: tuple[str, str]


def compute_details(study: Study, table: Table, rows: Integers) -> tuple[ComparisonDetails, ...]:
    """Return the details of some comparisons of a study, in the order of `rows`.

    The same data, seed and trials give the same numbers on any machine. Details are omitted if a user's metric fails on
    them.

    Parameters
    ----------
    study : Study
        The study, with its panels.
    table : Table
        Results of all of it, or of some.
    rows : int64 array, shape (n_rows,)
        Rows to open, in the requested order.
    """
    details = []
    for analysis in study.analyses:
        comparisons, unit_index = analysis.main, UnitIndex(analysis.main)
        for row in rows.tolist():
            if (index := _find_comparison(comparisons, table, row)) is not None:
                with suppress(InputError):  # a metric of whole outputs gave no score, as the results say
                    details.append(_open_comparison(unit_index, index, row, table.alternative[row]))
    order = {row: k for k, row in enumerate(rows.tolist())}
    return tuple(sorted(details, key=lambda entry: order[entry.row]))


def _find_comparison(comparisons: Comparisons, table: Table, row: int) -> int | None:
    """Return the index of the comparison of a result; None if it is not among these."""
    c = comparisons
    sides = ((c.a, table.a[row]), (c.b, table.b[row]))
    metrics, column = [metric.name for metric in c.metrics], table["subset.column"][row]
    subset = Subset(column, table["subset.value"][row]) if column else None
    if table.test_set[row] != c.counts.name or subset not in c.subset.values:
        return None
    fits = c.subset.codes == c.subset.values.index(subset)
    names = [(codes, c.counts.systems, name) for codes, name in sides]
    for codes, values, name in (*names, (c.metric, metrics, table.metric[row])):
        fits = fits & (codes == (values.index(name) if name in values else -1))
    return next(iter(np.flatnonzero(fits).tolist()), None)


def _open_comparison(unit_index: UnitIndex, index: int, row: int, alternative: str) -> ComparisonDetails:
    comparisons = unit_index.comparisons
    panel, place, column = comparisons.get_panel(index), int(comparisons.row[index]), int(comparisons.column[index])
    assert isinstance(panel, PairPanel)
    null = draw_null_distribution(panel, place, column, TAILS.index(alternative), int(comparisons.n_trials[index]))
    shares: UnitShares | None = None
    deciding: tuple[UnitDetails, ...] = ()
    if isinstance(panel, Panel | PresencePanel) and not isinstance(panel, DecisionPanel):
        shares = UnitShares.from_panel(panel, place, column)
        pair = int(comparisons.a[index]), int(comparisons.b[index])
        selection = pair, comparisons.get_metric(index), comparisons.get_mask(index)
        deciding = unit_index.list_details(selection, shares.addresses, shares.scores)
    return ComparisonDetails(row, alternative, null, shares, deciding, unit_index.field_names)


MAX_FOR_ALL = 20
"""Up to this number, details of all comparisons are shown."""

MAX_DETAILS = 200
"""Maximum number of comparisons whose details are shown."""


def select_rows(
    n_rows: int,
    doubtful: Iterable[int],
    gated: Iterable[int] = (),
    leading: Sequence[int] = (),
) -> Integers:
    """Return the rows that get details: all if they are few, else gated, leading and doubtful rows.

    Parameters
    ----------
    n_rows : int
        Comparisons in all.
    doubtful : iterable of int
        Rows that are contested, or whose verdict another seed could change.
    gated : iterable of int
        Rows that a gate checks, failures first.
    leading : sequence of int
        Rows that compare a best system with its runner-up.

    Examples
    --------
    >>> select_rows(3, [2]).tolist(), select_rows(1000, [7, 30], [30, 5]).tolist()
    ([0, 1, 2], [30, 5, 7])
    """
    if n_rows <= MAX_FOR_ALL:
        return np.arange(n_rows)
    first = [*dict.fromkeys(gated)][: MAX_DETAILS - len(leading)]
    candidates = dict.fromkeys(int(row) for rows in (first, leading, doubtful) for row in rows)
    return np.array([*candidates][:MAX_DETAILS], np.int64)


NO_SUMS = "this metric is not computed from sums over units"
"""Reason why units have no contributions."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitTables:
    """The data needed to score single units of compared systems, without panels.

    It is pickled as None, because outputs may be large and metrics may be functions that cannot be pickled.

    Attributes
    ----------
    sets : tuple of Comparisons
        The comparisons of each test set, without panels and jobs.
    """

    sets: tuple[Comparisons, ...]

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        """Pickle as None."""
        return type(None), ()

    @staticmethod
    def from_study(study: Study) -> UnitTables:
        """Return the unit tables of a study."""
        return UnitTables(tuple(replace(analysis.main, panels=(), cells=[]) for analysis in study.analyses))

    def iter_scores(self, pair: tuple[str, str] | None = None) -> Iterator[pa.Table]:
        """Yield the units of each comparison, in the order of test sets, subsets, pairs and metrics.

        Parameters
        ----------
        pair : (str, str), optional
            Two systems; by default the pairs that were compared.
        """
        for comparisons in self.sets:
            counts = comparisons.counts
            pairs = comparisons.pairs.tolist()
            if pair is not None:
                pairs = [[counts.systems.index(name) for name in pair]] if {*pair} <= {*counts.systems} else []
            table = UnitIndex(comparisons)
            for value, mask in zip(comparisons.subset.values, comparisons.masks, strict=True):
                for a, b in pairs:
                    for bound in comparisons.metrics:
                        yield from table.iter_scores((a, b), bound, value, mask)
