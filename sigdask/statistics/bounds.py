"""p-values from counts of exceedances, their checks, and confidence intervals.

Results that comparisons share are computed once for each distinct pair of counts.

- p-values: the bound (nc + 1) / (nt + 1), its Clopper-Pearson interval, and the trials needed to decide.
- Checks of the exceedances against a second run (tails of the hypergeometric distribution of two
  runs), a sign test or an exact p-value. Each check uses an exact distribution. A check raises an alarm at the level
  `ALARM` divided by the number of comparisons that are checked together. p is never replaced by a smaller one.
- Intervals of scores and differences, from counts of resamples and of arrangements.
- Adjustments of p for several comparisons, and the trials that they need.

References
----------
Noreen 1989; Phipson & Smyth 2010; Clopper & Pearson 1934. Efron 1987, Journal of the American Statistical Association
82:171 (BCa). Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 14. Wilson 1927, Journal of the
American Statistical Association 22:209. Hartigan 1969, Journal of the American Statistical Association 64:1303 (typical
values: the means of subsets). Garthwaite 1996, Biometrics 52:1387 (inverted randomization tests).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.statistics.numbering import find_distinct_rows
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count

# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"


NEGLIGIBLE_TERM = 1e-18
"""Terms below this share of the largest are omitted. Terms decrease ever faster, so that the sum does not change."""


@cached_njit()
def sum_lower_tails(low, total, n, n_other, out):
    """Write P(X <= low) / P(X = low) for many pairs, where X is one run's exceedances among the `total` of both runs.

    Parameters
    ----------
    low, total, n, n_other : int64 array, shape (n_pairs,)
        The count of the run with the smaller share of exceedances, the sum of both, and the trials of both runs.
    out : float64 array, shape (n_pairs,)
    """
    for p in range(len(low)):
        term, tail = 1.0, 1.0
        for x in range(low[p], 0, -1):  # P(x - 1) / P(x)
            other = total[p] - x
            term *= float(x) * float(n_other[p] - other) / (float(other + 1) * float(n[p] - x + 1))
            tail += term
            if term < NEGLIGIBLE_TERM:
                break
        out[p] = tail
    return out


DEFAULT_CONFIDENCE = 0.99

MAX_TRIALS = 2**48


def compute_p_value(n_extreme: ArrayLike, n_trials: ArrayLike, *, exact: ArrayLike) -> Floats:
    """Return the exact share of exceedances if all arrangements were counted, otherwise the bound (k + 1) / (n + 1)."""
    n = np.asarray(n_trials)
    return np.asarray(np.where(exact, n_extreme / np.maximum(n, 1), compute_bound(n_extreme, n_trials)))


def compute_bound(n_extreme: ArrayLike, n_trials: ArrayLike) -> Floats:
    """Return (exceedances + 1) / (trials + 1), a valid p-value for any number of trials fixed beforehand.

    References
    ----------
    Noreen 1989; Phipson & Smyth 2010, "Permutation P-values should never be zero".

    Examples
    --------
    >>> float(compute_bound(96, 2**20))
    9.250632047050431e-05
    """
    return np.asarray((np.asarray(n_extreme) + 1) / (np.asarray(n_trials) + 1))


def clopper_pearson(
    n_extreme: ArrayLike, n_trials: ArrayLike, confidence: float = DEFAULT_CONFIDENCE
) -> tuple[Floats, Floats]:
    """Return the Clopper-Pearson limits of a probability, from `n_extreme` occurrences in `n_trials` trials.

    Examples
    --------
    >>> low, high = clopper_pearson(30, 100, 0.95)
    >>> round(float(low), 12), round(float(high), 12)
    (0.21240642049, 0.39981467618)
    """
    k, n = (np.asarray(counts, np.int64) for counts in np.broadcast_arrays(n_extreme, n_trials))
    few, inverse = find_distinct_rows(np.column_stack([k.ravel(), n.ravel()]))
    few_k, few_n = few.T
    low, high = (limits[inverse].reshape(k.shape) for limits in compute_beta_limits(few_k, few_n, confidence))
    return low, high


def compute_beta_limits(k: NDArray[Any], n: NDArray[Any], confidence: float) -> tuple[Floats, Floats]:
    """Return the Clopper-Pearson limits as quantiles of beta distributions, for counts that need not be integers."""
    half = (1 - confidence) / 2
    low = np.where(k > 0, scipy.special.betaincinv(np.where(k > 0, k, 1), n - k + 1, half), 0.0)
    high = np.where(k < n, scipy.special.betaincinv(k + 1, np.where(k < n, n - k, 1), 1 - half), 1.0)
    return low, high


def estimate_trials_to_decide(p: float, alpha: float) -> int | None:
    """Return about how many trials it takes until the 99 % interval of p excludes alpha, if p is as estimated.

    None where p and alpha are too close for any number that could be run.
    """
    if p == alpha:
        return None
    z = float(scipy.special.ndtri(0.5 + DEFAULT_CONFIDENCE / 2))
    needed = math.ceil((z / (p - alpha)) ** 2 * max(p * (1 - p), alpha * (1 - alpha)) * 1.1)
    return needed if needed < MAX_TRIALS else None


ALARM = 1e-4

KNOWN_DIGITS = 6
"""Digits of a p that is compared with a count."""

Verdict = Literal["agrees", "disagrees", "not applicable", "contested"]


SECOND_RUN, SIGN_TEST, EXACT_VALUE = CHECKS = "second run", "sign test", "exact value"
"""Names of all checks, in the order in which they are printed."""

EQUAL_SCORES = "equal scores"
"""Name of the equal-score test among the checks of a result. Its columns are `Table.equal_scores`."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one cross-check of one comparison's p-value.

    Attributes
    ----------
    name : str
        Name of the check, one of `CHECKS`.
    verdict : {"agrees", "disagrees", "not applicable", "contested"}
        Outcome. "contested": p and this p are of two hypotheses, of which only one is rejected.
    p_value : float or None
        The p-value of the other side: the second run's bound, the sign test's, the exact p or the equal-score test's.
    detail : str
        Explanation as a sentence.
    p_adjusted : float or None
        `p_value` adjusted for all comparisons of the family. None if it is not adjusted.
    """

    name: str
    verdict: Verdict
    p_value: float | None
    detail: str
    p_adjusted: float | None = None


def compute_agreement_p(k1: ArrayLike, k2: ArrayLike, n1: ArrayLike, n2: ArrayLike) -> Floats:
    """Return Fisher's exact two-sided p-value of the hypothesis that exceedances are equally likely in two runs.

    The test is of the table [[k1, n1 - k1], [k2, n2 - k2]]; the two-sided p is twice the smaller tail, at most 1.

    Parameters
    ----------
    k1, k2 : int or int array, shape (...)
        Exceedances of the two runs.
    n1, n2 : int or int array, shape (...)
        Trials of the two runs, at least 1.

    Returns
    -------
    float64 array, shape (...)

    Examples
    --------
    >>> round(float(compute_agreement_p(3, 10, 20, 20)), 9)
    0.040742395
    """
    runs = np.stack([np.asarray(counts, np.int64) for counts in np.broadcast_arrays(k1, k2, n1, n2)])
    shares = runs[0] * runs[3], runs[1] * runs[2]
    low, high, n, n_other = np.where(shares[0] <= shares[1], runs, runs[[1, 0, 3, 2]])
    start = np.exp(log_choose(n, low) + log_choose(n_other, high) - log_choose(n + n_other, low + high))
    tails = np.empty(low.size)
    sum_lower_tails(low.ravel(), (low + high).ravel(), n.ravel(), n_other.ravel(), tails)
    tail = start * tails.reshape(low.shape)
    return np.asarray(np.where(shares[0] == shares[1], 1.0, np.minimum(1.0, 2 * tail)))


def log_choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """Return the logarithms of binomial coefficients, n choose k."""
    n, k = np.asarray(n), np.asarray(k)
    return np.asarray(scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1))


def binomial_pmf(k: ArrayLike, n: int, p: ArrayLike) -> Floats:
    """Return P(X = k), X ~ Bin(n, p)."""
    k = np.asarray(k)
    return np.asarray(
        np.exp(log_choose(n, k) + scipy.special.xlogy(k, p) + scipy.special.xlog1py(n - k, -np.asarray(p)))
    )


def hypergeometric_pmf(n: int, n_marked: int, n_drawn: int) -> Floats:
    """Return P(X = x) for x from 0 to its maximum, where X is the number of marked ones among those drawn from n.

    Each has a relative error of about 1e-16 for each term between it and the most frequent one.

    Examples
    --------
    >>> hypergeometric_pmf(4, 2, 2).round(6).tolist()
    [0.166667, 0.666667, 0.166667]
    """
    lowest, highest = max(n_marked + n_drawn - n, 0), min(n_marked, n_drawn)
    x = np.arange(lowest, highest, dtype=np.float64)
    # ratios of each term to the one before, ever smaller
    ratios = (n_drawn - x) * (n_marked - x) / ((x + 1) * (n - n_marked - n_drawn + x + 1))
    mode = int(np.count_nonzero(ratios > 1))
    rising, falling = np.cumprod(1 / ratios[:mode][::-1])[::-1], np.cumprod(ratios[mode:])
    weights = np.concatenate([np.zeros(lowest), rising, [1.0], falling])
    return np.asarray(weights / weights.sum())


def compute_fit_p(k: ArrayLike, n_trials: ArrayLike, p: ArrayLike) -> Floats:
    """Return the two-sided exact binomial p-value of exceedance counts when the true probability is known.

    Twice the smaller tail; a z-score fails for tiny p.

    Parameters
    ----------
    k, n_trials : int or int array, shape (...)
        Exceedances and trials.
    p : float or float64 array, shape (...)
        The known p-value.

    Returns
    -------
    float64 array, shape (...)
    """
    count, n, known_p = np.broadcast_arrays(k, n_trials, p)
    fits = np.empty(count.size)
    for start in range(0, count.size, FIT_BLOCK):
        block = slice(start, start + FIT_BLOCK)
        fits[block] = _compute_fits(count.ravel()[block], n.ravel()[block], known_p.ravel()[block])
    return fits.reshape(count.shape)


FIT_BLOCK = 2**15
"""Counts whose fit is computed at a time, to limit memory."""

FROM_MEAN = 2
"""At this distance from its mean, a count's smaller tail is known, because the median is less than 1 from the mean."""


