"""Writing results into files, as JSON, CSV, Parquet, tables or text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sigdask.cli.output.say import print_data
from sigdask.cli.output.streams import data_stream
from sigdask.errors import InputError, UnfinishedError
from sigdask.io import describe_url_error
from sigdask.report import files
from sigdask.report.files import write_parts, write_whole_text
from sigdask.report.tables import latex, markdown
from sigdask.results import export
from sigdask.results.export import import_pyarrow, iter_csv
from sigdask.text import escape_json

if TYPE_CHECKING:
    from sigdask.report.tables.model import PaperTable
    from sigdask.results.table import Table


def check_outputs(**files: str | None) -> None:
    """Raise, before anything is counted, if a file cannot be written or two go to standard output."""
    piped = [f"--{name} -" for name, file in files.items() if file == "-" and name != "html"]
    if len(piped) > 1:
        raise InputError(f"{' and '.join(piped)}: standard output takes one of them; give the others files")
    if piped == ["--parquet -"] and sys.stdout.isatty():
        raise InputError("--parquet -: is for a pipe, not for a terminal; give a file")
    for name, file in files.items():
        if file is not None:
            check_output(name, None if f"--{name} -" in piped else file, f"--{name}")


def check_output(name: str, file: str | None, option: str) -> None:
    """Raise if a package for the format is missing, or the file cannot be written."""
    if name == "parquet":
        import_pyarrow()
    if file is not None:
        check_writable(file, option)


def check_writable(text: str, option: str) -> None:
    """Raise if a file cannot be written."""
    if problem := describe_url_error(text, "what is written"):
        raise InputError(f"{option} {problem}")
    path = Path(text)
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{option} {path}: cannot be written; give a file in a folder that exists and is writable")


def write_json(file: str | None, parts: Callable[[], Iterable[str]]) -> None:
    """Write JSON to a file or standard output, part by part."""
    if file == "-":
        for part in chain(parts(), ["\n"]):
            sys.stdout.write(escape_json(part))
            if not data_stream(sys.stdout).open:  # nobody reads what else there is to make
                return
    elif file is not None:
        with _name_option_in_errors("--json"):
            write_parts(Path(file), chain(parts(), ["\n"]))


def write_csv(file: str | None, table: Table) -> None:
    """Write CSV if a file was given."""
    if file is not None:
        write_data(file, iter_csv([table]), "--csv")


def write_parquet(file: str | None, table: Table) -> None:
    """Write Parquet if a file was given."""
    if file == "-":
        buffer = BytesIO()
        export.write_parquet([table], buffer)
        data_stream(sys.stdout).write_bytes(buffer.getvalue())
    elif file is not None:
        with _name_option_in_errors("--parquet"):
            files.write_parquet(Path(file), [table])


def write_tables(files: Mapping[str, str | None], tables: Callable[[], Iterable[PaperTable]]) -> None:
    """Write paper tables to the files for "markdown" and "latex", if given."""
    for name, parts in (("markdown", markdown.iter_document_parts), ("latex", latex.iter_document_parts)):
        if (file := files[name]) is not None:
            write_data(file, parts(tables()), f"--{name}")


def write_data(file: str, parts: Iterable[str], option: str) -> None:
    """Write text unchanged, part by part, to the file of an option."""
    if file == "-":
        for part in parts:
            print_data(part)
        return

    with _name_option_in_errors(option):
        write_parts(Path(file), parts)


def write_text(file: str, text: str) -> None:
    """Write the plain-text report to a file."""
    with _name_option_in_errors("-o"):
        write_whole_text(Path(file), f"{text}\n")


@contextmanager
def _name_option_in_errors(option: str) -> Iterator[None]:
    """Begin the text of errors in the body, which are about an option's file, with the option's name."""
    try:
        yield
    except UnfinishedError as error:
        raise UnfinishedError(f"{option} {error}") from None
