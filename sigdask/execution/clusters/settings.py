"""Settings of dask that recover fast from lost workers, cut networks and hung hosts.

Each figure has its reason; the experiments behind them are in docs/clusters.md. Workers and
schedulers that others start get the same by `environment()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, tuple[Any, str]] = {
    "distributed.scheduler.allowed-failures": (
        3,
        "also counts tasks that only waited on a killed worker; the engine tries those again, one at a time",
    ),
    "distributed.scheduler.worker-ttl": (
        "15s",
        "a hung host's tasks go elsewhere after 15 s instead of five minutes; kernels release the GIL",
    ),
    "distributed.scheduler.no-workers-timeout": (
        "300s",
        "a cluster that has lost all its workers is an error, not a wait without end",
    ),
    "distributed.scheduler.work-stealing": (True, "tasks that wait on a slow host are taken by idle ones"),
    "distributed.comm.timeouts.tcp": (
        "11s",
        "a cut connection is noticed after 11.5 s instead of 31 to 48; less than 11 s dask refuses",
    ),
    "distributed.comm.timeouts.connect": ("30s", "a busy scheduler may take long to accept"),
    "distributed.deploy.lost-worker-timeout": ("2s", "a lost worker is replaced after 2 s instead of 15"),
    "distributed.worker.memory.target": (False, "what workers hold is small and never worth writing to their disk"),
    "distributed.worker.memory.spill": (False, "likewise; test data stay out of /tmp"),
    "distributed.worker.memory.pause": (0.85, "a worker short of memory takes no more tasks"),
    "distributed.worker.memory.terminate": (0.95, "and is started anew before the host kills it"),
    "distributed.admin.large-graph-warning-threshold": ("1GB", "arrays of a test set are sent once, on purpose"),
    "distributed.worker.daemon": (True, "workers end with the process that started them"),
    "distributed.worker.profile.enabled": (False, "the sampling profiler costs about 10 % of CPU"),
    "distributed.admin.system-monitor.gil.enabled": (False, "its sampling costs CPU and shows nothing here"),
    "distributed.admin.system-monitor.interval": (
        "2s",
        "dashboards show no more; looking at the system twice a second costs 0.3 % of a core a process",
    ),
    "distributed.admin.tick.interval": (
        "500ms",
        "tells of event loops that hang for 3 s; fifty looks a second cost 1.1 % of a core a process",
    ),
    "distributed.worker.memory.monitor-interval": (
        "500ms",
        "a worker grows by a panel at most between two looks; ten a second cost 0.3 % of a core",
    ),
}


def settings() -> dict[str, Any]:
    """Return sigdask's settings of dask, as keys and values for `dask.config.set`."""
    return {key: value for key, (value, _) in SETTINGS.items()}


def describe_differences(scheduler_settings: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each setting of a scheduler that differs from sigdask's setting.

    Parameters
    ----------
    scheduler_settings : mapping
        What a scheduler has below `distributed`.

    Examples
    --------
    >>> theirs = {"scheduler": {"allowed-failures": 3, "worker-ttl": "5 minutes", "work-stealing": True}}
    >>> describe_differences(theirs)[0]
    'scheduler.worker-ttl is 5 minutes, not 15s'
    """
    expected = {key.removeprefix("distributed."): value for key, (value, _) in SETTINGS.items()}
    actual = {key: _get_setting(scheduler_settings, key) for key in expected if key.startswith(("scheduler.", "comm."))}
    return [f"{key} is {value}, not {expected[key]}" for key, value in actual.items() if value != expected[key]]


def _get_setting(config: Any, key: str) -> Any:
    """Return the value at a dotted key of nested mappings, or None if it is missing."""
    for part in key.split("."):
        config = config.get(part) if isinstance(config, Mapping) else None
    return config


def environment() -> dict[str, str]:
    """Return sigdask's settings of dask as environment variables, which dask reads when it starts.

    Examples
    --------
    >>> environment()["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"]
    '15s'
    """
    return {
        "DASK_" + key.replace(".", "__").replace("-", "_").upper(): str(value)
        for key, (value, _) in SETTINGS.items()
    }  # fmt: skip
