"""Two shares that are taken for independent: the binomial test of their difference, and Pearson's chi-square.

Yeh 2000, section 2.2, tests the precision of two systems by the chi-square of their right and spurious responses. Both
tests are approximations, and one is the other's square: z**2 = chi-square.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]


def difference_of_shares(
    right_a: ArrayLike, n_a: ArrayLike, right_b: ArrayLike, n_b: ArrayLike, alternative: str = "two-sided"
) -> tuple[Floats, Floats]:
    """Return z of the difference of two shares, its variance pooled, and its p-value by the normal distribution.

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
    >>> z, p = difference_of_shares(47, 95, 25, 39)  # Yeh's precision
    >>> round(float(z**2), 6), round(float(p), 6)
    (2.380077, 0.122892)
    """
    a, n, b, m = (np.asarray(each, np.float64) for each in (right_a, n_a, right_b, n_b))
    right, whole, has = a + b, n + m, (n > 0) & (m > 0)
    varies = has & (right > 0) & (right < whole)
    inside = np.where(varies, n * m * right * (whole - right), 1.0)
    z = np.where(varies, (a * m - b * n) * np.sqrt(whole / inside), np.nan)
    return z, np.where(has & ~varies, 1.0, p_of_z(z, alternative))


def chi_square(
    right_a: ArrayLike,
    n_a: ArrayLike,
    right_b: ArrayLike,
    n_b: ArrayLike,
    alternative: str = "two-sided",
    *,
    corrected: bool = False,
) -> tuple[Floats, Floats]:
    """Return Pearson's chi-square of [[right a, wrong a], [right b, wrong b]], one degree of freedom, and its p-value.

    Parameters
    ----------
    right_a, n_a, right_b, n_b, alternative
        As in `difference_of_shares`; one-sided p is that of the root with the difference's sign.
    corrected : bool
        With Yates' correction for continuity.

    Returns
    -------
    tuple of float64 array, shape (...)
        As in `difference_of_shares`.
    """
    z, p = difference_of_shares(right_a, n_a, right_b, n_b, alternative)
    if not corrected:
        return z**2, p
    a, n, b, m = (np.asarray(each, np.float64) for each in (right_a, n_a, right_b, n_b))
    apart = np.abs(a * m - b * n)
    root = z * np.maximum(apart - (n + m) / 2, 0.0) / np.where(apart > 0, apart, 1.0)
    return root**2, np.where(np.isnan(z), p, p_of_z(root, alternative))


def p_of_z(z: Floats, alternative: str) -> Floats:
    """Return the p-value of a standard normal."""
    if alternative == "two-sided":
        return np.asarray(2 * special.ndtr(-np.abs(z)))
    return np.asarray(special.ndtr(-z if alternative == "greater" else z))
