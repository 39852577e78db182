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

Matched proportions: non-inferiority by 0/1 scores on the same items.

Of `n` items, `wins` are right for the system alone and `losses` for the baseline alone. Let q be the probability of a
loss, and q - margin that of a win. Then a system that is worse by the margin is a trinomial with one nuisance
parameter, q. The score test uses the most likely q at the margin, the exact test the q with the largest tail. The test
of clusters first divides the counts by their design effect. Each p-value falls as the margin grows, and the smallest
margin that is shown is where it crosses the level.

References
----------
Tango 1998, Statistics in Medicine 17:891. Hsueh, Liu & Chen 2001, Biometrics 57:478. Buehler 1957, Journal of the
American Statistical Association 52:482. Rao & Scott 1992, Biometrics 48:577. Carter, Schnepel & Steigerwald 2017,
Review of Economics and Statistics 99:698 (the effective number of clusters).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.options import INDEPENDENT_TESTS, MATCHED_TESTS
from sigdask.statistics import bounds
from sigdask.statistics.numbering import find_distinct_rows
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
    few, inverse = find_distinct_rows(np.column_stack([n.ravel(), k.ravel()]))
    few_n, few_k = few.T
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


EXACT_ITEMS = 200
"""Maximum number of items for the exact test."""

FEW_CLUSTERS = 15
"""If fewer units have more losses than wins, the design effect is not estimated but set to its largest value."""

MAX_MARGIN = 1 - 2.0**-40
"""Largest margin, as a share of items. Larger ones are treated as this one."""

HALVINGS = 60
GRID = 128
"""Number of values of the nuisance parameter at first, and again around the largest tails."""


@dataclass(frozen=True, slots=True)
class MatchedProportions:
    """Counts of a system's wins and losses against the baseline by 0/1 scores.

    Attributes
    ----------
    wins, losses : int
        Items that only the system, and only the baseline, has right.
    n_items : int
        Items, including those on which the two agree.
    design_effect : float
        Factor by which clusters increase the variance; 1 if items are independent.
    n_clusters : int or None
        Number of units of several items; None if each item is a unit.
    worth : float
        Score of a correct item. Margins have this scale, so those of 0/100 scores are percentage points.
    as_items : bool
        Whether each cluster counts as one item, because it is unknown how losses cluster.
    n_effective : float or None
        Effective number of clusters: n_clusters if all have the same size, and less otherwise. None for n_clusters.
    """

    wins: int
    losses: int
    n_items: int
    design_effect: float = 1.0
    n_clusters: int | None = None
    worth: float = 1.0
    as_items: bool = False
    n_effective: float | None = None

    @staticmethod
    def from_differences(differences: NDArray[Any], clusters: NDArray[Any], worth: float = 1.0) -> MatchedProportions:
        """Count wins and losses from item differences, and estimate the design effect of clusters of items.

        Parameters
        ----------
        differences : array, shape (n_items,)
            Difference of the system from the baseline: -1 for a loss, 1 for a win, 0 if they agree.
        clusters : int array, shape (n_items,)
            The unit of each item.
        worth : float
            Score of a correct item.
        """
        n_items, n_clusters = len(differences), len(np.unique(clusters))
        wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
        if n_clusters == n_items:
            return MatchedProportions(wins, losses, n_items, worth=worth)
        sizes = np.unique(clusters, return_counts=True)[1].astype(np.float64)
        squares = float((sizes**2).sum())
        effect = estimate_design_effect(differences, clusters)
        if as_items := effect is None:  # as if the items of a cluster were identical
            effect = squares / n_items  # the mean size of an item's cluster
        return MatchedProportions(
            wins, losses, n_items, effect, n_clusters, worth, as_items, n_effective=n_items**2 / squares
        )

    @property
    def is_exact(self) -> bool:
        """Whether the exact test is used."""
        return self.n_clusters is None and self.n_items <= EXACT_ITEMS

    @property
    def is_doubtful(self) -> bool:
        """Whether p may be too small, because so few clusters have most of the items."""
        return self.n_effective is not None and not self.as_items and self.n_effective < FEW_CLUSTERS

    @property
    def method(self) -> str:
        """The name of the test."""
        if self.n_clusters is not None:
            text = "each counted as one item" if self.as_items else f"design effect {self.design_effect:.3g}"
            doubt = f", from {self.n_effective:.2g} effective units: p may be too small" if self.is_doubtful else ""
            return f"cluster-robust score test, {self.n_clusters:,} units, {text}{doubt}"
        return "unconditional exact test" if self.is_exact else "score test"

    def compute_p_value(self, margin: float, alpha: float) -> float:
        """Return the one-sided p-value of the hypothesis that the system is worse by the margin or more.

        The exact test uses `alpha` to order its tables.
        """
        return self._compute_p(min(margin / self.worth, MAX_MARGIN), alpha)

    def compute_power(self, margin: float, alpha: float) -> float:
        """Return the approximate probability that non-inferiority is shown for a system as good as the baseline.

        The system is assumed to differ from the baseline on the observed number of items.
        """
        return self._compute_power(min(margin / self.worth, MAX_MARGIN), alpha)

    def find_margin_of_power(self, power: float, alpha: float) -> float:
        """Return the smallest margin for which an equal system is shown non-inferior with this power."""
        return _find_crossing(lambda share: 1 - self._compute_power(share, alpha), 1 - power, lower=0.0) * self.worth

    def _compute_p(self, share: float, alpha: float) -> float:
        if self.is_exact:
            return compute_exact_p(self.wins, self.losses, self.n_items, share, alpha)
        z = float(compute_score(self.wins, self.losses, self.n_items, share)) / math.sqrt(self.design_effect)
        return float(scipy.special.ndtr(-z) if self.n_clusters is None else scipy.special.stdtr(self._df, -z))

    def _compute_power(self, share: float, alpha: float) -> float:
        if self.is_exact and share < compute_exact_margin(0, 0, self.n_items, alpha):
            return 0.0  # not shown even for a system that agrees on all items
        half = (self.wins + self.losses) / self.n_items / 2
        n = self.n_items / self.design_effect
        needed = -float(
            scipy.special.ndtri(alpha) if self.n_clusters is None else scipy.special.stdtrit(self._df, alpha)
        )
        beyond = float(compute_score(half, half, 1.0, share)) * math.sqrt(n) - needed
        if half == 0:
            return float(self.is_exact or beyond >= 0)
        return float(
            scipy.special.ndtr(beyond * math.sqrt(float(compute_variance(half, half, 1.0, share)) / (2 * half)))
        )

    @property
    def _df(self) -> float:
        return max((self.n_effective or self.n_clusters or 0) - 1, 1)


