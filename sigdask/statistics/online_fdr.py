"""Online FDR control over nights: significance levels that keep the share of false alarms below alpha.

LORD++: Ramdas, Yang, Wainwright & Jordan 2017, "Online control of the false discovery rate with
decaying memory", for p-values independent between nights. LOND: Javanmard & Montanari 2015, "On online
control of false discovery rate", valid as well for positively dependent ones (Zrnic, Ramdas & Jordan
2021), as of systems that are judged on the same test set every night. Both hold for any weights that do
not increase and sum to one at most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

from scipy import special

OnlineRule = Literal["lord++", "lond"]

FIRST_SHARE = 0.5
"""Share of alpha that LORD++ starts with; the first alarm brings the rest."""

EXPONENT = 1.6
"""The weights fall with this power of the number of tests."""

ZETA = float(special.zeta(EXPONENT))


def compute_weight(j: int) -> float:
    """Return the weight of the j-th test after an alarm, j^-1.6 / zeta(1.6); all weights sum to one.

    Examples
    --------
    >>> round(compute_weight(1), 4), round(compute_weight(2), 4)
    (0.4375, 0.1443)
    """
    return math.pow(j, -EXPONENT) / ZETA


def compute_levels(
    p_values: Sequence[float], alpha: float, rule: OnlineRule, *, recorded: Sequence[float] = ()
) -> list[float]:
    """Return the significance level of each night's test, and that of the next night.

    Recorded levels stay, also where other weights gave them. The levels after them are those that the weights give at
    their place in the sequence. That keeps the promise of both rules. Up to any night the weights of version 0.2 give
    less than these do, so that earlier and later levels add up to at most alpha for each alarm. No later level falls
    because an earlier night was an alarm.

    Parameters
    ----------
    p_values : sequence of float
        One a night, in order.
    alpha : float
        Share of false alarms among alarms, in expectation.
    rule : {"lord++", "lond"}
        How alarms earn later ones.
    recorded : sequence of float
        Levels of the first tests, as they were used.

    Returns
    -------
    list of float, length len(p_values) + 1
        Night t is an alarm where p_values[t] <= levels[t].

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


def bound_false_alarms(alpha: float, rule: OnlineRule) -> float:
    """Return an upper bound of the expected number of false alarms over all nights, if nothing ever gets worse.

    Each alarm adds at most alpha to the sum of all levels, which bounds it.
    """
    start = FIRST_SHARE * alpha if rule == "lord++" else alpha
    return start / (1 - alpha)
