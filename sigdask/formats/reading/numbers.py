"""Cells of text to float64, by the block; the slow look is for blocks with something odd in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "NA", "N/A", "None", "null"})


class NotANumberError(ValueError):
    """A cell that is no finite number.

    Attributes
    ----------
    index : int
        Its position among the cells.
    """

    def __init__(self, index: int, message: str) -> None:
        super().__init__(message)
        self.index = index


def to_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Read numbers; NaN stands for a missing cell (empty, NA, None), and for nothing else.

    Raises
    ------
    NotANumberError
        For other text, and for a NaN or infinity that was written out.

    Examples
    --------
    >>> to_numbers(["3e-04", " 1.0 ", "NA"])
    array([3.e-04, 1.e+00,    nan])
    """
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        return _one_by_one(cells)
    return values if np.isfinite(values).all() else _one_by_one(cells)


def is_number(cell: str) -> bool:
    """Whether a cell holds a finite number or is missing."""
    try:
        to_numbers([cell])
    except NotANumberError:
        return False
    return True


def check_finite(value: float, index: int) -> float:
    """Return a number that is finite.

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


def _one_by_one(cells: Sequence[str]) -> NDArray[np.float64]:
    return np.array([_number(cell.strip(), k) for k, cell in enumerate(cells)], dtype=np.float64)


def _number(cell: str, index: int) -> float:
    if cell in MISSING:
        return math.nan
    try:
        value = float(cell)
    except ValueError:
        raise NotANumberError(
            index,
            f"found {cell!r}, expected a number; correct it or, where the column is no system, name it with --id, "
            "--unit or --by, or leave it out with --ignore",
        ) from None
    return check_finite(value, index)
