"""Read log records from JSON in any layout, Parquet, or a delimited table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, build_extra_error
from sigdask.formats.reading.files import is_parquet, open_text
from sigdask.formats.reading.json.records import get_object, is_json, read_records
from sigdask.formats.reading.rows import find_delimiter, format_cell, read_delimited_rows
from sigdask.formats.reading.tables import check_header
from sigdask.io.compression import check_parquet

Record = Mapping[str, Any]

BATCH = 1024
"""Rows of Parquet held at a time."""

HEAD = 1 << 22
"""Characters within which the first record must end to be looked at."""


def iter_records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield each record of a file with its location: JSON lines, JSON array, Parquet or a table.

    Raises
    ------
    InputError
        Naming file and line or record.
    """
    if is_parquet(path):
        yield from _iter_parquet(path)
    elif is_json(path):
        for record in read_records(path, lambda _: True):
            yield f"{path}, {record.place}", get_object(path, record)
    else:
        yield from _iter_table(path)


def read_first_record(path: Path, *, tables: bool = False) -> Record | None:
    """Return the first record of a file without reading the rest, or None if there is none.

    Of a delimited table, where these are asked for, it is the header, with empty cells.
    """
    try:
        if is_parquet(path):
            return next(_iter_parquet(path, 1))[1]
        with open_text(path) as text:
            head = text.read(HEAD).lstrip()
    except InputError:
        return None
    if not head.startswith(("{", "[")):
        return _read_header_record(head) if tables else None
    start = len(head) - len(head.removeprefix("[").lstrip()) if head.startswith("[") else 0
    try:
        value, _ = json.JSONDecoder().raw_decode(head, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def find_field(record: Record, name: str, *containers: str) -> str | None:
    """Return a field of a record as text, looked up also inside `containers` and as a dotted path; None if absent."""
    for holder in (record, *(record.get(key) for key in containers)):
        if isinstance(holder, dict) and name in holder:
            return _format_value(holder[name])
    value: Any = record
    for segment in name.split("."):
        if not isinstance(value, dict) or segment not in value:
            return None
        value = value[segment]
    return _format_value(value)


def _format_value(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else format_cell(value)


def _read_header_record(head: str) -> Record | None:
    header_line = "".join(islice(io.StringIO(head), 1)).strip()
    mark = find_delimiter(header_line)
    if mark is None or head.startswith("PK"):
        return None
    try:
        return dict.fromkeys((name.strip() for name in next(csv.reader([header_line], delimiter=mark))), "")
    except csv.Error:
        return None


def _iter_parquet(path: Path, batch: int = BATCH) -> Iterator[tuple[str, Record]]:
    """Yield the rows of a Parquet file in small batches, since conversations are large."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise build_extra_error("pyarrow", "parquet", f"{path}: Parquet") from None
    number = 0
    try:
        with parquet.ParquetFile(path, pre_buffer=False) as file:
            check_parquet(path, file.metadata)
            for rows in file.iter_batches(batch_size=batch):
                for record in rows.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", record
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged Parquet file ({error})") from None
    if not number:
        raise InputError(f"{path}: has no rows, expected one row an item")


def _iter_table(path: Path) -> Iterator[tuple[str, Record]]:
    rows = read_delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    check_header(path, names)
    line = 0
    for line, cells in rows:
        yield f"{path}, line {line}", dict(zip(names, cells, strict=True))
    if not line:
        raise InputError(f"{path}: has a header and no rows, expected one row an item")


def parse_number(value: Any) -> float | None:
    """Convert a number, a truth value, or text of either to float; None for anything else.

    Examples
    --------
    >>> parse_number(True), parse_number("False"), parse_number("0.25"), parse_number("C"), parse_number([1])
    (1.0, 0.0, 0.25, None, None)
    """
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:  # a whole number of hundreds of digits
            return None
    if not isinstance(value, str):
        return None
    if value.lower() in {"true", "false"}:
        return float(value.lower() == "true")
    try:
        result = float(value)
    except ValueError:
        return None
    return result if math.isfinite(result) else None
