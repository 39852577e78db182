"""Connection to the cluster that `--cluster` or a plan names: this process, threads or dask.

Each kind of cluster has a module. Each is safe by default (mutual TLS, and on this machine only the loopback
interface), and recovers fast from lost workers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.errors import InputError
from sigdask.execution.clusters.base import THIS_PROCESS, Cluster, is_closed, is_dask_object
from sigdask.interface import spell
from sigdask.io import count_cores

if TYPE_CHECKING:
    from sigdask.execution.clusters.description import ClusterDescription

__all__ = [
    "CLUSTER_WORDS", "KINDS", "LOCAL_WORDS", "Cluster", "ClusterLike", "check_cluster", "choose_cluster", "connect",
    "count_cores", "is_closed", "is_dask_object", "read", "resolve_active",
]  # fmt: skip

ClusterLike = str | Cluster | Any
"""Where to count: a cluster's name, address or file, a connected cluster, or a dask client or cluster."""

THREAD_SECONDS, PROCESS_SECONDS = 0.05, 3.0
"""Seconds of work from which starting threads, and processes, is worthwhile."""

LOCAL_WORDS = ("auto", "none", "threads", "local", "local+tcp")
"""Words for a cluster on this machine. The last one uses unencrypted TCP between its processes."""

CLUSTER_WORDS = (*LOCAL_WORDS, "current")
"""Words that name a cluster without further settings."""

KINDS = (
    f"{', '.join(CLUSTER_WORDS)}, tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (.json) or a cluster file (.toml)"
)


PLAIN_WORDS = ("auto", "none", "threads", "current")
"""Words for which no file is read."""

ALLOCATION_PREFIX = "allocation:"
"""Prefix of a cluster file of class slurm: use the job in which this process runs instead of submitting one."""


def find_active() -> Any:
    """Return dask's active client, or the scheduler's address in dask's settings, or None.

    Within a task it is None, because the task would wait for tasks that wait for it.
    """
    if "distributed" in sys.modules:
        import distributed

        with suppress(ValueError):
            distributed.get_worker()
            return None
        with suppress(ValueError):
            return distributed.Client.current()
    # settings of dask in files are read for "current" only, since importing dask takes as long as a short comparison
    may_be_set = "dask" in sys.modules or "DASK_SCHEDULER_ADDRESS" in os.environ
    return get_configured_address() if may_be_set else None


def get_configured_address() -> Any:
    """Return the scheduler's address in dask's settings, or None."""
    import dask

    address = dask.config.get("scheduler-address", None)
    if address is None:
        return None
    return address if "://" in address else f"{dask.config.get('distributed.comm.default-scheme', 'tcp')}://{address}"


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
    result = find_active() or (cluster == "current" and get_configured_address()) or cluster
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

    Threads are used if the kernels run in parallel on threads (`vectorised`); they start in a millisecond, processes in
    seconds.

    Examples
    --------
    >>> choose_cluster(0.01, vectorised=True), choose_cluster(1.0, vectorised=False)
    ('none', 'none')
    """
    if seconds <= (THREAD_SECONDS if vectorised else PROCESS_SECONDS) or count_cores() == 1:
        return "none"
    return "threads" if vectorised else "local"


def read(path: Path) -> ClusterDescription:
    """Read a cluster file, and return its description, with the class of `sigdask.execution.clusters.description`."""
    from sigdask.execution.clusters.description import read_description  # loads pydantic

    return read_description(path)


def check_cluster(cluster: Any) -> None:
    """Raise if `connect` would not accept a cluster; nothing is started or contacted.

    Raises
    ------
    InputError
        It is not a known word, address or file, its file is invalid, or its queue's command is missing.
    """
    if cluster in PLAIN_WORDS or is_dask_object(cluster):
        return
    if (description := _describe(cluster)).kind == "slurm":
        from sigdask.execution.clusters.slurm import check_queue

        check_queue(description)


@contextmanager
def connect(cluster: Any, *, workers: int | None = None) -> Iterator[Cluster]:
    """Start or reach a cluster for the `with` body; what was started is closed, the caller's own cluster is not.

    Parameters
    ----------
    cluster : str, ClusterDescription, Cluster, distributed.Client or cluster object
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
    if isinstance(cluster, Cluster):
        yield cluster
    elif cluster == "none":
        yield THIS_PROCESS
    elif cluster == "threads":
        yield Cluster("threads", workers or count_cores())
    else:
        with _open_dask(cluster, workers) as connected:
            yield connected


def _open_dask(cluster: Any, workers: int | None) -> AbstractContextManager[Cluster]:
    from sigdask.execution.clusters import connecting  # loads dask

    if is_dask_object(cluster):
        return connecting.use_client(cluster)
    check_cluster(cluster)
    description = _describe(cluster).with_workers(workers)
    if description.kind == "address":
        return connecting.connect_address(description)
    return connecting.start_cluster(description)


def _describe(cluster: Any) -> ClusterDescription:
    """Return the description of a cluster that is named by a word, address or file, or described already."""
    from sigdask.execution.clusters.description import ClusterDescription, parse_description

    if isinstance(cluster, ClusterDescription):
        return cluster
    if not isinstance(cluster, str):
        raise InputError(f"cluster {cluster!r}: expected a distributed.Client, a dask cluster, or {KINDS}")
    if cluster in ("local", "local+tcp"):
        return parse_description({"class": "local", "security": "tls" if cluster == "local" else "tcp"}, source=cluster)
    if cluster.endswith(".json"):
        from sigdask.execution.clusters.connecting import read_scheduler_file

        cluster = read_scheduler_file(Path(cluster))
    if cluster.startswith(("tcp://", "tls://")):
        return parse_description({"class": "address", "wait": 60, "options": {"address": cluster}}, source=cluster)
    if cluster.startswith(ALLOCATION_PREFIX):
        from sigdask.execution.clusters.allocation import as_allocation

        return as_allocation(read(Path(cluster.removeprefix(ALLOCATION_PREFIX))))
    if cluster.endswith(".toml"):
        return read(Path(cluster))
    raise InputError(f"cluster {cluster!r}: expected {KINDS}")
