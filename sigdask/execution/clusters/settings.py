"""Settings of dask that recover fast from lost workers, cut networks and hung hosts; versions and counters of workers.

docs/clusters-tested.md has the experiments behind each number. Workers and schedulers that other programs start get the
settings from `environment()`. Workers must have the client's package versions, because other versions could count
differently or not at all. Counters are added to dask's Prometheus metrics. If the scheduler is in this process, dask
serves both at `/metrics` of the dashboard's port.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from socket import gethostname
from typing import Any

from sigdask.errors import InputError
from sigdask.text import format_list

SETTINGS: dict[str, tuple[Any, str]] = {
    "distributed.scheduler.allowed-failures": (3,
        "also counts tasks that only waited on a killed worker; the engine tries those again, one at a time"),
    "distributed.scheduler.worker-ttl": ("15s",
        "a hung host's tasks go elsewhere after 15 s instead of five minutes; kernels release the GIL"),
    "distributed.scheduler.no-workers-timeout": ("300s",
        "a cluster that has lost all its workers is an error, not a wait without end"),
    "distributed.scheduler.work-stealing": (True, "tasks that wait on a slow host are taken by idle ones"),
    "distributed.comm.timeouts.tcp": ("11s",
        "a cut connection is noticed after 11.5 s instead of 31 to 48; dask refuses less than 11 s"),
    "distributed.comm.timeouts.connect": ("30s", "a busy scheduler may take long to accept"),
    "distributed.deploy.lost-worker-timeout": ("2s", "a lost worker is replaced after 2 s instead of 15"),
    "distributed.worker.memory.target": (False, "what workers hold is small and never worth writing to their disk"),
    "distributed.worker.memory.spill": (False, "likewise; test data stay out of /tmp"),
    "distributed.worker.memory.pause": (0.85, "a worker short of memory takes no more tasks"),
    "distributed.worker.memory.terminate": (0.95, "and is restarted before the host kills it"),
    "distributed.admin.large-graph-warning-threshold": ("1GB", "arrays of a test set are sent once, on purpose"),
    "distributed.worker.daemon": (True, "workers end with the process that started them"),
    "distributed.worker.profile.enabled": (False, "the sampling profiler costs about 10 % of CPU"),
    "distributed.admin.system-monitor.gil.enabled": (False, "its sampling costs CPU and shows nothing here"),
    "distributed.admin.system-monitor.interval": ("2s",
        "dashboards need no more; two looks at the system a second cost 0.3 % of a core per process"),
    "distributed.admin.tick.interval": ("500ms",
        "reports event loops that hang for 3 s; fifty checks a second cost 1.1 % of a core per process"),
    "distributed.worker.memory.monitor-interval": ("500ms",
        "a worker grows by one panel at most between two checks; ten checks a second cost 0.3 % of a core"),
}  # fmt: skip


def settings() -> dict[str, Any]:
    """Return sigdask's settings of dask, as keys and values for `dask.config.set`."""
    return {key: value for key, (value, _) in SETTINGS.items()}


def describe_differences(scheduler_settings: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each setting of a scheduler that differs from sigdask's setting.

    Parameters
    ----------
    scheduler_settings : mapping
        The scheduler's settings below `distributed`.

    Examples
    --------
    >>> theirs = {"scheduler": {"allowed-failures": 3, "worker-ttl": "5 minutes", "work-stealing": True}}
    >>> describe_differences(theirs)[0]
    'scheduler.worker-ttl is 5 minutes, not 15s'
    """
    import dask

    expected = {key.removeprefix("distributed."): value for key, (value, _) in SETTINGS.items()}
    compared = [key for key in expected if key.startswith(("scheduler.", "comm."))]
    actual = {key: dask.config.get(key, None, config=scheduler_settings) for key in compared}
    return [f"{key} is {value}, not {expected[key]}" for key, value in actual.items() if value != expected[key]]


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


CHECKED_PACKAGES = ("sigdask", "dask", "distributed", "numpy", "numba", "scipy", "cloudpickle", "msgpack")
SCHEDULER_PACKAGES = ("dask", "distributed", "msgpack")
"""Packages that a scheduler needs. It only passes tasks on."""

REMEDY = (
    "Install the same versions there as here, run sigdask in the environment that the workers have, or count here "
    "(cluster none, threads or local)"
)


def check_versions(client: Any) -> None:
    """Raise if versions of packages on the scheduler or on workers differ from the client's.

    Raises
    ------
    InputError
        Some differ. The message names them, where each version is, and what to do.
    """
    reports = client.get_versions(packages=list(CHECKED_PACKAGES))
    client_versions = _extract_versions(reports["client"])
    other_versions = {
        "the scheduler": {
            k: v for k, v in _extract_versions(reports["scheduler"]).items() if k in (*SCHEDULER_PACKAGES, "python")
        }
    }
    other_versions |= {f"worker {address}": _extract_versions(info) for address, info in reports["workers"].items()}
    differences = describe_version_differences(client_versions, other_versions)
    if differences:
        raise InputError(f"versions differ: {'; '.join(differences)}. {REMEDY}")


@cache
def get_own_versions() -> dict[str, str]:
    """Return the versions of Python and of the checked packages in this process."""
    from distributed.versions import get_versions

    return _extract_versions(get_versions(packages=list(CHECKED_PACKAGES)))


def check_driver_versions(theirs: Mapping[str, str]) -> None:
    """Raise, on a worker, if the driver's package versions differ from the worker's.

    Raises
    ------
    InputError
        As `check_versions`.
    """
    differences = describe_version_differences(theirs, {f"worker on {gethostname()}": get_own_versions()})
    if differences:
        raise InputError(f"versions differ: {'; '.join(differences)}. {REMEDY}")


def describe_version_differences(expected: Mapping[str, str], actual: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a phrase for each package version that differs, with one host that has the other version.

    Examples
    --------
    >>> describe_version_differences({"dask": "2"}, {"worker a": {"dask": "1"}, "worker b": {"dask": "1"}})
    ['dask is 2 here and 1 at worker a and 1 more']
    """
    holders: dict[tuple[str, str], list[str]] = {}
    for name, versions in actual.items():
        for package, version in versions.items():
            if version != expected[package]:
                holders.setdefault((package, version), []).append(name)
    return [
        f"{package} is {expected[package]} here and {version} at {format_list(name, 1)}"
        for (package, version), name in holders.items()
    ]


def _extract_versions(info: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the versions of the checked packages and of Python, the latter as major.minor."""
    packages = (info or {}).get("packages", {})
    python = str(packages.get("python") or "absent")
    versions = {name: packages.get(name) or "absent" for name in CHECKED_PACKAGES}
    return {"python": ".".join(python.split(".")[:2]), **versions}


COUNTERS = {
    "sigdask_trials": "Trials counted",
    "sigdask_tasks": "Tasks finished",
    "sigdask_tasks_retried": "Tasks tried again after a lost worker or an error",
    "sigdask_jobs_given_up": "Jobs given up since they failed wherever they were tried",
}


def increment_counter(name: str, amount: int = 1) -> None:
    """Increase a Prometheus counter of `COUNTERS`; do nothing if prometheus-client is not installed."""
    with suppress(ImportError):
        _get_counter(name).inc(amount)


@cache
def _get_counter(name: str) -> Any:
    from prometheus_client import Counter

    return Counter(name, COUNTERS[name])
