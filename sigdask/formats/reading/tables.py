"""Read tables of any supported kind of file as columns of text, with the line of each row.

Delimited text is read by Arrow's CSV parser, which accepts stray quotation marks, skips blank lines and knows no line
numbers. Marks are therefore checked in the bytes, and the numbers of rows and lines are compared. The `csv` module only
finds the line for an error.

A table may also come from another package's reader, from parts of a run that are joined, or from a data frame.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts
from sigdask.errors import InputError, MissingColumnError, RefusedFileError
from sigdask.formats.reading import files, json_records
from sigdask.formats.reading.columns import (
    NUMBER,
    ArrowColumns,
    NotANumberError,
    build_strings,
    build_truths,
    convert_numbers,
    strip,
    to_numbers,
    to_numpy,
    to_texts,
)
from sigdask.formats.reading.options import Options
from sigdask.formats.roles import UNNAMED, name_role, resolve_roles, split_columns
from sigdask.interface import spell
from sigdask.io import get_option, set_variable, spell_option
from sigdask.io.addresses import describe_failure
from sigdask.statistics.numbering import find_first_rows
from sigdask.text import format_list, suggest_name

if TYPE_CHECKING:
    import pyarrow as pa

TableReader = Callable[[Path], Any]
"""Returns the Arrow table of a file. Its columns have the names of roles."""

_reader: ContextVar[TableReader | None] = ContextVar("reader of a declared format", default=None)
_tables: ContextVar[Mapping[Path, Any]] = ContextVar("tables by path", default=MappingProxyType({}))

TABLE_FORMATS = ("wide", "long", "labels", "responses", "numbers")
"""Formats whose files are tables. A data frame may have them, too."""

LIST_ROLES = frozenset({"score", "gold", "prediction"})
"""Roles of which a list's first line may have the name."""


MAX_BLOCK_BYTES = (1 << 31) - 1
"""Bytes that Arrow parses at a time at most. No row is longer."""

MAX_HEADER_BYTES = 1 << 22
"""Bytes in which the header ends."""

UNUSED = "\x1f"
"""A character that texts do not have, for the delimiter of lists."""


@dataclass(frozen=True, slots=True)
class DelimitedText:
    """The content of a file of delimited text.

    Attributes
    ----------
    path : Path
        The file, for errors.
    content : bytes
        Its bytes, unpacked, without byte-order mark and blank lines at the end.
    delimiter : str
        The first of tab, comma and semicolon in the first line, or else a character that texts do not have.
    are_quoted : bool
        Whether quotation marks enclose cells.
    """

    path: Path
    content: bytes
    delimiter: str
    are_quoted: bool

    @staticmethod
    def from_file(path: Path, decimal: str | None = None) -> DelimitedText:
        """Read a file, and find the delimiter in the first line."""
        content = files.read_content(path).removeprefix(files.BOM).rstrip(b"\r\n")
        files.check_filled(path, content)
        if b"\0" in content:
            line = 1 + content.count(b"\n", 0, content.index(b"\0"))
            raise RefusedFileError("has a zero byte", file=path, line=line, remedy="write the file again as UTF-8 text")
        delimiter = files.find_delimiter(_get_first_line(content), decimal) or UNUSED
        are_quoted = get_option("quotes") != "text" and b'"' in content
        return DelimitedText(path, content, delimiter, are_quoted)

    @property
    def first_line(self) -> str:
        """The first line, stripped."""
        return _get_first_line(self.content).strip()

    @property
    def is_list(self) -> bool:
        """Whether the lines are single cells."""
        return self.delimiter == UNUSED

    def read_header(self) -> list[str]:
        """Return the stripped cells of the first row, after a check of all quotation marks."""
        if self.are_quoted:
            files.check_quotes(self.path, self.content, self.delimiter)
        start = self.content[:MAX_HEADER_BYTES]
        rows = files.split_rows(self.path, start, self.delimiter, are_quoted=self.are_quoted)
        names = [cell.strip() for cell in next(rows)[1]]
        files.check_n_columns(self.path, len(names))
        return names

    def read_columns(self, names: Sequence[str], n_skipped: int) -> tuple[dict[str, pa.ChunkedArray], Sequence[int]]:
        """Return the columns without the first rows, and the line that each row begins on."""
        columns = self._parse(len(names))
        lines = self._compute_lines(columns)[n_skipped:]
        if not lines:
            raise InputError("has a header and no rows, expected one row per item", file=self.path)
        has_blanks = any(mark.encode() in self.content for mark in {" ", "\t"} - {self.delimiter})
        if has_blanks or self.are_quoted or not self.content.isascii():
            columns = [strip(column) for column in columns]
        return {name: column.slice(n_skipped) for name, column in zip(names, columns, strict=True)}, lines

    def _compute_lines(self, columns: Sequence[pa.ChunkedArray]) -> Sequence[int]:
        """Return the line that each row begins on, from the breaks within cells."""
        n_rows = len(columns[0])
        n_lines = 1 + (self.content.count(b"\n") or self.content.count(b"\r"))
        if n_lines == n_rows:
            return range(1, 1 + n_rows)
        breaks = np.sum([_count_breaks(column) for column in columns], axis=0) if self.are_quoted else np.zeros(n_rows)
        if n_lines != n_rows + breaks.sum():  # blank lines were skipped
            raise self._find_error(len(columns))
        return [*(1 + np.cumsum([0, *(1 + breaks)[:-1]])).tolist()]

    def _parse(self, width: int) -> list[pa.ChunkedArray]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(k) for k in range(width)]
        parsing = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char='"' if self.are_quoted else False,
            newlines_in_values=self.are_quoted,
            ignore_empty_lines=not self.is_list,
        )
        converting = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        block_size = min(len(self.content) + 1, MAX_BLOCK_BYTES)
        reading = arrow_csv.ReadOptions(column_names=names, block_size=block_size, use_threads=False)
        try:
            # `read_csv` gives the file to another thread, which takes ten times as long for a small one
            opened = arrow_csv.open_csv(pa.BufferReader(self.content), reading, parsing, converting)
            return list(opened.read_all().columns)
        except pa.ArrowInvalid:
            raise self._find_error(width) from None

    def _find_error(self, width: int) -> InputError:
        """Return the error for the first row that has another width than the header, or that is blank."""
        rows = files.split_rows(self.path, self.content, self.delimiter, are_quoted=self.are_quoted)
        try:
            for _ in files.check_widths(self.path, rows, width):
                pass
        except InputError as error:
            return error
        remedy = "give all lines the same kind of end"
        return InputError("cannot be split into rows", file=self.path, remedy=remedy)


