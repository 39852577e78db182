"""Binary tables: Parquet, Arrow (also known as Feather) and Excel workbooks.

Their decoded size is checked before they are decoded. Workbooks become CSV when a text reader opens them.
"""

from __future__ import annotations

import csv
import io
import re
import struct
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigdask.errors import RefusedFileError, explain_missing
from sigdask.io import check_unpacked_size, spell_option

if TYPE_CHECKING:
    import pyarrow as pa

WORKBOOK_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, SyntaxError, zipfile.BadZipFile)
"""Errors that openpyxl raises for damaged workbooks."""

CELL_BYTES = 64
"""Memory of a cell of a workbook. openpyxl takes some 5 µs for each."""

XML_RATIO = 4
"""Memory and time that the text of a workbook takes, compared with other text."""


PARQUET = b"PAR1"
ARROW_STARTS = (b"ARROW1\0\0", b"\xff\xff\xff\xff")
"""First bytes of an Arrow file and of an Arrow stream."""

ROW = re.compile(rb"""<(?:\w+:)?row\b([^<>]*)>\s*<(?:\w+:)?c\b[^<>]*\br=["'](\w+)""")
HIDDEN = re.compile(rb"""\bhidden=["'](?:1|true)""")
FORMULA = re.compile(rb"<(?:\w+:)?f[\s/>]")
COMPUTED = re.compile(rb"<(?:\w+:)?f(?:\s[^<>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)<(?:\w+:)?v>[^<]")
"""Patterns in the XML of a sheet: a row and its first cell, its mark, a formula, and one with its value."""


def read_arrow_table(path: Path) -> pa.Table:
    """Return the table in a file of Parquet or Arrow.

    Raises
    ------
    InputError
        The file is damaged, or larger when decoded than the limit.
    """
    import pyarrow as pa

    content, stored = pa.py_buffer(path.read_bytes()), path.stat().st_size
    start = content[: len(ARROW_STARTS[0])].to_pybytes()
    is_parquet, is_file = start.startswith(PARQUET), start == ARROW_STARTS[0]
    try:
        if is_parquet:
            return _read_parquet(path, content, stored)
        check_unpacked_size(path, sum(_iter_buffer_sizes(content[len(start) :] if is_file else content)), stored)
        open_arrow = pa.ipc.open_file if is_file else pa.ipc.open_stream
        return _check_dictionaries(path, open_arrow(content).read_all(), stored)
    except (OSError, ValueError, struct.error, IndexError) as error:
        reason = " ".join(str(error).split())
        problem = f"cannot be read as {'a Parquet' if is_parquet else 'an Arrow'} file ({reason})"
        raise RefusedFileError(problem, file=path, remedy="write it again") from None


