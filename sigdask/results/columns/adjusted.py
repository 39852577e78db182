"""What stands beside an adjusted p: the p-values that it is the larger of, and the simultaneous interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import Coded

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
    nothing = np.full(n, np.nan)
    return AdjustmentDetails(Coded.same("", n), Coded.same("", n), nothing, nothing, nothing, nothing)
