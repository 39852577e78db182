"""Waiting for workers: with progress, a time limit, and the queue's status if they do not come."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from sigdask.errors import UnfinishedError
from sigdask.execution.clusters.base import log

PROGRESS_SECONDS = 10.0
"""Seconds between lines of progress."""


def wait_for_workers(
    client: Any,
    n_workers: int,
    *,
    seconds: float,
    what: str,
    get_status: Callable[[], str],
    is_hopeless: Callable[[], bool] = bool,
) -> None:
    """Wait until the cluster has at least `n_workers` workers; raise if they do not come in time.

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
    get_status : callable
        What the queue says.
    is_hopeless : callable
        Says that none will ever come.

    Raises
    ------
    UnfinishedError
        They were not there in time; ends with what the queue said.
    """
    start = time.monotonic()
    last_shown = start
    while (n_present := len(client.nthreads())) < n_workers:
        now = time.monotonic()
        is_over = now - start > seconds or is_hopeless()
        status = get_status() if now - last_shown > PROGRESS_SECONDS or is_over else ""
        if is_over:
            detail = f"; the queue says: {status}" if status else ""
            raise UnfinishedError(f"{what}: {n_present} of {n_workers} workers after {now - start:.0f} s{detail}")
        if now - last_shown > PROGRESS_SECONDS:
            last_shown = now
            log.info(
                "waiting for workers of %s: %d of %d%s", what, n_present, n_workers, f" ({status})" if status else ""
            )
        time.sleep(0.1)
