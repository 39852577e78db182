"""From `--cluster` to something that can count: this process, threads, or a dask client."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, UnfinishedError

SHORT = 3.0
"""Seconds of work up to which starting anything costs more than it saves."""

CONNECT_SECONDS = 10
KINDS = "auto, none, threads, local, tcp://HOST:PORT, tls://HOST:PORT or a scheduler file (.json)"


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Where tasks run.

    Attributes
    ----------
    kind : str
        "none", "threads", or "dask".
    n_threads : int
        Tasks that run at the same time.
    client : distributed.Client or None
        For kind "dask".
    """

    kind: str
    n_threads: int = 1
    client: Any = None


def choose(cluster: str, seconds: float, *, vectorised: bool) -> str:
    """Resolve "auto" by the work ahead: in-process when short, threads where kernels release the GIL.

    Examples
    --------
    >>> choose("auto", 0.1, vectorised=True)
    'none'
    >>> choose("local", 0.1, vectorised=True)
    'local'
    """
    if cluster != "auto":
        return cluster
    if seconds <= SHORT or cores() == 1:
        return "none"
    return "threads" if vectorised else "local"


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def connect(cluster: str, *, workers: int | None = None) -> Iterator[Cluster]:
    """Start or reach a cluster, and close what was started.

    Parameters
    ----------
    cluster : str
        none, threads, local, an address, or a scheduler file.
    workers : int, optional
        Threads or worker processes to start; by default one a core.

    Raises
    ------
    InputError
        The cluster is not understood, or nothing answers there.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: must be at least 1")
    if cluster == "none":
        yield Cluster("none")
    elif cluster == "threads":
        yield Cluster("threads", workers or cores())
    elif cluster == "local":
        with _local(workers or cores()) as connected:
            yield connected
    elif cluster.startswith(("tcp://", "tls://")) or cluster.endswith(".json"):
        with _running(cluster) as connected:
            yield connected
    else:
        raise InputError(f"cluster {cluster!r}: expected {KINDS}")


def settings() -> dict[str, Any]:
    """Return the dask settings that recover fast from lost workers (docs/clusters.md says why)."""
    return {
        "distributed.scheduler.allowed-failures": 10,
        "distributed.scheduler.no-workers-timeout": "120s",
        "distributed.scheduler.worker-ttl": "60s",
        "distributed.worker.profile.enabled": False,
        "distributed.worker.daemon": True,
        "distributed.admin.system-monitor.gil.enabled": False,
    }


@contextmanager
def _local(n_workers: int) -> Iterator[Cluster]:
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(settings()),
        _quiet(),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as started,
        Client(started) as client,
    ):
        yield Cluster("dask", n_workers, client)


@contextmanager
def _running(address: str) -> Iterator[Cluster]:
    import dask
    from distributed import Client

    options: dict[str, Any] = {"timeout": CONNECT_SECONDS}
    if address.endswith(".json"):
        if not Path(address).is_file():
            raise InputError(f"scheduler file {address}: no such file")
        options["scheduler_file"] = address
    else:
        options["address"] = address
    with dask.config.set(settings()), _quiet():
        try:
            client = Client(**options)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise InputError(f"no dask scheduler answers at {address} ({_first_line(error)})") from None
        with client:
            try:
                client.wait_for_workers(1, timeout=60)
            except TimeoutError:
                raise UnfinishedError(f"the scheduler at {address} has no workers after 60 s") from None
            yield Cluster("dask", max(1, sum(client.nthreads().values())), client)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep dask's log lines of closing and lost connections off the terminal."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
