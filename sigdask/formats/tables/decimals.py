"""Decimal commas, and marks between thousands, in columns of scores: all of a table mean the same.

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

SIGNS = np.frombuffer(b"+-", np.uint8)
GROUPED = {mark: re.compile(rf"[+-]?[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+") for mark in ",."}
"""Whole numbers with marks between their thousands."""


def with_points(table: FileTable, texts: Mapping[str, Texts], decimal: str | None) -> FileTable:
    """Return a table whose columns of decimal commas are written with points.

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
        return _with(table, _ungrouped(texts, ","))
    found = {name: column for name, cells in texts.items() if (column := _Commas.of(cells)) is not None}
    if decimal == ",":
        rest = {name: Texts.of(cells).compact() for name, cells in table.columns.items() if name not in found}
        return _with(table, {name: column.pointed for name, column in found.items()} | _ungrouped(rest, "."))
    if not found:
        return table
    if not any(len(column.clear) for column in found.values()) or any(column.has_points for column in found.values()):
        name, column = next((n, c) for n, c in found.items() if c.has_points or not len(c.clear))
        raise InputError(
            f"{table.path}, line {table.lines[column.rows[0]]}, column {name!r}: found "
            f"{column.cells[int(column.rows[0])]!r}: does the comma part decimals or thousands? Say --decimal , or "
            "--decimal ."
        )
    name, row = next((name, int(column.clear[0])) for name, column in found.items() if len(column.clear))
    note = (
        f"{table.path}: decimal commas: {found[name].cells[row]!r} (line {table.lines[row]}{_of(name)}) is read as "
        f"{found[name].pointed[row]}"
    )
    return replace(_with(table, {name: column.pointed for name, column in found.items()}), notes=[*table.notes, note])


@dataclass(frozen=True, slots=True, eq=False)
class _Commas:
    """A column of numbers of which some hold a comma.

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
    def of(cells: Texts) -> _Commas | None:
        """Find the commas; None where there are none, or the cells are no numbers with points for them."""
        places = _places(cells, ",")
        rows = np.flatnonzero(places >= 0)
        if not len(rows):
            return None
        buffer = cells.buffer.copy()
        buffer[places[rows]] = ord(".")
        pointed = Texts(buffer, cells.starts, cells.stops)
        if not _are_numbers(pointed):
            return None
        at, stops = places[rows], cells.stops[rows].astype(np.int64)
        first = cells.starts[rows].astype(np.int64)
        first += np.isin(cells.buffer[first], SIGNS)
        clear = (stops - at != 4) | (at == first) | (at - first > 3) | (cells.buffer[first] == ord("0"))
        return _Commas(cells, pointed, rows, rows[clear], bool((_places(cells, ".") >= 0).any()))


def _places(cells: Texts, mark: str) -> NDArray[np.int64]:
    """Return where in the buffer each cell first holds a mark, -1 where it does not."""
    marks = np.flatnonzero(cells.buffer == ord(mark))
    if not len(marks):
        return np.full(len(cells), -1)
    starts, stops = cells.starts.astype(np.int64), cells.stops.astype(np.int64)
    found = marks[np.minimum(np.searchsorted(marks, starts), len(marks) - 1)]
    return np.where((found >= starts) & (found < stops), found, -1)


def _ungrouped(columns: Mapping[str, Texts], mark: str) -> dict[str, Texts]:
    """Take out the marks between thousands, and write the other mark as a point."""
    found = {}
    for name, cells in columns.items():
        if (_places(cells, mark) < 0).all():
            continue
        column = Factor.of(cells)
        plain = Texts.of(column.renamed({level: without_groups(level, mark) for level in column.levels}))
        if _are_numbers(plain):
            found[name] = plain
    return found


def without_groups(cell: str, mark: str) -> str:
    """Return a number without the marks between its thousands, its decimals after a point; other text as it is.

    Examples
    --------
    >>> [without_groups(cell, ".") for cell in ("1.234,5", "1.234", "0,5", "12.34,5", "0.125")]
    ['1234.5', '1234', '0.5', '12.34,5', '0.125']
    """
    whole, decimal, rest = cell.partition("," if mark == "." else ".")
    if mark in cell and not GROUPED[mark].fullmatch(whole):
        return cell
    return whole.replace(mark, "") + ("." if decimal else "") + rest


def _are_numbers(cells: Texts) -> bool:
    try:
        to_numbers(cells)
    except NotANumberError:
        return False
    return True


def _with(table: FileTable, columns: Mapping[str, Texts]) -> FileTable:
    return replace(table, columns={**table.columns, **columns}) if columns else table


def _of(name: str) -> str:
    return f", column {name!r}" if name else ""
