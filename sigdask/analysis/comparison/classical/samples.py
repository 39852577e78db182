"""Tests that take the two systems for independent, as if each had answered a test set of its own: for contrast.

Systems that answer the same items go together (r12 above 0), which these tests take for luck: their intervals are
1 / sqrt(1 - r12) times too wide (Yeh 2000, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sigdask.analysis.comparison.classical.agreement import Floats, MatchedComparisons
from sigdask.results.columns.coded import Coded
from sigdask.results.table import ClassicalColumn
from sigdask.statistics.classical.proportions import chi_square, difference_of_shares
from sigdask.statistics.classical.student import of_sums

FEWEST = 5
"""Right or wrong items that each system must be expected to have for chi-square to be near its distribution."""

FREEDOM = "pooled variance, n - 2 degrees of freedom"
NO_SPREAD = "not defined: scores do not vary"
ALL_ALIKE = "all items are alike"
NOTHING = "does not fit: a system has no item that counts"


def t(alike: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test the difference of two means by Student's t of two samples."""
    (a, b), own = alike.sides, alike.spread
    total, squares = own.total[a] - own.total[b], own.squares[a] + own.squares[b]
    t, p = of_sums(total, squares, own.n_units, own.n_units - 1, alternative, samples=2)
    by = "" if alike.unit == "item" else f", by {alike.unit}"
    codes = np.isnan(t).astype(np.int32)
    n = np.where(np.isnan(p), 0, 2 * own.n_units)
    return ClassicalColumn("two-sample-t", t, p, n, np.zeros_like(n), Coded(codes, (FREEDOM + by, NO_SPREAD)))


def binomial(alike: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test the difference of two shares by the normal approximation."""
    z, p = difference_of_shares(*_table(alike), alternative)
    return _of_shares("binomial", alike, z, p, "z of the difference of two shares")


def chi2(alike: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test two shares by Pearson's chi-square."""
    found, p = chi_square(*_table(alike), alternative)
    side = "" if alternative == "two-sided" else ", one-sided by the sign of the difference"
    return _of_shares("chi2", alike, found, p, f"1 degree of freedom, no correction for continuity{side}")


OF_SHARES: dict[str, Callable[[MatchedComparisons, str], ClassicalColumn]] = {"binomial": binomial, "chi2": chi2}
"""Tests of two shares, by name."""


def _table(alike: MatchedComparisons) -> tuple[Floats, Floats, Floats, Floats]:
    (a, b), own = alike.sides, alike.shares
    return own.right[a], own.whole[a], own.right[b], own.whole[b]


def _of_shares(name: str, alike: MatchedComparisons, statistic: Floats, p: Floats, how: str) -> ClassicalColumn:
    right_a, n_a, right_b, n_b = _table(alike)
    right, whole = right_a + right_b, n_a + n_b
    expected = np.minimum(n_a, n_b) * np.minimum(right, whole - right) / np.maximum(whole, 1)
    words = how, f"{how}; a poor approximation, as fewer than {FEWEST} are expected in a cell", ALL_ALIKE, NOTHING
    codes = np.select([np.isnan(p), np.isnan(statistic), expected < FEWEST], [3, 2, 1], 0).astype(np.int32)
    n = np.where(np.isnan(p), 0, whole).astype(np.int64)
    return ClassicalColumn(name, statistic, p, n, np.zeros_like(n), Coded(codes, words))
