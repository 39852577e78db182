"""The sign test, which is McNemar's exact test on 0/1 scores of single items.

What is the same for both systems is dropped. McNemar 1947; Conover 1999, section 3.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sigdask.statistics.distinct import find_distinct_pairs

EXACT_UP_TO = 1000
"""Signs up to which the binomial is summed in integers."""


def sign_test(wins: ArrayLike, losses: ArrayLike, alternative: str = "two-sided") -> NDArray[np.float64]:
    """Return the exact p-value of the sign test; ties are dropped.

    Parameters
    ----------
    wins, losses : int or int array, shape (...)
        Items on which the first system is better, and worse.
    alternative : {"two-sided", "greater", "less"}
        Of the first system.

    Returns
    -------
    float64 array, shape (...)

    Examples
    --------
    >>> float(sign_test(12, 3))
    0.03515625
    """
    up, down = (np.asarray(counts, np.int64) for counts in np.broadcast_arrays(wins, losses))
    n = up + down
    if alternative == "two-sided":
        return np.minimum(1.0, 2.0 * _binomial_cdf(np.minimum(up, down), n))
    return _binomial_cdf(down if alternative == "greater" else up, n)


def _binomial_cdf(k: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P(X <= k), X ~ Bin(n, 1/2): in integers for small n, else by the incomplete beta function."""
    few_k, few_n, inverse = find_distinct_pairs(k.ravel(), n.ravel())
    chances = np.asarray(special.bdtr(few_k, few_n, 0.5))
    sizes, starts, numbers = np.unique(few_n, return_index=True, return_counts=True)
    for size, start, number in zip(sizes.tolist(), starts, numbers, strict=True):
        if size <= EXACT_UP_TO:
            chances[start : start + number] = _sum_binomials(few_k[start : start + number].tolist(), size)
    return np.where(k >= n, 1.0, chances[inverse].reshape(k.shape))


def _sum_binomials(ascending: list[int], n: int) -> list[float]:
    """Return P(X <= k), X ~ Bin(n, 1/2), for each k of an ascending list."""
    shares, below, term, x = [], 0, 1, 0  # `below` is the sum of the terms before x, `term` is n choose x
    for k in ascending:
        while x <= min(k, n):
            below += term
            term = term * (n - x) // (x + 1)
            x += 1
        shares.append(below / 2**n)
    return shares
