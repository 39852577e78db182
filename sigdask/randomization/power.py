"""Power by simulation: samples of any size are drawn from the observed units and tested.

The observed units of two systems are a population, with weights that give it the requested difference
(`statistics.power`). Each trial draws a sample of units, and rejected samples are counted like exceedances. Unit k of a
sample is the same however work is divided into tasks. Purpose 5 of the stream (`stream`): position k of sample s is
word k mod 4 of the call at (s, k div 4) in run 0. The swaps by which samples are tested, which all samples share, are
in run 1.

A sample is tested with as few trials as possible. For a mean, a statistic beyond the bound of Bentkus & Dzindzalieta
2015 ("A tight Gaussian bound for weighted sums of Rademacher random variables", Bernoulli 21: P(sum >= x) <= 3.18 P(Z
>= x)) is rejected without swaps. Other samples are swapped in rounds until the confidence sequence of p (Robbins 1970;
Ding, Gandy & Hahn 2020) excludes alpha. Samples that are still open after the last round are decided by (k + 1) / (n +
1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.counts.precision import INTEGER_LATTICE, TIE
from sigdask.io.caches import cached_njit
from sigdask.metrics.forms import compute_gradient
from sigdask.randomization.kernels.blas import limit_blas_threads
from sigdask.randomization.panels.build import SIDES
from sigdask.randomization.panels.digests import Digests, digest, digest_values
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.stream import RESAMPLE, Key, call_philox, draw_swap_bits, get_run_word
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally
from sigdask.statistics import power
from sigdask.statistics.bounds import log_choose

# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"


EXACT_32 = 2**24
"""Whole numbers below it, and sums of them, are exact in 32 bits."""

MAX_DRAWN = 2**16
"""Maximum number of unit sums of a sample."""

MAX_KEPT = 2**20
"""Maximum number of units' influences that are cached for many pairs. Those of further pairs are computed again."""


@dataclass(frozen=True, eq=False)
class ObservedPair:
    """Units of one pair of systems under one metric, in the order of their influence on the difference.

    Attributes
    ----------
    panel : Panel
        Panel of only this pair and metric, with all units.
    """

    panel: Panel

    @cached_property
    def _panel_influences(self) -> Floats:
        """Influence of each unit on the difference of scores, in the panel's order, shape (n_units,)."""
        panel, form = self.panel, self.panel.metrics[0].form
        n_units = len(panel.values)
        if self.is_plain_mean:
            above = panel.compute_numerators(0, panel.values)
            return np.asarray((above[:, 0] - above[:, 1]).astype(np.float64) * panel.compute_step_value(0) * n_units)
        totals = panel.to_arguments(0, panel.totals)  # (2, n_fields)
        slopes = [compute_gradient(form, totals[side]) for side in range(2)]
        added = np.asarray(panel.to_arguments(0, panel.values.astype(np.int64)), np.float64)
        influences = (added[:, 0] @ slopes[0] - added[:, 1] @ slopes[1]) * n_units
        return np.asarray(influences - influences.mean())

    @cached_property
    def order(self) -> Integers:
        """Indices of the units by their influence, the smallest first."""
        return np.argsort(self._panel_influences, kind="stable")

    @cached_property
    def influences(self) -> Floats:
        """Influence of each unit on the difference of scores, shape (n_units,)."""
        return self._panel_influences[self.order]

    @cached_property
    def numerator_differences(self) -> Integers:
        """Each unit's difference between the systems' contributions to a mean's numerator, shape (n_units,)."""
        above = self.panel.compute_numerators(0, self.panel.values[self.order])
        return np.asarray(above[:, 0] - above[:, 1])

    @cached_property
    def arguments(self) -> Floats:
        """Contributions of each unit to the sums that determine a score, shape (n_units, 2, n_fields)."""
        return np.asarray(self.panel.to_arguments(0, self.panel.values[self.order].astype(np.int64)), np.float64)

    @cached_property
    def swap_shifts(self) -> NDArray[Any]:
        """What swapping each unit adds to A's sums and takes from B's, (n_units, n_fields), in 32 bits if exact."""
        shifts = self.arguments[:, 1] - self.arguments[:, 0]
        is_count = all(lattice == INTEGER_LATTICE for lattice in self.panel.lattices)
        fits = is_count and np.abs(shifts).max(initial=0.0) * (MAX_DRAWN // shifts.shape[1]) < EXACT_32
        return shifts.astype(np.float32 if fits else np.float64)

    @cached_property
    def slack(self) -> Integers:
        """Slack of each unit in a sum, in steps, shape (n_units,); 0 if the systems do not differ in it."""
        sizes = self.panel.sizes[self.order] * self.panel.count_slack_steps(0)
        values = self.panel.values[self.order]
        return np.asarray(np.where((values[:, 0] != values[:, 1]).any(axis=1), sizes, 0))

    def compute_error_bounds(self, totals: Floats) -> Floats:
        """Return bounds on the error of scores that comes from rounded sums, given sums of shape (..., n_fields)."""
        panel = self.panel
        if not panel.is_approximate(0):
            return np.zeros(totals.shape[:-1])
        scales = [lattice.step for lattice in panel.lattices]
        return panel.compute_error_bounds(0, np.rint(totals / scales).astype(np.int64))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.panel.values)

    @property
    def n_fields(self) -> int:
        """Number of sums that a unit contributes to; 1 for a mean."""
        return 1 if self.panel.linear[0] else len(self.panel.metrics[0].fields)

    @property
    def difference(self) -> float:
        """The observed difference of scores."""
        return float(self.panel.differences[0, 0])

    def compute_difference(self, weights: Floats) -> float:
        """Return the difference of scores at the expected sums, if units are drawn with given probabilities."""
        if self.is_plain_mean:
            return float(weights @ self.influences)
        form = self.panel.metrics[0].form
        sums = np.tensordot(weights, self.arguments, 1) * self.n_units  # (2, n_fields)
        a, b = form.score(sums)
        return float(a - b)

    @cached_property
    def is_plain_mean(self) -> bool:
        """Whether the score is a mean over units of equal weight."""
        if not self.panel.linear[0]:
            return False
        fields = list(self.panel.metrics[0].fields)
        below = self.panel.values[:, 0, fields] @ np.array(self.panel.get_ratio(0).denominators[0])
        return bool((below == below[0]).all())

    @cached_property
    def sign_counts(self) -> tuple[int, int] | None:
        """Numbers of units won and lost, if all nonzero differences of a mean have one size; else None."""
        wins, losses = self.panel.sign_counts[0, 0]
        return None if wins < 0 or not self.panel.linear[0] else (int(wins), int(losses))

    def compute_spread(self, weights: Floats) -> float:
        """Return the standard deviation of the influences under given probabilities."""
        mean = weights @ self.influences
        return float(np.sqrt(weights @ (self.influences - mean) ** 2))

    def find_strength(self, target: float) -> float | None:
        """Return the tilt that gives a target difference; None if there is none."""
        return power.find_strength(self.influences, self.compute_difference, target)

    def compute_weights(self, strength: float) -> Floats:
        """Return the probabilities of the units under a tilt."""
        return power.compute_weights(self.influences, strength)


