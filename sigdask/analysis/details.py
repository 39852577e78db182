"""Details of single comparisons: the null distribution, and the units that decide.

The null distribution has the differences of all arrangements if they are few. Otherwise it has those of the first
trials of the first run, as many as take some tens of milliseconds. All comparisons get details if they are few, else
those of a gate and doubtful ones.

Tables of units have both systems' scores on every unit, and the contribution of each unit to the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
        edges = low + width * np.arange(int((maximum - low) / width) + 2)
        return EqualWidthBars(low, width, np.histogram(values, edges)[0], np.histogram(values[marked], edges)[0])


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


MAX_DECIDING = 10
"""Number of decisive units named for each side."""

MAX_ITEMS = 3
"""Maximum number of items of a unit whose texts are shown."""

MAX_CHARACTERS = 400
"""Maximum characters of a text that are shown."""

CUT = " […]"


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
    """A unit that decides, with some of its items.

    Attributes
    ----------
    name : str
        Value of its items in the column of units. For single items, their id or position.
    value : float
        Its contribution to the difference.
    scores : tuple of float
        Scores of both systems on this unit alone. NaN if scores are no means.
    n_items : int
        Number of items that both systems have.
    items : tuple of ItemDetails
        Some of them.
    """

    name: str
    value: float
    scores: tuple[float, float]
    n_items: int
    items: tuple[ItemDetails, ...]


def _iter_items(counts: Counts, items: list[int], columns: Sequence[Any]) -> Iterator[ItemDetails]:
    """Yield some items of a unit, given all inputs and outputs, beginning with those on which two outputs differ."""
    _, a, b = columns
    if a is not None and len(items) > MAX_ITEMS:
        items = sorted(items, key=lambda item: bool(a[item] == b[item]))
    for item in items[:MAX_ITEMS]:
        name = str(item + 1) if counts.ids is None else counts.ids[item]
        prompt, *both = (None if column is None else format_value(column[item]) for column in columns)
        yield ItemDetails(name, prompt, _list_gold(counts, item), *both)


def _list_gold(counts: Counts, item: int) -> tuple[str, ...]:
    if counts.outputs is None or counts.outputs.gold is None:
        return ()
    answer = counts.outputs.gold[item]
    is_several = isinstance(answer, tuple) and "segments" in counts.fields  # references of a text
    return tuple(map(format_value, answer)) if is_several else (format_value(answer),)


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
        return ", ".join(f"{_format_plain(key)}: {_format_plain(item)}" for key, item in sorted(value.items()))
    if isinstance(value, (set, frozenset)):
        return ", ".join(sorted(map(_format_plain, value)))
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(map(_format_plain, value))
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)


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
    """

    add_up: bool
    n_for_a: int
    n_for_b: int
    n_alike: int
    histogram: EqualWidthBars | None


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
    field_names : tuple of str
        Names of inputs and gold standard in these data.
    shares : UnitShares or None
        Contributions of units. None for a metric of whole outputs, which scores no unit.
    deciding_units : tuple of UnitDetails
        The units that decide: those that raise the difference most, then those that lower it most, by size.
    """

    row: int
    alternative: str
    null: NullDistribution
    field_names: tuple[str, str]
    shares: UnitShares | None = None
    deciding_units: tuple[UnitDetails, ...] = ()


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
    for comparisons in (analysis.main for analysis in study.analyses):
        for row in rows.tolist():
            if (index := _find_comparison(comparisons, table, row)) is not None:
                with suppress(InputError):  # a metric of whole outputs gave no score, as the results say
                    details.append(_open_comparison(comparisons, index, row, table.alternative[row]))
    order = {row: k for k, row in enumerate(rows.tolist())}
    return tuple(sorted(details, key=lambda entry: order[entry.row]))


def _find_comparison(comparisons: Comparisons, table: Table, row: int) -> int | None:
    """Return the index of the comparison of a result; None if it is not among these."""
    c, column = comparisons, table["subset.column"][row]
    subset = Subset(column, table["subset.value"][row]) if column else None
    keys: list[tuple[Any, Sequence[Any], Any]] = [
        (c.a, c.counts.systems, table.a[row]),
        (c.b, c.counts.systems, table.b[row]),
        (c.metric, [metric.name for metric in c.metrics], table.metric[row]),
        (c.subset, c.subsets, subset),
    ]
    if table.test_set[row] != c.counts.name or any(value not in values for _, values, value in keys):
        return None
    fits = np.logical_and.reduce([codes == values.index(value) for codes, values, value in keys])
    return next(iter(np.flatnonzero(fits).tolist()), None)


def _open_comparison(comparisons: Comparisons, index: int, row: int, alternative: str) -> ComparisonDetails:
    panel, place, column = comparisons.get_panel(index), int(comparisons.row[index]), int(comparisons.column[index])
    assert isinstance(panel, PairPanel)
    null = draw_null_distribution(panel, place, column, TAILS.index(alternative), int(comparisons.n_trials[index]))
    words = ("source", "reference") if "segments" in comparisons.counts.fields else ("asked", "right")
    if not isinstance(panel, Panel | PresencePanel) or isinstance(panel, DecisionPanel):
        return ComparisonDetails(row, alternative, null, words)
    contributions = compute_unit_contributions(panel, place, column)
    sizes = np.abs(np.nan_to_num(contributions))
    kept = np.flatnonzero(sizes > ROUNDING * sizes.max(initial=0.0))
    values = contributions[kept]
    order, n_for_a, n_for_b = np.argsort(-values, kind="stable"), int((values > 0).sum()), int((values < 0).sum())
    histogram = EqualWidthBars.from_values(values, values < 0) if len(values) else None
    is_mean = isinstance(panel, Panel) and panel.linear[column]
    shares = UnitShares(is_mean, n_for_a, n_for_b, panel.extent[1] - len(values), histogram)
    largest = np.concatenate([order[: min(MAX_DECIDING, n_for_a)], order[::-1][: min(MAX_DECIDING, n_for_b)]])
    scores = np.full((len(largest), 2), np.nan)
    if isinstance(panel, Panel) and is_mean:
        sums = panel.values[kept[largest]][:, panel.pairs[place]].astype(np.int64)
        scores = panel.metrics[column].form.score(panel.to_arguments(column, sums))
    found = zip(panel.addresses[kept[largest]].tolist(), values[largest].tolist(), scores.tolist(), strict=True)
    return ComparisonDetails(row, alternative, null, words, shares, tuple(_iter_units(comparisons, index, found)))


def _iter_units(
    comparisons: Comparisons, index: int, found: Iterable[tuple[int, float, Sequence[float]]]
) -> Iterator[UnitDetails]:
    """Yield units of a comparison, given the address, contribution and scores of each."""
    counts = comparisons.counts
    pair = int(comparisons.a[index]), int(comparisons.b[index])
    is_used = counts.in_common(pair, comparisons.get_mask(index), comparisons.get_metric(index).held)
    outputs = counts.outputs
    columns = (None,) * 3 if outputs is None else (outputs.asked, *(outputs.systems[system] for system in pair))
    for address, value, (a, b) in found:
        items = np.flatnonzero(comparisons.units.index == address)
        [name], used = _name_units(counts, items[:1]), items[is_used[items]].tolist()
        if "topics" in counts.fields:  # rankings are too long to read
            details: tuple[ItemDetails, ...] = (ItemDetails(name, None, (), format_value(a), format_value(b)),)
        else:
            details = tuple(_iter_items(counts, used, columns))
        yield UnitDetails(name, value, (a, b), len(used), details)


def _name_units(counts: Counts, items: Integers) -> list[str]:
    """Return the name of the unit of each of some items: for single items, their id or position."""
    names = counts.ids if counts.unit == "item" else counts.group(counts.unit)
    return [str(k + 1) if names is None else names[k] for k in items.tolist()]


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
            for value, mask in zip(comparisons.subsets, comparisons.masks, strict=True):
                for a, b in pairs:
                    for bound in comparisons.metrics:
                        yield from _iter_scores(comparisons, (a, b), bound, value, mask)


def _iter_scores(
    comparisons: Comparisons, pair: tuple[int, int], metric: AnyBound, subset: Subset | None, mask: Bools | None
) -> Iterator[pa.Table]:
    """Yield the units of one comparison in the order of the data; nothing if the systems have no item in common."""
    counts = comparisons.counts
    items = np.flatnonzero(counts.in_common(pair, mask, metric.held))
    _, first, index, sizes = np.unique(comparisons.units.index[items], True, True, True)
    order = np.argsort(first)
    first, index, sizes = first[order], np.argsort(order)[index], sizes[order]
    if not len(first):
        return
    scores, kind, note = np.full((len(first), 2), np.nan), NO_CONTRIBUTION, NO_SUMS
    contributions = scores[:, 0]
    if isinstance(metric, BoundMetric):
        sums = sum_units(counts, metric, np.array(pair), items, index)
        scores, contributions, adds_up = compute_effects(metric.form, sums)
        kind, note = SHARE if adds_up else LEAVE_ONE_OUT, ""
    a, b = (counts.systems[system] for system in pair)
    labels = (counts.name, None if subset is None else subset.value, counts.unit, metric.name, a, b)
    yield build_unit_data(labels, _name_units(counts, items[first]), sizes, scores, contributions, kind, note)
