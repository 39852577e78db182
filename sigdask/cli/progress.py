"""The progress of commands (files read, outputs extracted, trials counted) as a terminal bar or log lines."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from sigdask.cli.streams import Harmless, be_quiet, data_stream, is_json_log, log_note, terminal_columns
from sigdask.errors import UnfinishedError
from sigdask.formats.reading.files import report_reading
from sigdask.io import is_present
from sigdask.metrics.extraction.parts import ExtractionLog
from sigdask.text import format_duration, is_url

if TYPE_CHECKING:
    from sigdask.formats import Source
    from sigdask.metrics.extraction.parts import ExtractionProgress
    from sigdask.nightly.plan import Plan

SECONDS_BETWEEN_LINES = 30.0

NEAR = 0.05
"""Two shares that differ by less are shown as one."""

MAX_FILES = 10_000
"""Maximum number of files of a folder whose sizes are added up. Larger folders get no total."""


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """Progress of one step of a command, such as reading or counting.

    Attributes
    ----------
    doing : str
        Description of the step.
    of : str
        Unit of `done` and `total`.
    done, total : int
        Amount of work. None as total if it is not counted.
    left : float, optional
        Estimated seconds until the end, if there is a better estimate than from `done`.
    start : float
        When it began, on the monotonic clock.
    share : float, optional
        Share of the work that is done, if it differs from that of `done`.
    updated : float
        When the progress was last updated, on the monotonic clock.
    """

    doing: str
    of: str = ""
    done: int = 0
    total: int = 0
    left: float | None = None
    start: float = field(default_factory=time.monotonic)
    share: float | None = None
    updated: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108  # looked up when called

    @property
    def percent(self) -> str:
        """The finished share of the step as text. It is called a share of the work if the share by number differs."""
        share = self.done / self.total if self.share is None else self.share
        return f"{share:.0%}{'' if self._is_share_of_number else ' of the work'}"

    @property
    def _is_share_of_number(self) -> bool:
        """Whether about the same share of the work and of `total` is done."""
        return self.share is None or abs(self.share - self.done / self.total) <= NEAR

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self.start

    @property
    def time_left(self) -> str:
        """The time until the step ends, as text; empty if it is unknown."""
        extrapolated = self.elapsed * (self.total - self.done) / self.done if self.done else None
        left = extrapolated if self.left is None else max(self.left - (time.monotonic() - self.updated), 0.0)
        return "" if left is None else format_duration(left)

    @property
    def label(self) -> str:
        """The step in a few words: the amount that is done, or the description if the amount does not tell."""
        if self.total and not self._is_share_of_number:  # few trials of an adjustment take as long as all others
            return f"{self.doing} {self.of}"
        if self.total:
            return f"{format_short(self.done)} of {format_short(self.total)} {self.of}"
        return self.doing

    def __str__(self) -> str:
        """Return the step's progress as a line of text."""
        if not self.total:
            return f"{self.label}, {format_duration(self.elapsed)} so far"
        text = f"{self.doing}: {self.done:,} of {self.total:,} {self.of} ({self.percent})"
        about = "" if self.time_left.startswith("<") else "about "
        return f"{text}, {about}{self.time_left} left" if self.time_left else text


class ProgressLines:
    """Logs a line of progress every half minute."""

    def __init__(self) -> None:
        self._step = ProgressStep("starting")
        self._stop = threading.Event()

    def show(self, step: ProgressStep) -> None:
        """Keep the step, whose progress the next line states."""
        self._step = step

    def _log_line(self) -> None:
        while not self._stop.wait(SECONDS_BETWEEN_LINES):
            log_note(str(self._step))

    @contextmanager
    def started(self) -> Iterator[None]:
        """Log a line of progress every half minute in the body."""
        threading.Thread(target=self._log_line, name="progress", daemon=True).start()
        try:
            yield
        finally:
            self._stop.set()


class Bar:
    """A progress bar on a terminal.

    Parameters
    ----------
    bar : rich.progress.Progress
        The progress bar.
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task, self._of = None, ""
        self.show(ProgressStep("starting"))

    def show(self, step: ProgressStep) -> None:
        """Draw the progress of a step as a bar."""
        if step.doing != self._of:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._of = step.doing
            self._task = self._bar.add_task(step.doing, total=None, percent="", step=step, rate="")
        if not step.total:
            return
        self._bar.update(
            self._task,
            completed=step.done if step.share is None else step.share * step.total,
            total=step.total,
            percent=step.percent,
            step=step,
            rate=f"{format_short(int(step.done / max(step.elapsed, 1e-9)))} {step.of}/s" if step.done else "",
        )


@contextmanager
def show_progress(*, quiet: bool = False) -> Iterator[ProgressSteps]:
    """Show the progress of a command while the context is open.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    if quiet:
        yield ProgressSteps(None)
        return
    bar = _build_bar() if sys.stderr.isatty() and not is_json_log() else None
    if bar is None:
        lines = ProgressLines()
        with lines.started():
            yield ProgressSteps(lines)
        return
    with bar:
        for name in ("stdout", "stderr"):  # rich put its own there, above the bar, until it leaves
            if not isinstance(getattr(sys, name), Harmless):
                setattr(sys, name, Harmless(getattr(sys, name)))
        yield ProgressSteps(Bar(bar))


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


