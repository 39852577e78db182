"""The null distribution of a difference: what shuffling makes of it, and where the observed one lies.

All arrangements where they are few, else the first trials of the first run: those that p is counted of, as many as
take some tens of milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details.histogram import EqualBars
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.stream.shuffled_differences import ShuffledDifferences, Whole, shuffled

MOST_TRIALS, FEWEST_TRIALS = 2**16, 2**10

MOST_WORK = 2**28
"""Contributions of units that are summed for it, for each pair."""

SHARE, FEWEST_OF_BOXES = 100, 16
"""Trials of a black box are slow: one in so many of those asked for is made again, and at least so many."""


@dataclass(frozen=True, slots=True, eq=False)
class NullDistribution:
    """The null distribution of one difference.

    Attributes
    ----------
    observed : float
        The difference itself.
    n_trials, n_extreme : int
        Trials that are drawn, and those at least as extreme as the observed difference, under the alternative.
    is_whole : bool
        These are all arrangements.
    histogram : EqualBars
        Of their differences; the extreme ones are marked.
    """

    observed: float
    n_trials: int
    n_extreme: int
    is_whole: bool
    histogram: EqualBars

    @staticmethod
    def of(found: ShuffledDifferences, tail: int, *, is_whole: bool) -> NullDistribution:
        """Sort shuffled differences into bars."""
        extreme = found.extreme[:, tail]
        return NullDistribution(
            observed=found.observed,
            n_trials=len(extreme),
            n_extreme=int(np.count_nonzero(extreme)),
            is_whole=is_whole,
            histogram=EqualBars.of(found.differences, extreme),
        )


def nulls(
    panel: Whole, rows: NDArray[np.int64], column: int, tails: Sequence[int], most: NDArray[np.int64]
) -> Iterator[NullDistribution]:
    """Yield the null distribution of some pairs of a panel under one metric.

    Parameters
    ----------
    panel : Panel, PresencePanel or OutputsPanel
        What was counted.
    rows, column
        Pairs and metric, by their places in it.
    tails : sequence of int
        The tail of each pair's alternative.
    most : int64 array, shape (n_rows,)
        Trials that each was asked for.
    """
    n_trials = trials_of(panel, column, int(most.max()))
    whole = 1 << np.minimum(panel.n_discordant[rows, column], 40)
    for row, tail, n_all, n_asked in zip(rows.tolist(), tails, whole.tolist(), most.tolist(), strict=True):
        n_trials = trials_of(panel, column, n_asked)
        if is_whole := n_all <= n_trials:
            [found] = shuffled(panel.enumeration(row, column), n_trials=n_all)
        else:
            [found] = shuffled(panel.part([row], [column]), n_trials=min(n_trials, n_asked))
        yield NullDistribution.of(found, tail, is_whole=is_whole)


def trials_of(panel: Whole, column: int, n_asked: int) -> int:
    """Return how many trials of a pair are drawn at most: by what a trial takes, the same on any machine."""
    if isinstance(panel, OutputsPanel):
        return max(n_asked // SHARE, FEWEST_OF_BOXES)
    size = 2 * len(panel.metrics[column].fields) if isinstance(panel, Panel) else 2
    return int(np.clip(MOST_WORK // max(len(panel.addresses) * size, 1), FEWEST_TRIALS, MOST_TRIALS))
