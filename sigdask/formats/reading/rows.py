"""Read rows of cells from delimited text, each with the number of its first line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import build_empty_error, open_text

Row = tuple[int, Sequence[str]]
DELIMITERS = "\t,;"


def find_delimiter(header: str, decimal: str | None = None) -> str | None:
    r"""Return the first of tab, comma and semicolon in a header line, or None.

    A comma that parts decimals parts no columns.

    Examples
    --------
    >>> find_delimiter("item\ta,b"), find_delimiter("item;a"), find_delimiter("entailment"), find_delimiter("0,5", ",")
    ('\t', ';', None, None)
    """
    return next((mark for mark in DELIMITERS if mark in header and mark != decimal), None)


def parse_header(start: str) -> list[str]:
    """Return the cells of the first line of a text, for format detection."""
    first_line = start.lstrip().split("\n", 1)[0].strip()
    return [cell.strip().strip('"') for cell in first_line.split(find_delimiter(first_line) or "\t")]


def read_delimited_rows(path: Path, *, quotes: bool | None = None, delimiter: str | None = None) -> Iterator[Row]:
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
    rows = _read_plain_rows(path) if quotes else _read_csv_rows(path, delimiter)
    header = next(rows, None)
    if header is None:
        raise build_empty_error(path)
    if not "".join(header[1]).strip():
        raise InputError(f"{path}, line {header[0]}: is empty, expected a header, and one row an item after it")
    yield header
    blank = 0
    for number, cells in rows:
        if not cells:
            blank = blank or number
            continue
        if blank:
            raise build_width_error(path, blank, 0, len(header[1]))
        if len(cells) != len(header[1]):
            raise build_width_error(path, number, len(cells), len(header[1]))
        yield number, cells


def quotes_are_text(path: Path) -> bool:
    """Return whether quotation marks are part of the text of a tab-separated file.

    They are where some row cannot be read with quoted cells, and every row is as wide as the header without.
    """
    is_quoted, width = True, 0
    with open_text(path) as text:
        for raw in text:
            line = raw.rstrip("\r\n")
            width = width or 1 + line.count("\t")
            if width == 1 or (line and 1 + line.count("\t") != width):
                return False
            if is_quoted and '"' in line:
                is_quoted = len(_parse_quoted(line) or ()) == width
    return not is_quoted


def _parse_quoted(line: str) -> list[str] | None:
    """Return the cells of a tab-separated line with quoted cells, or None if a quote is broken."""
    try:
        return next(csv.reader([line], delimiter="\t", strict=True))
    except csv.Error:
        return None


def _read_plain_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a tab-separated file with quotation marks as text, except in the header."""
    with open_text(path) as text:
        for number, raw in enumerate(text, start=1):
            line = raw.rstrip("\r\n")
            cells = line.split("\t") if line else []
            yield number, (_parse_quoted(line) or cells) if number == 1 else cells


def format_cell(value: Any) -> str:
    """Format a typed cell as it would be written in a delimited file.

    Examples
    --------
    >>> format_cell(True), format_cell(None), format_cell(0.1), format_cell("x")
    ('true', '', '0.1', 'x')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else str(value)


def _read_csv_rows(path: Path, delimiter: str | None) -> Iterator[Row]:
    with open_text(path) as text:
        delimiter = delimiter or find_delimiter("".join(islice(text, 1)))
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter or ",", strict=True)
        end = 0
        try:
            for cells in reader:
                start, end = end + 1, reader.line_num
                if end > start and delimiter == "\t":
                    raise _build_quote_error(path, start, f"goes on to line {end}")
                yield start, cells
        except csv.Error as error:
            raise _build_quote_error(path, end + 1, str(error)) from error


def build_width_error(path: Path, line: int, n_cells: int, expected: int) -> InputError:
    """Return the error for a row that is not as wide as the header."""
    return InputError(
        f"{path}, line {line}: found {n_cells} field{'s' * (n_cells != 1)}, expected {expected} as in the header; "
        "complete the row, or remove it"
    )


def _build_quote_error(path: Path, line: int, problem: str) -> InputError:
    return InputError(
        f'{path}, line {line}: a quoted field does not end as it should ({problem}); write a " that is part of the '
        'text as """" (quoted and doubled)'
    )


REPEATED_ID_REMEDY = (
    "give each item an id of its own. Are they samples of one item? Then give each sample a file, under one name "
    "(NAME=FILE NAME=FILE), and their scores are averaged"
)


def build_repeated_id_error(location: str, item: str, earlier: str, remedy: str = REPEATED_ID_REMEDY) -> InputError:
    """Return the error for a repeated id where rows are not samples of one item."""
    return InputError(f"{location}: id {item} stands {earlier} already: {remedy}")