def _build_bar() -> Any:
    """Return a progress bar for the terminal, or None if the terminal cannot redraw a line."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    room = terminal_columns(sys.stderr) or 80
    console = Console(file=cast("IO[str]", data_stream(sys.stderr)), width=room)
    if console.is_dumb_terminal:
        return None
    bar = [BarColumn(min(40, room - TEXT_COLUMNS))] if room >= TEXT_COLUMNS + 5 else []
    texts = ["{task.fields[percent]:>4}", *(["{task.fields[rate]}"] if bar else []), "{task.fields[step].time_left}"]
    bar_columns = (TextColumn("{task.fields[step].label}"), *bar, *map(TextColumn, texts))
    return Progress(*bar_columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())


TEXT_COLUMNS = 60
"""Width reserved for numbers. Wider terminals also show a bar and the rate."""


class ProgressSteps:
    """The progress of all steps of a command, passed on to its display. A call reports trials counted.

    Parameters
    ----------
    shown : ProgressLines, Bar or None
        The display.
    """

    def __init__(self, shown: ProgressLines | Bar | None) -> None:
        self._display = shown
        self._step = ProgressStep("starting")
        self._announce = ExtractionLog(log_note, every=math.inf)
        self._offsets: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}
        self._total_bytes = self._bytes_done = 0
        self.n_threads = 0  # 0 before anything is counted

    def __call__(self, done: int, total: int) -> None:
        """Show how many of the trials are counted."""
        self._show(ProgressStep("counting", "trials", done, total), then="judging")

    def show_trials(self, done: int, total: int, share: float, left: float) -> None:
        """Show how many of the trials are counted, with the share of the work done and the seconds left."""
        self._show(ProgressStep("counting", "trials", done, total, left, share=share), then="judging")

    def show_samples(self, done: int, total: int) -> None:
        """Show how many simulated samples are drawn, round by round."""
        self._show(ProgressStep("simulating", "samples", done, total), then="simulating")

    def show_extraction(self, how_far: ExtractionProgress) -> None:
        """Show how many outputs are extracted. A log line says beforehand what is extracted and for how long."""
        self._announce(how_far)
        self._show(ProgressStep(f"extracting {how_far.what}", "outputs", how_far.done, how_far.total, how_far.left))

    def show_start(self, total: int, seconds: float, n_threads: int) -> None:
        """Show how long counting is expected to take."""
        self.n_threads = n_threads
        if self._step.doing != "counting":
            self.show_trials(0, total, 0.0, seconds)

    @contextmanager
    def show_reading(self, paths: Iterable[Path]) -> Iterator[None]:
        """Show in the body how much of the given files and folders has been read."""
        self._sizes = {file: file.stat().st_size for path in paths for file in _list_files(path)}
        self._total_bytes, self._bytes_done, self._offsets = sum(self._sizes.values()), 0, {}
        with report_reading(self._update_reading):
            yield
        self._begin_step("preparing")

    def _update_reading(self, path: Path, offset: int) -> None:
        if path in self._sizes:
            offset = min(offset, self._sizes[path])
            self._bytes_done += offset - self._offsets.get(path, 0)  # less than before where it is read again
            self._offsets[path] = offset
            self._show(ProgressStep("reading", "bytes", self._bytes_done, self._total_bytes))

    def _show(self, step: ProgressStep, then: str = "preparing") -> None:
        """Show the progress of a step, or begin the step `then` if this one is complete."""
        if step.done >= step.total:
            self._begin_step(then)
            return
        start = self._step.start if self._step.doing == step.doing else time.monotonic()
        self._set_step(replace(step, start=start))

    def _begin_step(self, doing: str) -> None:
        if self._step.doing != doing:
            self._set_step(ProgressStep(doing))

    def _set_step(self, step: ProgressStep) -> None:
        self._step = step
        if self._display is not None:
            self._display.show(step)


def list_source_paths(sources: Iterable[Source]) -> Iterator[Path]:
    """Yield the paths of the files and folders that sources consist of."""
    for source in sources:
        yield from source.parts or (source.path,)


def list_plan_files(plan: Plan) -> Iterator[Path]:
    """Yield the files that a plan reads."""
    for test_set in plan.test_sets:
        yield from filter(None, (test_set.gold, *list_source_paths(test_set.sources)))
    yield from (part.path for part in plan.rankings)
    yield from (path for part in plan.independence for path in part.list_files())


def _list_files(path: Path) -> Iterator[Path]:
    """Yield a local file, or all files in a local folder; nothing for a URL."""
    if is_url(str(path)):
        return
    inner = islice(path.rglob("*"), MAX_FILES) if is_present(path.is_dir) else ()
    yield from (file for file in (path, *inner) if is_present(file.is_file))


def format_short(n: int) -> str:
    """Write a number in at most five characters.

    Examples
    --------
    >>> format_short(950), format_short(1_048_576), format_short(68_719_476_736)
    ('950', '1.05M', '68.7G')
    """
    if n < 10_000:
        return f"{n:,}"
    power = min((len(str(n)) - 1) // 3, 5)
    return f"{n / 1000**power:.3g}{' kMGTP'[power]}"
