"""What counting is expected to take, told before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.engine.tasks import timed_longer
from sigdask.randomization.jobs import Job

LONG = 60.0
"""Seconds from which work is long."""

FEWEST = 1000
"""Trials of a comparison below which none are recommended."""


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """What counting is expected to take.

    Attributes
    ----------
    total : int
        Trials of all jobs.
    first, stop : int64 array, shape (n_jobs,)
        Where each job's trials of its comparisons lie.
    seconds_each : float64 array, shape (n_jobs,)
        What a trial of each takes, all threads at work.
    is_sampled : bool array, shape (n_jobs,)
        Whether trials are random; fewer leave arrangements as they are.
    n_threads : int
        That share the work.
    """

    total: int
    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    seconds_each: NDArray[np.float64]
    is_sampled: NDArray[np.bool_]
    n_threads: int

    @staticmethod
    def of(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> Ahead:
        """Look at jobs, and what a trial of each costs."""
        first = np.array([job.first for job in jobs], np.int64)
        n = np.array([job.n_trials for job in jobs], np.int64)
        is_sampled = np.array([not job.panel.enumerated for job in jobs], np.bool_)
        return Ahead(int(n.sum()), first, first + n, np.array(costs) / n_threads, is_sampled, n_threads)

    @property
    def trials(self) -> int:
        """The most random trials of a comparison; 0 where all arrangements are counted."""
        return int(self.stop[self.is_sampled].max(initial=0))

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return self.with_trials(self.trials)

    def with_trials(self, trials: int) -> float:
        """Return how long it takes with at most so many random trials a comparison."""
        stop = np.where(self.is_sampled, np.minimum(self.stop, trials), self.stop)
        return float(np.maximum(stop - self.first, 0) @ self.seconds_each)

    @property
    def is_long(self) -> bool:
        """Whether it is announced."""
        return self.seconds > LONG

    @property
    def fewer(self) -> int | None:
        """The largest power of ten of trials that does not take long, or the fewest; None where none take less."""
        fewer = FEWEST
        if fewer >= self.trials:
            return None
        while 10 * fewer < self.trials and self.with_trials(10 * fewer) <= LONG:
            fewer *= 10
        return fewer


def tell(progress: Any, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> None:
    """Tell whoever is told of progress what is ahead, where it can be told; what seems long is timed again."""
    expecting = getattr(progress, "expecting", None)
    if expecting is None:
        return
    ahead = Ahead.of(jobs, costs, n_threads)
    expecting(Ahead.of(jobs, timed_longer(jobs, costs), n_threads) if ahead.is_long else ahead)
