"""Approximate randomization: tallies of exceedances, and the bound and interval they give.

Yeh 2000 ("More accurate tests for the statistical significance of result differences"), after
Noreen 1989: exchange the outputs of each unit with probability 1/2, score again, and count the
trials whose difference is at least as extreme as the observed one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.errors import InputError
from sigdask.kernels.exceedances import TIE, count_linear, count_ratio, count_scores
from sigdask.kernels.presence import distinct_terms, scores_of
from sigdask.kernels.scored import count_scored, parameters
from sigdask.kernels.sums import Layout, Room, combined, layout, moved_sums
from sigdask.metrics.forms import Ratios
from sigdask.outputs import OutputsPanel
from sigdask.panels import Panel
from sigdask.presence import PresencePanel
from sigdask.shuffles import MAX_TRIALS

Alternative = Literal["two-sided", "greater", "less"]
TAILS: tuple[str, ...] = ("greater", "less", "two-sided", "joint")
"""The last axis of a tally's counts."""

DEFAULT_TRIALS = 2**20
DEFAULT_CONFIDENCE = 0.99


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Exceedances counted over some trials; tallies of disjoint trials add.

    Attributes
    ----------
    n_trials : int
        Trials counted.
    counts : int64 array, shape (n_pairs, n_metrics, 4)
        Trials with T >= t, T <= t, |T| >= |t|, and max over the panel's pairs |T| >= |t| (the
        joint tail, counted on request).
    """

    n_trials: int
    counts: NDArray[np.int64]

    @staticmethod
    def zero(shape: tuple[int, int]) -> Tally:
        """Return the tally of no trials."""
        return Tally(0, np.zeros((*shape, len(TAILS)), np.int64))

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n_trials + other.n_trials, self.counts + other.counts)


def count(
    panel: Panel | PresencePanel | OutputsPanel, *, run: int, first: int, n_trials: int, joint: bool = False
) -> Tally:
    """Count any kind of panel: `tally`, `presence_tally` for sets, `black_box_tally` for whole outputs."""
    if isinstance(panel, PresencePanel):
        return presence_tally(panel, run=run, first=first, n_trials=n_trials)
    if isinstance(panel, OutputsPanel):
        return black_box_tally(panel, run=run, first=first, n_trials=n_trials)
    return tally(panel, run=run, first=first, n_trials=n_trials, joint=joint)


def tally(panel: Panel, *, run: int = 0, first: int = 0, n_trials: int = DEFAULT_TRIALS, joint: bool = False) -> Tally:
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
    joint : bool
        Count the joint tail as well.
    """
    if n_trials < 1 or first < 0 or first + n_trials > MAX_TRIALS:
        raise InputError(f"trials {first} to {first + n_trials - 1}: must lie in 0 to 2**48 - 1, at least one")
    arranged = layout(panel)
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    size = min(arranged.slab, n_trials)
    room = Room.of(arranged, size)
    for start in range(first, first + n_trials, size):
        here = min(size, first + n_trials - start)
        moved = moved_sums(panel, arranged, run=run, first=start, n_trials=here, room=room)
        for m in range(len(panel.metrics)):
            _count_metric(panel, arranged, m, moved, room, counts[:, m], joint=joint)
    return Tally(n_trials, counts)


def black_box_tally(panel: OutputsPanel, *, run: int, first: int, n_trials: int) -> Tally:
    """Count exceedances of one pair under one black-box metric; the same guarantees as `tally`."""
    a, b = np.empty(n_trials), np.empty(n_trials)
    for start, here in ranges(n_trials, 256):
        for k, swapped in enumerate(panel.swaps(run=run, first=first + start, n_trials=here)):
            a[start + k], b[start + k] = panel.score(swapped)
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    observed = panel.scores[0, 0] - panel.scores[1, 0]
    count_scores(a, b, observed, counts[0, 0, :3], np.empty(0))
    return Tally(n_trials, counts)


def presence_tally(panel: PresencePanel, *, run: int, first: int, n_trials: int) -> Tally:
    """Count exceedances of pairs under set metrics; the same guarantees as `tally`."""
    counts = np.zeros((*panel.shape, len(TAILS)), np.int64)
    n_gold = int(panel.totals[0, 2])
    observed = panel.scores[panel.pairs[:, 0]] - panel.scores[panel.pairs[:, 1]]  # (n_pairs, n_metrics)
    for p, found in distinct_terms(panel, run=run, first=first, n_trials=n_trials):
        for m, metric in enumerate(panel.metrics):
            a, b = scores_of(found, n_gold, metric.form)
            count_scores(a, b, observed[p, m], counts[p, m, :3], np.empty(0))
    return Tally(n_trials, counts)


def _count_metric(
    panel: Panel, arranged: Layout, m: int, moved: NDArray[Any], room: Room, counts: NDArray[np.int64], *, joint: bool
) -> None:
    """Add one metric's exceedances in one slab to `counts`, shape (n_pairs, 4)."""
    largest = np.zeros(moved.shape[1] if joint else 0)
    three = counts[:, :3]
    form = panel.metrics[m].form
    if panel.linear[m]:
        sizes = _count_linear(panel, arranged, m, moved, room, three, largest)
    elif isinstance(form, Ratios) and len(form.numerators) == 1:
        sizes = _count_ratio(panel, arranged, m, form, moved, room, three, largest)
    else:
        sizes = _count_scores(panel, arranged, m, moved, room, three, largest)
    if joint:
        largest.sort()
        counts[:, 3] += moved.shape[1] - np.searchsorted(largest, sizes, side="left")


