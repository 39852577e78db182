"""Reading the columns of tables without one Python object per cell: plain text, Parquet, and conversion to numbers.

Compiled functions find the cells of plain tables and lists in a file's bytes: one row per line, rows of equal width,
simple quoting. All other files are left to the slower reader (`tables.read_table`), which explains errors. If both can
read a file, both return the same table.

Columns of Parquet are loaded one by one: numbers stay numbers, and texts stay in Arrow's buffers. JSON objects with one
list per column are read as `evaluate`, BERTScore and pandas write them. Text is converted to float64 in blocks, and
unusual cells are parsed one by one.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts
from sigdask.errors import InputError, explain_missing
from sigdask.formats.reading.converted import convert_file
from sigdask.formats.reading.files import MAX_COLUMNS, START_BYTES, format_cell, open_bytes
from sigdask.interface import spell
from sigdask.io.caches import cached_njit, inlined_njit
from sigdask.io.compression import check_parquet

WORD = 8
"""Bytes of padding after the last byte of a file."""

NOT_PLAIN = -1
"""Returned in place of the number of rows if the file is not a plain table."""

SPACE = np.zeros(256, np.bool_)
"""First and last bytes of white space. Texts that begin or end with one are stripped by Python."""
SPACE[[*range(33), 0x80, 0x85, 0xA0, *range(0x81, 0x8B), 0xA8, 0xA9, 0xAF, 0x9F, 0xC2, 0xE1, 0xE2, 0xE3]] = True

MAX_CELL_WIDTH = 131_072
"""Maximum bytes of a cell (`csv.field_size_limit`)."""

POWERS = 10.0 ** np.arange(23)
"""Powers of ten that float64 holds exactly."""

MAX_EXACT = 2**53
"""Whole numbers up to this are exact in float64."""


@cached_njit()
def split_cells(buffer, start_of_data, end, delimiter, quoted, starts, stops):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0911, PLR0912
    """Fill `starts` and `stops`, shape (width, n), with the bounds of cells; return the row count.

    The count is `NOT_PLAIN` if a row has another width, a cell contains quotation marks, line ends differ, or there
    are blank lines between others. In rows of one cell quotation marks are text, and blank lines cells.
    """
    width, max_rows = starts.shape
    is_end = np.zeros(256, np.bool_)  # bytes that end a cell without quotation marks
    is_end[delimiter] = is_end[0] = is_end[10] = is_end[13] = True
    is_end[34] = quoted
    row, column, position = 0, 0, start_of_data
    while position < end:
        start = position
        is_quoted = quoted and buffer[position] == 34
        if is_quoted:
            start += 1
            position += 1
            while (
                position < end
                and buffer[position] != 34
                and buffer[position] != 10
                and buffer[position] != 13
                and buffer[position] != 0
            ):
                position += 1
            if position >= end or buffer[position] != 34:
                return NOT_PLAIN
            stop = position
            position += 1
            if position < end and buffer[position] != delimiter and buffer[position] != 10 and buffer[position] != 13:
                return NOT_PLAIN
        else:
            while position < end:
                if is_end[buffer[position]]:
                    break
                position += 1
            stop = position
        closes = position >= end or buffer[position] != delimiter
        if position < end and closes:
            if buffer[position] == 13 and position + 1 < end and buffer[position + 1] == 10:
                position += 1
            elif buffer[position] != 10:
                return NOT_PLAIN
        if closes and column == 0 and start == stop and width > 1 and not is_quoted:
            while position < end:
                if buffer[position] != 10 and buffer[position] != 13:
                    return NOT_PLAIN
                position += 1
            return row
        if column >= width or row >= max_rows or stop - start > MAX_CELL_WIDTH or (closes and column != width - 1):
            return NOT_PLAIN
        if start < stop and (SPACE[buffer[start]] or SPACE[buffer[stop - 1]]):
            while start < stop and _is_space(buffer[start]):
                start += 1
            while start < stop and _is_space(buffer[stop - 1]):
                stop -= 1
            if start < stop and (_is_wide_space(buffer, start, stop) or _ends_in_wide_space(buffer, start, stop)):
                return NOT_PLAIN
        starts[column, row] = start
        stops[column, row] = stop
        position += 1
        column += 1
        if closes:
            column = 0
            row += 1
    return row if column == 0 else NOT_PLAIN


@inlined_njit
def _is_space(c):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return c == 32 or 9 <= c <= 13 or 28 <= c <= 31


@inlined_njit
def _is_wide_space(buffer, position, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return whether a Unicode space of two or three bytes begins at a position."""
    c = buffer[position]
    if c < 194 or c > 227 or stop - position < 2:
        return False
    second = buffer[position + 1]
    if c == 194:
        return second in {133, 160}
    if stop - position < 3:
        return False
    third = buffer[position + 2]
    if c == 225:
        return second == 154 and third == 128
    if c == 226:
        return (second == 128 and (third <= 138 or third in {168, 169, 175})) or (second == 129 and third == 159)
    return c == 227 and second == 128 and third == 128


