"""Student's t-test for matched pairs and for two independent samples (Yeh 2000, section 2).

Both ask whether the mean difference is zero and take it for normal. The matched one knows that the systems answered
the same units; the other one adds their variances, which are too wide for systems that go together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]

ROUNDED = 8 * np.finfo(np.float64).eps
"""Spread of equal numbers, relative to their size, that rounding alone may give."""


def matched_t(differences: ArrayLike, alternative: str = "two-sided") -> tuple[Floats, Floats]:
    """Return t of matched pairs with n - 1 degrees of freedom, and its p-value.

    Parameters
    ----------
    differences : float64 array, shape (..., n_units)
        First system minus second, unit by unit.
    alternative : {"two-sided", "greater", "less"}
        Of the mean difference.

    Returns
    -------
    tuple of float64 array, shape (...)
        As `compute_t`.

    Examples
    --------
    >>> t, p = matched_t([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])  # Student 1908
    >>> round(float(t), 4), round(float(p), 6)
    (4.0621, 0.002833)
    """
    d = np.asarray(differences, np.float64)
    total = d.sum(axis=-1)
    squares = ((d - (total / d.shape[-1])[..., None]) ** 2).sum(axis=-1)
    return compute_t(total, squares, d.shape[-1], d.shape[-1] - 1, alternative)


def two_sample_t(a: ArrayLike, b: ArrayLike, alternative: str = "two-sided") -> tuple[Floats, Floats]:
    """Return t of two independent samples of n units with 2n - 2 degrees of freedom, and its p-value.

    The variance is pooled; of samples of one size, Welch's t is the same and has fewer degrees of freedom.

    Parameters
    ----------
    a, b : float64 array, shape (..., n_units)
        Scores of the units.
    alternative : {"two-sided", "greater", "less"}
        Of mean a - mean b.

    Returns
    -------
    tuple of float64 array, shape (...)
        As `compute_t`.
    """
    scores_a, scores_b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    squares = sum(((x - x.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) for x in (scores_a, scores_b))
    n = scores_a.shape[-1]
    return compute_t(
        scores_a.sum(axis=-1) - scores_b.sum(axis=-1), np.asarray(squares), n, n - 1, alternative, samples=2
    )


def compute_t(
    total: ArrayLike, squares: ArrayLike, n: ArrayLike, freedom: ArrayLike, alternative: str = "two-sided",
    *, samples: int = 1, min_deviation: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return Student's t and its p-value from the sum of differences and the sum of squared deviations.

    Parameters
    ----------
    total : float array, shape (...)
        Sum of the differences.
    squares : float array, shape (...)
        Sum of their squares about the mean; of two samples, of both.
    n : int array, shape (...)
        Units.
    freedom : int array, shape (...)
        What `squares` is divided by for a variance: n - 1.
    alternative : {"two-sided", "greater", "less"}
        Of the mean difference.
    samples : int
        Each has that many degrees of freedom.
    min_deviation : float array, shape (...)
        Standard deviation up to which differences are equal but for their rounding.

    Returns
    -------
    tuple of float64 array, shape (...)
        t is NaN where nothing varies, and p then 1 of a mean of 0; else both are NaN, as of fewer than 2 units.
    """
    total, squares, n, freedom = (np.asarray(value, np.float64) for value in (total, squares, n, freedom))
    has = freedom > 0
    mean, variance = total / np.maximum(n, 1), squares / np.where(has, freedom, 1.0)
    varies = has & (np.sqrt(variance) > np.maximum(min_deviation, ROUNDED * np.abs(mean)))
    t = np.where(varies, total / np.sqrt(np.where(varies, variance * n, 1.0)), np.nan)
    p = np.where(has & ~varies & (np.abs(mean) <= min_deviation), 1.0, _compute_t_p(t, samples * freedom, alternative))
    return t, p


def _compute_t_p(t: Floats, freedom: Floats, alternative: str) -> Floats:
    if alternative == "two-sided":
        return np.asarray(2 * special.stdtr(freedom, -np.abs(t)))
    return np.asarray(special.stdtr(freedom, -t if alternative == "greater" else t))
