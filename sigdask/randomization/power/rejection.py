"""Decide whether the randomization test rejects a sample, with as few trials as possible.

Of a mean, a sample whose statistic is beyond the bound of Bentkus & Dzindzalieta 2015 ("A tight Gaussian bound for
weighted sums of Rademacher random variables", Bernoulli 21: P(sum >= x) <= 3.18 P(Z >= x)) is rejected by every number
of swaps. Any other is swapped in rounds, until the confidence sequence of its p (Robbins 1970; Ding, Gandy & Hahn 2020)
leaves alpha; what is left at the last round is judged by its bound (k + 1) / (n + 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sigdask.counts.lattice import TIE
from sigdask.randomization.power.population import EXACT_32, ObservedPair
from sigdask.randomization.power.samples import draw_samples, iter_swaps
from sigdask.randomization.stream.swaps import Key

Array = NDArray[np.float64]

RISK = 0.01
"""Chance that the confidence sequence of a sample leaves alpha to the wrong side, ever."""

FIRST_ROUND, ENOUGH = 64, 200
"""Swaps of the first round; exceedances expected at alpha by the last."""

RADEMACHER = 3.178
"""Rounded up from 1 / (4 P(Z >= sqrt 2)), the constant of Bentkus & Dzindzalieta 2015, 3.17786."""

MOST_NUMBERS = 2**22
"""Contributions of units to samples that are held at a time."""

EXACT_64 = 2.0**53

MOST_SWAPS = 2**24
"""Of one sample near the level."""


class SampleStatistic(Protocol):
    """Interface of the differences of samples, which tells how often swaps give a difference at least as extreme."""

    def find_certain(self, bar: float) -> NDArray[np.bool_]:
        """Return which samples are certainly rejected, however many trials are made."""
        ...

    def count_exceedances(self, samples: NDArray[np.int64], swapped: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return, for each given sample, how many trials give a difference at least as extreme as the sample's own."""
        ...


