"""Opening files and reading rows of cells: gzip is recognized by content, UTF-8 with or without a byte-order mark.

Every error names the file and, if there is one, the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, TextIO

import numpy as np

from sigdask.errors import DirectoryError, InputError, RefusedFileError
from sigdask.formats.reading.cache import cache_result
from sigdask.formats.reading.converted import ARROW_STARTS, PARQUET, ZIP, convert_file
from sigdask.interface import spell
from sigdask.io.compression import check_unpacked_size, get_option, open_unpacked, set_variable
from sigdask.io.text_files import build_encoding_error

GZIP, BOM = b"\x1f\x8b", codecs.BOM_UTF8
UNPACK_REMEDY = "unpack it and give the files inside"
EXCEL_REMEDY = "save the sheet as CSV (UTF-8) and give that file"
ARRAYS_REMEDY = "give the arrays to sigdask.compare in Python, or write them as CSV"
TO_TEXT_REMEDY = "write what it holds as CSV, JSON lines or Parquet"

MAGIC_BYTES: tuple[tuple[bytes, str, str], ...] = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (such as .xls)", EXCEL_REMEDY),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it with `zstd -d`; gzip files are read as they are"),
    (b"\xfd7zXZ\0", "compressed with xz", "unpack it with `xz -d`; gzip files are read as they are"),
    (b"BZh", "compressed with bzip2", "unpack it with `bunzip2`; gzip files are read as they are"),
    (b"\x04\x22\x4d\x18", "compressed with lz4", "unpack it with `lz4 -d`; gzip files are read as they are"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK_REMEDY),
    (b"SQLite format 3\0", "a SQLite database", TO_TEXT_REMEDY),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", TO_TEXT_REMEDY),
    (b"\x93NUMPY", "a NumPy array (.npy)", ARRAYS_REMEDY),
    (b"%PDF-", "a PDF", "give the data that it shows"),
    *((bytes((0x80, k)), "a Python pickle", TO_TEXT_REMEDY) for k in range(2, 6)),
)
"""First bytes of binary files, with a description and the remedy."""

ZIP_MEMBERS = (
    ("mimetype", "an OpenDocument file", EXCEL_REMEDY),
    (".npy", "an archive of NumPy arrays (.npz)", ARRAYS_REMEDY),
    (".pkl", "a PyTorch file", TO_TEXT_REMEDY),
)
"""Ends of the names of members of a zip archive, with a description of the archive and the remedy."""

START_BYTES = 512
"""Bytes read to recognize a binary file. A tar archive identifies itself at byte 257."""

UNWRITTEN_START = bytes(16)
"""First bytes of a file whose size was reserved but whose contents were never written."""

HEAD = 1 << 16
"""Bytes read to recognize a format."""

PROGRESS_BYTES = 1 << 20
"""Bytes read between two progress reports."""

ReportProgress = Callable[[Path, int], None]
"""Called with a file and the position up to which it is read."""

_report_progress: ContextVar[ReportProgress | None] = ContextVar("tell", default=None)

NON_FILE_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
MAX_SHOWN_LENGTH = 1000
BLOCK = 512
"""Bytes of a block in a file's status."""

MAX_FILES = 100_000
"""Maximum number of files and folders below a folder."""


NOT_DATA = re.compile(
    r"(?i)^(readme|licen[cs]es?|copying|notice|authors|citation|changelog|(sha256|md5)sums?|makefile)([._-].*)?$"
    r"|\.(md|rst|toml|py|ipynb|sh|html?|pdf|png|svg|tex|bib|cff|sqlite|sqlite-journal|db|ya?ml)$"
)
"""Pattern of documentation, code and figures in a folder of outputs."""


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    r"""Open a text file for reading; line ends are not translated (``newline=""``).

    Parameters
    ----------
    path : Path
        A file of UTF-8 text, gzipped or not.

    Raises
    ------
    InputError
        The file is missing, a directory, unreadable, truncated or not UTF-8. Also raised while the caller reads inside
        the `with`.
    """
    try:
        with open_bytes(path) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise _build_encoding_error(path) from error