def _compute_fits(count: Integers, n: Integers, p: Floats) -> Floats:
    """Return twice the smaller binomial tail of each count, shape (n_counts,)."""
    inside = np.where(p < 1, p, 0.5)
    excess, tail = count - n * inside, np.ones(len(count))
    rows = np.flatnonzero((excess < FROM_MEAN) & (count < n))
    tail[rows] = scipy.special.betainc((n - count)[rows], count[rows] + 1, 1 - inside[rows])
    rows = np.flatnonzero((excess > -FROM_MEAN) & (count > 0))
    upper = scipy.special.betainc(count[rows], (n - count)[rows] + 1, inside[rows])
    tail[rows] = np.where(excess[rows] < FROM_MEAN, np.minimum(tail[rows], upper), upper)
    return np.where(p < 1, np.minimum(1.0, 2 * tail), np.where(count == n, 1.0, 0.0))


def compute_fit_p_within(k: ArrayLike, n_trials: ArrayLike, low: ArrayLike, high: ArrayLike) -> Floats:
    """Return the p-value of the fit test if the true probability is only known to be in [low, high]."""
    share = np.asarray(k) / np.asarray(n_trials)
    return compute_fit_p(k, n_trials, np.clip(share, low, high))


def matches_share(k: ArrayLike, n_arrangements: ArrayLike, p: ArrayLike) -> Bools:
    """Return whether the share of exceedances among all arrangements equals a known p-value, up to rounding."""
    share = np.asarray(k) / np.asarray(n_arrangements)
    return np.asarray(np.abs(share - p) <= 1e-12 * np.asarray(p))


