"""Joint counts of families: how often the largest statistic of all is as extreme as one's own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.randomization.kernels.differences import raise_linear, raise_maxima, raise_scaled
from sigdask.randomization.kernels.sums import layout
from sigdask.randomization.panels.families import Family, chunks
from sigdask.randomization.slabs import Slab, slab_size, slabs
from sigdask.randomization.tallies import Tally

CHUNK = 16
"""Hypotheses whose differences are written out at a time, so that they stay in the L2 cache."""

ROOMS_BYTES = 2**27
"""What the slabs of all panels of a family may take: one each is held at a time."""
WORD_BYTES, SUM_BYTES = 16, 8
"""What a trial takes of them: the swap word, and a sum a column."""


def family_tally(family: Family, *, run: int, first: int, n_trials: int) -> Tally:
    """Count a family: marginal tails, single-step and step-down, in trials of a run.

    Parameters
    ----------
    family : Family
        The hypotheses.
    run, first, n_trials : int
        As in `count.tally`.

    Returns
    -------
    Tally
        counts of shape (n_hypotheses, 1, 5), tails as in `FAMILY_TAILS`.

    References
    ----------
    Westfall & Young 1993, "Resampling-based multiple testing", algorithms 2.5 and 2.8.
    """
    counts = np.zeros((len(family.parts), Family.manner.n_tails), np.int64)
    size = min(n_trials, _together(family), *(slab_size(panel) for panel in family.panels))
    streams = [slabs(panel, run=run, first=first, n_trials=n_trials, size=size) for panel in family.panels]
    place = {id(panel): k for k, panel in enumerate(family.panels)}
    add = _add_integers if family.is_integral else _add_floats
    room = np.empty((3, CHUNK, size))
    for row in zip(*streams, strict=True):
        add(family, [row[place[id(member.panel)]] for member in family.members], room, counts)
    return Tally(n_trials, counts[:, None, :])


def _together(family: Family) -> int:
    """Return how many trials a slab may have, that those of all panels fit in memory together."""
    a_trial = sum(WORD_BYTES + layout(panel).n_columns * SUM_BYTES + panel.totals.nbytes for panel in family.panels)
    return max(ROOMS_BYTES // a_trial // 256 * 256, 1024)


def _add_integers(family: Family, by_member: list[Slab], _room: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
    """Add the counts of one slab where the statistics are integers."""
    slab, order, member = by_member[0], family.order, family.members[0]
    moved, totals = slab.linear(member.metric)
    pairs = slab.panel.pairs[family.parts[:, 0, 1]]
    observed = totals[pairs[:, 0]] - totals[pairs[:, 1]]
    own = np.abs(observed) if family.side == 0 else family.side * observed
    found = np.zeros((len(order), 4), np.int64)
    if family.studentised:
        scales = family.scales * (abs(member.weight) * slab.panel.unit_of(member.metric))
        own = _within_rounding(own * scales, scales)
        largest = np.full(slab.n_trials, -np.inf)
        raise_scaled(moved, pairs[order], observed[order], scales[order], own[order], family.side, largest, found)
    else:
        largest = np.full(slab.n_trials, np.iinfo(moved.dtype).min, moved.dtype)
        raise_linear(moved, pairs[order], observed[order], family.side, largest, found)
    counts[order, :3] += found[:, :3]
    counts[order, 4] += found[:, 3]
    _single_step(largest, own, counts)


def _add_floats(family: Family, by_member: list[Slab], room: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
    """Add the counts of one slab, a chunk of hypotheses at a time."""
    observed, scales, here = family.observed, family.scales, by_member[0].n_trials
    own = _within_rounding(family.statistics, scales, family.rounding) if family.studentised else family.statistics
    largest = room[2, 0, :here]
    largest[:] = -np.inf
    for some in chunks(family.order, CHUNK):
        out, tie = room[0, : len(some), :here], room[1, : len(some), :here]
        _differences(family, by_member, some, out, tie)
        found = np.zeros((len(some), 4), np.int64)
        raise_maxima(out, tie, observed[some], scales[some], own[some], family.side, largest, found)
        counts[some, :3] += found[:, :3]
        counts[some, 4] += found[:, 3]
    _single_step(largest, own, counts)


def _within_rounding(
    statistics: NDArray[np.float64], scales: NDArray[np.float64], rounding: float = TIE
) -> NDArray[np.float64]:
    """Return what a maximum must reach: a tie of two scales counts; all reach that of a hypothesis without one."""
    return np.where(scales > 0, statistics - rounding * np.abs(statistics), -np.inf)


def _single_step(largest: NDArray[Any], own: NDArray[Any], counts: NDArray[np.int64]) -> None:
    """Add the trials whose largest statistic of all is at least each one's own."""
    largest.sort()
    counts[:, 3] += len(largest) - np.searchsorted(largest, own.astype(largest.dtype), side="left")


def _differences(
    family: Family,
    by_member: list[Slab],
    some: NDArray[np.int64],
    out: NDArray[np.float64],
    tie: NDArray[np.float64],
) -> None:
    """Write the statistics of some hypotheses, shape (n_some, n_trials), and their slack."""
    out[:], tie[:] = 0.0, 0.0
    parts = family.parts[some]
    for part in range(parts.shape[1]):
        members = parts[:, part, 0]
        for k in np.unique(members):
            member, which = family.members[k], np.flatnonzero(members == k)
            rows = parts[which, part, 1]
            if len(which) == len(some):
                by_member[k].add(member.metric, rows, member.weight, out, tie)
                continue
            own = np.zeros((2, len(which), out.shape[1]))
            by_member[k].add(member.metric, rows, member.weight, own[0], own[1])
            out[which] += own[0]
            tie[which] += own[1]
