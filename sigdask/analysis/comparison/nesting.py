"""Units within coarser groups: the coarsest unit, columns that are coarser, and correlation of differences in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.factors import Factor, group_rows, number_rows
from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import compute_gradients
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.results.columns import Columns
from sigdask.statistics.dependence import SumsOfSquares

MAX_NUMBERS, MAX_COLUMNS, MAX_PAIRS = 2**24, 2**12, 2**16
"""Maximum numbers of unit sums, of their columns and of pairs of systems held at a time."""

LevelResults = tuple[Integers, Integers, Floats, Floats, Floats]
"""Rows, their groups, ICC, design effect and p."""


def find_coarsest(counts: Counts, levels: Sequence[str]) -> str:
    """Return the coarsest of nested levels, which is the unit to swap.

    Parameters
    ----------
    counts : Counts
        The items and their columns.
    levels : sequence of str
        "item" or columns; each must lie within the next coarser one.
    """
    columns = [level for level in dict.fromkeys(levels) if level != "item"]
    if not columns:
        return "item"
    coarsest_last = sorted(columns, key=lambda column: -len(counts.group(column).levels))
    for fine, coarse in pairwise(coarsest_last):
        if (stray := _find_stray(counts.group(fine), counts.group(coarse))) is not None:
            raise InputError(
                f"{fine} {stray!r} is in more than one {coarse}, but units must be nested",
                remedy=f"give only one of the units {fine} and {coarse}",
            )
    return coarsest_last[-1]


def _find_stray(fine: Factor, coarse: Factor) -> str | None:
    """Return a group of `fine` that lies in several groups of `coarse`, or None if there is none."""
    coarse_of = np.zeros(len(fine.levels), np.int64)
    coarse_of[fine.codes[::-1]] = coarse.codes[::-1]  # from the first row of each group
    strays = np.flatnonzero(coarse_of[fine.codes] != coarse.codes)
    return fine[int(strays[0])] if len(strays) else None


def find_coarser_columns(counts: Counts, units: SwapUnits) -> dict[str, Integers]:
    """Return the group of each unit in columns whose groups contain whole units, fewer than there are units."""
    columns = {}
    for column in counts.groups:
        if column == counts.unit:
            continue
        group = counts.group(column)
        unit_groups = np.full(units.n_units, -1, np.int64)
        unit_groups[units.index] = group.codes
        nested = bool((unit_groups[units.index] == group.codes).all())
        if nested and 2 <= len(group.levels) < units.n_units:
            columns[column] = unit_groups
    return columns


def compute_unit_correlations(comparisons: Comparisons) -> dict[str, Columns]:
    """Return, for each coarser column, how units' differences correlate within its groups; only for scores of sums."""
    units = comparisons.units
    levels = find_coarser_columns(comparisons.counts, units)
    by_level: dict[str, list[LevelResults]] = {column: [] for column in levels}
    for group in _group_by_sums(comparisons) if levels else ():
        metric = comparisons.metrics[comparisons.metric[group[0]]]
        if isinstance(metric, BoundMetric):
            for tile in _iter_tiles(comparisons, group, len(metric.fields), units.n_units):
                for column, results in _test_levels(comparisons, tile, metric, units, levels):
                    by_level[column].append(results)
    return {column: _merge_results(results, len(comparisons)) for column, results in by_level.items() if results}


def _merge_results(results: list[LevelResults], n: int) -> Columns:
    """Return one column's correlations for each of `n` rows, none where they are undefined."""
    numbers_of = {name: np.full(n, np.nan) for name in ("icc", "design_effect", "p_value")}
    full = {"n_groups": np.zeros(n, np.int64), **numbers_of}
    rows, *numbers = (np.concatenate(columns) for columns in zip(*results, strict=True))
    is_defined = ~np.isnan(numbers[-1])
    for name, values in zip(full, numbers, strict=True):
        full[name][rows[is_defined]] = values[is_defined]
    return full


