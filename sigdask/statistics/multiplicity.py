"""Adjusted p-values of many comparisons, and replication over test sets.

An adjusted p of at most alpha rejects at family-wise error rate alpha (Holm, max-T), or at false discovery
rate alpha (BH). The number of test sets in which a difference replicates is tested too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sigdask.counts.fields import Floats, Integers

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


def count_replicated(p: Sequence[float] | Floats, alpha: float) -> tuple[Integers, Floats]:
    """Return in how many test sets at least, at confidence 1 - alpha, the difference is real, with its p-value.

    Partial conjunctions: "at least u of the n differences are real" has the p-value max over v <= u of (n - v + 1)
    p_(v) (Bonferroni's, valid under any dependence of the sets).

    Parameters
    ----------
    p : float64 array, shape (..., n_sets)
        One-sided p-values in one direction, one per test set.
    alpha : float
        Level.

    Returns
    -------
    (int64 array, float64 array), of shape (...)
        The largest u that is shown, and the p-value of "at least max(u, 1)".

    References
    ----------
    Benjamini & Heller 2008, "Screening for partial conjunction hypotheses"; Dror, Baumer, Bogomolov
    & Reichart 2017, "Replicability analysis for natural language processing", section 4.

    Examples
    --------
    >>> shown, p = count_replicated([0.001, 0.002, 0.4], 0.05)
    >>> int(shown), float(p)
    (2, 0.004)
    """
    ordered = np.sort(np.asarray(p, np.float64), axis=-1)
    n = ordered.shape[-1]
    p_at_least = np.minimum(np.maximum.accumulate(ordered * (n - np.arange(n)), axis=-1), 1.0)
    n_shown = np.count_nonzero(p_at_least <= alpha, axis=-1)
    index = np.maximum(n_shown, 1)[..., None] - 1
    return np.asarray(n_shown), np.take_along_axis(p_at_least, index, axis=-1)[..., 0]


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
