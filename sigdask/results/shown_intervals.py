"""Choice of the intervals to show beside p-values: simultaneous or of single comparisons."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sigdask.results.columns.adjusted import SIMULTANEOUS, UNADJUSTED
from sigdask.results.columns.intervals import Intervals
from sigdask.results.table import Table, get_details


def select_intervals(table: Table) -> tuple[Intervals | None, str]:
    """Return the intervals to show beside the p that decides, and the word to put before "interval".

    Beside adjusted p-values these are the simultaneous ones, where the family has such. All others are of each
    comparison alone, and called unadjusted.
    """
    details, intervals = get_details(table), table.intervals
    if intervals is None or np.isnan(table.p_adjusted).all():
        return intervals, ""
    if not details.has_interval.any():
        return intervals, f"{UNADJUSTED} "
    confidence = np.where(details.has_interval, 1 - table.alpha, np.nan)
    return replace(intervals, low=details.low, high=details.high, confidence=confidence), SIMULTANEOUS
