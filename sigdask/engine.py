"""Panels to tallies: trials partitioned into tasks, run in this process or on dask, counts summed.

A task is a list of ranges of trials, sized by measured speed to last about a second. Tasks are
seeded by the counters they own, so which tasks there are, where and how often they run cannot
change a count. Only this room and `clusters` import dask.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sigdask import clusters
from sigdask.clusters import Cluster, sight, versions
from sigdask.errors import InputError, SigdaskError, TaskError, UnfinishedError
from sigdask.flight import Flight
from sigdask.metrics.travel import functions_of, is_named
from sigdask.randomization.count import AnyPanel, count
from sigdask.randomization.jobs import Job
from sigdask.randomization.shuffles import BLOCK
from sigdask.randomization.tallies import Tally

Progress = Callable[[int, int], None]
"""Called with (trials done, trials in all)."""

TASK_SECONDS = 1.0
TASKS_A_SECOND = 100
"""What a dask scheduler is asked to bear; it sustains 300 to 400 (docs/clusters.md)."""

ENUMERATION_SECONDS = 2e-8
"""What an arrangement of a single pair takes, about."""

SHIPPED_WITH_TASK = 16 * 1024
"""Bytes up to which a packed panel travels inside its tasks; larger ones are sent to workers once."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of trials of one job."""

    job: int
    run: int
    first: int
    n_trials: int


Task = tuple[Piece, ...]
Counted = list[tuple[Piece, "Tally | SigdaskError"]]


def count_jobs(
    jobs: Sequence[Job],
    *,
    cluster: str | Cluster = "auto",
    workers: int | None = None,
    progress: Progress | None = None,
    blocks_per_task: int | None = None,
) -> list[Tally]:
    """Count all jobs.

    The same tallies on any cluster, in any partition, after any loss of workers.

    Parameters
    ----------
    jobs : sequence of Job
        What to count.
    cluster : str or Cluster
        "auto", "none", "threads", "local", an address or a scheduler file; or one connected.
    workers : int, optional
        Worker threads or processes to start; by default one a core.
    progress : callable, optional
        Called with trials done and trials in all.
    blocks_per_task : int, optional
        Size of tasks in blocks of 4,096 trials, instead of by measured speed.

    Raises
    ------
    UnfinishedError
        The cluster was lost, or a task failed wherever it was tried.
    """
    measured = {id(panel): seconds_per_trial(panel) for panel in {id(job.panel): job.panel for job in jobs}.values()}
    costs = [measured[id(job.panel)] for job in jobs]
    work = sum(cost * job.n_trials for cost, job in zip(costs, jobs, strict=True))
    if isinstance(cluster, Cluster):
        return _count_on(cluster, jobs, costs, work, progress, blocks_per_task)
    with clusters.connect(chosen(cluster, jobs, work), workers=workers) as connected:
        return _count_on(connected, jobs, costs, work, progress, blocks_per_task)


def chosen(cluster: clusters.Named, jobs: Sequence[Job], work: float) -> clusters.Named:
    """Resolve "auto" by the work ahead, in seconds, and by whether its kernels let other threads run."""
    if cluster != "auto":
        return cluster
    return clusters.choose("auto", work, vectorised=all(job.panel.manner.vectorised for job in jobs))


def _count_on(
    cluster: Cluster,
    jobs: Sequence[Job],
    costs: Sequence[float],
    work: float,
    progress: Progress | None,
    blocks_per_task: int | None,
) -> list[Tally]:
    tasks = partition(jobs, costs, task_seconds(work, cluster.n_threads), blocks_per_task)
    totals = [Tally.zero(job.panel.shape, job.panel.manner.n_tails) for job in jobs]
    n_trials, done = sum(job.n_trials for job in jobs), 0
    for counted in run_tasks(cluster, jobs, tasks):
        for piece, tally in counted:
            if isinstance(tally, SigdaskError):
                raise tally
            totals[piece.job] += tally
            done += piece.n_trials
        if progress is not None:
            progress(done, n_trials)
    for job, total in zip(jobs, totals, strict=True):
        if total.n_trials != job.n_trials:
            raise UnfinishedError(f"{total.n_trials:,} of {job.n_trials:,} trials of {job.label} were counted")
    return totals


def task_seconds(work: float, n_threads: int) -> float:
    """Return how long a task should last: long enough for the scheduler, short enough to share out.

    Examples
    --------
    >>> task_seconds(3600, 2), task_seconds(1e7, 1000), task_seconds(1.6, 2)
    (1.0, 10.0, 0.1)
    """
    longest = max(TASK_SECONDS, n_threads / TASKS_A_SECOND)
    return min(longest, max(work / (8 * n_threads), 0.02))


