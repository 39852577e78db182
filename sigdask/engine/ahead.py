"""What counting is expected to take, told before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sigdask.randomization.jobs import Job


@dataclass(frozen=True, slots=True)
class Ahead:
    """What counting is expected to take.

    Attributes
    ----------
    total : int
        Trials of all jobs.
    trials : int
        Random trials of a comparison, of the job that has most; 0 where all arrangements are counted.
    sampled, enumerated : float
        Seconds for random trials, and for arrangements, which fewer trials leave as they are.
    n_threads : int
        That share it.
    """

    total: int
    trials: int
    sampled: float
    enumerated: float
    n_threads: int

    @staticmethod
    def of(jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> Ahead:
        """Add up jobs by what a trial of each costs."""
        seconds = {True: 0.0, False: 0.0}
        for job, cost in zip(jobs, costs, strict=True):
            seconds[job.panel.enumerated] += cost * job.n_trials / n_threads
        trials = max((job.n_trials for job in jobs if not job.panel.enumerated), default=0)
        return Ahead(sum(job.n_trials for job in jobs), trials, seconds[False], seconds[True], n_threads)

    @property
    def seconds(self) -> float:
        """How long all of it takes."""
        return self.sampled + self.enumerated

    def with_trials(self, trials: int) -> float:
        """Return how long it takes with other trials."""
        return self.sampled * trials / max(self.trials, 1) + self.enumerated


def tell(progress: Any, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> None:
    """Tell whoever is told of progress what is ahead, where it can be told."""
    if (expecting := getattr(progress, "expecting", None)) is not None:
        expecting(Ahead.of(jobs, costs, n_threads))
