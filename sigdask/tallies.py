"""Tallies: exceedances counted over some trials. They add, and that is the whole reduction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.shuffles import BLOCK

TAILS: tuple[str, ...] = ("greater", "less", "two-sided")
"""The last axis of the counts of single comparisons."""

FAMILY_TAILS: tuple[str, ...] = (*TAILS, "single-step", "step-down")
"""The last axis of the counts of a family under max-T."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a kind of panel is counted, for those who share the work out.

    Attributes
    ----------
    n_tails : int
        Size of the last axis of its counts.
    grain : int
        Trials that are worth a call of their own; ranges are multiples of it.
    timed : int
        Trials that tell its speed.
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
        (n_hypotheses, 1, 5), also those in which the largest statistic of the whole family, and of
        the hypotheses that are no more extreme than this one, is at least as large as its own. In a
        relabelling, shape (n_pairs, n_metrics, 1), those whose range of scores is at least |t|.
    trials : int64 array, shape (n_pairs, n_metrics), or None
        Trials of each pair and metric, where not all have `n_trials`.
    """

    n_trials: int
    counts: NDArray[np.int64]
    trials: NDArray[np.int64] | None = None

    def trials_of(self, row: int, column: int) -> int:
        """Return the trials counted of one pair and metric."""
        return self.n_trials if self.trials is None else int(self.trials[row, column])

    @staticmethod
    def zero(shape: tuple[int, int], n_tails: int = len(TAILS)) -> Tally:
        """Return the tally of no trials."""
        return Tally(0, np.zeros((*shape, n_tails), np.int64))

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n_trials + other.n_trials, self.counts + other.counts)
