"""Exact power of the sign test for fixed probabilities of winning, losing and tying a unit.

The number of units that are not tied is binomial, and so is the number of wins among them: the power is a sum of
binomial tails over the former (Miettinen 1968, "The matched pairs design in the case of all-or-none responses",
Biometrics 24, who approximates it). The randomization test of 0/1 scores is this test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

Integers = NDArray[np.int64]

REACH = 9.0
"""Standard deviations beyond which a number of discordant units does not matter."""


def compute_critical_wins(n: Integers, alpha: float, sides: int) -> Integers:
    """Return the smallest number of wins among n untied units with which the sign test rejects; n + 1 where none does.

    Parameters
    ----------
    n : int64 array, shape (...)
        Units without ties.
    alpha : float
        Level of the test.
    sides : int
        1 or 2.

    Examples
    --------
    >>> compute_critical_wins(np.array([5, 6, 34]), 0.05, 2)
    array([ 6,  6, 24])
    """
    level = alpha / sides
    wins = np.ceil(n / 2 - special.ndtri(level) * np.sqrt(n) / 2).astype(np.int64).clip(0, n + 1)
    for _ in range(int(n.max(initial=0)) + 2):
        too_few = (wins <= n) & (_binomial_tail(wins, n, 0.5) > level)
        if not too_few.any():
            break
        wins = wins + too_few
    for _ in range(int(n.max(initial=0)) + 2):
        too_many = (wins > 0) & (_binomial_tail(wins - 1, n, 0.5) <= level)
        if not too_many.any():
            break
        wins = wins - too_many
    return np.asarray(wins)


def compute_sign_power(n_units: int, wins: float, losses: float, alpha: float, sides: int) -> float:
    """Return the probability that the sign test rejects, one-sided for more wins than losses or two-sided.

    Parameters
    ----------
    n_units : int
        Drawn independently.
    wins, losses : float
        Probability that a unit is won, and lost.
    alpha : float
        Level of the test.
    sides : int
        1 for a test whether wins are more, 2 for one of both sides.

    Examples
    --------
    >>> round(compute_sign_power(34, 0.7, 0.3, 0.05, 2), 12), round(compute_sign_power(34, 0.5, 0.5, 0.05, 2), 12)
    (0.554460693742, 0.024306510109)
    """
    differing = min(wins + losses, 1.0)
    middle, spread = n_units * differing, np.sqrt(n_units * differing * (1 - differing)) + 1
    low, high = max(int(middle - REACH * spread), 0), min(int(middle + REACH * spread) + 1, n_units)
    n = np.arange(low, high + 1)
    bars = compute_critical_wins(n, alpha, sides)
    share = wins / differing if differing else 0.5
    rejection = _binomial_tail(bars, n, share)
    if sides == 2:
        rejection = rejection + np.where(bars <= n, _binomial_tail(bars, n, 1 - share), 0.0)
    return float(_binomial_pmf(n, n_units, differing) @ rejection)


def _binomial_tail(k: Integers, n: Integers, p: float) -> NDArray[np.float64]:
    """Return P(X >= k), X ~ Bin(n, p); 1 where k <= 0, 0 where k > n."""
    inside = (k > 0) & (k <= n)
    tail = special.betainc(np.where(inside, k, 1), np.where(inside, n - k + 1, 1), p)
    return np.asarray(np.where(inside, tail, k <= 0))


def _binomial_pmf(k: Integers, n: int, p: float) -> NDArray[np.float64]:
    """Return P(X = k), X ~ Bin(n, p)."""
    log_choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(log_choose + special.xlogy(k, p) + special.xlog1py(n - k, -p)))