def enumerate_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, as `open_text` reads them, each with its number."""
    with open_text(path) as text:
        yield from enumerate(text, start=1)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip if its first two bytes are those of gzip."""
    try:
        _check_kind(path)
        with _open_raw(path) as raw:
            start = raw.read(START_BYTES)
            raw.seek(0)
            if start.startswith(UNWRITTEN_START):
                remedy = "download or write it again"
                raise InputError(f"begins with zero bytes, so it was not written completely; {remedy}", file=path)
            if (converted := convert_file(path, start)) is not None:
                yield io.BytesIO(converted)
                return
            if not start.startswith(GZIP):
                _check_binary(path, start)
                yield raw
                return
            with open_unpacked(path, raw) as stream:
                _check_binary(path, stream.read(START_BYTES), within="gzip")
                stream.seek(0)
                yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error}); download or compress it again", file=path) from error
    except FileNotFoundError:
        raise InputError("no such file", file=path) from None
    except IsADirectoryError:
        raise DirectoryError(
            f"{path}: is a directory, expected a file; name the files in it. If it has the logs of a system, add "
            f"{spell('format', 'samples')}",
            path,
        ) from None
    except OSError as error:
        raise InputError(f"{shorten_path(path)}: cannot be read ({error.strerror or error})") from error


def _check_binary(path: Path, start: bytes, within: str = "") -> None:
    """Raise an error for an unsupported binary file, with its kind and what to do instead."""
    kind = next(((description, remedy) for magic, description, remedy in MAGIC_BYTES if start.startswith(magic)), None)
    if start[257:262] == b"ustar":
        kind = "a tar archive", UNPACK_REMEDY
    elif start.startswith(ZIP):
        kind = _find_zip_kind(path) if not within else ("a zip archive", UNPACK_REMEDY)
    if kind is not None:
        description, remedy = kind
        raise RefusedFileError(
            f"is {description}{f' within {within}' * bool(within)}, which is not read; {remedy}", file=path
        )


def _find_zip_kind(path: Path) -> tuple[str, str] | None:
    """Return the kind of a zip archive and the remedy; None for Inspect logs, which are supported."""
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        names = []
    if path.suffix == ".eval" or any(name == "header.json" or name.startswith("_journal/") for name in names):
        return None
    for end, description, remedy in ZIP_MEMBERS:
        if any(name.endswith(end) for name in names):
            return description, remedy
    return "a zip archive", UNPACK_REMEDY


def _check_kind(path: Path) -> None:
    """Raise an error for pipes, sockets and devices, which might be read without end."""
    try:
        status = path.stat()
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"{str(path)!r}: no such file ({error})") from None
    kind = NON_FILE_KINDS.get(stat.S_IFMT(status.st_mode))
    if kind is not None:
        raise InputError(f"is {kind}, expected a file", file=path, remedy="save its content to a file, and give that")
    if stored := BLOCK * getattr(status, "st_blocks", 0):  # a sparse file is like a packed one
        check_unpacked_size(path, status.st_size, stored)


def shorten_path(path: Path) -> str:
    """Return a path as text for error messages, cut if it is very long."""
    text = str(path)
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


