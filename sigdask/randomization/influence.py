"""Diagnosis of single comparisons: whether differences of units are skewed, and how few units decide the result.

A test that swaps outputs assumes that the differences of units are symmetric about 0 if the systems are equal. Rare
large losses break this: most units gain a little and a few lose much, or would if they had been drawn. The diagnosis
reads the units' differences, linearised for scores that are not means. Limits were chosen by simulation
(docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.counts.lattice import COUNTS
from sigdask.metrics.forms import scores_or_nan
from sigdask.randomization.families.deviations import MOST_NUMBERS, contributions, moment_skewness, unit_power_sums
from sigdask.randomization.panels.scored_sums import ScoredSums

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rows = NDArray[np.bool_]

LARGE = 1.5
"""Skewness beyond which a comparison is noted: at most 5 % of normal, uniform, logistic and graded samples are."""

TOLERATED = 0.15
"""The same over the root of the number of units, where that is more: of many units the sum is nearly normal."""

FEW = 5
"""A fifth of the units, or fewer, are few."""

MARGIN = 1.25
"""Factor by which an approximate p without some units passes the level before the verdict is said to change."""

PROBED = 64
"""Units in which most pairs have differences of both signs."""


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """How the units of some comparisons weigh: arrays of shape (n_rows,).

    Attributes
    ----------
    skewness : float64
        Of the units' differences; NaN where all of them have one size, as those of 0/1 scores, or none differs.
    is_skewed : bool
        Whether it is larger than chance makes it, both of all units and of those that differ.
    n_deciding : int64
        The fewest units without which the sign or the verdict changes, where the differences are skewed and these units
        are few; else 0.
    reverses : bool
        Whether the sign changes without them; else the verdict does.
    has_one_sign : bool
        Whether all units that differ favour one system, 0/1 scores left out.
    """

    skewness: Floats
    is_skewed: Rows
    n_deciding: Integers
    reverses: Rows
    has_one_sign: Rows


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonVerdicts:
    """What was decided of some comparisons: arrays of shape (n_rows,).

    Attributes
    ----------
    decision : int8
        1 significant, 0 not, -1 undecided.
    level : float64
        What p alone has to reach.
    side : int8
        0 two-sided, 1 greater, -1 less.
    """

    decision: NDArray[np.int8]
    level: Floats
    side: NDArray[np.int8]


def largest_by_chance(n_units: Integers) -> Floats:
    """Return the skewness that comparisons of so many units may have without a note.

    Examples
    --------
    >>> largest_by_chance(np.array([20, 400])).tolist()
    [1.5, 3.0]
    """
    return np.maximum(LARGE, TOLERATED * np.sqrt(n_units))


def unit_influence(panel: ScoredSums, metric: int, rows: Integers, verdicts: ComparisonVerdicts) -> Influence:
    """Diagnose some pairs of a panel under one metric."""
    n = len(rows)
    n_discordant, signs = panel.n_discordant[rows, metric], panel.signs[rows, metric]
    one_size = signs[:, 0] >= 0
    skewness, is_skewed = np.full(n, np.nan), np.zeros(n, np.bool_)
    if len(varied := np.flatnonzero(~one_size & (n_discordant > 0))):
        sums = unit_power_sums(panel, metric, rows[varied].tolist())
        skewness[varied] = moment_skewness(sums / max(panel.n_units, 1))
        among = moment_skewness(sums / n_discordant[varied])
        is_skewed[varied] = (
            (np.abs(skewness[varied]) > largest_by_chance(np.full(len(varied), panel.n_units)))
            & (np.abs(among) > largest_by_chance(n_discordant[varied]))
            & (skewness[varied] * among > 0)
        )
    n_deciding, reverses = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    for some in _in_runs(panel, np.flatnonzero(is_skewed)):
        d = contributions(panel, metric, rows[some].tolist())
        n_deciding[some], reverses[some] = _fewest(d, verdicts, some)
        if not panel.linear[metric]:
            n_deciding[some[~_confirmed(panel, metric, rows[some], d, n_deciding[some], reverses[some])]] = 0
    return Influence(skewness, is_skewed, n_deciding, reverses, _has_one_sign(panel, metric, rows, one_size))


def _in_runs(panel: ScoredSums, rows: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
    size = max(1, MOST_NUMBERS // max(len(panel.addresses), 1))
    yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _fewest(d: Floats, verdicts: ComparisonVerdicts, some: NDArray[np.intp]) -> tuple[Integers, Rows]:
    """Return the fewest units without which sign or verdict change, 0 where these are not few, and whether the sign."""
    d = np.sort(d / np.abs(d).max(axis=1, keepdims=True), axis=1)  # of skewed pairs, which vary
    n_differing = np.count_nonzero(d, axis=1)
    most = max(1, int(n_differing.max()) // FEW)
    number = np.arange(1, most + 1)
    decision, level, side = verdicts.decision[some, None], verdicts.level[some, None], verdicts.side[some, None]
    lead, tolerance = d.sum(axis=1)[:, None], 1e-12 * np.abs(d).sum(axis=1)[:, None]
    fewest = np.full((2, len(d)), most + 1)
    for ordered, is_lead in ((d, lead <= tolerance), (d[:, ::-1], lead >= -tolerance)):
        moments = _without_first(ordered, most)
        is_reversed = is_lead & (np.abs(moments[0]) > tolerance) & (np.sign(moments[0]) != np.sign(lead))
        p = _about_p(moments, n_differing[:, None] - number, side)
        is_changed = np.where(decision == 1, is_lead & (p > MARGIN * level), (decision == 0) & (p < level / MARGIN))
        few = number <= np.maximum(1, n_differing // FEW)[:, None]
        for which, changes in enumerate((is_reversed, is_changed)):
            first = np.where((changes & few).any(axis=1), (changes & few).argmax(axis=1) + 1, most + 1)
            fewest[which] = np.minimum(fewest[which], first)
    n_deciding = fewest.min(axis=0)
    return np.where(n_deciding > most, 0, n_deciding), fewest[0] <= fewest[1]


def _confirmed(
    panel: ScoredSums, metric: int, pairs: Integers, d: Floats, n_deciding: Integers, reverses: Rows
) -> Rows:
    """Say of which pairs the sign does change, scored anew without these units, where linearised differences say so."""
    found = np.ones(len(pairs), np.bool_)
    for row in np.flatnonzero(reverses & (n_deciding > 0)).tolist():
        lead = np.sign(d[row].sum())
        out = np.argsort(-lead * d[row], kind="stable")[: n_deciding[row]]
        totals = panel.totals[panel.pairs[pairs[row]]]
        left = totals - panel.values[out][:, panel.pairs[pairs[row]]].sum(axis=0, dtype=np.int64)
        (a, b), (c, e) = (scores_or_nan(panel.metrics[metric].form, panel.sums(metric, own)) for own in (totals, left))
        found[row] = bool((a - b) * (c - e) < 0) or a == b
    return found


def _without_first(d: Floats, most: int) -> Floats:
    """Return the sums of first, second and fourth powers without the first 1, 2, ... units, shape (3, n_rows, most)."""
    powers = (d**power for power in (1, 2, 4))
    return np.stack([own.sum(axis=1)[:, None] - own[:, :most].cumsum(axis=1) for own in powers])


def _about_p(moments: Floats, n_left: Integers, side: NDArray[np.int8]) -> Floats:
    """Return p of a swap test by an Edgeworth expansion (its skewness is 0), and no less than so many units allow."""
    total, squares, fourths = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(squares > 0, total / np.sqrt(squares), 0.0)
        kurtosis = np.where(squares > 0, -2 * fourths / squares**2, 0.0)
    z = np.where(side == 0, np.abs(z), side * z)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    tail = special.ndtr(-z) + density * kurtosis / 24 * (z**3 - 3 * z)
    sides = np.where(side == 0, 2.0, 1.0)
    return np.asarray(np.clip(sides * tail, sides * 2.0 ** -np.maximum(n_left, 0), 1.0))


def _has_one_sign(panel: ScoredSums, metric: int, rows: Integers, one_size: Rows) -> Rows:
    """Say of which pairs all units that differ favour one system, 0/1 scores left out."""
    found = np.zeros(len(rows), np.bool_)
    signs = panel.signs[rows, metric]
    alike = one_size & ((signs[:, 0] == 0) != (signs[:, 1] == 0))
    if alike.any() and not _is_binary(panel, metric):
        found |= alike
    rest = np.flatnonzero(~one_size & (panel.n_discordant[rows, metric] > 0))
    if panel.linear[metric] and len(panel.addresses) > PROBED:
        first = replace(panel, values=panel.values[:PROBED], addresses=panel.addresses[:PROBED])
        rest = rest[_all_of_one_sign(first, metric, rows[rest])]
    found[rest] = _all_of_one_sign(panel, metric, rows[rest])
    return found


def _all_of_one_sign(panel: ScoredSums, metric: int, rows: Integers) -> Rows:
    found = np.zeros(len(rows), np.bool_)
    for some in _in_runs(panel, np.arange(len(rows))):
        d = contributions(panel, metric, rows[some].tolist())
        found[some] = (d >= 0).all(axis=1) | (d <= 0).all(axis=1)
    return found


def _is_binary(panel: ScoredSums, metric: int) -> bool:
    """Say whether the item scores of a mean are 0 and 1 (or 0 and 100) alone."""
    above = panel.numerators_of(metric, panel.values)
    sizes = np.abs(above)
    largest = int(sizes.max(initial=0))
    if not bool(((sizes == 0) | (sizes == largest)).all()):
        return False
    counted = all(panel.lattices[f] == COUNTS for f in panel.compared(metric))
    score = largest * panel.unit_of(metric) * panel.n_items
    return (counted and largest == 1) or any(math.isclose(score, one, rel_tol=1e-9) for one in (1.0, 100.0))
