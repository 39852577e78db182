"""How far a command is: files read, outputs extracted, trials counted; a bar on a terminal, else lines."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, cast

from sigdask.cli.output.logs import are_json, columns
from sigdask.cli.output.say import note
from sigdask.cli.output.streams import Harmless, exactly
from sigdask.formats.reading.files import telling
from sigdask.io import is_there, is_url
from sigdask.metrics import extraction
from sigdask.text import count_noun, duration

if TYPE_CHECKING:
    from sigdask.execution.prefetch import WorkEstimate
    from sigdask.formats import Source
    from sigdask.metrics.extraction import ExtractionProgress
    from sigdask.nightly.plan import Plan

EVERY = 30.0
"""Seconds between two lines."""

MOST_FILES = 10_000
"""Of a folder, whose sizes are added up; of further ones nothing is told."""


@dataclass(frozen=True, slots=True)
class ProgressStep:
    """How far one step of a command is.

    Attributes
    ----------
    doing : str
        What is done.
    of : str
        What it is counted in.
    done, total : int
        How much of it; no total where it is not counted.
    left : float, optional
        Seconds until its end, where it is better known than by what is done.
    start : float
        When it began, on the monotonic clock.
    share : float, optional
        Share of the work that is done, where it is not that of `done`.
    told : float
        When this was so, on the monotonic clock.
    """

    doing: str
    of: str = ""
    done: int = 0
    total: int = 0
    left: float | None = None
    start: float = field(default_factory=time.monotonic)
    share: float | None = None
    told: float = field(default_factory=lambda: time.monotonic())  # noqa: PLW0108  # looked up when called

    @property
    def percent(self) -> str:
        """Write the share that is done."""
        return f"{self.done / self.total if self.share is None else self.share:.0%}"

    @property
    def spent(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.start

    @property
    def time_left(self) -> str:
        """Say how long it still takes; nothing where that is not known yet."""
        known = self.spent * (self.total - self.done) / self.done if self.done else None
        left = known if self.left is None else max(self.left - (time.monotonic() - self.told), 0.0)
        return "" if left is None else duration(left)

    def __str__(self) -> str:
        """Say it in a line."""
        if not self.total:
            return f"{self.doing}, for {duration(self.spent)}"
        text = f"{self.doing}: {self.done:,} of {self.total:,} {self.of} ({self.percent})"
        return f"{text}, about {self.time_left} left" if self.time_left else text


class ProgressDisplay(Protocol):
    """What shows steps."""

    def show(self, step: ProgressStep) -> None:
        """Show how far one is."""


class NoDisplay:
    """Shows nothing."""

    def show(self, step: ProgressStep) -> None:
        """Pass over it."""


class ProgressLines:
    """A line every half minute, however seldom there is news."""

    def __init__(self) -> None:
        self._step = ProgressStep("starting")
        self._over = threading.Event()

    def show(self, step: ProgressStep) -> None:
        """Keep what the next line says."""
        self._step = step

    def _say(self) -> None:
        while not self._over.wait(EVERY):
            note(str(self._step))

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write lines within."""
        threading.Thread(target=self._say, name="progress", daemon=True).start()
        try:
            yield
        finally:
            self._over.set()


class Bar:
    """A bar on a terminal.

    Parameters
    ----------
    bar : rich.progress.Progress
        What draws it.
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task, self._of = None, ""
        self.show(ProgressStep("starting"))

    def show(self, step: ProgressStep) -> None:
        """Draw it."""
        if step.doing != self._of:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._of = step.doing
            self._task = self._bar.add_task(step.doing, total=None, percent="", left="", rate="")
        if not step.total:
            return
        self._bar.update(
            self._task,
            description=f"{short(step.done)} of {short(step.total)} {step.of}",
            completed=step.done if step.share is None else step.share * step.total,
            total=step.total,
            percent=step.percent,
            left=_TimeLeftColumn(step),
            rate=f"{short(int(step.done / max(step.spent, 1e-9)))} {step.of}/s" if step.done else "",
        )


class _TimeLeftColumn:
    """Writes the time left anew whenever the bar is drawn, also while nothing is told."""

    def __init__(self, step: ProgressStep) -> None:
        self._step = step

    def __str__(self) -> str:
        return self._step.time_left


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[ProgressSteps]:
    """Show how far a command is, from its start.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    if quiet:
        yield ProgressSteps(NoDisplay())
        return
    bar = _bar() if sys.stderr.isatty() and not are_json() else None
    if bar is None:
        lines = ProgressLines()
        with lines.written():
            yield ProgressSteps(lines)
        return
    with bar:
        for name in ("stdout", "stderr"):  # rich put its own there, above the bar, until it leaves
            if not isinstance(getattr(sys, name), Harmless):
                setattr(sys, name, Harmless(getattr(sys, name)))
        yield ProgressSteps(Bar(bar))


