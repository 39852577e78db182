"""What commands write: results, files, notes beside them and how far the work is."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sigdask.cli.logs import columns
from sigdask.errors import InputError, UnfinishedError
from sigdask.report.layout import BETWEEN, fitted
from sigdask.report.text import printable_json

if TYPE_CHECKING:
    from sigdask.engine import Progress

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
def progress_bar() -> Iterator[Progress | None]:
    """Show trials done, rate and time left on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (
        TextColumn("{task.completed:,.0f} trials"),
        BarColumn(max(4, min(40, (columns(sys.stderr) or 80) - 50))),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*shown, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, rate="")
        start = time.monotonic()

        def show(done: int, total: int) -> None:
            rate = done / max(time.monotonic() - start, 1e-9)
            bar.update(task, completed=done, total=total, rate=f"{rate:,.0f} trials/s")

        yield show


def say_json(text: str) -> None:
    """Write JSON on standard output, each value on its own line however wide."""
    click.echo(printable_json(text))


def check_outputs(*, json: str | None = None, html: str | None = None) -> None:
    """Refuse, before anything is counted, files that cannot be written."""
    if json not in {None, "-"}:
        check_writable(str(json), "--json")
    if html is not None:
        check_writable(html, "--html")


def check_writable(text: str, option: str) -> None:
    """Refuse a file that cannot be written."""
    from sigdask.formats.places import local_only

    if problem := local_only(text, "what is written"):
        raise InputError(f"{option} {problem}")
    path = Path(text)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def write_json(json_file: str | None, text: Callable[[], str]) -> None:
    """Write JSON where it is asked for."""
    if json_file == "-":
        say_json(text())
    elif json_file is not None:
        from sigdask.report.files import write_whole

        try:
            write_whole(Path(json_file), text() + "\n")
        except UnfinishedError as error:
            raise UnfinishedError(f"--json {error}") from None
