"""Populations in which two systems differ by what is wanted: the observed units, exponentially tilted.

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


def weights(influences: Array, strength: float) -> Array:
    """Return the probabilities of the units, shape (n_units,).

    Examples
    --------
    >>> weights(np.array([0.0, 1.0]), 0.0)
    array([0.5, 0.5])
    """
    exponents = strength * influences
    grown = np.exp(exponents - exponents.max())
    return np.asarray(grown / grown.sum())


def reachable(influences: Array, difference: Callable[[Array], float], side: int) -> float:
    """Return the most extreme difference that tilting reaches.

    Parameters
    ----------
    influences : array, shape (n_units,)
        Of the units on the difference.
    difference : callable
        The difference of scores under some weights.
    side : int
        1 for the largest, -1 for the smallest.
    """
    return side * max(side * difference(weights(influences, strength)) for strength in _path(influences, side))


def strength_of(influences: Array, difference: Callable[[Array], float], wanted: float) -> float | None:
    """Return the strength under which the difference is as wanted; None where none is.

    Parameters
    ----------
    influences, difference
        As in `reachable`.
    wanted : float
        Difference of scores.

    Examples
    --------
    >>> d = np.array([-1.0, 0.0, 2.0])
    >>> s = strength_of(d, lambda w: float(w @ d), 1.5)
    >>> round(float(weights(d, s) @ d), 12)
    1.5
    >>> strength_of(d, lambda w: float(w @ d), 2.5) is None
    True
    """
    from scipy.optimize import brentq

    def missing(strength: float) -> float:
        return difference(weights(influences, strength)) - wanted

    start, close = missing(0.0), ROUNDING * abs(wanted)
    if abs(start) <= close:
        return 0.0
    before = 0.0
    for strength in _path(influences, -1 if start > 0 else 1):
        here = missing(strength)
        if abs(here) <= close:
            return strength
        if (here > 0) != (start > 0):
            return float(brentq(missing, before, strength, xtol=1e-300, rtol=1e-13))
        before = strength
    return None


def _path(influences: Array, side: int) -> list[float]:
    """Return strengths to one side, until all weight is on the units of largest influence."""
    spread = float(influences.std())
    if spread == 0:
        return [0.0]
    extreme = (influences * side).max()
    found: list[float] = []
    for power in range(FIRST, LAST):
        found.append(side * 2.0**power / spread)
        if weights(influences, found[-1])[influences * side < extreme].sum() < CONCENTRATED:
            break
    return found


def n_effective(probabilities: Array) -> float:
    """Return how many equally likely units would vary as much (Kish 1965): 1 / sum of squares."""
    return float(1 / (probabilities**2).sum())
