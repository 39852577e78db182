"""What the program says beside its results: lines for people, or one JSON object a line for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime

STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""What every record has; anything else was given as `extra`."""


class Lines(logging.Formatter):
    """`sigdask: warning: text`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        return f"sigdask: {level}{record.getMessage()}"


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
        return json.dumps({**entry, **carried}, ensure_ascii=False, default=str)


class Stderr(logging.Handler):
    """Writes to whatever standard error is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def to_stderr(*, as_json: bool = False) -> None:
    """Send the program's log lines to standard error, once.

    Parameters
    ----------
    as_json : bool
        One JSON object a line; also asked for by ``SIGDASK_LOG=json``.
    """
    handler = Stderr()
    handler.setFormatter(JsonLines() if as_json or os.environ.get("SIGDASK_LOG") == "json" else Lines())
    logger = logging.getLogger("sigdask")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)
