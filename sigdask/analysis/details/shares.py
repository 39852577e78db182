"""Shares of units in a difference: how many units favour each system, and which units decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.details.histogram import EqualBars
from sigdask.randomization.contributions import compute_contributions
from sigdask.randomization.panels.sets import PresencePanel
from sigdask.randomization.panels.sums import Panel

MOST_DECIDING = 10
"""Units named for each side."""

ROUNDING = 1e-9
"""Share of the largest contribution below which one is none."""


@dataclass(frozen=True, slots=True, eq=False)
class UnitShares:
    """The shares of units in the difference of one comparison.

    Attributes
    ----------
    add_up : bool
        Whether their sum is the difference.
    n_for_a, n_for_b, n_alike : int
        Units that raise the difference of scores, that lower it, and that do neither.
    histogram : EqualBars or None
        Of those that are not 0; those that lower it are marked. None where there are none.
    addresses : int64 array, shape (n_named,)
        The units that decide: those that raise it most, the first first, then those that lower it most.
    values : float64 array, shape (n_named,)
        Their contributions.
    scores : float64 array, shape (n_named, 2)
        What each of both systems scores in these units alone; NaN of scores that are no means.
    """

    add_up: bool
    n_for_a: int
    n_for_b: int
    n_alike: int
    histogram: EqualBars | None
    addresses: NDArray[np.int64]
    values: NDArray[np.float64]
    scores: NDArray[np.float64]

    @staticmethod
    def from_panel(panel: Panel | PresencePanel, row: int, column: int) -> UnitShares:
        """Return the shares of the units in a pair's difference under one metric."""
        all_values = compute_contributions(panel, row, column)
        size = np.abs(np.nan_to_num(all_values))
        nonzero = np.flatnonzero(size > ROUNDING * size.max(initial=0.0))
        values = all_values[nonzero]
        order = np.argsort(-values, kind="stable")
        above = order[: min(MOST_DECIDING, np.count_nonzero(values > 0))]
        below = order[::-1][: min(MOST_DECIDING, np.count_nonzero(values < 0))]
        deciding = np.concatenate([above, below])
        is_mean = isinstance(panel, Panel) and panel.linear[column]
        return UnitShares(
            add_up=is_mean,
            n_for_a=int(np.count_nonzero(values > 0)),
            n_for_b=int(np.count_nonzero(values < 0)),
            n_alike=panel.extent[1] - len(values),
            histogram=EqualBars.from_values(values, values < 0) if len(values) else None,
            addresses=panel.addresses[nonzero[deciding]],
            values=values[deciding],
            scores=_score_units(panel, row, column, nonzero[deciding])
            if is_mean
            else np.full((len(deciding), 2), np.nan),
        )


def _score_units(panel: Panel | PresencePanel, row: int, column: int, units: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return both systems' scores on single units, under a metric that is a mean, shape (n_units, 2)."""
    assert isinstance(panel, Panel)
    sums = panel.values[units][:, panel.pairs[row]].astype(np.int64)
    return panel.metrics[column].form.score(panel.to_arguments(column, sums))
