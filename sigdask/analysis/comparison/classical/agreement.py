"""Comparisons of one panel, metric and subset, which have the same items: what classical tests take of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.correlation import ratios_of
from sigdask.analysis.comparison.nesting import unit_sums
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
    """Comparisons by exchange of one unit that share panel, metric and items.

    Attributes
    ----------
    asked : Comparisons
        All comparisons of the test set.
    rows : int64 array, shape (n,)
        Places of these.
    """

    asked: Comparisons
    rows: Integers

    @property
    def unit(self) -> str:
        """What is exchanged."""
        return self.asked.counts.unit

    @cached_property
    def ratio(self) -> BoundMetric | None:
        """The metric, where it is one ratio of sums."""
        metric = self.asked.metrics[int(self.asked.metric[self.rows[0]])]
        if not isinstance(metric, BoundMetric) or not isinstance(metric.form, Ratios):
            return None
        return metric if len(metric.form.numerators) == 1 else None

    @cached_property
    def mean(self) -> tuple[Panel, int] | None:
        """The panel and its metric, where the score is a mean over what no exchange changes."""
        panel = self.asked.panels[int(self.asked.panel[self.rows[0]])]
        column = int(self.asked.column[self.rows[0]])
        return (panel, column) if isinstance(panel, Panel) and panel.is_mean(column) else None

    @cached_property
    def _sides(self) -> tuple[Integers, Integers]:
        both = np.stack([self.asked.a[self.rows], self.asked.b[self.rows]])
        systems, places = np.unique(both, return_inverse=True)
        return systems.astype(np.int64), places.reshape(both.shape)

    @property
    def systems(self) -> Integers:
        """The systems, shape (n_systems,)."""
        return self._sides[0]

    @property
    def sides(self) -> Integers:
        """The two systems of each comparison, places among `systems`, shape (2, n)."""
        return self._sides[1]

    @cached_property
    def items(self) -> Integers:
        """The items that all the systems have, shape (n_items,)."""
        assert self.ratio is not None
        mask = self.asked.masks[int(self.asked.subset.codes[self.rows[0]])]
        return np.flatnonzero(self.asked.counts.in_common(self.systems.tolist(), mask, self.ratio.held))

    @cached_property
    def shares(self) -> SharesRight:
        """How many items are right, of how many, where they are right or wrong."""
        assert self.ratio is not None
        n = len(self.systems)
        right, whole, fits = np.zeros(n), np.zeros(n), np.ones(n, np.bool_)
        for above, below in ratios_of(self.asked.counts, self.ratio, self.items, self.systems):
            is_share = ((above == 0) | (above == below)) & ((below == 0) | (below == 1))
            fits &= is_share.all(axis=0)
            right, whole = right + above.sum(axis=0), whole + below.sum(axis=0)
        return SharesRight(right, whole, fits)

    @cached_property
    def spread(self) -> ScoreSpread:
        """How scores of units vary, system by system, where the score is a mean."""
        assert self.ratio is not None
        form = self.ratio.form
        assert isinstance(form, Ratios)
        _, index = np.unique(self._units.index[self.items], return_inverse=True)
        parts: list[Floats] = []
        n_units = 0
        for some in self._tiles(len(self.items) * len(self.ratio.fields)):
            sums = unit_sums(self.asked.counts, self.ratio, self.systems[some], self.items, index)
            above, below = sums @ np.array(form.numerators[0]), sums @ np.array(form.denominators[0])
            n_units = int((below[:, 0] != 0).sum())
            share = above.sum(axis=0) / below.sum(axis=0)
            parts.append(np.stack([above.sum(axis=0), ((above - share * below) ** 2).sum(axis=0)]))
        total, squares = np.concatenate(parts, axis=1)
        return ScoreSpread(n_units, total, squares)

    @cached_property
    def _units(self) -> SwapUnits:
        return SwapUnits.of(self.asked.counts, 0)  # whatever the seed is, units are the same

    def _tiles(self, n_numbers: int) -> Iterator[slice]:
        step = max(1, MOST_SUMS // max(n_numbers, 1))
        yield from (slice(start, start + step) for start in range(0, len(self.systems), step))

    def differences(self) -> Iterator[tuple[slice, Floats]]:
        """Yield some comparisons and what their units differ by, in steps of the panel, shape (n_some, n_kept)."""
        assert self.mean is not None
        panel, column = self.mean
        pairs = panel.pairs[self.asked.row[self.rows]]
        step = max(1, MOST_NUMBERS // max(len(panel.values), 1))
        for start in range(0, len(pairs), step):
            some = slice(start, start + step)
            systems, places = np.unique(pairs[some], return_inverse=True)
            i, j = places.reshape(-1, 2).T
            above = panel.numerators_of(column, panel.values[:, systems]).astype(np.float64)
            each = np.ascontiguousarray(above.T)  # (n_systems, n_kept)
            yield some, each[i] - each[j]


@dataclass(frozen=True, slots=True, eq=False)
class SharesRight:
    """Items that are right, of systems whose items are right or wrong: arrays of shape (n_systems,).

    Attributes
    ----------
    right, whole : float64
        How many, of how many.
    fits : bool
        Whether each item is right or wrong, or does not count.
    """

    right: Floats
    whole: Floats
    fits: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSpread:
    """Scores of units of some systems.

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
