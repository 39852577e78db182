"""Repeated samples held against the binomial model: how much precisions vary, and how many intervals miss.

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
    """How precisions of repeated samples vary, beside what the model says.

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


def dispersion(true: Integers, accepted: Integers, *, known: float | None = None, of: int | None = None) -> Dispersion:
    """Hold the precisions of samples against the model that all are of one precision.

    Parameters
    ----------
    true, accepted : int64 array, shape (n_samples,)
        True candidates, and all, that each sample accepts; none of `accepted` is 0.
    known : float, optional
        The precision, where it is known; by default that of all samples together.
    of : int, optional
        Candidates of the one list that all samples were drawn from without replacement: hypergeometric, not binomial.

    Examples
    --------
    >>> found = dispersion(np.array([20, 30, 40]), np.array([100, 100, 100]))
    >>> round(found.ratio, 4), round(found.chi2, 4), found.df
    (2.1822, 9.5238, 2)
    """
    precision = float(true.sum() / accepted.sum()) if known is None else known
    variance = precision * (1 - precision)
    left = np.ones(len(true)) if of is None else (of - accepted) / max(of - 1, 1)
    predicted = math.sqrt(variance * float(np.mean(left / accepted)))
    deviation = _deviation(true / accepted, known)
    held = accepted * variance * left
    squares = np.divide((true - accepted * precision) ** 2, held, out=np.zeros(len(true)), where=held > 0)
    chi2, df = float(squares.sum()), int((held > 0).sum()) - (known is None)
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


def _deviation(precisions: Floats, known: float | None) -> float:
    """Return the standard deviation about the known precision, or about their mean."""
    if known is not None:
        return float(np.sqrt(np.mean((precisions - known) ** 2)))
    return float(precisions.std(ddof=1)) if len(precisions) > 1 else math.nan


def widened_interval(
    true: Integers, accepted: Integers, confidence: float, factor: float = 1.0
) -> tuple[Floats, Floats]:
    """Return Clopper-Pearson limits as of a sample smaller by a factor, that of its overdispersion.

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
    >>> low, high = widened_interval(np.array([30]), np.array([100]), 0.95)
    >>> float(low[0].round(6)), float(high[0].round(6))
    (0.212406, 0.399815)
    >>> low, high = widened_interval(np.array([30]), np.array([100]), 0.95, factor=2.0)
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
    """How many intervals miss what they are to hold.

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


def coverage(
    low: Floats, high: Floats, precision: float, confidence: float, *, expected: float = math.nan
) -> IntervalCoverage:
    """Count the intervals that miss a precision.

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


def expected_outside(accepted: Integers, precision: float, confidence: float) -> float:
    """Return how many Clopper-Pearson intervals miss the precision if every T is Bin(N, precision).

    Examples
    --------
    >>> round(expected_outside(np.full(80, 100), 0.3, 0.95), 2)
    3.0
    """
    sizes, numbers = np.unique(accepted, return_counts=True)
    found = 0.0
    for n, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
        k = np.arange(n + 1)
        low, high = widened_interval(k, np.full(n + 1, n), confidence)
        found += number * float(_binomial(k, n, precision)[(precision < low) | (precision > high)].sum())
    return found


def binomial_test(k: int, n: int, p: float) -> float:
    """Return the exact two-sided p of k of n under a share p: the sum of all outcomes no more probable, as R has it.

    Examples
    --------
    >>> round(binomial_test(12, 80, 0.05), 9), round(binomial_test(9, 80, 0.05), 7)
    (0.000613622, 0.0184031)
    """
    if n == 0:
        return math.nan
    each = _binomial(np.arange(n + 1), n, p)
    return min(1.0, float(each[each <= each[k] * (1 + 1e-7)].sum()))


def _binomial(k: Integers, n: int, p: float) -> Floats:
    """Return P(X = k), X ~ Bin(n, p)."""
    choose = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.asarray(np.exp(choose + special.xlogy(k, p) + special.xlog1py(n - k, -p)))


@dataclass(frozen=True, slots=True, eq=False)
class PrecisionHistogram:
    """Precisions of the samples in bars, beside what the model expects.

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


def histogram(true: Integers, accepted: Integers, precision: float, *, known: bool = False) -> PrecisionHistogram:
    """Lay out the precisions of samples in bars half a predicted standard deviation wide.

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
    width = _width(math.sqrt(precision * (1 - precision) / float(accepted.mean())) / 2)
    first, last = math.floor(share.min() / width), math.floor(share.max() / width)
    centre = round(precision / width)
    edges = np.arange(min(first, centre - 6), max(last + 1, centre + 6) + 1) * width
    edges = edges[(edges > -width) & (edges < 1 + width)]
    bars = np.clip(np.searchsorted(edges, share + 1e-12, side="right") - 1, 0, len(edges) - 2)
    observed = np.bincount(bars, minlength=len(edges) - 1)
    expected = _expected(accepted, precision, edges)
    chi2, df = _goodness(observed, expected, known=known)
    p_value = float(special.gammaincc(df / 2, chi2 / 2)) if df > 0 else math.nan
    return PrecisionHistogram(edges, observed, expected, chi2, df, p_value)


def _width(about: float) -> float:
    """Return a round width of bars: 1, 2 or 5 of some decimal place."""
    place = 10.0 ** math.floor(math.log10(max(about, 1e-6)))
    return min((step * place for step in (1, 2, 5, 10)), key=lambda width: abs(width - about))


def _expected(accepted: Integers, precision: float, edges: Floats) -> Floats:
    """Return how many samples the model expects in each bar; the outermost hold all that lies beyond."""
    found = np.zeros(len(edges) - 1)
    sizes, numbers = np.unique(accepted, return_counts=True)
    for n, number in zip(sizes.tolist(), numbers.tolist(), strict=True):
        k = np.arange(n + 1)
        bars = np.clip(np.searchsorted(edges, k / n + 1e-12, side="right") - 1, 0, len(edges) - 2)
        found += number * np.bincount(bars, weights=_binomial(k, n, precision), minlength=len(edges) - 1)
    return found


def _goodness(observed: Integers, expected: Floats, *, known: bool) -> tuple[float, int]:
    """Return chi-squared of bars, neighbours joined until each expects enough, and its degrees of freedom."""
    seen, due, bars = 0.0, 0.0, []
    for one, of in zip(observed.tolist(), expected.tolist(), strict=True):
        seen, due = seen + one, due + of
        if due >= FEWEST_EXPECTED:
            bars.append([seen, due])
            seen, due = 0.0, 0.0
    if not bars:
        return math.nan, 0
    bars[-1][0] += seen
    bars[-1][1] += due
    df = len(bars) - (1 if known else 2)
    return (sum((one - of) ** 2 / of for one, of in bars), df) if df > 0 else (math.nan, 0)
