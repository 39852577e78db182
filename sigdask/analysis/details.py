"""Details of single comparisons: differences in the first trials, and the units that decide.

All comparisons get details if they are few, else those of a gate and doubtful ones.

Tables of units have both systems' scores on every unit, and the contribution of each unit to the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sigdask.analysis.comparison.classical import sum_units
from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.analysis.comparison.study import Study
from sigdask.counts import Counts
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.randomization.influence import compute_effects, draw_differences
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns import Subset
from sigdask.results.export import NO_CONTRIBUTION, SHARE, SWAP, build_unit_data
from sigdask.results.table import Table
from sigdask.text import format_value

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
        Number of marked ones in each bar.
    """

    low: float
    width: float
    counts: Integers
    marked: Integers

    @staticmethod
    def from_values(values: Floats, marked: Bools) -> EqualWidthBars:
        """Return a histogram of one or more values and of the marked values among them."""
        gaps, reach = np.diff(np.sort(values)), float(np.ptp(values))
        if reach <= 0:
            return EqualWidthBars(float(values[0]) - 0.5, 1.0, np.array([len(values)]), np.array([marked.sum()]))
        step = float(gaps[gaps > ROUNDING * reach].min(initial=reach))  # bars hold equally many of these
        low, width = float(values.min()) - step / 2, step * -(-(round(reach / step) + 1) // MAX_BARS)
        edges = low + width * np.arange(int((reach + step / 2) / width) + 2)
        return EqualWidthBars(low, width, np.histogram(values, edges)[0], np.histogram(values[marked], edges)[0])


MIN_TRIALS, MAX_TRIALS = 2**10, 2**13
MAX_WORK = 2**27
"""How many trials are drawn for a page: as many as swap so many units, within these bounds."""


def draw_null_distribution(comparisons: Comparisons, index: int) -> EqualWidthBars | None:
    """Return a histogram of the differences in the first trials, the extreme ones marked; None if not of sums."""
    panel, row, column = comparisons.get_panel(index), int(comparisons.row[index]), int(comparisons.column[index])
    if not isinstance(panel, Panel):
        return None
    n_trials = int(np.clip(MAX_WORK // max(len(panel.addresses), 1), MIN_TRIALS, MAX_TRIALS))
    return EqualWidthBars.from_values(
        *draw_differences(panel, row, column, TAILS.index(comparisons.spec.alternative), n_trials)
    )


MAX_DECIDING = 10
"""Number of decisive units named for each side."""

MAX_ITEMS = 3
"""Maximum number of items of a unit whose texts are shown."""


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


@dataclass(frozen=True, slots=True, eq=False)
class ScoredUnits:
    """The units that both systems of a comparison have, in the order of the data.

    Attributes
    ----------
    items, index : int64 array, shape (n_items,)
        The compared items, and the unit of each.
    first : int64 array, shape (n_units,)
        The first item of each unit.
    scores : float64 array, shape (n_units, 2)
        Scores of both systems on each unit alone, NaN if undefined.
    contributions : float64 array, shape (n_units,)
        Contribution of each unit to the difference.
    kind : {"share", "swap", "none"}
        What contributions are, as in `results.export.build_unit_data`.
    """

    items: Integers
    index: Integers
    first: Integers
    scores: Floats
    contributions: Floats
    kind: str

    @staticmethod
    def from_pair(comparisons: Comparisons, pair: tuple[int, int], metric: AnyBound, mask: Bools | None) -> ScoredUnits:
        """Return the scored units of two systems under a metric on the items of a subset."""
        counts = comparisons.counts
        items = np.flatnonzero(counts.in_common(pair, mask, metric.held))
        _, first, index = np.unique(comparisons.units.index[items], return_index=True, return_inverse=True)
        order = np.argsort(first)
        index, first = np.argsort(order)[index], items[first[order]]
        if not isinstance(metric, BoundMetric) or not len(items):
            nans = np.full((len(first), 2), np.nan)
            return ScoredUnits(items, index, first, nans, nans[:, 0], NO_CONTRIBUTION)
        sums = sum_units(counts, metric, np.array(pair), items, index)
        scores, contributions, adds_up = compute_effects(metric.form, sums)
        return ScoredUnits(items, index, first, scores, contributions, SHARE if adds_up else SWAP)


@dataclass(frozen=True, slots=True, eq=False)
class UnitShares:
    """The shares of units in the difference of one comparison.

    Attributes
    ----------
    add_up : bool
        Whether their sum is the difference.
    counts : tuple of int
        Numbers of units that raise the difference of scores, that do neither, and that lower it.
    histogram : EqualWidthBars or None
        Histogram of the contributions other than 0. Negative ones are marked. None if there are none.
    """

    add_up: bool
    counts: tuple[int, int, int]
    histogram: EqualWidthBars | None


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDetails:
    """Details of one comparison.

    Attributes
    ----------
    row : int
        Row in the table of results.
    null : EqualWidthBars or None
        Differences in the first trials. The extreme ones are marked. None if the score is no function of sums.
    field_names : tuple of str
        Names of inputs and gold standard in these data.
    shares : UnitShares or None
        Contributions of units. None for a metric of whole outputs, which scores no unit.
    deciding_units : tuple of UnitDetails
        The units that decide: those that raise the difference most, then those that lower it most, by size.
    """

    row: int
    null: EqualWidthBars | None
    field_names: tuple[str, str]
    shares: UnitShares | None = None
    deciding_units: tuple[UnitDetails, ...] = ()


def compute_details(study: Study, table: Table, rows: Integers) -> tuple[ComparisonDetails, ...]:
    """Return the details of some comparisons of a study, in the order of `rows`.

    Parameters
    ----------
    study : Study
        The study, with its panels.
    table : Table
        All results of it, in its order, alone or among those of other test sets.
    rows : int64 array, shape (n_rows,)
        Rows to open, in the requested order.
    """
    sets = {analysis.main.counts.name: analysis.main for analysis in study.analyses}
    names = [table.test_set[row] for row in rows.tolist()]
    places = [int(np.sum(table.test_set.equals(name)[:row])) for name, row in zip(names, rows, strict=True)]
    found = zip(names, places, rows.tolist(), strict=True)
    return tuple(_open_comparison(sets[name], k, row) for name, k, row in found)


def _open_comparison(comparisons: Comparisons, index: int, row: int) -> ComparisonDetails:
    c, metric = comparisons, comparisons.get_metric(index)
    null = draw_null_distribution(c, index)
    words = ("source", "reference") if "segments" in c.counts.fields else ("asked", "right")
    if not isinstance(metric, BoundMetric):
        return ComparisonDetails(row, null, words)
    pair = int(c.a[index]), int(c.b[index])
    units = ScoredUnits.from_pair(c, pair, metric, c.get_mask(index))
    values = units.contributions
    values = np.where(np.abs(values) > ROUNDING * np.abs(values).max(initial=0.0), values, 0.0)
    n_for_a, n_for_b = int((values > 0).sum()), int((values < 0).sum())
    differing, order = values[values != 0], np.argsort(-values, kind="stable")
    histogram = EqualWidthBars.from_values(differing, differing < 0) if len(differing) else None
    shares = UnitShares(units.kind == SHARE, (n_for_a, len(values) - len(differing), n_for_b), histogram)
    largest = [*order[: min(MAX_DECIDING, n_for_a)], *order[::-1][: min(MAX_DECIDING, n_for_b)]]
    described = tuple(_describe_unit(c.counts, pair, units, k) for k in largest)
    return ComparisonDetails(row, null, words, shares, described)


def _describe_unit(counts: Counts, pair: tuple[int, int], units: ScoredUnits, k: int) -> UnitDetails:
    """Return a unit of a comparison with some of its items."""
    outputs, (a, b) = counts.outputs, units.scores[k].tolist()
    columns = (None,) * 3 if outputs is None else (outputs.asked, *(outputs.systems[system] for system in pair))
    [name], items = _name_units(counts, units.first[k : k + 1]), units.items[units.index == k].tolist()
    if "topics" in counts.fields:  # rankings are too long to read
        details: tuple[ItemDetails, ...] = (ItemDetails(name, None, (), format_value(a), format_value(b)),)
    else:
        details = tuple(_iter_items(counts, items, columns))
    return UnitDetails(name, float(units.contributions[k]), (a, b), len(items), details)


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


def iter_units(sets: Iterable[Comparisons], pair: tuple[str, str] | None = None) -> Iterator[pa.Table]:
    """Yield the units of each comparison, in the order of test sets, subsets, pairs and metrics.

    Parameters
    ----------
    sets : iterable of Comparisons
        The comparisons of each test set. They need no panels.
    pair : (str, str), optional
        Two systems; by default the pairs that were compared.
    """
    for comparisons in sets:
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
    units = ScoredUnits.from_pair(comparisons, pair, metric, mask)
    if not len(units.first):
        return
    counts, sizes = comparisons.counts, np.bincount(units.index)
    note = NO_SUMS if units.kind == NO_CONTRIBUTION else ""
    a, b = (counts.systems[system] for system in pair)
    labels = (counts.name, None if subset is None else subset.value, counts.unit, metric.name, a, b)
    names = _name_units(counts, units.first)
    yield build_unit_data(labels, names, sizes, units.scores, units.contributions, units.kind, note)
