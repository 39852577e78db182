"""Exact p-values where all differences of units are equally large: binomial tails, on columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.grouping import numbered, rows_of
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns.coded import Coded
from sigdask.results.exact import By, ExactValues
from sigdask.statistics.classical.sign import EXACT_UP_TO, sign_test
from sigdask.statistics.exact.sums import binomials

Integers = NDArray[np.int64]

VALUES: tuple[By | None, ...] = (None, ("binomial", "exact"), ("binomial", "certified"))


def binomial(signs: Integers, tail: int) -> ExactValues:
    """Return the exact p-values of wins and losses, shape (n, 2); of those below 0 nothing is known.

    Examples
    --------
    >>> binomial(np.array([[12, 3], [-1, -1]]), TAILS.index("two-sided")).high.tolist()
    [0.03515625, nan]
    """
    n = len(signs)
    low, high, codes = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, np.int32)
    total = signs.sum(axis=1)
    few = (total >= 0) & (total <= EXACT_UP_TO)
    low[few] = high[few] = sign_test(signs[few, 0], signs[few, 1], TAILS[tail])
    codes[few] = 1
    many = np.flatnonzero(total > EXACT_UP_TO)
    for own in rows_of(numbered(*signs[many].T)):
        at = many[own]
        wins, losses = signs[at[0]].tolist()
        low[at], high[at] = limits_of(wins, losses, tail)
        codes[at] = 1 if low[at[0]] == high[at[0]] else 2
    return ExactValues(low, high, Coded(codes, VALUES))


def limits_of(wins: int, losses: int, tail: int) -> tuple[float, float]:
    """Return both limits of one p-value, of any number of signs."""
    reached = (wins, losses, max(wins, losses))[tail]
    sides = 2 if TAILS[tail] == "two-sided" else 1
    found = binomials.upper(wins + losses, reached)
    low, high = (min(float(sides * limit), 1.0) for limit in (found.low, found.high))
    return low, high


def n_tails(signs: Integers) -> int:
    """Return how many tails cannot be summed on columns."""
    many = signs[signs.sum(axis=1) > EXACT_UP_TO]
    return len(np.unique(many, axis=0))
