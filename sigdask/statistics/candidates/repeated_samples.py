"""Repeated samples compared with the binomial model: spread of their precision and coverage of intervals.

Evert 2004, section 4: one acceptance set from each of 80 parts of a corpus, T true of N accepted in each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

FEWEST_EXPECTED = 5.0
"""Samples that a bar of the histogram must expect, so that chi-squared holds."""


@dataclass(frozen=True, slots=True)
class Dispersion:
    """How much the precisions of repeated samples vary, compared with the binomial model.

    Attributes
    ----------
    n_samples : int
        Samples that accept a candidate.
    accepted : float
        Mean number of candidates they accept.
    precision : float
        True candidates of all samples by all accepted ones, or the one that is known.
    deviation, predicted : float
        Standard deviation of the samples' precisions, and what the model says it is.
    ratio : float
        The first by the second.
    chi2 : float
        Sum of squares of (T - N p) by what the model says they are.
    df : int
        Its degrees of freedom.
    p_value : float
        Of a sum at least as large under the model.
    factor : float
        chi2 / df, at least 1: by how much the model's variances are too small (quasi-binomial).
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


def estimate_dispersion(
    true: Integers, accepted: Integers, *, known: float | None = None, n_population: int | None = None
) -> Dispersion:
    """Return how much the precisions of samples vary, compared with the model that all samples have the same precision.

    Parameters
    ----------
    true, accepted : int64 array, shape (n_samples,)
        True candidates, and all, that each sample accepts; none of `accepted` is 0.
    known : float, optional
        The precision, where it is known; by default that of all samples together.
    n_population : int, optional
        Candidates of the one list that all samples were drawn from without replacement: hypergeometric, not binomial.

    Examples
    --------
    >>> found = estimate_dispersion(np.array([20, 30, 40]), np.array([100, 100, 100]))
    >>> round(found.ratio, 4), round(found.chi2, 4), found.df
    (2.1822, 9.5238, 2)
    """
    precision = float(true.sum() / accepted.sum()) if known is None else known
    variance = precision * (1 - precision)
    correction = np.ones(len(true)) if n_population is None else (n_population - accepted) / max(n_population - 1, 1)
    predicted = math.sqrt(variance * float(np.mean(correction / accepted)))
    deviation = _compute_deviation(true / accepted, known)
    variances = accepted * variance * correction
    squares = np.divide((true - accepted * precision) ** 2, variances, out=np.zeros(len(true)), where=variances > 0)
    chi2, df = float(squares.sum()), int((variances > 0).sum()) - (known is None)
    return Dispersion(
        n_samples=len(true),
        accepted=float(accepted.mean()),
        precision=precision,
        deviation=deviation,
        predicted=predicted,
        ratio=deviation / predicted if predicted > 0 else math.nan,
        chi2=chi2,
        df=df,
        p_value=float(special.gammaincc(df / 2, chi2 / 2)) if df > 0 else math.nan,
        factor=max(1.0, chi2 / df) if df > 0 else 1.0,
    )


def _compute_deviation(precisions: Floats, known: float | None) -> float:
    """Return the standard deviation of precisions, about the known precision or else about their mean."""
    if known is not None:
        return float(np.sqrt(np.mean((precisions - known) ** 2)))
    return float(precisions.std(ddof=1)) if len(precisions) > 1 else math.nan


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
        At least 1; 1 leaves the interval as it is.

    Examples
    --------
    >>> low, high = compute_widened_interval(np.array([30]), np.array([100]), 0.95)
    >>> float(low[0].round(6)), float(high[0].round(6))
    (0.212406, 0.399815)
    >>> low, high = compute_widened_interval(np.array([30]), np.array([100]), 0.95, factor=2.0)
    >>> float(low[0].round(3)), float(high[0].round(3))
    (0.179, 0.446)
    """
    half = (1 - confidence) / 2
    k, n = true / factor, accepted / factor
    low = np.where(k > 0, special.betaincinv(np.where(k > 0, k, 1), n - k + 1, half), 0.0)
    high = np.where(k < n, special.betaincinv(k + 1, np.where(k < n, n - k, 1), 1 - half), 1.0)
    return low, high


@dataclass(frozen=True, slots=True)
class IntervalCoverage:
    """The number of intervals that miss the true precision.

    Attributes
    ----------
    n_samples : int
        Intervals.
    n_outside : int
        Those that miss it.
    expected : float
        How many would under the model; the nominal share of all, or less where the interval is exact and so wide.
    p_value : float
        Exact binomial test of the number against the nominal share, two-sided.
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
        What they are to hold.
    confidence : float
        Share of the intervals that are to.
    expected : float
        How many are expected to miss it, where that is known; by default the nominal share.
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
        total += number * float(_binomial_pmf(k, n, precision)[(precision < low) | (precision > high)].sum())
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
    probabilities = _binomial_pmf(np.arange(n + 1), n, p)
    return min(1.0, float(probabilities[probabilities <= probabilities[k] * (1 + 1e-7)].sum()))


