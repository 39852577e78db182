"""Tests of two independent proportions: the z-test of their difference, and Pearson's chi-square.

Yeh 2000, section 2.2, tests the precision of two systems by the chi-square of their right and spurious responses. Both
tests are approximations, and one is the other's square: z**2 = chi-square.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]


def two_proportion_z(
    right_a: ArrayLike, n_a: ArrayLike, right_b: ArrayLike, n_b: ArrayLike, alternative: str = "two-sided"
) -> tuple[Floats, Floats]:
    """Return z of the difference of two proportions with pooled variance, and its normal p-value.

    Parameters
    ----------
    right_a, n_a, right_b, n_b : int array, shape (...)
        How many of how many, of each system.
    alternative : {"two-sided", "greater", "less"}
        Of share a - share b.

    Returns
    -------
    tuple of float64 array, shape (...)
        z is NaN where all or none are right, and p 1; both are NaN where there is nothing to have a share of.

    Examples
    --------
    >>> z, p = two_proportion_z(47, 95, 25, 39)  # Yeh's precision
    >>> round(float(z**2), 6), round(float(p), 6)
    (2.380077, 0.122892)
    """
    a, n, b, m = (np.asarray(count, np.float64) for count in (right_a, n_a, right_b, n_b))
    right, n_total, has = a + b, n + m, (n > 0) & (m > 0)
    varies = has & (right > 0) & (right < n_total)
    inside = np.where(varies, n * m * right * (n_total - right), 1.0)
    z = np.where(varies, (a * m - b * n) * np.sqrt(n_total / inside), np.nan)
    return z, np.where(has & ~varies, 1.0, compute_normal_p(z, alternative))


def chi_square(
    right_a: ArrayLike,
    n_a: ArrayLike,
    right_b: ArrayLike,
    n_b: ArrayLike,
    alternative: str = "two-sided",
    *,
    corrected: bool = False,
) -> tuple[Floats, Floats]:
    """Return Pearson's chi-square of a 2x2 table of right and wrong by system, and its p-value.

    Parameters
    ----------
    right_a, n_a, right_b, n_b, alternative
        As in `two_proportion_z`; one-sided p is that of the root with the difference's sign.
    corrected : bool
        With Yates' correction for continuity.

    Returns
    -------
    tuple of float64 array, shape (...)
        As in `two_proportion_z`.
    """
    z, p = two_proportion_z(right_a, n_a, right_b, n_b, alternative)
    if not corrected:
        return z**2, p
    a, n, b, m = (np.asarray(count, np.float64) for count in (right_a, n_a, right_b, n_b))
    distance = np.abs(a * m - b * n)
    root = z * np.maximum(distance - (n + m) / 2, 0.0) / np.where(distance > 0, distance, 1.0)
    return root**2, np.where(np.isnan(z), p, compute_normal_p(root, alternative))


def compute_normal_p(z: Floats, alternative: str) -> Floats:
    """Return the p-value of a statistic z that is standard normal under the null hypothesis."""
    if alternative == "two-sided":
        return np.asarray(2 * special.ndtr(-np.abs(z)))
    return np.asarray(special.ndtr(-z if alternative == "greater" else z))
