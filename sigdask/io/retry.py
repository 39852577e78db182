"""Asking a server: not for ever, and again where that may help."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread
from typing import TypeVar

from sigdask.io.remote_errors import may_pass, refusal

PATIENCE = 60.0
"""Seconds in which something must come: an answer, or the next bytes of one."""

PAUSES = (0.5, 2.0)
"""Seconds to wait before each further attempt."""

T = TypeVar("T")
Beat = Callable[[], None]


def patiently(work: Callable[[Beat], T], shown: str) -> T:
    """Do work that asks a server, three times at most.

    Parameters
    ----------
    work : callable
        Given what it is to call whenever bytes have come.
    shown : str
        The URL, as it may be written.

    Raises
    ------
    InputError
        In words that hold nothing secret, and with no other error behind it, which may.
    """
    for pause in (*PAUSES, None):
        answer, error = _watched(work)
        if error is None:
            return answer[0]
        if pause is None or not may_pass(error):
            break
        time.sleep(pause)
    assert error is not None
    told = refusal(error, shown)
    del error
    raise told


def _watched(work: Callable[[Beat], T]) -> tuple[list[T], BaseException | None]:
    """Return what came of the work in a thread of its own, which is left behind where it stands still."""
    heard: Queue[tuple[list[T], BaseException | None] | None] = Queue()

    def run() -> None:
        try:
            heard.put(([work(lambda: heard.put(None))], None))
        except BaseException as error:  # noqa: BLE001  # it is told by whoever waits
            heard.put(([], error))

    Thread(target=run, daemon=True, name="sigdask-url").start()
    while True:
        try:
            found = heard.get(timeout=PATIENCE)
        except Empty:
            return [], TimeoutError()
        if found is not None:
            return found
