"""Effect sizes: differences in score relative to the standard deviation between units."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.resampling.jackknife import Jackknife
from sigdask.results.columns.intervals import Intervals

Integers = NDArray[np.int64]


def write_effects(
    panel: Panel,
    indices: Integers,
    row: Integers,
    column: Integers,
    jackknives: Sequence[Jackknife],
    columns: Intervals,
) -> None:
    """Write standardised differences (paired d) and skewness into the comparisons' rows of `columns`.

    The paired d is the difference over the standard deviation of what each unit contributes to it: of a mean over
    units of equal weight the mean of the units' differences over their standard deviation; of other scores by what
    changes when a unit is left out.
    """
    errors, skewness = (
        np.stack([getattr(jackknife, name) for jackknife in jackknives], axis=1)[row, column]
        for name in ("error", "skewness")
    )
    difference = panel.differences[row, column]
    deviation = errors * np.sqrt(panel.n_units)
    with np.errstate(divide="ignore", invalid="ignore"):
        d = np.where(deviation > 0, difference / deviation, np.where(difference == 0, 0.0, np.nan))
    columns.paired_d[indices] = d
    columns.skewness[indices] = skewness
