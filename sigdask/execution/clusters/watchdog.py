"""Starts lost workers again, for as long as a cluster is in use.

dask leaves a fixed-size cluster at the workers that are left: a nanny whose worker dies while it
restarts closes for good, `scale` does not replace a job that was cancelled, and a job whose
submission failed counts as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from sigdask.execution.clusters.base import log

EVERY = 2.0
"""Seconds between looks; doubled while nothing helps."""

LONGEST = 60.0


@contextmanager
def watched(
    cluster: Any, client: Any, n_workers: int, *, vanished: Callable[[Any], bool] | None = None
) -> Iterator[None]:  # fmt: skip
    """Keep a `SpecCluster` at `n_workers` while the body runs.

    Parameters
    ----------
    cluster : distributed.SpecCluster
        What starts workers.
    client : distributed.Client
        What counts them.
    n_workers : int
        Fixed size.
    vanished : callable, optional
        Says of a job whether its queue no longer knows it.
    """
    stop = Event()
    dog = Thread(target=_watch, args=(cluster, client, n_workers, vanished, stop), daemon=True, name="sigdask-watchdog")
    dog.start()
    try:
        yield
    finally:
        stop.set()
        dog.join(timeout=LONGEST)


def _watch(
    cluster: Any, client: Any, n_workers: int, vanished: Callable[[Any], bool] | None, stop: Event
) -> None:  # fmt: skip
    pause, before = EVERY, n_workers
    while not stop.wait(pause):
        with suppress(Exception):  # a scheduler on its way out is the engine's to report
            here = len(client.nthreads())
            if here < before:
                log.warning("%d of %d workers are left; starting others", here, n_workers)
            pause = EVERY if here >= before else min(2 * pause, LONGEST)
            if here < n_workers:
                gone = {name for name, job in list(cluster.workers.items()) if vanished is not None and vanished(job)}
                cluster.loop.add_callback(_forget_dead, cluster, gone)
                cluster.scale(n_workers)
            before = here


def _forget_dead(cluster: Any, gone: set[Any]) -> None:
    """Drop workers that never started, have closed, or whose job is gone, so that `scale` starts them again."""
    for name, worker in list(cluster.workers.items()):
        if worker.status.name in {"created", "closed", "failed"} or name in gone:
            del cluster.workers[name]