@inlined_njit
def _ends_in_wide_space(buffer, start, stop):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    return (stop - start >= 2 and buffer[stop - 2] == 194 and _is_wide_space(buffer, stop - 2, stop)) or (
        stop - start >= 3 and buffer[stop - 3] >= 225 and _is_wide_space(buffer, stop - 3, stop)
    )


@cached_njit()
def parse_decimals(buffer, starts, stops, out, odd):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, C901, PLR0912
    """Parse decimals to float64 (empty: NaN), mark other cells in `odd`, and return their number.

    A whole number up to 2**53 times or divided by a power of ten up to 10**22 is rounded once, and so is the float64
    nearest to what is written (Clinger 1990, "How to read floating point numbers accurately").
    """
    n_odd = 0
    for k in range(len(starts)):
        position, stop = np.int64(starts[k]), np.int64(stops[k])
        odd[k] = False
        out[k] = np.nan
        if position == stop:
            continue
        if stop - position == 1 and 48 <= buffer[position] <= 57:  # such as 0 and 1
            out[k] = np.float64(buffer[position]) - 48.0
            continue
        negative = bool(buffer[position] == 45)
        if negative or buffer[position] == 43:
            position += 1
        digits, power, n_decimals, n_digits, has_point, is_plain = np.int64(0), np.int64(0), 0, 0, False, True
        while position < stop:
            c = buffer[position]
            if 48 <= c <= 57:
                digits = digits * 10 + (np.int64(c) - 48)
                n_digits += 1
                n_decimals += has_point
                if digits > MAX_EXACT:
                    is_plain = False
                    break
            elif c == 46 and not has_point:
                has_point = True
            else:
                break
            position += 1
        if is_plain and position < stop and (buffer[position] == 101 or buffer[position] == 69):
            position += 1
            sign = buffer[position] if position < stop else 0
            if sign in {43, 45}:
                position += 1
            is_plain = bool(position < stop)
            while position < stop and 48 <= buffer[position] <= 57 and power < 1000:
                power = power * 10 + (np.int64(buffer[position]) - 48)
                position += 1
            if sign == 45:
                power = -power
        power -= n_decimals
        if not is_plain or position < stop or n_digits == 0 or power < -22 or power > 22:
            odd[k] = True
            n_odd += 1
            continue
        value = np.float64(digits)
        value = value / POWERS[-power] if power < 0 else value * POWERS[power]
        out[k] = -value if negative else value
    return n_odd


MIN_BYTES = 1 << 16
"""Minimum size of a file for the compiled reader. Smaller files are read before it is loaded."""

MAX_GZIP_RATIO = 100
"""Maximum ratio of a text's size to that of its gzip file."""

CHUNK_BYTES = 1 << 20
"""Bytes whose lines are counted at a time."""

BOM = b"\xef\xbb\xbf"


def read_plain_columns(path: Path, delimiter: str | None) -> list[Texts] | None:
    """Return the stripped cells of each column, header first, or the lines of a one-column list.

    None where it is not plain, or small.

    Parameters
    ----------
    path : Path
        The file, gzipped or not.
    delimiter : str, or None
        Separator of cells. None for a list.
    """
    if _is_small(path):
        return None
    buffer = _read_buffer(path)
    end = len(buffer) - WORD
    start = len(BOM) if buffer[: len(BOM)].tobytes() == BOM else 0
    if end - start < MIN_BYTES or not _is_utf8(buffer[start:end]):
        return None
    if delimiter is None:
        columns = _split_columns(buffer, start, end, None, 1)
        n_filled = 1 + int(np.flatnonzero(columns[0].sizes).max(initial=-1)) if columns else 0
        return [columns[0][:n_filled]] if columns and n_filled else None
    header_line = buffer[start : start + MAX_CELL_WIDTH].tobytes().partition(b"\n")[0]
    width = _count_cells(header_line.decode(errors="replace"), delimiter)
    return _split_columns(buffer, start, end, delimiter, width) if 1 < width <= MAX_COLUMNS else None


