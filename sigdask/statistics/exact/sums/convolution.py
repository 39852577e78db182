"""Integer sums by positive dynamic programming within a window that almost no arrangement leaves.

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

from sigdask.io.compiled_cache import compiled
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums import binomials
from sigdask.statistics.exact.sums.saddlepoint import log_tail

UNIT = 2.0**-53
LOST = 1e-16
"""Share of the smaller tail that may leave the window."""
SLAB = 2 * 10**8
"""Additions between two looks at the deadline."""
TINY = 2.0**-1074
PART = 2**11
"""Numbers that are made at a time, so that they stay in the cache."""


def half_width(squares: float, log_p: float, share: float = LOST) -> int:
    """Return how far a signed sum is followed, where `share` of p = exp(log_p) may be lost.

    P(max_k |S_k| > c) <= 4 exp(-c**2 / (2 squares)), S_k the partial sums of random signs.
    """
    return math.ceil(math.sqrt(2 * squares * (math.log(4 / share) - log_p))) + 1


def lost(squares: float, c: float) -> float:
    """Return a bound of the probability that partial sums leave the window."""
    return 4 * math.exp(-(c * c) / (2 * squares)) * (1 + 1e-12)


def window(steps: StepSizes) -> int:
    """Return how far the signed sum is followed."""
    return min(half_width(steps.squares, _smallest(steps)), steps.total)


def operations(steps: StepSizes) -> int:
    """Return the additions."""
    return int(sum(float(one.n_terms) * one.width for one in _passes(steps, window(steps))))


def n_bytes(steps: StepSizes) -> int:
    """Return the memory it takes."""
    return 16 * (window(steps) + int(steps.weights.max(initial=0)) + 64)


def tails(steps: StepSizes, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(X >= threshold) for both thresholds."""
    reached, passed = uppers(steps, steps.thresholds, check)
    return reached, passed


def uppers(steps: StepSizes, thresholds: Sequence[int], check: Check) -> list[TailProbability]:
    """Return limits of P(X >= x) for some x, near those of the problem."""
    c = window(steps)
    passes = list(_passes(steps, c))
    found, error = _distribution(passes, check)
    outside = 0.0 if c >= steps.total else lost(steps.squares, c)
    outside += sum(one.outside for one in passes)
    missed = outside + steps.n * len(found) * TINY
    return [_tail(found, passes[-1].first, x, error, missed) for x in thresholds]


def _smallest(steps: StepSizes) -> float:
    """Return about the logarithm of the smaller tail, rounded down so that platforms agree."""
    x = min(max(steps.thresholds[0], 0), steps.total)
    return math.floor(log_tail(*steps.groups, 2 * x - steps.total)) - 1.0


@dataclass(frozen=True, slots=True)
class ConvolutionStep:
    """Units of one size, added to the sum of smaller ones.

    Attributes
    ----------
    size, number : int
        The size, and how many units have it.
    first, last : int
        The window of X behind it.
    low, high : int
        How many of the units are looked at as added: nearly any number of them.
    outside : float
        A bound of the probability of other numbers.
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
        """Values of X behind it."""
        return self.last - self.first + 1

    @property
    def n_terms(self) -> int:
        """Terms of each of them."""
        return self.high - self.low + 1


def _passes(steps: StepSizes, c: int) -> Iterator[ConvolutionStep]:
    """Yield units by size, the smallest first: one by one where they are few, else all that are alike at once."""
    log_p = _smallest(steps)
    total = 0
    for size, number in zip(*(each.tolist() for each in steps.groups), strict=True):
        reach = math.ceil(math.sqrt((math.log(len(steps.groups[0]) / LOST) - log_p) * number / 2)) + 1
        low, high = max(number // 2 - reach, 0), min((number + 1) // 2 + reach, number)
        at_once = high - low + 1 < 2 * number
        for some in [number] if at_once else [1] * number:
            total += size * some
            first, last = max((total - c + 1) // 2, 0), min((total + c) // 2, total)
            if at_once:
                yield ConvolutionStep(size, some, first, last, low, high, _outside(number, low, high))
            else:
                yield ConvolutionStep(size, 1, first, last, 0, 1, 0.0)


def _outside(n: int, low: int, high: int) -> float:
    """Return a bound of P(Y < low or Y > high), Y of Bin(n, 1/2) (Hoeffding)."""
    if low == 0 and high == n:
        return 0.0
    return 2 * math.exp(-2 * (min(n / 2 - low, high - n / 2) + 1) ** 2 / n) * (1 + 1e-12)


def _distribution(passes: Sequence[ConvolutionStep], check: Check) -> tuple[NDArray[np.float64], float]:
    """Return P(X = x) of the last window without what was left out, and a bound of its relative error."""
    room = np.empty((2, max((one.width for one in passes), default=1)))
    old, first, error, done = np.ones(1), 0, 0.0, 0
    for k, one in enumerate(passes):
        new = room[k % 2, : one.width]
        shares, own = _shares(one)
        each = max(SLAB // one.width, 1)
        new[:] = 0.0
        for start in range(0, one.n_terms, each):
            some = shares[start : start + each]
            _add(old, first, new, one.first, one.size, one.low + start, some)
            done += len(some) * one.width
            if done > SLAB:
                check()
                done = 0
        old, first = new, one.first
        error += own
    check()
    return old, error * (1 + 1e-6)


HALVES = np.array([0.5, 0.5])


def _shares(one: ConvolutionStep) -> tuple[NDArray[np.float64], float]:
    """Return the probability of each number of units that is looked at, and the error of a sum over them."""
    if one.number == 1:
        return HALVES, UNIT
    shares, error = binomials.shares(one.number, one.low, one.high)
    return shares, error + (one.n_terms + 1) * UNIT


@compiled()
def _add(old, first, new, new_first, size, low, shares):
    """Add `shares[j]` times the old distribution, moved by `low + j` sizes, by parts that stay in the cache."""
    for begin in range(0, new.shape[0], PART):
        end = min(begin + PART, new.shape[0])
        for j in range(shares.shape[0]):
            share = shares[j]
            move = first + size * (low + j) - new_first  # of old[0] in the new window
            for i in range(max(begin, move), min(end, old.shape[0] + move)):
                new[i] += share * old[i - move]


def _tail(found: NDArray[np.float64], first: int, threshold: int, error: float, missed: float) -> TailProbability:
    if threshold <= 0:
        return TailProbability(1.0, 1.0)
    p = math.fsum(found[max(threshold - first, 0) :])
    k = error + 2 * UNIT
    wrong = k / (1 - k)
    return TailProbability(max(p * (1 - wrong) - missed, 0.0), min(p * (1 + wrong) + missed, 1.0))