def _get_first_line(content: bytes) -> str:
    return content[: files.HEAD].partition(b"\n")[0].partition(b"\r")[0].decode("utf-8", errors="replace")


def _count_breaks(column: pa.ChunkedArray) -> np.ndarray:
    """Return the number of line breaks in each cell."""
    import pyarrow as pa
    from pyarrow import compute

    return to_numpy(compute.count_substring(column, "\n").cast(pa.float64())).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class FileTable:
    """A file or data frame read as columns, with the line number of each row.

    Attributes
    ----------
    path : Path
        The file.
    columns : mapping of str to Texts
        Stripped cells of each column, in the order of the file. They are Arrow arrays in `columns.arrays`, which become
        texts when they are looked up. It may be built from any sequences of str and Arrow arrays.
    lines : sequence of int
        The line each row began on.
    header : bool
        Whether the file names its columns; if not, they are called 1, 2, ..., or "" where it has one.
    nested : mapping of str to sequence
        Columns with objects or lists in them, whose text is not to be compared; a name with dots leads inside.
    decimal : {",", "."}, or None
        Decimal separator, if the user stated it.
    """

    path: Path
    columns: Mapping[str, Sequence[str]]
    lines: Sequence[int]
    header: bool = True
    nested: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    decimal: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, ArrowColumns):
            object.__setattr__(self, "columns", ArrowColumns(self.columns))

    @staticmethod
    def from_arrow(path: Path, table: pa.Table, ignore: Collection[str] = ()) -> FileTable:
        """Build a table from the Arrow table of a file or data frame."""
        from pyarrow import types

        names = _check_header(path, table.schema.names, ignore)
        if not table.num_rows:
            raise InputError("has no rows, expected one row per item", file=path)
        stripped = (strip(c) if types.is_string(c.type) else c for c in table.columns)
        columns = dict(zip(names, stripped, strict=True))
        nested = {name: c.to_pylist() for name, c in columns.items() if types.is_nested(c.type)}
        nested = {name: cells for name, cells in nested.items() if any(isinstance(cell, dict | list) for cell in cells)}
        texts = {name: build_strings(map(files.format_cell, cells)) for name, cells in nested.items()}
        return FileTable(path, {**columns, **texts}, range(1, table.num_rows + 1), nested=nested)

    @property
    def arrays(self) -> dict[str, pa.ChunkedArray]:
        """The columns as Arrow arrays: strings, or values of the types that the file declares."""
        return cast("ArrowColumns", self.columns).arrays

    @property
    def n_rows(self) -> int:
        """Number of rows without the header."""
        return len(self.lines)

    def get_column(self, name: str) -> Sequence[str]:
        """Return a column, a field `a.b` of a column of objects, or the joined ids of `a+b`.

        Raises
        ------
        InputError
            There is no such column, or it holds objects or lists: their fields are named.
        """
        if name in self.nested:
            raise json_records.build_nested_error(self.path, name, self.lines, self.nested[name])
        if name not in self.columns:
            if (inner := json_records.get_field(self.nested, name)) is not None:
                return inner
            if len(parts := name.split("+")) > 1 and {*parts} <= self.columns.keys():
                return Texts.from_values(map("/".join, zip(*(self.columns[part] for part in parts), strict=True)))
            names = f"{format_list([*self.columns], 20)}{suggest_name(name, self.columns)}"
            raise MissingColumnError(f"{self.path}: no column {name[:1000]!r}; columns: {names}", name)
        return self.columns[name]

    def list_columns(self, text: str) -> tuple[str, ...]:
        """Return the columns that an option's value lists; raise an error if one is not there."""
        names = split_columns(text, self.columns)
        for name in names:
            self.get_column(name)
        return names

    def get_numbers(self, name: str) -> NDArray[Any]:
        """Return a column as numbers, float64 unless the file declares a smaller type; a missing cell is NaN."""
        try:
            if name in self.columns and name not in self.nested:
                return convert_numbers(self.arrays[name], self.decimal)
            return to_numbers(self.get_column(name))
        except NotANumberError as error:
            raise InputError(f"{self._format_place(name, error.index)}: {error}") from None

    def _format_place(self, name: str, index: int) -> str:
        """Return the file, line and column of a cell, for errors."""
        column_text = f", column {name!r}" if name else ""
        return f"{self.path}, line {self.lines[index]}{column_text}"

    def get_complete_numbers(self, name: str, problem: str) -> NDArray[np.float64]:
        """Return a column as numbers; raise an error that names the problem and its remedy if a number is missing."""
        numbers = self.get_numbers(name).astype(np.float64, copy=False)
        if (is_missing := np.isnan(numbers)).any():
            raise InputError(f"{self._format_place(name, int(np.argmax(is_missing)))}: {problem}")
        return numbers

    def describe_fault(self, name: str) -> str:
        """Return what is wrong with the first cell of a column that is neither a number nor missing, "" if none is."""
        try:
            self.get_numbers(name)
        except InputError as error:
            return str(error)
        return ""

    def find_id_column(self, options: Options) -> str | None:
        """Return the column of the items: the one that the user names, or the one whose name has this role."""
        if options.id_column is not None:
            self.get_column(options.id_column)
            return options.id_column
        return resolve_roles(self, options).get("item") if self.header else None

    def get_names(self, name: str, expected: str) -> Texts:
        """Return a column of names, such as ids or systems; raise an error for an empty cell."""
        cells = Texts.from_values(self.get_column(name))
        if cells.has_empty:
            line = self.lines[int(np.argmax(cells.equals("")))]
            raise InputError(f"column {name!r} is empty, expected {expected}", file=self.path, line=line)
        return cells

    def get_ids(self, options: Options) -> Texts | None:
        """Return the checked ids of the rows, or None if there are none."""
        name = self.find_id_column(options)
        if name is None or options.align == "position":
            return None
        cells = self.get_names(name, "an item id")
        if cells.are_unique:
            return cells
        codes = cells.encode().codes
        first_rows = find_first_rows(codes)[codes]
        row = int(np.argmax(first_rows != np.arange(len(cells))))
        place, first = f"{self.path}, line {self.lines[row]}", f"on line {self.lines[first_rows[row]]}"
        remedy = f"ids of column {name!r} must be unique. Do rows correspond as they stand? Then "
        raise files.build_repeated_id_error(place, repr(cells[row]), first, remedy + spell("align", "position"))

    def select_rows(self, is_selected: NDArray[np.bool_]) -> FileTable:
        """Return the table with the rows that a mask selects."""
        import pyarrow as pa

        mask = pa.array(is_selected)
        return replace(
            self,
            columns={name: array.filter(mask) for name, array in self.arrays.items()},
            lines=list(compress(self.lines, is_selected)),
            nested={name: list(compress(column, is_selected)) for name, column in self.nested.items()},
        )


