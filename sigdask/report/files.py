"""Atomic writing of reports: a file is replaced completely or not at all."""

from __future__ import annotations

import gzip
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from sigdask.errors import UnfinishedError
from sigdask.results import export
from sigdask.results.export import UnitScores
from sigdask.results.table import Table


def write_whole_text(path: Path, text: str) -> None:
    """Write a text atomically."""
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text that comes in parts atomically."""
    with open_atomic(path) as file:
        for part in parts:
            file.write(part.encode())


def write_parquet(path: Path, tables: Iterable[Table]) -> None:
    """Write tables of results atomically as Parquet."""
    with open_atomic(path) as file:
        export.write_parquet(tables, file)


def write_units(path: Path, units: Iterable[UnitScores]) -> None:
    """Write a table of units atomically, as the ending of the file says; the same units give the same bytes."""
    format_, is_compressed = export.parse_unit_file(path)
    with open_atomic(path) as file:
        if not is_compressed:
            export.write_units(units, file, format_)
            return
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
            export.write_units(units, cast("IO[bytes]", packed), format_)


@contextmanager
def open_atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is replaced completely or not at all; a pipe or device is written directly.

    An existing file keeps its mode. A new file has the mode of the umask.

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
    target = Path(os.path.realpath(path))  # a link stays one
    mask = os.umask(0)
    os.umask(mask)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}-", delete=False) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.flush()
            temporary.chmod(0o666 & ~mask if mode is None else stat.S_IMODE(mode))
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
