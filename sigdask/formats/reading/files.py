"""Opening files and reading rows of cells: gzip is recognized by content, UTF-8 with or without a byte-order mark.

Every error names the file and, if there is one, the line. Inside `cache_files`, a file is read only once.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import islice
from pathlib import Path
from typing import IO, Any, ParamSpec, TextIO, TypeVar, cast

from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading import converted
from sigdask.formats.reading.converted import ARROW_STARTS, PARQUET
from sigdask.interface import spell
from sigdask.io import build_encoding_error, check_unpacked_size, get_option, open_unpacked, set_variable, spell_option

P = ParamSpec("P")
T = TypeVar("T")

_results: ContextVar[dict[Hashable, Any] | None] = ContextVar("results by function and arguments", default=None)


@contextmanager
def cache_files() -> Iterator[None]:
    """Read the head and the table of each file only once inside the `with` block."""
    with set_variable(_results, {} if (outer := _results.get()) is None else outer):
        yield


def cache_result(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function with the same arguments only once inside `cache_files`."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if (results := _results.get()) is None:
            return function(*args, **kwargs)
        if (key := (function, *args, *kwargs.items())) not in results:
            results[key] = function(*args, **kwargs)
        return cast("T", results[key])

    return call


convert_workbook = cache_result(converted.convert_workbook)
read_arrow_table = cache_result(converted.read_arrow_table)

GZIP, ZIP, BOM = b"\x1f\x8b", b"PK\x03\x04", codecs.BOM_UTF8

BINARY_KINDS = {
    b"\xd0\xcf\x11\xe0": "an old Office file (such as .xls)",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"\xfd7zXZ": "compressed with xz",
    b"BZh": "compressed with bzip2",
    b"\x04\x22\x4d\x18": "compressed with lz4",
    b"7z\xbc\xaf": "a 7z archive",
    ZIP: "a zip archive or OpenDocument file",
    b"SQLite": "a SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"%PDF-": "a PDF",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}
"""Kinds of binary files by their first bytes."""

START_BYTES = 512
"""Bytes read to recognize a binary file."""

HEAD = 1 << 16
"""Bytes read to recognize a format."""

HEAD_LINES = 100
"""Lines looked at to recognize a format."""

BLOCK = 512
"""Bytes of a block in a file's status."""

MAX_FILES = 100_000
"""Maximum number of files and folders below a folder."""


NOT_DATA = re.compile(
    r"(?i)^(readme|licen[cs]es?|copying|notice|authors|citation|changelog|(sha256|md5)sums?|makefile)([._-].*)?$"
    r"|\.(md|rst|toml|py|ipynb|sh|html?|pdf|png|svg|tex|bib|cff|ya?ml|(sqlite|db)(-journal|-lock|\.damaged-.*)?)$"
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
        raise build_text_error(path) from error


def enumerate_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file, as `open_text` reads them, each with its number."""
    with open_text(path) as text:
        yield from enumerate(text, start=1)


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, through gzip if its first two bytes are those of gzip."""
    try:
        _check_kind(path)
        with path.open("rb") as raw:
            start = raw.read(START_BYTES)
            raw.seek(0)
            if start.startswith(ZIP) and (sheet := convert_workbook(path, get_option("sheet"))) is not None:
                yield io.BytesIO(sheet)
            elif start.startswith(GZIP):
                with open_unpacked(path, raw) as stream:
                    _check_binary(path, stream.read(START_BYTES))
                    stream.seek(0)
                    yield stream
            else:
                _check_binary(path, start)
                yield raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"damaged gzip file ({error}); download or compress it again", file=path) from error
    except FileNotFoundError:
        raise RefusedFileError("no such file", file=path) from None
    except IsADirectoryError:
        remedy = f"name the files in it, as {path}/*. If it has the logs of a system, add {spell('format', 'samples')}"
        raise RefusedFileError("is a directory, expected a file", file=path, remedy=remedy) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror or error})", file=path) from error


def _check_binary(path: Path, start: bytes) -> None:
    """Raise an error for an unsupported binary file, with its kind."""
    if start.startswith((PARQUET, *ARROW_STARTS)) or (start.startswith(ZIP) and path.suffix == ".eval"):
        return
    kind = next((kind for magic, kind in BINARY_KINDS.items() if start.startswith(magic)), None)
    if kind is not None or b"\0\0" in start:
        raise _build_binary_error(path, kind or "a binary file of an unknown kind")


def _build_binary_error(path: Path, kind: str) -> RefusedFileError:
    remedy = "unpack it, or write what it holds as CSV (UTF-8), JSON lines or Parquet"
    return RefusedFileError(f"is {kind}, which is not read", file=path, remedy=remedy)


def _check_kind(path: Path) -> None:
    """Raise an error for pipes, sockets and devices, which might be read without end."""
    try:
        status = path.stat()
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"{str(path)!r}: no such file ({error})") from None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        problem = "is a pipe, socket or device, expected a file"
        raise InputError(problem, file=path, remedy="save its content to a file, and give that")
    if stored := BLOCK * getattr(status, "st_blocks", 0):  # a sparse file is like a packed one
        check_unpacked_size(path, status.st_size, stored)


