"""Tallies: exceedances counted in some trials. Tallies of disjoint trials add up.

They are kept by round: trials 0 to 4,095, then up to 16,383, each round bringing them to four times as many. Every
comparison is counted in one round before any is counted in the next. The borders are the same for every plan, so that
two plans that share a comparison keep its tallies alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.randomization.stream import BLOCK

TAILS: tuple[str, ...] = ("greater", "less", "two-sided")
"""The last axis of the counts of single comparisons."""

FAMILY_TAILS: tuple[str, ...] = (*TAILS, "step-down")
"""The last axis of the counts of a family under max-T."""


@dataclass(frozen=True, slots=True)
class CountingMethod:
    """How a kind of panel is counted, for the code that distributes the work.

    Attributes
    ----------
    n_tails : int
        Size of the last axis of its counts.
    grain : int
        Trials that are worth a call of their own; ranges are multiples of it.
    timed : int
        Trials by which its speed is measured.
    vectorised : bool
        Counted by kernels, which let other threads run.
    """

    n_tails: int = len(TAILS)
    grain: int = BLOCK
    timed: int = BLOCK
    vectorised: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Exceedances counted over some trials; tallies of disjoint trials add.

    Attributes
    ----------
    n_trials : int
        Trials counted.
    counts : int64 array, shape (n_pairs, n_metrics, n_tails)
        Trials with T >= t, T <= t and |T| >= |t|. In a family of hypotheses, shape
        (n_hypotheses, 1, 4), also those in which the largest statistic of the hypotheses that are
        no more extreme than this one is at least as large as its own. In a relabelling, shape
        (n_pairs, n_metrics, 1), those whose range of scores is at least |t|.
    trials : int64 array, shape (n_pairs, n_metrics), or None
        Trials of each pair and metric, where not all have `n_trials`.
    """

    n_trials: int
    counts: Integers
    trials: Integers | None = None

    def get_n_trials(self, row: int, column: int) -> int:
        """Return the number of trials counted of one pair and metric."""
        return self.n_trials if self.trials is None else int(self.trials[row, column])

    def narrow(self) -> Tally:
        """Return the tally for transport, with counts in the smallest type that holds them."""
        return replace(self, counts=self.counts.astype(np.min_scalar_type(int(self.counts.max(initial=0)))))

    def widen(self) -> Tally:
        """Return the tally with counts in int64, for addition."""
        return replace(self, counts=self.counts.astype(np.int64))

    @staticmethod
    def zero(shape: tuple[int, int], n_tails: int = len(TAILS)) -> Tally:
        """Return the tally of no trials."""
        return Tally(0, np.zeros((*shape, n_tails), np.int64))

    def __add__(self, other: Tally) -> Tally:
        if self.counts.shape != other.counts.shape:
            raise ValueError(f"tallies of shapes {self.counts.shape} and {other.counts.shape} do not add")
        n_trials, counts = self.n_trials + other.n_trials, self.counts + other.counts
        if self.trials is None and other.trials is None:
            return Tally(n_trials, counts)
        trials = self._get_trials() + other._get_trials()
        return Tally(int(trials.min()) if trials.size else n_trials, counts, trials)

    def _get_trials(self) -> Integers:
        """Return the number of trials counted of each pair and metric, shape (n_pairs, n_metrics)."""
        return np.full(self.counts.shape[:2], self.n_trials, np.int64) if self.trials is None else self.trials


FACTOR = 4
N_ROUNDS = 25
"""Number of rounds that exceeds the stream's 2**48 trials."""


def find_round(trial: int) -> tuple[int, int]:
    """Return the first trial of the round that a trial belongs to, and the first of the next round.

    Examples
    --------
    >>> find_round(0), find_round(4096), find_round(10_000)
    ((0, 4096), (4096, 16384), (4096, 16384))
    """
    start, stop = 0, BLOCK
    while trial >= stop:
        start, stop = stop, stop * FACTOR
    return start, stop


def list_round_ends(n_trials: int) -> Integers:
    """Return the ends of the rounds of the first trials, the last of which may have no more than these.

    Examples
    --------
    >>> list_round_ends(0).tolist(), list_round_ends(4096).tolist(), list_round_ends(10_000).tolist()
    ([], [4096], [4096, 10000])
    """
    borders = BLOCK * FACTOR ** np.arange(N_ROUNDS)
    n_rounds = np.searchsorted(borders, n_trials) + (n_trials > 0)
    return np.minimum(borders[:n_rounds], n_trials)


def split_rounds(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Split trials `first` to `stop - 1` at the borders of rounds.

    Examples
    --------
    >>> list(split_rounds(1000, 20_000))
    [(1000, 4096), (4096, 16384), (16384, 20000)]
    """
    while first < stop:
        end = min(find_round(first)[1], stop)
        yield first, end
        first = end
