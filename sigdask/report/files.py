"""Atomic writing of reports: a file is replaced completely or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import IO

import pyarrow as pa

from sigdask.errors import InputError, UnfinishedError
from sigdask.results import export
from sigdask.results.table import Table

FORMAT_BY_ENDING = {
    ".json": "json", ".csv": "csv", ".parquet": "parquet", ".md": "markdown", ".tex": "latex", ".bib": "bibtex",
    ".html": "html", ".htm": "html", ".txt": "text",
}  # fmt: skip
"""Format of a file of results by its ending."""

UNIT_FORMATS = ("csv", "parquet")
"""Formats of files of units."""

Texts = dict[str, Callable[[], Iterable[str | bytes]]]
"""Functions that return what a file of each format holds, in parts."""


def find_format(file: str | Path, formats: Collection[str], option: str = "") -> str:
    """Return the format of a file by its ending; raise if it is none of these."""
    format_ = FORMAT_BY_ENDING.get(Path(file).suffix.lower(), "")
    if format_ not in formats:
        raise InputError(file=f"{option}{file}", expected=f"a file that ends in {format_endings(formats)}")
    return format_


def format_endings(formats: Collection[str]) -> str:
    """Return the endings of files of some formats, as text."""
    return ", ".join(ending for ending, name in FORMAT_BY_ENDING.items() if name in formats)


def list_table_texts(tables: Callable[[], Iterable[Table]]) -> Texts:
    """Return what files of data of these results hold."""
    return {
        "csv": lambda: export.iter_csv(export.iter_frame_data(tables())),
        "parquet": lambda: [_format_parquet(export.iter_frame_data(tables()))],
    }


def _format_parquet(parts: Iterable[pa.Table]) -> bytes:
    stream = BytesIO()
    export.write_parquet(parts, stream)
    return stream.getvalue()


def write_parts(path: Path, parts: Iterable[str | bytes]) -> None:
    """Write a file that comes in parts atomically."""
    with open_atomic(path) as file:
        file.writelines(part.encode() if isinstance(part, str) else part for part in parts)


def write_units(path: Path, units: Iterable[pa.Table]) -> None:
    """Write a table of units atomically, as the ending of the file says; the same units give the same bytes."""
    parts = chain([export.UNIT_SCHEMA.empty_table()], units)  # the first has names alone
    with open_atomic(path) as file:
        if find_format(path, UNIT_FORMATS) == "parquet":
            export.write_parquet(parts, file)
        else:
            file.writelines(text.encode() for text in export.iter_csv(parts))


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is replaced completely or not at all; a pipe or device is written directly.

    An existing file keeps its mode. A new file has the mode of the umask. A link to a file is refused: whoever made the
    folder may have put it there, to have another file overwritten.

    Raises
    ------
    UnfinishedError
        It cannot be written.
    """
    try:
        mode = None
        with suppress(FileNotFoundError):
            mode = path.stat().st_mode
        with path.open("wb") if mode and not stat.S_ISREG(mode) else _open_replacement(path, mode) as file:
            yield file
    except OSError as error:
        raise UnfinishedError(f"cannot be written ({error.strerror})", file=path) from None
    except UnicodeEncodeError as error:
        raise UnfinishedError(
            f"cannot be written ({error.reason} in {error.object[error.start]!r})", file=path
        ) from None


@contextmanager
def _open_replacement(path: Path, mode: int | None) -> Iterator[IO[bytes]]:
    if path.is_symlink():
        raise UnfinishedError("cannot be written: it is a symbolic link", file=path, remedy="name the file itself")
    mask = os.umask(0)
    os.umask(mask)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:100]}-", delete=False) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.flush()
            temporary.chmod(0o666 & ~mask if mode is None else stat.S_IMODE(mode))
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
