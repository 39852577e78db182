"""Wilcoxon's signed-rank test: exact for the observed ranks, with ties and two rules for zeros.

Sizes of differences are ranked, equal ones share their mean rank, and each rank has either sign with probability 1/2.
Wilcoxon (1945) drops zeros and ranks the rest; Pratt (1959) ranks zeros as well and then drops them. What is summed are
doubled ranks, which are integers: their distribution is that of all sums of subsets (Streitberg & Röhmel 1986).
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigdask.io.compiled_cache import cached_njit
from sigdask.statistics.classical.proportions import compute_normal_p

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

EXACT_UP_TO = 100
"""Differences that are not zero up to which p is exact; of more it is that of a normal distribution."""

DROPPED = -1
"""Stands for the number of units where zeros are dropped before ranks are given."""

MOST_NUMBERS = 2**19
"""Differences that are sorted at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class SignedRanks:
    """Results of Wilcoxon's signed-rank test for several comparisons: arrays of shape (n,).

    Attributes
    ----------
    statistic : float64
        Sum of the ranks of positive differences (V of R's wilcox.test).
    p_value : float64
    n : int64
        Differences that are not zero.
    """

    statistic: Floats
    p_value: Floats
    n: Integers


def wilcoxon(
    differences: ArrayLike,
    alternative: str = "two-sided",
    *,
    zeros: str = "wilcox",
    n_units: ArrayLike | None = None,
    tolerance: float = 0.0,
) -> SignedRanks:
    """Test by Wilcoxon's signed-rank test whether differences are symmetric about zero.

    Up to 100 differences that are not zero, p is exact, also with ties and zeros; of more it is that of the normal
    distribution with the variance that these ranks have, without correction for continuity.

    Parameters
    ----------
    differences : float64 array, shape (n_comparisons, n_units)
        First system minus second.
    alternative : {"two-sided", "greater", "less"}
        Of the differences.
    zeros : {"wilcox", "pratt"}
        Whether zeros are dropped before ranks are given, or after.
    n_units : int array, shape (n_comparisons,), optional
        How many there are, where those without a difference are not all listed.
    tolerance : float
        Sizes that are no further apart are equal, and no larger ones zero.

    Examples
    --------
    >>> found = wilcoxon([[11, 1, 1, -2, 2, 47, 11, -1, 1, -7]])  # Tague 1981
    >>> found.statistic.tolist(), found.p_value.tolist(), found.n.tolist()
    ([40.0], [0.220703125], [10])
    """
    d = np.asarray(differences, np.float64)
    step = max(1, MOST_NUMBERS // max(d.shape[1], 1))
    sizes = np.broadcast_to(d.shape[1] if n_units is None else np.asarray(n_units, np.int64), len(d))
    slices = (slice(k, k + step) for k in range(0, max(len(d), 1), step))
    parts = [wilcoxon_sorted(np.sort(d[rows], axis=1), sizes[rows], alternative, zeros, tolerance) for rows in slices]
    return SignedRanks(
        np.concatenate([part.statistic for part in parts]),
        np.concatenate([part.p_value for part in parts]),
        np.concatenate([part.n for part in parts]),
    )


def wilcoxon_sorted(
    ordered: Floats, n_units: Integers, alternative: str, zeros: str = "wilcox", tolerance: float = 0.0
) -> SignedRanks:
    """Test rows of differences that are sorted in ascending order, by Wilcoxon's signed-rank test.

    All rows are tested together, so pass only some at a time.
    """
    sizes = np.ascontiguousarray(n_units) if zeros == "pratt" else np.full(len(ordered), DROPPED)
    return _compute_p_values(*_sum_signed_ranks(ordered, tolerance, sizes).T, alternative=alternative)


def _compute_p_values(
    n: Floats, doubled: Floats, total: Floats, squares: Floats, p_at_most: Floats, p_equal: Floats, *, alternative: str
) -> SignedRanks:
    """Return test results from doubled rank sums and the probabilities of the smaller of the two signs' sums."""
    is_exact = n <= EXACT_UP_TO
    spread = np.sqrt(np.where(squares > 0, squares, 1.0)) / 2
    p = compute_normal_p((doubled - total / 2) / spread, alternative)
    if alternative == "two-sided":
        exact = np.minimum(1.0, 2 * p_at_most)
    else:
        is_smaller = (doubled <= total / 2) == (alternative == "less")
        exact = np.where(is_smaller | (doubled == total / 2), p_at_most, 1.0 - p_at_most + p_equal)
    return SignedRanks(doubled / 2, np.where(is_exact, exact, p), n.astype(np.int64))


@cached_njit()
def _sum_signed_ranks(ordered, tolerance, n_units):
    """Return, for each comparison, sums of signed ranks and the probabilities of the smaller sum.

    Parameters
    ----------
    ordered : float64 array, shape (n_comparisons, n_units)
        Each row ascending.
    tolerance : float
        Of sizes that are equal.
    n_units : int64 array, shape (n_comparisons,)
        By Pratt's rule, zeros included; `DROPPED` by Wilcoxon's.

    Returns
    -------
    float64 array, shape (n_comparisons, 6)
        Differences that are not zero; the doubled ranks of positive ones summed, of all summed, and their squares; the
        chances of a sum that is at most, and that is exactly, the smaller of the two signs' sums.
    """
    out = np.zeros((len(ordered), 6))
    ranks = np.empty(EXACT_UP_TO, np.int64)
    for row in range(len(ordered)):
        row_differences = ordered[row]
        down, up = (
            row_differences[: np.searchsorted(row_differences, -tolerance)],
            row_differences[np.searchsorted(row_differences, tolerance, side="right") :],
        )
        n = len(down) + len(up)
        shift = 0 if n_units[row] == DROPPED else n_units[row] - n
        positive, squares = _sum_ranks(down, up, shift, tolerance, ranks)
        total = float(n) * (n + 1) + 2.0 * shift * n
        sums = out[row]
        sums[0], sums[1], sums[2], sums[3] = n, positive, total, squares
        if n <= EXACT_UP_TO:
            sums[4], sums[5] = _compute_chances(ranks[:n], int(min(positive, total - positive)))
    return out


@cached_njit()
def _sum_ranks(down, up, shift, tolerance, ranks):
    """Return the sum of positive differences' doubled ranks and the sum of all squared ranks; store ranks if few.

    Negative and positive differences, each ascending, are gone through from zero outwards, all of one size together.
    """
    n, i, j, n_ranked, positive, squares = len(down) + len(up), len(down), 0, 0, 0.0, 0.0
    while n_ranked < n:
        size = min(-down[i - 1] if i else np.inf, up[j] if j < len(up) else np.inf)
        n_down = n_up = 0
        while True:  # sizes that are as large as the last one
            if i > n_down and -down[i - 1 - n_down] <= size + tolerance:
                size = max(size, -down[i - 1 - n_down])
                n_down += 1
            elif j + n_up < len(up) and up[j + n_up] <= size + tolerance:
                size = max(size, up[j + n_up])
                n_up += 1
            else:
                break
        tied = n_down + n_up
        rank = 2 * (n_ranked + shift) + tied + 1
        positive += float(rank) * n_up
        squares += float(rank) * rank * tied
        if n <= EXACT_UP_TO:
            ranks[n_ranked : n_ranked + tied] = rank
        n_ranked, i, j = n_ranked + tied, i - n_down, j + n_up
    return positive, squares


@cached_njit()
def _compute_chances(ranks, limit):
    """Return P(S <= limit) and P(S = limit), where S sums ranks that are each included with probability 1/2."""
    common = 0
    for rank in ranks:  # their greatest common divisor
        a, b = common, rank
        while b:
            a, b = b, a % b
        common = a
    if common == 0:
        return 1.0, 1.0
    top, reached = limit // common, 0
    ways, new_ways = np.zeros(top + 1), np.zeros(top + 1)
    ways[0] = 1.0
    for rank in ranks:
        step = rank // common
        reached = min(reached + step, top)
        for s in range(min(step, reached + 1)):
            new_ways[s] = ways[s]
        with_rank, without = new_ways[step:], ways[step:]
        for s in range(reached + 1 - step):
            with_rank[s] = without[s] + ways[s]
        ways, new_ways = new_ways, ways
    chance = 0.5 ** len(ranks)
    return ways.sum() * chance, (ways[top] if top * common == limit else 0.0) * chance
