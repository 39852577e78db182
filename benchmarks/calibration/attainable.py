"""The size that a randomization test can have on given data: p takes few values where units are few or tied.

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

ENUMERATED = 10
"""Units up to which all arrangements are gone through."""


def attainable(d: NDArray[Any], alpha: float, alternative: Alternative, n_trials: int | None) -> NDArray[np.float64]:
    """Return the size that each data set allows; alpha itself where it is not enumerated.

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
    if len(d) <= ENUMERATED:
        return rejected(orbits(d, sides), alpha, n_trials).mean(axis=0)
    size = np.abs(d)
    alike = ((size == 0) | (size == size.max(axis=0))).all(axis=0)
    of_signs = np.array([signs(m, sides, alpha, n_trials) for m in range(len(d) + 1)])
    return np.where(alike, of_signs[np.count_nonzero(d, axis=0)], alpha)


def orbits(d: NDArray[Any], sides: int) -> NDArray[np.float64]:
    """Return the exact p of each arrangement, shape (2**n_units, n_sets)."""
    turned = 1 - 2 * (np.arange(2 ** len(d))[:, None] >> np.arange(len(d)) & 1)
    sums = turned @ d
    ordered = np.sort(np.abs(sums) if sides == 2 else sums, axis=0)
    place = np.arange(len(ordered))[:, None]
    first = np.diff(ordered, axis=0, prepend=ordered[:1] - 1) != 0
    return np.asarray(1 - np.maximum.accumulate(np.where(first, place, 0), axis=0) / len(ordered))


@cache
def signs(m: int, sides: int, alpha: float, n_trials: int | None) -> float:
    """Return the size of the test of m signs."""
    wins = np.arange(m + 1)
    chance = stats.binom.pmf(wins, m, 0.5)
    extreme = np.abs(2 * wins - m) if sides == 2 else wins
    p = np.array([chance[extreme >= own].sum() for own in extreme])
    return float(chance @ rejected(p, alpha, n_trials))


def rejected(p: NDArray[np.float64], alpha: float, n_trials: int | None) -> NDArray[np.float64]:
    """Return how likely data of this exact p are rejected."""
    if n_trials is None:
        return np.asarray(p <= alpha + 1e-12, np.float64)
    return np.asarray(stats.binom.cdf(round(alpha * (n_trials + 1)) - 1, n_trials, np.minimum(p, 1.0)))
