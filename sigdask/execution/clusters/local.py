"""Clusters of processes on this machine, one per core; they use TLS too, as other users can reach loopback."""

from __future__ import annotations

import logging
from typing import Any

from sigdask.execution.clusters.base import count_cores
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.clusters.lifecycle import ClusterKind, check_options
from sigdask.execution.clusters.tls import TlsFiles

OPTIONS = ("threads_per_worker", "memory_limit", "local_directory", "dashboard_address", "processes")


def count_workers(_: ClusterDescription) -> int:
    """Return the default number of workers: one per core."""
    return count_cores()


def build_kind(description: ClusterDescription) -> ClusterKind:
    """Return the `ClusterKind` that starts a cluster on this machine."""
    threads = int(description.options.get("threads_per_worker", 1))
    return ClusterKind(_make_cluster, threads=threads, remote=False, scratch=True)


def _make_cluster(description: ClusterDescription, files: TlsFiles | None) -> Any:
    from distributed import LocalCluster

    options = check_options(description, OPTIONS)
    return LocalCluster(
        n_workers=description.minimum if description.is_adaptive else description.workers,
        host="127.0.0.1",
        protocol="tcp://" if files is None else "tls://",
        security=files.to_security() if files is not None else None,
        silence_logs=logging.CRITICAL,
        **{"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **options},
    )