@dataclass(frozen=True, eq=False)
class SystemPairs:
    """Pairs of systems of a panel under one metric; indexing with a row returns the observed units of a pair.

    Attributes
    ----------
    panel : Panel
        Panel with all units, under one metric.
    """

    panel: Panel
    _cache: dict[int, ObservedPair] = field(default_factory=dict)

    def __getitem__(self, row: int) -> ObservedPair:
        pair = self._cache.get(row)
        if pair is None:
            pair = ObservedPair(self.panel.select([row]))
            if len(self._cache) * len(self.panel.values) < MAX_KEPT:
                self._cache[row] = pair
        return pair

    def select(self, rows: Integers) -> SystemPairs:
        """Return some of the pairs, with the systems that they need."""
        return SystemPairs(self.panel.select(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemPairs, (self.panel,)


UNITS_RUN, SWAPS_RUN = 0, 1

MAX_SWAPS, FEWEST = 2**19, 64
"""Maximum cells of a matrix of swaps, and its minimum number of swaps."""


def draw_samples(key: Key, weights: Floats, *, first: int, n_samples: int, size: int) -> Integers:
    """Draw samples of units with replacement.

    A smaller sample is the beginning of a larger one. If weights shift to later units, later ones are drawn.

    Parameters
    ----------
    key : tuple of int
        Key of the stream.
    weights : array, shape (n_units,)
        Probabilities.
    first, n_samples : int
        The range of samples.
    size : int
        Number of units of each sample.

    Returns
    -------
    int64 array, shape (n_samples, size)
        Indices of units.
    """
    sums = np.cumsum(weights)
    borders = np.round(sums / sums[-1] * 2.0**32).astype(np.uint64)
    units = np.empty((n_samples, size), np.int64)
    run_word = get_run_word(UNITS_RUN, RESAMPLE)
    _fill_samples(np.uint32(key[0]), np.uint32(key[1]), run_word, borders, first, units)
    return units


@cached_njit()
def _fill_samples(k0, k1, c1, borders, first, units):
    """Fill `units` with random draws, by looking up random words in the cumulative weights."""
    n_units = borders.shape[0]
    for s in range(units.shape[0]):
        trial = np.uint64(first) + np.uint64(s)
        for start in range(0, units.shape[1], 4):
            w0, w1, w2, w3 = call_philox(k0, k1, trial, c1, np.uint32(start // 4), np.uint32(0))
            words = (np.uint64(w0), np.uint64(w1), np.uint64(w2), np.uint64(w3))
            for q in range(4):
                if start + q < units.shape[1]:
                    word = words[q]
                    low, high = 0, n_units - 1
                    while low < high:  # the first unit whose border is above the word
                        middle = (low + high) // 2
                        if borders[middle] > word:
                            high = middle
                        else:
                            low = middle + 1
                    units[s, start + q] = low


def iter_swaps(key: Key, *, first: int, stop: int, size: int) -> Iterator[NDArray[np.float32]]:
    """Yield which units of a sample each trial swaps, as 0 and 1, in batches of shape (n_some, size)."""
    step = max(MAX_SWAPS // size, FEWEST)
    for start in range(first, stop, step):
        n_trials = min(step, stop - start)
        bits = draw_swap_bits(key, run=SWAPS_RUN, first=start, n_trials=n_trials, n_units=size, purpose=RESAMPLE)
        yield bits.astype(np.float32)


RISK = 0.01
"""Probability that the confidence sequence of a sample ever excludes the true side of alpha."""

FIRST_ROUND, ENOUGH = 64, 200
"""Swaps of the first round, and exceedances expected at alpha after the last."""

RADEMACHER = 3.1787
"""Constant of Bentkus & Dzindzalieta 2015, 1 / (4 P(Z >= sqrt 2)) = 3.178656, rounded up."""

MAX_NUMBERS = 2**22
"""Maximum number of sampled units' sums held at a time."""

EXACT_64 = 2.0**53

MAX_SAMPLE_SWAPS = 2**24
"""Maximum number of swaps of a sample near the level."""


def count_rejected(
    observed: ObservedPair, key: Key, strength: float, alternative: str, alpha: float, *, size: int, first: int, n: int
) -> int:
    """Draw samples from the observed units under a tilt, and return how many of them the test rejects.

    Parameters
    ----------
    observed : ObservedPair
        The pairs of units.
    key : tuple of int
        Key of the stream.
    strength : float
        Strength of the tilt under which they are drawn.
    alternative, alpha : str, float
        Alternative and level of the test.
    size : int
        Number of units of each sample.
    first, n : int
        The range of samples.
    """
    side = SIDES[alternative]
    sides = 2 if side == 0 else 1
    if sides * 2.0**-size > alpha:
        return 0
    width = 1 if observed.panel.linear[0] else 2 * observed.arguments.shape[2]
    step = max(1, MAX_NUMBERS // (size * width))
    weights = observed.compute_weights(strength)
    total = 0
    for start in range(first, first + n, step):
        units = draw_samples(key, weights, first=start, n_samples=min(step, first + n - start), size=size)
        statistic: _MeanDifference | _ScoreDifference = (
            _MeanDifference if observed.panel.linear[0] else _ScoreDifference
        ).from_samples(observed, units, side)
        total += int(_find_rejected(statistic, key, len(units), size, alpha, sides).sum())
    return total


def _find_rejected(
    statistic: _MeanDifference | _ScoreDifference, key: Key, n_samples: int, size: int, alpha: float, sides: int
) -> Bools:
    rejected = statistic.find_certain(-float(scipy.special.ndtri(alpha / (sides * RADEMACHER))))
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
    return compute_last_round(level) <= MAX_SAMPLE_SWAPS


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
    weight = np.log(n + 1) + log_choose(n, k) + k * np.log(alpha) + (n - k) * np.log1p(-alpha)
    decided = weight <= np.log(RISK)
    low = np.flatnonzero(decided & (k < n * alpha))
    high = np.flatnonzero(decided & (k > n * alpha))
    return (int(low[-1]) if len(low) else -1), (int(high[0]) if len(high) else n + 1)


@dataclass(frozen=True, slots=True)
class _MeanDifference:
    """Samples' differences between numerators of a mean; swaps turn t into t - 2 * (sum over swapped units)."""

    differences: NDArray[np.floating[Any]]  # (n_samples, size)
    total: NDArray[np.floating[Any]]  # (n_samples,)
    slack: Floats
    side: int  # 1 greater, -1 less, 0 both

    @staticmethod
    def from_samples(observed: ObservedPair, units: Integers, side: int) -> _MeanDifference:
        reach = float(np.abs(observed.numerator_differences).max(initial=0)) * units.shape[1]
        differences: NDArray[Any] = observed.numerator_differences.astype(
            np.float32 if reach < EXACT_32 else np.float64
        )[units]
        slack = observed.slack[units].sum(axis=1).astype(np.float64)
        if reach >= EXACT_64:
            slack = np.maximum(slack, np.abs(differences).sum(axis=1) * TIE)
        return _MeanDifference(differences, differences.sum(axis=1), slack, side)

    def find_certain(self, bar: float) -> Bools:
        """Return which samples are certainly rejected, however many trials are made."""
        norm = np.sqrt((self.differences.astype(np.float64) ** 2).sum(axis=1))
        reach = np.abs(self.total) if self.side == 0 else self.total * self.side
        return np.asarray((norm > 0) & (reach - 2 * self.slack >= bar * norm))

    def count_exceedances(self, samples: Integers, swapped: NDArray[np.float32]) -> Integers:
        """Return, for each given sample, how many trials give a difference at least as extreme as the sample's own."""
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
    shifts: NDArray[Any]  # (n_samples, size, n_fields), the amount that a swap moves from B to A
    totals: Floats  # (n_samples, 2, n_fields)
    difference: Floats
    slack: Floats
    side: int

    @staticmethod
    def from_samples(observed: ObservedPair, units: Integers, side: int) -> _ScoreDifference:
        totals = np.stack([observed.arguments[sample].sum(axis=0) for sample in units])  # (n_samples, 2, n_fields)
        form = observed.panel.metrics[0].form
        scores = form.score(totals)  # (n_samples, 2)
        slack = observed.compute_error_bounds(totals).sum(axis=1)
        shifts = observed.swap_shifts[units]
        return _ScoreDifference(observed, shifts, totals, scores[:, 0] - scores[:, 1], slack, side)

    def find_certain(self, _bar: float) -> Bools:
        return np.zeros(len(self.difference), np.bool_)

    def count_exceedances(self, samples: Integers, swapped: NDArray[np.float32]) -> Integers:
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


@dataclass(frozen=True, eq=False)
class PowerSamples:
    """A panel whose trials draw a sample for each point, which is a pair of systems, a tilt and a sample size.

    Attributes
    ----------
    pairs : SystemPairs
        Pairs under one metric.
    alternative, alpha
        Alternative and level of the test.
    rows : int64 array, shape (n_points,)
        Pairs that are drawn from.
    strengths : float64 array, shape (n_points,)
        Strengths of the tilts.
    sizes : int64 array, shape (n_points,)
        Number of units of each point's samples.
    """

    pairs: SystemPairs
    alternative: str
    alpha: float
    rows: Integers
    strengths: Floats
    sizes: Integers

    manner: ClassVar[CountingMethod] = CountingMethod(grain=256, timed=4)
    is_whole: ClassVar[bool] = False
    enumerated: ClassVar[bool] = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with only those pairs that are drawn from."""
        used, positions = np.unique(self.rows, return_inverse=True)
        return PowerSamples, (
            self.pairs.select(used), self.alternative, self.alpha, positions, self.strengths, self.sizes
        )  # fmt: skip

    @property
    def shape(self) -> tuple[int, int]:
        """Number of points, and 1 for the one metric."""
        return len(self.rows), 1

    @property
    def metrics(self) -> tuple[PanelMetric, ...]:
        """The metric, whose function workers must be able to find."""
        return self.pairs.panel.metrics

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count, for each point, the rejected samples among `first` to `first + n_trials - 1`, the same in each tail.

        Counts do not depend on tasks: each sample and its swaps have addresses in the stream. There is one run.
        """
        assert run == 0
        counts = np.zeros((*self.shape, len(TAILS)), np.int64)
        with limit_blas_threads():
            points = zip(self.rows.tolist(), self.strengths.tolist(), self.sizes.tolist(), strict=True)
            for k, (row, strength, size) in enumerate(points):
                counts[k] = count_rejected(
                    self.pairs[row], self.pairs.panel.key, strength, self.alternative, self.alpha,
                    size=size, first=first, n=n_trials,
                )  # fmt: skip
        return Tally(n_trials, counts)

    def select(self, rows: Sequence[int] | Integers, _columns: Sequence[int] | None = None, /) -> PowerSamples:
        """Return some of the points."""
        selected = np.asarray(rows, np.int64)
        return replace(self, rows=self.rows[selected], strengths=self.strengths[selected], sizes=self.sizes[selected])

    def compute_digests(self) -> Digests:
        """Return the digest of each point, shape (n_points, 1), which also covers units on which the systems tie."""
        pair_digests = {row: digest(self.pairs[row].panel) for row in set(self.rows.tolist())}
        points = zip(self.rows.tolist(), self.strengths.tolist(), self.sizes.tolist(), strict=True)
        contents = (
            ("power", pair_digests[row], strength, size, self.alternative, self.alpha) for row, strength, size in points
        )
        return digest_values(contents, self.shape)