def list_files(folder: Path) -> list[Path]:
    """Return all files in a folder and its subfolders, sorted, without hidden files."""
    paths = sorted(islice(folder.rglob("*"), MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        raise InputError(
            f"has more than {MAX_FILES:,} files", file=folder, remedy="name a folder that has only the data"
        )
    visible = (path for path in paths if not any(name.startswith(".") for name in path.relative_to(folder).parts))
    return [path for path in visible if path.is_file()]


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
        """The first complete lines; none if they are not UTF-8."""
        end = max(self.start.rfind(b"\n"), self.start.rfind(b"\r")) + 1
        try:
            text = self.start[: len(self.start) if len(self.start) < HEAD else end].decode("utf-8-sig")
        except UnicodeDecodeError:
            return []
        return re.split("\r\n|\n|\r", text, maxsplit=HEAD_LINES)[:HEAD_LINES]

    @cached_property
    def filled_lines(self) -> list[str]:
        """The first complete lines that are not empty."""
        return [line for line in self.lines if line.strip()]


@cache_result
def read_head(path: Path) -> FileHead:
    """Return the beginning of a file, for the detection of its format."""
    try:
        with open_bytes(path) as stream:
            return FileHead(stream.read(HEAD))
    except InputError:
        return FileHead(b"")


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
    while lines and not lines[-1]:
        lines.pop()
    check_filled(path, lines)
    return lines


def check_filled(path: Path, content: object) -> None:
    """Raise the error for an empty file unless there is content."""
    if not content:
        raise InputError("is empty, expected one row per item", file=path)


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
    names = [path.name.removesuffix(".gz") for path in paths]
    if len(set(names)) == len(names):
        return dict(zip(paths, names, strict=True))
    split_paths = [(*path.parts[:-1], name) for path, name in zip(paths, names, strict=True)]
    for end, rest in ((0, slice(1, None)), (-1, slice(-1))):
        while all(len(parts) > 1 for parts in split_paths) and len({parts[end] for parts in split_paths}) == 1:
            split_paths = [parts[rest] for parts in split_paths]
    return dict(zip(paths, map("/".join, split_paths), strict=True))


def build_text_error(path: Path) -> InputError:
    """Return the error for a file that is not UTF-8."""
    content = read_content(path)
    if b"\0" in content:
        return _build_binary_error(path, "a binary file of an unknown kind")
    return build_encoding_error(content, path)


Row = tuple[int, Sequence[str]]
DELIMITERS = "\t,;"


def find_delimiter(header: str, decimal: str | None = None) -> str | None:
    r"""Return the first of tab, comma and semicolon in a header line outside quotation marks, or None.

    A comma that separates decimals separates columns only in a header of names without another mark.

    Examples
    --------
    >>> find_delimiter("item\ta,b"), find_delimiter('"item,b";a'), find_delimiter("label"), find_delimiter("0,5", ",")
    ('\t', ';', None, None)
    """
    marks = DELIMITERS if decimal != "," else "\t;," if re.search(r"[^\W\d]", header) else "\t;"
    header = re.sub(r'"[^"]*"', "", header) if '"' in header else header
    return next((mark for mark in marks if mark in header), None)


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
    header = next(rows, (1, []))
    check_filled(path, "".join(header[1]).strip())
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
            raise build_text_error(path) from None
        except csv.Error as error:
            raise InputError(f"cannot be split into cells ({error})", file=path, line=end + 1) from None


QUOTED_CELLS = rb"""(?s:[^"]*+(?:(?<![^%b\r\n])|(?<=\A%b))"(?:[^"%b]++|"")*+"(?=[%b\r\n]|\Z))*+[^"]*+"""
"""Pattern of text whose quotation marks all enclose whole cells; delimiter, byte-order mark, and what no cell holds."""


def check_quotes(path: Path, content: bytes, delimiter: str) -> None:
    """Raise an error for the first quotation mark that does not enclose a whole cell. Parsers accept some silently."""
    if b'"' not in content:
        return
    mark = re.escape(delimiter.encode())
    # a mark in a text of a TSV file may seem to open a cell that another text ends, rows below
    unlikely = mark if delimiter == "\t" and get_option("quotes") is None else b""
    match = re.match(QUOTED_CELLS % (mark, BOM, unlikely, mark), content)
    if (end := match.end() if match else 0) < len(content):
        raise InputError(
            "a quotation mark does not enclose a whole cell",
            file=path,
            line=1 + content.count(b"\n", 0, content.find(b'"', end)),
            remedy='put the cell in quotation marks and double the mark: "a ""word"" b". If all marks are part of the '
            f"texts, add {spell_option('quotes=text')}; if cells in marks hold tabs, {spell_option('quotes=marks')}",
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
    >>> format_cell(True), format_cell(None), format_cell(0.1), format_cell("x"), format_cell(b"x")
    ('true', '', '0.1', 'x', 'x')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):  # of Parquet whose writer does not say that bytes are text
        return value.decode(errors="backslashreplace")
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else str(value)


def build_width_error(path: Path, line: int, n_cells: int, expected: int) -> InputError:
    """Return the error for a row that is not as wide as the header."""
    remedy = "complete the row, or remove it" if n_cells else "remove the blank line"
    if n_cells > expected:
        remedy = "quote the field that holds a separator, or name the column that the header lacks"
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
    if "" in names:
        problem = f"column {names.index('') + 1} has no name in the header"
        raise InputError(problem, file=path, line=1, remedy="name it, or remove it")
    if name := next((name for name, n in Counter(names).items() if n > 1 and name not in ignore), None):
        remedy = f"name each system once, or leave these out with {spell('ignore', name)}"
        raise InputError(f"column {name!r} occurs twice in the header", file=path, line=1, remedy=remedy)


REPEATED_ID_REMEDY = (
    "give each item an id of its own. Are they samples of one item? Then give each sample a file, under one name "
    "(NAME=FILE NAME=FILE), and their scores are averaged"
)


def build_repeated_id_error(location: str, item: str, earlier: str, remedy: str = REPEATED_ID_REMEDY) -> InputError:
    """Return the error for a repeated id where rows are not samples of one item."""
    return InputError(f"{location}: id {item} is {earlier} already: {remedy}")
