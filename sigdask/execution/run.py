"""Counting of jobs: their trials are divided into tasks, run in this process or on dask, and summed to tallies.

A task is a list of ranges of trials. Its size is chosen from measured speed, so that it takes about a second. Tasks are
seeded by their own counters, so their number and place, and repetitions, cannot change a count. Only
`sigdask.execution` imports dask.

Panels are pickled once for workers and never unpickled by the scheduler. They are sent to other machines without code.

Tasks that run on a cluster: limited in number at a time, retried if lost, and reported if they keep failing.

If a result is lost with its worker before it was fetched, it is counted again with the same counts. A task that fails
is tried again. If it has several jobs, these are tried separately, so that the failing one can be named. Tasks of
workers that died are suspect, and tried again alone after all others. A task that kills a worker when it runs alone is
poison: its job is given up and named.

Extraction of statistics from outputs for metrics: in this process, in other processes or on a cluster.

Counters in Python hold the interpreter's lock, so processes are used instead of threads. If the workers of a cluster
have another version of a library, or lack it, they are not used. What a cluster does not count is counted on this
machine.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Any

from sigdask.counts import Counts
from sigdask.counts.fields import Array
from sigdask.errors import ClusterLostError, InputError, SigdaskError, TaskError, UnfinishedError
from sigdask.execution import clusters
from sigdask.execution.clusters import Cluster, ClusterLike
from sigdask.execution.clusters.base import check_driver_versions, get_own_versions, log
from sigdask.interface import spell
from sigdask.io import addresses
from sigdask.metrics.extraction import (
    NO_CACHE,
    ExtractionLog,
    ExtractionPart,
    LocalExtraction,
    ProcessExtraction,
    StatisticsSource,
    extract_statistics,
    get_user_cache,
)
from sigdask.metrics.forms import can_send_by_name, iter_functions
from sigdask.options import SelectionOptions
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.exact import ExactPanel
from sigdask.randomization.panels.sums import ENUMERATION_SECONDS, PAIRS_AT_ONCE, EnumeratedPairs
from sigdask.randomization.slabs import Job, sum_trials
from sigdask.randomization.stream import BLOCK, philox
from sigdask.randomization.tallies import Tally
from sigdask.text import format_count

TASKS_PER_THREAD = 4
"""Tasks in flight for each thread of the cluster."""

FETCH_SIZE = 16
"""Maximum number of results fetched in one round trip. One at a time, a driver fetches 150 per second of any size."""

CHECK_SECONDS = 5.0
"""Seconds between checks of the number of threads, because workers join and leave."""

MAX_ATTEMPTS = 4
NO_WORKER_ERRORS = ("NoWorkerError", "NoValidWorkerError")
"""Errors of tasks that had no worker for longer than no-workers-timeout."""


class TaskWindow:
    """Runs tasks on a client, a limited number at a time; each task is a tuple with entries for one or more jobs.

    Parameters
    ----------
    cluster : Cluster
        Connected.
    tasks : sequence of tuple
        Tasks to run.
    submit : callable
        Function from a task to its future.

    Attributes
    ----------
    given_up : dict of int to Exception
        Jobs that failed on every attempt, with the error.
    """

    def __init__(self, cluster: Cluster, tasks: Sequence[tuple[Any, ...]], submit: Callable[[Any], Any]) -> None:
        from distributed import as_completed

        self.cluster = cluster
        self.client = cluster.client
        self.tasks = list(tasks)
        self.given_up: dict[int, Exception] = {}
        self._submit = submit
        self._waiting = iter(range(len(tasks)))
        self._suspects: list[int] = []
        self._solo_task: int | None = None
        self._attempts: dict[int, int] = {}
        self._in_flight: dict[str, tuple[int, Any]] = {}
        self._n_threads, self._last_check = cluster.n_threads, time.monotonic()
        self._completed = as_completed(loop=self.client.loop)

    def __iter__(self) -> Iterator[Any]:
        """Yield the results of tasks as they finish; results that arrive together are fetched together.

        Raises
        ------
        ClusterLostError
            The scheduler or all workers were lost.
        """
        self._fill_window()
        for batch in self._completed.batches():
            for futures in (batch[k : k + FETCH_SIZE] for k in range(0, len(batch), FETCH_SIZE)):
                for future, result in zip(futures, fetch_results(futures, self.client), strict=True):
                    number, _ = self._in_flight.pop(future.key)
                    if not isinstance(result, Exception):
                        future.release()
                        yield result
                    elif not self._is_given_up(number):
                        self._retry(number, result)
                self._fill_window()

    def _fill_window(self) -> None:
        if time.monotonic() - self._last_check > CHECK_SECONDS:
            with suppress(OSError):  # lost: the tasks in flight will report it
                self._n_threads = max(self.cluster.n_threads, sum(self.client.nthreads().values()))
            self._last_check = time.monotonic()
        room = TASKS_PER_THREAD * self._n_threads - len(self._in_flight)
        self._launch(islice((n for n in self._waiting if not self._is_given_up(n)), max(0, room)))
        while self._suspects and not self._in_flight:
            self._solo_task = self._suspects.pop(0)
            self._launch([] if self._is_given_up(self._solo_task) else [self._solo_task])

    def _launch(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            future = self._submit(self.tasks[number])
            self._in_flight[future.key] = number, future
            self._completed.add(future)

    def _is_given_up(self, number: int) -> bool:
        return all(part.job in self.given_up for part in self.tasks[number])

    def _retry(self, number: int, error: Exception) -> None:
        if self.client.status != "running" or type(error).__name__ in NO_WORKER_ERRORS:
            raise self._build_lost_error(error)
        if len(self.tasks[number]) > 1:
            first = len(self.tasks)
            self.tasks += [(part,) for part in self.tasks[number] if part.job not in self.given_up]
            parts = range(first, len(self.tasks))
            if _is_killed(error):
                self._suspects += parts
            else:
                self._launch(parts)
        elif _is_killed(error) and number != self._solo_task:
            self._suspects.append(number)
        else:
            self._attempts[number] = self._attempts.get(number, 0) + 1
            if self._attempts[number] >= MAX_ATTEMPTS or _is_killed(error):
                self._give_up(self.tasks[number][0].job, error)
            else:
                self._launch([number])

    def _give_up(self, job: int, error: Exception) -> None:
        self.given_up[job] = error
        log.warning("job %d of the counting failed on every worker and is given up: %s", job, error)
        self.client.cancel([future for number, future in self._in_flight.values() if self._is_given_up(number)])

    def _build_lost_error(self, error: Exception) -> ClusterLostError:
        if self.client.status != "running":
            return ClusterLostError("the dask scheduler was lost")
        status = self.cluster.get_status()
        detail = f"; the queue says: {status}" if status else ""
        return ClusterLostError(f"the cluster has no workers left ({error}){detail}")


def _is_killed(error: Exception) -> bool:
    """Return whether the error says that several workers died while they ran the task."""
    return type(error).__name__ == "KilledWorker"


def fetch_results(futures: Sequence[Any], client: Any) -> list[Any]:
    """Return for each future its result or its error; raise an error that is a `SigdaskError`."""
    if all(future.status == "finished" for future in futures):
        with suppress(Exception):  # some were lost with their workers in the meantime
            return list(client.gather(futures, errors="raise", direct=False))
    return [_fetch_result(future, client) for future in futures]


def _fetch_result(future: Any, client: Any) -> Any:
    if future.status == "finished":
        try:
            return client.gather([future], errors="raise", direct=False)[0]
        except SigdaskError:
            raise
        except Exception as error:  # noqa: BLE001  # lost with its worker: judged by the caller
            return error
    failure = future.exception(timeout=10) if future.status == "error" else None
    if isinstance(failure, SigdaskError):
        raise failure
    return failure if isinstance(failure, Exception) else UnfinishedError(f"task {future.status}")


TASK_SECONDS = 1.0

TASKS_PER_SECOND = 100
"""Rate of tasks that a dask scheduler can sustain for hours while its workers hardly wait."""

SUSTAINED = 300
"""Rate of tasks at which a dask scheduler saturates (docs/clusters-tested.md)."""

SHORTEST_SECONDS = 0.02


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

    Short work waits for about one task at its end, and for the scheduler to pass on all tasks. The sum of both, s +
    work / (s SUSTAINED), is smallest at the root.

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
        Jobs to count.
    costs : sequence of float
        Seconds per trial of each job.
    seconds : float
        Target duration of a task.
    blocks_per_task : int, optional
        Instead of `seconds`.
    """
    tasks: list[Task] = []
    open_task: list[TrialRange] = []
    seconds_left = seconds
    for k, (job, cost) in enumerate(zip(jobs, costs, strict=True)):
        grain = job.panel.manner.grain
        size = blocks_per_task * BLOCK if blocks_per_task else max(int(seconds / cost) // grain * grain, grain)
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


MAX_TIMED_SHARE = 16
"""At least this many trials are counted for each trial that is timed beforehand."""


def measure_trial_seconds(panel: AnyPanel, n_trials: float = math.inf, share: int = MAX_TIMED_SHARE) -> float:
    """Return how many seconds a trial of a panel takes, by timing a few; some kinds of panels state it.

    Parameters
    ----------
    panel : AnyPanel
        The panel.
    n_trials : float
        Number of trials to count, of which few are timed.
    share : int
        Trials to be counted for each one that is timed.
    """
    if isinstance(panel, ExactPanel | EnumeratedPairs):
        return panel.seconds_per_trial
    if panel.enumerated and panel.manner.vectorised and not panel.is_whole:
        return ENUMERATION_SECONDS * max(panel.shape[0] / PAIRS_AT_ONCE, 1)
    philox.build()  # otherwise it would be loaded while trials are timed
    n_timed = int(min(panel.manner.timed, max(n_trials // share, 1)))
    timed = partial(panel.tally, run=0, first=0)
    with limit_blas_threads():
        timed(n_trials=1)  # compiles and arranges
        n, once = 1, _time_call(panel, partial(timed, n_trials=1))
        seconds = once
        # a panel of thousands of pairs takes milliseconds before its first trial, and microseconds for each
        while n < n_timed and seconds - once < LONG_ENOUGH and once < VERY_LONG:
            n = min(8 * n, n_timed)
            seconds = _time_call(panel, partial(timed, n_trials=n))
    slope = (seconds - once) / (n - 1) if n > 1 else once
    return max(slope, seconds / n / 16, 1e-10)  # not nothing, if a call took as long as a shorter one


LONG_ENOUGH, VERY_LONG = 1e-3, 0.1
"""Seconds beyond the first trial, and of the first one, after which no more trials are timed."""


def _time_call(panel: AnyPanel, call: Callable[[], object]) -> float:
    """Return how many seconds a call takes: CPU time of this thread for kernels, which hardly anything else affects.

    A user's function of outputs, which may wait for files or processes, is timed by the clock.
    """
    clock = time.thread_time if panel.manner.vectorised else time.perf_counter
    start = clock()
    call()
    return clock() - start


MAX_INLINE_BYTES = 16 * 1024
"""Maximum bytes of a packed panel that travels inside its tasks. Larger panels are sent to the workers once."""


QUARTER = 4
"""A panel may take a quarter of a worker's memory: its packed bytes, the panel, its sums and a reserve."""


def send_panels(cluster: Cluster, jobs: Sequence[Job]) -> dict[int, Any]:
    """Send the panels of all jobs to workers, and return, by panel id, what tasks receive in place of the panel.

    Small panels are sent as packed bytes, larger ones as futures that tasks share: dask computes them again if the last
    worker that has one is lost.

    Raises
    ------
    InputError
        A panel takes more than a quarter of a worker's memory.
    """
    from dask.utils import format_bytes

    panels: dict[int, Any] = {}
    workers = cluster.client.scheduler_info(n_workers=-1)["workers"].values()
    memory = min((worker["memory_limit"] for worker in workers if worker["memory_limit"]), default=math.inf)
    for job in {id(job.panel): job for job in jobs}.values():
        packed: Any = _pack_panel(job.panel, code=not cluster.remote)
        if QUARTER * len(packed) > memory:
            raise InputError(
                f"{job.label} needs workers with {format_bytes(QUARTER * len(packed))} of memory; the smallest has "
                f"{format_bytes(memory)}",
                remedy=f"give workers more memory, or count on threads with {spell('cluster', 'threads')}",
            )
        if len(packed) > MAX_INLINE_BYTES:
            packed = cluster.client.submit(unpack_panel, packed, pure=False)
        panels[id(job.panel)] = packed
    return panels


def _pack_panel(panel: AnyPanel, *, code: bool) -> bytes:
    """Return a panel as bytes that the scheduler does not unpickle; without `code`, only arrays and names.

    They are preceded by the driver's versions and, for workers of this machine, the folders in which the driver finds
    modules. These are read first.
    """
    if code:
        import cloudpickle

        return bytes(cloudpickle.dumps((get_own_versions(), (*addresses.FOLDERS,), cloudpickle.dumps(panel))))
    for name, function in iter_functions(panel):
        if not can_send_by_name(function):
            raise InputError(
                f"metric {name!r}: workers on other machines import metrics by name; define the function at "
                "the top level of a module that they can import, and give it as MODULE:FUNCTION"
            )
    return pickle.dumps((get_own_versions(), (), pickle.dumps(panel)))


def unpack_panel(panel: Any) -> AnyPanel:
    """Return the panel that a task receives, unpickled if it is packed."""
    if not isinstance(panel, bytes):
        ready: AnyPanel = panel
        return ready
    theirs, folders, packed = pickle.loads(panel)  # noqa: S301  # over the cluster's own, authenticated, connections
    check_driver_versions(theirs)
    for folder in folders:
        addresses.add_folder(folder)
    result: AnyPanel = pickle.loads(packed)  # noqa: S301
    return result


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

    Tallies are the same on any cluster, in any partition, after any loss of workers.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs to count.
    cluster : str, distributed.Client, cluster object or Cluster
        "auto" (dask's active client if there is one), "none", "threads", "local", "current" (the active client or the
        scheduler in dask's settings), an address, a scheduler file or a cluster file; a running client or cluster of
        dask, which is left running; or a connected `Cluster`.
    workers : int, optional
        Worker threads or processes to start; by default one per core.
    progress : callable, optional
        Called with trials done and trials in all, summed over comparisons. If it has a method `show_start`, this
        receives the number of trials, the expected seconds and the number of threads. If it has `show_trials`, this is
        called instead, with the completed share of the work and the seconds left.
    blocks_per_task : int, optional
        Size of tasks in blocks of 4,096 trials, instead of by measured speed.

    Raises
    ------
    UnfinishedError
        The cluster was lost, or a task failed on every attempt.
    """
    trials = Counter[int]()
    for job in jobs:
        trials[id(job.panel)] += job.n_trials
    panels = {id(job.panel): job.panel for job in jobs}
    measured = {key: measure_trial_seconds(panel, trials[key]) for key, panel in panels.items()}
    costs = [measured[id(job.panel)] for job in jobs]
    work = sum(cost * job.n_trials for cost, job in zip(costs, jobs, strict=True))
    with clusters.connect(resolve_cluster(cluster, jobs, work), workers=workers) as connected:
        return _count_on_cluster(connected, jobs, costs, work, progress, blocks_per_task)


def count_with_options(jobs: Sequence[Job], options: Any) -> list[Tally]:
    """Count jobs as `count_jobs` does, with the options of an analysis."""
    return count_jobs(jobs, **{name: options[name] for name in ("cluster", "workers", "progress")})


@contextmanager
def connect_once(cluster: ClusterLike, workers: int | None) -> Iterator[ClusterLike]:
    """Yield a cluster that several counts can use: connected once, unless it needs no connection or is still "auto"."""
    cluster = clusters.resolve_active(cluster)
    needs_none = isinstance(cluster, str) and cluster in {"auto", "none", "threads"}
    with nullcontext(cluster) if needs_none else clusters.connect(cluster, workers=workers) as connected:
        yield connected


def resolve_cluster(cluster: ClusterLike, jobs: Sequence[Job], work: float) -> ClusterLike:
    """Return the cluster to use for jobs: for "auto" an active client, or else a choice by the expected work."""
    cluster = clusters.resolve_active(cluster)
    if not isinstance(cluster, str) or cluster != "auto":
        return cluster
    return clusters.choose_cluster(work, vectorised=all(job.panel.manner.vectorised for job in jobs))


def _count_on_cluster(
    cluster: Cluster,
    jobs: Sequence[Job],
    costs: Sequence[float],
    work: float,
    progress: Progress | None,
    blocks_per_task: int | None,
) -> list[Tally]:
    pace = start_pace(progress, jobs, costs, cluster.n_threads)
    # this process shares its work with none: dividing it only for progress saves a tenth of the time of short counts
    seconds = TASK_SECONDS if cluster.kind == "none" else compute_task_seconds(work, cluster.n_threads)
    tasks = split_jobs(jobs, costs, seconds, blocks_per_task)
    # the longest first: a long task that starts last is waited for by all threads but one
    tasks.sort(key=lambda task: -sum(costs[trials.job] * trials.n_trials for trials in task))
    totals = [Tally.zero(job.panel.shape, job.panel.manner.n_tails) for job in jobs]
    n_trials, n_done = sum_trials(jobs), 0
    for results in run_tasks(cluster, jobs, tasks):
        for trials, tally in results:
            if isinstance(tally, SigdaskError):
                raise tally
            totals[trials.job] += tally
            n_done += trials.n_trials * jobs[trials.job].n_comparisons
            pace.add_trials(trials.job, trials.n_trials)
        report_progress(progress, n_done, n_trials, pace)
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


_blas_lock = threading.Lock()
_blas_limits: list[Any] = []
"""Limits BLAS to one thread, once for each thread that multiplies, because tasks already run in parallel threads."""


@lru_cache(maxsize=1)
def _find_blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _take_control() -> None:
    """Let this thread set the limit: since threadpoolctl 3.8 only the first thread that set one may, while it lives."""
    from threadpoolctl import OpenBLASController

    if (clear := getattr(OpenBLASController, "clear_controlling_thread", None)) is not None:
        clear(force=True)


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of the process is in this context."""
    with _blas_lock:
        if not _blas_limits:
            _take_control()
        _blas_limits.append(_blas_limits[0] if _blas_limits else _find_blas().limit(limits=1))
    try:
        yield
    finally:
        with _blas_lock:
            limit = _blas_limits.pop()
            if not _blas_limits:
                _take_control()
                limit.restore_original_limits()
                _take_control()


def count_task(task: Task, *panels: Any) -> CountedRanges:
    """Return the tally of each range of a task's trials, or the error that a metric raised on that range."""
    with limit_blas_threads():
        return [(trials, _count_trials(trials, panel)) for trials, panel in zip(task, panels, strict=True)]


def _count_trials(trials: TrialRange, panel: Any) -> Tally | SigdaskError:
    try:
        return unpack_panel(panel).tally(run=trials.run, first=trials.first, n_trials=trials.n_trials)
    except SigdaskError as error:
        return error


def run_tasks(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[CountedRanges]:
    """Count tasks, and yield the tallies of each task in the order in which tasks finish.

    Raises
    ------
    ClusterLostError
        The scheduler was lost.
    TaskError
        A task failed on every attempt. The error names the jobs.
    """
    if cluster.client is not None:
        return _run_on_client(cluster, jobs, tasks)
    calls = [partial(count_task, task, *(jobs[trials.job].panel for trials in task)) for task in tasks]
    if cluster.kind == "threads" and len(tasks) > 1:
        return _run_on_threads(calls, cluster.n_threads)
    return (call() for call in calls)


def _run_on_threads(calls: Sequence[Callable[[], CountedRanges]], n_threads: int) -> Iterator[CountedRanges]:
    """Yield the results of calls on threads, a few at a time so that few results wait. Importing dask takes longer."""
    pool, waiting = ThreadPoolExecutor(n_threads), deque[Future[CountedRanges]]()
    try:
        for call in calls:
            waiting.append(pool.submit(call))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_on_client(cluster: Cluster, jobs: Sequence[Job], tasks: Sequence[Task]) -> Iterator[CountedRanges]:
    """Yield the tallies of tasks on a distributed cluster; lost panels are computed again, being tasks too."""
    sent_panels = send_panels(cluster, jobs)

    def submit(task: Task) -> Any:
        panels = [sent_panels[id(jobs[trials.job].panel)] for trials in task]
        return cluster.client.submit(count_on_worker, task, *panels, pure=False)

    flight = TaskWindow(cluster, tasks, submit)
    for results in flight:
        yield [(trials, tally.widen() if isinstance(tally, Tally) else tally) for trials, tally in results]
    if flight.given_up:
        labels = ", ".join(dict.fromkeys(jobs[job].label for job in flight.given_up))
        error = next(iter(flight.given_up.values()))
        raise TaskError(
            f"counting {labels} failed on every worker that tried it ({error}); all other comparisons were counted, "
            f"and `sigdask run` stores them",
            tuple(flight.given_up),
        )


WARM_UP = 0.05, 2.0
"""Share of the predicted work, and seconds, after which the measured rate weighs as much as the predicted one."""


class CountingPace:
    """Progress of counting, measured in predicted seconds of work, and the expected time left.

    Trials differ in cost by orders of magnitude: a part of an exact p takes a second, a trial of a pair a nanosecond.
    So numbers of trials show neither shares nor times. The measured pace corrects the prediction.

    Parameters
    ----------
    jobs : sequence of Job
        Jobs to count.
    costs : sequence of float
        Seconds per trial of each job.
    n_threads : int
        Number of threads that share the work.
    """

    def __init__(self, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> None:
        self._seconds_each = [cost / n_threads for cost in costs]
        self._total = sum(cost * job.n_trials for cost, job in zip(self._seconds_each, jobs, strict=True))
        self._done, self._start = 0.0, time.monotonic()

    def add_trials(self, job: int, n_trials: int) -> None:
        """Record that trials of a job were counted."""
        self._done += n_trials * self._seconds_each[job]

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


def start_pace(progress: Any, jobs: Sequence[Job], costs: Sequence[float], n_threads: int) -> CountingPace:
    """Return the pace at the start, and report it to `progress` if it accepts one."""
    pace = CountingPace(jobs, costs, n_threads)
    show_start = getattr(progress, "show_start", None)
    if show_start is not None:
        show_start(sum_trials(jobs), pace.seconds_left, n_threads)
    return pace


def report_progress(progress: Any, n_done: int, total: int, pace: CountingPace | None) -> None:
    """Report to `progress` how many trials are done and, if it accepts them, the share of work and the time left."""
    show_trials = getattr(progress, "show_trials", None)
    if show_trials is not None and pace is not None:
        show_trials(n_done, total, pace.share, pace.seconds_left)
    elif progress is not None:
        progress(n_done, total)


SHORT_SECONDS = 2.0
"""Work of fewer seconds is done without worker processes."""

LONG_SECONDS = 60.0
"""Estimated seconds on this machine from which connecting to a cluster is worthwhile."""

CountedParts = Iterator[tuple[int, list[Array]]]


class ClusterExtraction(LocalExtraction):
    """An executor that counts the parts of an extraction on the cluster of a run.

    Parameters
    ----------
    cluster : str, Cluster, or a client or cluster of dask's
        As for trials. "threads" and "local" use processes on this machine, as does "auto" for long work.
    workers : int, optional
        Number of workers; by default one per core.
    """

    def __init__(self, cluster: ClusterLike = "auto", workers: int | None = None) -> None:
        self.cluster = cluster
        self.n = workers or int(getattr(cluster, "n_threads", 1 if cluster == "none" else clusters.count_cores()))

    @property
    def _is_local(self) -> bool:
        """Whether parts are counted on this machine, not on a dask cluster."""
        kind = self.cluster.kind if isinstance(self.cluster, Cluster) else self.cluster
        return kind in clusters.LOCAL_WORDS

    def __call__(self, parts: Sequence[ExtractionPart], seconds: float) -> CountedParts:
        """Yield each part's number and statistics as parts finish; `seconds` is the expected work."""
        if seconds < SHORT_SECONDS:
            return LocalExtraction()(parts, seconds)
        if (active := clusters.resolve_active(self.cluster)) is not self.cluster:
            return ClusterExtraction(active, self.n)(parts, seconds)
        if self.n == 1 and self._is_local:
            return LocalExtraction()(parts, seconds)
        is_dask = clusters.is_dask_object(self.cluster) or isinstance(self.cluster, Cluster)
        if self._is_local or (seconds / self.n < LONG_SECONDS and not is_dask):
            return ProcessExtraction(self.n)(parts, seconds)
        return _count_with_fallback(self._count_connected(parts), parts, seconds)

    def _count_connected(self, parts: Sequence[ExtractionPart]) -> CountedParts:
        with clusters.connect(self.cluster) as connected:
            yield from _count_on_client(connected, parts)


def _count_with_fallback(cluster_counts: CountedParts, parts: Sequence[ExtractionPart], seconds: float) -> CountedParts:
    """Yield the parts that a cluster counts, then count the missing parts on this machine."""
    missing = set(range(len(parts)))
    try:
        for number, counts in cluster_counts:
            missing.discard(number)
            yield number, counts
    except ClusterLostError as error:
        log.warning("extraction: %s", error)
    if missing:
        text = "extraction: the cluster did not finish %d of %d parts; this process computes them"
        log.warning(text, len(missing), len(parts))
        numbers, executor = sorted(missing), ProcessExtraction(clusters.count_cores())
        for k, counts in executor([parts[number] for number in numbers], seconds):
            yield numbers[k], counts


@dataclass(frozen=True, slots=True)
class _ExtractionTask:
    """One part of an extraction as a task; each part has its own job, so that a failure affects no other part."""

    job: int


def _count_on_client(cluster: Cluster, parts: Sequence[ExtractionPart]) -> CountedParts:
    def submit(task: tuple[_ExtractionTask]) -> Any:
        number = task[0].job
        packed = pickle.dumps((number, parts[number].extraction.key, parts[number]))
        return cluster.client.submit(count_packed, packed, pure=False)

    for number, counts in TaskWindow(cluster, [(_ExtractionTask(number),) for number in range(len(parts))], submit):
        if counts is not None:
            yield number, counts


def count_packed(packed: bytes) -> tuple[int, list[Array] | None]:
    """Count a packed part; return its number and statistics, or None instead if library versions differ."""
    number, key, part = pickle.loads(packed)  # noqa: S301  # from the driver, as all tasks are
    return number, part.count() if part.extraction.key == key else None


def extract_with_options(requests: Sequence[tuple[Counts, Sequence[Any]]], options: SelectionOptions) -> list[Counts]:
    """Return the data with the statistics that metrics take from whole outputs, extracted or from the cache.

    Each request has the data of one test set and its metrics.
    """
    if not any(getattr(metric, "extraction", None) for _, metrics in requests for metric in metrics):
        return [counts for counts, _ in requests]
    cache = get_user_cache() if options["cache"] else NO_CACHE
    log = getattr(options["progress"], "show_extraction", None) or ExtractionLog()
    executor = ClusterExtraction(options["cluster"], options["workers"])
    return [entry.counts for entry in extract_statistics(requests, StatisticsSource(cache, executor, log))]
