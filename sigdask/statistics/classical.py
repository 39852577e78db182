"""The classical tests that Yeh 2000 discusses, vectorized over many comparisons, and the correlation r12.

- r12 is the correlation of two systems' item scores. Tests that ignore it lose power (Yeh 2000, section 2.1).
- Two independent proportions: the z-test of their difference, and Pearson's chi-square. Yeh 2000, section 2.2, tests
  precision by the chi-square of right and spurious responses. Both are approximations, and z**2 = chi-square.
- Sign test, which is McNemar's exact test on 0/1 scores of items. Units on which both systems are equal are dropped
  (McNemar 1947; Conover 1999, section 3.4).
- Student's t-test for matched pairs and for two independent samples (Yeh 2000, section 2). Both assume normal scores.
  The second one adds the variances of the systems, which is too much if their scores are correlated.
- Wilcoxon's signed-rank test, exact for the observed ranks. Equal sizes share their mean rank, and each rank has either
  sign with probability 1/2. Wilcoxon (1945) drops zeros and ranks the rest. Pratt (1959) ranks zeros too and then drops
  them. Doubled ranks are integers, so their distribution is that of the sums of subsets (Streitberg & Röhmel 1986).
"""
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.options import INDEPENDENT_TESTS, MATCHED_TESTS
from sigdask.statistics.bounds import find_distinct_pairs
from sigdask.text import suggest_name


def compute_correlations(values: Floats | Callable[[], Iterable[Floats]]) -> Floats:
    """Return the Pearson correlations of the item scores of all pairs of systems (r12 in Yeh 2000).

    Parameters
    ----------
    values : float64 array, shape (..., n_items, n_systems), or callable
        Item scores, or 0/1 for right items; or a function that yields them, some items at a time, on every call.

    Returns
    -------
    float64 array, shape (..., n_systems, n_systems)
        NaN if all scores of a system are equal.

    References
    ----------
    Yeh 2000, section 2.1.
    """
    blocks = values if callable(values) else lambda: [values]
    n, total, minimum, maximum = 0, np.zeros(1), np.full(1, math.inf), np.full(1, -math.inf)
    for block in blocks():
        n, total = n + block.shape[-2], total + block.sum(axis=-2)
        minimum = np.minimum(minimum, block.min(axis=-2, initial=math.inf))
        maximum = np.maximum(maximum, block.max(axis=-2, initial=-math.inf))
    mean = total / max(n, 1)
    varies = minimum < maximum  # the mean of equal numbers may be rounded
    spread = np.where(varies, np.maximum(maximum - mean, mean - minimum), 1.0)  # squares stay within range
    products: Any = 0.0
    for block in blocks():
        centred = np.where(varies[..., None, :], block - mean[..., None, :], 0.0) / spread[..., None, :]
        products = products + centred.swapaxes(-1, -2) @ centred
    # squares are rounded like the products, so that equal systems have correlation 1
    lengths = np.where(varies, np.sqrt(np.diagonal(products, axis1=-2, axis2=-1)), np.nan)
    return np.asarray(products / (lengths[..., :, None] * lengths[..., None, :]))


def compute_inflation(r12: float) -> float:
    """Return 1/sqrt(1 - r12), the factor by which assuming independent systems widens a test's standard error.

    Examples
    --------
    >>> round(compute_inflation(0.5), 3)
    1.414
    """
    return math.inf if r12 >= 1 else 1 / math.sqrt(1 - r12)


DESCRIPTIONS = MATCHED_TESTS | INDEPENDENT_TESTS

NAMES = tuple(DESCRIPTIONS)


