"""What a connected cluster is, whatever started it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("sigdask.execution.clusters")

LOUD = (
    "distributed",
    "distributed.client",
    "distributed.worker",
    "tornado",
    "tornado.application",
    "asyncio",
    "asyncssh",
)
"""Loggers of dask and below; some have levels of their own."""


def nothing_to_say() -> str:
    """Say nothing about a queue that is not there."""
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """Where tasks run.

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
    said : callable
        What the queue says of jobs that are not running, for errors.
    """

    kind: str
    n_threads: int = 1
    client: Any = None
    remote: bool = False
    said: Callable[[], str] = nothing_to_say


@contextmanager
def quiet() -> Iterator[None]:
    """Keep dask's log lines of closing and lost connections off the terminal."""
    loggers = [logging.getLogger(name) for name in LOUD]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def first_line(error: BaseException) -> str:
    """Return an error's first line, or its type where it says nothing."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def last_lines(text: str, n_lines: int = 4) -> str:
    r"""Return the last lines of a log that say something, on one line.

    Examples
    --------
    >>> last_lines("a\n\nb\n", 1)
    'b'
    """
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-n_lines:])


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
