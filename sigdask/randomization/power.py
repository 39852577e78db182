"""Power by simulation: samples of any size are drawn from the observed units and tested.

The observed units of two systems are a population, with weights that give it the requested difference
(`statistics.power`). Each trial draws a sample of units, and rejected samples are counted like exceedances. Unit k of a
sample is the same however work is divided into tasks. Purpose 5 of the stream (`stream`): position k of sample s is
word k mod 4 of the call at (s, k div 4) in run 0. The swaps by which samples are tested, which all samples share, are
in run 1.

A sample is tested with as few trials as possible: it is swapped in rounds until the confidence sequence of p (Robbins
1970; Ding, Gandy & Hahn 2020) excludes alpha. Samples that are still open after the last round are decided by (k + 1) /
(n + 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.forms import compute_gradient
from sigdask.randomization.panels import Uncached
from sigdask.randomization.panels.build import SIDES
from sigdask.randomization.panels.digests import ResampledPanel
from sigdask.randomization.panels.scored_sums import PanelMetric
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.stream import RESAMPLE, Key, draw_sample_ranks, draw_swap_bits
from sigdask.randomization.tallies import TAILS, CountingMethod, Tally
from sigdask.statistics import power
from sigdask.statistics.bounds import log_choose
from sigdask.statistics.lattice import INTEGER_LATTICE, TIE

INFLUENCE_DIGITS = 12
"""Decimals of influences, as a share of the largest: units that differ by rounding errors alone are equal."""

EXACT_32, MAX_DRAWN = 2**24, 2**16
"""Whole numbers whose sums are exact in 32 bits, and the maximum number of unit sums of a sample."""


@dataclass(frozen=True, eq=False)
class ObservedPair(Uncached):
    """Units of one pair of systems under one metric, in the order of their influence on the difference.

    Attributes
    ----------
    panel : Panel
        Panel of only this pair and metric, with all units.
    """

    panel: Panel

    @cached_property
    def _contributions(self) -> Floats:
        """Contributions of each unit to the sums that determine a score, A's first, in the panel's order of units."""
        values = self.panel.values[:, self.panel.pairs[0]].astype(np.int64)
        return np.asarray(self.panel.to_arguments(0, values), np.float64)

    @cached_property
    def _panel_influences(self) -> Floats:
        """Influence of each unit on the difference of scores, in the panel's order, shape (n_units,)."""
        form, added, totals = self.panel.metrics[0].form, self._contributions, self.panel.totals[self.panel.pairs[0]]
        slopes = [compute_gradient(form, system) for system in self.panel.to_arguments(0, totals)]
        influences = (added[:, 0] @ slopes[0] - added[:, 1] @ slopes[1]) * len(added)
        influences -= influences.mean()
        largest = np.abs(influences).max() or 1.0
        return np.asarray(np.round(influences / largest, INFLUENCE_DIGITS) * largest)

    @cached_property
    def order(self) -> Integers:
        """Indices of the units by their influence, the smallest first."""
        return np.argsort(self._panel_influences, kind="stable")

    @cached_property
    def influences(self) -> Floats:
        """Influence of each unit on the difference of scores, shape (n_units,)."""
        return self._panel_influences[self.order]

    @cached_property
    def arguments(self) -> Floats:
        """Contributions of each unit to the sums that determine a score, shape (n_units, 2, n_fields)."""
        return self._contributions[self.order]

    @cached_property
    def swap_shifts(self) -> NDArray[Any]:
        """What swapping each unit adds to A's sums and takes from B's, (n_units, n_fields), in 32 bits if exact."""
        shifts = self.arguments[:, 1] - self.arguments[:, 0]
        is_count = all(lattice == INTEGER_LATTICE for lattice in self.panel.lattices)
        fits = is_count and np.abs(shifts).max(initial=0.0) * (MAX_DRAWN // shifts.shape[1]) < EXACT_32
        return shifts.astype(np.float32 if fits else np.float64)

    @cached_property
    def leads(self) -> Integers:
        """Sign of the difference that each unit makes to a mean, shape (n_units,)."""
        above = self.panel.compute_numerators(0, self.panel.values[self.order][:, self.panel.pairs[0]])
        return np.asarray(np.sign(above[:, 0] - above[:, 1]), np.int64)

    def compute_error_bounds(self, totals: Floats) -> Floats:
        """Return bounds on the error of scores that comes from rounded sums, given sums of shape (..., n_fields)."""
        if not self.panel.is_approximate(0):
            return np.zeros(totals.shape[:-1])
        scales = [lattice.step for lattice in self.panel.lattices]
        return self.panel.compute_error_bounds(0, np.rint(totals / scales).astype(np.int64))

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

    @property
    def is_sign_test(self) -> bool:
        """Whether the test is a sign test: all nonzero differences of a mean have one size."""
        return bool(self.panel.linear[0] and self.panel.sign_counts[0, 0, 0] >= 0)

    def compute_difference(self, weights: Floats) -> float:
        """Return the difference of scores at the expected sums, if units are drawn with given probabilities."""
        a, b = self.panel.metrics[0].form.score(np.tensordot(weights, self.arguments, 1) * self.n_units)
        return float(a - b)


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
    words = draw_sample_ranks(key, run=UNITS_RUN, first=first, n_trials=n_samples, n_units=size, purpose=RESAMPLE)
    return np.searchsorted(borders[:-1], words.astype(np.uint64), side="right")


RISK = 0.01
"""Probability that the confidence sequence of a sample ever excludes the true side of alpha."""

FIRST_ROUND, ENOUGH = 64, 200
"""Swaps of the first round, and exceedances expected at alpha after the last."""

MAX_NUMBERS = 2**22
"""Maximum number of sampled units' sums held at a time."""

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
    if (2 if side == 0 else 1) * 2.0**-size > alpha:
        return 0
    step = max(1, MAX_NUMBERS // (size * observed.arguments.shape[2]))
    weights, total = power.compute_weights(observed.influences, strength), 0
    for start in range(first, first + n, step):
        units = draw_samples(key, weights, first=start, n_samples=min(step, first + n - start), size=size)
        total += _test_samples(observed, units, key, side, alpha)
    return total


def _test_samples(observed: ObservedPair, units: Integers, key: Key, side: int, alpha: float) -> int:
    """Return how many samples of units, shape (n_samples, size), the test rejects."""
    score, size = observed.panel.metrics[0].form.score, units.shape[1]
    totals = np.stack([observed.arguments[sample].sum(axis=0) for sample in units])  # (n_samples, 2, n_fields)
    scores, slack = score(totals), observed.compute_error_bounds(totals).sum(axis=1)
    difference, shifts = scores[:, 0] - scores[:, 1], observed.swap_shifts[units]
    n_extreme, n_rejected, n_swaps = np.zeros(len(units), np.int64), 0, max(MAX_SWAPS // size, FEWEST)
    for start, end in pairwise([0, *list_rounds(alpha)]):
        moving = shifts.transpose(1, 0, 2).reshape(size, -1)  # (size, n_samples * n_fields)
        for first in range(start, end, n_swaps):
            swapped = draw_swap_bits(
                key, run=SWAPS_RUN, first=first, n_trials=min(n_swaps, end - first), n_units=size, purpose=RESAMPLE
            )
            moved = (swapped.astype(shifts.dtype) @ moving).reshape(len(swapped), *shifts.shape[::2])
            a, b = score(totals[:, 0] + moved), score(totals[:, 1] - moved)  # (n_trials, n_samples)
            tie = TIE * (np.abs(a) + np.abs(b)) + slack
            extreme = np.abs(a - b) - np.abs(difference) if side == 0 else side * (a - b - difference)
            n_extreme += np.count_nonzero(extreme >= -tie, axis=0)
        low, high = _compute_limits(end, alpha)
        n_rejected += int(np.count_nonzero(n_extreme <= low))
        is_open = (n_extreme > low) & (n_extreme < high)
        if not is_open.any():
            break
        totals, slack, difference = totals[is_open], slack[is_open], difference[is_open]
        shifts, n_extreme = shifts[is_open], n_extreme[is_open]
    else:
        n_rejected += int(np.count_nonzero(n_extreme + 1 <= alpha * (end + 1)))
    return n_rejected


def list_rounds(alpha: float) -> list[int]:
    """Return the numbers of trials after which undecided samples are judged, each about twice the one before.

    Examples
    --------
    >>> list_rounds(0.05), list_rounds(0.01)[-1]
    ([64, 128, 256, 512, 1024, 2048, 4095], 32767)
    """
    last = int(2 ** math.ceil(math.log2(ENOUGH / alpha)) - 1)
    return [*(n for k in range(last.bit_length()) if (n := FIRST_ROUND << k) < last), last]


def can_decide(level: float) -> bool:
    """Return whether samples can be tested at a significance level; very low levels need too many trials."""
    return list_rounds(level)[-1] <= MAX_SAMPLE_SWAPS


@lru_cache(maxsize=256)
def _compute_limits(n: int, alpha: float) -> tuple[int, int]:
    """Return the largest number of exceedances in n trials that rejects, and the smallest that decides not to."""
    k = np.arange(n + 1)
    weight = np.log(n + 1) + log_choose(n, k) + k * np.log(alpha) + (n - k) * np.log1p(-alpha)
    decided = weight <= np.log(RISK)
    low, high = (np.flatnonzero(decided & side) for side in (k < n * alpha, k > n * alpha))
    return int(low.max(initial=-1)), int(high.min(initial=n + 1))


@dataclass(frozen=True, eq=False)
class PowerSamples(ResampledPanel):
    """A panel whose trials each draw and test a sample of units of one pair of systems.

    Attributes
    ----------
    observed : ObservedPair
        The pair that is drawn from.
    alternative, alpha
        Alternative and level of the test.
    strength : float
        Strength of the tilt.
    size : int
        Number of units of a sample.
    """

    observed: ObservedPair
    alternative: str
    alpha: float
    strength: float
    size: int

    manner: ClassVar[CountingMethod] = CountingMethod(grain=256, timed=4)
    shape: ClassVar[tuple[int, int]] = (1, 1)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "power", self.observed.panel, self.strength, self.size, self.alternative, self.alpha

    @property
    def metrics(self) -> tuple[PanelMetric, ...]:
        """The metric, whose function workers must be able to find."""
        return self.observed.panel.metrics

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count the rejected samples among `first` to `first + n_trials - 1`, the same in each tail.

        Counts do not depend on tasks: each sample and its swaps have addresses in the stream. There is one run.
        """
        assert run == 0
        n_rejected = count_rejected(
            self.observed, self.observed.panel.key, self.strength, self.alternative, self.alpha,
            size=self.size, first=first, n=n_trials,
        )  # fmt: skip
        return Tally(n_trials, np.full((1, 1, len(TAILS)), n_rejected, np.int64))
