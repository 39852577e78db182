"""From `--cluster` or a plan's `[cluster]` to something that can count: this process, threads, a dask client.

One file a kind of cluster; each is safe by default (TLS with mutual authentication, on this
machine too, and there on loopback) and set to recover fast from lost workers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.execution.clusters.base import Cluster, cores
from sigdask.execution.clusters.description import HERE, QUEUES, Description, Named, Transport, describe, inside, read
from sigdask.execution.clusters.existing.discover import active, is_gone, is_handed

__all__ = [
    "HERE", "KINDS", "WORDS", "Cluster", "Description", "Where", "at_hand", "check", "choose", "connect", "cores",
    "describe", "is_gone", "is_handed", "read",
]  # fmt: skip

Where = Named | Cluster | Any
"""Where to count: a cluster as users name it, a connected one, or a client or a cluster of dask's that they have."""

SHORT = 3.0
"""Seconds of work up to which starting anything costs more than it saves."""

WORDS = (*HERE, "current")
"""What names a cluster alone."""

KINDS = f"{', '.join(WORDS)}, tcp://HOST:PORT, tls://HOST:PORT, a scheduler file (.json) or a cluster file (.toml)"


MODULES = {
    "allocation": "queues.allocation", "kubernetes": "kubernetes", "local": "local", "ssh": "ssh",
    **dict.fromkeys(QUEUES, "queues.jobqueue"),
}  # fmt: skip
"""Kinds of clusters and their modules, imported when they are used; any other kind is a class of the user's."""

UNDESCRIBED = ("auto", "none", "threads", "current")
"""Words of which nothing needs to be read."""

INSIDE = "allocation:"
"""Before a cluster file of class slurm: the same workers, in the job that this process runs in."""


def at_hand(cluster: Any) -> Any:
    """Resolve "auto" and "current" to dask's active client or the scheduler of its settings, where there is one.

    Raises
    ------
    InputError
        There is no current one.
    """
    if not isinstance(cluster, str) or cluster not in {"auto", "current"}:
        return cluster
    found = active() or cluster
    if cluster == "auto" and getattr(found, "asynchronous", False):  # a comparison would block the client's own loop
        return cluster
    if isinstance(found, str) and found == "current":
        raise InputError(
            "no current dask cluster: there is no active distributed.Client here, and dask's settings name no "
            "scheduler (scheduler-address, DASK_SCHEDULER_ADDRESS)"
        )
    return found


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


def check(cluster: Named | Any) -> None:
    """Refuse a cluster that is not understood, as `connect` would; nothing is started or reached.

    Raises
    ------
    InputError
        It is no word, address or file that is known, its file is wrong, or this machine has no command for its queue.
    """
    if is_handed(cluster) or cluster in UNDESCRIBED:
        return
    described = cluster if isinstance(cluster, Description) else _described(cluster)
    if described.kind in QUEUES:
        _module("queues.jobqueue").check(described)


@contextmanager
def connect(cluster: Named | Any, *, workers: int | None = None) -> Iterator[Cluster]:
    """Start or reach a cluster, and close what was started; what the caller has is used and left running.

    Parameters
    ----------
    cluster : str, mapping, Description, distributed.Client or cluster object
        none, threads, local, local+tcp, current, an address, a scheduler file or a cluster file; what such a file
        holds; or a client or a cluster that runs.
    workers : int, optional
        Threads or workers to start; by default what the description says, or one a core.

    Raises
    ------
    InputError
        The cluster is not understood, or nothing answers there.
    UnfinishedError
        It did not start, or no worker came in time; says what the queue said.
    """
    if workers is not None and workers < 1:
        raise InputError(f"workers = {workers}: must be at least 1")
    if cluster == "current":
        cluster = at_hand(cluster)
    if is_handed(cluster):
        with _module("existing.client").used(cluster) as connected:
            yield connected
    elif cluster == "none":
        yield Cluster("none")
    elif cluster == "threads":
        yield Cluster("threads", workers or cores())
    else:
        described = cluster if isinstance(cluster, Description) else _described(cluster)
        with _entered(described.resized(workers)) as connected:
            yield connected


def _described(cluster: str | Mapping[str, Any]) -> Description:
    if isinstance(cluster, Mapping):
        return describe(cluster, where="[cluster]")
    if not isinstance(cluster, str):
        raise InputError(f"cluster {cluster!r}: expected a distributed.Client, a dask cluster, or {KINDS}")
    if cluster in ("local", "local+tcp"):
        return Description("local", transport=Transport(plain=cluster != "local"), where=cluster)
    if cluster.startswith(("tcp://", "tls://")):
        plain = Transport(plain=cluster.startswith("tcp://"))
        return Description("address", options={"address": cluster}, wait=60, transport=plain, where=cluster)
    if cluster.endswith(".json"):
        return Description("address", options={"scheduler_file": cluster}, wait=60, where=cluster)
    if cluster.startswith(INSIDE):
        return inside(read(Path(cluster.removeprefix(INSIDE))))
    if cluster.endswith(".toml"):
        return read(Path(cluster))
    raise InputError(f"cluster {cluster!r}: expected {KINDS}")


@contextmanager
def _entered(description: Description) -> Iterator[Cluster]:
    if description.kind == "address":
        with _module("existing.address").reached(description) as connected:
            yield connected
        return
    module = _module(MODULES.get(description.kind, "custom"))
    if description.expected is None and hasattr(module, "size"):
        description = description.resized(module.size(description))
    with _module("lifecycle").started(description, module.kind(description)) as connected:
        yield connected


def _module(name: str) -> Any:
    """Import a module of this folder; those that start or reach clusters need packages that are slow to import."""
    return importlib.import_module(f"sigdask.execution.clusters.{name}")
