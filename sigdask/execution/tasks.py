"""Splitting of jobs into tasks: ranges of trials that take about a second each, by measured speed."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sigdask.randomization.blocks import compute_max_trials, is_large, measure_seconds_by_blocks
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.stream.swaps import BLOCK

TASK_SECONDS = 1.0

TASKS_PER_SECOND = 100
"""What a dask scheduler is asked to bear for hours, so that workers hardly wait for it."""

SUSTAINED = 300
"""Tasks a second at which a dask scheduler saturates (docs/clusters.md)."""

SHORTEST_SECONDS = 0.02

ENUMERATION_SECONDS = 2e-8
"""What an arrangement of a single pair takes, about, and of so many pairs that are counted together."""

PAIRS_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class TrialRange:
    """A range of trials of one job."""

    job: int
    run: int
    first: int
    n_trials: int


Task = tuple[TrialRange, ...]


def compute_task_seconds(work: float, n_threads: int) -> float:
    """Return how many seconds a task should take, so that the scheduler keeps up and all threads have work.

    Work that is soon done waits at its end for about a task, and for the scheduler to pass on all of them: the sum of
    both, s + work / (s SUSTAINED), is least at the root.

    Examples
    --------
    >>> compute_task_seconds(3600, 2), compute_task_seconds(1e7, 1000), compute_task_seconds(1.6, 2)
    (1.0, 10.0, 0.1)
    >>> compute_task_seconds(48, 1000)
    0.4
    """
    longest = max(TASK_SECONDS, n_threads / TASKS_PER_SECOND)
    return min(longest, max(work / (8 * n_threads), math.sqrt(work / SUSTAINED), SHORTEST_SECONDS))


def split_jobs(
    jobs: Sequence[Job], costs: Sequence[float], seconds: float, blocks_per_task: int | None = None
) -> list[Task]:
    """Return tasks of about `seconds`, made of ranges of the jobs' trials; small jobs share a task.

    Parameters
    ----------
    jobs : sequence of Job
        What to count.
    costs : sequence of float
        Seconds a trial, of each job.
    seconds : float
        How long a task should last.
    blocks_per_task : int, optional
        Instead of `seconds`.
    """
    tasks: list[Task] = []
    open_task: list[TrialRange] = []
    seconds_left = seconds
    for k, (job, cost) in enumerate(zip(jobs, costs, strict=True)):
        grain = job.panel.manner.grain
        size = blocks_per_task * BLOCK if blocks_per_task else max(int(seconds / cost) // grain * grain, grain)
        size = min(size, compute_max_trials(job.panel) or size)
        end = job.first + job.n_trials
        for first in range(job.first, end, size):
            n_trials = min(size, end - first)
            if open_task and (blocks_per_task or n_trials * cost > seconds_left):
                tasks.append(tuple(open_task))
                open_task, seconds_left = [], seconds
            open_task.append(TrialRange(k, job.run, first, n_trials))
            seconds_left -= n_trials * cost
    if open_task:
        tasks.append(tuple(open_task))
    return tasks


def measure_trial_seconds(panel: AnyPanel) -> float:
    """Return how many seconds a trial of a panel takes, by timing a few; some kinds of panels state it."""
    if isinstance(panel, ExactPanel):
        return panel.seconds_per_trial
    if panel.enumerated and panel.manner.vectorised and not panel.is_whole:
        return ENUMERATION_SECONDS * max(panel.shape[0] / PAIRS_AT_ONCE, 1)
    if is_large(panel):
        return measure_seconds_by_blocks(panel)
    n_timed = panel.manner.timed
    timed = partial(panel.tally, run=0, first=0)
    timed(n_trials=1)  # compiles and arranges
    return max(_time_call(panel, partial(timed, n_trials=n_timed)) / n_timed, 1e-10)


WAITING_SHARE = 0.05
"""Share of the time on a core below which a call waits for something else."""

N_RETIMED = 8
RETIMING_SECONDS = 0.1
RETIMING_SHARE = 0.01
"""One block is too short where other programs run, and mostly the start of a call where trials are cheap: the costliest
panels are timed again for this share of the whole, at most these seconds, and the fastest time is taken."""


def retime_trials(jobs: Sequence[Job], costs: Sequence[float]) -> list[float]:
    """Return the seconds per trial of each job, after the panels with most work are timed again.

    Parameters
    ----------
    jobs : sequence of Job
        What is to be counted.
    costs : sequence of float
        Seconds a trial, of each job, as `measure_trial_seconds` has them.
    """
    panels = {id(job.panel): job.panel for job in jobs}
    rates = dict(zip((id(job.panel) for job in jobs), costs, strict=True))
    trials = Counter[int]()
    for job in jobs:
        trials[id(job.panel)] += job.n_trials
    duration = min(RETIMING_SECONDS, RETIMING_SHARE * sum(rates[key] * trials[key] for key in panels))
    for key in sorted(panels, key=lambda key: -rates[key] * trials[key])[:N_RETIMED]:
        panel, n_trials = panels[key], int(duration / rates[key])
        if panel.manner.timed < n_trials < trials[key] and not is_large(panel):
            rates[key] = min(rates[key], *(_time_trials(panel, n_trials) for _ in range(2)))
    return [rates[id(job.panel)] for job in jobs]


def _time_trials(panel: AnyPanel, n_trials: int) -> float:
    return _time_call(panel, partial(panel.tally, run=0, first=0, n_trials=n_trials)) / n_trials


def _time_call(panel: AnyPanel, call: Callable[[], object]) -> float:
    """Return how many seconds a call takes: of CPU time for kernels, as other programs hardly affect it.

    What waits for something else than a core (a user's function that reads files or starts processes) is timed by the
    clock.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return cpu if panel.manner.vectorised and cpu > WAITING_SHARE * wall else wall
