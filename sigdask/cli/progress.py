"""The progress of commands (outputs extracted, trials counted) as a terminal bar or log lines."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

from sigdask.cli.streams import Harmless, be_quiet, data_stream, is_json_log, log_note, terminal_columns
from sigdask.errors import UnfinishedError
from sigdask.metrics.extraction import ExtractionLog, ExtractionProgress
from sigdask.text import format_duration

SECONDS_BETWEEN_LINES = 30.0


class ProgressSteps:
    """The steps of a command, one after the other, of which one is under way. A call reports trials counted.

    Parameters
    ----------
    show : callable, optional
        Shows the progress after each change. By default nothing is shown.

    Attributes
    ----------
    counting : tuple of str
        What a call reports: the step, its unit, and the step after it.
    text : str
        The step that is under way, and how far it is.
    share : float or None
        Share of its work that is done, if it is counted. Few trials may take as long as all others.
    """

    def __init__(self, show: Callable[[ProgressSteps], None] = lambda _: None) -> None:
        self._show = show
        self._announce = ExtractionLog(log_note, every=math.inf)
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
        self._announce(how_far)
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
def show_progress(*, quiet: bool = False) -> Iterator[ProgressSteps]:
    """Show the progress of a command while the context is open.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    if quiet:
        yield ProgressSteps()
        return
    bar = _build_bar() if sys.stderr.isatty() and not is_json_log() else None
    if bar is None:
        steps, stop = ProgressSteps(), threading.Event()
        threading.Thread(target=_log_lines, args=(steps, stop), name="progress", daemon=True).start()
        try:
            yield steps
        finally:
            stop.set()
        return
    with bar:
        for name in ("stdout", "stderr"):  # rich put its own there, above the bar, until it leaves
            if not isinstance(getattr(sys, name), Harmless):
                setattr(sys, name, Harmless(getattr(sys, name)))
        task = bar.add_task("reading", total=None)
        yield ProgressSteps(
            lambda steps: bar.update(
                task, description=steps.text, completed=steps.share or 0, total=None if steps.share is None else 1
            )
        )


@contextmanager
def show_analysis(*, quiet: bool) -> Iterator[ProgressSteps]:
    """Show the progress of an analysis, which Ctrl-C ends before anything is written.

    Parameters
    ----------
    quiet : bool
        Show nothing, and log only warnings and errors from now on.
    """
    if quiet:
        be_quiet()
    with show_progress(quiet=quiet) as steps:
        try:
            yield steps
        except KeyboardInterrupt:
            raise UnfinishedError("interrupted; nothing was written") from None


def _log_lines(steps: ProgressSteps, stop: threading.Event) -> None:
    """Log a line of progress every half minute."""
    while not stop.wait(SECONDS_BETWEEN_LINES):
        log_note(steps.text)


def _build_bar() -> Any:
    """Return a progress bar for the terminal, or None if the terminal cannot redraw a line."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    console = Console(file=cast("IO[str]", data_stream(sys.stderr)), width=terminal_columns(sys.stderr))
    if console.is_dumb_terminal:
        return None
    text = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))
    return Progress(BarColumn(12), text, console=console, transient=True, redirect_stdout=sys.stdout.isatty())
