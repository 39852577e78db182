"""Convert decimal commas and thousands separators in score columns, in the same way throughout a table.

A comma parts decimals where other than three digits follow it, or none or a 0 stands before it (`0,125`). Where
every comma of a table may as well part thousands (`1,234`), it must be said: `--decimal ,` or `--decimal .`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.errors import InputError
from sigdask.formats.reading.numbers import NotANumberError, to_numbers
from sigdask.formats.reading.tables import FileTable

SIGN_BYTES = np.frombuffer(b"+-", np.uint8)
GROUPED_NUMBERS = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+") for mark in ",."}
"""Whole numbers with marks between their thousands."""


def convert_decimal_commas(table: FileTable, texts: Mapping[str, Texts], decimal: str | None) -> FileTable:
    """Replace decimal commas by points in columns of scores.

    Parameters
    ----------
    table : FileTable
        As it was read.
    texts : mapping of str to Texts
        Its columns of scores that are no plain numbers.
    decimal : {",", "."}, or None
        What parts decimals, where that was said.

    Raises
    ------
    InputError
        It was not said, and is not to be seen.
    """
    texts = {name: cells.compact() for name, cells in texts.items()}  # each with a buffer of its own, to be searched
    if decimal == ".":
        return _replace_columns(table, _remove_thousands(texts, ","))
    comma_columns = {
        name: column for name, cells in texts.items() if (column := _CommaColumn.from_texts(cells)) is not None
    }
    if decimal == ",":
        other_columns = {
            name: Texts.from_values(cells).compact()
            for name, cells in table.columns.items()
            if name not in comma_columns
        }
        return _replace_columns(
            table,
            {name: column.pointed for name, column in comma_columns.items()} | _remove_thousands(other_columns, "."),
        )
    if not comma_columns:
        return table
    if not any(len(column.clear) for column in comma_columns.values()) or any(
        column.has_points for column in comma_columns.values()
    ):
        name, column = next((n, c) for n, c in comma_columns.items() if c.has_points or not len(c.clear))
        raise InputError(
            f"{table.path}, line {table.lines[column.rows[0]]}, column {name!r}: found "
            f"{column.cells[int(column.rows[0])]!r}: does the comma part decimals or thousands? Say --decimal , or "
            "--decimal ."
        )
    name, row = next((name, int(column.clear[0])) for name, column in comma_columns.items() if len(column.clear))
    note = (
        f"{table.path}: decimal commas: {comma_columns[name].cells[row]!r} (line "
        f"{table.lines[row]}{_format_column(name)}) is read as "
        f"{comma_columns[name].pointed[row]}"
    )
    return replace(
        _replace_columns(table, {name: column.pointed for name, column in comma_columns.items()}),
        notes=[*table.notes, note],
    )


@dataclass(frozen=True, slots=True, eq=False)
class _CommaColumn:
    """A column of numbers, some of them with a comma.

    Attributes
    ----------
    cells, pointed : Texts
        As they are written, and with points for commas.
    rows, clear : array of int
        Cells with a comma, and those of them in which it cannot part thousands.
    has_points : bool
        Whether others hold a point.
    """

    cells: Texts
    pointed: Texts
    rows: NDArray[np.intp]
    clear: NDArray[np.intp]
    has_points: bool

    @staticmethod
    def from_texts(cells: Texts) -> _CommaColumn | None:
        """Return the column with its commas located, or None if it has none or holds other text than numbers."""
        positions = _find_mark(cells, ",")
        rows = np.flatnonzero(positions >= 0)
        if not len(rows):
            return None
        buffer = cells.buffer.copy()
        buffer[positions[rows]] = ord(".")
        pointed = Texts(buffer, cells.starts, cells.stops)
        if not _are_numbers(pointed):
            return None
        comma_positions, stops = positions[rows], cells.stops[rows].astype(np.int64)
        number_starts = cells.starts[rows].astype(np.int64)
        number_starts += np.isin(cells.buffer[number_starts], SIGN_BYTES)
        clear = (
            (stops - comma_positions != 4)
            | (comma_positions == number_starts)
            | (comma_positions - number_starts > 3)
            | (cells.buffer[number_starts] == ord("0"))
        )
        return _CommaColumn(cells, pointed, rows, rows[clear], bool((_find_mark(cells, ".") >= 0).any()))


def _find_mark(cells: Texts, mark: str) -> NDArray[np.int64]:
    """Return the buffer position of the first mark in each cell, or -1."""
    marks = np.flatnonzero(cells.buffer == ord(mark))
    if not len(marks):
        return np.full(len(cells), -1)
    starts, stops = cells.starts.astype(np.int64), cells.stops.astype(np.int64)
    next_marks = marks[np.minimum(np.searchsorted(marks, starts), len(marks) - 1)]
    return np.where((next_marks >= starts) & (next_marks < stops), next_marks, -1)


def _remove_thousands(columns: Mapping[str, Texts], mark: str) -> dict[str, Texts]:
    """Remove thousands separators from columns, and write decimals after a point."""
    converted = {}
    for name, cells in columns.items():
        if (_find_mark(cells, mark) < 0).all():
            continue
        column = Factor.from_values(cells)
        plain = Texts.from_values(
            column.rename_levels({level: remove_thousands(level, mark) for level in column.levels})
        )
        if _are_numbers(plain):
            converted[name] = plain
    return converted


def remove_thousands(cell: str, mark: str) -> str:
    """Return a number without thousands separators and with a decimal point; other text unchanged.

    Examples
    --------
    >>> [remove_thousands(cell, ".") for cell in ("1.234,5", "1.234", "0,5", "12.34,5", "0.125")]
    ['1234.5', '1234', '0.5', '12.34,5', '0.125']
    """
    integer, decimal, fraction = cell.partition("," if mark == "." else ".")
    if mark in cell and not GROUPED_NUMBERS[mark].fullmatch(integer):
        return cell
    return integer.replace(mark, "") + ("." if decimal else "") + fraction


def _are_numbers(cells: Texts) -> bool:
    try:
        to_numbers(cells)
    except NotANumberError:
        return False
    return True


def _replace_columns(table: FileTable, columns: Mapping[str, Texts]) -> FileTable:
    return replace(table, columns={**table.columns, **columns}) if columns else table


def _format_column(name: str) -> str:
    return f", column {name!r}" if name else ""
