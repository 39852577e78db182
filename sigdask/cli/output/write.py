"""What commands write: results, files, notes beside them and how far the work is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.cli.output.say import say_data
from sigdask.cli.output.streams import exactly
from sigdask.errors import InputError, UnfinishedError
from sigdask.io import local_only
from sigdask.report import files
from sigdask.report.files import write_parts, write_whole
from sigdask.report.tables import latex, markdown
from sigdask.results import export
from sigdask.results.export import csv_parts, parquet_library
from sigdask.text import printable_json

if TYPE_CHECKING:
    from sigdask.report.tables.model import PaperTable
    from sigdask.results.table import Table


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
        parquet_library()
    if file is not None:
        check_writable(file, option)


def check_writable(text: str, option: str) -> None:
    """Refuse a file that cannot be written."""
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
        with _named("--json"):
            write_parts(Path(file), chain(parts(), ["\n"]))


def write_csv(file: str | None, table: Table) -> None:
    """Write CSV where it is asked for."""
    if file is not None:
        write_data(file, csv_parts([table]), "--csv")


def write_parquet(file: str | None, table: Table) -> None:
    """Write Parquet where it is asked for."""
    if file == "-":
        made = BytesIO()
        export.write_parquet([table], made)
        exactly(sys.stdout).write_bytes(made.getvalue())
    elif file is not None:
        with _named("--parquet"):
            files.write_parquet(Path(file), [table])


def write_tables(files: Mapping[str, str | None], tables: Callable[[], Iterable[PaperTable]]) -> None:
    """Write tables for papers where "markdown" and "latex" are asked for."""
    for name, parts in (("markdown", markdown.document_parts), ("latex", latex.document_parts)):
        if (file := files[name]) is not None:
            write_data(file, parts(tables()), f"--{name}")


def write_data(file: str, parts: Iterable[str], option: str) -> None:
    """Write what programs and people read as it is, part after part, where `option` asks for it."""
    if file == "-":
        for part in parts:
            say_data(part)
        return

    with _named(option):
        write_parts(Path(file), parts)


def write_text(file: str, text: str) -> None:
    """Write what a pipe would get."""
    with _named("-o"):
        write_whole(Path(file), f"{text}\n")


@contextmanager
def _named(option: str) -> Iterator[None]:
    """Name the option whose file cannot be written."""
    try:
        yield
    except UnfinishedError as error:
        raise UnfinishedError(f"{option} {error}") from None
