"""Attainable size of a randomization test: p takes few values if units are few or scores are tied.

Every arrangement of the data is as likely as every other, so the share of arrangements with p <= alpha is the size,
given the data; with sampled shuffles, the mean over arrangements of P(p <= alpha), which is binomial.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sigdask.options import Alternative

MAX_ENUMERATED_UNITS = 10
"""Units up to which all arrangements are gone through."""


def compute_attainable_size(
    d: NDArray[Any], alpha: float, alternative: Alternative, n_trials: int | None
) -> NDArray[np.float64]:
    """Return the attainable size for each data set, or alpha if it cannot be enumerated.

    Parameters
    ----------
    d : int array, shape (n_units, n_sets)
        Differences.
    alpha : float
    alternative : str
    n_trials : int or None
        Sampled shuffles; None where all arrangements are counted.
    """
    sides = 2 if alternative == "two-sided" else 1
    if len(d) <= MAX_ENUMERATED_UNITS:
        return compute_rejection_rate(enumerate_p_values(d, sides), alpha, n_trials).mean(axis=0)
    magnitude = np.abs(d)
    is_sign_test = ((magnitude == 0) | (magnitude == magnitude.max(axis=0))).all(axis=0)
    sign_sizes = np.array([compute_sign_test_size(m, sides, alpha, n_trials) for m in range(len(d) + 1)])
    return np.where(is_sign_test, sign_sizes[np.count_nonzero(d, axis=0)], alpha)


def enumerate_p_values(d: NDArray[Any], sides: int) -> NDArray[np.float64]:
    """Return the exact p-value of each arrangement, shape (2**n_units, n_sets)."""
    sign_rows = 1 - 2 * (np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1)
    sums = sign_rows @ d
    ordered = np.sort(np.abs(sums) if sides == 2 else sums, axis=0)
    rank = np.arange(len(ordered))[:, None]
    is_first = np.diff(ordered, axis=0, prepend=ordered[:1] - 1) != 0
    return np.asarray(1 - np.maximum.accumulate(np.where(is_first, rank, 0), axis=0) / len(ordered))


@cache
def compute_sign_test_size(m: int, sides: int, alpha: float, n_trials: int | None) -> float:
    """Return the size of the sign test of m nonzero differences."""
    wins = np.arange(m + 1)
    chance = stats.binom.pmf(wins, m, 0.5)
    extreme = np.abs(2 * wins - m) if sides == 2 else wins
    p = np.array([chance[extreme >= threshold].sum() for threshold in extreme])
    return float(chance @ compute_rejection_rate(p, alpha, n_trials))


def compute_rejection_rate(p: NDArray[np.float64], alpha: float, n_trials: int | None) -> NDArray[np.float64]:
    """Return the probability of rejection for data with these exact p-values."""
    if n_trials is None:
        return np.asarray(p <= alpha + 1e-12, np.float64)
    return np.asarray(stats.binom.cdf(round(alpha * (n_trials + 1)) - 1, n_trials, np.minimum(p, 1.0)))
