"""Replacement of lost workers for as long as a cluster is in use.

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

CHECK_SECONDS = 2.0
"""Seconds between looks; doubled while nothing helps."""

MAX_SECONDS = 60.0


@contextmanager
def keep_workers(
    cluster: Any, client: Any, n_workers: int, *, vanished: Callable[[Any], bool] | None = None
) -> Iterator[None]:  # fmt: skip
    """Start new workers whenever a `SpecCluster` has fewer than `n_workers`, while the `with` body runs.

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
        dog.join(timeout=MAX_SECONDS)


def _watch(
    cluster: Any, client: Any, n_workers: int, vanished: Callable[[Any], bool] | None, stop: Event
) -> None:  # fmt: skip
    pause, n_before = CHECK_SECONDS, n_workers
    while not stop.wait(pause):
        with suppress(Exception):  # a scheduler on its way out is the engine's to report
            n_present = len(client.nthreads())
            if n_present < n_before:
                log.warning("%d of %d workers are left; starting others", n_present, n_workers)
            pause = CHECK_SECONDS if n_present >= n_before else min(2 * pause, MAX_SECONDS)
            if n_present < n_workers:
                names = {name for name, job in list(cluster.workers.items()) if vanished is not None and vanished(job)}
                cluster.loop.add_callback(_forget_dead, cluster, names)
                cluster.scale(n_workers)
            n_before = n_present


def _forget_dead(cluster: Any, names: set[Any]) -> None:
    """Remove from the cluster workers that never started, have closed or lost their job; `scale` then replaces them."""
    for name, worker in list(cluster.workers.items()):
        if worker.status.name in {"created", "closed", "failed"} or name in names:
            del cluster.workers[name]