def use_table_reader(reader: TableReader) -> AbstractContextManager[None]:
    """Read all tables by this function inside the `with` block."""
    return set_variable(_reader, reader)


def provide_tables(tables: Mapping[Path, Any]) -> AbstractContextManager[None]:
    """Take these tables for their paths inside the `with` block."""
    return set_variable(_tables, tables)


def _find_table(path: Path) -> Any:
    """Return the table that is provided for a path, or the Arrow table that the reader in use returns, or None."""
    reader = _reader.get()
    if path in _tables.get() or reader is None:
        return _tables.get().get(path)
    import pyarrow as pa

    try:
        return pa.table(reader(path))
    except InputError as error:
        raise error if str(path) in str(error) else InputError(str(error), file=path) from None
    except Exception as error:  # noqa: BLE001  # another package's function may raise anything
        raise InputError(describe_failure(error), file=path) from None


def read_table(path: Path, ignore: Collection[str] = ()) -> FileTable:
    """Return the table in a file."""
    if (table := _find_table(path)) is None:
        return _read_table_file(path, frozenset(ignore))
    return table if isinstance(table, FileTable) else FileTable.from_arrow(path, table, ignore)


@files.cache_result
def _read_table_file(path: Path, ignore: Collection[str]) -> FileTable:
    """Read a table of any kind: delimited text, JSON, Parquet, Arrow or a workbook.

    A file of one column is a list; its first line names the column if it is the name of a role.

    Parameters
    ----------
    path : Path
        The file.
    ignore : collection of str
        Columns that will be left out: they may occur twice.

    Raises
    ------
    InputError
        The file is not a valid table. The message names file and line.
    """
    if get_option("list") == "yes":
        cells = files.read_lines(path)
        return FileTable(path, {"": cells}, range(1, len(cells) + 1), header=False)
    head = files.read_head(path)
    if head.is_arrow:
        return FileTable.from_arrow(path, files.read_arrow_table(path), ignore)
    if head.is_json:
        return _read_json(path, ignore)
    decimal = get_option("decimal")  # a decimal comma cannot separate columns
    text = DelimitedText.from_file(path, decimal)
    if text.is_list:
        return replace(_read_list(path, text), decimal=decimal)
    names = text.read_header()
    if get_option("header") == "no":
        columns, lines = text.read_columns([str(k) for k, _ in enumerate(names, start=1)], 0)
        return FileTable(path, columns, lines, header=False, decimal=decimal)
    names = _check_header(path, names, ignore)
    columns, lines = text.read_columns(names, 1)
    return FileTable(path, columns, lines, decimal=decimal)


