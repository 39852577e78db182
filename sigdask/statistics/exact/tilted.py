"""Estimates of small tails of sums with random signs, by which the windows of dynamic programming are chosen.

Under weights proportional to exp(theta S) the mean of the sum S is at the threshold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers

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
