"""Stop a run by deadline or signal. Neither depends on exceedances, so that counted trials stay valid."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from sigdask.errors import InputError

DEADLINE = "the deadline"
SECONDS_PER_UNIT = {"h": 3600, "m": 60, "s": 1}


class StopRequest(BaseException):  # not an Exception, so that no handler of errors catches it
    """Exception that ends an interruptible section when the run should stop."""


class StopSignal:
    """A deadline or signal that stops a run, with the reason.

    Attributes
    ----------
    deadline : float or None
        Seconds since 1970.
    reason : str
        Empty until the run should stop.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.deadline = deadline
        self.reason = ""
        self._waiting = False

    def is_due(self) -> bool:
        """Return whether the run should stop, because of a signal or its deadline."""
        if not self.reason and self.deadline is not None and time.time() >= self.deadline:
            self.reason = DEADLINE
        return bool(self.reason)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Let a signal or the deadline interrupt the body; elsewhere it only sets the reason to stop."""
        self._waiting = True
        try:
            if self.is_due():
                raise StopRequest
            yield
        finally:
            self._waiting = False

    def reserve_time(self, seconds: float) -> None:
        """Move the deadline earlier by at most half of the remaining time, which leaves time to judge the results."""
        if self.deadline is None:
            return
        self.deadline -= min(seconds, max(self.deadline - time.time(), 0) / 2)
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self.deadline is not None and threading.current_thread() is threading.main_thread():
            # repeats each second, because the first signal may come when nothing waits
            signal.setitimer(signal.ITIMER_REAL, max(self.deadline - time.time(), 1e-3), 1.0)

    def sleep(self, seconds: float) -> None:
        """Wait for some seconds; a stop interrupts the wait."""
        with self.interruptible():
            time.sleep(seconds)

    @contextmanager
    def catch_signals(self) -> Iterator[None]:
        """Treat SIGTERM, SIGINT and the deadline as requests to stop in the body; a second signal ends the program."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread gets signals; other threads check the deadline between tasks
            return
        previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)}

        def on_signal(number: int, _frame: Any) -> None:
            if number == signal.SIGALRM:
                self.is_due()
            else:
                self.reason = self.reason or signal.Signals(number).name
                signal.signal(number, previous[signal.Signals(number)])
            if self._waiting and self.reason:
                self._waiting = False
                raise StopRequest

        for number in previous:
            signal.signal(number, on_signal)
        self._set_alarm()
        try:
            yield
        finally:
            if self.deadline is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in previous.items():
                signal.signal(number, handler)


def parse_deadline(text: str, now: datetime | None = None) -> float:
    """Return seconds since 1970 of a time of day (the next one), a date and time, or a duration.

    Examples
    --------
    >>> evening = datetime(2026, 1, 31, 22, 0)
    >>> datetime.fromtimestamp(parse_deadline("06:00", evening)).isoformat()
    '2026-02-01T06:00:00'
    >>> datetime.fromtimestamp(parse_deadline("1h30m", evening)).isoformat()
    '2026-01-31T23:30:00'
    """
    now = now or datetime.now()  # noqa: DTZ005  # local time is meant
    parts = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    try:
        if parts is not None and any(parts.groups()):
            seconds = sum(int(n) * unit for n, unit in zip(parts.groups("0"), SECONDS_PER_UNIT.values(), strict=True))
            return (now + timedelta(seconds=min(seconds, 10 * 365 * 86400))).timestamp()
        if re.fullmatch(r"\d{1,2}:\d{2}(:\d{2})?", text.strip()):
            hours, minutes, *rest = (int(part) for part in text.split(":"))
            time_today = now.replace(hour=hours, minute=minutes, second=rest[0] if rest else 0, microsecond=0)
            return (time_today if time_today > now else time_today + timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(
            f"deadline {text!r}: expected a time such as 06:00, a duration such as 90m or 1h30m, or a date and time"
        ) from None
