"""What the program says beside its results: lines for people, or one JSON object a line for machines."""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

from sigdask.errors import SeveralError
from sigdask.report.layout import fitted
from sigdask.text import as_json, printable, printable_json

STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""What every record has; anything else was given as `extra`."""


LEAST_COLUMNS = 20
"""Columns of a terminal that says it has fewer, or none."""


def columns(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream writes on, None for a pipe."""
    if not stream.isatty():
        return None
    asked = os.environ.get("COLUMNS", "")
    try:
        found = int(asked) if asked.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream of tests, or one that is closed
        found = 0
    return max(found, LEAST_COLUMNS) if found else 80


class LogLines(logging.Formatter):
    """`sigdask: warning: text`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and one for each of several errors; no name can make a line of its own."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        parts = record.msg.parts if isinstance(record.msg, SeveralError) else (record.getMessage(),)
        text = "\n".join(map(printable, parts))
        return fitted(f"sigdask: {level}{text}", columns(sys.stderr))


class JsonLines(logging.Formatter):
    """One object a line: time (UTC), level, logger, message, and what the event carries."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        carried = {key: value for key, value in vars(record).items() if key not in STANDARD}
        return printable_json(as_json({**entry, **carried}, lines=False, other=str))


class Stderr(logging.Handler):
    """Writes to whatever standard error is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def are_json() -> bool:
    """Say whether lines are read by machines."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger("sigdask").handlers)


def to_stderr(*, in_json: bool = False) -> None:
    """Send the program's log lines to standard error, once.

    Parameters
    ----------
    in_json : bool
        One JSON object a line; also asked for by ``SIGDASK_LOG=json``.
    """
    handler = Stderr()
    handler.setFormatter(JsonLines() if in_json or os.environ.get("SIGDASK_LOG") == "json" else LogLines())
    logger = logging.getLogger("sigdask")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)