def _count_linear(
    panel: Panel,
    arranged: Layout,
    m: int,
    moved: NDArray[Any],
    room: Room,
    counts: NDArray[np.int64],
    largest: NDArray[np.float64],
) -> NDArray[np.float64]:
    form, fields = panel.metrics[m].form, list(panel.metrics[m].fields)
    assert isinstance(form, Ratios)
    weights = np.array(form.numerators[0])
    totals = panel.totals[:, fields] @ weights
    observed = totals[panel.pairs[:, 0]] - totals[panel.pairs[:, 1]]
    slack = panel.slack[:, m]
    dtype = arranged.dtype_for(int(np.abs(weights).sum()))
    out = room.array(f"above {m}", (len(panel.totals), moved.shape[1]), dtype)
    above = combined(arranged, moved, fields, weights.tolist(), out)
    count_linear(above, panel.pairs, observed, slack, counts, largest)
    return np.asarray(np.abs(observed) - 2.0 * slack.max(initial=0))


def _count_ratio(
    panel: Panel,
    arranged: Layout,
    m: int,
    form: Ratios,
    moved: NDArray[Any],
    room: Room,
    counts: NDArray[np.int64],
    largest: NDArray[np.float64],
) -> NDArray[np.float64]:
    fields = list(panel.metrics[m].fields)
    parts = []
    for name, weights in (("above", form.numerators[0]), ("below", form.denominators[0])):
        out = room.array(f"{name} {m}", (len(panel.totals), moved.shape[1]), np.float64)
        parts.append(combined(arranged, moved, fields, weights, out))
        parts.append((panel.totals[:, fields] @ np.array(weights)).astype(np.float64))
    above, total_above, below, total_below = parts
    observed = _observed(panel, m)
    count_ratio(above, below, total_above, total_below, panel.pairs, form.zero_division, observed, counts, largest)
    return np.abs(observed) - 2 * TIE


def _count_scores(
    panel: Panel,
    arranged: Layout,
    m: int,
    moved: NDArray[Any],
    room: Room,
    counts: NDArray[np.int64],
    largest: NDArray[np.float64],
) -> NDArray[np.float64]:
    metric = panel.metrics[m]
    observed = _observed(panel, m)
    fused = parameters(metric.form)
    if fused is not None:
        fields = list(metric.fields)
        shifts = room.array("shifts", (len(panel.totals), len(fields), moved.shape[1]), np.float64)
        for k, f in enumerate(fields):
            combined(arranged, moved, [f], [1], shifts[:, k])
        totals = panel.totals[:, fields].astype(np.float64)
        count_scored(*fused, shifts, totals, panel.pairs, observed, counts, largest)
        return np.asarray(np.abs(observed) * (1 - 4 * TIE))
    for p, (i, j) in enumerate(panel.pairs):
        shift = np.empty((moved.shape[1], panel.totals.shape[1]), np.int64)
        for f in metric.fields:
            shift[:, f] = _row(arranged, moved, j, f) - _row(arranged, moved, i, f)
        a = metric.form.score(panel.sums(m, panel.totals[i] + shift))
        b = metric.form.score(panel.sums(m, panel.totals[j] - shift))
        count_scores(a, b, observed[p], counts[p], largest)
    return np.abs(observed) * (1 - 4 * TIE)


def _observed(panel: Panel, m: int) -> NDArray[np.float64]:
    scores = panel.scores[:, m]
    return np.asarray(scores[panel.pairs[:, 0]] - scores[panel.pairs[:, 1]])


def _row(arranged: Layout, moved: NDArray[Any], s: int, f: int) -> Any:
    column = arranged.column_of[s, f]
    return 0 if column < 0 else arranged.sign_of[s, f] * moved[column].astype(np.int64)


def ranges(n_trials: int, size: int) -> Iterator[tuple[int, int]]:
    """Split trials into ranges of at most `size`: (first, number).

    Examples
    --------
    >>> list(ranges(10, 4))
    [(0, 4), (4, 4), (8, 2)]
    """
    for first in range(0, n_trials, size):
        yield first, min(size, n_trials - first)


def bound(n_extreme: int, n_trials: int) -> float:
    """Return (nc + 1) / (nt + 1), a valid p-value at any nt fixed beforehand.

    References
    ----------
    Noreen 1989; Phipson & Smyth 2010, "Permutation P-values should never be zero".

    Examples
    --------
    >>> bound(96, 2**20)
    9.250632047050431e-05
    """
    return (n_extreme + 1) / (n_trials + 1)


def interval(n_extreme: int, n_trials: int, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of nc / nt.

    Examples
    --------
    >>> low, high = interval(30, 100, 0.95)
    >>> round(low, 12), round(high, 12)
    (0.21240642049, 0.39981467618)
    """
    half = (1 - confidence) / 2
    low = 0.0 if n_extreme == 0 else float(special.betaincinv(n_extreme, n_trials - n_extreme + 1, half))
    high = 1.0
    if n_extreme < n_trials:
        high = float(special.betaincinv(n_extreme + 1, n_trials - n_extreme, 1 - half))
    return low, high


def trials_to_decide(p: float, alpha: float, confidence: float = DEFAULT_CONFIDENCE) -> int | None:
    """Return about how many trials bring alpha outside the interval, if p is what it seems.

    None where p and alpha are too close for any number that could be run.
    """
    if p == alpha:
        return None
    z = float(special.ndtri(0.5 + confidence / 2))
    needed = math.ceil((z / (p - alpha)) ** 2 * max(p * (1 - p), alpha * (1 - alpha)) * 1.1)
    return needed if needed < MAX_TRIALS else None
