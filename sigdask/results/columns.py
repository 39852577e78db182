"""Columns of result tables in memory: names as codes, and groups of columns that belong together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Integers

Value = TypeVar("Value", bound=Hashable)
Rows = slice | Integers
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn(Generic[Value]):
    """A column with few distinct values, such as names, units or metrics: a dictionary array of Arrow.

    Attributes
    ----------
    codes : int32 array, shape (n,)
        The place of each row's value.
    values : tuple
        The values.
    """

    codes: NDArray[np.int32]
    values: tuple[Value, ...]

    @staticmethod
    def from_values(values: Iterable[Value]) -> CodedColumn[Value]:
        """Build a column from each row's value, with distinct values in order of appearance."""
        codes_by_value: dict[Value, int] = {}
        codes = np.array([codes_by_value.setdefault(value, len(codes_by_value)) for value in values], np.int32)
        return CodedColumn(codes, tuple(codes_by_value))

    @staticmethod
    def from_constant(value: Value, n: int) -> CodedColumn[Value]:
        """Build a column with one value in all rows; its codes are read-only and take no memory."""
        return CodedColumn(np.broadcast_to(np.int32(0), n), (value,))

    @staticmethod
    def join(columns: Sequence[CodedColumn[Value]]) -> CodedColumn[Value]:
        """Return the values of several columns one after the other."""
        codes_by_value: dict[Value, int] = {}
        codes = [
            np.array([codes_by_value.setdefault(v, len(codes_by_value)) for v in column.values], np.int32)[column.codes]
            for column in columns
        ]
        return CodedColumn(np.concatenate(codes), tuple(codes_by_value))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def to_list(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]

    def take(self, rows: Rows | Bools) -> CodedColumn[Value]:
        """Return the column of some rows."""
        return CodedColumn(self.codes[rows], self.values)

    def map(self, convert: Callable[[Value], Any]) -> CodedColumn[Any]:
        """Return the column with each distinct value converted."""
        return CodedColumn.join([CodedColumn(self.codes, tuple(map(convert, self.values)))])

    def fill(self, rows: Bools, value: Value) -> CodedColumn[Value]:
        """Return the column with one value in some rows."""
        codes = np.where(rows, len(self.values), self.codes).astype(np.int32)
        return CodedColumn.join([CodedColumn(codes, (*self.values, value))])

    def find(self, condition: Callable[[Value], bool]) -> Bools:
        """Return whether a condition holds for the value of each row."""
        return np.array([condition(value) for value in self.values], np.bool_)[self.codes]


Column = NDArray[Any] | CodedColumn[Any]


Columns = dict[str, Any]
"""Columns of equal length, arrays or coded, by their paths in the JSON of results."""


def take_rows(columns: Columns, rows: Rows) -> Columns:
    """Return some rows of all columns."""
    return {
        path: column.take(rows) if isinstance(column, CodedColumn) else column[rows] for path, column in columns.items()
    }


def join_columns(groups: Sequence[Columns]) -> Columns:
    """Return the rows of several groups that have the same columns, one after the other; none without groups."""
    columns = {path: [group[path] for group in groups] for path in (groups[0] if groups else ())}
    return {
        path: CodedColumn.join(parts) if isinstance(parts[0], CodedColumn) else np.concatenate(parts)
        for path, parts in columns.items()
    }


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the items: those with a given value in a grouping column."""

    column: str
    value: str


EMPTY = "(empty)"
"""Name of the subset of items without a value."""

UNADJUSTED = "unadjusted"
"""Name of the p of a single comparison next to that of a family."""

SIMULTANEOUS = "simultaneous "
"""Prefix of simultaneous intervals."""


def format_deciding(n_deciding: int, n_units: int, unit: str) -> str:
    """Return a phrase on how few units decide.

    Examples
    --------
    >>> format_deciding(2, 20, "item"), format_deciding(1, 1200, "topic")
    ('2 of 20 items decide', '1 of 1,200 topics decides')
    """
    return f"{n_deciding:,} of {n_units:,} {pluralize(unit, n_units)} decide{'s' if n_deciding == 1 else ''}"


def pluralize(unit: str, n: int = 2) -> str:
    """Return a unit's name, plural unless `n` is 1; names that are no words become "unit" or "units"."""
    name = unit if unit.isalpha() and not unit.endswith("s") else "unit"
    return name if n == 1 else f"{name}s"


BCA, PERCENTILE, TANGO, INVERSION, NORMAL = "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal"
RECIPE = "recipe-t"
METHODS = ("", BCA, PERCENTILE, TANGO, INVERSION, NORMAL, RECIPE)
"""Names of interval methods, by code."""
