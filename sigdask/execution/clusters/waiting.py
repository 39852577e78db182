"""Waiting for workers, with progress, a time limit, and the queue's word when they do not come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sigdask.errors import UnfinishedError
from sigdask.execution.clusters.base import log

EVERY = 10.0
"""Seconds between lines of progress."""


def wait_for_workers(
    client: Any,
    n_workers: int,
    *,
    seconds: float,
    what: str,
    said: Callable[[], str],
    hopeless: Callable[[], bool] = bool,
) -> None:
    """Wait until `n_workers` are there.

    Parameters
    ----------
    client : distributed.Client
        Connected to the scheduler.
    n_workers : int
        How many.
    seconds : float
        Time limit.
    what : str
        What is waited on, for messages.
    said : callable
        What the queue says.
    hopeless : callable
        Says that none will ever come.

    Raises
    ------
    UnfinishedError
        They were not there in time; ends with what the queue said.
    """
    start = time.monotonic()
    shown = start
    while (here := len(client.nthreads())) < n_workers:
        now = time.monotonic()
        over = now - start > seconds or hopeless()
        word = said() if now - shown > EVERY or over else ""
        if over:
            detail = f"; the queue says: {word}" if word else ""
            raise UnfinishedError(f"{what}: {here} of {n_workers} workers after {now - start:.0f} s{detail}")
        if now - shown > EVERY:
            shown = now
            log.info("waiting for workers of %s: %d of %d%s", what, here, n_workers, f" ({word})" if word else "")
        time.sleep(0.1)
