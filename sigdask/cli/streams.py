"""Standard output and error with control characters escaped, also when their reader has gone.

All text for `sys.stdout` and `sys.stderr` goes through this module. Text from users cannot control the terminal, and
output to a stream that is closed, full or no longer read is dropped. Only `data_stream` passes data and progress bars
on unchanged.

Log lines go to standard error: text for people, or one JSON object per line for programs.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO, Any, TextIO, cast

import click

from sigdask.errors import SeveralError
from sigdask.report.text import COLUMN_GAP, wrap_lines
from sigdask.text import as_json, escape_json, make_printable, redact, shorten_message

COLOURS = re.compile(r"(\x1b\[[\d;]*m)+")
"""Escape sequences that set a colour, and reset it."""


class LossTolerantStream:
    """A text stream that does not raise if its reader is gone or the disk is full, but records why.

    Parameters
    ----------
    stream : text stream or None
        The underlying stream, or None if it is closed.

    Attributes
    ----------
    lost : str
        Reason why output was lost. Empty if all arrived, or if the reader closed the pipe.
    open : bool
        Whether further output may still arrive.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self.open = stream is not None
        self.lost = ""

    def write(self, text: str) -> int:
        """Write text unchanged."""
        if self._stream is None and text:
            self.lost = "it is closed"
        self._attempt(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Flush the buffer."""
        self._attempt(lambda stream: stream.flush())

    def _attempt(self, call: Callable[[TextIO], object]) -> None:
        """Call a function with the stream while it is open; if that fails, note why, and discard later output."""
        if self.open:
            try:
                call(cast("TextIO", self._stream))
            except (OSError, ValueError) as error:
                self.open = False
                reason = getattr(error, "strerror", None) or str(error)
                self.lost = "" if isinstance(error, BrokenPipeError) else reason
                with suppress(OSError, ValueError):  # buffered output goes to the null device
                    os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())

    def isatty(self) -> bool:
        """Return whether the stream is a terminal."""
        return self.open and cast("TextIO", self._stream).isatty()

    def fileno(self) -> int:
        """Return the file descriptor, if there is one."""
        if self._stream is None:
            raise io.UnsupportedOperation("fileno")
        return self._stream.fileno()

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return getattr(self._stream, "encoding", None) or "utf-8"


class Harmless(LossTolerantStream):
    """A text stream that escapes control characters and replaces characters that its encoding lacks.

    Attributes
    ----------
    exactly : LossTolerantStream
        The same stream for data.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.exactly = LossTolerantStream(stream)
        super().__init__(cast("TextIO", self.exactly))

    def write(self, text: str) -> int:
        """Write text with control characters escaped; a text that is only colour codes is dropped."""
        if not COLOURS.fullmatch(text):
            escaped = make_printable(text, keep="\n")
            super().write(escaped.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)


def protect_streams() -> None:
    """Replace standard output and error by streams that escape control characters and tolerate lost readers.

    Their file descriptors stay occupied, so that no file opened later receives output meant for them.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        setattr(sys, name, Harmless(stream.exactly._stream if isinstance(stream, Harmless) else stream))  # noqa: SLF001  # our own


def data_stream(stream: IO[Any]) -> LossTolerantStream:
    """Return the stream that writes to the same place as a text stream, but without escaping anything."""
    return stream.exactly if isinstance(stream, Harmless) else LossTolerantStream(cast("TextIO", stream))


def describe_lost_output() -> str:
    """Return why output was lost; empty if all was written or the reader closed the pipe."""
    stream = data_stream(sys.stdout)
    stream.flush()
    return stream.lost


STANDARD_FIELDS = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime"}
"""Attributes of every log record. All others were given as `extra`."""


MIN_COLUMNS = 20
"""Width used if the terminal claims to be narrower, or does not know."""


def terminal_columns(stream: TextIO) -> int | None:
    """Return the columns of the terminal that a stream writes to, None for a pipe."""
    if not stream.isatty():
        return None
    wanted = os.environ.get("COLUMNS", "")
    try:
        n_columns = int(wanted) if wanted.isdecimal() else os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a stream of tests, or one that is closed
        n_columns = 0
    return max(n_columns, MIN_COLUMNS) if n_columns else 80


class LogLines(logging.Formatter):
    """Formatter of log records for people, as `sigdask: warning: text`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, or as a line for each of several errors; line breaks in names are escaped."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        parts = record.msg.parts if isinstance(record.msg, SeveralError) else (record.getMessage(),)
        text = "\n".join(make_printable(shorten_message(redact(part))) for part in parts)
        return wrap_lines(f"sigdask: {level}{text}", terminal_columns(sys.stderr))


class JsonLines(logging.Formatter):
    """Formatter of log records as a line of JSON each: time (UTC), level, logger, message, and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line of JSON."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": shorten_message(redact(record.getMessage())),
        }
        extra = {key: value for key, value in vars(record).items() if key not in STANDARD_FIELDS}
        return redact(escape_json(as_json({**entry, **extra}, lines=False, default=str)))


class Stderr(logging.Handler):
    """A log handler that writes to the current `sys.stderr`."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record as a line."""
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def is_json_log() -> bool:
    """Return whether log lines are JSON."""
    return any(isinstance(handler.formatter, JsonLines) for handler in logging.getLogger("sigdask").handlers)


def log_to_stderr() -> None:
    """Send the program's log lines to standard error, once, as one JSON object per line with ``SIGDASK_LOG=json``."""
    handler = Stderr()
    handler.setFormatter(JsonLines() if os.environ.get("SIGDASK_LOG") == "json" else LogLines())
    logger = logging.getLogger("sigdask")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)


HELP_NAMES = {"help_option_names": ["-h", "--help"]}
"""Context settings of click: the names of the help option."""

LOG = logging.getLogger("sigdask")

WORDS = "sigdask.words"
"""Key in click's context under which the words of the command line are stored."""


def log_note(text: str) -> None:
    """Log a message for people other than a result, such as how files were read."""
    LOG.info(text)


def print_text(text: str, *, on_stderr: bool = False, hang: int = COLUMN_GAP) -> None:
    """Print text on standard output, or on standard error if `on_stderr`, wrapped to the terminal's width.

    The caller has already escaped users' words in it.
    """
    click.echo(wrap_lines(text, terminal_columns(sys.stderr if on_stderr else sys.stdout), hang=hang), err=on_stderr)


def clear_terminal() -> None:
    """Clear the terminal that results are printed on, if they are printed on one."""
    if sys.stdout.isatty():
        data_stream(sys.stdout).write("\x1b[H\x1b[2J")


def be_quiet() -> None:
    """Log only warnings and errors from now on."""
    LOG.setLevel(logging.WARNING)


def output_columns() -> int | None:
    """Return the columns of the terminal that results are printed on, None for a pipe."""
    return terminal_columns(sys.stdout)


def print_data(text: str) -> None:
    """Write data on standard output: byte for byte into a pipe, escaped on a terminal."""
    (sys.stdout if sys.stdout.isatty() else data_stream(sys.stdout)).write(text)
