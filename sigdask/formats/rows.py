"""Rows of cells out of delimited text and JSON lines, one at a time, with the line each began on."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.files import empty, open_text

Row = tuple[int, Sequence[str]]
DELIMITERS = "\t,;"


def delimiter_of(header: str) -> str | None:
    r"""Return the first of tab, comma and semicolon that a header line holds; None without any.

    Examples
    --------
    >>> delimiter_of("item\ta,b"), delimiter_of("item;a"), delimiter_of("entailment")
    ('\t', ';', None)
    """
    return next((mark for mark in DELIMITERS if mark in header), None)


def delimited_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a delimited file, the header first.

    Raises
    ------
    InputError
        For a row of another width than the header, an empty row between others and a broken quote.
    """
    rows = _whole_rows(path)
    header = next(rows, None)
    if header is None:
        raise empty(path)
    yield header
    blank = 0
    for line, cells in rows:
        if not cells:
            blank = blank or line
            continue
        if blank:
            raise ragged(path, blank, 0, len(header[1]))
        if len(cells) != len(header[1]):
            raise ragged(path, line, len(cells), len(header[1]))
        yield line, cells


def record_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a JSON-lines file; the keys of the first record are the header.

    A key that a later record lacks gives an empty cell.

    Raises
    ------
    InputError
        For a line that is no JSON object, and for a key that the first record does not have.
    """
    columns: dict[str, None] = {}
    for number, record in records(path):
        if not columns:
            columns = dict.fromkeys(record)
            yield number, tuple(columns)
        for key in record.keys() - columns.keys():
            raise InputError(
                f"{path}, line {number}: key {key!r} is not in the first record, which has "
                f"{', '.join(columns)}; give every record the same keys"
            )
        yield number, [as_text(record.get(column)) for column in columns]


def records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON-lines file with their lines; the keys may differ.

    Raises
    ------
    InputError
        For a line that is no JSON object, and for a file without any.
    """
    found = False
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if line.strip():
                found = True
                yield number, _record(path, number, line)
    if not found:
        raise empty(path)


def as_text(value: Any) -> str:
    """Write a typed cell as a delimited file would hold it.

    Examples
    --------
    >>> as_text(True), as_text(None), as_text(0.1), as_text("x")
    ('true', '', '0.1', 'x')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else str(value)


def _whole_rows(path: Path) -> Iterator[Row]:
    with open_text(path) as text:
        delimiter = delimiter_of("".join(islice(text, 1)))
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter or ",", strict=True)
        end = 0
        try:
            for cells in reader:
                start, end = end + 1, reader.line_num
                if end > start and delimiter == "\t":
                    raise _open_quote(path, start, f"goes on to line {end}")
                yield start, cells
        except csv.Error as error:
            raise _open_quote(path, end + 1, str(error)) from error


def _record(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{path}, line {number}: invalid JSON ({error}); expected one object a line") from None
    if not isinstance(record, dict) or not record:
        raise InputError(f"{path}, line {number}: found {line.strip()[:40]}, expected a JSON object with keys")
    return record


def ragged(path: Path, line: int, found: int, expected: int) -> InputError:
    """Return the error for a row of another width than the header."""
    return InputError(
        f"{path}, line {line}: found {found} field{'s' * (found != 1)}, expected {expected} as in the header; "
        "complete the row, or remove it"
    )


def _open_quote(path: Path, line: int, problem: str) -> InputError:
    return InputError(
        f'{path}, line {line}: a quoted field does not end as it should ({problem}); write a " that is part of the '
        'text as """" (quoted and doubled)'
    )
