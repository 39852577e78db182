"""The class of connected clusters, and helpers for logs and errors."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("sigdask.execution.clusters")

NOISY_LOGGERS = (
    "distributed",
    "distributed.client",
    "distributed.worker",
    "tornado",
    "tornado.application",
    "asyncio",
    "asyncssh",
)
"""Loggers of dask and below; some have levels of their own."""


def get_no_status() -> str:
    """Return the status of clusters that have no queue: an empty text."""
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """A connected cluster of any kind, on which tasks run.

    Attributes
    ----------
    kind : str
        "none", "threads", or "dask".
    n_threads : int
        Tasks that run at the same time, once all workers are there.
    client : distributed.Client or None
        For kind "dask".
    remote : bool
        Workers may be other machines: only arrays and names are sent to them, no code.
    get_status : callable
        What the queue says of jobs that are not running, for errors.
    """

    kind: str
    n_threads: int = 1
    client: Any = None
    remote: bool = False
    get_status: Callable[[], str] = get_no_status


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
