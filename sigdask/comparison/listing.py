"""What is compared, as columns: a row for each pair, metric and subset, and where its counts stand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.table import Coded, Subset
from sigdask.counts import Counts
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.randomization.panels import ComparedPanel

Places = NDArray[np.int32]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Comparisons:
    """The comparisons of one test set: arrays of shape (n,), in the order of subsets, pairs and metrics.

    Attributes
    ----------
    counts : Counts
        The test set, with the unit that is exchanged.
    metrics : tuple of BoundMetric, BoundSets or BlackBox
        All metrics, by their places.
    panels : tuple of panels
        All panels, by their places.
    masks : tuple of bool array, shape (n_items,), or None
        The items of each subset, by its code.
    a, b : int32
        Systems, places in `counts.systems`.
    metric, panel : int32
        Places among `metrics` and `panels`.
    subset : Coded of Subset or None
    row, column : int32
        Where the comparison stands in its panel.
    n_items, n_units, n_discordant : int64
        Items and units that both systems have in the metric; units that differ in the metric's own fields.
    sampled, enumerated : bool
        Which arrangements are counted.
    n_trials : int64
        Trials of a sample.
    """

    counts: Counts
    metrics: tuple[BoundMetric | BoundSets | BlackBox, ...]
    panels: tuple[ComparedPanel, ...]
    masks: tuple[NDArray[np.bool_] | None, ...]
    a: Places
    b: Places
    metric: Places
    subset: Coded[Subset | None]
    panel: Places
    row: Places
    column: Places
    n_items: Integers
    n_units: Integers
    n_discordant: Integers
    sampled: NDArray[np.bool_]
    enumerated: NDArray[np.bool_]
    n_trials: Integers

    def __len__(self) -> int:
        return len(self.a)

    def label(self, k: int) -> str:
        """Return what is compared, for errors."""
        a, b = (self.counts.systems[int(side[k])] for side in (self.a, self.b))
        return f"{a} and {b} by {self.metrics[int(self.metric[k])].name}"


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """Where one kind of counts of each comparison stands: arrays of shape (n,).

    Attributes
    ----------
    job : int32
        The place of the job among those of the exchange; -1 where there is none.
    row, column : int32
        In the job's panel.
    """

    job: Places
    row: Places
    column: Places


@dataclass(frozen=True, slots=True, eq=False)
class Slots:
    """Where the counts of comparisons stand: of the first and second run, and of all arrangements."""

    first: Standing
    second: Standing
    exact: Standing
