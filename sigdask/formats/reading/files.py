"""Opening files: gzip known by its content, UTF-8 with or without a byte-order mark.

Every error names the file and, where there is one, the line.
"""

from __future__ import annotations

import gzip
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, TextIO

from sigdask.errors import InputError, RefusedFileError
from sigdask.io.compression import check_unpacked, unpacked

GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
ARROW = "write it as Parquet or CSV, for example with pandas: pandas.read_feather(FILE).to_parquet(NEW)"
ARROW_STREAM = "write it as Parquet or CSV: pyarrow.ipc.open_stream(FILE).read_pandas().to_parquet(NEW)"
UNPACK = "unpack it and give the files inside"
EXCEL = "save the sheet as CSV (UTF-8) and give that file"
ARRAYS = "give the arrays to sigdask.compare in Python, or write them as CSV"
TO_TEXT = "write what it holds as CSV, JSON lines or Parquet"

MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"ARROW1\0\0", "an Arrow (Feather) file", ARROW),
    (b"FEA1\0", "a Feather file of version 1", ARROW),
    (b"\xff\xff\xff\xff", "an Arrow stream", ARROW_STREAM),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (such as .xls)", EXCEL),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "unpack it with `lz4 -d`; gzip files are read as they are"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with `zstd -d`; gzip files are read as they are"),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `xz -d`; gzip files are read as they are"),
    (b"\xff\x06\0\0sNaPpY", "compressed with snappy", "unpack it; gzip files are read as they are"),
    (b"\x1f\x9d", "compressed with compress (.Z)", "unpack it with `uncompress`; gzip files are read as they are"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"SQLite format 3\0", "a SQLite database", TO_TEXT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", TO_TEXT),
    (b"\x93NUMPY", "a NumPy array (.npy)", ARRAYS),
    (b"Obj\x01", "an Avro file", TO_TEXT),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file", TO_TEXT),
    (b"RDX3\n", "an R data file", "write it in R with write.csv"),
    (b"X\n\0\0\0", "an R data file (.rds)", "write it in R with write.csv"),
    (b"%PDF-", "a PDF", "give the data that it shows"),
    (b"\x89PNG", "a picture (PNG)", "give the data that it shows"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "give the data that it shows"),
    *((bytes((0x80, k)), "a Python pickle", TO_TEXT) for k in range(2, 6)),
)
"""First bytes of binary files: what the file is, and the remedy."""

MEMBERS: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (re.compile("xl/"), "an Excel workbook", EXCEL),
    (re.compile("word/"), "a Word document", TO_TEXT),
    (re.compile("mimetype$"), "an OpenDocument file", EXCEL),
    (re.compile(r".*\bdata\.pkl$"), "a PyTorch file", TO_TEXT),
    (re.compile(r".*\.npy$"), "an archive of NumPy arrays (.npz)", ARRAYS),
)
"""Names of members of a zip archive: what it is, and the remedy."""

BEGINNING = 512
"""Bytes looked at to tell a binary file; a tar archive names itself at byte 257."""

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
            start = raw.read(BEGINNING)
            raw.seek(0)
            if start.startswith(NOTHING):
                raise InputError(f"{path}: begins with zeros, as a file never written; fetch or write it again")
            if not start.startswith(GZIP):
                _check_binary(path, start)
                yield raw
                return
            with unpacked(path, raw) as stream:
                _check_binary(path, stream.read(BEGINNING), within="gzip")
                stream.seek(0)
                yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{path}: damaged gzip file ({error}); fetch or compress it again") from error
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, expected a file") from None
    except OSError as error:
        raise InputError(f"{shown(path)}: cannot be read ({error.strerror or error})") from error


def _check_binary(path: Path, start: bytes, within: str = "") -> None:
    """Refuse a binary file that no format reads, by its first bytes: name what it is, and the remedy."""
    found = next(((what, remedy) for magic, what, remedy in MAGIC if start.startswith(magic)), None)
    if start.startswith(b"BZh") and start[4:10] == b"1AY&SY":
        found = "compressed with bzip2", "unpack it with `bunzip2`; gzip files are read as they are"
    elif start[257:262] == b"ustar":
        found = "a tar archive", UNPACK
    elif start.startswith(ZIP):
        found = _zip_kind(path) if not within else ("a zip archive", UNPACK)
    if found is not None:
        what, remedy = found
        raise RefusedFileError(f"{path}: is {what}{f' within {within}' * bool(within)}, which is not read; {remedy}")


def _zip_kind(path: Path) -> tuple[str, str] | None:
    """Say what a zip archive is, by the names of its members; None for logs of Inspect, which are read."""
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        names = []
    if path.suffix == ".eval" or any(name == "header.json" or name.startswith("_journal/") for name in names):
        return None
    for pattern, what, remedy in MEMBERS:
        if any(map(pattern.match, names)):
            return what, remedy
    return "a zip archive", UNPACK


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
    return path.open("rb") if tell is None else io.BufferedReader(_TrackedFile(path, tell), TOLD)


class _TrackedFile(io.FileIO):
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
                if b"\0" in line:
                    return RefusedFileError(f"{path}: is a binary file of an unknown kind; {TO_TEXT}")
                return InputError(
                    f"{path}, line {number}: byte 0x{line[error.start]:02x} at offset {offset + error.start} is not "
                    "UTF-8; convert the file, for example with iconv -f latin1 -t utf-8"
                )
            offset += len(line)
    return InputError(f"{path}: is not UTF-8; convert the file, for example with iconv -f latin1 -t utf-8")
