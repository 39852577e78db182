"""Columns of a table as Arrow arrays: their cells as text, and their numbers as float64.

Numbers are parsed by Arrow, which rounds correctly. A cell that it does not parse is looked at by Python, which names
the first one that is no number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts
from sigdask.formats.reading.files import format_cell
from sigdask.io import spell_option

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "None", "null"})
"""Cells that are a missing number. Labels and ids may have these names."""

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

MAX_EXACT = 2**53
"""Whole numbers up to this are exact in float64."""


class NotANumberError(ValueError):
    """A cell that is not a finite number.

    Attributes
    ----------
    index : int
        Its position among the cells.
    """

    def __init__(self, index: int, cell: object, remedy: str) -> None:
        self.index = index
        super().__init__(f"found {str(cell)[:100]!r}, expected a number. {remedy}")


class ArrowColumns(Mapping[str, Texts]):
    """Columns by name: Arrow arrays, which become texts when they are looked up.

    Attributes
    ----------
    arrays : dict of str to pyarrow.ChunkedArray
        Strings, or the typed values of Parquet, Arrow and data frames.
    """

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self.arrays = {name: _to_arrow(column) for name, column in columns.items()}
        self._texts: dict[str, Texts] = {}

    def __getitem__(self, name: str) -> Texts:
        if name not in self._texts:
            self._texts[name] = to_texts(self.arrays[name])
        return self._texts[name]

    def __contains__(self, name: object) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)


def _to_arrow(column: Any) -> pa.ChunkedArray:
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return column
    return pa.chunked_array([column if isinstance(column, pa.Array) else build_strings(column)])


def build_strings(cells: Iterable[str]) -> pa.Array:
    """Return cells as an Arrow array of strings; without pandas, which Arrow's own conversion imports."""
    import pyarrow as pa

    return Texts.from_values(cells).array.cast(pa.string())


def build_truths(values: Iterable[bool | None]) -> pa.Array:
    """Return truth values, or None, as an Arrow array."""
    import pyarrow as pa

    cells = list(values)
    masks = [cell is not None for cell in cells], [bool(cell) for cell in cells]
    buffers = [pa.py_buffer(np.packbits(mask, bitorder="little").tobytes()) for mask in masks]
    return pa.Array.from_buffers(pa.bool_(), len(cells), buffers)


def to_texts(array: pa.ChunkedArray) -> Texts:
    """Return the cells of an array as stripped texts, empty where there is no value."""
    from pyarrow import types

    strings = decode(array)
    if types.is_integer(strings.type) or types.is_boolean(strings.type):
        return Texts.from_arrow(strings)  # a null becomes an empty text
    if not types.is_string(strings.type):
        return Texts.from_values("" if value != value else format_cell(value) for value in iterate(strings))  # noqa: PLR0124  # NaN
    # columns of strings are stripped where they are read
    return Texts.from_arrow(strings if types.is_string(array.type) else strip(strings))


def strip(strings: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings without white space around them."""
    from pyarrow import compute

    return compute.utf8_trim_whitespace(strings)


def decode(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an array without dictionary, and with small strings."""
    import pyarrow as pa
    from pyarrow import types

    kind = array.type.value_type if types.is_dictionary(array.type) else array.type
    if types.is_large_string(kind) or kind in {pa.string_view(), pa.null()}:
        kind = pa.string()
    return array if kind == array.type else array.cast(kind)


def to_numpy(array: pa.ChunkedArray) -> NDArray[Any]:
    """Return an array of floating-point numbers, NaN where there is no value; without pandas."""
    from pyarrow import compute, types

    if types.is_float16(array.type):
        return to_numpy(array.cast("float")).astype(np.float16)
    if array.null_count:
        array = compute.fill_null(array, math.nan)
    return np.concatenate([np.from_dlpack(chunk) for chunk in array.chunks] or [np.empty(0)])


def convert_numbers(array: pa.ChunkedArray, decimal: str | None = None) -> NDArray[Any]:
    """Return an array as floating-point numbers; a missing cell becomes NaN.

    Raises
    ------
    NotANumberError
        A cell is text, or infinite.
    """
    import pyarrow as pa
    from pyarrow import types

    values = decode(array)
    if types.is_floating(values.type):
        numbers = to_numpy(values)
    elif types.is_integer(values.type) or types.is_boolean(values.type) or types.is_decimal(values.type):
        numbers = to_numpy(values.cast(pa.float64(), safe=False))
    elif types.is_string(values.type):
        numbers = _parse_numbers(values, decimal)
    else:
        raise _build_text_error(0, format_cell(values[0].as_py()))
    if (is_infinite := np.isinf(numbers)).any():
        k = int(np.argmax(is_infinite))
        raise NotANumberError(k, float(numbers[k]), "Correct it, or remove the item from every file")
    return numbers


def _parse_numbers(written: pa.ChunkedArray, decimal: str | None) -> NDArray[np.float64]:
    """Return texts as numbers; Python names the first one that Arrow does not parse."""
    import pyarrow as pa
    from pyarrow import compute

    values = written
    if decimal == ",":
        values = compute.replace_substring(compute.replace_substring(values, ".", "_"), ",", ".")
    try:
        return to_numpy(values.cast(pa.float64()))
    except pa.ArrowInvalid:
        is_missing = compute.is_in(values, build_strings(sorted(MISSING)))
    try:
        return to_numpy(compute.if_else(is_missing, build_strings(["nan"])[0], values).cast(pa.float64()))
    except pa.ArrowInvalid:
        cells = zip(iterate(values), iterate(written), strict=True)
        return np.array([_parse_number(k, *cell) for k, cell in enumerate(cells)])


def iterate(values: pa.ChunkedArray) -> Iterator[Any]:
    """Yield the values of an array with few of them in memory at a time."""
    for chunk in values.chunks:
        for start in range(0, len(chunk), 4096):
            yield from chunk.slice(start, 4096).to_pylist()


def _parse_number(index: int, cell: str | None, written: str | None) -> float:
    text = (cell or "").strip()
    if text in MISSING:
        return math.nan
    if NUMBER.fullmatch(text) or text.lstrip("+-").lower() in {"inf", "infinity"}:
        return float(text)
    raise _build_text_error(index, (written or "").strip())


def _build_text_error(index: int, cell: str) -> NotANumberError:
    remedy = "Correct it, or remove the item from every file"
    if NUMBER.fullmatch(cell):
        remedy = f"If points group digits, remove them; {spell_option('decimal=.')} reads decimal points"
    elif NUMBER.fullmatch(cell.replace(",", ".", 1)):
        remedy = f"If commas are decimal separators, {spell_option('decimal=,')} reads them"
    return NotANumberError(index, cell, remedy)


def to_numbers(cells: Sequence[str]) -> NDArray[np.float64]:
    """Convert cells to float64; a missing cell (such as an empty one, NA or NaN) becomes NaN.

    Raises
    ------
    NotANumberError
        A cell is text, or infinite.

    Examples
    --------
    >>> to_numbers(["3e-04", " 1.0 ", "NA"])
    array([3.e-04, 1.e+00,    nan])
    """
    return convert_numbers(_to_arrow(cells)).astype(np.float64, copy=False)
