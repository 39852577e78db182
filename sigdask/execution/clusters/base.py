"""Connected clusters, and helpers for logs and errors.

Settings of dask that recover fast from lost workers, cut networks and hung hosts; versions of workers.

docs/clusters-tested.md has the experiments behind each number. Workers and schedulers that other programs start get the
settings from `environment()`. Workers must have the client's package versions, because other versions could count
differently or not at all.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from socket import gethostname
from typing import Any

from sigdask.errors import InputError

log = logging.getLogger("sigdask.execution.clusters")

NOISY_LOGGERS = ("distributed", "distributed.client", "distributed.worker", "tornado", "tornado.application", "asyncio",
                 "asyncssh")  # fmt: skip
"""Loggers of dask whose messages are hidden, with those below them. Some have levels of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A connected cluster of any kind, on which tasks run.

    Attributes
    ----------
    kind : str
        "none", "threads", or "dask".
    n_threads : int
        Tasks that run at the same time, once all workers have connected.
    client : distributed.Client or None
        The client, for kind "dask".
    remote : bool
        Whether workers may be other machines. Then only arrays and names are sent to them, no code.
    get_status : callable
        Returns the queue's status of jobs that are not running, for errors. Empty without a queue.
    """

    kind: str
    n_threads: int = 1
    client: Any = None
    remote: bool = False
    get_status: Callable[[], str] = str


THIS_PROCESS = Cluster("none")


@contextmanager
def silence_dask() -> Iterator[None]:
    """Suppress the log messages of dask and its libraries, except critical ones, while the `with` body runs."""
    levels = {name: logging.getLogger(name).level for name in NOISY_LOGGERS}
    for name in levels:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


@contextmanager
def hide_working_directory() -> Iterator[None]:
    """Keep processes that Python itself starts from importing modules of the working directory, such as a signal.py."""
    original = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        del os.environ["PYTHONSAFEPATH"]
        if original is not None:
            os.environ["PYTHONSAFEPATH"] = original


def get_first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the error's type if the message is empty."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def join_last_lines(text: str, n_lines: int = 4) -> str:
    r"""Return the last lines of a log that are not empty, joined into one line.

    Examples
    --------
    >>> join_last_lines("a\n\nb\n", 1)
    'b'
    """
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-n_lines:])


def is_dask_object(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask, by its attributes.

    Examples
    --------
    >>> is_dask_object("local"), is_dask_object({"class": "local"})
    (False, False)
    """
    return any(hasattr(cluster, attribute) for attribute in ("scheduler_address", "run_on_scheduler"))


def is_closed(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask that is closed and cannot be used again."""
    status = getattr(cluster, "status", None)  # of a client a word, of a cluster an enumeration
    return is_dask_object(cluster) and getattr(status, "name", status) in {"closed", "closing", "failed"}


SETTINGS: dict[str, Any] = {
    # a hung host's tasks go elsewhere after a minute instead of five; kernels release the GIL
    "distributed.scheduler.worker-ttl": "15s",
    # a cluster that has lost all its workers is an error, not a wait without end
    "distributed.scheduler.no-workers-timeout": "300s",
    # a cut connection is noticed after 11.5 s instead of 31 to 48; dask refuses less than 11 s
    "distributed.comm.timeouts.tcp": "11s",
    # a lost worker is replaced after 2 s instead of 15
    "distributed.deploy.lost-worker-timeout": "2s",
    # what workers hold is small and never worth writing to their disk, and test data stay out of /tmp
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    # a worker short of memory takes no more tasks
    "distributed.worker.memory.pause": 0.85,
    # arrays of a test set are sent once, on purpose
    "distributed.admin.large-graph-warning-threshold": "1GB",
    # the sampling profiler costs about 10 % of CPU
    "distributed.worker.profile.enabled": False,
}


def environment(more: Mapping[str, Any] | None = None) -> dict[str, str]:
    """Return sigdask's and more settings of dask as environment variables, which dask reads when it starts.

    Examples
    --------
    >>> environment()["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"]
    '15s'
    """
    return {
        "DASK_" + key.replace(".", "__").replace("-", "_").upper(): str(value)
        for key, value in {**SETTINGS, **(more or {})}.items()
    }  # fmt: skip


LOOPBACK_PAGES = "127.0.0.1:0"
"""Address of pages, which TLS does not protect. A worker serves pages even without its dashboard."""

QUIET_WORKER = ("--no-dashboard", "--dashboard-address", LOOPBACK_PAGES)

CHECKED_PACKAGES = ("sigdask", "dask", "distributed", "numpy", "numba", "scipy", "cloudpickle", "msgpack")


@cache
def get_own_versions() -> dict[str, str]:
    """Return the versions of Python and of the checked packages in this process."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return {"python": python, **{name: version(name) for name in CHECKED_PACKAGES}}


def check_driver_versions(theirs: Mapping[str, str]) -> None:
    """Raise, on a worker, if the driver's package versions differ from the worker's.

    Raises
    ------
    InputError
        Some differ. The message names them, where each version is, and what to do.
    """
    own = get_own_versions()
    differences = [f"{name} is {theirs[name]} here and {own[name]}" for name in own if theirs[name] != own[name]]
    if differences:
        raise InputError(
            f"versions differ: {', '.join(differences)} at worker on {gethostname()}. Install the same versions there "
            "as here, run sigdask in the environment that the workers have, or count here (cluster none, threads or "
            "local)"
        )
