"""Tails of integer sums, by dynamic programming within a window that almost no arrangement leaves.

All numbers are positive and each step rounds once, so the relative error of a sum is at most gamma_k
of the k roundings behind it (Higham 2002, section 3.1). What leaves the window is bounded by Levy's and
Hoeffding's inequalities and added above.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums import binomials
from sigdask.statistics.exact.sums.saddlepoint import estimate_log_tail

ROUNDOFF = 2.0**-53
LOST_SHARE = 1e-16
"""Share of the smaller tail that may leave the window."""
SLAB = 2 * 10**8
"""Additions between two looks at the deadline."""
TINY = 2.0**-1074
CHUNK = 2**11
"""Numbers that are made at a time, so that they stay in the cache."""


def compute_half_width(squares: float, log_p: float, share: float = LOST_SHARE) -> int:
    """Return the half width of the window for which at most `share` of p = exp(log_p) is lost.

    P(max_k |S_k| > c) <= 4 exp(-c**2 / (2 squares)), S_k the partial sums of random signs.
    """
    return math.ceil(math.sqrt(2 * squares * (math.log(4 / share) - log_p))) + 1


def bound_lost(squares: float, c: float) -> float:
    """Return a bound on the probability that any partial sum leaves the window of half width c."""
    return 4 * math.exp(-(c * c) / (2 * squares)) * (1 + 1e-12)


def compute_window(steps: StepSizes) -> int:
    """Return the half width of the window of the signed sum."""
    return min(compute_half_width(steps.squares, _estimate_log_tail(steps)), steps.total)


def estimate_operations(steps: StepSizes) -> int:
    """Return the number of additions that the dynamic programming takes."""
    return int(sum(float(step.n_terms) * step.width for step in _iter_passes(steps, compute_window(steps))))


def estimate_bytes(steps: StepSizes) -> int:
    """Return the estimated memory in bytes."""
    return 16 * (compute_window(steps) + int(steps.weights.max(initial=0)) + 64)


def compute_tails(steps: StepSizes, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(X >= threshold) for both thresholds."""
    reached, passed = compute_tails_at(steps, steps.thresholds, check)
    return reached, passed


def compute_tails_at(steps: StepSizes, thresholds: Sequence[int], check: Check) -> list[TailProbability]:
    """Return limits of P(X >= x) for several x near the problem's thresholds."""
    c = compute_window(steps)
    passes = list(_iter_passes(steps, c))
    distribution, error = _compute_distribution(passes, check)
    outside = 0.0 if c >= steps.total else bound_lost(steps.squares, c)
    outside += sum(step.outside for step in passes)
    missed = outside + steps.n * len(distribution) * TINY
    return [_compute_tail(distribution, passes[-1].first, x, error, missed) for x in thresholds]


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
        """The number of terms that are added up for each value of X."""
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
                yield ConvolutionStep(size, n_added, first, last, low, high, _bound_outside(number, low, high))
            else:
                yield ConvolutionStep(size, 1, first, last, 0, 1, 0.0)


def _bound_outside(n: int, low: int, high: int) -> float:
    """Return a bound on P(Y < low or Y > high), Y ~ Bin(n, 1/2) (Hoeffding)."""
    if low == 0 and high == n:
        return 0.0
    return 2 * math.exp(-2 * (min(n / 2 - low, high - n / 2) + 1) ** 2 / n) * (1 + 1e-12)


def _compute_distribution(passes: Sequence[ConvolutionStep], check: Check) -> tuple[NDArray[np.float64], float]:
    """Return P(X = x) for x in the last window, without what left windows, and a bound on the relative error."""
    buffers = np.empty((2, max((step.width for step in passes), default=1)))
    old, first, error, done = np.ones(1), 0, 0.0, 0
    for k, step in enumerate(passes):
        new = buffers[k % 2, : step.width]
        shares, step_error = _compute_shares(step)
        chunk = max(SLAB // step.width, 1)
        new[:] = 0.0
        for start in range(0, step.n_terms, chunk):
            chunk_shares = shares[start : start + chunk]
            _add_shifted(old, first, new, step.first, step.size, step.low + start, chunk_shares)
            done += len(chunk_shares) * step.width
            if done > SLAB:
                check()
                done = 0
        old, first = new, step.first
        error += step_error
    check()
    return old, error * (1 + 1e-6)


HALVES = np.array([0.5, 0.5])


def _compute_shares(step: ConvolutionStep) -> tuple[NDArray[np.float64], float]:
    """Return the probability of each number of added units, and a bound on the relative error of sums over them."""
    if step.number == 1:
        return HALVES, ROUNDOFF
    shares, error = binomials.compute_probabilities(step.number, step.low, step.high)
    return shares, error + (step.n_terms + 1) * ROUNDOFF


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


def _compute_tail(
    distribution: NDArray[np.float64], first: int, threshold: int, error: float, missed: float
) -> TailProbability:
    if threshold <= 0:
        return TailProbability(1.0, 1.0)
    p = math.fsum(distribution[max(threshold - first, 0) :])
    k = error + 2 * ROUNDOFF
    wrong = k / (1 - k)
    return TailProbability(max(p * (1 - wrong) - missed, 0.0), min(p * (1 + wrong) + missed, 1.0))
