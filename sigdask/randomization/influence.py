"""Influence of single units on a comparison: contributions, skewness, and whether a few units decide the result.

The contribution of a unit is half of what the difference loses if only this unit is swapped. For a mean, the
contributions sum to the difference. For other scores they do so only approximately.

A page draws the differences of one comparison in its first trials.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.forms import Form, Ratios, compute_scores_or_nan, find_undefined
from sigdask.randomization.panels.scored_sums import MAX_NUMBERS, ScoredSums, compute_contributions
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import iter_slabs

AT_ONCE = 2**20
"""Unit sums that are scored at a time."""


def compute_effects(form: Form, sums: NDArray[Any]) -> tuple[Floats, Floats, bool]:
    """Return the scores of units alone, their contributions to a difference, and whether these add up to it.

    A contribution is half of what the difference loses if only this unit is swapped. The difference is a sum over units
    if it is a difference of ratios whose denominators are equal in each unit. Then this is the unit's part of the sum.

    Parameters
    ----------
    form : Form
        The score of sums of fields.
    sums : array, shape (n_units, 2, n_fields)
        Sums of the fields over each unit's items, for both systems.

    Returns
    -------
    (float64 array, float64 array, bool)
        Scores of shape (n_units, 2), NaN if undefined, contributions of shape (n_units,), and whether they add up.
    """
    scores = compute_scores_or_nan(form, sums)
    scores[find_undefined(form, sums)] = np.nan
    totals = sums.sum(axis=0)
    if isinstance(form, Ratios) and len(form.numerators) == 1:
        below = sums @ np.array(form.denominators[0])
        if (below[:, 0] == below[:, 1]).all() and below.sum() > 0:
            difference = (sums[:, 0] - sums[:, 1]) @ np.array(form.numerators[0])
            return scores, np.asarray(difference / (totals[0] @ np.array(form.denominators[0]))), True
    swapped, (a, b) = np.empty((len(sums), 2)), compute_scores_or_nan(form, totals)
    for start in range(0, len(sums), step := max(1, AT_ONCE // sums.shape[2])):
        block = sums[start : start + step]
        swapped[start : start + step] = compute_scores_or_nan(form, totals - block + block[:, ::-1])
    return scores, ((a - b) - (swapped[:, 0] - swapped[:, 1])) / 2, False


FEW = 5
"""Up to this share of the units counts as few."""

MARGIN = 1.25
"""The verdict may change if an approximate p without some units passes the level by this factor."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonVerdicts:
    """Verdicts on some comparisons: arrays of shape (n_rows,).

    Attributes
    ----------
    decision : int8
        1 significant, 0 not, -1 undecided.
    level : float64
        Level that the unadjusted p must reach.
    side : int8
        0 two-sided, 1 greater, -1 less.
    """

    decision: NDArray[np.int8]
    level: Floats
    side: NDArray[np.int8]

    def take(self, rows: Integers) -> ComparisonVerdicts:
        """Return the verdicts on some of the comparisons."""
        return ComparisonVerdicts(self.decision[rows], self.level[rows], self.side[rows])


