"""What commands write: results, files, notes beside them and how far the work is."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sigdask.cli.output.logs import columns
from sigdask.cli.output.streams import exactly
from sigdask.errors import InputError, UnfinishedError
from sigdask.report.layout import BETWEEN, fitted
from sigdask.text import printable_json

if TYPE_CHECKING:
    from sigdask.report.tables.model import PaperTable
    from sigdask.results.table import Table

LOG = logging.getLogger("sigdask")


def note(text: str) -> None:
    """Tell the user something beside the results."""
    LOG.info(text)


def say(text: str, *, beside: bool = False, hang: int = BETWEEN) -> None:
    """Write text on standard output (or `beside` it), broken between words where a terminal is too narrow.

    Users' words in it are harmless already: whoever makes a text of them sees to it.
    """
    click.echo(fitted(text, columns(sys.stderr if beside else sys.stdout), hang=hang), err=beside)


def be_quiet() -> None:
    """Say no more than warnings and errors beside the results."""
    LOG.setLevel(logging.WARNING)


def width() -> int | None:
    """Return the columns of the terminal that results are written on, None for a pipe."""
    return columns(sys.stdout)


def say_json(text: str) -> None:
    """Write JSON on standard output, each value on its own line however wide."""
    click.echo(printable_json(text))


def say_data(text: str) -> None:
    """Write on standard output what a program reads: as it is, but for a terminal."""
    (sys.stdout if sys.stdout.isatty() else exactly(sys.stdout)).write(text)


def check_outputs(**files: str | None) -> None:
    """Refuse, before anything is counted, files that cannot be written; at most one is standard output."""
    piped = [f"--{name} -" for name, file in files.items() if file == "-" and name != "html"]
    if len(piped) > 1:
        raise InputError(f"{' and '.join(piped)}: standard output takes one of them; give the others files")
    if piped == ["--parquet -"] and sys.stdout.isatty():
        raise InputError("--parquet -: is for a pipe, not for a terminal; give a file")
    for name, file in files.items():
        if file is not None:
            check_output(name, None if f"--{name} -" in piped else file, f"--{name}")


def check_output(name: str, file: str | None, option: str) -> None:
    """Refuse what cannot be made of results, or a file (standard output without) that cannot be written."""
    if name == "parquet":
        from sigdask.results.export import parquet_library

        parquet_library()
    if file is not None:
        check_writable(file, option)


def check_writable(text: str, option: str) -> None:
    """Refuse a file that cannot be written."""
    from sigdask.io import local_only

    if problem := local_only(text, "what is written"):
        raise InputError(f"{option} {problem}")
    path = Path(text)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def write_json(file: str | None, parts: Callable[[], Iterable[str]]) -> None:
    """Write JSON where it is asked for, part after part as it is made."""
    if file == "-":
        for part in chain(parts(), ["\n"]):
            sys.stdout.write(printable_json(part))
            if not exactly(sys.stdout).open:  # nobody reads what else there is to make
                return
    elif file is not None:
        from sigdask.report.files import write_parts

        with _named("--json"):
            write_parts(Path(file), chain(parts(), ["\n"]))


def write_csv(file: str | None, table: Table) -> None:
    """Write CSV where it is asked for."""
    from sigdask.results.export import csv_parts

    if file is not None:
        write_data(file, csv_parts([table]), "--csv")


def write_parquet(file: str | None, table: Table) -> None:
    """Write Parquet where it is asked for."""
    from sigdask.report import files
    from sigdask.results import export

    if file == "-":
        made = BytesIO()
        export.write_parquet([table], made)
        exactly(sys.stdout).write_bytes(made.getvalue())
    elif file is not None:
        with _named("--parquet"):
            files.write_parquet(Path(file), [table])


def write_tables(files: Mapping[str, str | None], tables: Callable[[], Iterable[PaperTable]]) -> None:
    """Write tables for papers where "markdown" and "latex" are asked for."""
    from sigdask.report.tables import latex, markdown

    for name, parts in (("markdown", markdown.document_parts), ("latex", latex.document_parts)):
        if (file := files[name]) is not None:
            write_data(file, parts(tables()), f"--{name}")


def write_data(file: str, parts: Iterable[str], option: str) -> None:
    """Write what programs and people read as it is, part after part, where `option` asks for it."""
    if file == "-":
        for part in parts:
            say_data(part)
        return
    from sigdask.report.files import write_parts

    with _named(option):
        write_parts(Path(file), parts)


def write_text(file: str, text: str) -> None:
    """Write what a pipe would get."""
    from sigdask.report.files import write_whole

    with _named("-o"):
        write_whole(Path(file), f"{text}\n")


@contextmanager
def _named(option: str) -> Iterator[None]:
    """Name the option whose file cannot be written."""
    try:
        yield
    except UnfinishedError as error:
        raise UnfinishedError(f"{option} {error}") from None
