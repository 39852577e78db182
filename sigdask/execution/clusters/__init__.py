"""Connection to the cluster that `--cluster` or a plan names: this process, threads or dask.

Each kind of cluster has a module. Each is safe by default (mutual TLS, and on this machine only the loopback
interface), and recovers fast from lost workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.base import Cluster, count_cores, find_active, is_closed, is_dask_object
from sigdask.execution.clusters.description import (
    LOCAL_WORDS,
    MODULES,
    ClusterDescription,
    ClusterSpec,
    Transport,
    as_allocation,
    parse_description,
    read,
)
from sigdask.interface import spell

__all__ = [
    "CLUSTER_WORDS", "KINDS", "LOCAL_WORDS", "Cluster", "ClusterDescription", "ClusterLike", "check_cluster",
    "choose_cluster", "connect", "count_cores", "is_closed", "is_dask_object", "parse_description", "read",
    "resolve_active",
]  # fmt: skip

ClusterLike = ClusterSpec | Cluster | Any
"""Where to count: a cluster's name or specification, a connected cluster, or a dask client or cluster."""

SHORT_SECONDS = 3.0
"""Work of fewer seconds is done in this process, because starting a cluster would take longer."""

CLUSTER_WORDS = (*LOCAL_WORDS, "current")
"""Words that name a cluster without further settings."""

KINDS = (
    f"{', '.join(CLUSTER_WORDS)}, tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (.json) or a cluster file (.toml)"
)


PLAIN_WORDS = ("auto", "none", "threads", "current")
"""Words for which no file is read."""

ALLOCATION_PREFIX = "allocation:"
"""Prefix of a cluster file of class slurm: use the job in which this process runs instead of submitting one."""


def resolve_active(cluster: Any) -> Any:
    """Return dask's active client or configured scheduler for "auto" and "current"; any other cluster unchanged.

    "auto" is also returned unchanged if there is neither.

    Raises
    ------
    InputError
        "current" was requested, and there is neither.
    """
    if not isinstance(cluster, str) or cluster not in {"auto", "current"}:
        return cluster
    result = find_active() or cluster
    if cluster == "auto" and getattr(result, "asynchronous", False):  # a comparison would block the client's own loop
        return cluster
    if isinstance(result, str) and result == "current":
        raise InputError(
            "no current dask cluster: this process has no active distributed.Client, and dask's settings name no "
            "scheduler. Create a client first, set DASK_SCHEDULER_ADDRESS, or give "
            f"{spell('cluster', 'tcp://HOST:PORT')}"
        )
    return result


def choose_cluster(seconds: float, *, vectorised: bool) -> str:
    """Return "none", "threads" or "local", by the seconds of work.

    Threads are used if the kernels run in parallel on threads (`vectorised`).

    Examples
    --------
    >>> choose_cluster(0.1, vectorised=True)
    'none'
    """
    if seconds <= SHORT_SECONDS or count_cores() == 1:
        return "none"
    return "threads" if vectorised else "local"


def check_cluster(cluster: ClusterSpec | Any) -> None:
    """Raise if `connect` would not accept a cluster; nothing is started or contacted.

    Raises
    ------
    InputError
        It is not a known word, address or file, its file is invalid, or its queue's command is missing.
    """
    if is_dask_object(cluster) or cluster in PLAIN_WORDS:
        return
    description = cluster if isinstance(cluster, ClusterDescription) else _parse_cluster(cluster)
    if description.kind == "slurm":
        _import_module("jobqueue").check_queue(description)


@contextmanager
def connect(cluster: ClusterSpec | Any, *, workers: int | None = None) -> Iterator[Cluster]:
    """Start or reach a cluster for the `with` body; what was started is closed, the caller's own cluster is not.

    Parameters
    ----------
    cluster : str, ClusterDescription, distributed.Client or cluster object
        none, threads, local, local+tcp, current, an address, a scheduler file or a cluster file, or a running client
        or cluster.
    workers : int, optional
        Threads or workers to start; by default as in the description, or one per core.

    Raises
    ------
    InputError
        The cluster is not understood, or nothing answers there.
    UnfinishedError
        The cluster did not start, or no worker came in time. The message contains the queue's output.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: must be at least 1")
    if cluster == "current":
        cluster = resolve_active(cluster)
    if is_dask_object(cluster):
        with _import_module("existing").use_client(cluster) as connected:
            yield connected
    elif cluster == "none":
        yield Cluster("none")
    elif cluster == "threads":
        yield Cluster("threads", workers or count_cores())
    else:
        description = cluster if isinstance(cluster, ClusterDescription) else _parse_cluster(cluster)
        with _open_cluster(description.with_workers(workers)) as connected:
            yield connected


def _parse_cluster(cluster: Any) -> ClusterDescription:
    if not isinstance(cluster, str):
        raise InputError(f"cluster {cluster!r}: expected a distributed.Client, a dask cluster, or {KINDS}")
    if cluster in ("local", "local+tcp"):
        return ClusterDescription("local", transport=Transport(plain=cluster != "local"), source=cluster)
    if cluster.startswith(("tcp://", "tls://")):
        transport = Transport(plain=cluster.startswith("tcp://"))
        return ClusterDescription("address", options={"address": cluster}, wait=60, transport=transport, source=cluster)
    if cluster.endswith(".json"):
        return ClusterDescription("address", options={"scheduler_file": cluster}, wait=60, source=cluster)
    if cluster.startswith(ALLOCATION_PREFIX):
        return as_allocation(read(Path(cluster.removeprefix(ALLOCATION_PREFIX))))
    if cluster.endswith(".toml"):
        return read(Path(cluster))
    hint = f'; for this class, write a cluster file with class = "{cluster}"' if cluster in MODULES else ""
    raise InputError(f"cluster {cluster!r}: expected {KINDS}{hint}")


@contextmanager
def _open_cluster(description: ClusterDescription) -> Iterator[Cluster]:
    if description.kind == "address":
        with _import_module("existing").connect_address(description) as connected:
            yield connected
        return
    module = _import_module(MODULES[description.kind])
    if description.max_workers is None and hasattr(module, "count_workers"):
        description = description.with_workers(module.count_workers(description))
    with _import_module("lifecycle").start_cluster(description, module.build_kind(description)) as connected:
        yield connected


def _import_module(name: str) -> Any:
    """Import a module of this folder by name, only when it is needed, because some are slow to import."""
    return importlib.import_module(f"sigdask.execution.clusters.{name}")
