"""Tasks that run on a cluster: limited in number at a time, retried if lost, and reported if they keep failing.

If a result is lost with its worker before it was fetched, it is counted again with the same counts. A task that fails
is tried again. If it has several jobs, these are tried separately, so that the failing one can be named. Tasks of
workers that died are suspect, and tried again alone after all others. A task that kills a worker when it runs alone is
poison: its job is given up and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from sigdask.errors import ClusterLostError, SigdaskError, UnfinishedError
from sigdask.execution.clusters import Cluster
from sigdask.execution.clusters.base import log

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
        log.warning("job %d of the counting failed on every worker and is given up: %s", job, error, extra={"job": job})
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
