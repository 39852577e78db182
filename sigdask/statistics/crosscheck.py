"""Cross-checks of a Monte Carlo count: a second run, the sign test, the exact value.

Each judges exceedances by an exact distribution. The alarm is raised at `ALARM` divided by the
number of comparisons judged together. The smaller of two p-values is never reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from sigdask.statistics.rounding import p_equals

ALARM = 1e-4

KNOWN_DIGITS = 6
"""Digits of a p that a count is held against."""

Verdict = Literal["agrees", "disagrees", "not applicable"]


@dataclass(frozen=True, slots=True)
class Check:
    """One cross-check of one comparison.

    Attributes
    ----------
    name : {"second run", "sign test", "exact value"}
        Which check.
    verdict : {"agrees", "disagrees", "not applicable"}
        What it found.
    p_value : float or None
        The p-value of the other side: the second run's bound, the sign test's or the exact p.
    detail : str
        In words.
    """

    name: str
    verdict: Verdict
    p_value: float | None
    detail: str


def runs_agree(k1: int, k2: int, n_trials: int) -> float:
    """Return Fisher's exact two-sided p of [[k1, n - k1], [k2, n - k2]].

    Both runs are equally long, so the conditional distribution of k1 given k1 + k2 is symmetric
    and the two-sided p is twice the smaller tail.

    Examples
    --------
    >>> round(runs_agree(3, 10, 20), 9)
    0.040742395
    """
    low, total = min(k1, k2), k1 + k2
    if k1 == k2:
        return 1.0
    start = _log_choose(n_trials, low) + _log_choose(n_trials, total - low) - _log_choose(2 * n_trials, total)
    # P(x - 1) / P(x), downwards from x = low; terms beyond 16 standard deviations add nothing
    span = min(low, 100 + int(8 * np.sqrt(total)))
    x = low - np.arange(span, dtype=np.float64)
    ratios = x * (n_trials - total + x) / ((total - x + 1) * (n_trials - x + 1))
    tail = np.exp(start) * (1 + np.cumprod(ratios).sum())
    return float(min(1.0, 2 * tail))


def _log_choose(n: int, k: int) -> float:
    return float(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def count_fits(k: int, n_trials: int, p: float) -> float:
    """Return the two-sided exact binomial p of a count of exceedances whose exact p is known.

    Twice the smaller tail; a z-score fails for tiny p.
    """
    if p >= 1.0:
        return 1.0 if k == n_trials else 0.0
    lower = float(special.betainc(n_trials - k, k + 1, 1 - p)) if k < n_trials else 1.0
    upper = float(special.betainc(k, n_trials - k + 1, p)) if k > 0 else 1.0
    return min(1.0, 2 * min(lower, upper))


def second_run(k1: int, k2: int, n_trials: int, agreement_p: float, n_comparisons: int) -> Check:
    """Judge a second, independent run of as many trials."""
    verdict: Verdict = "agrees" if agreement_p >= ALARM / n_comparisons else "disagrees"
    return Check("second run", verdict, (k2 + 1) / (n_trials + 1), of_runs(k1, k2, n_trials, p_equals(agreement_p)))


def against_known(name: str, p: float, n_extreme: int, n_trials: int, n_comparisons: int, *, exact: bool) -> Check:
    """Judge a count against a p-value known otherwise.

    Parameters
    ----------
    name : str
        Which check.
    p : float
        The known p-value.
    n_extreme, n_trials : int
        The count, and of how many trials or arrangements.
    n_comparisons : int
        Comparisons judged together.
    exact : bool
        The count is of all arrangements: it must equal p, not only fit it.
    """
    if exact:
        fits = abs(n_extreme / n_trials - p) <= 1e-12 * p
        detail = of_arrangements(p_equals(p, digits=KNOWN_DIGITS), n_extreme, n_trials)
    else:
        tail = count_fits(n_extreme, n_trials, p)
        fits = tail >= ALARM / n_comparisons
        detail = of_trials(p_equals(p, digits=KNOWN_DIGITS), n_extreme, n_trials, p_equals(tail))
    return Check(name, "agrees" if fits else "disagrees", p, detail)


def of_runs(k1: int, k2: int, n_trials: int, agreement: str) -> str:
    """Say what two runs counted, and what Fisher's p is."""
    return f"{k1:,} and {k2:,} of {n_trials:,} trials; agreement {agreement} (Fisher)"


def of_arrangements(known: str, n_extreme: int, n_trials: int) -> str:
    """Say what all arrangements were held against."""
    return f"{known} against {n_extreme:,} of all {n_trials:,} arrangements"


def of_trials(known: str, n_extreme: int, n_trials: int, fit: str) -> str:
    """Say what a sample was held against, and what p its count has if that is true."""
    return f"{known}; {n_extreme:,} of {n_trials:,} trials fit it with {fit} (binomial)"
