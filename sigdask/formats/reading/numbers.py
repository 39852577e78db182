"""Convert cells of text to float64, by the block; odd cells are parsed one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts
from sigdask.formats.reading.columns.cells import parse_decimals
from sigdask.formats.reading.columns.typed import TypedColumn

MISSING = frozenset({"", "NA", "N/A", "None", "null"})


PERCENT_PROBLEM = (
    "a number with a percent sign; remove the percent signs in all columns and files, so that all have one scale"
)


class NotANumberError(ValueError):
    """A cell that is not a finite number.

    Attributes
    ----------
    index : int
        Its position among the cells.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def is_percent(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers with percent signs, or missing.

    Examples
    --------
    >>> is_percent(["45.3%", "", "7 %"]), is_percent(["45.3%", "high"]), is_percent(["", "NA"])
    (True, False, False)
    """
    has_percent = False
    for cell in cells:
        if cell in MISSING:
            continue
        if not cell.endswith("%") or cell == "%" or not is_number(cell[:-1].rstrip()):
            return False
        has_percent = True
    return has_percent


def to_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Convert cells to numbers; a missing cell (empty, NA, None) becomes NaN, nothing else does.

    Raises
    ------
    NotANumberError
        For other text, and for a NaN or infinity that was written out.

    Examples
    --------
    >>> to_numbers(["3e-04", " 1.0 ", "NA"])
    array([3.e-04, 1.e+00,    nan])
    """
    if isinstance(cells, TypedColumn) and cells.is_numeric:
        values, odd = cells.get_numbers()
        if odd.any():
            check_finite(float(values[np.argmax(odd)]), int(np.argmax(odd)))
        return values
    if isinstance(cells, Texts):
        return _convert_texts(cells)
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return _parse_each(cells)
    return values if np.isfinite(values).all() else _parse_each(cells)


def _convert_texts(cells: Texts) -> NDArray[np.float64]:
    """Convert texts to numbers: plain decimals by compiled code, all other cells by Python."""
    values, odd = np.empty(len(cells)), np.empty(len(cells), np.bool_)
    if parse_decimals(cells.buffer, cells.starts, cells.stops, values, odd):
        rows = np.flatnonzero(odd)
        try:
            values[rows] = to_numbers(cells[rows].tolist())
        except NotANumberError as error:
            raise NotANumberError(int(rows[error.index]), str(error)) from None
    return values


def has_numbers(cells: Texts) -> bool:
    """Return whether any cell is a number or missing.

    Examples
    --------
    >>> has_numbers(Texts.from_values(["news-1", "nan"])), has_numbers(Texts.from_values(["news-1", "NA"]))
    (False, True)
    """
    if isinstance(cells, TypedColumn) and cells.is_numeric:
        return True
    first_bytes = cells.buffer[cells.starts[cells.sizes > 0]]
    if len(first_bytes) < len(cells):
        return True
    missing = cells[(first_bytes | 32) == ord("n")]  # of numbers "nan" alone, which is none
    numbers = cells[np.isin(first_bytes, np.frombuffer(b"0123456789+-._", np.uint8)) | (first_bytes >= 128)]
    return any(cell in MISSING for cell in missing) or any(map(is_number, numbers))


def is_number(cell: str) -> bool:
    """Return whether a cell holds a finite number or is missing."""
    try:
        to_numbers([cell])
    except NotANumberError:
        return False
    return True


def check_finite(value: float, index: int) -> float:
    """Return a number, or raise an error if it is NaN or infinite.

    Raises
    ------
    NotANumberError
        For NaN and infinities.
    """
    if not math.isfinite(value):
        raise NotANumberError(
            index, f"found {value}, expected a finite number; leave the cell of a missing score empty"
        )
    return value


def _parse_each(cells: Sequence[str]) -> NDArray[np.float64]:
    return np.array([_parse_number(cell.strip(), k) for k, cell in enumerate(cells)], dtype=np.float64)


def _parse_number(cell: str, index: int) -> float:
    if cell in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        if is_percent([cell]):
            raise NotANumberError(index, f"found {cell!r}, {PERCENT_PROBLEM}") from None
        raise NotANumberError(
            index,
            f"found {cell!r}, expected a number; correct it or, where the column is no system, name it with --id, "
            "--unit or --by, or leave it out with --ignore",
        ) from None
    return check_finite(value, index)