def estimate_loss_probability(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the maximum-likelihood probability of a loss, if a win is less likely than a loss by exactly the margin.

    The larger root of 2n q^2 - (wins + losses + margin (2n - wins + losses)) q + losses margin (1 + margin).

    References
    ----------
    Tango 1998.
    """
    wins, losses, n, margin = (np.asarray(x, np.float64) for x in (wins, losses, n, margin))
    b = wins + losses + margin * (2 * n - wins + losses)
    root = np.sqrt(np.maximum(b * b - 8 * n * losses * margin * (1 + margin), 0.0))
    return np.clip((b + root) / (4 * n), np.maximum(margin, 0.0), (1 + margin) / 2)


def compute_variance(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the variance of wins - losses if the system is worse by exactly the margin."""
    margin = np.asarray(margin, np.float64)
    return np.asarray(np.asarray(n) * (2 * estimate_loss_probability(wins, losses, n, margin) - margin * (1 + margin)))


def compute_score(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, margin: ArrayLike) -> Floats:
    """Return the score statistic for a system worse by the margin; large values mean that it is better than that.

    Examples
    --------
    The cross-over trial of Tango 1998: 43 pairs agree, one is a loss, the margin is 0.1.

    >>> round(float(compute_score(0, 1, 44, 0.1)), 3)
    1.709
    """
    wins, losses, n, margin = (np.asarray(x, np.float64) for x in (wins, losses, n, margin))
    above, below = wins - losses + n * margin, compute_variance(wins, losses, n, margin)
    return np.where(below > 0, above / np.sqrt(np.where(below > 0, below, 1.0)), 0.0)


def compute_score_margins(wins: ArrayLike, losses: ArrayLike, n: ArrayLike, alpha: float) -> Floats:
    """Return, for many comparisons at once, the smallest margin for which the score test shows non-inferiority.

    Examples
    --------
    The 90 % interval of the cross-over trial of Tango 1998 (Statistics in Medicine 17:891).

    >>> compute_score_margins([0, 1], [1, 0], 44, 0.05).round(3) * [-1, 1]
    array([-0.096,  0.037])
    """
    wins, losses, n = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (wins, losses, n)))
    low, high, level = np.full(wins.shape, -1.0), np.ones(wins.shape), -float(scipy.special.ndtri(alpha))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_shown = compute_score(wins, losses, n, middle) >= level
        low, high = np.where(is_shown, low, middle), np.where(is_shown, middle, high)
    return np.asarray(high)


