"""Standard output and log lines with control characters replaced, so that text from users cannot control a terminal.

Log lines go to standard error. The progress of commands (outputs extracted, trials counted) is shown there too, as a
terminal bar or log lines.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from sigdask.errors import SeveralError, UnfinishedError
from sigdask.report.text import COLUMN_GAP, wrap_lines
from sigdask.text import format_duration, make_printable, redact, shorten_message

if TYPE_CHECKING:
    from sigdask.metrics.extraction import ExtractionProgress

LOG = logging.getLogger("sigdask")

MIN_COLUMNS = 20
"""Width used if the terminal claims to be narrower."""


def terminal_columns(stream: TextIO | None) -> int | None:
    """Return the columns of the terminal that a stream writes to, None for a pipe."""
    if stream is None or not stream.isatty():
        return None
    from rich.console import Console

    return max(Console(file=stream).width, MIN_COLUMNS)


def output_columns() -> int | None:
    """Return the columns of the terminal that results are printed on, None for a pipe."""
    return terminal_columns(sys.stdout)


def print_text(text: str, *, hang: int = COLUMN_GAP) -> None:
    """Print text on standard output, wrapped to the terminal's width. Letters that the terminal lacks become `?`."""
    lines = wrap_lines(make_printable(text, keep="\n"), output_columns(), hang=hang)
    encoding = getattr(sys.stdout, "encoding", "utf-8")
    print_data([lines.encode(encoding, "replace").decode(encoding), "\n"])


def print_line(text: str, *, hang: int = COLUMN_GAP) -> None:
    """Print one line on standard output, in which line breaks in names are replaced too."""
    print_text(make_printable(text), hang=hang)


def print_data(parts: Iterable[str]) -> None:
    """Write data on standard output as they are. If its reader has gone, they are dropped.

    Raises
    ------
    UnfinishedError
        Standard output is closed, or its disk is full.
    """
    if sys.stdout is None:
        raise UnfinishedError("standard output: cannot be written (it is closed)")
    try:
        sys.stdout.writelines(parts)
        sys.stdout.flush()
    except (OSError, UnicodeEncodeError) as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in the buffer
        if not isinstance(error, BrokenPipeError):
            reason = getattr(error, "strerror", None) or error
            raise UnfinishedError(f"standard output: cannot be written ({reason})") from None


class LogLines(logging.Formatter):
    """Formatter of log records for people, as `sigdask: warning: text`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, or as a line for each of several errors; line breaks in names are escaped."""
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        parts = record.msg.parts if isinstance(record.msg, SeveralError) else (record.getMessage(),)
        text = "\n".join(make_printable(shorten_message(redact(part))) for part in parts)
        return wrap_lines(f"sigdask: {level}{text}", terminal_columns(sys.stderr))


class Stderr(logging.StreamHandler[TextIO]):
    """A log handler that writes to the current `sys.stderr`, which a progress bar replaces."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log record as a line."""
        self.stream = sys.stderr
        super().emit(record)


def log_to_stderr() -> None:
    """Send the program's log lines to standard error."""
    handler = Stderr()
    handler.setFormatter(LogLines())
    LOG.handlers = [handler]
    LOG.propagate = False
    LOG.setLevel(logging.INFO)


def be_quiet() -> None:
    """Log only warnings and errors from now on."""
    LOG.setLevel(logging.WARNING)


SECONDS_BETWEEN_LINES = 30.0


class ProgressSteps:
    """The steps of a command, one after the other, of which one is under way. A call reports trials counted.

    Parameters
    ----------
    show : callable
        Shows the progress after each change.

    Attributes
    ----------
    counting : tuple of str
        What a call reports: the step, its unit, and the step after it.
    text : str
        The step that is under way, and how far it is.
    share : float or None
        Share of its work that is done, if it is counted. Few trials may take as long as all others.
    """

    def __init__(self, show: Callable[[ProgressSteps], None]) -> None:
        self._show = show
        self.counting = ("counting", "trials", "judging")
        self.text = "reading"
        self.share: float | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show how many of the trials are counted."""
        self.show_trials(done, total)

    def show_trials(self, done: int, total: int, share: float | None = None, left: float | None = None) -> None:
        """Show how many of the trials are counted, with the share of the work done and the seconds left."""
        self._set_step(*self.counting, done, total, share, left)

    def show_extraction(self, how_far: ExtractionProgress) -> None:
        """Show how many outputs are extracted. A log line says beforehand what is extracted and for how long."""
        if not how_far.done and how_far.left >= 1:
            LOG.info(str(how_far))
        step = f"extracting {how_far.what}", "outputs", "preparing"
        self._set_step(*step, how_far.done, how_far.total, None, how_far.left)

    def show_start(self, total: int, seconds: float, _: int) -> None:
        """Show how long counting is expected to take."""
        if self.share is None:
            self.show_trials(0, total, 0.0, seconds)

    def _set_step(
        self, doing: str, unit: str, then: str, done: int, total: int, share: float | None, left: float | None
    ) -> None:
        """Show the progress of a step, or begin the step `then` if this one is complete."""
        if done >= total:
            self.text, self.share = then, None
        else:
            time_left = "" if left is None else f", about {format_duration(left)} left"
            self.text = f"{doing}: {done:,} of {total:,} {unit} ({100 * done // total}%){time_left}"
            self.share = done / total if share is None else share
        self._show(self)


@contextmanager
def show_progress() -> Iterator[ProgressSteps]:
    """Show the progress of a command while the context is open: as a bar on a terminal, else as a line at times."""
    can_redraw = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
    if not can_redraw or not LOG.isEnabledFor(logging.INFO):
        yield ProgressSteps(_LineAtTimes())
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    console = Console(stderr=True)
    with Progress(BarColumn(12), text, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("reading", total=None)
        yield ProgressSteps(
            lambda steps: bar.update(
                task, description=steps.text, completed=steps.share or 0, total=None if steps.share is None else 1
            )
        )


class _LineAtTimes:
    """Logs the step that is under way, if the last line is half a minute old."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, steps: ProgressSteps) -> None:
        if time.monotonic() - self._last >= SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            LOG.info(steps.text)
