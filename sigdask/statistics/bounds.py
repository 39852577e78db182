"""What some exceedances say of p: the bound, its interval, and the trials that would decide.

Noreen 1989; Phipson & Smyth 2010; Clopper & Pearson 1934.
"""

from __future__ import annotations

import math

from scipy import special

DEFAULT_CONFIDENCE = 0.99

MAX_TRIALS = 2**48


def p_value(n_extreme: int, n_trials: int, *, exact: bool) -> float:
    """Return the share of exceedances where all arrangements were counted, else the bound."""
    return n_extreme / n_trials if exact else bound(n_extreme, n_trials)


def bound(n_extreme: int, n_trials: int) -> float:
    """Return (nc + 1) / (nt + 1), a valid p-value at any nt fixed beforehand.

    References
    ----------
    Noreen 1989; Phipson & Smyth 2010, "Permutation P-values should never be zero".

    Examples
    --------
    >>> bound(96, 2**20)
    9.250632047050431e-05
    """
    return (n_extreme + 1) / (n_trials + 1)


def interval(n_extreme: int, n_trials: int, confidence: float = DEFAULT_CONFIDENCE) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of nc / nt.

    Examples
    --------
    >>> low, high = interval(30, 100, 0.95)
    >>> round(low, 12), round(high, 12)
    (0.21240642049, 0.39981467618)
    """
    half = (1 - confidence) / 2
    low = 0.0 if n_extreme == 0 else float(special.betaincinv(n_extreme, n_trials - n_extreme + 1, half))
    high = 1.0
    if n_extreme < n_trials:
        high = float(special.betaincinv(n_extreme + 1, n_trials - n_extreme, 1 - half))
    return low, high


def trials_to_decide(p: float, alpha: float, confidence: float = DEFAULT_CONFIDENCE) -> int | None:
    """Return about how many trials bring alpha outside the interval, if p is what it seems.

    None where p and alpha are too close for any number that could be run.
    """
    if p == alpha:
        return None
    z = float(special.ndtri(0.5 + confidence / 2))
    needed = math.ceil((z / (p - alpha)) ** 2 * max(p * (1 - p), alpha * (1 - alpha)) * 1.1)
    return needed if needed < MAX_TRIALS else None
