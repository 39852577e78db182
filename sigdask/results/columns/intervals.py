"""Columns with intervals of differences and scores, and with effect sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sigdask.results.columns.coded import CodedColumn

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Intervals of differences and scores, and effect sizes: shape (n,), NaN where a row has none.

    Attributes
    ----------
    method : CodedColumn of str
        "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal" or "conditional-exact"; empty where
        there is no interval.
    why : CodedColumn of str
        What is to be known of it, or why there is none; empty as a rule.
    confidence : float64
    low, high : float64
        Of the difference; infinite where no shift is rejected.
    plain_low, plain_high : float64
        Of the same resamples, by their percentiles alone.
    a_low, a_high, b_low, b_high : float64
        Of both scores.
    n_resamples : int64
        Resamples, or trials of the inverted test; 0 where none were drawn.
    paired_d : float64
        The difference over the standard deviation of what units contribute to it.
    skewness : float64
        Of what they contribute.
    """

    method: CodedColumn[str]
    why: CodedColumn[str]
    confidence: Floats
    low: Floats
    high: Floats
    plain_low: Floats
    plain_high: Floats
    a_low: Floats
    a_high: Floats
    b_low: Floats
    b_high: Floats
    n_resamples: NDArray[np.int64]
    paired_d: Floats
    skewness: Floats


BCA, PERCENTILE, TANGO, INVERSION, NORMAL = "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal"
CONDITIONAL = "conditional-exact"
METHODS = ("", BCA, PERCENTILE, TANGO, INVERSION, NORMAL, CONDITIONAL)
"""What intervals are called, by the codes of columns that are made here."""

FLOAT_COLUMNS = (
    "confidence", "low", "high", "plain_low", "plain_high", "a_low", "a_high", "b_low", "b_high", "paired_d",
    "skewness",
)  # fmt: skip
"""The columns of real numbers."""
