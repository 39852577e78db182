"""Shuffled differences themselves, of a few pairs: what tallies count exceedances of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.randomization.kernels.differences import mark_extreme
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import slabs
from sigdask.randomization.tallies import TAILS

Floats = NDArray[np.float64]
Whole = Panel | PresencePanel | OutputsPanel


@dataclass(frozen=True, slots=True, eq=False)
class ShuffledDifferences:
    """The shuffled differences of one pair under one metric.

    Attributes
    ----------
    observed : float
        The observed difference, by the same steps.
    differences : float64 array, shape (n_trials,)
        Of the trials, one after the other.
    extreme : bool array, shape (n_trials, 3)
        Which of them a tally counts: T >= t, T <= t and |T| >= |t|, where ties count.
    """

    observed: float
    differences: Floats
    extreme: NDArray[np.bool_]

    @staticmethod
    def of(observed: float, differences: Floats, tie: Floats) -> ShuffledDifferences:
        """Hold differences against the observed one, of which each may miss a tie by so much."""
        extreme = np.empty((len(differences), len(TAILS)), np.bool_)
        mark_extreme(differences, tie, observed, extreme)
        return ShuffledDifferences(observed, differences, extreme)


def shuffled(panel: Whole, *, n_trials: int, run: int = 0, first: int = 0) -> Iterator[ShuffledDifferences]:
    """Yield the shuffled differences of each pair of a panel under its first metric, pair after pair.

    Those of the same trials as `panel.tally` counts; all of them are held at once.

    Parameters
    ----------
    panel : Panel, PresencePanel or OutputsPanel
        Its part of the pairs that are looked at.
    n_trials, run, first : int
        The trials.
    """
    if isinstance(panel, Panel):
        yield from _of_sums(panel, n_trials=n_trials, run=run, first=first)
        return
    scores = panel.shuffled(run=run, first=first, n_trials=n_trials)
    for (a, b), seen in zip(scores, panel.scores_of_pairs[:, 0], strict=True):
        yield ShuffledDifferences.of(float(seen[0] - seen[1]), a - b, float(TIE) * (np.abs(a) + np.abs(b)))


def _of_sums(panel: Panel, *, n_trials: int, run: int, first: int) -> Iterator[ShuffledDifferences]:
    """Yield those of sums: of all pairs, whose trials are shuffled together."""
    every = np.arange(len(panel.pairs))
    differences, tie = np.zeros((2, len(every), n_trials))
    observed, at = np.zeros(len(every)), 0
    for slab in slabs(panel, run=run, first=first, n_trials=n_trials):
        here = slice(at, at := at + slab.n_trials)
        out, miss = np.zeros((2, len(every), slab.n_trials))
        slab.add(0, every, 1.0, out, miss)
        differences[:, here], tie[:, here] = out, miss
        observed = slab.observed(0)
    for k in every:
        yield ShuffledDifferences.of(float(observed[k]), differences[k], tie[k])
