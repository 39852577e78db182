"""Opening files: gzip known by its content, UTF-8 with or without a byte-order mark.

Every error names the file and, where there is one, the line.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, TextIO

from sigdask.errors import InputError
from sigdask.formats.reading.unpacking import check_unpacked, unpacked

GZIP = b"\x1f\x8b"
NOTHING = bytes(16)
"""The beginning of a file of which only the size was written."""

HEAD = 1 << 16
"""Bytes looked at to tell a format."""

TOLD = 1 << 20
"""Bytes read between two looks at how far a file is read."""

Tell = Callable[[Path, int], None]
"""Takes a file, and the place up to which it is read."""

_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)

MOST_KEPT = 1 << 24
"""Bytes of small files that are kept while they are looked at."""

_kept: ContextVar[dict[Path, bytes] | None] = ContextVar("kept", default=None)

KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
LONGEST_SHOWN = 1000
BLOCK = 512
"""Bytes of a block, as a file's status counts them."""

MOST_BELOW = 100_000
"""Files and folders in a folder and below it."""


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    r"""Open a text file for reading; line ends are left as they are (``newline=""``).

    Parameters
    ----------
    path : Path
        A file of UTF-8 text, gzipped or not.

    Raises
    ------
    InputError
        Where the file is missing, a directory, unreadable, cut off or not UTF-8; also while the
        caller reads inside the `with`.
    """
    try:
        with open_bytes(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise _not_utf8(path) from error


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip where its first two bytes say so."""
    try:
        _check_kind(path)
        with _opened(path) as raw:
            start = raw.read(len(NOTHING))
            raw.seek(0)
            if start == NOTHING:
                raise InputError(f"{path}: begins with zeros, as a file never written; fetch or write it again")
            if not start.startswith(GZIP):
                yield raw
                return
            with unpacked(path, raw) as stream:
                yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged gzip file ({error}); fetch or compress it again") from error
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror or error})") from error


def _check_kind(path: Path) -> None:
    """Refuse what is no file, of which some would be waited for, or read, without an end."""
    try:
        found = path.stat()
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"{str(path)!r}: no such file ({error})") from None
    what = KINDS.get(stat.S_IFMT(found.st_mode))
    if what is not None:
        raise InputError(f"{path}: is {what}, expected a file; write what it holds into one")
    if stored := BLOCK * getattr(found, "st_blocks", 0):  # holes are packing too
        check_unpacked(path, found.st_size, stored)


def shown(path: Path) -> str:
    """Return a path as it is written in errors: one longer than any file's name in part."""
    text = str(path)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and below it, by name; hidden files are none."""
    found = sorted(islice(folder.rglob("*"), MOST_BELOW + 1))
    if len(found) > MOST_BELOW:
        raise InputError(f"{folder}: holds more than {MOST_BELOW:,} files; name the folder that holds the data alone")
    shown_ones = (path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    return [path for path in shown_ones if path.is_file()]


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Tell how far files are read within."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


@contextmanager
def keeping() -> Iterator[None]:
    """Fetch each small file once within: formats look at it some fifty times."""
    token = _kept.set({} if (outer := _kept.get()) is None else outer)
    try:
        yield
    finally:
        _kept.reset(token)


def _opened(path: Path) -> IO[bytes]:
    kept = _kept.get()
    if kept is not None and path not in kept and path.stat().st_size <= min(HEAD, MOST_KEPT - HEAD * len(kept)):
        with _raw(path) as raw:
            kept[path] = raw.read()
    return _raw(path) if kept is None or path not in kept else io.BytesIO(kept[path])


def _raw(path: Path) -> IO[bytes]:
    tell = _tell.get()
    return path.open("rb") if tell is None else io.BufferedReader(_Told(path, tell), TOLD)


class _Told(io.FileIO):
    """A file that tells how far it is read."""

    def __init__(self, path: Path, tell: Tell) -> None:
        super().__init__(path)
        self._path, self._told = path, tell

    def readinto(self, buffer: Any) -> Any:
        """Read as much as there is room for."""
        n = super().readinto(buffer)
        self._told(self._path, self.tell() if self.seekable() else 0)
        return n

    def readall(self) -> bytes:
        """Read all that is left."""
        return b"".join(iter(lambda: self.read(TOLD), b""))

    def read(self, size: int | None = -1) -> Any:
        """Read some, or all that is left."""
        if size is None or size < 0:
            return self.readall()
        found = super().read(size)
        self._told(self._path, self.tell() if self.seekable() else 0)
        return found


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet, by its first bytes."""
    with open_bytes(path) as stream:
        return stream.read(4) == b"PAR1"


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, stripped; empty ones at the end are dropped.

    Raises
    ------
    InputError
        For a file without text.
    """
    with open_text(path) as text:
        lines = [line.strip() for line in text]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise empty(path)
    return lines


def head_lines(path: Path) -> list[str]:
    """Return the first lines of a text file, to tell its format by; none of what cannot be read as text."""
    try:
        with open_bytes(path) as stream:
            start = stream.read(HEAD)
        whole = start if len(start) < HEAD else start[: max(start.rfind(b"\n"), start.rfind(b"\r")) + 1]
        text = whole.decode("utf-8-sig")
    except (InputError, UnicodeDecodeError):
        return []
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def empty(path: Path) -> InputError:
    """Return the error for a file with nothing in it."""
    return InputError(f"{path}: is empty, expected one row an item")


def stem(path: Path) -> str:
    """Name a system after its file.

    Examples
    --------
    >>> stem(Path("runs/bert-1.5.tsv.gz")), stem(Path("runs/bert-1.5"))
    ('bert-1.5', 'bert-1.5')
    """
    name = path.name.removesuffix(".gz")
    return re.sub(r"(?<=.)\.[A-Za-z]\w*$", "", name)


def differing(paths: Sequence[Path]) -> dict[Path, str]:
    """Name files by what differs: their endings, else the part of the path between what all begin and end with.

    Examples
    --------
    >>> differing([Path("x.out1"), Path("x.out2")])[Path("x.out2")]
    'x.out2'
    >>> differing([Path("runs/a/1/test.txt"), Path("runs/b/test.txt")])[Path("runs/a/1/test.txt")]
    'a/1'
    """
    files = [path.name.removesuffix(".gz") for path in paths]
    if len(set(files)) == len(files):
        return dict(zip(paths, files, strict=True))
    parts = [(*path.parts[:-1], file) for path, file in zip(paths, files, strict=True)]
    head = _n_shared(parts)
    rest = [part[head:] for part in parts]
    tail = _n_shared([part[::-1] for part in rest])
    inner = ["/".join(part[: len(part) - tail]) for part in rest]
    return dict(zip(paths, inner if all(inner) else map("/".join, rest), strict=True))


def _n_shared(parts: Sequence[Sequence[str]]) -> int:
    """Count the parts that all begin with."""
    return len(list(takewhile(lambda level: len(set(level)) == 1, zip(*parts, strict=False))))


def _not_utf8(path: Path) -> InputError:
    offset = 0
    with open_bytes(path) as stream:
        if stream.read(2) in {b"\xff\xfe", b"\xfe\xff"}:
            return InputError(f"{path}: is UTF-16, not UTF-8; convert the file with iconv -f utf-16 -t utf-8")
        stream.seek(0)
        for number, line in enumerate(stream, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return InputError(
                    f"{path}, line {number}: byte 0x{line[error.start]:02x} at offset {offset + error.start} is not "
                    "UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
                )
            offset += len(line)
    return InputError(f"{path}: is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8")
