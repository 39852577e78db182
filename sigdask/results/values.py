"""Nested columns: values of each row as Python objects and as JSON texts, both built column by column.

JSON texts of equal values are formatted once, and the numbers of a column together. Text that all rows share is one
piece, so only values that differ are joined row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import repeat
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from sigdask.counts.factors import find_distinct
from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.results.columns import CodedColumn, take_column
from sigdask.text import as_json_line

NULL = "null"

Pieces = Iterator[str | list[str]]
"""Parts of JSON texts in order: a text that all rows share, or a list with a text for each row."""


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

    def iter_pieces(self) -> Pieces:
        """Yield the pieces of the JSON of each row."""
        if self.has_value.all():
            yield from iter_pieces(self.values)
        else:
            yield self._fill(format_values, NULL) if self.has_value.any() else NULL

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
    """Values that each row builds from several columns.

    Attributes
    ----------
    members : tuple of Values
        The columns.
    build : callable
        Builds a Python value from the members' values.
    pieces : tuple of str
        The JSON before, between and after the members.
    """

    members: tuple[Values, ...]
    build: Callable[..., Any]
    pieces: tuple[str, ...]

    def to_list(self) -> list[Any]:
        """Return the value of each row."""
        return list(map(self.build, *map(list_values, self.members)))

    def iter_pieces(self) -> Pieces:
        """Yield the pieces of the JSON of each row."""
        for piece, member in zip(self.pieces, self.members, strict=False):
            yield piece
            yield from iter_pieces(member)
        yield self.pieces[-1]

    def take(self, rows: Integers) -> Composite:
        """Return the values of some rows."""
        return Composite(tuple(take_values(member, rows) for member in self.members), self.build, self.pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """Lists of the values that a row has in several columns, or if `is_single`, the value of the only column."""

    parts: Sequence[Nullable]
    n: int
    is_single: bool = False

    def to_list(self) -> list[Any]:
        """Return a tuple for each row, or its only value."""
        rows = zip(*(part.to_list() for part in self.parts), strict=True) if self.parts else repeat((), self.n)
        lists = [tuple(value for value in row if value is not None) for row in rows]
        return [values[0] if values else None for values in lists] if self.is_single else lists

    def iter_pieces(self) -> Pieces:
        """Yield the pieces of the JSON of each row."""
        parts = [part for part in self.parts if part.has_value.any()]
        start, end = ("", "") if self.is_single else ("[", "]")
        if not parts:
            yield f"{start}{end}" or NULL
        elif all(part.has_value.all() for part in parts):
            for k, part in enumerate(parts):
                yield "," if k else start
                yield from part.iter_pieces()
            yield end
        else:
            rows = zip(*(format_values(part) for part in parts), strict=True)
            texts = [",".join(text for text in row if text != NULL) for row in rows]
            yield [text or NULL for text in texts] if self.is_single else [f"[{text}]" for text in texts]


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
        Converts a tuple to the value of its JSON.
    """

    by_row: Mapping[int, tuple[Any, ...]]
    n: int
    convert: Callable[[Any], Any]

    def to_list(self) -> list[Any]:
        """Return the tuple of each row."""
        return [self.by_row.get(row, ()) for row in range(self.n)]

    def iter_pieces(self) -> Pieces:
        """Yield the pieces of the JSON of each row."""
        texts = ["[]"] * self.n
        for row, values in self.by_row.items():
            texts[row] = as_json_line(self.convert(values))
        yield texts if self.by_row else "[]"


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """Texts that differ between rows in some of their parts, such as the numbers in a sentence.

    Attributes
    ----------
    template : str
        The text, with `{}` for each part.
    parts : tuple of CodedColumn of str
        Variable parts of the sentence in each row.
    """

    template: str
    parts: tuple[CodedColumn[str], ...]

    def to_list(self) -> list[str]:
        """Return the text of each row."""
        return list(map(self.template.format, *(part.to_list() for part in self.parts)))

    def iter_pieces(self) -> Pieces:
        """Yield the pieces of the JSON of each row."""
        first, *others = (as_json_line(text)[1:-1] for text in self.template.split("{}"))
        yield f'"{first}'
        for part, text in zip(self.parts, others, strict=True):
            yield _format_coded(part, lambda values: [text[1:-1] for text in format_texts(values)])
            yield text
        yield '"'

    def take(self, rows: Integers) -> Sentences:
        """Return the texts of some rows."""
        return Sentences(self.template, tuple(take_column(part, rows) for part in self.parts))  # type: ignore[misc]


