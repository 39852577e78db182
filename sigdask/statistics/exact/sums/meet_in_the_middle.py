"""Count arrangements by meeting in the middle: pairs of sums are counted from the sorted sums of two halves.

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

from sigdask.io.compiled_cache import cached_njit
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check

MOST_UNITS = 62
"""So that counts are integers of 64 bits."""

MAX_HALF = 24
"""Units of a half, whose sums take 128 MiB."""

NANOSECONDS = 3
"""Of a step of merging or counting, about."""


def compute_n_fixed(n: int) -> int:
    """Return the number of units whose signs are fixed within a part."""
    return max(n - 2 * MAX_HALF, 0)


def compute_n_parts(n: int) -> int:
    """Return the number of independent parts of the count."""
    return 1 << compute_n_fixed(n)


def estimate_operations(n: int) -> int:
    """Return the estimated nanoseconds of sorting both halves and passing them for each part and threshold."""
    larger = (n - compute_n_fixed(n) + 1) // 2
    return NANOSECONDS * (1 << (larger + 1)) * (2 + 2 * compute_n_parts(n))


def estimate_bytes(n: int) -> int:
    """Return the estimated memory in bytes; it peaks while the second half is merged."""
    larger = (n - compute_n_fixed(n) + 1) // 2
    return 8 * (5 << max(larger - 1, 0)) + 2**20


def count_arrangements(steps: StepSizes, first: int, n: int, check: Check) -> NDArray[np.int64]:
    """Return how many arrangements of each part reach each of the two thresholds, shape (n, 2).

    Parameters
    ----------
    steps : StepSizes
        The problem.
    first, n : int
        The parts, of 0 to n_parts - 1. Bit i of a part says whether the i-th of the largest sizes is added.
    check : callable
        Called between parts.
    """
    h = compute_n_fixed(steps.n)
    rest, fixed = steps.weights[: steps.n - h], steps.weights[steps.n - h :]
    n_arrangements, rest_total = 1 << len(rest), int(rest.sum())
    halves: list[NDArray[np.int64]] = []
    counts = np.zeros((n, 2), np.int64)
    for row, part in enumerate(range(first, first + n)):
        added = sum(w for i, w in enumerate(fixed.tolist()) if part >> i & 1)
        for k, threshold in enumerate(steps.thresholds):
            needed = threshold - added
            if needed <= 0:
                counts[row, k] = n_arrangements
            elif needed <= rest_total:
                halves = halves or [_compute_sorted_sums(half, check) for half in (rest[::2], rest[1::2])]
                counts[row, k] = _count_pairs(*halves, needed)
                check()
    return counts


def _compute_sorted_sums(weights: NDArray[np.int64], check: Check) -> NDArray[np.int64]:
    """Return the sums of all subsets of the weights, ascending."""
    sums = np.zeros(1, np.int64)
    for w in weights.tolist():
        merged = np.empty(2 * len(sums), np.int64)
        _merge(sums, w, merged)
        sums = merged
        check()
    return sums


@cached_njit()
def _merge(sums, w, merged):
    """Write the merger of ascending sums and the same sums plus w > 0 to `merged`, ascending."""
    n = sums.shape[0]
    i, j = np.int64(0), np.int64(0)  # sums[i] is never behind sums[j] + w, so that i runs out first
    for k in range(2 * n):
        if i == n:
            for rest in range(k, 2 * n):
                merged[rest] = sums[j] + w
                j += 1
            return
        value, shifted = sums[i], sums[j] + w
        without = value <= shifted
        merged[k] = value if without else shifted
        i += np.int64(without)
        j += np.int64(not without)


@cached_njit()
def _count_pairs(first, second, needed):
    """Count the pairs from two ascending arrays whose sum is at least `needed`."""
    n = first.shape[0]
    n_pairs = 0
    i, j = np.int64(0), np.int64(second.shape[0])  # other[j] and those behind it reach it with one[i]
    while i < n:
        if j == 0:
            return n_pairs + (n - i) * second.shape[0]
        is_enough = first[i] + second[j - 1] >= needed
        j -= np.int64(is_enough)
        i += np.int64(not is_enough)
        n_pairs += 0 if is_enough else second.shape[0] - j
    return n_pairs