def list_files(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, sorted, without hidden files."""
    paths = sorted(islice(folder.rglob("*"), MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise InputError(
            f"has more than {MAX_FILES:,} files", file=folder, remedy="name a folder that has only the data"
        )
    visible = (path for path in paths if not any(name.startswith(".") for name in path.relative_to(folder).parts))
    return [path for path in visible if path.is_file()]


def report_reading(report: ReportProgress) -> AbstractContextManager[None]:
    """Report the path and position of each file that is read inside the `with` block."""
    return set_variable(_report_progress, report)


def report_whole(path: Path) -> None:
    """Report a file as read, where another process reads it."""
    if (report := _report_progress.get()) is not None:
        report(path, path.stat().st_size)


def _open_raw(path: Path) -> IO[bytes]:
    report = _report_progress.get()
    return path.open("rb") if report is None else io.BufferedReader(_TrackedFile(path, report), PROGRESS_BYTES)


class _TrackedFile(io.FileIO):
    """A file that reports its position while it is read."""

    def __init__(self, path: Path, tell: ReportProgress) -> None:
        super().__init__(path)
        self._path, self._report = path, tell

    def readinto(self, buffer: Any) -> Any:
        """Read bytes into a buffer, and report the position."""
        n = super().readinto(buffer)
        self._report(self._path, self.tell() if self.seekable() else 0)
        return n

    def readall(self) -> bytes:
        """Read the rest of the file in parts, after each of which the position is reported."""
        content, part = bytearray(), bytearray(min(PROGRESS_BYTES, 1 + os.fstat(self.fileno()).st_size))
        while n := self.readinto(part):
            content += part[:n]
        return bytes(content)


@dataclass(frozen=True)
class FileHead:
    """The first 64 kB of a file, by which its format is detected; nothing if it cannot be read.

    Attributes
    ----------
    start : bytes
        The bytes, unpacked.
    """

    start: bytes

    @property
    def is_arrow(self) -> bool:
        """Whether the first bytes are those of Parquet or Arrow."""
        return self.start.startswith((PARQUET, *ARROW_STARTS))

    @cached_property
    def text(self) -> str:
        """The text, in which other bytes than UTF-8 are replaced."""
        return self.start.decode("utf-8-sig", errors="replace")

    @property
    def is_json(self) -> bool:
        """Whether the text begins like JSON."""
        return self.text.lstrip().startswith(("{", "["))

    @cached_property
    def lines(self) -> list[str]:
        """The complete lines; none if they are not UTF-8."""
        end = max(self.start.rfind(b"\n"), self.start.rfind(b"\r")) + 1
        try:
            text = self.start[: len(self.start) if len(self.start) < HEAD else end].decode("utf-8-sig")
        except UnicodeDecodeError:
            return []
        return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @cached_property
    def filled_lines(self) -> list[str]:
        """The complete lines that are not empty."""
        return [line for line in self.lines if line.strip()]


@cache_result
def read_head(path: Path) -> FileHead:
    """Return the beginning of a file, for the detection of its format."""
    try:
        with open_bytes(path) as stream:
            return FileHead(stream.read(HEAD))
    except InputError:
        return FileHead(b"")


def is_parquet(path: Path) -> bool:
    """Return whether the first bytes of a file are those of Parquet or Arrow."""
    return read_head(path).is_arrow


def read_content(path: Path) -> bytes:
    """Return the bytes of a file, unpacked."""
    with open_bytes(path) as stream:
        return stream.read()


def read_lines(path: Path) -> list[str]:
    """Return the stripped lines of a text file, without empty ones at the end.

    Raises
    ------
    InputError
        The file has no text.
    """
    with open_text(path) as text:
        lines = [line.strip() for line in text]
    check_filled(path, lines := lines[: count_filled(lines)])
    return lines


def read_head_lines(path: Path) -> list[str]:
    """Return the first lines of a file, for format detection; none if it is not readable text."""
    return read_head(path).lines


def count_filled(texts: Sequence[str]) -> int:
    """Count the texts up to the last one that is not empty."""
    return next((n for n in range(len(texts), 0, -1) if texts[n - 1]), 0)


def build_empty_error(path: Path) -> InputError:
    """Return the error for an empty file."""
    return InputError("is empty, expected one row per item", file=path)


def check_filled(path: Path, content: object) -> None:
    """Raise the error for an empty file unless there is content."""
    if not content:
        raise build_empty_error(path)


def get_stem(path: Path) -> str:
    """Return the default name of a system: the name of its file without the ending.

    Examples
    --------
    >>> get_stem(Path("runs/bert-1.5.tsv.gz")), get_stem(Path("runs/bert-1.5"))
    ('bert-1.5', 'bert-1.5')
    """
    name = path.name.removesuffix(".gz")
    return re.sub(r"(?<=.)\.[A-Za-z]\w*$", "", name)


def name_by_difference(paths: Sequence[Path]) -> dict[Path, str]:
    """Return a distinct name for each file: its file name, or else the part of its path that differs.

    Examples
    --------
    >>> name_by_difference([Path("x.out1"), Path("x.out2")])[Path("x.out2")]
    'x.out2'
    >>> name_by_difference([Path("runs/a/1/test.txt"), Path("runs/b/test.txt")])[Path("runs/a/1/test.txt")]
    'a/1'
    """
    files = [path.name.removesuffix(".gz") for path in paths]
    if len(set(files)) == len(files):
        return dict(zip(paths, files, strict=True))
    split_paths = [(*path.parts[:-1], file) for path, file in zip(paths, files, strict=True)]
    head = _count_shared(split_paths)
    tails = [segments[head:] for segments in split_paths]
    tail = _count_shared([segments[::-1] for segments in tails])
    inner = ["/".join(segments[: len(segments) - tail]) for segments in tails]
    return dict(zip(paths, inner if all(inner) else map("/".join, tails), strict=True))


def _count_shared(sequences: Sequence[Sequence[str]]) -> int:
    """Return the number of leading parts that all sequences share."""
    return len(list(takewhile(lambda level: len(set(level)) == 1, zip(*sequences, strict=False))))


def _build_encoding_error(path: Path) -> InputError:
    """Return the error for a file that is not UTF-8. Of a large binary file, only the beginning is read."""
    with open_bytes(path) as stream:
        content = stream.read(HEAD)
        if not _is_binary(content, is_whole=False):
            content += stream.read()
    if _is_binary(content, is_whole=True):
        return RefusedFileError(f"is a binary file of an unknown kind; {TO_TEXT_REMEDY}", file=path)
    return build_encoding_error(content, path)


def check_text(path: Path) -> None:
    """Raise the error for a binary file, or for text that is not UTF-8."""
    with open_text(path) as text:
        while text.read(HEAD):
            pass


def _is_binary(content: bytes, *, is_whole: bool) -> bool:
    """Return whether the first line that is not UTF-8 has a zero byte. The last character may be cut off."""
    try:
        codecs.utf_8_decode(content, "strict", is_whole)
    except UnicodeDecodeError as error:
        line = content[content.rfind(b"\n", 0, error.start) + 1 :].partition(b"\n")[0]
        return b"\0" in line and content[:2] not in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
    return False


Row = tuple[int, Sequence[str]]
DELIMITERS = "\t,;"


def find_delimiter(header: str, decimal: str | None = None) -> str | None:
    r"""Return the first of tab, comma and semicolon in a header line outside quotation marks, or None.

    A comma that separates decimals does not separate columns.

    Examples
    --------
    >>> find_delimiter("item\ta,b"), find_delimiter('"item,b";a'), find_delimiter("label"), find_delimiter("0,5", ",")
    ('\t', ';', None, None)
    """
    header = re.sub(r'"[^"]*"', "", header) if '"' in header else header
    return next((mark for mark in DELIMITERS if mark in header and mark != decimal), None)


def parse_header(start: str) -> list[str]:
    """Return the cells of the first line of a text, for format detection."""
    first_line = start.lstrip().split("\n", 1)[0].strip()
    return [cell.strip().strip('"') for cell in first_line.split(find_delimiter(first_line) or "\t")]


def read_delimited_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a delimited file one by one, the header first.

    Raises
    ------
    InputError
        A row's width differs from the header's, there is an empty row between others, or a quotation mark is
        not that of a whole cell.
    """
    content = read_content(path)
    delimiter = find_delimiter(content[:HEAD].partition(b"\n")[0].decode(errors="replace")) or ","
    if are_quoted := get_option("quotes") != "text":
        check_quotes(path, content, delimiter)
    rows = split_rows(path, content, delimiter, are_quoted=are_quoted)
    header = next(rows, None)
    if header is None:
        raise build_empty_error(path)
    if not "".join(header[1]).strip():
        raise InputError("is empty, expected a header, and one row per item after it", file=path, line=header[0])
    yield header
    yield from check_widths(path, rows, len(header[1]))


def split_rows(path: Path, content: bytes, delimiter: str, *, are_quoted: bool) -> Iterator[Row]:
    """Yield the rows of delimited text by the `csv` module, each with the line that it begins on."""
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="") as text:
        quoting: Any = csv.QUOTE_MINIMAL if are_quoted else csv.QUOTE_NONE
        reader, end = csv.reader(text, delimiter=delimiter, strict=True, quoting=quoting), 0
        try:
            for cells in reader:
                start, end = end + 1, reader.line_num
                yield start, cells
        except UnicodeDecodeError:
            raise _build_encoding_error(path) from None
        except csv.Error as error:
            raise InputError(f"cannot be split into cells ({error})", file=path, line=end + 1) from None


