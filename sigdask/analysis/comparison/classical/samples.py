"""Classical tests that treat the two systems' scores as independent samples, shown for contrast.

Systems that answer the same items go together (r12 above 0), which these tests take for luck: their intervals are
1 / sqrt(1 - r12) times too wide (Yeh 2000, section 2.1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sigdask.analysis.comparison.classical.agreement import Floats, MatchedComparisons
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.table import ClassicalColumn
from sigdask.statistics.classical.proportions import chi_square, two_proportion_z
from sigdask.statistics.classical.student import compute_t

FEWEST = 5
"""Right or wrong items that each system must be expected to have for chi-square to be near its distribution."""

FREEDOM = "pooled variance, n - 2 degrees of freedom"
NO_SPREAD = "not defined: scores do not vary"
ALL_ALIKE = "all items are alike"
NO_ITEMS = "does not fit: a system has no item that counts"


def two_sample_t(matched: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test the difference of two means with Student's two-sample t-test."""
    (a, b), spread = matched.sides, matched.spread
    total, squares = spread.total[a] - spread.total[b], spread.squares[a] + spread.squares[b]
    statistic, p = compute_t(total, squares, spread.n_units, spread.n_units - 1, alternative, samples=2)
    unit_text = "" if matched.unit == "item" else f", by {matched.unit}"
    codes = np.isnan(statistic).astype(np.int32)
    n = np.where(np.isnan(p), 0, 2 * spread.n_units)
    return ClassicalColumn(
        "two-sample-t", statistic, p, n, np.zeros_like(n), CodedColumn(codes, (FREEDOM + unit_text, NO_SPREAD))
    )


def compare_shares(matched: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test the difference of two shares of right items by the normal approximation."""
    z, p = two_proportion_z(*_get_counts(matched), alternative)
    return _build_column("binomial", matched, z, p, "z of the difference of two shares")


def chi2(matched: MatchedComparisons, alternative: str) -> ClassicalColumn:
    """Test the difference of two shares of right items with Pearson's chi-square test."""
    statistic, p = chi_square(*_get_counts(matched), alternative)
    side = "" if alternative == "two-sided" else ", one-sided by the sign of the difference"
    return _build_column("chi2", matched, statistic, p, f"1 degree of freedom, no correction for continuity{side}")


SHARE_TESTS: dict[str, Callable[[MatchedComparisons, str], ClassicalColumn]] = {
    "binomial": compare_shares,
    "chi2": chi2,
}
"""Tests of two shares, by name."""


def _get_counts(matched: MatchedComparisons) -> tuple[Floats, Floats, Floats, Floats]:
    (a, b), shares = matched.sides, matched.shares
    return shares.n_right[a], shares.n_items[a], shares.n_right[b], shares.n_items[b]


def _build_column(
    name: str, matched: MatchedComparisons, statistic: Floats, p: Floats, description: str
) -> ClassicalColumn:
    right_a, n_a, right_b, n_b = _get_counts(matched)
    n_right, n_items = right_a + right_b, n_a + n_b
    expected = np.minimum(n_a, n_b) * np.minimum(n_right, n_items - n_right) / np.maximum(n_items, 1)
    words = (
        description,
        f"{description}; a poor approximation, as fewer than {FEWEST} are expected in a cell",
        ALL_ALIKE,
        NO_ITEMS,
    )
    codes = np.select([np.isnan(p), np.isnan(statistic), expected < FEWEST], [3, 2, 1], 0).astype(np.int32)
    n = np.where(np.isnan(p), 0, n_items).astype(np.int64)
    return ClassicalColumn(name, statistic, p, n, np.zeros_like(n), CodedColumn(codes, words))
