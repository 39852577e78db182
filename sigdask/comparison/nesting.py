"""Units within groups: which columns are coarser, which unit is exchanged, what hangs together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.comparisons import Comparison
from sigdask.counts import Counts
from sigdask.counts.texts import Factor
from sigdask.errors import InputError
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import gradient
from sigdask.randomization.panels.sums import Units
from sigdask.statistics.dependence import Dependence, Grams

MOST_NUMBERS = 2 * 10**7
"""Contributions of all systems that are summed at a time; beyond it, pair by pair."""


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
class Level:
    """A column that is coarser than the unit."""

    column: str
    of_units: NDArray[np.int64]


@dataclass(eq=False)
class Nesting:
    """How differences of one test set hang together within its grouping columns."""

    counts: Counts
    units: Units
    _levels: tuple[Level, ...] | None = None
    _grams: dict[tuple[object, ...], list[Grams]] = field(default_factory=dict)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The columns whose groups hold whole units, fewer than there are units."""
        if self._levels is None:
            self._levels = tuple(self._find_levels())
        return self._levels

    def _find_levels(self) -> list[Level]:
        found = []
        for column in self.counts.groups:
            if column == self.counts.unit:
                continue
            group = self.counts.group(column)
            codes = group.codes
            of_units = np.full(self.units.n_units, -1, np.int64)
            of_units[self.units.index] = codes
            nested = bool((of_units[self.units.index] == codes).all())
            if nested and 2 <= len(group.levels) < self.units.n_units:
                found.append(Level(column, of_units))
        return found

    def dependences(self, c: Comparison) -> tuple[Dependence, ...]:
        """Return how one comparison's differences hang together within each coarser column."""
        if not isinstance(c.metric, BoundMetric) or not self.levels:
            return ()
        fields = len(c.metric.fields)
        gaps = self.counts.present is not None or (c.metric.held is not None and not _alike(c.metric.held))
        apart = gaps or self.units.n_units * self.counts.n_systems * fields > MOST_NUMBERS
        systems = list(c.pair) if apart else list(range(self.counts.n_systems))
        key = (id(c.metric), c.subset["value"] if c.subset else None, tuple(systems) if apart else None)
        if key not in self._grams:
            if apart:
                self._grams.clear()
            self._grams[key] = list(self._sum_up(c.metric, systems, c.mask))
        grams = self._grams[key]
        weights = self._weights(c.metric, [systems.index(s) for s in c.pair], grams[0], fields) if grams else None
        return tuple(d for g in grams if weights is not None and (d := g.dependence(weights)) is not None)

    def _sum_up(self, metric: BoundMetric, systems: list[int], mask: NDArray[np.bool_] | None) -> list[Grams]:
        kept = self.counts.in_common(systems, mask, metric.held)
        where, index = np.unique(self.units.index[kept], return_inverse=True)
        columns = []
        for system in systems:
            for name in metric.fields:
                values = metric.field(name, self.counts)
                own = values[kept, 0 if values.shape[1] == 1 else system]
                columns.append(np.bincount(index, weights=own, minlength=len(where)))
        contributions = np.column_stack(columns).astype(np.float64)
        grams = []
        for level in self.levels:
            _, groups = np.unique(level.of_units[where], return_inverse=True)
            grams.append(Grams.of(level.column, contributions, groups, np.bincount(index)))
        return grams

    def _weights(self, metric: BoundMetric, both: list[int], grams: Grams, fields: int) -> NDArray[np.float64]:
        """Return what turns contributions into one unit's part of the difference, linearised."""
        sums = grams.sums.reshape(-1, fields)
        slope = gradient(metric.form, (sums[both[0]] + sums[both[1]]) / 2)
        weights = np.zeros(sums.shape)
        weights[both[0]], weights[both[1]] = slope, -slope
        return weights.ravel()


def _alike(held: NDArray[np.bool_]) -> bool:
    """Say whether all systems have the same items."""
    return bool((held == held[:, :1]).all())
