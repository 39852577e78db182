"""Coded columns: few distinct values, a code for each row; and the values that metrics and subsets are."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Coded(Generic[Value]):
    """A column of few distinct values: names, units, metrics.

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
    def of(values: Iterable[Value]) -> Coded[Value]:
        """Make a column of each row's value, in the order in which values come first."""
        places: dict[Value, int] = {}
        codes = np.array([places.setdefault(value, len(places)) for value in values], np.int32)
        return Coded(codes, tuple(places))

    @staticmethod
    def same(value: Value, n: int) -> Coded[Value]:
        """Make a column of one value."""
        return Coded(np.zeros(n, np.int32), (value,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def listed(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """What a row's metric is.

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
    """The items of one value of a column."""

    column: str
    value: str