def _is_small(path: Path) -> bool:
    """Return whether a file is small, even if unpacked, or cannot be read twice."""
    try:
        return not path.is_file() or path.stat().st_size < MIN_BYTES // MAX_GZIP_RATIO
    except OSError:
        return True


def _read_buffer(path: Path) -> NDArray[np.uint8]:
    """Return the bytes of a file, followed by zeros."""
    buffer, end = np.zeros(path.stat().st_size + WORD, np.uint8), 0
    with open_bytes(path) as stream:
        while chunk := stream.read(CHUNK_BYTES):
            if end + len(chunk) + WORD > len(buffer):  # it is packed
                buffer = np.concatenate([buffer, np.zeros(len(buffer) + len(chunk), np.uint8)])
            buffer[end : end + len(chunk)] = np.frombuffer(chunk, np.uint8)
            end += len(chunk)
    return buffer[: end + WORD]


def _is_utf8(content: NDArray[np.uint8]) -> bool:
    """Return whether the bytes are valid UTF-8."""
    position = 0
    while position < len(content):
        chunk = content[position : position + CHUNK_BYTES].tobytes()
        if chunk.isascii():
            position += len(chunk)
            continue
        end = max(chunk.rfind(b"\n") + 1, 0) if position + CHUNK_BYTES < len(content) else len(chunk)
        try:
            chunk[:end].decode()
        except UnicodeDecodeError:
            return False
        if not end:
            return False
        position += end
    return True


def _count_cells(line: str, delimiter: str) -> int:
    """Return the number of cells in the first line, or 0 if it cannot be parsed."""
    try:
        return len(next(csv.reader([line.strip()], delimiter=delimiter, strict=True), []))
    except csv.Error:
        return 0


def _split_columns(
    buffer: NDArray[np.uint8], start: int, end: int, delimiter: str | None, width: int
) -> list[Texts] | None:
    n_lines = sum(
        int(np.count_nonzero(buffer[k : min(k + CHUNK_BYTES, end)] == ord("\n")))
        for k in range(start, end, CHUNK_BYTES)
    )
    bounds = np.empty((2, width, n_lines + 1), np.uint32 if len(buffer) < 2**32 else np.uint64)
    n_rows = split_cells(buffer, start, end, ord(delimiter or "\0"), delimiter is not None, bounds[0], bounds[1])
    if n_rows == NOT_PLAIN:
        return None
    return [_gather_texts(buffer, bounds[0, k, :n_rows], bounds[1, k, :n_rows]) for k in range(width)]


def _gather_texts(buffer: NDArray[np.uint8], starts: NDArray[Any], stops: NDArray[Any]) -> Texts:
    """Copy the texts of a column from the bytes of a file."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    content = np.empty(offsets[-1], np.uint8)
    copy_cells(buffer, starts, offsets, content)
    return Texts.from_bytes(content, offsets)


@cached_njit()
def copy_cells(buffer, starts, offsets, content):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write texts one after the other."""
    for k in range(len(starts)):
        for position in range(offsets[k], offsets[k + 1]):
            content[position] = buffer[starts[k] + position - offsets[k]]


