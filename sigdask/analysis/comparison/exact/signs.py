"""Exact p-values of comparisons whose unit differences all have the same size: binomial tails, as columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import group_rows, number_rows
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.exact import ExactMethod, ExactValues
from sigdask.statistics.classical.sign import EXACT_UP_TO, sign_test
from sigdask.statistics.exact.sums import binomials

Integers = NDArray[np.int64]

METHODS: tuple[ExactMethod | None, ...] = (None, ("binomial", "exact"), ("binomial", "certified"))


def compute_binomial_values(signs: Integers, tail: int) -> ExactValues:
    """Return the exact p-values of the sign test for wins and losses, shape (n, 2); NaN where these are -1.

    Examples
    --------
    >>> compute_binomial_values(np.array([[12, 3], [-1, -1]]), TAILS.index("two-sided")).high.tolist()
    [0.03515625, nan]
    """
    n = len(signs)
    low, high, codes = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int32)
    total = signs.sum(axis=1)
    is_small = (total >= 0) & (total <= EXACT_UP_TO)
    low[is_small] = high[is_small] = sign_test(signs[is_small, 0], signs[is_small, 1], TAILS[tail])
    codes[is_small] = 1
    large = np.flatnonzero(total > EXACT_UP_TO)
    for group in group_rows(number_rows(*signs[large].T)):
        rows = large[group]
        wins, losses = signs[rows[0]].tolist()
        low[rows], high[rows] = compute_limits(wins, losses, tail)
        codes[rows] = 1 if low[rows[0]] == high[rows[0]] else 2
    return ExactValues(low, high, CodedColumn(codes, METHODS))


def compute_limits(wins: int, losses: int, tail: int) -> tuple[float, float]:
    """Return the lower and the upper limit of the sign test's p-value, for any number of wins and losses."""
    reached = (wins, losses, max(wins, losses))[tail]
    sides = 2 if TAILS[tail] == "two-sided" else 1
    bounds = binomials.compute_tail(wins + losses, reached)
    low, high = (min(float(sides * limit), 1.0) for limit in (bounds.low, bounds.high))
    return low, high


def count_tails(signs: Integers) -> int:
    """Return the number of distinct binomial tails that have too many signs to be computed as columns."""
    large_signs = signs[signs.sum(axis=1) > EXACT_UP_TO]
    return len(np.unique(large_signs, axis=0))
