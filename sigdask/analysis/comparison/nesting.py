"""Units within groups: which columns are coarser, which unit is exchanged, what is correlated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.factors import Factor
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import gradients
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.results.table import UnitCorrelation
from sigdask.statistics.dependence import SumsOfSquares

MOST_NUMBERS, MOST_COLUMNS, MOST_PAIRS = 2**24, 2**12, 2**16
"""Contributions, columns of them and pairs of systems that are looked at together."""

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Tested = tuple[Integers, Integers, Floats, Floats, Floats]
"""Rows, their groups, ICC, design effect and p."""


def highest(counts: Counts, levels: Sequence[str]) -> str:
    """Return the coarsest of nested levels, which is exchanged.

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
        if (stray := _stray(counts.group(fine), counts.group(coarse))) is not None:
            raise InputError(
                f"units {fine} and {coarse} are not nested: {fine} {stray!r} lies in several of {coarse}; name one unit"
            )
    return coarsest_last[-1]


def _stray(fine: Factor, coarse: Factor) -> str | None:
    """Return a group of `fine` that lies in several of `coarse`, if any."""
    within = np.zeros(len(fine.levels), np.int64)
    within[fine.codes[::-1]] = coarse.codes[::-1]  # where each group is met first
    strays = np.flatnonzero(within[fine.codes] != coarse.codes)
    return fine[int(strays[0])] if len(strays) else None


@dataclass(frozen=True, slots=True, eq=False)
class CoarserColumn:
    """A column that is coarser than the unit."""

    column: str
    of_units: NDArray[np.int64]


def levels_of(counts: Counts, units: SwapUnits) -> list[CoarserColumn]:
    """Return the columns whose groups hold whole units, fewer than there are units."""
    found = []
    for column in counts.groups:
        if column == counts.unit:
            continue
        group = counts.group(column)
        of_units = np.full(units.n_units, -1, np.int64)
        of_units[units.index] = group.codes
        nested = bool((of_units[units.index] == group.codes).all())
        if nested and 2 <= len(group.levels) < units.n_units:
            found.append(CoarserColumn(column, of_units))
    return found


def hanging(comparisons: Comparisons, units: SwapUnits) -> tuple[UnitCorrelation, ...]:
    """Return how differences are correlated within each coarser column, of the comparisons of sums."""
    levels = levels_of(comparisons.counts, units)
    found: list[list[Tested]] = [[] for _ in levels]
    for own in _sharing_sums(comparisons) if levels else ():
        metric = comparisons.metrics[comparisons.metric[own[0]]]
        if isinstance(metric, BoundMetric):
            for some in _tiles(comparisons, own, len(metric.fields), units.n_units):
                for of_level, tested in zip(found, _tested(comparisons, some, metric, units, levels), strict=True):
                    of_level.append(tested)
    return tuple(_joined(level.column, tested) for level, tested in zip(levels, found, strict=True) if tested)


def _joined(column: str, tested: list[Tested]) -> UnitCorrelation:
    """Return what was found of one column, without what nowhere varies, in the order of the rows."""
    rows, n_groups, icc, effect, p = (np.concatenate(parts) for parts in zip(*tested, strict=True))
    kept = np.flatnonzero(~np.isnan(p))
    kept = kept[np.argsort(rows[kept])]
    return UnitCorrelation(column, rows[kept], n_groups[kept], icc[kept], effect[kept], p[kept])


def _sharing_sums(comparisons: Comparisons) -> list[Integers]:
    """Return comparisons by metric and items."""
    alike = [m.held is None or bool((m.held == m.held[:, :1]).all()) for m in comparisons.metrics]
    gaps = comparisons.counts.present is not None or not np.array(alike)[comparisons.metric].all()
    return rows_of(numbered(comparisons.panel if gaps else comparisons.subset.codes, comparisons.metric))


def _tiles(comparisons: Comparisons, own: Integers, n_fields: int, n_units: int) -> Iterator[Integers]:
    """Yield comparisons of few enough systems that their sums are looked at together."""
    both = np.stack([comparisons.a[own], comparisons.b[own]])
    systems = np.unique(both)
    most = max(2, min(MOST_COLUMNS, MOST_NUMBERS // n_units) // n_fields)
    if len(systems) <= most:
        blocks = np.zeros_like(own)
    else:
        first, second = np.sort(np.searchsorted(systems, both) // (most // 2), axis=0)
        blocks = numbered(first, second)
    for rows in rows_of(blocks):
        for start in range(0, len(rows), MOST_PAIRS):
            yield own[rows[start : start + MOST_PAIRS]]


def _tested(
    comparisons: Comparisons, some: Integers, metric: BoundMetric, units: SwapUnits, levels: Sequence[CoarserColumn]
) -> Iterator[Tested]:
    """Yield what each level gives of comparisons on the same items under one metric."""
    both = np.stack([comparisons.a[some], comparisons.b[some]], axis=1)
    systems, (i, j) = np.unique(both), np.searchsorted(np.unique(both), both).T
    mask = comparisons.masks[comparisons.subset.codes[some[0]]]
    kept = np.flatnonzero(comparisons.counts.in_common(both[0].tolist(), mask, metric.held))
    where, index = np.unique(units.index[kept], return_inverse=True)
    sums = unit_sums(comparisons.counts, metric, systems, kept, index)  # (n_units, n_systems, n_fields)
    totals = sums.sum(axis=0)
    slopes = gradients(metric.form, (totals[i] + totals[j]) / 2)  # of one unit's part of the difference, linearised
    fields = np.arange(len(metric.fields))
    columns = np.concatenate([side[:, None] * len(fields) + fields for side in (i, j)], axis=1)
    weights = np.concatenate([slopes, -slopes], axis=1)
    n_items = np.bincount(index)
    for level in levels:
        _, groups = np.unique(level.of_units[where], return_inverse=True)
        grams = SumsOfSquares.of(level.column, sums.reshape(len(sums), -1), groups, n_items)
        n_groups = np.full(len(some), len(grams.sizes), np.int64)
        yield some, n_groups, *grams.dependences(columns, weights)


def unit_sums(
    counts: Counts, metric: BoundMetric, systems: NDArray[np.integer[Any]], kept: Integers, index: Integers
) -> NDArray[np.float64]:
    """Return what each unit contributes, shape (n_units, n_systems, n_fields).

    Parameters
    ----------
    counts : Counts
        The test set.
    metric : BoundMetric
        Whose fields.
    systems : int array, shape (n_systems,)
        Of which systems.
    kept : int64 array, shape (n_kept,)
        Items that count.
    index : int64 array, shape (n_kept,)
        The unit of each, 0 to n_units - 1, none empty.
    """
    order = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[order], np.arange(index.max() + 1))
    found = np.empty((len(starts), len(systems), len(metric.fields)))
    for f, name in enumerate(metric.fields):
        values = metric.field(name, counts)
        own = values if values.shape[1] == 1 else values[:, systems]
        found[:, :, f] = np.add.reduceat(own[kept[order]].astype(np.float64), starts, axis=0)
    return found
