"""Tails of Bin(n, 1/2), where all units count equally: fractions, or certified limits for any n.

For large n the first term is computed by Stirling's series in decimals, with an error below the first omitted term. The
other terms follow from their ratios (Loader 2000 uses this idea in floats).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from sigdask.counts.fields import Floats, Integers
from sigdask.statistics.exact.problems import ProbabilityLimits

MAX_FRACTION = 4096
"""Maximum number of units for which tails are summed as integers."""

MIN_STIRLING = 200
"""Minimum trials and successes for Stirling's series."""

DIGITS = 50
ROUNDOFF = 2.0**-53
NEGLIGIBLE_SHARE = 1e-19
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
BERNOULLI = [Fraction(text) for text in ("1/12", "-1/360", "1/1260", "-1/1680", "1/1188", "-691/360360")]


def estimate_cost(n: int) -> tuple[int, int]:
    """Return the estimated operations for one tail, and bytes."""
    return (n * (n // 128 + 1) if n <= MAX_FRACTION else 100_000 + 20 * math.isqrt(n)), 100 * n


def compute_tail(n: int, k: int) -> ProbabilityLimits:
    """Return limits of P(X >= k) for X ~ Bin(n, 1/2), which are the same fraction if n is small.

    Examples
    --------
    >>> compute_tail(34, 28).low
    Fraction(419029, 4294967296)
    """
    if k <= 0 or k > n:
        p = Fraction(int(k <= 0))
        return ProbabilityLimits(p, p)
    if n <= MAX_FRACTION:
        p = Fraction(_count_tail(n, k), 1 << n)
        return ProbabilityLimits(p, p)
    if 2 * k > n:
        return _sum_series(n, k)
    rest = _sum_series(n, n - k + 1)
    return ProbabilityLimits(math.nextafter(1 - float(rest.high), 0.0), math.nextafter(1 - float(rest.low), 1.0))


def _count_tail(n: int, k: int) -> int:
    """Return the sum of the binomial coefficients from k to n."""
    if 2 * k <= n:
        return (1 << n) - _count_tail(n, n - k + 1)
    term = total = math.comb(n, k)
    for j in range(k, n):
        term = term * (n - j) // (j + 1)
        total += term
    return total


def _sum_series(n: int, k: int) -> ProbabilityLimits:
    """Return limits of P(X >= k) for 2 k > n, from the first term and the ratios of consecutive terms."""
    terms, remainder = [np.ones(1)], 1.0
    step = max(4 * math.isqrt(n), 64)
    j = np.arange(k, min(k + step, n), dtype=np.float64)
    while len(j) and remainder > NEGLIGIBLE_SHARE:
        new_terms = terms[-1][-1] * np.cumprod((n - j) / (j + 1))
        terms.append(new_terms)
        ratio = (n - j[-1] - 1) / (j[-1] + 2)
        remainder = float(new_terms[-1]) / (1 - ratio)
        j = np.arange(j[-1] + 1, min(j[-1] + 1 + step, n))
    if not len(j):
        remainder = 0.0
    all_terms = np.concatenate(terms)
    total = math.fsum(all_terms)
    error = ROUNDOFF * (3 * float(np.arange(len(all_terms)) @ all_terms) / total + 8) * (1 + 1e-6)
    low, high = _bound_term(n, k)
    return ProbabilityLimits(low * total * (1 - error), high * (total + remainder) * (1 + error))


def compute_probabilities(n: int, low: int, high: int) -> tuple[Floats, float]:
    """Return P(X = k) for k = low to high, and a bound on their relative error.

    Probabilities that are too small for a float are 0, or nearly.
    """
    middle = min(max(n // 2, low), high)
    first = sum(_bound_term(n, middle)) / 2
    up, down = np.arange(middle, high, dtype=np.float64), np.arange(middle, low, -1, dtype=np.float64)
    above = np.cumprod(np.concatenate([[first], (n - up) / (up + 1)]))
    below = np.cumprod(np.concatenate([[first], down / (n - down + 1)]))
    return np.concatenate([below[:0:-1], above]), (3 * max(high - middle, middle - low) + 10) * ROUNDOFF * (1 + 1e-6)


def compute_tails(n: int, k: Integers) -> tuple[Floats, float]:
    """Return P(X >= k) for many k from 0 to n + 1, and a bound on their relative error."""
    lowest, highest = int(k.min()), int(min(k.max(), n))
    if lowest > n:
        return np.zeros(len(k)), 0.0
    end = compute_tail(n, highest + 1)
    probabilities, error = compute_probabilities(n, lowest, highest)
    beyond = (float(end.low) + float(end.high)) / 2
    sums = np.append(np.cumsum(np.append(beyond, probabilities[::-1]))[::-1], 0.0)  # of k = least to most + 1, and none
    sums = np.where(np.arange(lowest, highest + 3) > n, 0.0, sums)
    spread = (float(end.high) - float(end.low)) / beyond if beyond else 0.0
    return sums[np.minimum(k, n + 1) - lowest], max(error, spread) + (len(probabilities) + 2) * ROUNDOFF


def _bound_term(n: int, k: int) -> tuple[float, float]:
    """Return limits of C(n, k) / 2**n."""
    fewer = min(k, n - k)
    with localcontext(Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)):
        halves = Decimal(n) * Decimal(2).ln()
        if fewer <= MIN_STIRLING:
            exponent = Decimal(math.comb(n, fewer)).ln() - halves
        else:
            exponent = _compute_log_factorial(n) - _compute_log_factorial(k) - _compute_log_factorial(n - k) - halves
        p = float(exponent.exp())
    return p * (1 - 4 * ROUNDOFF), p * (1 + 4 * ROUNDOFF) + 2 * math.ulp(0.0)


def _compute_log_factorial(n: int) -> Decimal:
    x = Decimal(n)
    series = sum((Decimal(b.numerator) / b.denominator / x ** (2 * i + 1) for i, b in enumerate(BERNOULLI)), Decimal())
    return (x + Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series
