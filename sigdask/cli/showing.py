"""What commands write: results, files, notes beside them and how far the work is."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sigdask.cli.logs import columns
from sigdask.errors import InputError, UnfinishedError
from sigdask.report.layout import BETWEEN, fitted
from sigdask.report.text import printable_json

if TYPE_CHECKING:
    from sigdask.metrics.extraction import Extracting

LOG = logging.getLogger("sigdask")


def note(text: str) -> None:
    """Tell the user something beside the results."""
    LOG.info(text)


def say(text: str, *, beside: bool = False, hang: int = BETWEEN) -> None:
    """Write text on standard output (or `beside` it), broken between words where a terminal is too narrow.

    Users' words in it are harmless already: whoever makes a text of them sees to it.
    """
    click.echo(fitted(text, columns(sys.stderr if beside else sys.stdout), hang=hang), err=beside)


def width() -> int | None:
    """Return the columns of the terminal that results are written on, None for a pipe."""
    return columns(sys.stdout)


@contextmanager
def progress_bar() -> Iterator[Bar | None]:
    """Show on a terminal what is extracted, then trials done, rate and time left; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (
        TextColumn("{task.description}"),
        BarColumn(max(4, min(40, (columns(sys.stderr) or 80) - 50))),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        yield Bar(bar)


class Bar:
    """A bar on a terminal: of outputs while they are extracted, then of trials.

    Parameters
    ----------
    bar : rich.progress.Progress
        What draws it.
    """

    def __init__(self, bar: Any) -> None:
        from sigdask.metrics.extraction import Lines

        self._bar = bar
        self._lines = Lines(note, every=math.inf)
        self._begin("")

    def _begin(self, of: str) -> None:
        for task in self._bar.task_ids:
            self._bar.remove_task(task)
        self._of, self._start = of, time.monotonic()
        self._task = self._bar.add_task("", total=None, rate="")

    def __call__(self, done: int, total: int) -> None:
        """Show trials."""
        self._show("trials", f"{done:,} trials", done, total)

    def extracting(self, how_far: Extracting) -> None:
        """Show outputs; what they are of and what they take is said in a line that stays."""
        self._lines(how_far)
        self._show("outputs", f"{how_far.done:,} of {how_far.total:,} outputs", how_far.done, how_far.total)

    def _show(self, of: str, text: str, done: int, total: int) -> None:
        if of != self._of:
            self._begin(of)
        rate = done / max(time.monotonic() - self._start, 1e-9)
        self._bar.update(self._task, description=text, completed=done, total=total, rate=f"{rate:,.0f} {of}/s")


def say_json(text: str) -> None:
    """Write JSON on standard output, each value on its own line however wide."""
    click.echo(printable_json(text))


def check_outputs(*, json: str | None = None, html: str | None = None) -> None:
    """Refuse, before anything is counted, files that cannot be written."""
    if json not in {None, "-"}:
        check_writable(Path(str(json)), "--json")
    if html is not None:
        check_writable(Path(html), "--html")


def check_writable(path: Path, option: str) -> None:
    """Refuse a file that cannot be written."""
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def write_json(json_file: str | None, parts: Callable[[], Iterable[str]]) -> None:
    """Write JSON where it is asked for, part after part as it is made."""
    if json_file == "-":
        for part in parts():
            click.echo(printable_json(part), nl=False)
        click.echo()
    elif json_file is not None:
        from sigdask.report.files import write_parts

        try:
            write_parts(Path(json_file), chain(parts(), ["\n"]))
        except UnfinishedError as error:
            raise UnfinishedError(f"--json {error}") from None
