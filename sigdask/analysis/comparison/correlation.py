"""The correlation of two systems' item scores, r12 of Yeh 2000, for all pairs that share items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.statistics.classical.correlation import compute_correlations

PAIR_COST = 64
"""Pairs of which one is worth that many products of a matrix."""

MOST_NUMBERS = 2**18
"""Item scores that are laid out at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class TestSetCorrelations:
    """Correlations of item scores, for the comparisons of one test set."""

    comparisons: Comparisons

    @property
    def r12(self) -> NDArray[np.float64]:
        """Correlation r12 of each comparison; NaN if its score is no mean over fixed items, or scores are constant."""
        comparisons = self.comparisons
        result = np.full(len(comparisons), np.nan)
        for group in group_rows(number_rows(comparisons.panel, comparisons.metric, comparisons.subset.codes)):
            if (r := self._correlate_group(group)) is not None:
                result[group] = r
        return result

    def _correlate_group(self, group: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the correlation r12 of the two systems' scores in similar comparisons; None if they are no means."""
        comparisons, k = self.comparisons, int(group[0])
        metric = comparisons.metrics[int(comparisons.metric[k])]
        if not isinstance(metric, BoundMetric) or not comparisons.panels[int(comparisons.panel[k])].is_mean(
            int(comparisons.column[k])
        ):
            return None
        systems, indices = np.unique(np.concatenate([comparisons.a[group], comparisons.b[group]]), return_inverse=True)
        items = ItemScores.from_counts(
            comparisons.counts, metric, comparisons.masks[int(comparisons.subset.codes[k])], systems
        )
        i, j = indices[: len(group)], indices[len(group) :]
        if len(group) * PAIR_COST < len(systems) ** 2:
            return compute_correlations(items.iter_scores, (i, j))
        return np.asarray(compute_correlations(items.iter_scores)[i, j])


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """Item scores of some systems under a mean, on the items that all of them have.

    Attributes
    ----------
    counts : Counts
        The test set.
    metric : BoundMetric
        A mean.
    rows : int64 array, shape (n_items,)
        The items.
    systems : int64 array, shape (n_systems,)
        The systems.
    share : float64 array, shape (n_systems,), or None
        Where items are of different sizes (sentences of tokens), what a system has of each unit of size: the
        scores are what an item has above that share of its size, else their correlation would be that of a
        size with itself.
    """

    counts: Counts
    metric: BoundMetric
    rows: NDArray[np.int64]
    systems: NDArray[np.int64]
    share: NDArray[np.float64] | None = None

    @staticmethod
    def from_counts(
        counts: Counts, metric: BoundMetric, mask: NDArray[np.bool_] | None, systems: NDArray[np.int64]
    ) -> ItemScores:
        """Return the scores of the items that all systems have, corrected for size if items differ in size."""
        rows = np.flatnonzero(counts.in_common(systems.tolist(), mask, metric.held))
        items = ItemScores(counts, metric, rows, systems)
        above, sizes = np.zeros(len(systems)), np.zeros(len(systems))
        min_size, max_size = np.inf, -np.inf
        for scores, below in items._iter_blocks():
            above, sizes = above + scores.sum(axis=0), sizes + below.sum(axis=0)
            min_size, max_size = below.min(initial=min_size), below.max(initial=max_size)
        return items if min_size >= max_size else replace(items, share=above / sizes)

    def iter_scores(self) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of blocks of items, shape (n_block, n_systems)."""
        for scores, sizes in self._iter_blocks():
            yield scores if self.share is None else scores - sizes * self.share

    def _iter_blocks(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield numerators and denominators of items with a denominator above 0, in blocks that fit into memory."""
        for above, below in iter_ratios(self.counts, self.metric, self.rows, self.systems):
            is_counted = (below > 0).all(axis=1)
            yield (above, below) if is_counted.all() else (above[is_counted], below[is_counted])


def iter_ratios(
    counts: Counts, metric: BoundMetric, rows: NDArray[np.int64], systems: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield numerators and denominators of items under a metric of one ratio, in blocks of items.

    Parameters
    ----------
    counts : Counts
        The test set.
    metric : BoundMetric
        Its form is one ratio.
    rows : int64 array, shape (n_items,)
        The items.
    systems : int64 array, shape (n_systems,)
        The systems.
    """
    form = metric.form
    assert isinstance(form, Ratios)
    step, is_complete = max(1, MOST_NUMBERS // max(len(systems), 1)), len(rows) == counts.n_items
    fields = [metric.get_field(name, counts) for name in metric.fields]
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        above, below = np.zeros((2, len(rows[block]), len(systems)))
        for values, above_weight, below_weight in zip(fields, form.numerators[0], form.denominators[0], strict=True):
            selected = values[block if is_complete else rows[block]]
            selected = selected if selected.shape[1] == 1 or len(systems) == selected.shape[1] else selected[:, systems]
            above += above_weight * selected if above_weight else 0
            below += below_weight * selected if below_weight else 0
        yield above, below
