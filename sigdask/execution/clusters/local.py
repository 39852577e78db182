"""One worker process a core on this machine, bound to loopback, which every user of it can reach: so TLS here too."""

from __future__ import annotations

import logging
from typing import Any

from sigdask.execution.certificates import Files
from sigdask.execution.clusters.base import cores
from sigdask.execution.clusters.description import Description
from sigdask.execution.clusters.lifecycle import ClusterKind, accepts

OPTIONS = ("threads_per_worker", "memory_limit", "local_directory", "dashboard_address", "processes")


def size(_: Description) -> int:
    """Return how many workers there are where none are asked for."""
    return cores()


def kind(description: Description) -> ClusterKind:
    """Return how a local cluster is started."""
    threads = int(description.options.get("threads_per_worker", 1))
    return ClusterKind(_make, threads=threads, remote=False, scratch=True)


def _make(description: Description, files: Files | None) -> Any:
    from distributed import LocalCluster

    options = accepts(description, OPTIONS)
    return LocalCluster(
        n_workers=description.minimum if description.adaptive else description.workers,
        host="127.0.0.1",
        protocol="tcp://" if files is None else "tls://",
        security=files.security() if files is not None else None,
        silence_logs=logging.CRITICAL,
        **{"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **options},
    )
