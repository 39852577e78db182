"""The intervals and p-values to show beside adjusted p-values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sigdask.results.columns.adjusted import SIMULTANEOUS, UNADJUSTED
from sigdask.results.columns.intervals import Intervals
from sigdask.results.table import Table, details_of


def intervals_to_show(table: Table) -> tuple[Intervals | None, str]:
    """Return the intervals to show beside the p that decides, and the word that stands before "interval".

    Beside adjusted p-values these are the simultaneous ones, where the family has such. All others are of each
    comparison alone, and called unadjusted.
    """
    own, sure = details_of(table), table.intervals
    if sure is None or np.isnan(table.p_adjusted).all():
        return sure, ""
    if not own.has_interval.any():
        return sure, f"{UNADJUSTED} "
    confidence = np.where(own.has_interval, 1 - table.alpha, np.nan)
    return replace(sure, low=own.low, high=own.high, confidence=confidence), SIMULTANEOUS
