"""Differences of a few pairs after swaps, trial by trial. Tallies count exceedances of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sigdask.counts.fields import Bools, Floats
from sigdask.counts.precision import TIE
from sigdask.randomization.panels import RescoredPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import iter_slabs

PairPanel = Panel | RescoredPanel


@dataclass(frozen=True, slots=True, eq=False)
class TrialDifferences:
    """The differences of one pair under one metric after swaps.

    Attributes
    ----------
    observed : float
        The observed difference, by the same steps.
    differences : float64 array, shape (n_trials,)
        Differences in the order of the trials.
    extreme : bool array, shape (n_trials, 3)
        Whether a tally counts each of them: T >= t, T <= t and |T| >= |t|, with ties.
    """

    observed: float
    differences: Floats
    extreme: Bools

    @staticmethod
    def from_differences(observed: float, differences: Floats, tie: Floats) -> TrialDifferences:
        """Return differences after swaps with marks of the exceedances among them; `tie` is the slack of each."""
        tails = differences >= observed - tie, differences <= observed + tie, np.abs(differences) >= abs(observed) - tie
        return TrialDifferences(observed, differences, np.column_stack(tails))


def iter_differences(panel: PairPanel, *, n_trials: int, run: int = 0, first: int = 0) -> Iterator[TrialDifferences]:
    """Yield the differences after swaps of each pair of a panel under its first metric, pair by pair.

    `panel.tally` counts the exceedances of the same trials. All differences are held in memory at once.

    Parameters
    ----------
    panel : Panel or RescoredPanel
        A panel of the wanted pairs.
    n_trials, run, first : int
        The trials.
    """
    if isinstance(panel, Panel):
        yield from _iter_from_sums(panel, n_trials=n_trials, run=run, first=first)
        return
    scores = panel.compute_trial_scores(run=run, first=first, n_trials=n_trials)
    for (a, b), observed in zip(scores, panel.observed_differences[:, 0].tolist(), strict=True):
        tie = float(TIE) * (np.abs(a) + np.abs(b)) + panel.trial_slack
        yield TrialDifferences.from_differences(observed, a - b, tie)


def _iter_from_sums(panel: Panel, *, n_trials: int, run: int, first: int) -> Iterator[TrialDifferences]:
    """Yield each pair's differences after swaps, for a panel of sums, whose pairs share the swaps of a trial."""
    rows = np.arange(len(panel.pairs))
    differences, tie = np.zeros((2, len(rows), n_trials))
    observed, position = np.zeros(len(rows)), 0
    for slab in iter_slabs(panel, run=run, first=first, n_trials=n_trials):
        block = slice(position, position := position + slab.n_trials)
        out, slack = np.zeros((2, len(rows), slab.n_trials))
        slab.kernels[0].add(slab, rows, 1.0, out, slack)
        differences[:, block], tie[:, block] = out, slack
        observed = slab.get_observed(0)
    for k in rows:
        yield TrialDifferences.from_differences(float(observed[k]), differences[k], tie[k])