def count_second_trials(n_trials: int) -> int:
    """Return the number of trials of a second run: a quarter of the first's, which shows any error that matters."""
    return -(-n_trials // 4)


def judge_second_run(runs: Sequence[tuple[int, int]], agreement_p: float, n_comparisons: int) -> Check:
    """Return the check of whether two independent runs agree, given the exceedances and trials of each."""
    (k1, n1), (k2, n2) = runs
    verdict: Verdict = "agrees" if agreement_p >= ALARM / n_comparisons else "disagrees"
    return Check("second run", verdict, (k2 + 1) / (n2 + 1), describe_runs(k1, n1, k2, n2, agreement_p))


def describe_runs(k1: int, n1: int, k2: int, n2: int, agreement_p: float) -> str:
    """Return the sentence on two runs, from the exceedances and trials of each."""
    agreement = format_p_equals(agreement_p)
    return f"{k1:,} of {n1:,}, and {k2:,} of {format_count(n2, 'trial')}; agreement {agreement} (Fisher)"


def judge_known_p(name: str, p: float, n_extreme: int, n_trials: int, n_comparisons: int, *, exact: bool) -> Check:
    """Return the check of whether a count of exceedances agrees with a p-value known from another source.

    Parameters
    ----------
    name : str
        Name of the check.
    p : float
        The known p-value.
    n_extreme, n_trials : int
        The count, and the number of trials or arrangements.
    n_comparisons : int
        Comparisons judged together.
    exact : bool
        Whether all arrangements were counted. Then the share must equal p, not only fit it.
    """
    fit = math.nan if exact else float(compute_fit_p(n_extreme, n_trials, p))
    fits = bool(matches_share(n_extreme, n_trials, p)) if exact else fit >= ALARM / n_comparisons
    detail = describe_fit(n_extreme, n_trials, p, fit)
    return Check(name, "agrees" if fits else "disagrees", p, detail)


def describe_fit(n_extreme: int, n_trials: int, p: float, fit: float) -> str:
    """Return the sentence on a count, a known p, and the p of its fit, NaN if all arrangements were counted."""
    known_p = format_p_equals(p, digits=KNOWN_DIGITS)
    if math.isnan(fit):
        return f"{known_p} against {n_extreme:,} of all {n_trials:,} arrangements"
    return (
        f"{known_p}; {n_extreme:,} of {format_count(n_trials, 'trial')} fit it with {format_p_equals(fit)} (binomial)"
    )


ENUMERATED_UNITS = 20
"""Maximum number of units for which the means of all subsets are computed."""


def compute_level(confidence: float) -> float:
    """Return 1 - confidence without the rounding error of 1 - 0.95.

    Examples
    --------
    >>> compute_level(0.95)
    0.05
    """
    return round(1 - confidence, 12)


def compute_bca_shares(below: Floats, acceleration: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Return, for both ends of BCa bootstrap intervals, the share of resamples below the end; NaN where undefined.

    Parameters
    ----------
    below : float64 array, shape (n,)
        Share of resamples below the observed value, ties split half.
    acceleration : float64 array, shape (n,)
        Skewness of the units' contributions, over 6 sqrt(n_units).
    confidence : float
        Confidence level of the intervals.

    Examples
    --------
    Without bias and skewness it is the percentile interval.

    >>> [float(share.round(6)[0]) for share in compute_bca_shares(np.array([0.5]), np.array([0.0]), 0.95)]
    [0.025, 0.975]
    """
    alpha = compute_level(confidence)
    quantile = scipy.special.ndtri(below)
    bias = np.where(np.isfinite(quantile), quantile, np.nan)
    shares = []
    for z in scipy.special.ndtri([alpha / 2, 1 - alpha / 2]):
        shifted = bias + z
        denominator = 1 - acceleration * shifted
        shares.append(
            np.where(
                denominator > 0,
                scipy.special.ndtr(bias + shifted / np.where(denominator > 0, denominator, 1.0)),
                np.nan,
            )
        )
    low, high = shares
    is_defined = np.isfinite(low) & np.isfinite(high)
    return np.where(is_defined, low, np.nan), np.where(is_defined, high, np.nan)


def wilson(successes: ArrayLike, n: ArrayLike, confidence: float) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's score interval for proportions.

    Examples
    --------
    >>> [round(float(end), 4) for end in wilson(9, 10, 0.95)]
    [0.5958, 0.9821]
    """
    k, n = np.asarray(successes, np.float64), np.asarray(n, np.float64)
    z = float(scipy.special.ndtri(1 - compute_level(confidence) / 2))
    centre = (k + z * z / 2) / (n + z * z)
    half = z / (n + z * z) * np.sqrt(np.maximum(k * (n - k) / n + z * z / 4, 0.0))
    return np.where(k == 0, 0.0, centre - half), np.where(k == n, 1.0, centre + half)


def count_rejected(confidence: float, n_trials: int, *, is_exact: bool) -> int:
    """Return how many arrangements, with the observed one, may be as extreme as the observed one if a test rejects.

    As many values of the inverted test lie outside the interval on each side, including the end itself. For all
    arrangements, these are one-sided, at half of 1 - confidence; for random ones two-sided.
    """
    alpha = compute_level(confidence)
    return math.floor(alpha / 2 * n_trials if is_exact else alpha * (n_trials + 1))


def invert_test(above: Integers, below: Integers, confidence: float) -> tuple[float, float]:
    """Return the ends of the confidence interval of a mean that inverts the exact two-sided randomization test.

    A shift D leaves sum(above - D below) over swapped units. Swapping a subset of the units is as extreme, in one
    direction, if the subset's own mean is on the other side of D. So the ends are order statistics of the 2^n - 1 means
    of subsets (Hartigan 1969). Here all subsets are used, with sums of integers.

    Parameters
    ----------
    above : int64 array, shape (n_units,)
        Contribution of each unit to the difference's numerator, for at most `ENUMERATED_UNITS` units.
    below : int64 array, shape (n_units,)
        Contribution of each unit to the denominator, not negative.
    confidence : float
        Confidence of the interval.

    Returns
    -------
    (float, float)
        In units of `above` over `below`. Infinite if so few units cannot reject any shift.

    Examples
    --------
    >>> invert_test(np.array([1, 2, 3, 4, 5, 6]), np.ones(6, np.int64), 0.9)
    (2.0, 5.0)
    """
    sums = [np.zeros(1, np.int64), np.zeros(1, np.int64)]
    for unit_values in zip(above.tolist(), below.tolist(), strict=True):
        sums = [
            np.concatenate([subset_sums, subset_sums + x]) for subset_sums, x in zip(sums, unit_values, strict=True)
        ]
    top, bottom = (subset_sums[1:].astype(np.float64) for subset_sums in sums)
    # a subset without weight is as extreme at every shift, at one end only if its sum is not 0
    lows, highs = (
        np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.copysign(np.inf, top + tie))
        for tie in (-0.5, 0.5)
    )
    k = count_rejected(confidence, len(sums[0]), is_exact=True)
    if k == 0:
        return -math.inf, math.inf
    return float(np.partition(lows, k - 1)[k - 1]), float(np.partition(highs, len(highs) - k)[len(highs) - k])


MAX_TRIALS_NEEDED = 2.0**63
"""Largest number of trials that is reported as needed."""


def holm(p: Sequence[float] | Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method, valid under any dependence.

    References
    ----------
    Holm 1979, "A simple sequentially rejective multiple test procedure".

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")
    adjusted = values[order]
    adjusted *= np.arange(len(values), 0, -1)
    return _restore_order(order, np.maximum.accumulate(adjusted, out=adjusted))


def benjamini_hochberg(p: Sequence[float] | Floats) -> Floats:
    """Return p-values adjusted by the step-up method of Benjamini & Hochberg 1995.

    They control the false discovery rate under independence and positive dependence.
    """
    values = np.asarray(p, np.float64)
    order = np.argsort(values, kind="stable")[::-1]
    factors = len(values) / np.arange(len(values), 0, -1)
    return _restore_order(order, np.minimum.accumulate(values[order] * factors))


P_VALUE_ADJUSTMENTS = {"holm": holm, "bh": benjamini_hochberg}
"""Adjustments that need only p-values."""


def enforce_step_down(p: Floats, ascending: Integers) -> Floats:
    """Return step-down max-T p-values, raised where a less extreme hypothesis would have a smaller one.

    Parameters
    ----------
    p : float64 array, shape (n_hypotheses,)
        P(largest of the hypotheses no more extreme than this one >= its own statistic).
    ascending : int64 array, shape (n_hypotheses,)
        Hypotheses from the least to the most extreme.
    """
    order = ascending[::-1]
    return _restore_order(order, np.maximum.accumulate(p[order]))


def compute_penalty(method: str, n_hypotheses: int) -> float:
    """Return the factor by which an adjustment multiplies a small p-value if all other p-values are large.

    Examples
    --------
    >>> compute_penalty("holm", 10), compute_penalty("max-t", 10)
    (10.0, 1.0)
    """
    return float(n_hypotheses) if method in P_VALUE_ADJUSTMENTS else 1.0


def compute_trials_needed(times: float, alpha: float) -> int:
    """Return how many trials the smallest possible p-value, multiplied by `times`, needs to reach alpha.

    Examples
    --------
    >>> compute_trials_needed(8256, 0.05)
    165119
    """
    return int(np.ceil(min(times / alpha, MAX_TRIALS_NEEDED) - 1e-9)) - 1


def choose_trials(penalty: float, alpha: float) -> int:
    """Return the default number of random trials of each of several comparisons, a power of two.

    2^17 give an adjusted p near 0.05 a standard error of 0.0006. If p is multiplied by a penalty, the smallest
    possible p is at most a twentieth of alpha after it, unless that takes more trials than a single comparison has.

    Parameters
    ----------
    penalty : float
        What a small p is multiplied by.
    alpha : float
        Level of the verdicts.

    Examples
    --------
    >>> choose_trials(1, 0.05), choose_trials(1000, 0.05)
    (131072, 524288)
    """
    needed = math.ceil(math.log2(20 * penalty / alpha))
    return 1 << min(max(needed, FAMILY_EXPONENT), LARGEST_EXPONENT)


FAMILY_EXPONENT, LARGEST_EXPONENT = 17, 20
"""Binary logarithms of the default number of trials in a family without a penalty, and of a single comparison."""


def _restore_order(order: Integers, values: Floats) -> Floats:
    out = np.empty_like(values)
    out[order] = np.minimum(values, 1.0, out=values)
    return out
