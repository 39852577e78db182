"""How far a command is: files read, outputs extracted, trials counted; a bar on a terminal, else lines."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from sigdask.cli.logs import columns
from sigdask.cli.showing import note
from sigdask.cli.streams import Harmless, exactly
from sigdask.writing import duration

if TYPE_CHECKING:
    from sigdask.engine.ahead import Ahead
    from sigdask.metrics.extraction import Extracting

EVERY = 30.0
"""Seconds between two lines."""

LONG = 60.0
"""Seconds from which work is announced."""

FEWEST = 1000
"""Trials below which none are recommended."""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Steps | None]:
    """Show how far a command is, from its start.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    if quiet:
        yield None
        return
    if not sys.stderr.isatty():
        yield Steps(Lines())
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    room = columns(sys.stderr) or 80
    shown = [TextColumn("{task.description}"), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn()]
    if room >= 60:
        shown.insert(1, BarColumn(min(40, room - 55)))
    if room >= 80:
        shown.insert(3, TextColumn("{task.fields[rate]}"))
    console = Console(file=cast("IO[str]", exactly(sys.stderr)), width=room)
    with Progress(*shown, console=console, transient=True, redirect_stdout=sys.stdout.isatty()) as bar:
        for name in ("stdout", "stderr"):  # rich put its own there, above the bar, until it leaves
            if not isinstance(getattr(sys, name), Harmless):
                setattr(sys, name, Harmless(getattr(sys, name)))
        yield Steps(Bar(bar))


Show = Callable[[str, int, int, str], None]
"""Takes what is done, how much is done of how much, and what it is counted in."""


class Lines:
    """A line every half minute."""

    def __init__(self) -> None:
        self._of, self._start = "", time.monotonic()
        self._last = self._start

    def __call__(self, doing: str, done: int, total: int, of: str) -> None:
        """Tell it, where it is time."""
        now = time.monotonic()
        if doing != self._of:
            self._of, self._start = doing, now
        if now - self._last < EVERY or done >= total:
            return
        self._last = now
        left = (now - self._start) * (total - done) / done if done else math.inf
        about = f", about {duration(left)} left" if math.isfinite(left) else ""
        note(f"{doing}: {done:,} of {total:,} {of} ({done / total:.0%}){about}")


class Bar:
    """A bar on a terminal.

    Parameters
    ----------
    bar : rich.progress.Progress
        What draws it.
    """

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._of, self._start = "", time.monotonic()
        self._task = bar.add_task("starting", total=None, rate="")

    def __call__(self, doing: str, done: int, total: int, of: str) -> None:
        """Draw it."""
        if doing != self._of:
            self._bar.remove_task(self._task)
            self._of, self._start = doing, time.monotonic()
            self._task = self._bar.add_task(doing, total=total, rate="")
        rate = done / max(time.monotonic() - self._start, 1e-9)
        text = f"{short(done)} of {short(total)} {of}"
        self._bar.update(self._task, description=text, completed=done, total=total, rate=f"{short(int(rate))} {of}/s")


class Steps:
    """What is told of the steps of a command; called with trials done and trials in all.

    Parameters
    ----------
    show : callable
        How it is shown.
    """

    def __init__(self, show: Show) -> None:
        from sigdask.metrics import extraction

        self._show = show
        self._announce = extraction.Lines(note, every=math.inf)
        self._places: dict[Path, int] = {}
        self._files: dict[Path, int] = {}

    def __call__(self, done: int, total: int) -> None:
        """Show trials."""
        self._show("counting", done, total, "trials")

    def extracting(self, how_far: Extracting) -> None:
        """Show outputs; what they are of and what they take is said in a line that stays."""
        self._announce(how_far)
        self._show(f"extracting {how_far.what}", how_far.done, how_far.total, "outputs")

    def expecting(self, ahead: Ahead) -> None:
        """Say beforehand what takes long, and what fewer trials would take."""
        if ahead.seconds > LONG:
            note(announced(ahead))
        self(0, ahead.total)

    @contextmanager
    def reading(self, files: Iterable[Path]) -> Iterator[None]:
        """Show how much of some files is read within."""
        from sigdask.formats.reading.files import telling

        self._files = {path: path.stat().st_size for path in files if path.is_file()}
        with telling(self._read):
            yield

    def _read(self, path: Path, place: int) -> None:
        if path in self._files:
            self._places[path] = max(place, self._places.get(path, 0))
            done = sum(min(n, self._files[each]) for each, n in self._places.items())
            self._show("reading", done, sum(self._files.values()), "bytes")


def announced(ahead: Ahead) -> str:
    """Say what counting takes, and what fewer trials would."""
    threads = f"{ahead.n_threads:,} thread{'s' * (ahead.n_threads > 1)}"
    text = f"counting {ahead.total:,} trials takes about {duration(ahead.seconds)} on {threads}"
    spare = LONG - ahead.enumerated
    if ahead.sampled <= 0 or spare <= 0:
        return text
    fewer = max(FEWEST, 10 ** int(math.log10(max(ahead.trials * spare / ahead.sampled, FEWEST))))
    if fewer >= ahead.trials:
        return text
    less = duration(ahead.with_trials(fewer))
    return f"{text}; {fewer:,} a comparison instead of {ahead.trials:,} would take about {less}"


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
