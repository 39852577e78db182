"""Tails of integer sums, by the fast Fourier transform of a tilted distribution: accurate even far in the tail.

Under weights proportional to exp(theta S) the mean is at the threshold, so the tail is not lost in the rounding of a
transform. The part that the transform wraps around is bounded, and made negligible by its length.

References
----------
Wilson & Keich 2017, Journal of Computational and Graphical Statistics 26:223.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import ProbabilityLimits

Numbers = NDArray[Any]

MAX_NEWTON_STEPS = 100


def find_tilt(sizes: Numbers, counts: Integers, s: float) -> float:
    """Return the tilt theta under which the mean of the signed sum is s, for |s| below the total of the sizes.

    The mean is the sum of counts * sizes * tanh(theta * sizes).

    Newton's steps on a concave function from the left never pass the root of s > 0.
    """
    w, m = sizes.astype(np.float64), counts.astype(np.float64)
    size = abs(s)
    largest = float(w.max())
    low, high = 0.0, 1.0 / largest
    while float((m * w * np.tanh(high * w)).sum()) < size and high * largest < 1e4:
        low, high = high, 2 * high
    theta = 0.5 * (low + high)
    for _ in range(MAX_NEWTON_STEPS):
        t = np.tanh(theta * w)
        value, slope = float((m * w * t).sum()) - size, float((m * w * w * (1 - t * t)).sum())
        if value < 0:
            low = theta
        else:
            high = theta
        step = theta - value / slope if slope > 0 else high
        step = step if low < step < high else 0.5 * (low + high)
        if abs(step - theta) <= 1e-14 * theta:
            break
        theta = step
    return math.copysign(theta, s)


def log_cosh(x: Numbers) -> Floats:
    """Return log(cosh(x))."""
    size = np.abs(x)
    return np.asarray(
        np.where(
            size < 1e-2, size**2 / 2 - size**4 / 12 + size**6 / 45, size + np.log1p(np.exp(-2 * size)) - math.log(2)
        )
    )


def estimate_log_tail(sizes: Numbers, counts: Integers, s: float) -> float:
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


CLAIMED = 1e-10
"""Claimed relative error."""

REACH = 17.0
"""Standard deviations on both sides of the threshold that the transform covers at least."""

SLAB = 2**16
NEARLY_MINUS_ONE = -1 + 1e-15


def compute_length(steps: StepSizes) -> int:
    """Return the length of the Fourier transform."""
    if steps.n == 0:
        return 1
    needed = min(2 * REACH * math.sqrt(steps.squares) / 2 + 2 * int(steps.weights[-1]) + 64, steps.total + 1)
    return 1 << max(math.ceil(needed) - 1, 1).bit_length()


def estimate_cost(steps: StepSizes) -> tuple[int, int]:
    """Return the estimated nanoseconds of evaluating each size at each frequency and of the transform, and bytes."""
    n = compute_length(steps)
    return n // 2 * (25 * len(steps.groups[0]) + 2 * n.bit_length()), 40 * n


def compute_tails(steps: StepSizes) -> tuple[ProbabilityLimits, ProbabilityLimits]:
    """Return limits of P(X >= threshold) for both thresholds, as wide as the claimed relative error."""
    reached, passed = (_compute_tail(steps, x) for x in steps.thresholds)
    return reached, passed


def _compute_tail(steps: StepSizes, threshold: int) -> ProbabilityLimits:
    if threshold <= 0:
        return ProbabilityLimits(1.0, 1.0)
    if threshold > steps.total:
        return ProbabilityLimits(0.0, 0.0)
    if 2 * threshold <= steps.total:  # most of it is above: what is below is made
        rest = _compute_tail(steps, steps.total - threshold + 1)
        return ProbabilityLimits(max(1.0 - float(rest.high), 0.0), min(1.0 - float(rest.low), 1.0))
    sizes, counts = steps.groups
    s = 2 * threshold - steps.total
    theta = find_tilt(sizes, counts, min(s, steps.total * (1 - 1e-9)))  # of S = 2 X - total
    slopes = np.tanh(theta * sizes)
    mean = round((steps.total + float((counts * sizes * slopes).sum())) / 2)
    n = compute_length(steps)
    probabilities = scipy.fft.irfft(_compute_characteristic(steps, slopes, mean, n), n)  # P(X = mean + k mod n), tilted
    first = threshold - mean
    last = steps.total - mean if n > steps.total else n // 2
    k = np.arange(first, last + 1)
    log_mass = float((counts * log_cosh(theta * sizes)).sum()) - theta * s
    terms = np.take(probabilities, k, mode="wrap") * np.exp(-2 * theta * (k - first))
    p = math.exp(log_mass) * math.fsum(terms) if log_mass > -745 else 0.0
    return ProbabilityLimits(p * (1 - CLAIMED), min(p * (1 + CLAIMED), 1.0))


def _compute_characteristic(steps: StepSizes, slopes: Floats, mean: int, n: int) -> NDArray[np.complex128]:
    """Return the Fourier transform of the tilted distribution of X - mean, shape (n // 2 + 1,).

    The transform of one size w is exp(i a) (cos a + i tanh(theta w) sin a), a = -pi k w / n.
    """
    sizes, counts = steps.groups
    transform = np.empty(n // 2 + 1, np.complex128)
    for start in range(0, len(transform), SLAB):
        k = np.arange(start, min(start + SLAB, len(transform)))
        log_size = np.zeros(len(k))
        angle = -np.pi / n * (k * (steps.total - 2 * mean) % (2 * n))
        for w, m, slope in zip(sizes.tolist(), counts.tolist(), slopes.tolist(), strict=True):
            half = -np.pi / n * (k * w % (2 * n))
            sine = np.sin(half)
            log_size += 0.5 * m * np.log1p(np.maximum((slope * slope - 1) * sine * sine, NEARLY_MINUS_ONE))
            angle += m * np.arctan2(slope * sine, np.cos(half))
        transform[start : start + len(k)] = np.exp(log_size) * np.exp(1j * angle)
    return transform