def compute_score_interval(
    wins: ArrayLike, losses: ArrayLike, n: ArrayLike, confidence: float
) -> tuple[Floats, Floats]:
    """Return the ends of Tango's score interval for the difference of two matched proportions.

    At the ends, the score tests of `compute_score_margins`, one in each direction, cease to reject.

    Examples
    --------
    The 95 % interval of the cross-over trial of Tango 1998 (Statistics in Medicine 17:891).

    >>> [round(float(end), 3) for end in compute_score_interval(0, 1, 44, 0.95)]
    [-0.118, 0.059]
    """
    alpha = (1 - confidence) / 2
    return -compute_score_margins(wins, losses, n, alpha), compute_score_margins(losses, wins, n, alpha)


def compute_exact_p(wins: int, losses: int, n: int, margin: float, alpha: float) -> float:
    """Return the largest probability of a result at least as good if the system is worse by the margin (exact p).

    Tables are ordered by the margin that their score test shows at alpha. So the order does not depend on the margin,
    and p decreases as the margin grows.

    References
    ----------
    Buehler 1957; that the worst case is worse by just the margin: Hsueh, Liu & Chen 2001.
    """
    return _find_largest_tail(_find_min_wins(wins, losses, n, alpha), n, margin)


@lru_cache(maxsize=4096)
def compute_exact_margin(wins: int, losses: int, n: int, alpha: float) -> float:
    """Return the smallest margin for which the unconditional exact test rejects at alpha."""
    min_wins = _find_min_wins(wins, losses, n, alpha)
    return _find_crossing(lambda margin: _find_largest_tail(min_wins, n, margin), alpha, halvings=HALVINGS // 2)


def _find_min_wins(wins: int, losses: int, n: int, alpha: float) -> Integers:
    """Return, for 0 to n losses, the fewest wins that are as good as the observed result; n + 1 if there are none."""
    margin = float(compute_score_margins(wins, losses, n, alpha))
    counts = np.arange(n + 1)
    table = compute_score(counts, counts[:, None], n, margin)  # (losses, wins)
    is_as_good = table >= float(compute_score(wins, losses, n, margin)) - 1e-9
    is_as_good &= counts + counts[:, None] <= n
    return np.where(is_as_good.any(axis=1), is_as_good.argmax(axis=1), n + 1)


def _find_largest_tail(min_wins: Integers, n: int, margin: float) -> float:
    """Return the largest probability of `min_wins` or more wins, if losses are likelier than wins by the margin."""
    low, high = max(margin, 0.0), (1 + margin) / 2
    losses = np.flatnonzero(min_wins + np.arange(n + 1) <= n)
    needed, best = min_wins[losses], 0.0
    for _ in range(3):
        grid = np.linspace(low, high, GRID)
        q = grid[:, None]  # probability of a loss
        won = np.clip((q - margin) / np.maximum(1 - q, 1e-300), 0.0, 1.0)
        enough = scipy.special.betainc(np.maximum(needed, 1), n - losses - needed + 1, won)
        tails = (bounds.binomial_pmf(losses, n, q) * np.where(needed > 0, enough, 1.0)).sum(axis=1)
        top = int(tails.argmax())
        best = max(best, float(tails[top]))
        low, high = float(grid[max(top - 1, 0)]), float(grid[min(top + 1, GRID - 1)])
    return min(best, 1.0)


def _find_crossing(
    function: Callable[[float], float], level: float, *, lower: float = -1.0, halvings: int = HALVINGS
) -> float:
    """Return the smallest margin at which a falling function is at most the level; 1 if there is none."""
    low, high = lower, 1.0
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) <= level else (middle, high)
    return high


def estimate_design_effect(differences: NDArray[Any], clusters: NDArray[Any]) -> float | None:
    """Return the factor, 1 or more, by which clusters increase the variance of the mean difference.

    It is the variance from sums over clusters divided by that from items (Obuchowski 1998; Rao & Scott 1992). None if
    fewer than `FEW_CLUSTERS` have more losses than wins, so that it is unknown how losses cluster.

    Parameters
    ----------
    differences, clusters
        As in `MatchedProportions.from_differences`.
    """
    _, index = np.unique(clusters, return_inverse=True)
    sums = np.bincount(index, weights=differences)
    centred = differences - differences.mean()
    item_squares = float((centred**2).sum())
    if np.count_nonzero(sums < 0) < FEW_CLUSTERS or item_squares == 0:
        return None
    cluster_sums = np.bincount(index, weights=centred)
    return max(len(sums) / (len(sums) - 1) * float((cluster_sums**2).sum()) / item_squares, 1.0)
