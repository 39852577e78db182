"""Where a studentised maximum cannot be trusted: units' differences that are skewed.

Swapping outputs leaves the differences of two systems alike where these are equal in distribution. Two
systems of one mean that are skewed in opposite directions are not: the differences of units lean to one side,
the studentised sum of few of them falls further out on the other side than its swaps do, and more so in the
far tail that a family needs. The limits here were chosen by simulation (docs/statistics.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.families.deviations import leanings, skewness
from sigdask.randomization.families.max_t import Family
from sigdask.randomization.panels.families import FamilyMember

TOLERATED = 0.15
"""Skewness over the root of the number of units, from which the family-wise error exceeds its level by half."""

CHANCE = 2.576
"""Standard errors, sqrt(6 / units), within which skewness may be chance (1 % of normal differences are beyond)."""

SHARE = 0.05
"""Share of a family's comparisons from which it is said: single ones are beyond both limits by chance."""

SYSTEM = 0.1
"""Share of a system's comparisons from which all of them are taken for skewed, but those that lean to the lead."""


def skewed(family: Family) -> NDArray[np.bool_]:
    """Say for which hypotheses the skewness diagnosis fires, shape (n_hypotheses,).

    A sample can lack the rare units that make a difference skewed, while other comparisons of the same system show
    them. So where a tenth of a system's comparisons are skewed, all of them count as skewed. Where the system ahead
    owes its lead to rare large gains, the test errs to the safe side: a comparison is left out where systems and
    differences are skewed in the direction of the lead, the latter by a standard error or more. Comparisons whose
    differences all have one size (0/1 scores) are exempt.
    """
    return _diagnose(family, spread=True)


def n_skewed(family: Family) -> int:
    """Return how many comparisons of a studentised family are too skewed; 0 where so few are it by chance."""
    n = int(np.count_nonzero(_diagnose(family, spread=False)))
    return n if n >= SHARE * len(family.parts) else 0


def least(n_units: int) -> float:
    """Return the skewness of so many units beyond which it counts.

    Examples
    --------
    >>> round(least(30), 2), round(least(400), 2)
    (1.15, 3.0)
    """
    return max(TOLERATED * math.sqrt(n_units), CHANCE * math.sqrt(6 / max(n_units, 1)))


def _diagnose(family: Family, *, spread: bool) -> NDArray[np.bool_]:
    fires = np.zeros(len(family.parts), np.bool_)
    for k, member in enumerate(family.members):
        lean = leanings(member.panel, member.metric)
        for part in range(family.parts.shape[1]):
            here = np.flatnonzero(family.parts[:, part, 0] == k)
            fires[here] |= _skewed_pairs(member, family.parts[here, part, 1], lean, spread=spread)
    return fires


def _skewed_pairs(
    member: FamilyMember, rows: NDArray[np.int64], lean: NDArray[np.float64], *, spread: bool
) -> NDArray[np.bool_]:
    """Say which pairs of a member are skewed by what their two systems add in opposite directions."""
    panel = member.panel
    i, j = panel.pairs[rows].T
    can_be = panel.signs[rows, member.metric, 0] < 0  # else all differences have one size
    skew, is_opposite = skewness(panel, member.metric, rows.tolist()), lean[i] * lean[j] < 0
    fires = can_be & is_opposite & (np.abs(skew) > least(panel.n_units))
    if not spread:
        return np.asarray(fires)
    both = np.concatenate([i, j])
    n_fired, n_pairs = (np.bincount(both, weights, minlength=len(lean)) for weights in (np.tile(fires, 2), None))
    is_skewed = (n_fired > 0) & (n_fired >= SYSTEM * n_pairs)
    lead = np.sign(panel.differences[rows, member.metric])
    is_harmless = is_opposite & ((lean[i] - lean[j]) * lead > 0) & (skew * lead > math.sqrt(6 / max(panel.n_units, 1)))
    return np.asarray(can_be & (fires | is_skewed[i] | is_skewed[j]) & ~is_harmless)