def _bar() -> Any:
    """Return what draws on the terminal, None where it cannot move its cursor."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    room = columns(sys.stderr) or 80
    console = Console(file=cast("IO[str]", exactly(sys.stderr)), width=room)
    if console.is_dumb_terminal:
        return None
    bar = [BarColumn(min(40, room - FOR_BAR))] if room >= FOR_BAR + 5 else []
    texts = ["{task.fields[percent]:>4}", *(["{task.fields[rate]}"] if bar else []), "{task.fields[left]}"]
    shown = (TextColumn("{task.description}"), *bar, *map(TextColumn, texts))
    return Progress(*shown, console=console, transient=True, redirect_stdout=sys.stdout.isatty())


FOR_BAR = 60
"""Columns that numbers may take; beyond, there is room for a bar and for what is done a second."""


class ProgressSteps:
    """What is told of the steps of a command; called with trials done and trials in all.

    Parameters
    ----------
    shown : ProgressDisplay
        What shows them.
    """

    def __init__(self, shown: ProgressDisplay) -> None:
        self._shown = shown
        self._step = ProgressStep("starting")
        self._announce = extraction.ExtractionLog(note, every=math.inf)
        self._places: dict[Path, int] = {}
        self._sizes: dict[Path, int] = {}
        self._all = self._done = 0
        self._of = "trials"

    def __call__(self, done: int, total: int) -> None:
        """Show trials."""
        self._show("counting", self._of, done, total, then="judging")

    def counting(self, done: int, total: int, share: float, left: float) -> None:
        """Show trials, with the share of the work that is done and the seconds left."""
        self._show("counting", self._of, done, total, left, share, then="judging")

    def sampling(self, done: int, total: int) -> None:
        """Show samples of what is simulated, a round of them at a time."""
        self._show("simulating", "samples", done, total, then="simulating")

    def extracting(self, how_far: ExtractionProgress) -> None:
        """Show outputs; what they are of and what they take is said in a line that stays."""
        self._announce(how_far)
        self._show(f"extracting {how_far.what}", "outputs", how_far.done, how_far.total, how_far.left)

    def expecting(self, ahead: WorkEstimate) -> None:
        """Say beforehand what takes long, and what fewer trials would take."""
        if ahead.is_long:
            note(announced(ahead))
        self._of = ahead.unit
        if self._step.doing != "counting":
            self.counting(0, ahead.total, 0.0, ahead.seconds)

    @contextmanager
    def reading(self, paths: Iterable[Path]) -> Iterator[None]:
        """Show how much of some files and folders is read within."""
        self._sizes = {file: file.stat().st_size for path in paths for file in _files(path)}
        self._all, self._done, self._places = sum(self._sizes.values()), 0, {}
        with telling(self._read):
            yield
        self._begin("preparing")

    def _read(self, path: Path, place: int) -> None:
        if path in self._sizes:
            place = min(place, self._sizes[path])
            self._done += place - self._places.get(path, 0)  # less than before where it is read again
            self._places[path] = place
            self._show("reading", "bytes", self._done, self._all)

    def _show(
        self,
        doing: str,
        of: str,
        done: int,
        total: int,
        left: float | None = None,
        share: float | None = None,
        *,
        then: str = "preparing",
    ) -> None:
        """Show a step, and where it is done what follows it."""
        if done >= total:
            self._begin(then)
            return
        start = self._step.start if self._step.doing == doing else time.monotonic()
        self._step = ProgressStep(doing, of, done, total, left, start, share)
        self._shown.show(self._step)

    def _begin(self, doing: str) -> None:
        if self._step.doing != doing:
            self._step = ProgressStep(doing)
            self._shown.show(self._step)


def files_of(sources: Iterable[Source]) -> Iterator[Path]:
    """Yield where what is read lies."""
    for source in sources:
        yield from source.parts or (source.path,)


def plan_files(plan: Plan) -> Iterator[Path]:
    """Yield what a plan reads."""
    for test_set in plan.test_sets:
        yield from filter(None, (test_set.gold, *files_of(test_set.sources)))
    yield from (one.path for one in plan.rankings)
    yield from (path for one in plan.independence for path in one.files())


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or those of a folder; none of what lies elsewhere, whose size is not known here."""
    if is_url(str(path)):
        return
    inner = islice(path.rglob("*"), MOST_FILES) if is_there(path.is_dir) else ()
    yield from (file for file in (path, *inner) if is_there(file.is_file))


def announced(ahead: WorkEstimate) -> str:
    """Say what counting takes, and what fewer trials would."""
    threads = f"{ahead.n_threads:,} thread{'s' * (ahead.n_threads > 1)}"
    exact = f", {ahead.n_exact:,} of them parts of exact p-values," if ahead.trials and ahead.n_exact else ""
    text = f"counting {ahead.total:,} {ahead.unit}{exact} takes about {duration(ahead.seconds)} on {threads}"
    fewer = ahead.fewer
    if fewer is None:
        return text
    less = duration(ahead.with_trials(fewer))
    return f"{text}; {count_noun(fewer, 'trial')} a comparison instead of {ahead.trials:,} would take about {less}"


def short(n: int) -> str:
    """Write a number in little room.

    Examples
    --------
    >>> short(950), short(1_048_576), short(68_719_476_736)
    ('950', '1.05M', '68.7G')
    """
    if n < 10_000:
        return f"{n:,}"
    power = min((len(str(n)) - 1) // 3, 5)
    return f"{n / 1000**power:.3g}{' kMGTP'[power]}"
