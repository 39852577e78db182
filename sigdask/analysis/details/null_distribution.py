"""The null distribution of a difference: differences after swaps, and where the observed one lies.

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
from sigdask.randomization.stream.trial_differences import PairPanel, TrialDifferences, iter_differences

MOST_TRIALS, FEWEST_TRIALS = 2**16, 2**10

MOST_WORK = 2**28
"""Contributions of units that are summed for it, for each pair."""

BOX_TRIALS_RATIO, MIN_BOX_TRIALS = 100, 16
"""Trials of a black box are slow: one in so many of those asked for is made again, and at least so many."""


@dataclass(frozen=True, slots=True, eq=False)
class NullDistribution:
    """The null distribution of one difference, as a histogram.

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
    def from_differences(swapped: TrialDifferences, tail: int, *, is_whole: bool) -> NullDistribution:
        """Return the null distribution from the differences after swaps, marking extreme ones by the tail."""
        is_extreme = swapped.extreme[:, tail]
        return NullDistribution(
            observed=swapped.observed,
            n_trials=len(is_extreme),
            n_extreme=int(np.count_nonzero(is_extreme)),
            is_whole=is_whole,
            histogram=EqualBars.from_values(swapped.differences, is_extreme),
        )


def iter_null_distributions(
    panel: PairPanel, rows: NDArray[np.int64], column: int, tails: Sequence[int], n_requested: NDArray[np.int64]
) -> Iterator[NullDistribution]:
    """Yield the null distribution of the difference of each of some pairs, under one metric of a panel.

    Parameters
    ----------
    panel : Panel, PresencePanel or OutputsPanel
        What was counted.
    rows, column
        Pairs and metric, by their places in it.
    tails : sequence of int
        The tail of each pair's alternative.
    n_requested : int64 array, shape (n_rows,)
        Trials that each was asked for.
    """
    n_trials = choose_trials(panel, column, int(n_requested.max()))
    n_arrangements = 1 << np.minimum(panel.n_discordant[rows, column], 40)
    for row, tail, n_all, n_asked in zip(
        rows.tolist(), tails, n_arrangements.tolist(), n_requested.tolist(), strict=True
    ):
        n_trials = choose_trials(panel, column, n_asked)
        if is_whole := n_all <= n_trials:
            [swapped] = iter_differences(panel.build_enumeration(row, column), n_trials=n_all)
        else:
            [swapped] = iter_differences(panel.select([row], [column]), n_trials=min(n_trials, n_asked))
        yield NullDistribution.from_differences(swapped, tail, is_whole=is_whole)


def choose_trials(panel: PairPanel, column: int, n_asked: int) -> int:
    """Return the maximum number of trials to draw for a pair's null distribution, the same on any machine."""
    if isinstance(panel, OutputsPanel):
        return max(n_asked // BOX_TRIALS_RATIO, MIN_BOX_TRIALS)
    size = 2 * len(panel.metrics[column].fields) if isinstance(panel, Panel) else 2
    return int(np.clip(MOST_WORK // max(len(panel.addresses) * size, 1), FEWEST_TRIALS, MOST_TRIALS))
