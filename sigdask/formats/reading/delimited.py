"""Delimited text as Arrow arrays of strings, by Arrow's CSV parser.

That parser accepts stray quotation marks, skips blank lines and knows no line numbers. Marks are therefore checked in
the bytes, and the numbers of rows and lines are compared. The `csv` module only finds the line for an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sigdask.errors import InputError, RefusedFileError
from sigdask.formats.reading import files
from sigdask.formats.reading.columns import strip, to_numpy
from sigdask.io import get_option

if TYPE_CHECKING:
    import pyarrow as pa

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
            return list(arrow_csv.read_csv(pa.BufferReader(self.content), reading, parsing, converting).columns)
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
