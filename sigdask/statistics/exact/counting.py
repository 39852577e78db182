"""Counting arrangements by their integer sum: coefficients of a polynomial, or meeting in the middle.

The polynomial is the product of 1 + z**w over the sizes w. Up to 62 units its coefficients are 64-bit numbers. The
product is split into two halves that are never multiplied: tails are made of the one half and the cumulative sums of
the other. With more units the whole product is one large integer, with a slot of bits for each coefficient.

Ranges of many small problems are counted together on arrays. A range of arrangements consists of ranges in which some
units are fixed and all others free.

Meeting in the middle counts pairs of sums from the sorted sums of two halves. The sums of a half are made in order, by
merging those without a unit with those with it. With more than 48 units, the largest sizes are in neither half: each
choice of their signs is counted separately with the same halves. If sums are not exact, X is compared with
the threshold minus the slack, and with the threshold plus the slack.

References
----------
Pagano & Tritchler 1983, JASA 78:435; Streitberg & Roehmel 1986, Statistical Software Newsletter 12:10. Horowitz & Sahni
1974, Journal of the ACM 21:277.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.io.caches import cached_njit
from sigdask.statistics.exact.problems import StepSizes

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"


MAX_UNITS = 62
"""Maximum number of units, so that 2**n fits into 64 bits."""

WORD = 64


def estimate_polynomial_cost(steps: StepSizes) -> tuple[int, int]:
    """Return the number of additions of coefficients, and bytes."""
    if steps.n <= MAX_UNITS:
        halves = steps.weights[::2], steps.weights[1::2]
        return sum(_count_additions(half) + int(half.sum()) for half in halves), 8 * (steps.total + 2)
    return _count_additions(steps.weights) * (steps.n // WORD + 1), 3 * (steps.total + 1) * (steps.n + 1) // 8


def count_coefficients(steps: StepSizes) -> list[int]:
    """Return how many arrangements reach each of the two thresholds."""
    if steps.n <= MAX_UNITS:
        first, second = (_compute_coefficients(half) for half in (steps.weights[::2], steps.weights[1::2]))
        tails = np.cumsum(second[::-1])[::-1]
        return [int(_sum_tail(first, tails, threshold)) for threshold in steps.thresholds]
    bits, product = steps.n + 1, 1
    for w in steps.weights.tolist():
        product += product << (w * bits)
    return [_sum_slots(product >> (max(x, 0) * bits), bits) for x in steps.thresholds]


def _count_additions(weights: Integers) -> int:
    return int(np.cumsum(weights.astype(np.float64)).sum())


def _compute_coefficients(weights: Integers) -> Integers:
    coefficients = np.zeros(int(weights.sum()) + 1, np.int64)
    coefficients[0] = 1
    reach = 0
    for w in weights.tolist():
        coefficients[w : reach + w + 1] += coefficients[: reach + 1]  # times 1 + z**w
        reach += w
    return coefficients


@cached_njit()
def _sum_tail(first, tails, threshold):
    """Return the sum of a product's coefficients from the threshold on: the sum of first[x] tails[threshold - x]."""
    total = 0
    for x in range(first.shape[0]):
        rest = max(threshold - x, 0)
        if rest < tails.shape[0]:
            total += first[x] * tails[rest]
    return total