def count_rejected(
    observed: ObservedPair, key: Key, strength: float, alternative: str, alpha: float, *, size: int, first: int, n: int
) -> int:
    """Draw samples from the observed units under a tilt, and return how many of them the test rejects.

    Parameters
    ----------
    observed : ObservedPair
        The pairs of units.
    key : tuple of int
        Of the stream.
    strength : float
        Of the tilt that they are drawn under.
    alternative, alpha : str, float
        Of the test.
    size : int
        Units of each sample.
    first, n : int
        The range of samples.
    """
    sides = 2 if alternative == "two-sided" else 1
    if sides * 2.0**-size > alpha:
        return 0
    width = 1 if observed.panel.linear[0] else 2 * observed.arguments.shape[2]
    step = max(1, MOST_NUMBERS // (size * width))
    weights = observed.compute_weights(strength)
    total = 0
    for start in range(first, first + n, step):
        units = draw_samples(key, weights, first=start, n_samples=min(step, first + n - start), size=size)
        statistic: SampleStatistic = (_MeanDifference if observed.panel.linear[0] else _ScoreDifference).from_samples(
            observed, units, alternative
        )
        total += int(_find_rejected(statistic, key, len(units), size, alpha, sides).sum())
    return total


def _find_rejected(
    statistic: SampleStatistic, key: Key, n_samples: int, size: int, alpha: float, sides: int
) -> NDArray[np.bool_]:
    rejected = statistic.find_certain(-float(special.ndtri(alpha / (sides * RADEMACHER))))
    undecided = np.flatnonzero(~rejected)
    n_extreme, n_swaps = np.zeros(n_samples, np.int64), 0
    for end in _iter_rounds(alpha):
        for swapped in iter_swaps(key, first=n_swaps, stop=end, size=size):
            n_extreme[undecided] += statistic.count_exceedances(undecided, swapped)
        n_swaps = end
        low, high = _compute_limits(n_swaps, alpha)
        rejected[undecided[n_extreme[undecided] <= low]] = True
        undecided = undecided[(n_extreme[undecided] > low) & (n_extreme[undecided] < high)]
        if not len(undecided):
            return rejected
    rejected[undecided] = n_extreme[undecided] + 1 <= alpha * (n_swaps + 1)
    return rejected


def compute_last_round(alpha: float) -> int:
    """Return the largest number of trials that are made to test one sample at level alpha.

    Examples
    --------
    >>> compute_last_round(0.05), compute_last_round(0.01)
    (4095, 32767)
    """
    return int(2 ** math.ceil(math.log2(ENOUGH / alpha)) - 1)


def can_decide(level: float) -> bool:
    """Return whether samples can be tested at a significance level; very low levels need too many trials."""
    return compute_last_round(level) <= MOST_SWAPS


def _iter_rounds(alpha: float) -> Iterator[int]:
    """Yield the numbers of trials after which undecided samples are judged, each about twice the one before."""
    end, last = FIRST_ROUND, compute_last_round(alpha)
    while end < last:
        yield end
        end *= 2
    yield last


@lru_cache(maxsize=256)
def _compute_limits(n: int, alpha: float) -> tuple[int, int]:
    """Return the largest number of exceedances in n trials that rejects, and the smallest that decides not to."""
    k = np.arange(n + 1)
    log_ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    weight = np.log(n + 1) + log_ways + k * np.log(alpha) + (n - k) * np.log1p(-alpha)
    decided = weight <= np.log(RISK)
    low = np.flatnonzero(decided & (k < n * alpha))
    high = np.flatnonzero(decided & (k > n * alpha))
    return (int(low[-1]) if len(low) else -1), (int(high[0]) if len(high) else n + 1)


@dataclass(frozen=True, slots=True)
class _MeanDifference:
    """Samples' differences between numerators of a mean; swaps turn t into t - 2 * (sum over swapped units)."""

    differences: NDArray[np.floating[Any]]  # (n_samples, size)
    total: NDArray[np.floating[Any]]  # (n_samples,)
    slack: Array
    side: int  # 1 greater, -1 less, 0 both

    @staticmethod
    def from_samples(observed: ObservedPair, units: NDArray[np.int64], alternative: str) -> _MeanDifference:
        reach = float(np.abs(observed.numerator_differences).max(initial=0)) * units.shape[1]
        differences: NDArray[Any] = observed.numerator_differences.astype(
            np.float32 if reach < EXACT_32 else np.float64
        )[units]
        slack = observed.slack[units].sum(axis=1).astype(np.float64)
        if reach >= EXACT_64:
            slack = np.maximum(slack, np.abs(differences).sum(axis=1) * TIE)
        side = {"greater": 1, "less": -1}.get(alternative, 0)
        return _MeanDifference(differences, differences.sum(axis=1), slack, side)

    def find_certain(self, bar: float) -> NDArray[np.bool_]:
        norm = np.sqrt((self.differences.astype(np.float64) ** 2).sum(axis=1))
        reach = np.abs(self.total) if self.side == 0 else self.total * self.side
        return np.asarray((norm > 0) & (reach - 2 * self.slack >= bar * norm))

    def count_exceedances(self, samples: NDArray[np.int64], swapped: NDArray[np.float32]) -> NDArray[np.int64]:
        differences, total = self.differences[samples], self.total[samples]
        turned = swapped.astype(differences.dtype, copy=False) @ differences.T  # (n_trials, n_some)
        slack = self.slack[samples].astype(total.dtype)
        if self.side == 0:
            turned, total = turned * np.where(total < 0, -1, 1).astype(total.dtype), np.abs(total)
            beyond = (turned <= slack) | (turned >= total - slack)
        else:
            beyond = turned * total.dtype.type(self.side) <= slack
        return np.asarray(np.count_nonzero(beyond, axis=0))


@dataclass(frozen=True, slots=True)
class _ScoreDifference:
    """Samples' differences of any score that is a function of sums, which is computed anew for each trial."""

    observed: ObservedPair
    shifts: NDArray[Any]  # (n_samples, size, n_fields), what a swap moves from B to A
    totals: Array  # (n_samples, 2, n_fields)
    difference: Array
    slack: Array
    side: int

    @staticmethod
    def from_samples(observed: ObservedPair, units: NDArray[np.int64], alternative: str) -> _ScoreDifference:
        totals = np.stack([observed.arguments[sample].sum(axis=0) for sample in units])  # (n_samples, 2, n_fields)
        form = observed.panel.metrics[0].form
        scores = form.score(totals)  # (n_samples, 2)
        side = {"greater": 1, "less": -1}.get(alternative, 0)
        slack = observed.compute_error_bounds(totals).sum(axis=1)
        shifts = observed.swap_shifts[units]
        return _ScoreDifference(observed, shifts, totals, scores[:, 0] - scores[:, 1], slack, side)

    def find_certain(self, _bar: float) -> NDArray[np.bool_]:
        return np.zeros(len(self.difference), np.bool_)

    def count_exceedances(self, samples: NDArray[np.int64], swapped: NDArray[np.float32]) -> NDArray[np.int64]:
        shifts = self.shifts[samples]  # (n_some, size, n_fields)
        moved = swapped.astype(shifts.dtype, copy=False) @ shifts.transpose(1, 0, 2).reshape(shifts.shape[1], -1)
        moved = moved.reshape(len(swapped), *shifts.shape[::2])  # (n_trials, n_some, n_fields)
        score, totals = self.observed.panel.metrics[0].form.score, self.totals[samples]
        a, b = score(totals[:, 0] + moved), score(totals[:, 1] - moved)
        differences, observed = a - b, self.difference[samples]
        tie = TIE * (np.abs(a) + np.abs(b)) + self.slack[samples]
        if self.side == 0:
            beyond = np.abs(differences) >= np.abs(observed) - tie
        else:
            beyond = self.side * differences >= self.side * observed - tie
        return np.asarray(np.count_nonzero(beyond, axis=0))
