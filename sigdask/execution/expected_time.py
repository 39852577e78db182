"""Estimates of how long counting takes, which `check`, `run`, `status` and `compare` all print."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.execution.tasks import retime_trials
from sigdask.randomization.jobs import Job, sum_trials
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.resampling.bootstrap import Bootstrap
from sigdask.randomization.resampling.shifts import ShiftPanel
from sigdask.randomization.resampling.whole_outputs import BootstrapOutputs

LONG_SECONDS = 60.0
"""Seconds from which work is long."""

ROUGH_SECONDS = 1.0
"""Seconds up to which the time of one block is estimate enough."""

FEWEST_TRIALS = 1000
"""Trials of a comparison below which none are recommended."""

RESAMPLING = (Bootstrap, BootstrapOutputs, ShiftPanel)
"""Panels of intervals: not `trials` but `resamples` says how many of theirs there are."""

WARM_UP = 0.05, 2.0
"""Share of the predicted work, and seconds, before the measured pace weighs as much as the predicted one."""


@dataclass(frozen=True, slots=True, eq=False)
class WorkEstimate:
    """The trials that jobs have to count, and how many seconds they are expected to take.

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
        Whether `max_trials` sets their number: not of arrangements, exact p-values and resamples.
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
    def from_jobs(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> WorkEstimate:
        """Return the estimate for jobs, from the seconds that a trial of each job takes."""
        first = np.array([job.first for job in jobs], np.int64)
        n = np.array([job.n_trials for job in jobs], np.int64)
        panels = [job.panel for job in jobs]
        is_sampled = np.array([not (panel.enumerated or isinstance(panel, RESAMPLING)) for panel in panels], np.bool_)
        n_exact = sum(job.n_trials for job in jobs if isinstance(job.panel, ExactPanel))
        seconds = np.array(costs, np.float64) / n_threads
        return WorkEstimate(sum_trials(jobs), n_exact, first, first + n, seconds, is_sampled, n_threads)

    @property
    def unit(self) -> str:
        """The word for what is counted: trials if there are any, else what replaces them (such as arrangements)."""
        if self.max_trials:
            return "trials"
        if self.n_exact == self.total:
            return "parts of exact p-values"
        return f"{'parts of exact p-values, ' if self.n_exact else ''}arrangements and resamples"

    @property
    def max_trials(self) -> int:
        """Largest number of random trials of any comparison; 0 if none has random trials."""
        return int(self.stop[self.is_sampled].max(initial=0))

    @property
    def seconds(self) -> float:
        """Expected seconds of all the work."""
        return self.compute_seconds(self.max_trials)

    def compute_seconds(self, trials: int) -> float:
        """Return the expected seconds if no comparison has more than this many random trials."""
        stop = np.where(self.is_sampled, np.minimum(self.stop, trials), self.stop)
        return float(np.maximum(stop - self.first, 0) @ self.seconds_each)

    @property
    def is_long(self) -> bool:
        """Whether the work takes long enough to be announced."""
        return self.seconds > LONG_SECONDS

    @property
    def fewer_trials(self) -> int | None:
        """Largest power of ten of trials that is quickly counted, or else the fewest; None if it saves too little."""
        trials = FEWEST_TRIALS
        if trials >= self.max_trials:
            return None
        while 10 * trials < self.max_trials and self.compute_seconds(10 * trials) <= LONG_SECONDS:
            trials *= 10
        return trials if self.compute_seconds(trials) <= self.seconds / 2 else None


class CountingPace:
    """Progress of counting, measured in predicted seconds of work, and the expected time left.

    Trials differ in cost by orders of magnitude (a part of an exact p takes a second, a trial of a pair a
    nanosecond), so neither shares nor times are told by numbers of trials. The measured pace corrects the prediction.

    Parameters
    ----------
    ahead : WorkEstimate
        The prediction.
    """

    def __init__(self, ahead: WorkEstimate) -> None:
        self._seconds_each, self._total, self._done = ahead.seconds_each, ahead.seconds, 0.0
        self._start = time.monotonic()

    def add_trials(self, job: int, n_trials: int) -> None:
        """Record that trials of a job were counted."""
        self._done += n_trials * float(self._seconds_each[job])

    @property
    def share(self) -> float:
        """Share of the predicted work that is done, from 0 to 1."""
        return min(self._done / self._total, 1.0) if self._total else 1.0

    @property
    def seconds_left(self) -> float:
        """Expected seconds until everything is counted."""
        share, min_seconds = WARM_UP
        prior = max(share * self._total, min_seconds)
        slowdown = (time.monotonic() - self._start + prior) / (self._done + prior)
        return max(self._total - self._done, 0.0) * slowdown


def estimate_work(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> WorkEstimate:
    """Return the estimate for jobs; if it is not short, the costliest panels are timed again first."""
    estimate = WorkEstimate.from_jobs(jobs, costs, n_threads)
    return (
        estimate
        if estimate.seconds < ROUGH_SECONDS
        else WorkEstimate.from_jobs(jobs, retime_trials(jobs, costs), n_threads)
    )


def start_pace(progress: Any, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> CountingPace:
    """Estimate the work, tell the estimate to `progress` if it accepts one, and return the pace at the start."""
    estimate = estimate_work(jobs, costs, n_threads)
    expecting = getattr(progress, "expecting", None)
    if expecting is not None:
        expecting(estimate)
    return CountingPace(estimate)


def report_progress(progress: Any, n_done: int, total: int, pace: CountingPace | None) -> None:
    """Tell `progress` how many trials are done and, if it accepts them, the share of work and the time left."""
    counting = getattr(progress, "counting", None)
    if counting is not None and pace is not None:
        counting(n_done, total, pace.share, pace.seconds_left)
    elif progress is not None:
        progress(n_done, total)
