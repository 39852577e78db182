"""Exceedances of each single trial, to find the trial in which one occurred."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.slabs import compute_slab_size, iter_slabs

AT_ONCE = 2**19
"""Pairs and trials that are looked at together, some 50 bytes each."""


def count_by_trial(panel: AnyPanel, *, run: int, first: int, n_trials: int) -> NDArray[np.uint8]:
    """Return the exceedances of each single trial, shape (n_trials, n_pairs, n_metrics, n_tails).

    A panel of sums computes the trials of a slab together. Other panels tally one trial at a time.
    """
    counts = np.zeros((n_trials, *panel.shape, panel.manner.n_tails), np.uint8)
    if not isinstance(panel, ScoredSums):
        for k in range(n_trials):
            counts[k] = panel.tally(run=run, first=first + k, n_trials=1).counts
        return counts
    start, size = 0, min(compute_slab_size(panel), max(1, AT_ONCE // max(1, panel.shape[0])))
    for slab in iter_slabs(panel, run=run, first=first, n_trials=n_trials, size=size):
        for m in range(len(panel.metrics)):
            by_trial = np.zeros((panel.shape[0], slab.n_trials, counts.shape[-1]), np.int64)
            slab.count_by_trial(m, by_trial)
            counts[start : start + slab.n_trials, :, m] = by_trial.transpose(1, 0, 2)
        start += slab.n_trials
    return counts
