"""Integer sums by positive dynamic programming within a window that almost no arrangement leaves.

All numbers are positive and each step rounds once, so the relative error of a sum is at most gamma_k
of the k roundings behind it (Higham 2002, section 3.1). What leaves the window is bounded by Levy's and
Hoeffding's inequalities and added above.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.machine.compiled import compiled
from sigdask.statistics.exact.found import Check, Tail
from sigdask.statistics.exact.problems import Steps
from sigdask.statistics.exact.saddlepoint import log_tail

UNIT = 2.0**-53
LOST = 1e-16
"""Share of the smaller tail that may leave the window."""
SLAB = 2 * 10**8
"""Additions between two looks at the deadline."""
TINY = 2.0**-1074


def half_width(squares: float, log_p: float, share: float = LOST) -> int:
    """Return how far a signed sum is followed, where `share` of p = exp(log_p) may be lost.

    P(max_k |S_k| > c) <= 4 exp(-c**2 / (2 squares)), S_k the partial sums of random signs.
    """
    return math.ceil(math.sqrt(2 * squares * (math.log(4 / share) - log_p))) + 1


def lost(squares: float, c: float) -> float:
    """Return a bound of the probability that partial sums leave the window."""
    return 4 * math.exp(-(c * c) / (2 * squares)) * (1 + 1e-12)


def window(steps: Steps) -> int:
    """Return how far the signed sum is followed."""
    return min(half_width(steps.squares, _smallest(steps)), steps.total)


def operations(steps: Steps) -> int:
    """Return the additions."""
    low, high = _bounds(steps, window(steps))
    return int((high - low + 1).sum(dtype=np.float64))


def n_bytes(steps: Steps) -> int:
    """Return the memory it takes."""
    return 8 * (window(steps) + int(steps.weights.max(initial=0)) + 64)


def tails(steps: Steps, check: Check) -> tuple[Tail, Tail]:
    """Return limits of P(X >= threshold) for both thresholds."""
    reached, passed = uppers(steps, steps.thresholds, check)
    return reached, passed


def uppers(steps: Steps, thresholds: Sequence[int], check: Check) -> list[Tail]:
    """Return limits of P(X >= x) for some x, near those of the problem."""
    c = window(steps)
    low, high = _bounds(steps, c)
    found = _distribution(steps, low, high, check)
    outside = 0.0 if c >= steps.total else lost(steps.squares, c)
    missed = outside + steps.n * len(found) * TINY
    return [_tail(found, int(low[-1]), x, steps.n, missed) for x in thresholds]


def _smallest(steps: Steps) -> float:
    """Return about the logarithm of the smaller tail, rounded down so that platforms agree."""
    x = min(max(steps.thresholds[0], 0), steps.total)
    return math.floor(log_tail(*steps.groups, 2 * x - steps.total)) - 1.0


def _bounds(steps: Steps, c: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and last X that is kept after each unit, shape (n,)."""
    sums = np.cumsum(steps.weights)
    return np.maximum((sums - c + 1) // 2, 0), np.minimum((sums + c) // 2, sums)


def _distribution(steps: Steps, low: NDArray[np.int64], high: NDArray[np.int64], check: Check) -> NDArray[np.float64]:
    """Return P(X = x) of x = low[-1] to high[-1] without what left the window."""
    width = int((high - low).max()) + 1
    old, new = np.zeros(width), np.zeros(width)
    old[0] = 1.0
    at = np.array([0, 0])  # first and last X of `old`
    each = max(SLAB // width, 1)
    for start in range(0, steps.n, each):
        some = slice(start, start + each)
        old, new = _add(old, new, at, steps.weights[some], low[some], high[some])
        check()
    return old[: at[1] - at[0] + 1]


@compiled()
def _add(old, new, at, weights, low, high):
    """Add units one after the other; return the arrays, the newest first."""
    for k in range(weights.shape[0]):
        w, first, last = weights[k], low[k], high[k]
        was_first, was_last = at[0], at[1]
        # X = x without this unit's size, then with it
        for x in range(first, min(was_last, last) + 1):
            new[x - first] = 0.5 * old[x - was_first] if x >= was_first else 0.0
        for x in range(max(was_last + 1, first), last + 1):
            new[x - first] = 0.0
        start, stop = max(was_first + w, first), min(was_last + w, last)
        to, of = start - first, start - w - was_first
        for i in range(stop - start + 1):
            new[to + i] += 0.5 * old[of + i]
        at[0], at[1] = first, last
        old, new = new, old
    return old, new


def _tail(found: NDArray[np.float64], first: int, threshold: int, n: int, missed: float) -> Tail:
    if threshold <= 0:
        return Tail(1.0, 1.0)
    p = math.fsum(found[max(threshold - first, 0) :])
    k = (n + 2) * UNIT
    error = k / (1 - k)
    return Tail(max(p * (1 - error) - missed, 0.0), min(p * (1 + error) + missed, 1.0))
