"""Nested columns: values of each row as Python objects and as JSON texts, both built column by column.

JSON texts of equal values are formatted once, and numbers of a column together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.results.columns import CodedColumn, take_column
from sigdask.text import as_json_line

NULL = "null"


@dataclass(frozen=True, slots=True, eq=False)
class Nullable:
    """Values that only some rows have."""

    values: Values
    has_value: Bools

    def to_list(self) -> list[Any]:
        """Return the value of each row, None where it has none."""
        if isinstance(self.values, np.ndarray):
            pairs = zip(self.values.tolist(), self.has_value.tolist(), strict=True)
            return [value if has_value else None for value, has_value in pairs]
        return self._fill(list_values, None)

    def to_json(self) -> list[str]:
        """Return the JSON of each row."""
        return self._fill(format_values, NULL)

    def _fill(self, convert: Callable[[Values], list[Any]], missing: Any) -> list[Any]:
        if self.has_value.all():
            return convert(self.values)
        rows = np.flatnonzero(self.has_value)
        filled = [missing] * len(self.has_value)
        for row, value in zip(rows.tolist(), convert(take_values(self.values, rows)), strict=True):
            filled[row] = value
        return filled


@dataclass(frozen=True, slots=True, eq=False)
class Composite:
    """Values that each row builds of several members.

    Attributes
    ----------
    members : tuple of Values
        The columns.
    build : callable
        Makes a Python value of the members' values.
    pieces : tuple of str
        The JSON before, between and after the members.
    """

    members: tuple[Values, ...]
    build: Callable[..., Any]
    pieces: tuple[str, ...]

    def to_list(self) -> list[Any]:
        """Return the value of each row."""
        return list(map(self.build, *map(list_values, self.members)))

    def to_json(self) -> list[str]:
        """Return the JSON of each row."""
        texts: list[Iterable[str]] = []
        for piece, member in zip(self.pieces, self.members, strict=False):
            texts += [repeat(piece), format_values(member)]
        return list(map("".join, zip(*texts, repeat(self.pieces[-1]), strict=False)))  # repeats have no end

    def take(self, rows: Integers) -> Composite:
        """Return the values of some rows."""
        return Composite(tuple(take_values(member, rows) for member in self.members), self.build, self.pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of the values that a row has in several columns, or if `is_single`, the only one of them."""

    parts: Sequence[Nullable]
    n: int
    is_single: bool = False

    def to_list(self) -> list[Any]:
        """Return a tuple for each row, or its only value."""
        rows = zip(*(part.to_list() for part in self.parts), strict=True) if self.parts else repeat((), self.n)
        lists = [tuple(value for value in row if value is not None) for row in rows]
        return [values[0] if values else None for values in lists] if self.is_single else lists

    def to_json(self) -> list[str]:
        """Return the JSON of each row."""
        rows = zip(*(part.to_json() for part in self.parts), strict=True) if self.parts else repeat((), self.n)
        texts = [",".join(text for text in row if text != NULL) for row in rows]
        return [text or NULL for text in texts] if self.is_single else [f"[{text}]" for text in texts]


@dataclass(frozen=True, slots=True, eq=False)
class SparseLists:
    """Tuples of objects that few rows have.

    Attributes
    ----------
    by_row : mapping of int to tuple
        The tuples that are not empty.
    n : int
        Rows.
    convert : callable
        Makes of a tuple what its JSON says.
    """

    by_row: Mapping[int, tuple[Any, ...]]
    n: int
    convert: Callable[[Any], Any]

    def to_list(self) -> list[Any]:
        """Return the tuple of each row."""
        return [self.by_row.get(row, ()) for row in range(self.n)]

    def to_json(self) -> list[str]:
        """Return the JSON of each row."""
        texts = ["[]"] * self.n
        for row, values in self.by_row.items():
            texts[row] = as_json_line(self.convert(values))
        return texts


Values = NDArray[Any] | CodedColumn[Any] | list[Any] | Nullable | Composite | Lists | SparseLists
"""A value for each row. Lists are of texts or None."""


def list_values(values: Values) -> list[Any]:
    """Return the value of each row."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return values if isinstance(values, list) else values.to_list()


def format_values(values: Values) -> list[str]:
    """Return the JSON of each row's value."""
    if isinstance(values, np.ndarray):
        return format_numbers(values)
    if isinstance(values, CodedColumn):
        used_codes, positions = np.unique(values.codes, return_inverse=True)
        json_texts = [as_json_line(values.values[code]) for code in used_codes.tolist()]
        return [json_texts[position] for position in positions.tolist()]
    return format_texts(values) if isinstance(values, list) else values.to_json()


def take_values(values: Values, rows: Integers) -> Values:
    """Return the values of some rows."""
    if isinstance(values, np.ndarray | CodedColumn):
        return take_column(values, rows)
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    if isinstance(values, Nullable):
        return Nullable(take_values(values.values, rows), values.has_value[rows])
    assert isinstance(values, Composite)
    return values.take(rows)


def build_records(record: Any, *members: Values) -> Composite:
    """Return values that are records of a dataclass, and JSON objects, from the columns of its fields."""
    names = [f.name for f in fields(record)]
    return Composite(members, record, (*(f'{"," if k else "{"}"{name}":' for k, name in enumerate(names)), "}"))


def build_pairs(low: Values, high: Values) -> Composite:
    """Return pairs of numbers."""
    return Composite((low, high), lambda *ends: ends, ("[", ",", "]"))


def build_optional(values: Floats) -> Nullable:
    """Return numbers of which NaN stands for none."""
    return Nullable(values, ~np.isnan(values))


def build_optional_pairs(low: Floats, high: Floats) -> Nullable:
    """Return pairs of numbers, none where the first is NaN."""
    return Nullable(build_pairs(low, high), ~np.isnan(low))


def format_numbers(values: NDArray[Any]) -> list[str]:
    """Return the JSON of each number: its shortest exact form, or null for NaN."""
    if not len(values):
        return []
    array_text = orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return array_text[1:-1].split(",")


def format_texts(values: Sequence[str | None]) -> list[str]:
    r"""Return the JSON of each text, or null for None.

    Examples
    --------
    >>> format_texts(['","', "", "\\"]) == [as_json_line('","'), as_json_line(""), as_json_line("\\")]
    True
    >>> format_texts(["a", None])
    ['"a"', 'null']
    """
    if not values:
        return []
    try:
        array_text = orjson.dumps([value or "" for value in values]).decode()
    except TypeError:
        return [as_json_line(value) for value in values]
    texts = array_text[2:-2].split('","')  # within a text, quotes follow a backslash
    return [NULL if value is None else f'"{text}"' for value, text in zip(values, texts, strict=True)]
