"""Coded columns, which store distinct values and a code for each row, and values of such columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn(Generic[Value]):
    """A column with few distinct values, such as names, units or metrics.

    Attributes
    ----------
    codes : int32 array, shape (n,)
        The place of each row's value.
    values : tuple
        The distinct values.
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
        """Build a column with one value in all rows."""
        return CodedColumn(np.zeros(n, np.int32), (value,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def to_list(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """The metric of results: its name, whether higher is better, and its scorer's signature.

    Attributes
    ----------
    name : str
        As it was asked for.
    higher_is_better : bool
        Whether more is better.
    signature : str or None
        How the scorer library counted, in its own words.
    """

    name: str
    higher_is_better: bool
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the items: those with a given value in a grouping column."""

    column: str
    value: str
