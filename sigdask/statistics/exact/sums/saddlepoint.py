"""Saddlepoint approximation of the tail of a sum of randomly signed numbers; it decides no verdict.

References
----------
Lugannani & Rice 1980, Advances in Applied Probability 12:475; Robinson 1982, JRSS B 44:91;
Daniels 1987, International Statistical Review 55:37 (the correction for lattices).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]
Numbers = NDArray[Any]

MAX_NEWTON_STEPS = 100


def find_tilt(sizes: Numbers, counts: NDArray[np.int64], s: float) -> float:
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


def log_cosh(x: Numbers) -> Array:
    """Return log(cosh(x))."""
    size = np.abs(x)
    return np.asarray(
        np.where(
            size < 1e-2, size**2 / 2 - size**4 / 12 + size**6 / 45, size + np.log1p(np.exp(-2 * size)) - math.log(2)
        )
    )


def estimate_log_tail(sizes: Numbers, counts: NDArray[np.int64], s: float) -> float:
    """Return a low estimate of log P(S >= s), where S is the sum of the sizes with random signs.

    For s of 0 or below it is log(1/2).
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


def approximate_tail(sizes: Numbers, counts: NDArray[np.int64], s: int, span: int = 2) -> float:
    """Return approximately P(S >= s) for s > 0, where S is the sum of the sizes with random signs.

    Parameters
    ----------
    sizes, counts : int array, shape (n_distinct,)
        Sizes of differences, and how many there are of each.
    s : int
        The threshold.
    span : int
        Distance between neighbouring values of S on its lattice; 0 where sizes are real numbers.
    """
    total = int((sizes * counts).sum())
    n = int(counts.sum())
    if s >= total:
        return 2.0**-n if s == total else 0.0
    corrected = float(s) - span / 2
    theta = find_tilt(sizes, counts, corrected)
    w, m = sizes.astype(np.float64), counts.astype(np.float64)
    exponent = float((m * log_cosh(theta * w)).sum()) - theta * corrected
    variance = float((m * (w / np.cosh(np.minimum(theta * w, 300.0))) ** 2).sum())
    r = math.copysign(math.sqrt(max(-2 * exponent, 0.0)), theta)
    step = 2 * math.sinh(theta * span / 2) / span if span else theta
    u = step * math.sqrt(variance)
    if abs(r) < 1e-4:
        return 0.5
    log_density = -0.5 * r * r - 0.5 * math.log(2 * math.pi)
    upper = math.exp(float(special.log_ndtr(-r)))
    return min(max(upper + math.exp(log_density) * (1 / u - 1 / r), 0.0), 1.0)
