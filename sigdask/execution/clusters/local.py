"""Clusters of processes on this machine, one per core; they use TLS too, as other users can reach loopback."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sigdask.execution.clusters.base import LOOPBACK_PAGES, hide_working_directory
from sigdask.execution.clusters.description import ClusterDescription

OPTIONS = {"threads_per_worker", "memory_limit", "local_directory", "dashboard_address", "processes"}


@contextmanager
def open_cluster(description: ClusterDescription, security: Any) -> Iterator[Any]:
    """Yield a cluster of processes on this machine."""
    from distributed import LocalCluster

    options = description.options.to_arguments()
    if unknown := options.keys() - OPTIONS:  # dask would hand them to workers, whose start then fails
        raise description.build_error(f"[options]: unknown for class local: {', '.join(sorted(unknown))}")
    # each new process hides the working directory; but programs that a metric starts find their modules
    variables = {"PYTHONSAFEPATH": os.environ.get("PYTHONSAFEPATH", "")}
    processes = {"env": variables} if options.get("processes", True) else {}
    with hide_working_directory():
        yield LocalCluster(
            n_workers=description.minimum if description.maximum else description.workers,
            host="127.0.0.1",
            protocol="tcp://" if security is None else "tls://",
            security=security,
            silence_logs=logging.CRITICAL,
            **{"threads_per_worker": 1, "dashboard_address": LOOPBACK_PAGES, **processes, **options},
        )
