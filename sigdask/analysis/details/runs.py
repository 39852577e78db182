"""Convergence of p: its bound after 16, 32, 64, ... trials of the first and the second run.

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
from sigdask.randomization.stream.trial_differences import PairPanel
from sigdask.statistics import bounds

Integers = NDArray[np.int64]

FIRST_POINT = 16
"""Trials that the first point is of."""

MOST_WORK = 2**35
"""Contributions that are summed, eight at a time, and numbers that are scored, in one run of all that is opened."""

LINEAR, SCORED = 4, 64
"""What a trial of a pair and field of a mean, and of another score, takes beyond the sums, in these."""


@dataclass(frozen=True, slots=True, eq=False)
class Convergence:
    """Exceedances among the first trials of one run, at increasing numbers of trials.

    Attributes
    ----------
    n_trials, n_extreme : int64 array, shape (n_points,)
        Rising; the last is the result's.
    """

    n_trials: Integers
    n_extreme: Integers

    @property
    def p_values(self) -> NDArray[np.float64]:
        """The bound of p at each point."""
        return bounds.compute_bound(self.n_extreme, self.n_trials)

    @property
    def intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The ends of the 99 % intervals of p at each point."""
        return bounds.clopper_pearson(self.n_extreme, self.n_trials)

    def end_at(self, n_trials: int, n_extreme: int) -> Convergence:
        """Return the points below a number of trials, followed by the known last point."""
        inside = self.n_trials < n_trials
        return Convergence(np.append(self.n_trials[inside], n_trials), np.append(self.n_extreme[inside], n_extreme))


def count_prefixes(panel: PairPanel, *, run: int, max_trials: int, share: int = 1) -> tuple[Integers, Integers]:
    """Return numbers of trials, and the exceedances among so many first trials of a run.

    Parameters
    ----------
    panel : Panel, PresencePanel or OutputsPanel
        Its part of the pairs that are looked at.
    run, max_trials : int
        Which run, and how many trials of it there are.
    share : int
        Panels that are counted for the same page.
    """
    ends = list(_iter_points(min(max_trials, compute_max_trials(panel) // share)))
    counts = np.zeros((len(ends), *panel.shape, panel.manner.n_tails), np.int64)
    for k, (first, end) in enumerate(zip([0, *ends], ends, strict=False)):
        counts[k] = panel.tally(run=run, first=first, n_trials=end - first).counts
    return np.array(ends, np.int64), np.cumsum(counts, axis=0)


def _iter_points(max_trials: int) -> Iterator[int]:
    """Yield powers of two from `FIRST_POINT`, up to `max_trials`."""
    end = FIRST_POINT
    while end <= max_trials:
        yield end
        end *= 2


def compute_max_trials(panel: PairPanel) -> int:
    """Return the number of trials that may be counted again for a panel, the same on any machine."""
    if isinstance(panel, OutputsPanel):
        return 0
    n_pairs, n_systems = len(panel.pairs), len(np.unique(panel.pairs))
    if not isinstance(panel, Panel):
        return MOST_WORK // max(sum(map(len, panel.holdings)) * n_pairs // 8, 1)
    sums = len(panel.addresses) * n_systems // 8
    metric_kinds = zip(panel.metrics, panel.linear, strict=True)
    work = sum(
        len(metric.fields) * (sums + n_pairs * (LINEAR if is_mean else SCORED)) for metric, is_mean in metric_kinds
    )
    return MOST_WORK // max(work, 1)
