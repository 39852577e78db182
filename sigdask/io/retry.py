"""Run requests to servers with a time limit, and repeat those that may succeed the next time."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from sigdask.io.remote_errors import build_read_error, can_retry

TIMEOUT_SECONDS = 60.0
"""Seconds in which something must come: an answer, or the next bytes of one."""

PAUSES = (0.5, 2.0)
"""Seconds to wait before each further attempt."""

T = TypeVar("T")
Beat = Callable[[], None]


def run_with_retries(work: Callable[[Beat], T], url: str) -> T:
    """Return the result of work that contacts a server; it is tried up to three times.

    Parameters
    ----------
    work : callable
        Given what it is to call whenever bytes have come.
    url : str
        The URL, as it may be written.

    Raises
    ------
    InputError
        In words that hold nothing secret, and with no other error behind it, which may.
    """
    for pause in (*PAUSES, None):
        answer, error = _run_in_thread(work)
        if error is None:
            return answer[0]
        if pause is None or not can_retry(error):
            break
        time.sleep(pause)
    assert error is not None
    failure = build_read_error(error, url)
    del error
    raise failure


def _run_in_thread(work: Callable[[Beat], T]) -> tuple[list[T], BaseException | None]:
    """Run work in a thread; return its result or error. If it shows no progress for some time, it is abandoned."""
    messages: Queue[tuple[list[T], BaseException | None] | None] = Queue()

    def run() -> None:
        try:
            messages.put(([work(lambda: messages.put(None))], None))
        except BaseException as error:  # noqa: BLE001  # it is told by whoever waits
            messages.put(([], error))

    Thread(target=run, daemon=True, name="sigdask-url").start()
    while True:
        try:
            outcome = messages.get(timeout=TIMEOUT_SECONDS)
        except Empty:
            return [], TimeoutError()
        if outcome is not None:
            return outcome