QUOTE = 34
QUOTES_BLOCK = 1 << 24
"""Bytes whose quotation marks are checked at a time."""


def check_quotes(path: Path, content: bytes, delimiter: str) -> None:
    """Raise an error for the first quotation mark that does not enclose a whole cell.

    Marks open and close by turns. One opens at the begin of a cell and one closes at its end, and a doubled mark within
    a cell closes and opens again. Parsers accept others silently.
    """
    if b'"' not in content:
        return
    ends = np.zeros(256, np.bool_)
    ends[[ord(delimiter), 10, 13]] = True
    codes = np.frombuffer(content, np.uint8)
    n_before, is_open_since = 0, 0
    for first in range(0, len(codes), QUOTES_BLOCK):
        places = first + np.flatnonzero(codes[first : first + QUOTES_BLOCK] == QUOTE)
        opens = (n_before + np.arange(len(places))) % 2 == 0
        n_before += len(places)
        before, after = np.maximum(places - 1, 0), np.minimum(places + 1, len(codes) - 1)
        at_start = (places == 0) | ((places == len(BOM)) & content.startswith(BOM))
        is_begin = at_start | ends[codes[before]] | ((codes[before] == QUOTE) & (places > 0))
        is_end = (places == len(codes) - 1) | ends[codes[after]] | (codes[after] == QUOTE)
        is_stray = ~np.where(opens, is_begin, is_end)
        if is_stray.any():
            raise _build_quote_error(path, content, int(places[np.argmax(is_stray)]))
        if opens.any():
            is_open_since = int(places[opens][-1])
    if n_before % 2:
        raise _build_quote_error(path, content, is_open_since)


