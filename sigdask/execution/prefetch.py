"""Estimates of how long counting takes: the one that `check`, `run`, `status` and `compare` all state."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.execution.tasks import timed_longer
from sigdask.randomization.jobs import Job, total_trials
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.resampling.bootstrap import Bootstrap
from sigdask.randomization.resampling.shifts import ShiftPanel
from sigdask.randomization.resampling.whole_outputs import BootstrapOutputs

LONG = 60.0
"""Seconds from which work is long."""

ROUGH = 1.0
"""Seconds up to which the time of one block is estimate enough."""

FEWEST = 1000
"""Trials of a comparison below which none are recommended."""

RESAMPLING = (Bootstrap, BootstrapOutputs, ShiftPanel)
"""Panels of intervals: not `trials` but `resamples` says how many of theirs there are."""

WARM_UP = 0.05, 2.0
"""Share of the predicted work, and seconds, before the measured pace weighs as much as the predicted one."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkEstimate:
    """What counting is expected to take.

    Attributes
    ----------
    total : int
        Trials of all jobs, summed over comparisons; parts of exact p-values are among them.
    n_exact : int
        Parts of exact p-values.
    first, stop : int64 array, shape (n_jobs,)
        Where each job's trials of its comparisons lie.
    seconds_each : float64 array, shape (n_jobs,)
        What a trial of each takes, all threads at work.
    is_sampled : bool array, shape (n_jobs,)
        Whether `trials` sets their number: not of arrangements, exact p-values and resamples.
    n_threads : int
        That share the work.
    """

    total: int
    n_exact: int
    first: NDArray[np.int64]
    stop: NDArray[np.int64]
    seconds_each: NDArray[np.float64]
    is_sampled: NDArray[np.bool_]
    n_threads: int

    @staticmethod
    def of(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> WorkEstimate:
        """Look at jobs, and what a trial of each costs."""
        first = np.array([job.first for job in jobs], np.int64)
        n = np.array([job.n_trials for job in jobs], np.int64)
        panels = [job.panel for job in jobs]
        is_sampled = np.array([not (one.enumerated or isinstance(one, RESAMPLING)) for one in panels], np.bool_)
        n_exact = sum(job.n_trials for job in jobs if isinstance(job.panel, ExactPanel))
        each = np.array(costs, np.float64) / n_threads
        return WorkEstimate(total_trials(jobs), n_exact, first, first + n, each, is_sampled, n_threads)

    @property
    def unit(self) -> str:
        """What is counted, in words: trials wherever there are any, else what there is instead of them."""
        if self.trials:
            return "trials"
        if self.n_exact == self.total:
            return "parts of exact p-values"
        return f"{'parts of exact p-values, ' if self.n_exact else ''}arrangements and resamples"

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
        """The largest power of ten of trials that does not take long, or the fewest; None where none save half."""
        fewer = FEWEST
        if fewer >= self.trials:
            return None
        while 10 * fewer < self.trials and self.with_trials(10 * fewer) <= LONG:
            fewer *= 10
        return fewer if self.with_trials(fewer) <= self.seconds / 2 else None


class CountingPace:
    """How far counting is in predicted work, and when it ends.

    Trials differ in cost by orders of magnitude (a part of an exact p takes a second, a trial of a pair a
    nanosecond), so neither shares nor times are told by numbers of trials. The measured pace corrects the prediction.

    Parameters
    ----------
    ahead : WorkEstimate
        The prediction.
    """

    def __init__(self, ahead: WorkEstimate) -> None:
        self._each, self._total, self._done = ahead.seconds_each, ahead.seconds, 0.0
        self._start = time.monotonic()

    def count(self, job: int, n_trials: int) -> None:
        """Take trials of a job as done."""
        self._done += n_trials * float(self._each[job])

    @property
    def share(self) -> float:
        """Share of the predicted work that is done."""
        return min(self._done / self._total, 1.0) if self._total else 1.0

    @property
    def seconds_left(self) -> float:
        """Seconds until all is counted."""
        share, least = WARM_UP
        prior = max(share * self._total, least)
        slowdown = (time.monotonic() - self._start + prior) / (self._done + prior)
        return max(self._total - self._done, 0.0) * slowdown


def predict(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> WorkEstimate:
    """Return what jobs are expected to take; where that is not little, their panels are timed for longer."""
    ahead = WorkEstimate.of(jobs, costs, n_threads)
    return ahead if ahead.seconds < ROUGH else WorkEstimate.of(jobs, timed_longer(jobs, costs), n_threads)


def tell(progress: Any, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> CountingPace:
    """Predict what is ahead, tell whoever is told of progress, where it can be told, and return the pace."""
    ahead = predict(jobs, costs, n_threads)
    expecting = getattr(progress, "expecting", None)
    if expecting is not None:
        expecting(ahead)
    return CountingPace(ahead)


def report(progress: Any, done: int, total: int, pace: CountingPace | None) -> None:
    """Tell how many trials are done, and where it can be told the share of the work and the time left."""
    counting = getattr(progress, "counting", None)
    if counting is not None and pace is not None:
        counting(done, total, pace.share, pace.seconds_left)
    elif progress is not None:
        progress(done, total)
