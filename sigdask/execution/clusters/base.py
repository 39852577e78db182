"""Connected clusters, dask's active client and configured scheduler, and helpers for logs and errors."""

from __future__ import annotations

import logging
import os
import site
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

log = logging.getLogger("sigdask.execution.clusters")

NOISY_LOGGERS = (
    "distributed", "distributed.client", "distributed.worker", "tornado", "tornado.application", "asyncio", "asyncssh",
)  # fmt: skip
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


@contextmanager
def silence_dask() -> Iterator[None]:
    """Suppress the log messages of dask and its libraries, except critical ones, while the `with` body runs."""
    loggers = [logging.getLogger(name) for name in NOISY_LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


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


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_dask_object(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask, by its attributes.

    Examples
    --------
    >>> is_dask_object("local"), is_dask_object({"class": "local"})
    (False, False)
    """
    return any(hasattr(cluster, attribute) for attribute in ("scheduler_address", "run_on_scheduler"))


def find_active() -> Any:
    """Return dask's active client, or the scheduler's address in dask's settings, or None.

    Within a task it is None, because the task would wait for tasks that wait for it. dask is imported only if its
    settings may name a scheduler.
    """
    if "distributed" in sys.modules:
        import distributed

        with suppress(ValueError):
            distributed.get_worker()
            return None
        with suppress(ValueError):
            return distributed.Client.current()
    return get_configured_address() if "dask" in sys.modules or _may_have_address() else None


def get_configured_address() -> Any:
    """Return the scheduler's address in dask's settings, or None."""
    import dask

    address = dask.config.get("scheduler-address", None)
    if address is None:
        return None
    return address if "://" in address else f"{dask.config.get('distributed.comm.default-scheme', 'tcp')}://{address}"


def _may_have_address() -> bool:
    """Return whether the environment or any of dask's settings files may name a scheduler's address."""
    if "DASK_SCHEDULER_ADDRESS" in os.environ:
        return True
    paths = [os.environ.get("DASK_ROOT_CONFIG", "/etc/dask"), os.path.expanduser("~/.config/dask")]  # noqa: PTH111  # may be none
    paths += [f"{prefix}/etc/dask" for prefix in (sys.prefix, *site.PREFIXES)]
    paths += [os.environ["DASK_CONFIG"]] if "DASK_CONFIG" in os.environ else []
    for path in map(Path, paths):
        with suppress(OSError):  # cannot be read
            files = [path] if path.is_file() else [*path.glob("*.[yj]*")]
            if any(b"scheduler-address" in file.read_bytes().replace(b"_", b"-") for file in files):
                return True
    return False


def is_closed(cluster: Any) -> bool:
    """Return whether an object is a client or cluster of dask that is closed and cannot be used again."""
    return is_dask_object(cluster) and get_status(cluster) in {"closed", "closing", "failed"}


def get_status(handle: Any) -> str:
    """Return the status of a client or cluster as one word."""
    status = getattr(handle, "status", None)
    return str(getattr(status, "name", status))  # dask-gateway's status is a word, dask's own an enumeration