def _check_header(path: Path, names: Sequence[str], ignore: Collection[str] = ()) -> list[str]:
    """Return the names of columns, of which the first may be unnamed; raise an error for a line that may be data."""
    names = [UNNAMED if not k and not name and UNNAMED not in names else name for k, name in enumerate(names)]
    if any(NUMBER.fullmatch(name) for name in names) and not any(map(name_role, names)):
        raise InputError(file=path, line=1, found="data", expected="a header", remedy="add the names of the columns")
    files.check_header(path, names, ignore)
    return names


def _read_list(path: Path, text: DelimitedText) -> FileTable:
    """Return the table of a file of one column; the lines of a list without a name are cells as they stand."""
    first_line = text.first_line
    name = first_line[1:-1] if first_line[:1] == first_line[-1:] == '"' else first_line
    stated = get_option("header")
    has_header = not LIST_ROLES.isdisjoint(name_role(name)) if stated is None else stated == "yes"
    if not has_header:
        columns, lines = replace(text, are_quoted=False).read_columns([""], 0)
        return FileTable(path, columns, lines, header=False)
    columns, lines = text.read_columns(text.read_header(), 1)
    [(name, column)] = columns.items()
    if stated is None and name in (cells := to_texts(column)):
        line = 2 + cells.tolist().index(name)
        choices = " or ".join(spell_option(f"header={choice}") for choice in ("yes", "no"))
        problem = f"the first line, {name!r}, may be the name of the column, but occurs again"
        raise InputError(problem, file=path, line=line, remedy=f"say whether it is: {choices}")
    return FileTable(path, columns, lines)


def _read_json(path: Path, ignore: Collection[str]) -> FileTable:
    columns, lines = json_records.read_columns(path, ignore)
    names = _check_header(path, [name.strip() for name in columns])
    nested, arrays = {}, {}
    for name, cells in zip(names, columns.values(), strict=True):
        if any(isinstance(cell, dict | list) for cell in cells):
            nested[name] = cells
        if all(cell is None or isinstance(cell, bool) for cell in cells):
            arrays[name] = build_truths(cells)
        else:
            arrays[name] = build_strings(files.format_cell(cell).strip() for cell in cells)
    return FileTable(path, arrays, lines, nested=nested)


def build_table(path: Path, rows: list[files.Row]) -> FileTable:
    """Build a table from rows of cells, of which the first holds the column names."""
    columns = [list(map(str.strip, column)) for column in zip(*(cells for _, cells in rows), strict=True)]
    lines = [line for line, _ in rows]
    if len(rows) < 2:
        raise InputError("has a header and no rows, expected one row per item", file=path)
    names = _check_header(path, [column[0] for column in columns])
    return FileTable(path, {name: column[1:] for name, column in zip(names, columns, strict=True)}, lines[1:])