def _build_quote_error(path: Path, content: bytes, position: int) -> InputError:
    name = get_option("format") or "table"
    choice = f"{'table' if name == 'auto' else name}:quotes=text"
    return InputError(
        "a quotation mark does not enclose a whole cell",
        file=path,
        line=1 + content.count(b"\n", 0, position),
        remedy='put the cell in quotation marks and double the mark: "a ""word"" b". If all marks are part of the '
        f"texts, add {spell('format', choice)}",
    )


def check_widths(path: Path, rows: Iterator[Row], width: int) -> Iterator[Row]:
    """Yield rows without empty ones at the end.

    Raises
    ------
    InputError
        A row has another width, or there is an empty row between others.
    """
    blank = 0
    for number, cells in rows:
        if not cells:
            blank = blank or number
            continue
        if blank:
            raise build_width_error(path, blank, 0, width)
        if len(cells) != width:
            raise build_width_error(path, number, len(cells), width)
        yield number, cells


def format_cell(value: Any) -> str:
    """Format a typed cell as it would be written in a delimited file.

    Examples
    --------
    >>> format_cell(True), format_cell(None), format_cell(0.1), format_cell("x")
    ('true', '', '0.1', 'x')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else str(value)


def build_width_error(path: Path, line: int, n_cells: int, expected: int) -> InputError:
    """Return the error for a row that is not as wide as the header."""
    remedy = "complete the row, or remove it" if n_cells else "remove the blank line"
    if n_cells > expected:
        remedy = "remove the rest, or quote the field that holds a separator"
    if n_cells == expected + 1:
        remedy += (
            ". Do all rows have one more? Then the header lacks a name, or lines end with a separator (in R, write "
        )
        remedy += "with write.csv, or write.table(..., col.names = NA))"
    return InputError(
        file=path,
        line=line,
        found=f"{n_cells} field{'s' * (n_cells != 1)}",
        expected=f"{expected} as in the header",
        remedy=remedy,
    )


MAX_COLUMNS = 1 << 16
"""Maximum number of columns of a table. Readers take about 0.1 ms for each."""


def check_n_columns(path: Path, n_columns: int) -> None:
    """Raise an error for a table of more columns than can be compared."""
    if n_columns > MAX_COLUMNS:
        raise InputError(
            f"has {n_columns:,} columns, more than {MAX_COLUMNS:,}; expected one row per item and one column per "
            "system. If its columns are items, transpose the table",
            file=path,
        )


def check_header(path: Path, names: Sequence[str], ignore: Collection[str] = ()) -> None:
    """Raise an error for unnamed columns, and for repeated names unless they are ignored."""
    check_n_columns(path, len(names))
    known: set[str] = set()
    for k, name in enumerate(names):
        if not name:
            raise InputError(
                f"column {k + 1} has no name in the header", file=path, line=1, remedy="name it, or remove it"
            )
        if name in known and name not in ignore:
            remedy = f"name each system once, or leave these out with {spell('ignore', name)}"
            raise InputError(f"column {name!r} occurs twice in the header", file=path, line=1, remedy=remedy)
        known.add(name)


REPEATED_ID_REMEDY = (
    "give each item an id of its own. Are they samples of one item? Then give each sample a file, under one name "
    "(NAME=FILE NAME=FILE), and their scores are averaged"
)


def build_repeated_id_error(location: str, item: str, earlier: str, remedy: str = REPEATED_ID_REMEDY) -> InputError:
    """Return the error for a repeated id where rows are not samples of one item."""
    return InputError(f"{location}: id {item} is {earlier} already: {remedy}")