def _binomial_pmf(k: Integers, n: int, p: float) -> Floats:
    """Return P(X = k), X ~ Bin(n, p)."""
    choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(choose + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionHistogram:
    """Histogram of the samples' precisions, with the number of samples that the model expects in each bar.

    Attributes
    ----------
    edges : float64 array, shape (n_bars + 1,)
        A bar holds precisions from its lower edge up to, but without, its upper one; the last both.
    observed : int64 array, shape (n_bars,)
        Samples in each.
    expected : float64 array, shape (n_bars,)
        Under the model.
    chi2 : float
        Of the bars, those that expect too few joined to their neighbours; NaN where fewer than three are left.
    df : int
        Bars that are left, less one, and one more where the precision was taken from the samples.
    p_value : float
        Of such a chi-squared.
    """

    edges: Floats
    observed: Integers
    expected: Floats
    chi2: float
    df: int
    p_value: float


def build_histogram(true: Integers, accepted: Integers, precision: float, *, known: bool = False) -> PrecisionHistogram:
    """Return a histogram of precisions with bars half a predicted standard deviation wide.

    Parameters
    ----------
    true, accepted : int64 array, shape (n_samples,)
        Counts of each sample.
    precision : float
        Of the model.
    known : bool
        Whether it was known beforehand.
    """
    share = true / accepted
    width = _choose_width(math.sqrt(precision * (1 - precision) / float(accepted.mean())) / 2)
    first, last = math.floor(share.min() / width), math.floor(share.max() / width)
    centre = round(precision / width)
    edges = np.arange(min(first, centre - 6), max(last + 1, centre + 6) + 1) * width
    edges = edges[(edges > -width) & (edges < 1 + width)]
    bars = np.clip(np.searchsorted(edges, share + 1e-12, side="right") - 1, 0, len(edges) - 2)
    observed = np.bincount(bars, minlength=len(edges) - 1)
    expected = _compute_expected(accepted, precision, edges)
    chi2, df = _compute_chi2(observed, expected, known=known)
    p_value = float(special.gammaincc(df / 2, chi2 / 2)) if df > 0 else math.nan
    return PrecisionHistogram(edges, observed, expected, chi2, df, p_value)


def _choose_width(target: float) -> float:
    """Return a round bar width near a target: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(target, 1e-6)))
    return min((step * power for step in (1, 2, 5, 10)), key=lambda width: abs(width - target))


def _compute_expected(accepted: Integers, precision: float, edges: Floats) -> Floats:
    """Return how many samples the model expects in each bar; the outermost bars include everything beyond."""
    expected = np.zeros(len(edges) - 1)
    sizes, numbers = np.unique(accepted, return_counts=True)
    for n, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
        k = np.arange(n + 1)
        bars = np.clip(np.searchsorted(edges, k / n + 1e-12, side="right") - 1, 0, len(edges) - 2)
        expected += number * np.bincount(bars, weights=_binomial_pmf(k, n, precision), minlength=len(edges) - 1)
    return expected


def _compute_chi2(observed: Integers, expected: Floats, *, known: bool) -> tuple[float, int]:
    """Return a histogram's chi-squared and degrees of freedom, with bars merged until each expects enough samples."""
    n_observed, n_expected, bars = 0.0, 0.0, []
    for observed_count, expected_count in zip(observed.tolist(), expected.tolist(), strict=True):
        n_observed, n_expected = n_observed + observed_count, n_expected + expected_count
        if n_expected >= FEWEST_EXPECTED:
            bars.append([n_observed, n_expected])
            n_observed, n_expected = 0.0, 0.0
    if not bars:
        return math.nan, 0
    bars[-1][0] += n_observed
    bars[-1][1] += n_expected
    df = len(bars) - (1 if known else 2)
    return (
        (sum((observed_count - expected_count) ** 2 / expected_count for observed_count, expected_count in bars), df)
        if df > 0
        else (math.nan, 0)
    )
