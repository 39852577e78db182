"""What each unit has to do with a difference: half of what the difference loses when this unit alone is exchanged.

Of a mean these contributions add up to the difference, and each is what the unit adds to it. Of other scores they are
what the exchange of the unit does to it, and add up to it only about: the units that decide are told, not shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.metrics.forms import scores_or_nan
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.panels.sets import PresencePanel

Floats = NDArray[np.float64]

AT_ONCE = 2**20
"""Sums of units that are scored together."""


def contributions(panel: ScoredSums | PresencePanel, row: int, column: int) -> Floats:
    """Return what each kept unit contributes to the difference of a pair, shape (n_kept,), in units of the score.

    Concordant units, of which a panel keeps some, contribute 0; a user's formula that gives no score is NaN.
    """
    if isinstance(panel, PresencePanel):
        return _of_sets(panel, row, column)
    if panel.linear[column]:
        above = panel.numerators_of(column, panel.values[:, panel.pairs[row]])
        return np.asarray((above[:, 0] - above[:, 1]) * panel.unit_of(column))
    return _of_sums(panel, row, column)


def _of_sums(panel: ScoredSums, row: int, column: int) -> Floats:
    i, j = panel.pairs[row]
    own = panel.metrics[column]
    found = np.zeros(len(panel.values))
    for start in range(0, len(found), step := max(1, AT_ONCE // panel.totals.shape[1])):
        here = slice(start, start + step)
        shift = panel.values[here, j].astype(np.int64) - panel.values[here, i]
        moved = np.flatnonzero(shift[:, list(own.fields)].any(axis=1))
        shift = np.concatenate([np.zeros_like(shift[:1]), shift[moved]])  # the first exchanges nothing
        a, b = (
            scores_or_nan(own.form, panel.sums(column, totals))
            for totals in (panel.totals[i] + shift, panel.totals[j] - shift)
        )
        apart = a - b
        found[start + moved] = (apart[0] - apart[1:]) / 2
    return found


def _of_sets(panel: PresencePanel, row: int, column: int) -> Floats:
    """Count terms again for each unit, of those alone that one of both systems holds in it."""
    n_units, form = panel.n_units, panel.metrics[column].form
    held = [panel.holdings[s] for s in panel.pairs[row]]
    alone = [np.setdiff1d(held[k], held[1 - k], assume_unique=True) for k in range(2)]
    scores = []
    for k in range(2):
        holders = np.bincount(held[k] // n_units, minlength=len(panel.golden))  # units that hold each term
        lost, got = alone[k], alone[1 - k]
        lost, got = lost[holders[lost // n_units] == 1], got[holders[got // n_units] == 0]
        change = np.zeros((n_units, 2), np.int64)  # right terms, terms
        for sign, entries in ((-1, lost), (1, got)):
            for at, weights in enumerate((panel.golden[entries // n_units], None)):
                change[:, at] += sign * np.bincount(entries % n_units, weights, n_units).astype(np.int64)
        totals = panel.totals[panel.pairs[row][k]]
        counts = np.column_stack([totals[:2] + change, np.full(n_units, totals[2])])
        scores.append((form.score(counts), panel.scores[panel.pairs[row][k]]))
    (a, seen_a), (b, seen_b) = scores
    return np.asarray(((seen_a[column] - seen_b[column]) - (a - b)) / 2)
