"""Where a studentised maximum cannot be trusted: units' differences that are skewed.

Exchanging outputs leaves the differences of two systems alike where these are equal in distribution. Two
systems of one mean that are skewed in opposite directions are not: the differences of units lean to one side,
the studentised sum of few of them falls further out on the other side than its exchanges do, and more so in the
far tail that a family needs. The limits here were chosen by simulation (docs/statistics.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.deviations import leanings, skewness
from sigdask.randomization.max_t import Family

TOLERATED = 0.2
"""Skewness over the root of the number of units, from which the family-wise error is about twice its level."""

CHANCE = 2.576
"""Standard errors, sqrt(6 / units), within which skewness may be chance (1 % of normal differences are beyond)."""

SHARE = 0.05
"""Share of a family's comparisons from which it is said: single ones are beyond both limits by chance."""


def skewed(family: Family) -> NDArray[np.bool_]:
    """Say of which hypotheses any difference of units is too skewed, shape (n_hypotheses,)."""
    found = np.zeros(len(family.parts), np.bool_)
    for k, member in enumerate(family.members):
        panel, lean = member.panel, leanings(member.panel, member.metric)
        for part in range(family.parts.shape[1]):
            here = np.flatnonzero(family.parts[:, part, 0] == k)
            rows = family.parts[here, part, 1]
            opposite = lean[panel.pairs[rows, 0]] * lean[panel.pairs[rows, 1]] < 0
            found[here] |= opposite & (np.abs(skewness(panel, member.metric, rows.tolist())) > least(panel.n_units))
    return found


def least(n_units: int) -> float:
    """Return the skewness of so many units beyond which it counts.

    Examples
    --------
    >>> round(least(30), 2), round(least(400), 2)
    (1.15, 4.0)
    """
    return max(TOLERATED * math.sqrt(n_units), CHANCE * math.sqrt(6 / max(n_units, 1)))


def n_skewed(family: Family) -> int:
    """Return how many comparisons of a studentised family are too skewed; 0 where so few are it by chance."""
    n = int(np.count_nonzero(skewed(family)))
    return n if n >= SHARE * len(family.parts) else 0
