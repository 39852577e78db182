"""Columns with details of adjusted p-values: the p-values of two methods, and simultaneous intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import CodedColumn

Floats = NDArray[np.float64]

UNADJUSTED = "unadjusted"
"""What the p of a comparison alone is called beside that of a family."""

SIMULTANEOUS = "simultaneous "
"""What stands before intervals that hold together."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjustmentDetails:
    """Details of adjusted p-values: arrays of shape (n,), NaN where a row has none.

    Attributes
    ----------
    first, second : CodedColumn of str
        The two methods whose larger p is the adjusted p; empty where there is one method alone.
    p_first, p_second : float64
        Their p-values.
    low, high : float64
        Ends of the simultaneous interval of the difference at confidence 1 - alpha; infinite on the side that a
        one-sided test leaves open.
    """

    first: CodedColumn[str]
    second: CodedColumn[str]
    p_first: Floats
    p_second: Floats
    low: Floats
    high: Floats

    @property
    def has_two_methods(self) -> NDArray[np.bool_]:
        """Whether each row has the p-values of two methods."""
        return ~np.isnan(self.p_first)

    @property
    def has_interval(self) -> NDArray[np.bool_]:
        """Whether each row has a simultaneous interval."""
        return ~np.isnan(self.low)


def build_empty_details(n: int) -> AdjustmentDetails:
    """Return columns for `n` rows that have no details of adjusted p-values."""
    missing = np.full(n, np.nan)
    return AdjustmentDetails(
        CodedColumn.from_constant("", n), CodedColumn.from_constant("", n), missing, missing, missing, missing
    )