def parse_tests(tests: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the requested tests in the order of `NAMES`.

    Parameters
    ----------
    tests : str or sequence of str, optional
        Names, separated by commas in a single text; "all" means all tests.

    Raises
    ------
    InputError
        There is no such test.

    Examples
    --------
    >>> parse_tests("wilcoxon,t"), parse_tests(["sign"]), parse_tests(None)
    (('t', 'wilcoxon'), ('sign',), ())
    """
    texts = (tests,) if isinstance(tests, str) else tests or ()
    words = [word.strip() for text in texts for word in text.split(",")]
    names = {name for word in words for name in (NAMES if word == "all" else (word,))}
    for word in names.difference(NAMES):
        expected = f"; expected {', '.join(NAMES)} or all"
        raise InputError(f"no classical test {word!r}{suggest_name(word, NAMES, expected)}")
    return sort_tests(names)


def sort_tests(names: Iterable[str]) -> tuple[str, ...]:
    """Return distinct test names in the order of `NAMES`.

    Examples
    --------
    >>> sort_tests(["sign", "t", "sign"])
    ('t', 'sign')
    """
    distinct = {*names}
    return tuple(name for name in NAMES if name in distinct)


def two_proportion_z(
    right_a: ArrayLike, n_a: ArrayLike, right_b: ArrayLike, n_b: ArrayLike, alternative: str = "two-sided"
) -> tuple[Floats, Floats]:
    """Return z of the difference of two proportions with pooled variance, and its normal p-value.

    Parameters
    ----------
    right_a, n_a, right_b, n_b : int array, shape (...)
        Number of right items and of all items, for each system.
    alternative : {"two-sided", "greater", "less"}
        Sign of share a - share b under the alternative.

    Returns
    -------
    tuple of float64 array, shape (...)
        z is NaN and p 1 if all or none are right. Both are NaN if there are no items.

    Examples
    --------
    >>> z, p = two_proportion_z(47, 95, 25, 39)  # Yeh's precision
    >>> round(float(z**2), 6), round(float(p), 6)
    (2.380077, 0.122892)
    """
    a, n, b, m = (np.asarray(count, np.float64) for count in (right_a, n_a, right_b, n_b))
    right, n_total, has = a + b, n + m, (n > 0) & (m > 0)
    varies = has & (right > 0) & (right < n_total)
    inside = np.where(varies, n * m * right * (n_total - right), 1.0)
    z = np.where(varies, (a * m - b * n) * np.sqrt(n_total / inside), np.nan)
    return z, np.where(has & ~varies, 1.0, compute_normal_p(z, alternative))


def compute_normal_p(z: Floats, alternative: str) -> Floats:
    """Return the p-value of a statistic z that is standard normal under the null hypothesis."""
    if alternative == "two-sided":
        return np.asarray(2 * scipy.special.ndtr(-np.abs(z)))
    return np.asarray(scipy.special.ndtr(-z if alternative == "greater" else z))


EXACT_UP_TO = 1000
"""Maximum number of signs for which the binomial is summed in integers."""


def sign_test(wins: ArrayLike, losses: ArrayLike, alternative: str = "two-sided") -> Floats:
    """Return the exact p-value of the sign test; ties are dropped.

    Parameters
    ----------
    wins, losses : int or int array, shape (...)
        Items on which the first system is better, and worse.
    alternative : {"two-sided", "greater", "less"}
        Direction in which the first system differs.

    Returns
    -------
    float64 array, shape (...)

    Examples
    --------
    >>> float(sign_test(12, 3))
    0.03515625
    """
    up, down = (np.asarray(counts, np.int64) for counts in np.broadcast_arrays(wins, losses))
    n = up + down
    if alternative == "two-sided":
        return np.minimum(1.0, 2.0 * _binomial_cdf(np.minimum(up, down), n))
    return _binomial_cdf(down if alternative == "greater" else up, n)


def _binomial_cdf(k: Integers, n: Integers) -> Floats:
    """Return P(X <= k), X ~ Bin(n, 1/2): in integers for small n, else by the incomplete beta function."""
    few_k, few_n, inverse = find_distinct_pairs(k.ravel(), n.ravel())
    chances = np.empty(few_n.shape)
    n_small = int(np.searchsorted(few_n, EXACT_UP_TO, "right"))
    sizes, starts, numbers = np.unique(few_n[:n_small], return_index=True, return_counts=True)
    for size, start, number in zip(sizes.tolist(), starts, numbers, strict=True):
        chances[start : start + number] = _sum_binomials(few_k[start : start + number].tolist(), size)
    if n_small < len(few_n):  # scipy's functions take longer to load than most comparisons take
        chances[n_small:] = scipy.special.bdtr(few_k[n_small:], few_n[n_small:], 0.5)
    return np.where(k >= n, 1.0, chances[inverse].reshape(k.shape))


def _sum_binomials(ascending: list[int], n: int) -> list[float]:
    """Return P(X <= k), X ~ Bin(n, 1/2), for each k of an ascending list."""
    shares, below, term, x = [], 0, 1, 0  # `below` is the sum of the terms before x, `term` is n choose x
    for k in ascending:
        while x <= min(k, n):
            below += term
            term = term * (n - x) // (x + 1)
            x += 1
        shares.append(below / 2**n)
    return shares


ROUNDED = 8 * np.finfo(np.float64).eps
"""Relative spread of equal numbers that may be rounding error."""


def compute_t(
    total: ArrayLike, squares: ArrayLike, n: ArrayLike, freedom: ArrayLike, alternative: str = "two-sided",
    *, samples: int = 1, min_deviation: ArrayLike = 0.0,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Return Student's t and its p-value from the sum of differences and the sum of squared deviations.

    Parameters
    ----------
    total : float array, shape (...)
        Sum of the differences.
    squares : float array, shape (...)
        Sum of their squares about the mean, over both samples if there are two.
    n : int array, shape (...)
        Units.
    freedom : int array, shape (...)
        Divisor of `squares` for a variance: n - 1.
    alternative : {"two-sided", "greater", "less"}
        Sign of the mean difference under the alternative.
    samples : int
        Number of samples.
    min_deviation : float array, shape (...)
        Standard deviation up to which differences are equal except for rounding.

    Returns
    -------
    tuple of float64 array, shape (...)
        t is NaN if nothing varies. Then p is 1 for a mean of 0 and otherwise NaN. Both are NaN for fewer than 2 units.
    """
    total, squares, n, freedom = (np.asarray(value, np.float64) for value in (total, squares, n, freedom))
    has = freedom > 0
    mean, variance = total / np.maximum(n, 1), squares / np.where(has, freedom, 1.0)
    varies = has & (np.sqrt(variance) > np.maximum(min_deviation, ROUNDED * np.abs(mean)))
    t = np.where(varies, total / np.sqrt(np.where(varies, variance * n, 1.0)), np.nan)
    p = np.where(has & ~varies & (np.abs(mean) <= min_deviation), 1.0, _compute_t_p(t, samples * freedom, alternative))
    return t, p


def _compute_t_p(t: Floats, freedom: Floats, alternative: str) -> Floats:
    if alternative == "two-sided":
        return np.asarray(2 * scipy.special.stdtr(freedom, -np.abs(t)))
    return np.asarray(scipy.special.stdtr(freedom, -t if alternative == "greater" else t))


WILCOXON_EXACT_UP_TO = 100
"""Maximum number of differences other than zero for which p is exact. Above it, p is from the normal distribution."""


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


def wilcoxon(differences: ArrayLike, alternative: str = "two-sided", tolerance: float = 0.0) -> SignedRanks:
    """Test rows of differences, shape (n, n_units), by Wilcoxon's signed-rank test; zeros are dropped before ranking.

    Absolute differences that differ by at most `tolerance` are equal.

    Examples
    --------
    >>> float(wilcoxon(np.array([[1.0, 2.0, 3.0, 4.0, -5.0]])).p_value[0])
    0.625
    """
    sums = np.array(
        [_sum_signed_ranks(row, tolerance) for row in np.asarray(differences, np.float64)], np.float64
    ).reshape(-1, 6)
    n, doubled, total, squares, p_at_most, p_equal = sums.T
    spread = np.sqrt(np.where(squares > 0, squares, 1.0)) / 2
    p = compute_normal_p((doubled - total / 2) / spread, alternative)
    if alternative == "two-sided":
        exact = np.minimum(1.0, 2 * p_at_most)
    else:  # the probabilities are those of the smaller of the two signs' sums
        is_smaller = (doubled <= total / 2) == (alternative == "less")
        exact = np.where(is_smaller | (doubled == total / 2), p_at_most, 1.0 - p_at_most + p_equal)
    return SignedRanks(doubled / 2, np.where(n <= WILCOXON_EXACT_UP_TO, exact, p), n.astype(np.int64))


def _sum_signed_ranks(differences: Floats, tolerance: float) -> tuple[float, ...]:
    """Return the number of nonzero differences, sums of ranks, and probabilities of the smaller sum.

    The sums are of the doubled ranks of positive differences, of all, and of all squared. The probabilities are those
    of a sum that is at most, and exactly, the smaller of the two signs' sums. They are 0 for many differences.
    """
    d = differences[np.abs(differences) > tolerance]
    d = d[np.argsort(np.abs(d))]
    n, sizes = len(d), np.abs(d)
    starts = np.flatnonzero(np.append(n > 0, sizes[1:] > sizes[:-1] + tolerance))
    tied = np.diff(starts, append=n)
    ranks = np.repeat(2 * starts + tied + 1, tied)
    positive, total = int(ranks[d > 0].sum()), n * (n + 1)
    chances = _compute_chances(ranks, min(positive, total - positive)) if n <= WILCOXON_EXACT_UP_TO else (0.0, 0.0)
    return n, positive, total, float((ranks.astype(np.float64) ** 2).sum()), *chances


def _compute_chances(ranks: Integers, limit: int) -> tuple[float, float]:
    """Return P(S <= limit) and P(S = limit), where S sums ranks that are each included with probability 1/2."""
    common = max(int(np.gcd.reduce(ranks)), 1)
    top = limit // common
    ways = np.zeros(top + 1)
    ways[0] = 1.0
    for step in (ranks[ranks <= limit] // common).tolist():
        ways[step:] = ways[step:] + ways[: top + 1 - step]
    chance = 0.5 ** len(ranks)
    return float(ways.sum()) * chance, (float(ways[top]) if top * common == limit else 0.0) * chance