class TypedColumn(Texts):
    """A column of typed values that are formatted as text only on access.

    Parameters
    ----------
    load : callable
        Reads the column: an Arrow array, in chunks.
    size : int
        Its length.
    numeric : bool
        Whether its values are numbers.
    """

    def __init__(self, load: Callable[[], Any], size: int, *, numeric: bool) -> None:
        vars(self).update(load=load, size=size, is_numeric=numeric)

    load: Callable[[], Any]
    size: int
    is_numeric: bool

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            start, stop, step = which.indices(self.size)
            if step == 1:
                size = max(stop - start, 0)
                return TypedColumn(lambda: self.load().slice(start, size), size, numeric=self.is_numeric)
        return super().__getitem__(which)

    @cached_property
    def texts(self) -> Texts:
        """The stripped texts, empty where there is no value."""
        import pyarrow as pa

        values = self.load()
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_integer(values.type) or pa.types.is_boolean(values.type):
            values = values.cast(pa.string())
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            values = values.cast(pa.large_string())
            converted = Texts.from_arrow(values)
            offsets = converted.offsets
            filled = np.diff(offsets) > 0
            ends = converted.content[offsets[:-1][filled]], converted.content[offsets[1:][filled] - 1]
            if not any(SPACE[end].any() for end in ends):
                return converted
        return Texts.from_values(format_cell(value).strip() for value in values.to_pylist())

    @property
    def array(self) -> Any:
        """The texts as an array of Arrow."""
        return self.texts.array

    def get_numbers(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the numbers (missing: NaN), and a mask of values that are themselves NaN or infinite."""
        values = self.load()
        numbers = values.to_numpy().astype(np.float64, copy=False)
        odd = ~np.isfinite(numbers)
        if values.null_count:
            odd &= ~values.is_null().to_numpy()
        return numbers, odd


class ParquetColumns:
    """The columns of a Parquet file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InputError
        The file is damaged, or pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        with explain_missing("pyarrow", "parquet", f"{path}: Parquet"):
            from pyarrow import parquet
        self.path = path
        with self._report_damage():
            with path.open("rb") as file:
                converted = convert_file(path, file.read(START_BYTES))
            self.file = parquet.ParquetFile(path if converted is None else io.BytesIO(converted), pre_buffer=False)
        if converted is None:
            check_parquet(path, self.file.metadata)
        self.schema = self.file.schema_arrow
        self.names = self.schema.names  # a new list each time
        self.n_rows = self.file.metadata.num_rows

    def __iter__(self) -> Iterator[tuple[str, TypedColumn]]:
        """Yield the name and values of each column."""
        from pyarrow import types

        for k, field in enumerate(self.schema):
            numeric = types.is_integer(field.type) or types.is_floating(field.type)
            yield field.name, TypedColumn(partial(self.read_values, k), self.n_rows, numeric=numeric)

    def read_values(self, k: int) -> Any:
        """Return the values of one column as a chunked Arrow array."""
        with self._report_damage():
            return self.file.read(columns=[self.names[k]], use_threads=False).column(0)

    def read_nested(self) -> dict[str, list[Any]]:
        """Return the columns that hold objects or lists."""
        from pyarrow import types

        names = [(k, field.name) for k, field in enumerate(self.schema) if types.is_nested(field.type)]
        columns = ((name, self.read_values(k).to_pylist()) for k, name in names)
        return {name: cells for name, cells in columns if any(isinstance(cell, dict | list) for cell in cells)}

    def iter_rows(self, batch: int) -> Iterator[dict[str, Any]]:
        """Yield the rows, with only a small batch in memory at a time, because conversations are large."""
        with self._report_damage():
            for rows in self.file.iter_batches(batch_size=batch):
                yield from rows.to_pylist()

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            raise InputError(f"damaged Parquet file ({error})", file=self.path) from None


NO_VALUE = frozenset({"-", "--", "---", "–", "—", "?", ".", "*", "n.a.", "n.a", "n/a", "na", "#n/a", "none", "null",
                      "nil", "missing", "x"})  # fmt: skip
"""Cells, in lower case, that people write for a missing score and that are not read as one."""

MISSING = frozenset({"", "NA", "N/A", "None", "null"})


PERCENT_PROBLEM = (
    "a number with a percent sign; remove the percent signs in all columns and files, so that all have one scale"
)


class NotANumberError(ValueError):
    """A cell that is not a finite number.

    Attributes
    ----------
    index : int
        Its position among the cells.
    problem : str
        What was found, and what was expected.
    is_gap : bool
        The cell says that there is no value: NaN, infinity or a word such as "n/a".
    is_float : bool
        The cell is a floating-point number, but not a finite one.
    """

    def __init__(
        self, index: int, problem: str, remedy: str = "", *, is_gap: bool = False, is_float: bool = False
    ) -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else problem)
        self.index = index
        self.problem = problem
        self.remedy = remedy
        self.is_gap = is_gap
        self.is_float = is_float

    def with_index(self, index: int) -> NotANumberError:
        """Return the same error for a cell at another position."""
        return NotANumberError(index, self.problem, self.remedy, is_gap=self.is_gap, is_float=self.is_float)


