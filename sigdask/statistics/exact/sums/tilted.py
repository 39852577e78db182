"""Tails of integer sums, by the fast Fourier transform of a tilted distribution: accurate even far in the tail.

Under weights proportional to exp(theta S) the threshold is where the mean is, so that the tail is not lost in
the rounding of a transform; what the transform wraps around is bounded and made negligible by its length.

References
----------
Wilson & Keich 2016, Journal of Computational and Graphical Statistics 25:1137.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.result import Check, TailProbability
from sigdask.statistics.exact.sums.saddlepoint import find_tilt, log_cosh

CLAIMED = 1e-10
"""Relative error that is claimed."""

REACH = 17.0
"""Standard deviations on both sides of the threshold that the transform holds at least."""

SLAB = 2**16
NEARLY_MINUS_ONE = -1 + 1e-15


def compute_length(steps: StepSizes) -> int:
    """Return the length of the Fourier transform."""
    if steps.n == 0:
        return 1
    needed = min(2 * REACH * math.sqrt(steps.squares) / 2 + 2 * int(steps.weights[-1]) + 64, steps.total + 1)
    return 1 << max(math.ceil(needed) - 1, 1).bit_length()


def estimate_operations(steps: StepSizes) -> int:
    """Return the estimated nanoseconds of evaluating each distinct size at each frequency, and of the transform."""
    n = compute_length(steps)
    return n // 2 * (25 * len(steps.groups[0]) + 2 * n.bit_length())


def estimate_bytes(steps: StepSizes) -> int:
    """Return the estimated memory in bytes."""
    return 40 * compute_length(steps)


def compute_tails(steps: StepSizes, check: Check) -> tuple[TailProbability, TailProbability]:
    """Return limits of P(X >= threshold) for both thresholds, as wide as the claimed relative error."""
    reached, passed = (_compute_tail(steps, x, check) for x in steps.thresholds)
    return reached, passed


def _compute_tail(steps: StepSizes, threshold: int, check: Check) -> TailProbability:
    if threshold <= 0:
        return TailProbability(1.0, 1.0)
    if threshold > steps.total:
        return TailProbability(0.0, 0.0)
    if 2 * threshold <= steps.total:  # most of it is above: what is below is made
        rest = _compute_tail(steps, steps.total - threshold + 1, check)
        return TailProbability(max(1.0 - float(rest.high), 0.0), min(1.0 - float(rest.low), 1.0))
    p = _compute_upper_tail(steps, threshold, check)
    return TailProbability(p * (1 - CLAIMED), min(p * (1 + CLAIMED), 1.0))


def _compute_upper_tail(steps: StepSizes, threshold: int, check: Check) -> float:
    """Return P(X >= threshold) for a threshold above the mean."""
    sizes, counts = steps.groups
    s = 2 * threshold - steps.total
    theta = find_tilt(sizes, counts, min(s, steps.total * (1 - 1e-9)))  # of S = 2 X - total
    slopes = np.tanh(theta * sizes)
    mean = round((steps.total + float((counts * sizes * slopes).sum())) / 2)
    n = compute_length(steps)
    probabilities = fft.irfft(
        _compute_characteristic(steps, slopes, mean, n, check), n
    )  # P(X = mean + k mod n), tilted
    first = threshold - mean
    last = steps.total - mean if n > steps.total else n // 2
    k = np.arange(first, last + 1)
    log_mass = float((counts * log_cosh(theta * sizes)).sum()) - theta * s
    terms = np.take(probabilities, k, mode="wrap") * np.exp(-2 * theta * (k - first))
    return math.exp(log_mass) * math.fsum(terms) if log_mass > -745 else 0.0


def _compute_characteristic(
    steps: StepSizes, slopes: NDArray[np.float64], mean: int, n: int, check: Check
) -> NDArray[np.complex128]:
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
        check()
    return transform
