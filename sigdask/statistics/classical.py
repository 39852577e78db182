"""Classical tests and the correlation that they ignore."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import special

EXACT_UP_TO = 1000
"""Signs up to which the binomial is summed in integers."""


def sign_test(wins: int, losses: int, alternative: str = "two-sided") -> float:
    """Return the exact p-value of the sign test, ties dropped.

    Parameters
    ----------
    wins, losses : int
        Items on which the first system is better, and worse.
    alternative : {"two-sided", "greater", "less"}
        Of the first system.

    Examples
    --------
    >>> sign_test(12, 3)
    0.03515625
    """
    n = wins + losses
    if alternative == "two-sided":
        return min(1.0, 2.0 * _at_most(min(wins, losses), n))
    return _at_most(losses if alternative == "greater" else wins, n)


def _at_most(k: int, n: int) -> float:
    """Return P(X <= k), X ~ Bin(n, 1/2)."""
    if k >= n:
        return 1.0
    if n <= EXACT_UP_TO:
        return float(Fraction(sum(math.comb(n, i) for i in range(k + 1)), 2**n))
    return float(special.bdtr(k, n, 0.5))


def correlations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return r12 of all pairs of systems: the Pearson correlation of their item scores.

    Parameters
    ----------
    values : float64 array, shape (n_items, n_systems)
        Item scores, or 0/1 for items a system got right.

    Returns
    -------
    float64 array, shape (n_systems, n_systems)
        NaN where a system's scores are all the same.

    References
    ----------
    Yeh 2000, section 2.1.
    """
    constant = (values == values[:1]).all(axis=0)
    centred = np.where(constant, 0.0, values - values.mean(axis=0))  # a mean of equals may be rounded
    centred /= np.where(constant, 1.0, np.abs(centred).max(axis=0, initial=0.0))  # squares stay within range
    lengths = np.sqrt((centred**2).sum(axis=0))
    lengths[constant] = np.nan
    return np.asarray((centred.T @ centred) / np.outer(lengths, lengths))


def inflation(r12: float) -> float:
    """Return 1/sqrt(1 - r12): how much too wide a test is that takes the systems for independent.

    Examples
    --------
    >>> round(inflation(0.5), 3)
    1.414
    """
    return math.inf if r12 >= 1 else 1 / math.sqrt(1 - r12)
