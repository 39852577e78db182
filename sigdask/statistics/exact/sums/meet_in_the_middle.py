"""Sums of real numbers, met in the middle: the sums of either half of the units are sorted, and pairs of them counted.

Sums of a half are sorted as they are made, by merging those without a unit with those with it. The largest sizes are
not in the halves: each choice of their signs is a part that is counted on its own, against the same halves, and parts
add up. Where sums are not exact, X is held against the threshold minus and plus the slack.

References
----------
Horowitz & Sahni 1974, Journal of the ACM 21:277.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import compiled
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check

MOST_UNITS = 62
"""So that counts are integers of 64 bits."""

LARGEST_HALF = 24
"""Units of a half, whose sums take 128 MiB."""

NANOSECONDS = 3
"""Of a step of merging or counting, about."""


def n_fixed(n: int) -> int:
    """Return the units whose signs are fixed in a part."""
    return max(n - 2 * LARGEST_HALF, 0)


def n_parts(n: int) -> int:
    """Return the independent parts of the count."""
    return 1 << n_fixed(n)


def operations(n: int) -> int:
    """Return about how many nanoseconds it takes: each part runs through both halves for either threshold."""
    larger = (n - n_fixed(n) + 1) // 2
    return NANOSECONDS * (1 << (larger + 1)) * (2 + 2 * n_parts(n))


def n_bytes(n: int) -> int:
    """Return the memory it takes, most while the second half is merged."""
    larger = (n - n_fixed(n) + 1) // 2
    return 8 * (5 << max(larger - 1, 0)) + 2**20


def count(steps: StepSizes, first: int, n: int, check: Check) -> NDArray[np.int64]:
    """Return how many arrangements of each of some parts reach each of the two thresholds, shape (n, 2).

    Parameters
    ----------
    steps : StepSizes
        The problem.
    first, n : int
        The parts, of 0 to n_parts - 1. Bit i of a part says whether the i-th of the largest sizes is added.
    check : callable
        Called between parts.
    """
    h = n_fixed(steps.n)
    rest, fixed = steps.weights[: steps.n - h], steps.weights[steps.n - h :]
    whole, below = 1 << len(rest), int(rest.sum())
    halves: list[NDArray[np.int64]] = []
    found = np.zeros((n, 2), np.int64)
    for row, part in enumerate(range(first, first + n)):
        added = sum(w for i, w in enumerate(fixed.tolist()) if part >> i & 1)
        for k, threshold in enumerate(steps.thresholds):
            needed = threshold - added
            if needed <= 0:
                found[row, k] = whole
            elif needed <= below:
                halves = halves or [_sorted_sums(half, check) for half in (rest[::2], rest[1::2])]
                found[row, k] = _pairs(*halves, needed)
                check()
    return found


def _sorted_sums(weights: NDArray[np.int64], check: Check) -> NDArray[np.int64]:
    """Return the sums of all subsets, ascending."""
    sums = np.zeros(1, np.int64)
    for w in weights.tolist():
        merged = np.empty(2 * len(sums), np.int64)
        _merge(sums, w, merged)
        sums = merged
        check()
    return sums


@compiled()
def _merge(sums, w, merged):
    """Merge ascending sums with the same sums plus w > 0."""
    n = sums.shape[0]
    i, j = np.int64(0), np.int64(0)  # sums[i] is never behind sums[j] + w, so that i runs out first
    for k in range(2 * n):
        if i == n:
            for rest in range(k, 2 * n):
                merged[rest] = sums[j] + w
                j += 1
            return
        one, other = sums[i], sums[j] + w
        without = one <= other
        merged[k] = one if without else other
        i += np.int64(without)
        j += np.int64(not without)


@compiled()
def _pairs(one, other, needed):
    """Count the pairs of a number of each, both ascending, whose sum is at least `needed`."""
    n = one.shape[0]
    found = 0
    i, j = np.int64(0), np.int64(other.shape[0])  # other[j] and those behind it reach it with one[i]
    while i < n:
        if j == 0:
            return found + (n - i) * other.shape[0]
        more = one[i] + other[j - 1] >= needed
        j -= np.int64(more)
        i += np.int64(not more)
        found += 0 if more else other.shape[0] - j
    return found
