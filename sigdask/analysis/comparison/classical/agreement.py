"""The input of classical tests: comparisons of one panel, metric and subset, which share their items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.correlation import iter_ratios
from sigdask.analysis.comparison.nesting import sum_units
from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels.sums import Panel, SwapUnits

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_NUMBERS = 2**19
"""Differences of units that are looked at together."""

MOST_SUMS = 2**22
"""What units contribute that is looked at together."""


@dataclass(frozen=True, eq=False)
class MatchedComparisons:
    """Comparisons that share panel, metric, items and unit.

    Attributes
    ----------
    comparisons : Comparisons
        All comparisons of the test set.
    rows : int64 array, shape (n,)
        Places of these.
    """

    comparisons: Comparisons
    rows: Integers

    @property
    def unit(self) -> str:
        """The unit that is swapped."""
        return self.comparisons.counts.unit

    @cached_property
    def ratio(self) -> BoundMetric | None:
        """The metric, or None if its score is not a single ratio of sums."""
        metric = self.comparisons.metrics[int(self.comparisons.metric[self.rows[0]])]
        if not isinstance(metric, BoundMetric) or not isinstance(metric.form, Ratios):
            return None
        return metric if len(metric.form.numerators) == 1 else None

    @cached_property
    def mean(self) -> tuple[Panel, int] | None:
        """The panel and the metric's column in it, or None if the score is not a mean with a fixed denominator."""
        panel = self.comparisons.panels[int(self.comparisons.panel[self.rows[0]])]
        column = int(self.comparisons.column[self.rows[0]])
        return (panel, column) if isinstance(panel, Panel) and panel.is_mean(column) else None

    @cached_property
    def _systems_and_sides(self) -> tuple[Integers, Integers]:
        side_systems = np.stack([self.comparisons.a[self.rows], self.comparisons.b[self.rows]])
        systems, indices = np.unique(side_systems, return_inverse=True)
        return systems.astype(np.int64), indices.reshape(side_systems.shape)

    @property
    def systems(self) -> Integers:
        """Indices of all systems compared, shape (n_systems,)."""
        return self._systems_and_sides[0]

    @property
    def sides(self) -> Integers:
        """The two systems of each comparison, as indices of `systems`, shape (2, n)."""
        return self._systems_and_sides[1]

    @cached_property
    def items(self) -> Integers:
        """Indices of the items that all these systems have, shape (n_items,)."""
        assert self.ratio is not None
        mask = self.comparisons.masks[int(self.comparisons.subset.codes[self.rows[0]])]
        return np.flatnonzero(self.comparisons.counts.in_common(self.systems.tolist(), mask, self.ratio.held))

    @cached_property
    def shares(self) -> ItemShares:
        """Number of right items and of all items of each system, and whether each of its items is right or wrong."""
        assert self.ratio is not None
        n = len(self.systems)
        n_right, n_items, fits = np.zeros(n), np.zeros(n), np.ones(n, np.bool_)
        for above, below in iter_ratios(self.comparisons.counts, self.ratio, self.items, self.systems):
            is_share = ((above == 0) | (above == below)) & ((below == 0) | (below == 1))
            fits &= is_share.all(axis=0)
            n_right, n_items = n_right + above.sum(axis=0), n_items + below.sum(axis=0)
        return ItemShares(n_right, n_items, fits)

    @cached_property
    def spread(self) -> ScoreSpread:
        """Sum and spread of the units' scores within each system."""
        assert self.ratio is not None
        form = self.ratio.form
        assert isinstance(form, Ratios)
        _, index = np.unique(self._units.index[self.items], return_inverse=True)
        blocks: list[Floats] = []
        n_units = 0
        for tile in self._iter_tiles(len(self.items) * len(self.ratio.fields)):
            sums = sum_units(self.comparisons.counts, self.ratio, self.systems[tile], self.items, index)
            above, below = sums @ np.array(form.numerators[0]), sums @ np.array(form.denominators[0])
            n_units = int((below[:, 0] != 0).sum())
            share = above.sum(axis=0) / below.sum(axis=0)
            blocks.append(np.stack([above.sum(axis=0), ((above - share * below) ** 2).sum(axis=0)]))
        total, squares = np.concatenate(blocks, axis=1)
        return ScoreSpread(n_units, total, squares)

    @cached_property
    def _units(self) -> SwapUnits:
        return SwapUnits.from_counts(self.comparisons.counts, 0)  # whatever the seed is, units are the same

    def _iter_tiles(self, n_numbers: int) -> Iterator[slice]:
        step = max(1, MOST_SUMS // max(n_numbers, 1))
        yield from (slice(start, start + step) for start in range(0, len(self.systems), step))

    def iter_differences(self) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of comparisons with their units' differences in the panel's steps, (n_slice, n_kept)."""
        assert self.mean is not None
        panel, column = self.mean
        pairs = panel.pairs[self.comparisons.row[self.rows]]
        step = max(1, MOST_NUMBERS // max(len(panel.values), 1))
        for start in range(0, len(pairs), step):
            tile = slice(start, start + step)
            systems, indices = np.unique(pairs[tile], return_inverse=True)
            i, j = indices.reshape(-1, 2).T
            above = panel.compute_numerators(column, panel.values[:, systems]).astype(np.float64)
            by_system = np.ascontiguousarray(above.T)  # (n_systems, n_kept)
            yield tile, by_system[i] - by_system[j]


@dataclass(frozen=True, slots=True, eq=False)
class ItemShares:
    """Counts of right items, for systems whose items are right or wrong: arrays of shape (n_systems,).

    Attributes
    ----------
    n_right, n_items : float64
        How many, of how many.
    fits : bool
        Whether each item is right or wrong, or does not count.
    """

    n_right: Floats
    n_items: Floats
    fits: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSpread:
    """Sums and squares of unit scores, by system.

    Attributes
    ----------
    n_units : int
        Units that the denominator counts.
    total, squares : float64 array, shape (n_systems,)
        Sums of what units score, and of its squares about the system's score: about that share of their sizes,
        where units are of different sizes.
    """

    n_units: int
    total: Floats
    squares: Floats
