"""Adjusted p-values of many comparisons, replication over test sets, and online control over nights.

An adjusted p of at most alpha rejects at family-wise error rate alpha (Holm, max-T), or at false discovery
rate alpha (BH). The number of test sets in which a difference replicates is tested too.

Online control gives each night a level, so that the share of false alarms stays below alpha. LORD++ (Ramdas, Yang,
Wainwright & Jordan 2017, "Online control of the false discovery rate with decaying memory") is for p-values that are
independent between nights. LOND (Javanmard & Montanari 2015, "On online control of false discovery rate") is also valid
for positively dependent ones (Zrnic, Ramdas & Jordan 2021), such as those of systems that are tested on the same test
set every night. Both hold for any weights whose sum is at most one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import scipy

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


def _restore_order(order: Integers, values: Floats) -> Floats:
    out = np.empty_like(values)
    out[order] = np.minimum(values, 1.0, out=values)
    return out


OnlineRule = Literal["lord++", "lond"]

FIRST_SHARE = 0.5
"""Share of alpha with which LORD++ starts. The first alarm adds the rest."""

EXPONENT = 1.6
"""Exponent with which the weights decrease in the number of tests."""


def compute_weight(j: int) -> float:
    """Return the weight of the j-th test after an alarm, j^-1.6 / zeta(1.6); all weights sum to one.

    Examples
    --------
    >>> round(compute_weight(1), 4), round(compute_weight(2), 4)
    (0.4375, 0.1443)
    """
    return math.pow(j, -EXPONENT) / float(scipy.special.zeta(EXPONENT))


def compute_levels(
    p_values: Sequence[float], alpha: float, rule: OnlineRule, *, recorded: Sequence[float] = ()
) -> list[float]:
    """Return the significance level of each night's test, and that of the next night.

    Recorded levels are kept, even if they came from other weights. Later levels follow from the weights at their place
    in the sequence. This keeps the guarantees of both rules, because the cumulated weights of version 0.2 never exceed
    these. So earlier and later levels add up to at most alpha for each alarm. An alarm never lowers a later level.

    Parameters
    ----------
    p_values : sequence of float
        One per night, in order.
    alpha : float
        Share of false alarms among alarms, in expectation.
    rule : {"lord++", "lond"}
        How alarms earn later ones.
    recorded : sequence of float
        Levels that were used for the first tests.

    Returns
    -------
    list of float, length len(p_values) + 1
        Night t is an alarm if p_values[t] <= levels[t].

    Examples
    --------
    >>> [round(level, 6) for level in compute_levels([1e-6, 0.3], 0.05, "lord++")]
    [0.010937, 0.014545, 0.005494]
    """
    return _compute_levels(p_values, alpha, rule, recorded, compute_weight, FIRST_SHARE)


def compute_old_levels(p_values: Sequence[float], alpha: float, rule: OnlineRule) -> list[float]:
    """Return the significance levels that version 0.2 used, for stores that recorded only p-values."""
    return _compute_levels(p_values, alpha, rule, (), _compute_old_weight, 0.1)


def _compute_levels(
    p_values: Sequence[float],
    alpha: float,
    rule: OnlineRule,
    recorded: Sequence[float],
    weight: Callable[[int], float],
    first_share: float,
) -> list[float]:
    alarms: list[int] = []
    levels = [*recorded]
    for t in range(1, len(p_values) + 2):
        if t > len(levels):
            if rule == "lond":
                levels.append(alpha * weight(t) * (len(alarms) + 1))
            else:
                shares = [1 - first_share, *[1.0] * len(alarms)]
                earned = sum(share * weight(t - alarm) for share, alarm in zip(shares, alarms, strict=False))
                levels.append(alpha * (first_share * weight(t) + earned))
        if t <= len(p_values) and p_values[t - 1] <= levels[t - 1]:
            alarms.append(t)
    return levels


def _compute_old_weight(j: int) -> float:
    """Return the weight of the j-th test in version 0.2 (Javanmard & Montanari 2018, equation 31).

    It is the default of the R package onlineFDR.
    """
    return 0.07720838 * math.log(max(j, 2)) / (j * math.exp(math.sqrt(math.log(j))))


def bound_false_alarms(alpha: float, rule: OnlineRule, n_nights: int) -> float:
    """Return an upper bound of the expected number of false alarms in some nights, if nothing ever gets worse.

    For LORD++, each alarm adds at most alpha to the sum of all levels, which is a bound if nights are independent. For
    LOND, valid under any dependence, the level of night t is highest if all t - 1 nights before it were alarms.

    Examples
    --------
    >>> round(bound_false_alarms(0.05, "lord++", 365), 4), round(bound_false_alarms(0.05, "lond", 365), 2)
    (0.0263, 0.54)
    """
    if rule == "lord++":
        return FIRST_SHARE * alpha / (1 - alpha)
    return float(alpha * (np.arange(1.0, n_nights + 1) ** (1 - EXPONENT)).sum() / scipy.special.zeta(EXPONENT))