Values = NDArray[Any] | CodedColumn[Any] | list[Any] | Nullable | Composite | Lists | SparseLists | Sentences
"""A value for each row. Lists hold texts or None."""


def list_values(values: Values) -> list[Any]:
    """Return the value of each row."""
    if isinstance(values, np.ndarray):
        return list(values.tolist())
    return values if isinstance(values, list) else values.to_list()


def format_values(values: Values) -> list[str]:
    """Return the JSON of each row's value."""
    merged: list[str | list[str]] = []
    for piece in iter_pieces(values):
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    n = next((len(piece) for piece in merged if isinstance(piece, list)), _count_rows(values))
    if len(merged) == 1:
        return merged[0] if isinstance(merged[0], list) else merged * n  # type: ignore[return-value]
    texts = (repeat(piece, n) if isinstance(piece, str) else piece for piece in merged)
    return list(map("".join, zip(*texts, strict=True)))


def iter_pieces(values: Values) -> Pieces:
    """Yield the pieces of the JSON of each row's value."""
    if isinstance(values, np.ndarray):
        bits = np.ascontiguousarray(values).view(f"u{values.itemsize}")  # which tell 0.0 and -0.0 apart
        yield format_numbers(values[:1])[0] if len(bits) and (bits == bits[0]).all() else format_numbers(values)
    elif isinstance(values, CodedColumn):
        yield _format_coded(values, lambda distinct: list(map(as_json_line, distinct)))
    elif isinstance(values, list):
        yield format_texts(values)
    else:
        yield from values.iter_pieces()


def _count_rows(values: Values) -> int:
    if isinstance(values, Composite | Lists | Sentences):
        members = values.members if isinstance(values, Composite) else values.parts
        return _count_rows(members[0]) if members else values.n  # type: ignore[union-attr]
    if isinstance(values, Nullable):
        return len(values.has_value)
    return values.n if isinstance(values, SparseLists) else len(values)


def _format_coded(column: CodedColumn[Any], convert: Callable[[list[Any]], list[str]]) -> str | list[str]:
    """Return the text of each row's value, or a single one if all rows have the same; equal values convert once."""
    used_codes, positions = find_distinct(column.codes)
    texts = convert([column.values[code] for code in used_codes.tolist()])
    return texts[0] if len(texts) == 1 else [texts[position] for position in positions.tolist()]


def take_values(values: Values, rows: Integers) -> Values:
    """Return the values of some rows."""
    if isinstance(values, np.ndarray | CodedColumn):
        return take_column(values, rows)
    if isinstance(values, list):
        return [values[row] for row in rows.tolist()]
    if isinstance(values, Nullable):
        return Nullable(take_values(values.values, rows), values.has_value[rows])
    assert isinstance(values, Composite | Sentences)
    return values.take(rows)


def build_records(record: Any, *members: Values) -> Composite:
    """Return values that are records of a dataclass, and JSON objects, from the columns of its fields."""
    names = [f.name for f in fields(record)]
    return Composite(members, record, (*(f'{"," if k else "{"}"{name}":' for k, name in enumerate(names)), "}"))


def build_pairs(low: Values, high: Values) -> Composite:
    """Return pairs of numbers."""
    return Composite((low, high), lambda *ends: ends, ("[", ",", "]"))


def build_optional(values: Floats) -> Nullable:
    """Return numbers, with NaN for missing ones."""
    return Nullable(values, ~np.isnan(values))


def build_optional_pairs(low: Floats, high: Floats) -> Nullable:
    """Return pairs of numbers, none where the first is NaN."""
    return Nullable(build_pairs(low, high), ~np.isnan(low))


def format_array(values: NDArray[Any]) -> str:
    """Return the JSON of an array of numbers: each in its shortest exact form, or null for NaN."""
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY).decode()


def format_numbers(values: NDArray[Any]) -> list[str]:
    """Return the JSON of each number, as `format_array` writes it; texts of equal columns are cached."""
    if len(values) <= REMEMBERED_ROWS:
        return _format_once(values.tobytes(), values.dtype.str)
    return format_array(values)[1:-1].split(",")


REMEMBERED_ROWS = 4096
"""Maximum number of rows for which texts of columns are cached, because several columns often hold the same numbers."""


@lru_cache(maxsize=16)
def _format_once(content: bytes, dtype: str) -> list[str]:
    values = np.frombuffer(content, dtype)
    return format_array(values)[1:-1].split(",") if len(values) else []


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
