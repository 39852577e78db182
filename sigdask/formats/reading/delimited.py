"""Delimited text as Arrow arrays of strings, by Arrow's CSV parser.

That parser accepts stray quotation marks, skips blank lines and knows no line numbers. Marks are therefore checked in
the bytes, and the numbers of rows and lines are compared. The `csv` module only finds the line for an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sigdask.errors import InputError
from sigdask.formats.reading import files
from sigdask.formats.reading.columns import strip
from sigdask.io.compression import get_option

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK_BYTES = 1 << 20
"""Bytes that Arrow parses at a time. No row is longer."""

N_BATCHES = 16
"""Parsed blocks that are copied into one. Arrow's parser reserves twice the memory that they need."""

MAX_HEADER_BYTES = 1 << 22
"""Bytes in which the header ends."""

UNUSED = "\x1f\x1e\x1d\x1c\x01\x02\x03\x04"
"""Characters that texts do not have, one of which stands for the delimiter that lists lack."""


@dataclass(frozen=True, slots=True)
class DelimitedText:
    """The content of a file of delimited text.

    Attributes
    ----------
    path : Path
        The file, for errors.
    content : bytes
        Its bytes, unpacked.
    start, stop : int
        Where the text begins and ends, without byte-order mark and blank lines at the end.
    n_lines : int
        Number of its lines.
    delimiter : str, or None
        The first of tab, comma and semicolon in the first line. None for a list.
    are_quoted : bool
        Whether quotation marks enclose cells.
    """

    path: Path
    content: bytes
    start: int
    stop: int
    n_lines: int
    delimiter: str | None
    are_quoted: bool

    @staticmethod
    def from_content(path: Path, content: bytes, decimal: str | None = None) -> DelimitedText:
        """Find the delimiter in the first line, and check that the content is text."""
        start = len(files.BOM) if content.startswith(files.BOM) else 0
        tail = content[-4096:]
        stop = len(content) - len(tail) + len(tail.rstrip(b"\r\n"))
        if len(tail) == 4096 and stop == len(content) - 4096:
            stop = len(content.rstrip(b"\r\n"))
        files.check_filled(path, content[start:stop].strip() if stop - start < 4096 else True)
        if b"\0" in content:
            line = 1 + content.count(b"\n", 0, content.index(b"\0"))
            files.check_text(path)
            raise InputError("holds a zero byte", file=path, line=line, remedy="write the file again as UTF-8 text")
        first_line = _get_first_line(content, start, stop)
        delimiter = files.find_delimiter(first_line, decimal)
        n_lines = 1 + (content.count(b"\n", start, stop) or content.count(b"\r", start, stop))
        return DelimitedText(path, content, start, stop, n_lines, delimiter, get_option("quotes") != "text")

    @property
    def first_line(self) -> str:
        """The first line, stripped."""
        return _get_first_line(self.content, self.start, self.stop).strip()

    def read_header(self) -> tuple[list[str], int]:
        """Return the stripped cells of the first row and its number of lines, after a check of all quotation marks."""
        assert self.delimiter is not None
        if self.are_quoted:
            files.check_quotes(self.path, self.content, self.delimiter)
        start = self.content[self.start : min(self.stop, self.start + MAX_HEADER_BYTES)]
        rows = files.split_rows(self.path, start, self.delimiter, are_quoted=self.are_quoted)
        names = [cell.strip() for cell in next(rows)[1]]
        files.check_n_columns(self.path, len(names))
        second = next(rows, None) if start.count(b'"') else None
        return names, 1 if second is None else second[0] - 1

    def read_columns(self, width: int, *, n_skipped: int) -> tuple[dict[str, pa.ChunkedArray], Sequence[int]]:
        """Return the columns below the header, called 1, 2, …, and the line that each row begins on."""
        assert self.delimiter is not None
        columns = self._parse(width, self.delimiter, n_skipped, are_quoted=self.are_quoted)
        lines = self._compute_lines(columns, 1 + n_skipped)
        if lines is None:
            remedy = "give all lines the same kind of end"
            error = self._find_width_error(width)
            raise error or InputError("cannot be split into rows", file=self.path, remedy=remedy)
        return self._strip(columns), lines

    def read_list(self, *, is_quoted: bool, n_skipped: int) -> tuple[pa.ChunkedArray, Sequence[int]]:
        """Return the lines of a list, and their numbers; cells of a list with a header may be quoted as in CSV."""
        delimiter = next((mark for mark in UNUSED if mark.encode() not in self.content), UNUSED[0])
        is_quoted = is_quoted and self.are_quoted
        if is_quoted:
            files.check_quotes(self.path, self.content, delimiter)
        columns = self._parse(1, delimiter, n_skipped, are_quoted=is_quoted, skip_blank=False)
        lines = self._compute_lines(columns, 1 + n_skipped)
        return self._strip(columns)["1"], lines or range(1 + n_skipped, 1 + n_skipped + len(columns["1"]))

    def _compute_lines(self, columns: Mapping[str, pa.ChunkedArray], first: int) -> Sequence[int] | None:
        """Return the line that each row begins on, from the breaks within cells; None if blank lines were skipped."""
        n_rows = len(columns["1"])
        if self.n_lines == n_rows + first - 1:
            return range(first, first + n_rows)
        if not self.are_quoted or b'"' not in self.content:
            return None
        breaks = np.sum([_count_breaks(column) for column in columns.values()], axis=0)
        if self.n_lines != n_rows + first - 1 + breaks.sum():
            return None
        return [*(first + np.cumsum([0, *(1 + breaks)[:-1]])).tolist()]

    def _parse(
        self, width: int, delimiter: str, n_skipped: int, *, are_quoted: bool, skip_blank: bool = True
    ) -> dict[str, pa.ChunkedArray]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names = [str(k) for k in range(1, width + 1)]
        if self.n_lines <= n_skipped:
            raise InputError("has a header and no rows, expected one row per item", file=self.path)
        has_quotes = are_quoted and b'"' in self.content
        parsing = arrow_csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if has_quotes else False,
            newlines_in_values=has_quotes,
            ignore_empty_lines=skip_blank,
        )
        converting = arrow_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        for block_size in (BLOCK_BYTES, self.stop - self.start + 1):
            reading = arrow_csv.ReadOptions(
                column_names=names, skip_rows=n_skipped, block_size=block_size, use_threads=False
            )
            try:
                content = pa.BufferReader(pa.py_buffer(self.content)[self.start : self.stop])
                with arrow_csv.open_csv(content, reading, parsing, converting) as reader:
                    table = _copy_batches(reader)
                break
            except pa.ArrowInvalid:
                if error := self._find_width_error(width):
                    raise error from None  # else a row is longer than a block
        else:
            raise InputError("cannot be split into rows of equal width", file=self.path)
        return dict(zip(names, table.columns, strict=True))

    def _strip(self, columns: dict[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
        """Return the columns without white space around cells, if the content has any."""
        spaces = (mark for mark in (b" ", b"\t") if mark.decode() != self.delimiter)
        quoted = self.are_quoted and b'"' in self.content  # then breaks may be within cells
        if quoted or any(mark in self.content for mark in spaces) or not self.content.isascii():
            return {name: strip(column) for name, column in columns.items()}
        return columns

    def _find_width_error(self, width: int) -> InputError | None:
        """Return the error for the first row that has another width than the header, or that is blank."""
        content = self.content[: self.stop]
        rows = files.split_rows(self.path, content, self.delimiter or "\0", are_quoted=self.are_quoted)
        try:
            for _ in files.check_widths(self.path, rows, width):
                pass
        except InputError as error:
            return error
        return None


def _copy_batches(reader: Any) -> pa.Table:
    """Return the table of a parser's batches in arrays of the size that they need; Arrow's have twice that size."""
    import pyarrow as pa

    tables, batches = [], []
    for batch in reader:
        batches.append(batch)
        if len(batches) == N_BATCHES:
            tables.append(pa.Table.from_batches(batches).combine_chunks())
            batches = []
    return pa.concat_tables([*tables, pa.Table.from_batches(batches, reader.schema).combine_chunks()])


def _get_first_line(content: bytes, start: int, stop: int) -> str:
    end = content.find(b"\n", start, stop)
    line = content[start : stop if end < 0 else end]
    return line.partition(b"\r")[0].decode("utf-8", errors="replace")


def _count_breaks(column: pa.ChunkedArray) -> np.ndarray:
    """Return the number of line breaks in each cell."""
    import pyarrow as pa
    from pyarrow import compute

    from sigdask.formats.reading.columns import to_numpy

    return to_numpy(compute.count_substring(column, "\n").cast(pa.float64())).astype(np.int64)
