"""Joint counts of relabellings: how often the largest range of scores is as large as one's own difference."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.randomization.kernels.relabel import relabelled_sums
from sigdask.randomization.panels.families import Member, Relabelling
from sigdask.randomization.shuffles import relabel_word
from sigdask.randomization.tallies import Tally

TILE_BYTES = 2**20


def relabel_tally(family: Relabelling, *, run: int, first: int, n_trials: int) -> Tally:
    """Count a relabelling: trials whose largest range of scores is at least each |difference|.

    References
    ----------
    Carterette 2012, "Multiple testing in statistical analysis of systems-based information
    retrieval experiments", section 4.3; Smucker, Allan & Carterette 2007.
    """
    ranges = np.zeros(n_trials)
    for member in family.members:
        _raise_ranges(member, run, first, ranges, enumerated=family.enumerated)
    ranges.sort()
    extreme = n_trials - np.searchsorted(ranges, family.observed, side="left")
    return Tally(n_trials, extreme.astype(np.int64)[:, None, None])


def _raise_ranges(member: Member, run: int, first: int, ranges: NDArray[np.float64], *, enumerated: bool) -> None:
    panel, m = member.panel, member.metric
    size = max(1, TILE_BYTES // (panel.totals.nbytes or 1))
    fixed = panel.totals - panel.values.sum(axis=0)
    sums = np.empty((min(size, len(ranges)), *panel.totals.shape), np.int64)
    key, word = np.array(panel.key, np.uint32), relabel_word(run)
    for start in range(0, len(ranges), size):
        here = sums[: len(ranges) - start]
        relabelled_sums(key, word, first + start, panel.addresses, panel.values, fixed, enumerated, here)
        scores = panel.metrics[m].form.score(panel.sums(m, here))
        slack = _lattice_slack(member, here)
        high, low = scores.max(axis=1), scores.min(axis=1)
        reach = (high - low + 2 * TIE * (np.abs(high) + np.abs(low)) + slack) * member.weight
        now = ranges[start : start + len(here)]
        np.maximum(now, reach, out=now)


def _lattice_slack(member: Member, sums: NDArray[np.int64]) -> Any:
    """Return how far a range can miss a true tie, in units of the score: a number, or one a trial."""
    panel, m = member.panel, member.metric
    if panel.is_approximate(m):
        return 2 * panel.movement(m, sums).max(axis=1) + panel.observed_movement[:, m].max()
    if not panel.linear[m] or all(panel.lattices[f].slack == 0 for f in panel.compared(m)):
        return 0.0
    return 2 * panel.steps(m) * float(panel.sizes.sum()) * panel.unit_of(m)
