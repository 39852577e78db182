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


def find_tilt(sizes: Numbers, counts: Integers, s: float) -> float:
    """Return the tilt theta under which the mean of the signed sum is s, for |s| below the total of the sizes.

    The mean is the sum of counts * sizes * tanh(theta * sizes).
    """
    from scipy.optimize import brentq

    w, m, size = sizes.astype(np.float64), counts.astype(np.float64), abs(s)

    def missing(theta: float) -> float:
        return float((m * w * np.tanh(theta * w)).sum()) - size

    high = 1.0 / float(w.max())
    while missing(high) < 0 and high * float(w.max()) < 1e4:
        high *= 2
    return math.copysign(brentq(missing, 0.0, high, rtol=1e-14) if missing(high) > 0 else high, s)


def log_cosh(x: Numbers) -> Floats:
    """Return log(cosh(x))."""
    return np.asarray(np.logaddexp(x, -x) - math.log(2))


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
