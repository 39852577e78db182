"""Detect skewed differences of units, for which a studentised maximum cannot be trusted.

Swapping outputs is valid if the outputs of both systems have the same distribution. Two systems can have the same mean
and still be skewed in opposite directions. Then the differences of units are skewed to one side. The studentised sum of
few of them is further out on the other side than its swaps are, most of all in the far tail that a family needs. The
limits here were chosen by simulation (docs/statistics/families-measured.md).
"""

from __future__ import annotations

import math

import numpy as np

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.randomization.families.deviations import compute_skewness, compute_system_skewness, find_possibly_skewed
from sigdask.randomization.families.max_t import MaxTFamily
from sigdask.randomization.panels.build import FamilyMember

TOLERATED = 0.15
"""Skewness over the root of the number of units from which the family-wise error exceeds its level by half."""

CHANCE = 2.576
"""Standard errors, sqrt(6 / units), within which skewness may be chance: 1 % of normal samples are beyond."""

SHARE = 0.05
"""Share of a family's comparisons that must be skewed for a note. Single ones exceed both limits by chance."""

SYSTEM = 0.1
"""Share of a system's comparisons from which all of them count as skewed, except those skewed towards the leading
system.
"""


def find_skewed(family: MaxTFamily) -> Bools:
    """Return which hypotheses are too skewed for a studentised maximum to be trusted, shape (n_hypotheses,).

    A sample can lack the rare units that skew a difference, while other comparisons of the same system show them. So if
    a tenth of a system's comparisons are skewed, all of them count as skewed. If rare large gains put a system ahead,
    the test is conservative. So a comparison is exempt if systems and differences are skewed in the direction of the
    lead, the latter by at least a standard error. Differences of one size (0/1 scores) are exempt too.
    """
    fires = np.zeros(len(family.parts), np.bool_)
    for k, member in enumerate(family.members):
        is_member = family.parts[:, :, 0] == k
        rows = family.parts[is_member][:, 1]
        rows, limit = rows[_find_eligible(member, rows)], compute_skewness_limit(member.panel.n_units)
        if not find_possibly_skewed(member.panel, member.metric, rows, limit).any():
            continue
        lean = compute_system_skewness(member.panel, member.metric)
        for part in range(family.parts.shape[1]):
            selected = np.flatnonzero(is_member[:, part])
            fires[selected] |= _find_skewed_pairs(member, family.parts[selected, part, 1], lean)
    return fires


def compute_skewness_limit(n_units: int) -> float:
    """Return the skewness above which a comparison of `n_units` units counts as skewed.

    Examples
    --------
    >>> round(compute_skewness_limit(30), 2), round(compute_skewness_limit(400), 2)
    (1.15, 3.0)
    """
    return max(TOLERATED * math.sqrt(n_units), CHANCE * math.sqrt(6 / max(n_units, 1)))


def _find_eligible(member: FamilyMember, rows: Integers) -> Bools:
    """Return which pairs of a member have differences of several sizes, unlike scores of 0 and 1."""
    return np.asarray(member.panel.sign_counts[rows, member.metric, 0] < 0)


def _find_skewed_pairs(member: FamilyMember, rows: Integers, lean: Floats) -> Bools:
    """Return which pairs of a member count as skewed: all pairs of a system if many of them are."""
    panel = member.panel
    i, j = panel.pairs[rows].T
    is_eligible = _find_eligible(member, rows)
    skew, is_opposite = compute_skewness(panel, member.metric, rows.tolist()), lean[i] * lean[j] < 0
    fires = is_eligible & is_opposite & (np.abs(skew) > compute_skewness_limit(panel.n_units))
    systems = np.concatenate([i, j])
    n_fired, n_pairs = (np.bincount(systems, weights, minlength=len(lean)) for weights in (np.tile(fires, 2), None))
    is_skewed = (n_fired > 0) & (n_fired >= SYSTEM * n_pairs)
    lead = np.sign(panel.differences[rows, member.metric])
    is_harmless = is_opposite & ((lean[i] - lean[j]) * lead > 0) & (skew * lead > math.sqrt(6 / max(panel.n_units, 1)))
    return np.asarray(is_eligible & (fires | is_skewed[i] | is_skewed[j]) & ~is_harmless)