def partition(
    jobs: Sequence[Job], costs: Sequence[float], seconds: float, blocks_per_task: int | None = None
) -> list[Task]:
    """Split jobs into tasks of about `seconds`, small jobs together, at borders of blocks.

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
    open_task: list[Piece] = []
    left = seconds
    for k, (job, cost) in enumerate(zip(jobs, costs, strict=True)):
        grain = job.panel.manner.grain
        size = blocks_per_task * BLOCK if blocks_per_task else max(int(seconds / cost) // grain * grain, grain)
        end = job.first + job.n_trials
        for first in range(job.first, end, size):
            here = min(size, end - first)
            if open_task and (blocks_per_task or here * cost > left):
                tasks.append(tuple(open_task))
                open_task, left = [], seconds
            open_task.append(Piece(k, job.run, first, here))
            left -= here * cost
    if open_task:
        tasks.append(tuple(open_task))
    return tasks


def seconds_per_trial(panel: AnyPanel) -> float:
    """Measure what a trial costs here; for enumerations of single pairs, which are many and short, state it."""
    if panel.enumerated and panel.manner.vectorised and panel.shape == (1, 1):
        return ENUMERATION_SECONDS
    few = panel.manner.timed
    timed = partial(count, panel, run=0, first=0)
    timed(n_trials=1)  # compiles and arranges
    start = time.perf_counter()
    timed(n_trials=few)
    return max((time.perf_counter() - start) / few, 1e-10)


def count_task(task: Task, *panels: AnyPanel | bytes) -> Counted:
    """Count the pieces of a task; `panels` stand beside its pieces. What a metric refuses is told of its piece."""
    return [(piece, _count_piece(piece, panel)) for piece, panel in zip(task, panels, strict=True)]


def _count_piece(piece: Piece, panel: AnyPanel | bytes) -> Tally | SigdaskError:
    try:
        return count(unpacked(panel), run=piece.run, first=piece.first, n_trials=piece.n_trials)
    except SigdaskError as error:
        return error


def run_tasks(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[Counted]:
    """Count tasks and yield what each found, in the order in which they finish.

    Raises
    ------
    ClusterLostError
        The scheduler went away.
    TaskError
        A task failed wherever it was tried; it names the jobs.
    """
    if cluster.client is not None:
        return _on_client(cluster, jobs, tasks)
    calls = [partial(count_task, task, *(jobs[piece.job].panel for piece in task)) for task in tasks]
    if cluster.kind == "threads" and len(tasks) > 1:
        return _on_threads(calls, cluster.n_threads)
    return (call() for call in calls)


def _on_threads(calls: Sequence[Callable[[], Counted]], n_threads: int) -> Iterator[Counted]:
    """Run on dask's threaded scheduler, a few rounds so that progress shows."""
    import dask

    step = 2 * n_threads
    for start in range(0, len(calls), step):
        lazy = [dask.delayed(call, pure=False)() for call in calls[start : start + step]]
        yield from dask.compute(*lazy, scheduler="threads", num_workers=n_threads)


def _on_client(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[Counted]:
    """Run on a distributed cluster; panels are tasks themselves, so the scheduler makes a lost one again."""
    sent = _sent_once(cluster, jobs)

    def submit(task: Task) -> Any:
        return cluster.client.submit(count_task, task, *(sent[id(jobs[piece.job].panel)] for piece in task), pure=False)

    flight = Flight(cluster, tasks, submit)
    for counted in flight:
        sight.count("sigdask_trials", sum(piece.n_trials for piece, _ in counted))
        yield counted
    if flight.given_up:
        labels = ", ".join(dict.fromkeys(jobs[job].label for job in flight.given_up))
        error = next(iter(flight.given_up.values()))
        raise TaskError(
            f"counting {labels} failed on every worker it was tried on ({error}); "
            "all else was counted, which `sigdask run` keeps",
            tuple(flight.given_up),
        )


def _sent_once(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, Any]:
    """Return each panel as tasks take it: packed where it is small, else a future of one that workers share."""
    sent: dict[int, Any] = {}
    for job in jobs:
        if id(job.panel) not in sent:
            packed = _packed(job.panel, code=not cluster.remote)
            large = len(packed) > SHIPPED_WITH_TASK
            sent[id(job.panel)] = cluster.client.submit(unpacked, packed, pure=False) if large else packed
    return sent


def _packed(panel: AnyPanel, *, code: bool) -> bytes:
    """Pickle a panel, opaque to the scheduler; without `code`, as arrays and names only."""
    if code:
        import cloudpickle

        return bytes(cloudpickle.dumps((versions.here(), cloudpickle.dumps(panel))))
    for name, function in functions_of(panel):
        if not is_named(function):
            raise InputError(
                f"metric {name!r}: workers on other machines are sent the names of metrics, not code: define the "
                "function at the top of a module that can be imported there, and ask for it as MODULE:FUNCTION"
            )
    return pickle.dumps((versions.here(), pickle.dumps(panel)))


def unpacked(panel: AnyPanel | bytes) -> AnyPanel:
    """Return a panel that was packed by this program's own driver."""
    if not isinstance(panel, bytes):
        return panel
    theirs, packed = pickle.loads(panel)  # noqa: S301  # over the cluster's own, authenticated, connections
    versions.hold(theirs)
    found: AnyPanel = pickle.loads(packed)  # noqa: S301
    return found
