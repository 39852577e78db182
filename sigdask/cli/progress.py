"""The progress of commands (outputs extracted, trials counted) as a terminal bar or log lines."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sigdask.cli.streams import LOG, is_json_log
from sigdask.metrics.extraction import ExtractionLog, ExtractionProgress
from sigdask.text import format_duration

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
        self._announce = ExtractionLog(LOG.info, every=math.inf)
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
def show_progress() -> Iterator[ProgressSteps]:
    """Show the progress of a command while the context is open: as a bar on a terminal, else as a line at times."""
    can_redraw = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"}
    if not can_redraw or is_json_log() or not LOG.isEnabledFor(logging.INFO):
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
