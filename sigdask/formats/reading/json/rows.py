"""Records of logs: JSON in any arrangement, Parquet or a delimited table."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, missing_extra
from sigdask.formats.reading.files import is_parquet, open_text
from sigdask.formats.reading.json.records import as_object, is_json, read_records
from sigdask.formats.reading.rows import as_text, delimited_rows, delimiter_of
from sigdask.formats.reading.tables import check_header
from sigdask.io.compression import check_parquet

Record = Mapping[str, Any]

BATCH = 1024
"""Rows of Parquet held at a time."""

HEAD = 1 << 22
"""Characters within which the first record must end to be looked at."""


def records(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield the records of a file with their places: JSON lines, a JSON array, or a delimited table.

    Raises
    ------
    InputError
        Naming file and line or record.
    """
    if is_parquet(path):
        yield from _of_parquet(path)
    elif is_json(path):
        for record in read_records(path, lambda _: True):
            yield f"{path}, {record.place}", as_object(path, record)
    else:
        yield from _of_table(path)


def first_record(path: Path, *, tables: bool = False) -> Record | None:
    """Return the first record of a file without reading the rest; None where it has none that can be told.

    Of a delimited table, where these are asked for, it is the header, with empty cells.
    """
    try:
        if is_parquet(path):
            return next(_of_parquet(path, 1))[1]
        with open_text(path) as text:
            head = text.read(HEAD).lstrip()
    except InputError:
        return None
    if not head.startswith(("{", "[")):
        return _first_row(head) if tables else None
    start = len(head) - len(head.removeprefix("[").lstrip()) if head.startswith("[") else 0
    try:
        found, _ = json.JSONDecoder().raw_decode(head, start)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def lookup(record: Record, name: str, *within: str) -> str | None:
    """Return a field as text: of the record itself, of one of the objects within it, or by a dotted path."""
    for holder in (record, *(record.get(key) for key in within)):
        if isinstance(holder, dict) and name in holder:
            return _text(holder[name])
    value: Any = record
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else as_text(value)


def _first_row(head: str) -> Record | None:
    first = "".join(islice(io.StringIO(head), 1)).strip()
    mark = delimiter_of(first)
    if mark is None or head.startswith("PK"):
        return None
    try:
        return dict.fromkeys((name.strip() for name in next(csv.reader([first], delimiter=mark))), "")
    except csv.Error:
        return None


def _of_parquet(path: Path, batch: int = BATCH) -> Iterator[tuple[str, Record]]:
    """Yield the rows of a Parquet file, some at a time: conversations are large."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise missing_extra("pyarrow", "parquet", f"{path}: Parquet") from None
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


def _of_table(path: Path) -> Iterator[tuple[str, Record]]:
    rows = delimited_rows(path)
    _, header = next(rows)
    names = [name.strip() for name in header]
    check_header(path, names)
    line = 0
    for line, cells in rows:
        yield f"{path}, line {line}", dict(zip(names, cells, strict=True))
    if not line:
        raise InputError(f"{path}: has a header and no rows, expected one row an item")


def number(value: Any) -> float | None:
    """Return a number or truth value as a float, also one written as text; None for all else.

    Examples
    --------
    >>> number(True), number("False"), number("0.25"), number("C"), number([1])
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
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
