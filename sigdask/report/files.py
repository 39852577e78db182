"""Writing reports: whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sigdask.errors import UnfinishedError
from sigdask.results import export
from sigdask.results.table import Table


def write_whole(path: Path, text: str) -> None:
    """Write a text as `whole` does."""
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Write a text, part after part as it is made, as `whole` does."""
    with whole(path) as file:
        for part in parts:
            file.write(part.encode())


def write_parquet(path: Path, tables: Iterable[Table]) -> None:
    """Write what was found as Parquet, as `whole` does."""
    with whole(path) as file:
        export.write_parquet(tables, file)


@contextmanager
def whole(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is written whole or not at all; what is no file (a pipe, a device) is written to.

    A file that is there keeps its mode, a new one has that of the umask.

    Raises
    ------
    UnfinishedError
        It cannot be written.
    """
    try:
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            with _waiting_for_nobody(path) as file:
                yield file
        else:
            with _replacing(path, _new_mode() if mode is None else stat.S_IMODE(mode)) as file:
                yield file
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror})") from None
    except UnicodeEncodeError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.reason} in {error.object[error.start]!r})") from None


def _waiting_for_nobody(path: Path) -> IO[bytes]:
    """Open what is no file; a pipe that nobody reads is an error."""
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return os.fdopen(handle, "wb")


@contextmanager
def _replacing(path: Path, mode: int) -> Iterator[IO[bytes]]:
    target = path.resolve()  # a link stays one
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}-", delete=False) as file:
        made = Path(file.name)
        try:
            yield file
            file.flush()
            made.chmod(mode)
            made.replace(target)
        except BaseException:
            with suppress(OSError):
                made.unlink()
            raise


def _mode(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_mode
    return None


def _new_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
