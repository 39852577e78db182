"""Exact tests of many two-by-two tables at once, and limits of a list's true candidates from a random sample."""
# ruff: noqa: ANN001
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.io.compiled_cache import cached_njit

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

EQUALLY_RARE = 1 + 1e-7
"""Relative slack within which tables are as probable as the one seen: that of R's fisher.test."""


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
    cells = [np.ascontiguousarray(cell, np.int64) for cell in (true_a, false_a, true_b, false_b)]
    return np.asarray(_fisher_exact(*cells, _log_factorials(int(np.sum(cells, axis=0).max(initial=0)))))


def compute_list_limits(true: Integers, sampled: Integers, n: Integers, confidence: float) -> tuple[Integers, Integers]:
    """Return limits of how many of a list's n candidates are true, given a random sample of it.

    Every number of true candidates that neither tail of the hypergeometric distribution rules out at
    (1 - confidence) / 2; exact, whatever the size of the sample, and a single number where all are sampled.

    Parameters
    ----------
    true, sampled, n : int64 array, shape (n_lists,)
        True candidates of the sample in each list, its size there, and that of the list.
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
    k, m, size = (np.ascontiguousarray(values, np.int64) for values in (true, sampled, n))
    return _compute_list_limits(k, m, size, (1 - confidence) / 2, _log_factorials(int(size.max(initial=0))))  # type: ignore[no-any-return]


def _log_factorials(n_max: int) -> Floats:
    """Return log(k!) for k from 0 to n_max."""
    return np.asarray(special.gammaln(np.arange(1.0, n_max + 2)))


@cached_njit()
def _log_choose(log, n, k):  # noqa: ANN202
    return log[n] - log[k] - log[n - k]


@cached_njit()
def _fisher_exact(true_a, false_a, true_b, false_b, log):  # noqa: ANN202
    out = np.ones(len(true_a))
    for t in range(len(true_a)):
        n_a, n_b = true_a[t] + false_a[t], true_b[t] + false_b[t]
        true = true_a[t] + true_b[t]
        if n_a == 0 or n_b == 0:
            continue
        log_total = _log_choose(log, n_a + n_b, true)
        observed_probability = math.exp(_log_choose(log, n_a, true_a[t]) + _log_choose(log, n_b, true_b[t]) - log_total)
        p_value = 0.0
        for x in range(max(0, true - n_b), min(true, n_a) + 1):
            probability = math.exp(_log_choose(log, n_a, x) + _log_choose(log, n_b, true - x) - log_total)
            if probability <= observed_probability * EQUALLY_RARE:
                p_value += probability
        out[t] = min(1.0, p_value)
    return out


@cached_njit()
def _hypergeometric_tail(log, k, m, n, true, upper):  # noqa: ANN202
    """Return P(X >= k) or P(X <= k), where X is the number of true ones among m drawn from n with `true` true ones."""
    lowest, highest = max(0, m - (n - true)), min(m, true)
    log_total = _log_choose(log, n, m)
    total = 0.0
    for x in range(max(k, lowest), highest + 1) if upper else range(lowest, min(k, highest) + 1):
        total += math.exp(_log_choose(log, true, x) + _log_choose(log, n - true, m - x) - log_total)
    return total


@cached_njit()
def _compute_list_limits(k, m, n, half, log):  # noqa: ANN202
    low, high = k.copy(), n - (m - k)
    for t in range(len(k)):
        below, above = k[t] - 1, n[t] - (m[t] - k[t])  # the upper tail rises with the number that are true
        while above - below > 1:
            middle = (below + above) // 2
            if _hypergeometric_tail(log, k[t], m[t], n[t], middle, True) > half:
                above = middle
            else:
                below = middle
        low[t] = above
        below, above = k[t], n[t] - (m[t] - k[t]) + 1
        while above - below > 1:
            middle = (below + above) // 2
            if _hypergeometric_tail(log, k[t], m[t], n[t], middle, False) > half:
                below = middle
            else:
                above = middle
        high[t] = below
    return low, high