def _sum_slots(number: int, bits: int) -> int:
    """Return the sum of the slots of `bits` bits in a large integer, by repeated halving; the sum must fit a slot."""
    while number.bit_length() > bits:
        half = (number.bit_length() // bits + 2) // 2 * bits
        number = (number & ((1 << half) - 1)) + (number >> half)
    return number


MAX_HALF = 24
"""Maximum units of a half, whose sums take 128 MiB."""

NANOSECONDS = 3
"""Approximate nanoseconds of a step of merging or counting."""


def compute_n_fixed(n: int) -> int:
    """Return the number of units whose signs are fixed within a part."""
    return max(n - 2 * MAX_HALF, 0)


def estimate_pairing_cost(n: int) -> tuple[int, int]:
    """Return the estimated nanoseconds of sorting both halves and passing them for each part, and bytes.

    Memory peaks while the second half is merged.
    """
    n_parts, larger = 1 << compute_n_fixed(n), (n - compute_n_fixed(n) + 1) // 2
    return NANOSECONDS * (1 << (larger + 1)) * (2 + 2 * n_parts), 8 * (5 << max(larger - 1, 0)) + 2**20


def count_pairings(steps: StepSizes) -> list[int]:
    """Return how many arrangements reach each of the two thresholds."""
    h = compute_n_fixed(steps.n)
    rest, fixed = steps.weights[: steps.n - h], steps.weights[steps.n - h :].tolist()
    n_arrangements, rest_total = 1 << len(rest), int(rest.sum())
    halves: list[Integers] = []
    counts = [0, 0]
    for part in range(1 << h):  # bit i says whether the i-th of the largest sizes is added
        added = sum(w for i, w in enumerate(fixed) if part >> i & 1)
        for k, threshold in enumerate(steps.thresholds):
            needed = threshold - added
            if needed <= 0:
                counts[k] += n_arrangements
            elif needed <= rest_total:
                halves = halves or [_compute_sorted_sums(half) for half in (rest[::2], rest[1::2])]
                counts[k] += int(_count_pairs(*halves, needed))
    return counts


def _compute_sorted_sums(weights: Integers) -> Integers:
    """Return the sums of all subsets of the weights, ascending."""
    sums = np.zeros(1, np.int64)
    for w in weights.tolist():
        merged = np.empty(2 * len(sums), np.int64)
        _merge(sums, w, merged)
        sums = merged
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


MAX_SLOTS = 2**11
"""Maximum slots of a distribution for which it is faster than meeting in the middle."""


def count_reaching(first: int, stop: int, steps: Integers, thresholds: Integers) -> Integers:
    """Count the arrangements of several problems whose sum reaches thresholds, in a range of arrangements.

    Arrangement t of a problem adds step u if bit u of t is set. Bits beyond the last step change nothing.

    Parameters
    ----------
    first, stop : int
        The arrangements `first` to `stop - 1`.
    steps : int64 array, shape (n_problems, n_units)
        Contribution of each unit to the sum, of any sign.
    thresholds : int64 array, shape (n_problems, n_thresholds)
        Thresholds with which the sum is compared.

    Returns
    -------
    int64 array, shape (n_problems, n_thresholds)

    Examples
    --------
    >>> count_reaching(0, 8, np.array([[1, 1, -2]]), np.array([[0, 1, -2]]))
    array([[5, 3, 8]])
    >>> count_reaching(3, 6, np.array([[1, 1, -2]]), np.array([[0, 1, -2]]))
    array([[1, 1, 3]])
    """
    counts = np.zeros(thresholds.shape, np.int64)
    for start, n_free in _iter_free_ranges(first, stop):
        free, fixed = steps[:, :n_free], steps[:, n_free:]
        added = fixed @ (start >> np.arange(n_free, n_free + fixed.shape[1]) & 1)
        counts += _count_all_reaching(free, thresholds - added[:, None]) << (n_free - free.shape[1])
    return counts


def _iter_free_ranges(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split a range into ranges in which the lower bits take all values; yield their starts and numbers of free bits.

    Examples
    --------
    >>> list(_iter_free_ranges(0, 8)), list(_iter_free_ranges(3, 6))
    ([(0, 3)], [(3, 0), (4, 1)])
    """
    while first < stop:
        n_free = (stop - first).bit_length() - 1
        if first:
            n_free = min(n_free, (first & -first).bit_length() - 1)
        yield first, n_free
        first += 1 << n_free


def _count_all_reaching(steps: Integers, thresholds: Integers) -> Integers:
    """Count the arrangements of each problem whose sum reaches its thresholds, shape (n_problems, n_thresholds)."""
    sizes = np.abs(steps)
    n_slots = int(sizes.sum(axis=1).max(initial=0)) + 1
    needed = thresholds - np.minimum(steps, 0).sum(axis=1)[:, None]  # of sums of sizes, which have no sign
    if n_slots <= MAX_SLOTS:
        ways = np.zeros((len(steps), n_slots + 1), np.int64)
        ways[:, 0] = 1
        slots = np.arange(n_slots)
        for size in sizes.T[:, :, None]:  # the last slot has no ways, and stands for those before the first
            ways[:, :n_slots] += np.take_along_axis(ways, np.where(slots < size, n_slots, slots - size), axis=1)
        tails = np.cumsum(ways[:, ::-1], axis=1)[:, ::-1]
        return np.take_along_axis(tails, np.clip(needed, 0, n_slots), axis=1)
    half = sizes.shape[1] // 2
    lower, upper = np.sort(_sum_subsets(sizes[:, :half]), axis=1), _sum_subsets(sizes[:, half:])
    counts = np.empty(needed.shape, np.int64)
    for k, row in enumerate(needed):
        counts[k] = lower[k].size * upper[k].size - np.searchsorted(lower[k], row[:, None] - upper[k]).sum(axis=1)
    return counts


def _sum_subsets(sizes: Integers) -> Integers:
    """Return the sums of all subsets of each problem's sizes, shape (n_problems, 2**n_units)."""
    sums = np.zeros((len(sizes), 1), np.int64)
    for size in sizes.T[:, :, None]:
        sums = np.concatenate([sums, sums + size], axis=1)
    return sums
