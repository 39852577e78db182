"""The correlation of two systems' item scores, r12 of Yeh 2000: for all pairs of the systems that share items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import Comparisons
from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, rows_of
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.statistics.classical.correlation import correlations

FEW = 64
"""Pairs of which one is worth that many products of a matrix."""

MOST_NUMBERS = 2**18
"""Item scores that are laid out at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class TestSetCorrelations:
    """The comparisons of one test set, and how far the scores of their systems go together."""

    asked: Comparisons

    @property
    def r12(self) -> NDArray[np.float64]:
        """r12, NaN where the metric is no mean over a fixed set of items or a system's scores are all the same."""
        asked = self.asked
        found = np.full(len(asked), np.nan)
        for own in rows_of(numbered(asked.panel, asked.metric, asked.subset.codes)):
            if (r := self._of(own)) is not None:
                found[own] = r
        return found

    def _of(self, own: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return r12 of comparisons of one panel, metric and subset, which have the same items."""
        asked, k = self.asked, int(own[0])
        metric = asked.metrics[int(asked.metric[k])]
        if not isinstance(metric, BoundMetric) or not asked.panels[int(asked.panel[k])].is_mean(int(asked.column[k])):
            return None
        systems, places = np.unique(np.concatenate([asked.a[own], asked.b[own]]), return_inverse=True)
        items = ItemScores.of(asked.counts, metric, asked.masks[int(asked.subset.codes[k])], systems)
        i, j = places[: len(own)], places[len(own) :]
        if len(own) * FEW < len(systems) ** 2:
            return correlations(items.scores, (i, j))
        return np.asarray(correlations(items.scores)[i, j])


@dataclass(frozen=True, slots=True, eq=False)
class ItemScores:
    """The scores of the items that the denominator of a mean counts, for some systems that all have them.

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
    def of(
        counts: Counts, metric: BoundMetric, mask: NDArray[np.bool_] | None, systems: NDArray[np.int64]
    ) -> ItemScores:
        """Find the items, and whether they are of one size."""
        rows = np.flatnonzero(counts.in_common(systems.tolist(), mask, metric.held))
        items = ItemScores(counts, metric, rows, systems)
        above, sizes = np.zeros(len(systems)), np.zeros(len(systems))
        least, most = np.inf, -np.inf
        for scores, below in items._blocks():
            above, sizes = above + scores.sum(axis=0), sizes + below.sum(axis=0)
            least, most = below.min(initial=least), below.max(initial=most)
        return items if least >= most else replace(items, share=above / sizes)

    def scores(self) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of some items at a time, shape (n_some, n_systems)."""
        for scores, sizes in self._blocks():
            yield scores if self.share is None else scores - sizes * self.share

    def _blocks(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Yield numerators and denominators of items that the denominator counts, as many as memory allows."""
        for above, below in ratios_of(self.counts, self.metric, self.rows, self.systems):
            kept = (below > 0).all(axis=1)
            yield (above, below) if kept.all() else (above[kept], below[kept])


def ratios_of(
    counts: Counts, metric: BoundMetric, rows: NDArray[np.int64], systems: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield numerators and denominators of items under a metric of one ratio, some items at a time.

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
    step, whole = max(1, MOST_NUMBERS // max(len(systems), 1)), len(rows) == counts.n_items
    fields = [metric.field(name, counts) for name in metric.fields]
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        above, below = np.zeros((2, len(rows[some]), len(systems)))
        for values, up, down in zip(fields, form.numerators[0], form.denominators[0], strict=True):
            own = values[some if whole else rows[some]]
            own = own if own.shape[1] == 1 or len(systems) == own.shape[1] else own[:, systems]
            above += up * own if up else 0
            below += down * own if down else 0
        yield above, below
