"""Contribution of each unit to a pair's difference: half of what the difference loses if only that unit is swapped.

For a mean, the contributions add up to the difference, and each is what the unit adds to it. For other scores, they
are the effects of swapping single units and add up only approximately: they show which units decide, not shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.metrics.forms import compute_scores_or_nan
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.panels.sets import PresencePanel

Floats = NDArray[np.float64]

AT_ONCE = 2**20
"""Sums of units that are scored together."""


def compute_contributions(panel: ScoredSums | PresencePanel, row: int, column: int) -> Floats:
    """Return the contribution of each kept unit to a pair's difference, shape (n_kept,), in score units.

    Concordant units, of which a panel keeps some, contribute 0; a user's formula that gives no score is NaN.
    """
    if isinstance(panel, PresencePanel):
        return _compute_from_sets(panel, row, column)
    if panel.linear[column]:
        above = panel.compute_numerators(column, panel.values[:, panel.pairs[row]])
        return np.asarray((above[:, 0] - above[:, 1]) * panel.compute_step_value(column))
    return _compute_from_sums(panel, row, column)


def _compute_from_sums(panel: ScoredSums, row: int, column: int) -> Floats:
    i, j = panel.pairs[row]
    metric = panel.metrics[column]
    result = np.zeros(len(panel.values))
    for start in range(0, len(result), step := max(1, AT_ONCE // panel.totals.shape[1])):
        block = slice(start, start + step)
        shift = panel.values[block, j].astype(np.int64) - panel.values[block, i]
        moved = np.flatnonzero(shift[:, list(metric.fields)].any(axis=1))
        shift = np.concatenate([np.zeros_like(shift[:1]), shift[moved]])  # the first exchanges nothing
        a, b = (
            compute_scores_or_nan(metric.form, panel.to_arguments(column, totals))
            for totals in (panel.totals[i] + shift, panel.totals[j] - shift)
        )
        differences = a - b
        result[start + moved] = (differences[0] - differences[1:]) / 2
    return result


def _compute_from_sets(panel: PresencePanel, row: int, column: int) -> Floats:
    """Return the units' contributions under a set metric, recounting only terms that one system alone has."""
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
