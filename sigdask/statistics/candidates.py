"""Statistics of ranked lists of candidates: the n best, average precision, pairs of lists, and samples.

- One list: how many of its n best candidates are true, and its average precision. If candidates tie, the result is the
  mean over all orders of the tied candidates, with the smallest and the largest value.
- Repeated samples, compared with the binomial model: the spread of their precision, and the coverage of intervals.
  Evert 2004, section 4, takes one acceptance set from each of 80 parts of a corpus, with T true of N accepted in each.
- Exact tests of many two-by-two tables at once, and limits of the number of true candidates from a random sample.

References
----------
Evert 2004, "Significance tests for the evaluation of ranking methods". Evert & Krenn 2005, "Using small random samples
for the manual evaluation of statistical association measures".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.statistics.bounds import binomial_pmf, clopper_pearson, compute_beta_limits, hypergeometric_pmf


@dataclass(frozen=True, slots=True, eq=False)
class RankedList:
    """A ranked list of candidates, best first, with tied candidates next to each other.

    Attributes
    ----------
    order : int64 array, shape (n_candidates,)
        The candidate at each rank.
    above : int64 array, shape (n_candidates + 1,)
        Number of true candidates among the best k, for each k.
    start, stop : int64 array, shape (n_candidates,)
        First rank that is tied with each rank, from 0, and the rank after the last one.
    """

    order: Integers
    above: Integers
    start: Integers
    stop: Integers

    @staticmethod
    def from_scores(scores: Floats, gold: Bools, tie_order: Integers) -> RankedList:
        """Rank candidates by their scores, larger ones first.

        Parameters
        ----------
        scores : float64 array, shape (n_candidates,)
        gold : bool array, shape (n_candidates,)
            Whether each candidate is true.
        tie_order : int64 array, shape (n_candidates,)
            Order of tied candidates. Smaller numbers come first.
        """
        order = np.lexsort((tie_order, -scores))
        sorted_scores = scores[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = sorted_scores[1:] != sorted_scores[:-1]
        starts = np.flatnonzero(is_first)
        group = np.cumsum(is_first) - 1
        stops = np.append(starts[1:], len(order))
        return RankedList(order, np.concatenate([[0], np.cumsum(gold[order])]), starts[group], stops[group])

    @property
    def n_distinct(self) -> int:
        """Number of different scores."""
        return len(np.unique(self.start))


@dataclass(frozen=True, slots=True, eq=False)
class NBest:
    """The number of true candidates among the n best: arrays of shape (n_cutoffs,).

    Attributes
    ----------
    mean : float64
        Mean over all orders of the candidates that are tied at n.
    lowest, highest : int64
        Number in the worst and the best of these orders.
    n_tied : int64
        Number of candidates with the score of the n-th one, which is included.
    """

    mean: Floats
    lowest: Integers
    highest: Integers
    n_tied: Integers


def count_n_best(ranked: RankedList, cutoffs: Integers) -> NBest:
    """Count the true candidates among the n best.

    Parameters
    ----------
    ranked : RankedList
        The list.
    cutoffs : int64 array, shape (n_cutoffs,)
        Each n, from 1 to the number of candidates.

    Examples
    --------
    >>> gold, scores = np.array([1, 0, 1, 0], bool), np.array([9.0, 5.0, 5.0, 1.0])
    >>> found = count_n_best(RankedList.from_scores(scores, gold, np.arange(4)), np.array([1, 2, 3]))
    >>> found.mean.tolist(), found.lowest.tolist(), found.highest.tolist()
    ([1.0, 1.5, 2.0], [1, 1, 2], [1, 2, 2])
    """
    start, stop = ranked.start[cutoffs - 1], ranked.stop[cutoffs - 1]
    size, n_taken = stop - start, cutoffs - start
    certain = ranked.above[start]
    true = ranked.above[stop] - certain
    return NBest(
        mean=certain + n_taken * true / size,
        lowest=certain + np.maximum(0, n_taken - (size - true)),
        highest=certain + np.minimum(n_taken, true),
        n_tied=size,
    )


def compute_outward_interval(count: Floats, n: Integers, confidence: float) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits of count / n, with non-integer counts rounded outwards.

    Examples
    --------
    >>> low, high = compute_outward_interval(np.array([30.0, 29.5]), np.array([100, 100]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.2124, 0.2036], [0.3998, 0.3998])
    """
    low, _ = clopper_pearson(np.floor(count).astype(np.int64), n, confidence)
    _, high = clopper_pearson(np.ceil(count).astype(np.int64), n, confidence)
    return low, high


