"""Tails of Bin(n, 1/2), where all units move a score as much: as fractions, or certified for any n.

For large n the first term is made of Stirling's series in decimals, whose error is less than the first
term left out, and the others by their ratios (Loader 2000 has the idea for floats).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.statistics.exact.result import TailProbability

LARGEST_FRACTION = 4096
"""Units up to which tails are summed as integers."""

FEW = 200
"""Trials or successes for which no Stirling's series is taken."""

DIGITS = 50
UNIT = 2.0**-53
NEGLIGIBLE = 1e-19
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")
BERNOULLI = [
    Fraction(1, 12),
    Fraction(-1, 360),
    Fraction(1, 1260),
    Fraction(-1, 1680),
    Fraction(1, 1188),
    Fraction(-691, 360360),
]


def operations(n: int) -> int:
    """Return about what a tail takes."""
    return n * (n // 128 + 1) if n <= LARGEST_FRACTION else 100_000 + 20 * math.isqrt(n)


def upper(n: int, k: int) -> TailProbability:
    """Return P(X >= k), or limits of it.

    Examples
    --------
    >>> upper(34, 28).low
    Fraction(419029, 4294967296)
    """
    if k <= 0 or k > n:
        p = Fraction(int(k <= 0))
        return TailProbability(p, p)
    if n <= LARGEST_FRACTION:
        p = Fraction(_count(n, k), 1 << n)
        return TailProbability(p, p)
    if 2 * k > n:
        return _series(n, k)
    rest = _series(n, n - k + 1)
    return TailProbability(math.nextafter(1 - float(rest.high), 0.0), math.nextafter(1 - float(rest.low), 1.0))


def _count(n: int, k: int) -> int:
    """Return the sum of the binomial coefficients from k on."""
    if 2 * k <= n:
        return (1 << n) - _count(n, n - k + 1)
    term = total = math.comb(n, k)
    for j in range(k, n):
        term = term * (n - j) // (j + 1)
        total += term
    return total


def _series(n: int, k: int) -> TailProbability:
    """Return limits of P(X >= k) for 2 k > n by its first term and the ratios of the others, which fall."""
    terms, left = [np.ones(1)], 1.0
    step = max(4 * math.isqrt(n), 64)
    j = np.arange(k, min(k + step, n), dtype=np.float64)
    while len(j) and left > NEGLIGIBLE:
        part = terms[-1][-1] * np.cumprod((n - j) / (j + 1))
        terms.append(part)
        ratio = (n - j[-1] - 1) / (j[-1] + 2)
        left = float(part[-1]) / (1 - ratio)
        j = np.arange(j[-1] + 1, min(j[-1] + 1 + step, n))
    if not len(j):
        left = 0.0
    each = np.concatenate(terms)
    total = math.fsum(each)
    error = UNIT * (3 * float(np.arange(len(each)) @ each) / total + 8) * (1 + 1e-6)
    low, high = _first(n, k)
    return TailProbability(low * total * (1 - error), high * (total + left) * (1 + error))


def shares(n: int, low: int, high: int) -> tuple[NDArray[np.float64], float]:
    """Return P(X = k) of k = low to high, and a bound of their relative error.

    What is smaller than a float holds is 0, or nearly.
    """
    middle = min(max(n // 2, low), high)
    first = sum(_first(n, middle)) / 2
    up, down = np.arange(middle, high, dtype=np.float64), np.arange(middle, low, -1, dtype=np.float64)
    above = np.cumprod(np.concatenate([[first], (n - up) / (up + 1)]))
    below = np.cumprod(np.concatenate([[first], down / (n - down + 1)]))
    return np.concatenate([below[:0:-1], above]), (3 * max(high - middle, middle - low) + 10) * UNIT * (1 + 1e-6)


def uppers(n: int, k: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Return P(X >= k) of many k, from 0 to n + 1, and a bound of their relative error."""
    least, most = int(k.min()), int(min(k.max(), n))
    if least > n:
        return np.zeros(len(k)), 0.0
    end = upper(n, most + 1)
    own, error = shares(n, least, most)
    beyond = (float(end.low) + float(end.high)) / 2
    sums = np.append(np.cumsum(np.append(beyond, own[::-1]))[::-1], 0.0)  # of k = least to most + 1, and none
    sums = np.where(np.arange(least, most + 3) > n, 0.0, sums)
    spread = (float(end.high) - float(end.low)) / beyond if beyond else 0.0
    return sums[np.minimum(k, n + 1) - least], max(error, spread) + (len(own) + 2) * UNIT


def _first(n: int, k: int) -> tuple[float, float]:
    """Return limits of C(n, k) / 2**n."""
    few = min(k, n - k)
    with localcontext(Context(prec=DIGITS, Emin=-(10**9), Emax=10**9)):
        halves = Decimal(n) * Decimal(2).ln()
        if few <= FEW:
            exponent = Decimal(math.comb(n, few)).ln() - halves
        else:
            exponent = _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k) - halves
        p = float(exponent.exp())
    return p * (1 - 4 * UNIT), p * (1 + 4 * UNIT) + 2 * math.ulp(0.0)


def _log_factorial(n: int) -> Decimal:
    x = Decimal(n)
    series = sum((Decimal(b.numerator) / b.denominator / x ** (2 * i + 1) for i, b in enumerate(BERNOULLI)), Decimal())
    return (x + Decimal("0.5")) * x.ln() - x + (2 * PI).ln() / 2 + series
