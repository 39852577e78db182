"""Testing night after night: levels that keep the share of false alarms among all alarms below alpha.

LORD++: Ramdas, Yang, Wainwright & Jordan 2017, "Online control of the false discovery rate with
decaying memory", for p-values independent between nights. LOND: Javanmard & Montanari 2015, "On online
control of false discovery rate", valid as well for positively dependent ones (Zrnic, Ramdas & Jordan
2021), as of systems that are judged on the same test set every night.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

OnlineRule = Literal["lord++", "lond"]

FIRST_SHARE = 0.1
"""Of alpha: the wealth that LORD++ starts with, as in the R package onlineFDR."""

_SUM = 0.07720838
"""Keeps the sum of the weights below 1 (Javanmard & Montanari 2018, equation 31)."""


def weight(j: int) -> float:
    """Return how much of the wealth goes to the j-th test after it was won."""
    return _SUM * math.log(max(j, 2)) / (j * math.exp(math.sqrt(math.log(j))))


def levels(p_values: Sequence[float], alpha: float, rule: OnlineRule) -> list[float]:
    """Return the level of each test in turn, and of the one to come.

    Parameters
    ----------
    p_values : sequence of float
        One a night, in order.
    alpha : float
        Share of false alarms among alarms, in expectation.
    rule : {"lord++", "lond"}
        How alarms earn later ones.

    Returns
    -------
    list of float, length len(p_values) + 1
        Night t is an alarm where p_values[t] <= levels[t].

    Examples
    --------
    >>> [round(level, 6) for level in levels([1e-6, 0.3], 0.05, "lord++")]
    [0.000268, 0.002466, 0.000573]
    """
    next_level = {"lord++": _lord, "lond": _lond}[rule]
    alarms: list[int] = []
    found = []
    for t, p in enumerate(p_values, start=1):
        found.append(next_level(t, alarms, alpha))
        if p <= found[-1]:
            alarms.append(t)
    return [*found, next_level(len(p_values) + 1, alarms, alpha)]


def _lord(t: int, alarms: Sequence[int], alpha: float) -> float:
    first = FIRST_SHARE * alpha
    level = weight(t) * first
    for number, alarm in enumerate(alarms):
        level += weight(t - alarm) * (alpha - first if number == 0 else alpha)
    return level


def _lond(t: int, alarms: Sequence[int], alpha: float) -> float:
    return alpha * weight(t) * (len(alarms) + 1)


def most_false_alarms(alpha: float, rule: OnlineRule) -> float:
    """Return a bound on the expected number of false alarms ever, if nothing ever gets worse.

    Each alarm adds at most alpha to the sum of all levels, which bounds it.
    """
    start = FIRST_SHARE * alpha if rule == "lord++" else alpha
    return start / (1 - alpha)