def _group_by_sums(comparisons: Comparisons) -> list[Integers]:
    """Return groups of comparisons that share metric and items."""
    is_shared = [m.held is None or bool((m.held == m.held[:, :1]).all()) for m in comparisons.metrics]
    gaps = comparisons.counts.present is not None or not np.array(is_shared)[comparisons.metric].all()
    return group_rows(number_rows(comparisons.panel if gaps else comparisons.subset.codes, comparisons.metric))


def _iter_tiles(comparisons: Comparisons, group: Integers, n_fields: int, n_units: int) -> Iterator[Integers]:
    """Yield parts of a group of comparisons, each with so few systems that their units' sums fit into memory."""
    pairs = np.stack([comparisons.a[group], comparisons.b[group]])
    systems = np.unique(pairs)
    max_systems = max(2, min(MAX_COLUMNS, MAX_NUMBERS // n_units) // n_fields)
    if len(systems) <= max_systems:
        blocks = np.zeros_like(group)
    else:
        low, high = np.sort(np.searchsorted(systems, pairs) // (max_systems // 2), axis=0)
        blocks = number_rows(low, high)
    for rows in group_rows(blocks):
        for start in range(0, len(rows), MAX_PAIRS):
            yield group[rows[start : start + MAX_PAIRS]]


def _test_levels(
    comparisons: Comparisons, tile: Integers, metric: BoundMetric, units: SwapUnits, levels: Mapping[str, Integers]
) -> Iterator[tuple[str, LevelResults]]:
    """Yield each coarser column and its correlations within its groups, for comparisons that share metric and items."""
    pairs = np.stack([comparisons.a[tile], comparisons.b[tile]], axis=1)
    systems, (i, j) = np.unique(pairs), np.searchsorted(np.unique(pairs), pairs).T
    mask = comparisons.masks[comparisons.subset.codes[tile[0]]]
    items = np.flatnonzero(comparisons.counts.in_common(pairs[0].tolist(), mask, metric.held))
    unit_ids, index = np.unique(units.index[items], return_inverse=True)
    sums = sum_units(comparisons.counts, metric, systems, items, index)  # (n_units, n_systems, n_fields)
    totals = sums.sum(axis=0)
    slopes = compute_gradients(metric.form, (totals[i] + totals[j]) / 2)  # of one unit's contribution to the difference
    fields = np.arange(len(metric.fields))
    columns = np.concatenate([side[:, None] * len(fields) + fields for side in (i, j)], axis=1)
    weights = np.concatenate([slopes, -slopes], axis=1)
    n_items = np.bincount(index)
    for column, unit_groups in levels.items():
        _, groups = np.unique(unit_groups[unit_ids], return_inverse=True)
        grams = SumsOfSquares.from_values(column, sums.reshape(len(sums), -1), groups, n_items)
        n_groups = np.full(len(tile), len(grams.sizes), np.int64)
        yield column, (tile, n_groups, *grams.compute_dependence(columns, weights))


def sum_units(
    counts: Counts, metric: BoundMetric, systems: NDArray[np.integer[Any]], items: Integers, index: Integers
) -> Floats:
    """Return each unit's sums of the metric's fields over its items, shape (n_units, n_systems, n_fields).

    Parameters
    ----------
    counts : Counts
        The test set.
    metric : BoundMetric
        Metric whose fields are summed.
    systems : int array, shape (n_systems,)
        Systems to sum.
    items : int64 array, shape (n_kept,)
        Items that count.
    index : int64 array, shape (n_kept,)
        The unit of each item, 0 to n_units - 1. No unit is empty.
    """
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(index.max(initial=-1) + 1))
    sums = np.empty((len(starts), len(systems), len(metric.fields)))
    for f, name in enumerate(metric.fields):
        values = metric.get_field(name, counts)
        selected = values if values.shape[1] == 1 else values[:, systems]
        sums[:, :, f] = np.add.reduceat(selected[items[order]].astype(np.float64), starts, axis=0)
    return sums
