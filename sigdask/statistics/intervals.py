"""Confidence intervals of scores and differences, from counts of resamples and of arrangements.

References
----------
Efron 1987, Journal of the American Statistical Association 82:171 (BCa). Efron & Tibshirani 1993, An
Introduction to the Bootstrap, chapter 14. Wilson 1927, Journal of the American Statistical Association
22:209. Hartigan 1969, Journal of the American Statistical Association 64:1303 (typical values: the
means of subsets). Garthwaite 1996, Biometrics 52:1387 (randomization tests inverted).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

ENUMERATED_UNITS = 20
"""Units up to which the means of all subsets are taken."""


def compute_level(confidence: float) -> float:
    """Return 1 - confidence without the rounding error of 1 - 0.95.

    Examples
    --------
    >>> compute_level(0.95)
    0.05
    """
    return round(1 - confidence, 12)


def compute_bca_shares(below: Floats, acceleration: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return, for both ends of BCa bootstrap intervals, the share of resamples below the end; NaN where undefined.

    Parameters
    ----------
    below : float64 array, shape (n,)
        Share of resamples below the observed value, ties split half.
    acceleration : float64 array, shape (n,)
        Skewness of what the units contribute, over 6 sqrt(n_units).
    confidence : float
        Of the intervals.

    Examples
    --------
    Without bias and skewness it is the percentile interval.

    >>> [float(share.round(6)[0]) for share in compute_bca_shares(np.array([0.5]), np.array([0.0]), 0.95)]
    [0.025, 0.975]
    """
    alpha = compute_level(confidence)
    quantile = special.ndtri(below)
    bias = np.where(np.isfinite(quantile), quantile, np.nan)
    shares = []
    for z in special.ndtri([alpha / 2, 1 - alpha / 2]):
        shifted = bias + z
        denominator = 1 - acceleration * shifted
        shares.append(
            np.where(
                denominator > 0, special.ndtr(bias + shifted / np.where(denominator > 0, denominator, 1.0)), np.nan
            )
        )
    low, high = shares
    is_defined = np.isfinite(low) & np.isfinite(high)
    return np.where(is_defined, low, np.nan), np.where(is_defined, high, np.nan)


def wilson(successes: ArrayLike, n: ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's score interval for proportions.

    Examples
    --------
    >>> [round(float(end), 4) for end in wilson(9, 10, 0.95)]
    [0.5958, 0.9821]
    """
    k, n = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    z = float(special.ndtri(1 - compute_level(confidence) / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(np.maximum(k * (n - k) / n + z * z / 4, 0.0))
    return np.where(k == 0, 0.0, centre - half), np.where(k == n, 1.0, centre + half)


def count_rejected(confidence: float, n_trials: int, *, is_exact: bool) -> int:
    """Return how many arrangements, with the observed one, may be as extreme as the observed one if a test rejects.

    That many values of the inverted test lie outside the interval on each side, the end itself included. Of all
    arrangements these are one-sided, at half of what the confidence leaves; of random ones two-sided.
    """
    alpha = compute_level(confidence)
    return math.floor(alpha / 2 * n_trials if is_exact else alpha * (n_trials + 1))


def invert_test(above: NDArray[np.int64], below: NDArray[np.int64], confidence: float) -> tuple[float, float]:
    """Return the ends of the confidence interval of a mean that inverts the exact two-sided randomization test.

    A shift D leaves sum(above - D below) over swapped units; swapping a subset of the units is as extreme,
    in one direction, where the subset's own mean lies on the other side of D. So the ends are order statistics of the
    2^n - 1 means of subsets (Hartigan 1969), here of all of them, and of sums of integers.

    Parameters
    ----------
    above : int64 array, shape (n_units,)
        What each unit adds to the difference's numerator, at most `ENUMERATED_UNITS` of them.
    below : int64 array, shape (n_units,)
        What it adds to the denominator, not negative.
    confidence : float
        Of the interval.

    Returns
    -------
    (float, float)
        In units of `above` over `below`; infinite where so few units reject nothing.

    Examples
    --------
    >>> invert_test(np.array([1, 2, 3, 4, 5, 6]), np.ones(6, np.int64), 0.9)
    (2.0, 5.0)
    """
    sums = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    for unit_values in zip(above.tolist(), below.tolist(), strict=True):
        sums = [
            np.concatenate([subset_sums, subset_sums + x]) for subset_sums, x in zip(sums, unit_values, strict=True)
        ]
    top, bottom = (subset_sums[1:].astype(np.float64) for subset_sums in sums)
    means = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.where(top > 0, np.inf, -np.inf))
    k = count_rejected(confidence, len(sums[0]), is_exact=True)
    if k == 0:
        return -math.inf, math.inf
    ordered = np.partition(means, [k - 1, len(means) - k])
    return float(ordered[k - 1]), float(ordered[len(means) - k])
