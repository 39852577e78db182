"""Approximate randomization: tallies of exceedances, and the bound and interval they give.

Yeh 2000 ("More accurate tests for the statistical significance of result differences"), after
Noreen 1989: exchange the outputs of each unit with probability 1/2, score again, and count the
trials whose difference is at least as extreme as the observed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from sigdask.errors import InputError
from sigdask.randomization.kernels.exceedances import count_scores
from sigdask.randomization.kernels.sets import distinct_terms, scores_of
from sigdask.randomization.max_t import family_tally
from sigdask.randomization.panels.families import Family, Relabelling
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import slabs
from sigdask.randomization.tallies import TAILS, Tally
from sigdask.randomization.tukey import relabel_tally
from sigdask.statistics.bounds import MAX_TRIALS

AnyPanel = Panel | PresencePanel | OutputsPanel | Family | Relabelling

DEFAULT_TRIALS = 2**20


def count(panel: AnyPanel, *, run: int, first: int, n_trials: int) -> Tally:
    """Count any kind of panel in trials `first` to `first + n_trials - 1` of a run."""
    counters: dict[type, Any] = {
        PresencePanel: presence_tally,
        OutputsPanel: black_box_tally,
        Family: family_tally,
        Relabelling: relabel_tally,
    }
    counter = counters.get(type(panel), tally)
    counted: Tally = counter(panel, run=run, first=first, n_trials=n_trials)
    return counted


def tally(panel: Panel, *, run: int = 0, first: int = 0, n_trials: int = DEFAULT_TRIALS) -> Tally:
    """Count exceedances in trials `first` to `first + n_trials - 1` of a run.

    The same data, seed and trials give the same counts on any machine, in any partition.

    Parameters
    ----------
    panel : Panel
        Systems, pairs and metrics.
    run : int
        0 for the first run, 1 for the second; at most 255.
    first, n_trials : int
        The range of trials.
    """
    if n_trials < 1 or first < 0 or first + n_trials > MAX_TRIALS:
        raise InputError(f"trials {first} to {first + n_trials - 1}: must lie in 0 to 2**48 - 1, at least one")
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    for slab in slabs(panel, run=run, first=first, n_trials=n_trials):
        for m in range(len(panel.metrics)):
            slab.count(m, counts[:, m])
    return Tally(n_trials, counts)


def black_box_tally(panel: OutputsPanel, *, run: int, first: int, n_trials: int) -> Tally:
    """Count exceedances of one pair under one black-box metric; the same guarantees as `tally`."""
    a, b = np.empty(n_trials), np.empty(n_trials)
    for start, here in ranges(n_trials, 256):
        for k, swapped in enumerate(panel.swaps(run=run, first=first + start, n_trials=here)):
            a[start + k], b[start + k] = panel.score(swapped)
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    observed = panel.scores[0, 0] - panel.scores[1, 0]
    count_scores(a, b, np.zeros_like(a), observed, counts[0, 0])
    return Tally(n_trials, counts)


def presence_tally(panel: PresencePanel, *, run: int, first: int, n_trials: int) -> Tally:
    """Count exceedances of pairs under set metrics; the same guarantees as `tally`."""
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    n_gold = int(panel.totals[0, 2])
    observed = panel.scores[panel.pairs[:, 0]] - panel.scores[panel.pairs[:, 1]]  # (n_pairs, n_metrics)
    for p, found in distinct_terms(panel, run=run, first=first, n_trials=n_trials):
        for m, metric in enumerate(panel.metrics):
            a, b = scores_of(found, n_gold, metric.form)
            count_scores(a, b, np.zeros_like(a), observed[p, m], counts[p, m])
    return Tally(n_trials, counts)


def ranges(n_trials: int, size: int) -> Iterator[tuple[int, int]]:
    """Split trials into ranges of at most `size`: (first, number).

    Examples
    --------
    >>> list(ranges(10, 4))
    [(0, 4), (4, 4), (8, 2)]
    """
    for first in range(0, n_trials, size):
        yield first, min(size, n_trials - first)
