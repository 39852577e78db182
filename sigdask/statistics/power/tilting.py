"""Populations with a given difference of two systems: the observed units, exponentially tilted.

Unit u is drawn with probability w_u proportional to exp(s L_u), where L_u is its influence on the difference of
scores: of all weights under which the (linearised) difference is as wanted these are nearest to equal ones in
Kullback-Leibler distance. No score is shifted, so that what is drawn are scores that were seen.

Efron 1981, "Nonparametric standard errors and confidence intervals", Canadian Journal of Statistics 9, section 7;
Davison & Hinkley 1997, "Bootstrap Methods and their Application", sections 4.4 and 5.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FIRST, LAST = -6, 40
"""Powers of two that strengths are tried at, in standard deviations of the influences."""

CONCENTRATED = 1e-12
"""Share of the weight beyond the units of largest influence at which stronger tilts change nothing."""

ROUNDING = 1e-11
"""Share of a difference by which rounding may miss it, as where all units differ by it."""


def compute_weights(influences: Array, strength: float) -> Array:
    """Return the probabilities of the units under a tilt of this strength, shape (n_units,).

    Examples
    --------
    >>> compute_weights(np.array([0.0, 1.0]), 0.0)
    array([0.5, 0.5])
    """
    exponents = strength * influences
    grown = np.exp(exponents - exponents.max())
    return np.asarray(grown / grown.sum())


def find_extreme_difference(influences: Array, difference: Callable[[Array], float], side: int) -> float:
    """Return the largest or smallest difference of scores that tilting can produce.

    Parameters
    ----------
    influences : array, shape (n_units,)
        Of the units on the difference.
    difference : callable
        The difference of scores under some weights.
    side : int
        1 for the largest, -1 for the smallest.
    """
    return side * max(
        side * difference(compute_weights(influences, strength)) for strength in _list_strengths(influences, side)
    )


def find_strength(influences: Array, difference: Callable[[Array], float], target: float) -> float | None:
    """Return the strength of the tilt that gives the target difference; None if no tilt does.

    Parameters
    ----------
    influences, difference
        As in `find_extreme_difference`.
    target : float
        Difference of scores.

    Examples
    --------
    >>> d = np.array([-1.0, 0.0, 2.0])
    >>> s = find_strength(d, lambda w: float(w @ d), 1.5)
    >>> round(float(compute_weights(d, s) @ d), 12)
    1.5
    >>> find_strength(d, lambda w: float(w @ d), 2.5) is None
    True
    """
    from scipy.optimize import brentq

    def missing(strength: float) -> float:
        return difference(compute_weights(influences, strength)) - target

    start, close = missing(0.0), ROUNDING * abs(target)
    if abs(start) <= close:
        return 0.0
    previous = 0.0
    for strength in _list_strengths(influences, -1 if start > 0 else 1):
        remaining = missing(strength)
        if abs(remaining) <= close:
            return strength
        if (remaining > 0) != (start > 0):
            return float(brentq(missing, previous, strength, xtol=1e-300, rtol=1e-13))
        previous = strength
    return None


def _list_strengths(influences: Array, side: int) -> list[float]:
    """Return tilt strengths of one sign, growing until all weight is on the units of largest influence."""
    spread = float(influences.std())
    if spread == 0:
        return [0.0]
    extreme = (influences * side).max()
    strengths: list[float] = []
    for power in range(FIRST, LAST):
        strengths.append(side * 2.0**power / spread)
        if compute_weights(influences, strengths[-1])[influences * side < extreme].sum() < CONCENTRATED:
            break
    return strengths


def compute_n_effective(probabilities: Array) -> float:
    """Return the number of equally likely units that gives the same precision (Kish 1965): 1 / sum of squares."""
    return float(1 / (probabilities**2).sum())
