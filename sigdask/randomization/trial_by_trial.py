"""Exceedances of each trial for itself, where it is asked in which trial one came."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.kernels.sums import Room
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.slabs import slabs


def trial_by_trial(panel: AnyPanel, *, run: int, first: int, n_trials: int) -> NDArray[np.int64]:
    """Return the counts of each trial, shape (n_trials, n_pairs, n_metrics, n_tails): those of `tally`, not yet added.

    Of sums the trials are shuffled together, which takes no longer than one, and then counted one by one.
    """
    counts = np.zeros((n_trials, *panel.shape, panel.manner.n_tails), np.int64)
    if not isinstance(panel, ScoredSums):
        for k in range(n_trials):
            counts[k] = panel.tally(run=run, first=first + k, n_trials=1).counts
        return counts
    at = 0
    for slab in slabs(panel, run=run, first=first, n_trials=n_trials):
        room = Room.of(slab.arranged, 1)
        for k in range(slab.n_trials):
            one = replace(slab, moved=np.ascontiguousarray(slab.moved[:, k : k + 1]), room=room, _prepared={})
            for m in range(len(panel.metrics)):
                one.count(m, counts[at + k, :, m])
        at += slab.n_trials
    return counts
