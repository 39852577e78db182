"""Tails of sums of integers by dynamic programming.

The sums are kept in a window that almost no arrangement leaves. All numbers are positive and each step rounds once, so
the relative error of a sum is at most gamma_k for its k roundings (Higham 2002, section 3.1). The probability outside
the window is bounded by Levy's and Hoeffding's inequalities and added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.counts.fields import Floats
from sigdask.io.caches import cached_njit
from sigdask.statistics.exact import binomials
from sigdask.statistics.exact.binomials import estimate_log_tail
from sigdask.statistics.exact.problems import ProbabilityLimits, StepSizes

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"


ROUNDOFF = 2.0**-53
LOST_SHARE = 1e-16
"""Maximum share of the smaller tail that may leave the window."""
SLAB = 2 * 10**8
"""Additions between two calls, where a signal or the deadline can interrupt."""
TINY = 2.0**-1074
CHUNK = 2**11
"""Numbers computed at a time, so that they stay in the cache."""


def compute_window(steps: StepSizes) -> int:
    """Return the half width c of the window of the signed sum, in which at most `LOST_SHARE` of p is lost.

    P(max_k |S_k| > c) <= 4 exp(-c**2 / (2 squares)), S_k the partial sums of random signs.
    """
    log_p = _estimate_log_tail(steps)
    return min(math.ceil(math.sqrt(2 * steps.squares * (math.log(4 / LOST_SHARE) - log_p))) + 1, steps.total)


def estimate_cost(steps: StepSizes) -> tuple[int, int]:
    """Return the number of additions that the dynamic programming takes, and bytes."""
    c = compute_window(steps)
    n_bytes = 16 * (c + int(steps.weights.max(initial=0)) + 64)
    return int(sum(float(step.n_terms) * step.width for step in _iter_passes(steps, c))), n_bytes


def compute_tails(steps: StepSizes) -> list[ProbabilityLimits]:
    """Return limits of P(X >= x) for both thresholds."""
    c = compute_window(steps)
    passes = list(_iter_passes(steps, c))
    distribution, error = _compute_distribution(passes)
    outside = 0.0 if c >= steps.total else 4 * math.exp(-(c * c) / (2 * steps.squares)) * (1 + 1e-12)
    outside += sum(step.outside for step in passes)
    missed, k = outside + steps.n * len(distribution) * TINY, error + 2 * ROUNDOFF
    limits = []
    for x in steps.thresholds:
        p = math.fsum(distribution[max(x - passes[-1].first, 0) :])
        limits.append(
            ProbabilityLimits.from_rounded(p, p, k / (1 - k), missed) if x > 0 else ProbabilityLimits(1.0, 1.0)
        )
    return limits


def _estimate_log_tail(steps: StepSizes) -> float:
    """Return a low estimate of the log of the smaller tail probability, rounded so that platforms agree."""
    x = min(max(steps.thresholds[0], 0), steps.total)
    return math.floor(estimate_log_tail(*steps.groups, 2 * x - steps.total)) - 1.0


@dataclass(frozen=True, slots=True)
class ConvolutionStep:
    """One pass of the dynamic programming, which adds units of one size to the sum of smaller units.

    Attributes
    ----------
    size, number : int
        The size, and how many units have it.
    first, last : int
        The window of X after the pass.
    low, high : int
        Smallest and largest number of added units that are considered; other numbers are unlikely.
    outside : float
        A bound on the probability of other numbers.
    """

    size: int
    number: int
    first: int
    last: int
    low: int
    high: int
    outside: float

    @property
    def width(self) -> int:
        """The number of values of X after the pass."""
        return self.last - self.first + 1

    @property
    def n_terms(self) -> int:
        """The number of terms that are added for each value of X."""
        return self.high - self.low + 1


def _iter_passes(steps: StepSizes, c: int) -> Iterator[ConvolutionStep]:
    """Yield the passes, smallest sizes first; units of equal size are added one by one if few, else all at once."""
    log_p = _estimate_log_tail(steps)
    total = 0
    for size, number in zip(*(values.tolist() for values in steps.groups), strict=True):
        reach = math.ceil(math.sqrt((math.log(len(steps.groups[0]) / LOST_SHARE) - log_p) * number / 2)) + 1
        low, high = max(number // 2 - reach, 0), min((number + 1) // 2 + reach, number)
        at_once = high - low + 1 < 2 * number
        for n_added in [number] if at_once else [1] * number:
            total += size * n_added
            first, last = max((total - c + 1) // 2, 0), min((total + c) // 2, total)
            if at_once:
                yield ConvolutionStep(size, n_added, first, last, low, high, bound_outside(number, low, high))
            else:
                yield ConvolutionStep(size, 1, first, last, 0, 1, 0.0)


def bound_outside(n: int, low: int, high: int) -> float:
    """Return a bound on P(Y < low or Y > high), Y ~ Bin(n, 1/2) (Hoeffding)."""
    if low == 0 and high == n:
        return 0.0
    return 2 * math.exp(-2 * (min(n / 2 - low, high - n / 2) + 1) ** 2 / n) * (1 + 1e-12)


def _compute_distribution(passes: Sequence[ConvolutionStep]) -> tuple[Floats, float]:
    """Return P(X = x) for x in the last window, without what left windows, and a bound on the relative error."""
    buffers = np.empty((2, max((step.width for step in passes), default=1)))
    old, first, error = np.ones(1), 0, 0.0
    for k, step in enumerate(passes):
        new = buffers[k % 2, : step.width]
        shares, step_error = HALVES, ROUNDOFF
        if step.number > 1:
            shares, error_of_shares = binomials.compute_probabilities(step.number, step.low, step.high)
            step_error = error_of_shares + (step.n_terms + 1) * ROUNDOFF
        chunk = max(SLAB // step.width, 1)
        new[:] = 0.0
        for start in range(0, step.n_terms, chunk):
            _add_shifted(old, first, new, step.first, step.size, step.low + start, shares[start : start + chunk])
        old, first = new, step.first
        error += step_error
    return old, error * (1 + 1e-6)


HALVES = np.array([0.5, 0.5])


@cached_njit()
def _add_shifted(old, first, new, new_first, size, low, shares):
    """Add, for each j, `shares[j]` times the old distribution, shifted by `low + j` sizes, to the new one."""
    for begin in range(0, new.shape[0], CHUNK):
        end = min(begin + CHUNK, new.shape[0])
        for j in range(shares.shape[0]):
            share = shares[j]
            move = first + size * (low + j) - new_first  # of old[0] in the new window
            for i in range(max(begin, move), min(end, old.shape[0] + move)):
                new[i] += share * old[i - move]