def average_precision(ranked: RankedList) -> float:
    """Return the average precision of a list: the mean precision at its true candidates, over all orders of ties.

    References
    ----------
    McSherry & Najork 2008, "Computing information retrieval performance measures efficiently in the presence of
    tied scores", section 2.

    Examples
    --------
    >>> gold = np.array([1, 0, 1], bool)
    >>> average_precision(RankedList.from_scores(np.array([3.0, 2.0, 1.0]), gold, np.arange(3)))
    0.8333333333333333
    >>> ranked = RankedList.from_scores(np.zeros(2), np.array([1, 0], bool), np.arange(2))
    >>> average_precision(ranked)  # the mean of 1 and 1/2
    0.75
    """
    index = np.arange(len(ranked.order))
    size = ranked.stop - ranked.start
    certain = ranked.above[ranked.start]
    true = ranked.above[ranked.stop] - certain
    others_before = np.where(size > 1, (index - ranked.start) * (true - 1) / np.maximum(size - 1, 1), 0.0)
    terms = true / size * (certain + 1 + others_before) / (index + 1)
    return float(terms.sum() / ranked.above[-1])


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much the precisions of repeated samples vary, compared with the binomial model.

    Attributes
    ----------
    n_samples : int
        Number of samples with an accepted candidate.
    accepted : float
        Mean number of accepted candidates.
    precision : float
        Share of true candidates among all accepted ones of all samples.
    deviation, predicted : float
        Standard deviation of the samples' precisions, and the one that the model predicts.
    ratio : float
        deviation / predicted.
    chi2 : float
        Pearson's chi-squared: sum of the squares of T - N p, each divided by its variance under the model.
    df : int
        Degrees of freedom of chi2.
    p_value : float
        Probability of a chi2 at least as large under the model.
    factor : float
        chi2 / df, at least 1. The model's variances are too small by this factor (quasi-binomial).
    """

    n_samples: int
    accepted: float
    precision: float
    deviation: float
    predicted: float
    ratio: float
    chi2: float
    df: int
    p_value: float
    factor: float


def estimate_dispersion(true: Integers, accepted: Integers) -> Dispersion:
    """Return how much the precisions of samples vary, compared with the model that all samples have the same precision.

    Parameters
    ----------
    true, accepted : int64 array, shape (n_samples,)
        True and all accepted candidates of each sample; none of `accepted` is 0.

    Examples
    --------
    >>> found = estimate_dispersion(np.array([20, 30, 40]), np.array([100, 100, 100]))
    >>> round(found.ratio, 4), round(found.chi2, 4), found.df
    (2.1822, 9.5238, 2)
    """
    precision = float(true.sum() / accepted.sum())
    variance = precision * (1 - precision)
    predicted = math.sqrt(variance * float(np.mean(1 / accepted)))
    precisions = true / accepted
    deviation = float(precisions.std(ddof=1)) if len(precisions) > 1 else math.nan
    variances = accepted * variance
    squares = np.divide((true - accepted * precision) ** 2, variances, out=np.zeros(len(true)), where=variances > 0)
    chi2, df = float(squares.sum()), int((variances > 0).sum()) - 1
    return Dispersion(
        n_samples=len(true),
        accepted=float(accepted.mean()),
        precision=precision,
        deviation=deviation,
        predicted=predicted,
        ratio=deviation / predicted if predicted > 0 else math.nan,
        chi2=chi2,
        df=df,
        p_value=float(scipy.special.gammaincc(df / 2, chi2 / 2)) if df > 0 else math.nan,
        factor=max(1.0, chi2 / df) if df > 0 else 1.0,
    )


def compute_widened_interval(
    true: Integers, accepted: Integers, confidence: float, factor: float = 1.0
) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits for counts divided by an overdispersion factor.

    Parameters
    ----------
    true, accepted : int64 array, shape (n_samples,)
        Counts of each.
    confidence : float
        Between 0 and 1.
    factor : float
        Factor of at least 1. 1 leaves the interval unchanged.

    Examples
    --------
    >>> low, high = compute_widened_interval(np.array([30]), np.array([100]), 0.95)
    >>> float(low[0].round(6)), float(high[0].round(6))
    (0.212406, 0.399815)
    >>> low, high = compute_widened_interval(np.array([30]), np.array([100]), 0.95, factor=2.0)
    >>> float(low[0].round(3)), float(high[0].round(3))
    (0.179, 0.446)
    """
    return compute_beta_limits(true / factor, accepted / factor, confidence)


@dataclass(frozen=True, slots=True)
class IntervalCoverage:
    """The number of intervals that miss the true precision.

    Attributes
    ----------
    n_samples : int
        Number of intervals.
    n_outside : int
        Number of intervals that miss the precision.
    expected : float
        Number that would miss it under the model. Exact intervals miss less often than their level says.
    p_value : float
        p of an exact two-sided binomial test of n_outside against the nominal share.
    """

    n_samples: int
    n_outside: int
    expected: float
    p_value: float


