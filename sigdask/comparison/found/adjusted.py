"""What stands beside an adjusted p: the p-values that it is the larger of, and the simultaneous interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sigdask.comparison.intervals.columns import Intervals
    from sigdask.comparison.table import Coded, Table

Floats = NDArray[np.float64]

UNADJUSTED = "unadjusted"
"""What the p of a comparison alone is called beside that of a family."""

SIMULTANEOUS = "simultaneous "
"""What stands before intervals that hold together."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjustmentDetails:
    """What stands beside adjusted p-values: arrays of shape (n,), NaN where a row has none.

    Attributes
    ----------
    first, second : Coded of str
        The two methods whose larger p is the adjusted p; empty where there is one method alone.
    p_first, p_second : float64
        Their p-values.
    low, high : float64
        Ends of the simultaneous interval of the difference at confidence 1 - alpha; infinite on the side that a
        one-sided test leaves open.
    """

    first: Coded[str]
    second: Coded[str]
    p_first: Floats
    p_second: Floats
    low: Floats
    high: Floats

    @property
    def has_two(self) -> NDArray[np.bool_]:
        """Which rows have the p-values of two methods."""
        return ~np.isnan(self.p_first)

    @property
    def has_interval(self) -> NDArray[np.bool_]:
        """Which rows have a simultaneous interval."""
        return ~np.isnan(self.low)


def no_details(n: int) -> AdjustmentDetails:
    """Return the columns of rows that have nothing beside their adjusted p."""
    from sigdask.comparison.table import Coded

    nothing = np.full(n, np.nan)
    return AdjustmentDetails(Coded.same("", n), Coded.same("", n), nothing, nothing, nothing, nothing)


def details_of(table: Table) -> AdjustmentDetails:
    """Return what stands beside the adjusted p of a table's rows; NaN where that is nothing."""
    return no_details(len(table)) if table.adjusted is None else table.adjusted


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