def _read_parquet(path: Path, content: Any, stored: int) -> pa.Table:
    """Return the table of a Parquet file; texts that may repeat stay in dictionaries until their size is known."""
    import pyarrow as pa
    from pyarrow import parquet

    metadata = parquet.read_metadata(pa.BufferReader(content))
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    chunks = [group.column(c) for group in groups for c in range(metadata.num_columns)]
    n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
    n_values = sum(chunk.num_values for chunk in chunks)
    check_unpacked_size(path, max(n_bytes, 4 * n_values, 4 * metadata.num_rows * metadata.num_columns), stored)
    texts = [chunk for chunk in chunks if chunk.physical_type in {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"}]
    risky = [chunk for chunk in texts if chunk.num_values * chunk.total_uncompressed_size > max(stored, 1 << 20)]
    flat = metadata.schema.to_arrow_schema().names
    sizes = {
        chunk.path_in_schema: chunk.total_uncompressed_size
        for chunk in risky
        if "DELTA_BYTE_ARRAY" in chunk.encodings or chunk.path_in_schema not in flat
    }
    names = sorted({chunk.path_in_schema for chunk in risky} - {*sizes})
    file = parquet.ParquetFile(pa.BufferReader(content), read_dictionary=names, pre_buffer=False)
    if not sizes:
        return _check_dictionaries(path, file.read(use_threads=False), stored)
    batches, n_bytes = [], 0
    n_rows = min(1 << 16, (32 << 20) // max(sizes.values()))  # one value is at most as large as its column's pages
    for batch in file.iter_batches(batch_size=max(1, n_rows), use_threads=False):
        n_bytes += batch.nbytes
        check_unpacked_size(path, n_bytes, stored)
        batches.append(batch)
    return _check_dictionaries(path, pa.Table.from_batches(batches, file.schema_arrow), stored)


def _check_dictionaries(path: Path, table: pa.Table, stored: int) -> pa.Table:
    """Return a table; raise an error if its texts would be larger than the limit without their dictionaries."""
    from pyarrow import compute, types

    n_bytes = table.nbytes
    for column in table.columns:
        if types.is_dictionary(column.type):
            for chunk in column.chunks:
                if types.is_string(chunk.dictionary.type) or types.is_large_string(chunk.dictionary.type):
                    n_bytes += compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
    check_unpacked_size(path, n_bytes, stored)
    return table


def _iter_buffer_sizes(content: Any) -> Iterator[int]:
    """Yield the decoded sizes of the buffers of an Arrow stream, which stand before each compressed buffer.

    References
    ----------
    Apache Arrow, "Columnar format: Buffer compression", and `Message.fbs`.
    """
    import pyarrow as pa

    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(content)):
        if message.type not in {"record batch", "dictionary"}:
            continue
        data, body = message.metadata.to_pybytes(), message.body
        batch = _follow(data, struct.unpack_from("<I", data)[0], 2)
        batch = _follow(data, batch, 1) if message.type == "dictionary" else batch
        vector, compression = _follow(data, batch, 2), _find_field(data, batch, 3)
        for k in range(struct.unpack_from("<I", data, vector)[0] if vector else 0):
            offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * k)
            size = struct.unpack("<q", body[offset : offset + 8].to_pybytes())[0] if compression and length else -1
            yield length if size < 0 else size


def _find_field(data: bytes, table: int, k: int) -> int:
    """Return the position of a field of a flatbuffer's table, or 0 if the table lacks it."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * k >= struct.unpack_from("<H", data, entries)[0]:
        return 0
    offset: int = struct.unpack_from("<H", data, entries + 4 + 2 * k)[0]
    return table + offset if offset else 0


def _follow(data: bytes, table: int, k: int) -> int:
    """Return the position that a field of a flatbuffer's table refers to."""
    place = _find_field(data, table, k)
    return place + int(struct.unpack_from("<I", data, place)[0]) if place else 0


def convert_workbook(path: Path, sheet_name: str | None) -> bytes | None:
    """Return a workbook's sheet as CSV, or None for other zip archives.

    Raises
    ------
    RefusedFileError
        The file is damaged, or several sheets hold data.
    """
    size = path.stat().st_size
    try:
        with zipfile.ZipFile(path) as packed:
            if "xl/workbook.xml" not in packed.namelist():
                return None
            check_unpacked_size(path, XML_RATIO * sum(member.file_size for member in packed.infolist()), size)
            _check_sheets(path, packed)
    except WORKBOOK_ERRORS:
        return None
    with explain_missing("openpyxl", f"{path}: an Excel workbook"):
        import openpyxl
    try:
        book = openpyxl.load_workbook(io.BytesIO(path.read_bytes()), read_only=True, data_only=True)
        shown = [sheet for sheet in book.worksheets if sheet.sheet_state == "visible"]
        chosen = [sheet for sheet in shown if sheet_name in {None, sheet.title}]
        sheets = {sheet.title: rows for sheet in chosen if (rows := _read_sheet(path, sheet, size))}
    except (*WORKBOOK_ERRORS, openpyxl.utils.exceptions.InvalidFileException) as error:
        raise RefusedFileError(
            f"damaged Excel workbook ({error})", file=path, remedy="save the sheet as CSV (UTF-8)"
        ) from None
    if len(sheets) != 1:
        names = ", ".join(sheets or (sheet.title for sheet in shown))
        problem = f"{len(sheets)} sheets hold data, out of {names}"
        raise RefusedFileError(problem, file=path, remedy=f"choose one with {spell_option('sheet=NAME')}")
    [rows] = sheets.values()
    if max(map(len, rows)) == 1:
        return "".join(f"{' '.join(row[0].split())}\n" for row in rows).encode()
    csv.writer(output := io.StringIO(), lineterminator="\n").writerows(rows)
    return output.getvalue().encode()


def _check_sheets(path: Path, packed: zipfile.ZipFile) -> None:
    """Raise an error for hidden rows with cells, and for a sheet with formulas of which none has a value."""
    for name in packed.namelist():
        xml = packed.read(name) if name.startswith("xl/worksheets/") else b""
        if hidden := next((row for row in ROW.finditer(xml) if HIDDEN.search(row[1])), None):
            problem = f"the row of cell {hidden[2].decode()} is hidden, as by a filter"
            remedy = "if hidden rows belong to the data, show all rows. Else delete them"
            raise RefusedFileError(problem, file=path, place=name, remedy=remedy)
        if FORMULA.search(xml) and not COMPUTED.search(xml):
            problem = "no formula has a value, because no spreadsheet program has computed them"
            remedy = "open the workbook in one and save it, or write numbers"
            raise RefusedFileError(problem, file=path, place=name, remedy=remedy)


def _read_sheet(path: Path, sheet: Any, size: int) -> list[list[str]]:
    """Return the rows of a sheet without empty ones at the end. Declared dimensions may be wrong and are not used."""
    sheet.reset_dimensions()
    n_cells, width, n_rows, rows = 0, 0, 0, []
    for row in sheet.iter_rows(values_only=True):
        n_cells += len(row) + 1
        check_unpacked_size(path, CELL_BYTES * n_cells, size)
        rows.append(cells := [*map(_format_cell, row)])
        if any(cells):
            n_rows = len(rows)
            width = max(width, next(k for k in range(len(cells), 0, -1) if cells[k - 1]))
    check_unpacked_size(path, CELL_BYTES * n_rows * width, size)
    return [(row + [""] * width)[:width] for row in rows[:n_rows]]


def _format_cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return "" if value is None else str(value)