def compute_coverage(
    low: Floats, high: Floats, precision: float, confidence: float, *, expected: float = math.nan
) -> IntervalCoverage:
    """Return how many intervals miss the true precision, compared with the number expected.

    Parameters
    ----------
    low, high : float64 array, shape (n_samples,)
        Limits.
    precision : float
        The precision that intervals should cover.
    confidence : float
        Nominal share of the intervals that do.
    expected : float
        Expected number of misses, if known. By default the nominal share.
    """
    n_outside = int(((precision < low) | (precision > high)).sum())
    nominal = 1 - confidence
    return IntervalCoverage(
        n_samples=len(low),
        n_outside=n_outside,
        expected=nominal * len(low) if math.isnan(expected) else expected,
        p_value=binomial_test(n_outside, len(low), nominal),
    )


def compute_expected_misses(accepted: Integers, precision: float, confidence: float) -> float:
    """Return how many Clopper-Pearson intervals are expected to miss the precision under the binomial model.

    Examples
    --------
    >>> round(compute_expected_misses(np.full(80, 100), 0.3, 0.95), 2)
    3.0
    """
    sizes, numbers = np.unique(accepted, return_counts=True)
    total = 0.0
    for n, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
        k = np.arange(n + 1)
        low, high = compute_widened_interval(k, np.full(n + 1, n), confidence)
        total += number * float(binomial_pmf(k, n, precision)[(precision < low) | (precision > high)].sum())
    return total


def binomial_test(k: int, n: int, p: float) -> float:
    """Return the exact two-sided p-value of k successes in n: the probability of all outcomes no likelier, as in R.

    Examples
    --------
    >>> round(binomial_test(12, 80, 0.05), 9), round(binomial_test(9, 80, 0.05), 7)
    (0.000613622, 0.0184031)
    """
    if n == 0:
        return math.nan
    probabilities = binomial_pmf(np.arange(n + 1), n, p)
    return min(1.0, float(probabilities[probabilities <= probabilities[k] * (1 + 1e-7)].sum()))


EQUALLY_RARE = 1 + 1e-7
"""Relative tolerance within which a table is as probable as the observed one, as in R's fisher.test."""


def fisher_exact(true_a: Integers, false_a: Integers, true_b: Integers, false_b: Integers) -> Floats:
    """Return Fisher's exact two-sided p of tables [[true_a, false_a], [true_b, false_b]].

    The sum of the probabilities of all tables of the same margins that are no more probable.

    Parameters
    ----------
    true_a, false_a, true_b, false_b : int64 array, shape (n_tables,)

    Returns
    -------
    float64 array, shape (n_tables,)

    Examples
    --------
    >>> one = [np.array([n]) for n in (30, 20, 18, 32)]
    >>> round(float(fisher_exact(*one)[0]), 10)
    0.0271840751
    """
    p_values = []
    for own_true, own_false, other_true, other_false in zip(true_a, false_a, true_b, false_b, strict=True):
        n_a, n_true = int(own_true + own_false), int(own_true + other_true)
        shares = hypergeometric_pmf(n_a + int(other_true + other_false), n_a, n_true)
        p_values.append(min(1.0, float(shares[shares <= shares[int(own_true)] * EQUALLY_RARE].sum())))
    return np.array(p_values)


def compute_list_limits(true: Integers, sampled: Integers, n: Integers, confidence: float) -> tuple[Integers, Integers]:
    """Return limits of the number of true candidates in a list of n, given a random sample of it.

    The limits include every number that neither tail of the hypergeometric distribution rules out at (1 - confidence) /
    2. They are exact for samples of any size, and equal if all candidates are sampled.

    Parameters
    ----------
    true, sampled, n : int64 array, shape (n_lists,)
        For each list, true sampled candidates, all sampled candidates, and all candidates.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    low, high : int64 array, shape (n_lists,)

    Examples
    --------
    >>> low, high = compute_list_limits(np.array([3, 3]), np.array([10, 10]), np.array([10, 100]), 0.95)
    >>> low.tolist(), high.tolist()
    ([3, 8], [3, 63])
    """
    lists, half = [*zip(true.tolist(), sampled.tolist(), n.tolist(), strict=True)], (1 - confidence) / 2
    low, high = ([_find_list_limit(*counts, half, upper=upper) for counts in lists] for upper in (True, False))
    return np.array(low, np.int64), np.array(high, np.int64)


def _find_list_limit(k: int, m: int, n: int, half: float, *, upper: bool) -> int:
    """Return the lowest or the highest number of true candidates that a tail does not rule out, by bisection.

    P(X >= k), X true ones among m drawn from n, rises with the number that are true, and P(X <= k) falls.
    """
    inside, outside = (n - (m - k), k - 1) if upper else (k, n - (m - k) + 1)
    while abs(inside - outside) > 1:
        middle = (inside + outside) // 2
        shares = hypergeometric_pmf(n, middle, m)
        if (shares[k:] if upper else shares[: k + 1]).sum() > half:
            inside = middle
        else:
            outside = middle
    return inside
