"""Monitoring: dask's performance report, and counters in addition to its Prometheus metrics.

Where the scheduler is in this process, dask serves both at `/metrics` of the dashboard's port.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, build_extra_error
from sigdask.execution.clusters.base import Cluster

COUNTERS = {
    "sigdask_trials": "Trials counted",
    "sigdask_tasks": "Tasks finished",
    "sigdask_tasks_retried": "Tasks tried again after a lost worker or an error",
    "sigdask_jobs_given_up": "Jobs given up since they failed wherever they were tried",
}


@contextmanager
def write_performance_report(cluster: Cluster, path: Path) -> Iterator[None]:
    """Write to an HTML file dask's performance report on what happens in the `with` body."""
    if cluster.client is None:
        raise InputError("--performance-report shows a dask cluster: choose one, as --cluster local")
    if importlib.util.find_spec("bokeh") is None:
        raise build_extra_error("bokeh", "clusters", "--performance-report")
    from distributed import performance_report as report

    with report(filename=str(path)):
        yield


def increment_counter(name: str, amount: int = 1) -> None:
    """Increase a Prometheus counter of `COUNTERS`; do nothing if prometheus-client is not installed."""
    with suppress(ImportError):
        _get_counter(name).inc(amount)


@cache
def _get_counter(name: str) -> Any:
    from prometheus_client import Counter

    return Counter(name, COUNTERS[name])
