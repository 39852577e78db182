"""Cross-checks of the exceedances that trials counted: against a second run, a sign test or an exact p-value.

Each judges exceedances by an exact distribution. The alarm is raised at `ALARM` divided by the
number of comparisons judged together. The smaller of two p-values is never reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from sigdask.statistics.hypergeometric import sum_lower_tails
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count

ALARM = 1e-4

KNOWN_DIGITS = 6
"""Digits of a p that a count is held against."""

Verdict = Literal["agrees", "disagrees", "not applicable"]


EXACT_VALUE = "exact value"
CHECKS = ("second run", "sign test", EXACT_VALUE)
"""The names of all checks, in the order in which they are told."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one cross-check of one comparison's p-value.

    Attributes
    ----------
    name : str
        Which check, of `CHECKS`.
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


def compute_agreement_p(k1: ArrayLike, k2: ArrayLike, n_trials: ArrayLike) -> NDArray[np.float64]:
    """Return Fisher's exact two-sided p-value of the hypothesis that exceedances are equally likely in two runs.

    Both runs are equally long, so the conditional distribution of k1 given k1 + k2 is symmetric
    and the two-sided p is twice the smaller tail.

    Parameters
    ----------
    k1, k2 : int or int array, shape (...)
        Exceedances of the two runs.
    n_trials : int or int array, shape (...)
        Trials of each of the two.

    Returns
    -------
    float64 array, shape (...)

    Examples
    --------
    >>> round(float(compute_agreement_p(3, 10, 20)), 9)
    0.040742395
    """
    k, k_again, n = (np.asarray(counts, np.int64) for counts in np.broadcast_arrays(k1, k2, n_trials))
    low, total = np.minimum(k, k_again), k + k_again
    start = np.exp(_log_choose(n, low) + _log_choose(n, total - low) - _log_choose(2 * n, total))
    tail = start * sum_lower_tails(low.ravel(), total.ravel(), n.ravel()).reshape(low.shape)
    return np.asarray(np.where(k == k_again, 1.0, np.minimum(1.0, 2 * tail)))


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def compute_fit_p(k: ArrayLike, n_trials: ArrayLike, p: ArrayLike) -> NDArray[np.float64]:
    """Return the two-sided exact binomial p-value of exceedance counts when the true probability is known.

    Twice the smaller tail; a z-score fails for tiny p.

    Parameters
    ----------
    k, n_trials : int or int array, shape (...)
        Exceedances, and of how many trials.
    p : float or float64 array, shape (...)
        The known p-value.

    Returns
    -------
    float64 array, shape (...)
    """
    count, n, known_p = np.broadcast_arrays(k, n_trials, p)
    inside = np.where(known_p < 1, known_p, 0.5)
    lower = np.where(count < n, special.betainc(np.maximum(n - count, 1), count + 1, 1 - inside), 1.0)
    upper = np.where(count > 0, special.betainc(np.maximum(count, 1), n - count + 1, inside), 1.0)
    fits = np.minimum(1.0, 2 * np.minimum(lower, upper))
    return np.asarray(np.where(known_p < 1, fits, np.where(count == n, 1.0, 0.0)))


def compute_fit_p_within(k: ArrayLike, n_trials: ArrayLike, low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """Return the p-value of the fit test when the true probability is known only to lie in [low, high]."""
    share = np.asarray(k) / np.asarray(n_trials)
    return compute_fit_p(k, n_trials, np.clip(share, low, high))


def matches_share(k: ArrayLike, n_arrangements: ArrayLike, p: ArrayLike) -> NDArray[np.bool_]:
    """Return whether the share of exceedances among all arrangements equals a known p-value, up to rounding."""
    share = np.asarray(k) / np.asarray(n_arrangements)
    return np.asarray(np.abs(share - p) <= 1e-12 * np.asarray(p))


def judge_second_run(k1: int, k2: int, n_trials: int, agreement_p: float, n_comparisons: int) -> Check:
    """Return the check of whether the exceedances of two independent, equally long runs agree."""
    verdict: Verdict = "agrees" if agreement_p >= ALARM / n_comparisons else "disagrees"
    return Check(
        "second run", verdict, (k2 + 1) / (n_trials + 1), describe_runs(k1, k2, n_trials, format_p_equals(agreement_p))
    )


def judge_known_p(name: str, p: float, n_extreme: int, n_trials: int, n_comparisons: int, *, exact: bool) -> Check:
    """Return the check of whether a count of exceedances agrees with a p-value known from another source.

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
        fits = bool(matches_share(n_extreme, n_trials, p))
        detail = describe_arrangements(format_p_equals(p, digits=KNOWN_DIGITS), n_extreme, n_trials)
    else:
        tail = float(compute_fit_p(n_extreme, n_trials, p))
        fits = tail >= ALARM / n_comparisons
        detail = describe_trials(format_p_equals(p, digits=KNOWN_DIGITS), n_extreme, n_trials, format_p_equals(tail))
    return Check(name, "agrees" if fits else "disagrees", p, detail)


def describe_runs(k1: int, k2: int, n_trials: int, agreement: str) -> str:
    """Return a text that states the exceedances of two runs and Fisher's p-value of their agreement."""
    return f"{k1:,} and {k2:,} of {format_count(n_trials, 'trial')}; agreement {agreement} (Fisher)"


def describe_arrangements(known_text: str, n_extreme: int, n_trials: int) -> str:
    """Return a text that compares a known p-value with the exceedances among all arrangements."""
    return f"{known_text} against {n_extreme:,} of all {n_trials:,} arrangements"


def describe_trials(known_text: str, n_extreme: int, n_trials: int, fit: str) -> str:
    """Return a text that compares a known p-value with the exceedances of random trials."""
    return f"{known_text}; {n_extreme:,} of {format_count(n_trials, 'trial')} fit it with {fit} (binomial)"
