"""Rows of cells out of delimited text, one at a time, with the line each began on."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import empty, open_text

Row = tuple[int, Sequence[str]]
DELIMITERS = "\t,;"


def delimiter_of(header: str, decimal: str | None = None) -> str | None:
    r"""Return the first of tab, comma and semicolon that a header line holds; None without any.

    A comma that parts decimals parts no columns.

    Examples
    --------
    >>> delimiter_of("item\ta,b"), delimiter_of("item;a"), delimiter_of("entailment"), delimiter_of("0,5", ",")
    ('\t', ';', None, None)
    """
    return next((mark for mark in DELIMITERS if mark in header and mark != decimal), None)


def header_of(start: str) -> list[str]:
    """Return the cells of the first line, of the beginning of a file, to know it by."""
    first = start.lstrip().split("\n", 1)[0].strip()
    return [cell.strip().strip('"') for cell in first.split(delimiter_of(first) or "\t")]


def delimited_rows(path: Path, *, quotes: bool | None = None, delimiter: str | None = None) -> Iterator[Row]:
    """Yield the rows of a delimited file, the header first.

    Parameters
    ----------
    path : Path
        The file.
    quotes : bool, optional
        Whether quotation marks are text (see `quotes_are_text`), where that is known.
    delimiter : str, optional
        What parts cells, where that is known.

    Raises
    ------
    InputError
        For a row of another width than the header, an empty row between others and a broken quote.
    """
    quotes = quotes_are_text(path) if quotes is None else quotes
    rows = _plain_rows(path) if quotes else _whole_rows(path, delimiter)
    header = next(rows, None)
    if header is None:
        raise empty(path)
    if not "".join(header[1]).strip():
        raise InputError(f"{path}, line {header[0]}: is empty, expected a header, and one row an item after it")
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


def quotes_are_text(path: Path) -> bool:
    """Whether quotation marks are part of the text of a tab-separated file.

    They are where some row cannot be read with quoted cells, and every row is as wide as the header without.
    """
    quoted, width = True, 0
    with open_text(path) as text:
        for raw in text:
            line = raw.rstrip("\r\n")
            width = width or 1 + line.count("\t")
            if width == 1 or (line and 1 + line.count("\t") != width):
                return False
            if quoted and '"' in line:
                quoted = len(_quoted(line) or ()) == width
    return not quoted


def _quoted(line: str) -> list[str] | None:
    """Return the cells of a tab-separated line, some of them quoted; None where a quote is broken."""
    try:
        return next(csv.reader([line], delimiter="\t", strict=True))
    except csv.Error:
        return None


def _plain_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a tab-separated file, its quotation marks as they stand; names may be quoted all the same."""
    with open_text(path) as text:
        for number, raw in enumerate(text, start=1):
            line = raw.rstrip("\r\n")
            cells = line.split("\t") if line else []
            yield number, (_quoted(line) or cells) if number == 1 else cells


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


def _whole_rows(path: Path, delimiter: str | None) -> Iterator[Row]:
    with open_text(path) as text:
        delimiter = delimiter or delimiter_of("".join(islice(text, 1)))
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


REMEDY = (
    "give each item an id of its own. Are they samples of one item? Then give each sample a file, under one name "
    "(NAME=FILE NAME=FILE), and their scores are averaged"
)


def repeated_id(place: str, item: str, before: str, remedy: str = REMEDY) -> InputError:
    """Return the error for an id that stands twice where rows of one id are no samples of an item."""
    return InputError(f"{place}: id {item} stands {before} already: {remedy}")