def find_deciding(
    panel: ScoredSums, metric: int, rows: Integers, verdicts: ComparisonVerdicts
) -> tuple[Integers, Bools]:
    """Return how many units decide each of some pairs under one metric, and whether they decide the sign.

    Returns
    -------
    (int64 array, bool array)
        The smallest number of units without which the sign or the verdict changes, 0 if these are not few; and whether
        the sign changes without them, else the verdict does.
    """
    n_deciding, reverses = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    differing = np.flatnonzero(panel.n_discordant[rows, metric] > 0)
    size = max(1, MAX_NUMBERS // max(len(panel.addresses), 1))
    for batch in (differing[start : start + size] for start in range(0, len(differing), size)):
        d = compute_contributions(panel, metric, rows[batch].tolist())
        n_deciding[batch], reverses[batch] = _find_fewest(d, verdicts, batch)
        if not panel.linear[metric]:
            n_deciding[
                batch[~_confirm_reversals(panel, metric, rows[batch], d, n_deciding[batch], reverses[batch])]
            ] = 0
    return n_deciding, reverses


def _find_fewest(d: Floats, verdicts: ComparisonVerdicts, batch: NDArray[np.intp]) -> tuple[Integers, Bools]:
    """Return how many units must be left out to change sign or verdict (0 if not few), and whether it is the sign."""
    d = np.sort(d / np.maximum(np.abs(d).max(axis=1, keepdims=True), np.finfo(np.float64).tiny), axis=1)
    n_differing = np.count_nonzero(d, axis=1)
    limit = max(1, int(n_differing.max()) // FEW)
    number = np.arange(1, limit + 1)
    decision, level, side = verdicts.decision[batch, None], verdicts.level[batch, None], verdicts.side[batch, None]
    lead, tolerance = d.sum(axis=1)[:, None], 1e-12 * np.abs(d).sum(axis=1)[:, None]
    fewest = np.full((2, len(d)), limit + 1)
    whole = _approximate_p(
        np.stack([(d**power).sum(axis=1)[:, None] for power in (1, 2, 4)]), n_differing[:, None], side
    )
    # if the approximation contradicts the verdict of all units (a ratio with few answers), it says nothing of fewer
    is_close = np.where(decision == 1, whole <= MARGIN * level, whole >= level / MARGIN)
    for ordered, is_lead in ((d, lead <= tolerance), (d[:, ::-1], lead >= -tolerance)):
        powers = (ordered**power for power in (1, 2, 4))
        moments = np.stack([values.sum(axis=1)[:, None] - values[:, :limit].cumsum(axis=1) for values in powers])
        is_reversed = is_lead & (np.abs(moments[0]) > tolerance) & (np.sign(moments[0]) != np.sign(lead))
        p = _approximate_p(moments, n_differing[:, None] - number, side)
        is_changed = np.where(decision == 1, is_lead & (p > MARGIN * level), (decision == 0) & (p < level / MARGIN))
        is_changed &= is_close
        is_few = number <= np.maximum(1, n_differing // FEW)[:, None]
        for row, changes in enumerate((is_reversed, is_changed)):
            n_first = np.where((changes & is_few).any(axis=1), (changes & is_few).argmax(axis=1) + 1, limit + 1)
            fewest[row] = np.minimum(fewest[row], n_first)
    n_deciding = fewest.min(axis=0)
    return np.where(n_deciding > limit, 0, n_deciding), fewest[0] <= fewest[1]


def _confirm_reversals(
    panel: ScoredSums, metric: int, pairs: Integers, d: Floats, n_deciding: Integers, reverses: Bools
) -> Bools:
    """Return which pairs pass: where `reverses` is set, scores without the deciding units do reverse the difference."""
    is_confirmed = np.ones(len(pairs), np.bool_)
    for row in np.flatnonzero(reverses & (n_deciding > 0)).tolist():
        lead = np.sign(d[row].sum())
        out = np.argsort(-lead * d[row], kind="stable")[: n_deciding[row]]
        totals = panel.totals[panel.pairs[pairs[row]]]
        remaining = totals - panel.values[out][:, panel.pairs[pairs[row]]].sum(axis=0, dtype=np.int64)
        (a, b), (c, e) = (
            compute_scores_or_nan(panel.metrics[metric].form, panel.to_arguments(metric, sums))
            for sums in (totals, remaining)
        )
        is_confirmed[row] = bool((a - b) * (c - e) < 0) or a == b
    return is_confirmed


def _approximate_p(moments: Floats, n_left: Integers, side: NDArray[np.int8]) -> Floats:
    """Return p of a swap test by an Edgeworth expansion, but at least the smallest possible p."""
    total, squares, fourths = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(squares > 0, total / np.sqrt(squares), 0.0)
        kurtosis = np.where(squares > 0, -2 * fourths / squares**2, 0.0)
    z = np.where(side == 0, np.abs(z), side * z)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    tail = scipy.special.ndtr(-z) + density * kurtosis / 24 * (z**3 - 3 * z)
    sides = np.where(side == 0, 2.0, 1.0)
    return np.asarray(np.clip(sides * tail, sides * 2.0 ** -np.maximum(n_left, 0), 1.0))


def draw_differences(panel: Panel, row: int, column: int, tail: int, n_trials: int) -> tuple[Floats, Bools]:
    """Return the differences of a pair after the swaps of its first trials, and which of them are extreme.

    As many are extreme as a tally of these trials counts in this tail, an index of `tallies.TAILS`.
    """
    parts = []
    for slab in iter_slabs(panel.select([row], [column]), run=0, first=0, n_trials=n_trials):
        out, slack = np.empty((2, 1, slab.n_trials))
        slab.kernels[0].write(slab, np.arange(1), 1.0, out, slack)
        parts.append(np.concatenate([out, slack]))
    differences, ties = np.concatenate(parts, axis=1)
    observed = float(slab.get_observed(0)[0])
    tails = differences >= observed - ties, differences <= observed + ties, np.abs(differences) >= abs(observed) - ties
    return differences, tails[tail]
