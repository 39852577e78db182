"""How p came about: the bound after 16, 32, 64, ... trials of the first run, and of the second beside it.

The counts are exact, made again from the stream's first trials by the panel's own tally; where all trials would take
too long, those up to a power of two, and at the end what the result says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.stream.shuffled_differences import Whole
from sigdask.statistics import bounds

Integers = NDArray[np.int64]

FIRST = 16
"""Trials that the first point is of."""

MOST_WORK = 2**35
"""Contributions that are summed, eight at a time, and numbers that are scored, in one run of all that is opened."""

LINEAR, SCORED = 4, 64
"""What a trial of a pair and field of a mean, and of another score, takes beyond the sums, in these."""


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """The exceedances of one run among its first trials.

    Attributes
    ----------
    n_trials, n_extreme : int64 array, shape (n_points,)
        Rising; the last is the result's.
    """

    n_trials: Integers
    n_extreme: Integers

    @property
    def p_values(self) -> NDArray[np.float64]:
        """The bounds."""
        return bounds.bound(self.n_extreme, self.n_trials)

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of their 99 % intervals."""
        return bounds.interval(self.n_extreme, self.n_trials)

    def ended(self, n_trials: int, n_extreme: int) -> Convergence:
        """Return the points within so many trials, the last of which is known already."""
        inside = self.n_trials < n_trials
        return Convergence(np.append(self.n_trials[inside], n_trials), np.append(self.n_extreme[inside], n_extreme))


def prefixes(panel: Whole, *, run: int, most: int, share: int = 1) -> tuple[Integers, Integers]:
    """Return how many exceedances the first trials of a run hold: trials (n_points,), counts (n_points, ..., n_tails).

    Parameters
    ----------
    panel : Panel, PresencePanel or OutputsPanel
        Its part of the pairs that are looked at.
    run, most : int
        Which run, and how many trials of it there are.
    share : int
        Panels that are counted for the same page.
    """
    ends = list(_points(min(most, affordable(panel) // share)))
    counts = np.zeros((len(ends), *panel.shape, panel.manner.n_tails), np.int64)
    for k, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        counts[k] = panel.tally(run=run, first=first, n_trials=end - first).counts
    return np.array(ends, np.int64), np.cumsum(counts, axis=0)


def _points(most: int) -> Iterator[int]:
    """Yield powers of two of trials, up to `most`."""
    end = FIRST
    while end <= most:
        yield end
        end *= 2


def affordable(panel: Whole) -> int:
    """Return how many trials are counted again at most, of a panel alone: by what they take, the same anywhere."""
    if isinstance(panel, OutputsPanel):
        return 0
    n_pairs, n_systems = len(panel.pairs), len(np.unique(panel.pairs))
    if not isinstance(panel, Panel):
        return MOST_WORK // max(sum(map(len, panel.holdings)) * n_pairs // 8, 1)
    sums = len(panel.addresses) * n_systems // 8
    own = zip(panel.metrics, panel.linear, strict=True)
    work = sum(len(metric.fields) * (sums + n_pairs * (LINEAR if mean else SCORED)) for metric, mean in own)
    return MOST_WORK // max(work, 1)
