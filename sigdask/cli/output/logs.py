"""Log lines on standard error: text for people, or one JSON object a line for programs."""

from __future__ import annotations

import logging
import os
import sys
from datetime import UTC, datetime
from typing import TextIO

from sigdask.errors import SeveralError
from sigdask.report.layout import wrap_lines
from sigdask.text import as_json, escape_json, make_printable

STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""What every record has; anything else was given as `extra`."""


LEAST_COLUMNS = 20
"""Columns of a terminal that says it has fewer, or none."""


def terminal_columns(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream writes to, None for a pipe."""
    if not stream.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    try:
        n_columns = int(wanted) if wanted.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream of tests, or one that is closed
        n_columns = 0
    return max(n_columns, LEAST_COLUMNS) if n_columns else 80


class LogLines(logging.Formatter):
    """Formatter of log records for people, as `sigdask: warning: text`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, or as a line for each of several errors; line breaks in names are escaped."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        parts = record.msg.parts if isinstance(record.msg, SeveralError) else (record.getMessage(),)
        text = "\n".join(map(make_printable, parts))
        return wrap_lines(f"sigdask: {level}{text}", terminal_columns(sys.stderr))


class JsonLines(logging.Formatter):
    """Formatter of log records as a line of JSON each: time (UTC), level, logger, message, and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {key: value for key, value in vars(record).items() if key not in STANDARD_FIELDS}
        return escape_json(as_json({**entry, **extra}, lines=False, default=str))


class Stderr(logging.Handler):
    """A log handler that writes to what `sys.stderr` is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record as a line."""
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def is_json_log() -> bool:
    """Return whether log lines are JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger("sigdask").handlers)


def log_to_stderr(*, in_json: bool = False) -> None:
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
