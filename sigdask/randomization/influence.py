"""Influence of single units on a comparison: contributions, skewness, and whether a few units decide the result.

The contribution of a unit in the test is half of what the difference loses if only this unit is swapped. For a mean,
the contributions sum to the difference. For other scores they do so only approximately. Users see another contribution:
the unit's share of a sum, or the difference without the unit.

Differences of a few pairs after swaps, trial by trial. Tallies count exceedances of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.metrics.forms import Form, Ratios, compute_scores_or_nan, find_undefined
from sigdask.randomization.panels import RescoredPanel
from sigdask.randomization.panels.scored_sums import (
    MAX_NUMBERS,
    ScoredSums,
    compute_contributions,
)
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.slabs import iter_slabs
from sigdask.statistics.lattice import TIE

AT_ONCE = 2**20
"""Unit sums that are scored at a time."""


def compute_unit_contributions(panel: ScoredSums | PresencePanel, row: int, column: int) -> Floats:
    """Return the contribution of each kept unit to a pair's difference, shape (n_kept,), in score units.

    Concordant units, some of which a panel keeps, contribute 0. NaN if a user's formula gives no score.
    """
    if isinstance(panel, PresencePanel):
        return _compute_influences_from_sets(panel, row, column)
    if panel.linear[column]:
        above = panel.compute_numerators(column, panel.values[:, panel.pairs[row]])
        return np.asarray((above[:, 0] - above[:, 1]) * panel.compute_step_value(column))
    return _compute_influences_from_sums(panel, row, column)


def _compute_influences_from_sums(panel: ScoredSums, row: int, column: int) -> Floats:
    i, j = panel.pairs[row]
    metric = panel.metrics[column]
    result = np.zeros(len(panel.values))
    for start in range(0, len(result), step := max(1, AT_ONCE // panel.totals.shape[1])):
        block = slice(start, start + step)
        shift = panel.values[block, j].astype(np.int64) - panel.values[block, i]
        moved = np.flatnonzero(shift[:, list(metric.fields)].any(axis=1))
        shift = np.concatenate([np.zeros_like(shift[:1]), shift[moved]])  # the first swaps nothing
        a, b = (
            compute_scores_or_nan(metric.form, panel.to_arguments(column, totals))
            for totals in (panel.totals[i] + shift, panel.totals[j] - shift)
        )
        differences = a - b
        result[start + moved] = (differences[0] - differences[1:]) / 2
    return result


def _compute_influences_from_sets(panel: PresencePanel, row: int, column: int) -> Floats:
    """Return the units' contributions under a set metric, recounting only terms that only one system has."""
    n_units, form = panel.n_units, panel.metrics[column].form
    held = [panel.holdings[s] for s in panel.pairs[row]]
    exclusive = [np.setdiff1d(held[k], held[1 - k], assume_unique=True) for k in range(2)]
    scores = []
    for k in range(2):
        holders = np.bincount(held[k] // n_units, minlength=len(panel.golden))  # units that hold each term
        lost, got = exclusive[k], exclusive[1 - k]
        lost, got = lost[holders[lost // n_units] == 1], got[holders[got // n_units] == 0]
        change = np.zeros((n_units, 2), np.int64)  # right terms, terms
        for sign, entries in ((-1, lost), (1, got)):
            for field, weights in enumerate((panel.golden[entries // n_units], None)):
                change[:, field] += sign * np.bincount(entries % n_units, weights, n_units).astype(np.int64)
        totals = panel.totals[panel.pairs[row][k]]
        counts = np.column_stack([totals[:2] + change, np.full(n_units, totals[2])])
        scores.append((form.score(counts), panel.scores[panel.pairs[row][k]]))
    (a, seen_a), (b, seen_b) = scores
    return np.asarray(((seen_a[column] - seen_b[column]) - (a - b)) / 2)


def compute_effects(form: Form, sums: NDArray[Any]) -> tuple[Floats, Floats, bool]:
    """Return the scores of units alone, their contributions to a difference, and whether these add up to it.

    The difference is a sum over units if it is a difference of ratios whose denominators are equal in each unit. Then a
    contribution is the unit's part of the sum. Otherwise it is the loss of the difference if the unit is left out: the
    sums without the unit are scored as the whole is.

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
    if len(sums) == 1:  # nothing remains without it
        return scores, np.full(1, np.nan), False
    whole = compute_scores_or_nan(form, totals[None])[0]
    without = np.empty((len(sums), 2))
    for start in range(0, len(sums), step := max(1, AT_ONCE // sums.shape[2])):
        without[start : start + step] = compute_scores_or_nan(form, totals - sums[start : start + step])
    return scores, np.asarray((whole[0] - whole[1]) - (without[:, 0] - without[:, 1])), False


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


PairPanel = Panel | RescoredPanel


@dataclass(frozen=True, slots=True, eq=False)
class TrialDifferences:
    """The differences of one pair under one metric after swaps.

    Attributes
    ----------
    observed : float
        The observed difference, by the same steps.
    differences : float64 array, shape (n_trials,)
        Differences in the order of the trials.
    extreme : bool array, shape (n_trials, 3)
        Whether a tally counts each of them: T >= t, T <= t and |T| >= |t|, with ties.
    """

    observed: float
    differences: Floats
    extreme: Bools

    @staticmethod
    def from_differences(observed: float, differences: Floats, tie: Floats) -> TrialDifferences:
        """Return differences after swaps with marks of the exceedances among them; `tie` is the slack of each."""
        tails = differences >= observed - tie, differences <= observed + tie, np.abs(differences) >= abs(observed) - tie
        return TrialDifferences(observed, differences, np.column_stack(tails))


def iter_differences(panel: PairPanel, *, n_trials: int, run: int = 0, first: int = 0) -> Iterator[TrialDifferences]:
    """Yield the differences after swaps of each pair of a panel under its first metric, pair by pair.

    `panel.tally` counts the exceedances of the same trials. All differences are held in memory at once.

    Parameters
    ----------
    panel : Panel or RescoredPanel
        A panel of the wanted pairs.
    n_trials, run, first : int
        The trials.
    """
    if isinstance(panel, Panel):
        yield from _iter_from_sums(panel, n_trials=n_trials, run=run, first=first)
        return
    scores = panel.compute_trial_scores(run=run, first=first, n_trials=n_trials)
    for (a, b), observed in zip(scores, panel.observed_differences[:, 0].tolist(), strict=True):
        tie = float(TIE) * (np.abs(a) + np.abs(b)) + panel.trial_slack
        yield TrialDifferences.from_differences(observed, a - b, tie)


def _iter_from_sums(panel: Panel, *, n_trials: int, run: int, first: int) -> Iterator[TrialDifferences]:
    """Yield each pair's differences after swaps, for a panel of sums, whose pairs share the swaps of a trial."""
    rows = np.arange(len(panel.pairs))
    differences, tie = np.zeros((2, len(rows), n_trials))
    observed, position = np.zeros(len(rows)), 0
    for slab in iter_slabs(panel, run=run, first=first, n_trials=n_trials):
        block = slice(position, position := position + slab.n_trials)
        out, slack = np.zeros((2, len(rows), slab.n_trials))
        slab.kernels[0].add(slab, rows, 1.0, out, slack)
        differences[:, block], tie[:, block] = out, slack
        observed = slab.get_observed(0)
    for k in rows:
        yield TrialDifferences.from_differences(float(observed[k]), differences[k], tie[k])