def is_percent(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers with percent signs, or missing.

    Examples
    --------
    >>> is_percent(["45.3%", "", "7 %"]), is_percent(["45.3%", "high"]), is_percent(["", "NA"])
    (True, False, False)
    """
    filled = (cell for cell in cells if cell not in MISSING)
    percents = chain([next(filled, "")], filled)
    return all(cell.endswith("%") and cell != "%" and is_number(cell[:-1].rstrip()) for cell in percents)


def to_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Convert cells to numbers; a missing cell (empty, NA, None) becomes NaN, nothing else does.

    Raises
    ------
    NotANumberError
        A cell is text, or an explicit NaN or infinity.

    Examples
    --------
    >>> to_numbers(["3e-04", " 1.0 ", "NA"])
    array([3.e-04, 1.e+00,    nan])
    """
    if isinstance(cells, TypedColumn) and cells.is_numeric:
        values, odd = cells.get_numbers()
        if odd.any():
            check_finite(float(values[np.argmax(odd)]), int(np.argmax(odd)))
        return values
    if isinstance(cells, Texts):
        return _convert_texts(cells)
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        values = np.array([math.nan])
    if np.isfinite(values).all():
        return values
    return np.array([_parse_number(cell.strip(), k) for k, cell in enumerate(cells)], dtype=np.float64)


def _convert_texts(cells: Texts) -> NDArray[np.float64]:
    """Convert texts to numbers: plain decimals by compiled code, all other cells by Python."""
    values, odd = np.empty(len(cells)), np.empty(len(cells), np.bool_)
    offsets, content = cells.offsets, np.append(cells.content, np.zeros(WORD, np.uint8))
    for first in range(0, len(cells), CONVERTED_CELLS):  # a column of names is left at its first block
        block = slice(first, first + CONVERTED_CELLS)
        if parse_decimals(content, offsets[:-1][block], offsets[1:][block], values[block], odd[block]):
            rows = first + np.flatnonzero(odd[block])
            try:
                values[rows] = to_numbers(cells[rows].tolist())
            except NotANumberError as error:
                raise error.with_index(int(rows[error.index])) from None
    return values


CONVERTED_CELLS = 1 << 16
"""Cells converted to numbers at a time."""

FEW_CELLS = 64
"""Up to this number, checking cells one by one is faster than with an array."""


def has_numbers(cells: Texts) -> bool:
    """Return whether any cell is a number or missing.

    Examples
    --------
    >>> has_numbers(Texts.from_values(["news-1", "nan"])), has_numbers(Texts.from_values(["news-1", "NA"]))
    (False, True)
    """
    if isinstance(cells, TypedColumn) and cells.is_numeric:
        return True
    if len(cells) <= FEW_CELLS:
        return any(_may_be_number(cell) and (cell in MISSING or is_number(cell)) for cell in cells.tolist())
    first_bytes = cells.content[cells.offsets[:-1][cells.sizes > 0]]
    if len(first_bytes) < len(cells):
        return True
    missing = cells[(first_bytes | 32) == ord("n")]  # of numbers "nan" alone, which is none
    numbers = cells[np.isin(first_bytes, np.frombuffer(b"0123456789+-._", np.uint8)) | (first_bytes >= 128)]
    return any(cell in MISSING for cell in missing) or any(map(is_number, numbers))


def _may_be_number(cell: str) -> bool:
    """Return whether a cell's first character is one that a number or a missing value begins with."""
    return not cell or cell[0] in "0123456789+-._nN" or cell[0] >= "\x80"


def find_numbers(cells: Sequence[str]) -> NDArray[np.float64] | None:
    """Return the cells as numbers, with NaN for missing ones; None if any cell is not a finite number."""
    try:
        return to_numbers(cells)
    except NotANumberError:
        return None


def is_number(cell: str) -> bool:
    """Return whether a cell holds a finite number or is missing."""
    return find_numbers([cell]) is not None


def check_finite(value: float, index: int) -> float:
    """Return a number, or raise an error if it is NaN or infinite.

    Raises
    ------
    NotANumberError
        There are NaN or infinite numbers.
    """
    if not math.isfinite(value):
        raise NotANumberError(
            index,
            f"found {value}, expected a finite number",
            f"If the score is missing, leave the cell empty, and choose {spell('missing', 'pairwise')} or "
            f"{spell('missing', 'zero')}",
            is_gap=True,
            is_float=True,
        )
    return value


def _parse_number(cell: str, index: int) -> float:
    if cell in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        if is_percent([cell]):
            raise NotANumberError(index, f"found {cell!r}, {PERCENT_PROBLEM}") from None
        if cell.strip().casefold() in NO_VALUE:
            raise NotANumberError(
                index,
                f"found {cell!r}, expected a number",
                "If the score is missing, leave the cell empty or write NA, and choose "
                f"{spell('missing', 'pairwise')} or {spell('missing', 'zero')}",
                is_gap=True,
            ) from None
        raise NotANumberError(
            index,
            f"found {cell!r}, expected a number",
            f"Correct it. If the column is not a system, name it with {spell('columns', 'item=COLUMN')}, "
            f"{spell('unit')} or {spell('by')}, or leave it out with {spell('ignore')}",
        ) from None
    return check_finite(value, index)
