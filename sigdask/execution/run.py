"""Counting of jobs: their trials are split into tasks, run in this process or on dask, and summed to tallies.

A task is a list of ranges of trials, sized by measured speed to last about a second. Tasks are
seeded by the counters they own, so which tasks there are, where and how often they run cannot
change a count. Only `sigdask.execution` imports dask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sigdask.errors import SigdaskError, TaskError, UnfinishedError
from sigdask.execution import clusters, expected_time
from sigdask.execution.clusters import Cluster, ClusterLike, monitoring
from sigdask.execution.packing import send_panels, unpack_panel
from sigdask.execution.task_window import TaskWindow
from sigdask.execution.tasks import Task, TrialRange, compute_task_seconds, measure_trial_seconds, split_jobs
from sigdask.randomization.jobs import Job, sum_trials
from sigdask.randomization.tallies import Tally
from sigdask.text import format_count

Progress = Callable[[int, int], None]
"""Called with (trials done, trials in all)."""


CountedRanges = list[tuple[TrialRange, "Tally | SigdaskError"]]


def count_jobs(
    jobs: Sequence[Job],
    *,
    cluster: ClusterLike = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    blocks_per_task: int | None = None,
) -> list[Tally]:
    """Count the trials of all jobs, and return the tally of each job.

    The same tallies on any cluster, in any partition, after any loss of workers.

    Parameters
    ----------
    jobs : sequence of Job
        What to count.
    cluster : str, distributed.Client, cluster object or Cluster
        "auto" (dask's active client where there is one), "none", "threads", "local", "current" (the active client
        or the scheduler of dask's settings), an address, a scheduler file or a cluster file; a client or a cluster
        of dask's that runs and is left running; or one connected.
    workers : int, optional
        Worker threads or processes to start; by default one a core.
    progress : callable, optional
        Called with trials done and trials in all, summed over comparisons. Where it has them, its `expecting` is told
        what is ahead, and its `counting` beside both numbers the share of the work that is done and the seconds left.
    blocks_per_task : int, optional
        Size of tasks in blocks of 4,096 trials, instead of by measured speed.

    Raises
    ------
    UnfinishedError
        The cluster was lost, or a task failed wherever it was tried.
    """
    measured = {
        id(panel): measure_trial_seconds(panel) for panel in {id(job.panel): job.panel for job in jobs}.values()
    }
    costs = [measured[id(job.panel)] for job in jobs]
    work = sum(cost * job.n_trials for cost, job in zip(costs, jobs, strict=True))
    if isinstance(cluster, Cluster):
        return _count_on_cluster(cluster, jobs, costs, work, progress, blocks_per_task)
    with clusters.connect(resolve_cluster(cluster, jobs, work), workers=workers) as connected:
        return _count_on_cluster(connected, jobs, costs, work, progress, blocks_per_task)


@contextmanager
def connect_once(cluster: ClusterLike, workers: int | None) -> Iterator[ClusterLike]:
    """Yield a cluster that several counts can use: connected once, unless it needs no connection or is still "auto"."""
    cluster = clusters.resolve_active(cluster)
    if isinstance(cluster, Cluster) or (isinstance(cluster, str) and cluster in {"auto", "none", "threads"}):
        yield cluster
        return
    with clusters.connect(cluster, workers=workers) as connected:
        yield connected


def resolve_cluster(cluster: ClusterLike, jobs: Sequence[Job], work: float) -> ClusterLike:
    """Return the cluster to use for jobs: for "auto" an active client, or else a choice by the expected work."""
    cluster = clusters.resolve_active(cluster)
    if not isinstance(cluster, str) or cluster != "auto":
        return cluster
    return clusters.choose_cluster("auto", work, vectorised=all(job.panel.manner.vectorised for job in jobs))


def _count_on_cluster(
    cluster: Cluster,
    jobs: Sequence[Job],
    costs: Sequence[float],
    work: float,
    progress: Progress | None,
    blocks_per_task: int | None,
) -> list[Tally]:
    pace = expected_time.start_pace(progress, jobs, costs, cluster.n_threads)
    tasks = split_jobs(jobs, costs, compute_task_seconds(work, cluster.n_threads), blocks_per_task)
    totals = [Tally.zero(job.panel.shape, job.panel.manner.n_tails) for job in jobs]
    n_trials, n_done = sum_trials(jobs), 0
    for results in run_tasks(cluster, jobs, tasks):
        for trials, tally in results:
            if isinstance(tally, SigdaskError):
                raise tally
            totals[trials.job] += tally
            n_done += trials.n_trials * jobs[trials.job].n_comparisons
            pace.add_trials(trials.job, trials.n_trials)
        expected_time.report_progress(progress, n_done, n_trials, pace)
    for job, total in zip(jobs, totals, strict=True):
        if total.n_trials != job.n_trials:
            raise UnfinishedError(
                f"{total.n_trials:,} of {format_count(job.n_trials, 'trial')} of {job.label} were counted"
            )
    return totals


def count_on_worker(task: Task, *panels: Any) -> CountedRanges:
    """Count a task on a worker, and return its tallies in the smallest type that holds them."""
    results = count_task(task, *panels)
    return [(trials, tally.narrow() if isinstance(tally, Tally) else tally) for trials, tally in results]


def count_task(task: Task, *panels: Any) -> CountedRanges:
    """Return the tally of each range of a task's trials, or the error that a metric raised on that range."""
    return [(trials, _count_range(trials, panel)) for trials, panel in zip(task, panels, strict=True)]


def _count_range(trials: TrialRange, panel: Any) -> Tally | SigdaskError:
    try:
        return unpack_panel(panel).tally(run=trials.run, first=trials.first, n_trials=trials.n_trials)
    except SigdaskError as error:
        return error


def run_tasks(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[CountedRanges]:
    """Count tasks, and yield the tallies of each task in the order in which tasks finish.

    Raises
    ------
    ClusterLostError
        The scheduler went away.
    TaskError
        A task failed wherever it was tried; it names the jobs.
    """
    if cluster.client is not None:
        return _run_on_client(cluster, jobs, tasks)
    calls = [partial(count_task, task, *(jobs[trials.job].panel for trials in task)) for task in tasks]
    if cluster.kind == "threads" and len(tasks) > 1:
        return _run_on_threads(calls, cluster.n_threads)
    return (call() for call in calls)


def _run_on_threads(calls: Sequence[Callable[[], CountedRanges]], n_threads: int) -> Iterator[CountedRanges]:
    """Yield the results of calls on dask's threaded scheduler, a few at a time so that progress shows."""
    import dask

    step = 2 * n_threads
    for start in range(0, len(calls), step):
        lazy = [dask.delayed(call, pure=False)() for call in calls[start : start + step]]
        yield from dask.compute(*lazy, scheduler="threads", num_workers=n_threads)


def _run_on_client(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[CountedRanges]:
    """Yield the tallies of tasks on a distributed cluster; lost panels are computed again, as they are tasks too."""
    sent_panels = send_panels(cluster, jobs)

    def submit(task: Task) -> Any:
        panels = [sent_panels[id(jobs[trials.job].panel)].get_argument(cluster.client, trials) for trials in task]
        return cluster.client.submit(count_on_worker, task, *panels, pure=False)

    flight = TaskWindow(cluster, tasks, submit)
    for results in flight:
        monitoring.increment_counter("sigdask_trials", sum(t.n_trials * jobs[t.job].n_comparisons for t, _ in results))
        yield [(trials, tally.widen() if isinstance(tally, Tally) else tally) for trials, tally in results]
    if flight.given_up:
        labels = ", ".join(dict.fromkeys(jobs[job].label for job in flight.given_up))
        error = next(iter(flight.given_up.values()))
        raise TaskError(
            f"counting {labels} failed on every worker it was tried on ({error}); "
            "all else was counted, which `sigdask run` keeps",
            tuple(flight.given_up),
        )
