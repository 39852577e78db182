"""Tails of sums of integers: coefficients of a polynomial, meeting in the middle, or dynamic programming.

The polynomial is the product of 1 + z**w over the sizes w. Up to 62 units its coefficients are 64-bit numbers. The
product is split into two halves that are never multiplied: tails are made of the one half and the cumulative sums of
the other. With more units the whole product is one large integer, with a slot of bits for each coefficient.

Ranges of many small problems are counted together on arrays. A range of arrangements consists of ranges in which some
units are fixed and all others free.

Meeting in the middle counts pairs of sums from the sorted sums of two halves. The sums of a half are made in order, by
merging those without a unit with those with it. With more than 48 units, the largest sizes are in neither half: each
choice of their signs is counted separately with the same halves. If sums are not exact, X is compared with
the threshold minus the slack, and with the threshold plus the slack.

Dynamic programming keeps the sums in a window that almost no arrangement leaves. All numbers are positive and each step
rounds once, so the relative error of a sum is at most gamma_k for its k roundings (Higham 2002, section 3.1). The
probability outside the window is bounded by Levy's and Hoeffding's inequalities and added. The window is chosen from an
estimate of the tail: under weights proportional to exp(theta S) the mean of the sum S is at the threshold.

References
----------
Pagano & Tritchler 1983, JASA 78:435; Streitberg & Roehmel 1986, Statistical Software Newsletter 12:10. Horowitz & Sahni
1974, Journal of the ACM 21:277.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.statistics.exact import binomials
from sigdask.statistics.exact.binomials import ROUNDOFF
from sigdask.statistics.exact.problems import ProbabilityLimits, StepSizes

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


@cached_njit()
def _compute_coefficients(weights):
    """Return the coefficients of the product of 1 + z**w over the weights."""
    coefficients = np.zeros(weights.sum() + 1, np.int64)
    coefficients[0] = 1
    reach = 0
    for w in weights:
        stop = reach + 1  # times 1 + z**w from the highest power down, in blocks of at most w powers
        while stop > 0:
            start = max(stop - w, 0)
            added, block = coefficients[start:stop], coefficients[start + w : stop + w]
            for x in range(added.shape[0]):
                block[x] += added[x]
            stop = start
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


def estimate_convolution_cost(steps: StepSizes) -> tuple[int, int]:
    """Return the number of additions that the dynamic programming takes, and bytes."""
    c = compute_window(steps)
    n_bytes = 16 * (c + int(steps.weights.max(initial=0)) + 64)
    return int(sum(float(step.n_terms) * step.width for step in _iter_passes(steps, c))), n_bytes


def compute_convolved_tails(steps: StepSizes) -> list[ProbabilityLimits]:
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


MAX_TILT = 1e4
"""Maximum tilt of the largest size. There the mean is the total of the sizes, as far as floats tell."""


def find_tilt(sizes: NDArray[Any], counts: Integers, s: float) -> float:
    """Return the tilt theta under which the mean of the signed sum is s, for |s| below the total of the sizes.

    The mean is the sum of counts * sizes * tanh(theta * sizes), which is concave. So Newton's steps from 0 stay below
    its root, and only grow. (Importing scipy.optimize takes as long as counting 2**20 trials of a pair.)
    """
    w, m, theta = sizes.astype(np.float64), counts.astype(np.float64), 0.0
    while theta * float(w.max()) < MAX_TILT:
        mean = np.tanh(theta * w)
        missing, slope = abs(s) - float((m * w * mean).sum()), float((m * w**2 * (1 - mean**2)).sum())
        if slope == 0 or theta + missing / slope <= theta * (1 + 1e-15):
            break
        theta += missing / slope
    return math.copysign(theta, s)


def log_cosh(x: NDArray[Any]) -> Floats:
    """Return log(cosh(x))."""
    return np.asarray(np.logaddexp(x, -x) - math.log(2))


def estimate_log_tail(sizes: NDArray[Any], counts: Integers, s: float) -> float:
    """Return a low estimate of log P(S >= s), where S is the sum of the sizes with random signs.

    For s <= 0 it is log(1/2).
    """
    total = float((sizes * counts.astype(np.float64)).sum())
    n = int(counts.sum())
    if s <= 0:
        return -math.log(2)
    if s >= total:
        return -n * math.log(2)
    theta = find_tilt(sizes, counts, s)
    w, m = sizes.astype(np.float64), counts.astype(np.float64)
    exponent = float((m * log_cosh(theta * w)).sum()) - theta * s
    variance = float((m * (w / np.cosh(np.minimum(theta * w, 300.0))) ** 2).sum())
    width = max(theta * math.sqrt(max(variance, 0.0)), 1.0)
    return max(exponent - math.log(width * math.sqrt(2 * math.pi)) - 1.0, -n * math.log(2))


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
