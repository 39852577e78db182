"""p-values from counts of exceedances: bound, Clopper-Pearson interval, and trials needed to decide.

Noreen 1989; Phipson & Smyth 2010; Clopper & Pearson 1934.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sigdask.statistics.distinct import find_distinct_pairs

Array = NDArray[np.float64]

DEFAULT_CONFIDENCE = 0.99

MAX_TRIALS = 2**48


def compute_p_value(n_extreme: ArrayLike, n_trials: ArrayLike, *, exact: ArrayLike) -> Array:
    """Return the exact share of exceedances where all arrangements were counted, else the bound (k + 1) / (n + 1)."""
    n = np.asarray(n_trials)
    return np.asarray(np.where(exact, n_extreme / np.maximum(n, 1), compute_bound(n_extreme, n_trials)))


def compute_bound(n_extreme: ArrayLike, n_trials: ArrayLike) -> Array:
    """Return (exceedances + 1) / (trials + 1), a valid p-value for any number of trials fixed beforehand.

    References
    ----------
    Noreen 1989; Phipson & Smyth 2010, "Permutation P-values should never be zero".

    Examples
    --------
    >>> float(compute_bound(96, 2**20))
    9.250632047050431e-05
    """
    return np.asarray((np.asarray(n_extreme) + 1) / (np.asarray(n_trials) + 1))


def clopper_pearson(
    n_extreme: ArrayLike, n_trials: ArrayLike, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[Array, Array]:
    """Return the Clopper-Pearson limits of a probability, from `n_extreme` occurrences in `n_trials` trials.

    Examples
    --------
    >>> low, high = clopper_pearson(30, 100, 0.95)
    >>> round(float(low), 12), round(float(high), 12)
    (0.21240642049, 0.39981467618)
    """
    half = (1 - confidence) / 2
    k, n = (np.asarray(counts, np.int64) for counts in np.broadcast_arrays(n_extreme, n_trials))
    few_k, few_n, inverse = find_distinct_pairs(k.ravel(), n.ravel())
    low = np.where(few_k > 0, special.betaincinv(np.maximum(few_k, 1), few_n - few_k + 1, half), 0.0)
    inside = few_k < few_n
    high = np.where(inside, special.betaincinv(few_k + 1, np.where(inside, few_n - few_k, 1), 1 - half), 1.0)
    return low[inverse].reshape(k.shape), high[inverse].reshape(k.shape)


def estimate_trials_to_decide(p: float, alpha: float, confidence: float = DEFAULT_CONFIDENCE) -> int | None:
    """Return about how many trials it takes until the confidence interval of p excludes alpha, if p is as estimated.

    None where p and alpha are too close for any number that could be run.
    """
    if p == alpha:
        return None
    z = float(special.ndtri(0.5 + confidence / 2))
    needed = math.ceil((z / (p - alpha)) ** 2 * max(p * (1 - p), alpha * (1 - alpha)) * 1.1)
    return needed if needed < MAX_TRIALS else None
