"""Columns in which many texts are the same: group columns, labels, systems of long tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.texts import Texts


@dataclass(frozen=True, eq=False)
class Factor(Sequence[str]):
    """A column of texts with many repetitions, stored as levels and codes; behaves like a tuple of str.

    Attributes
    ----------
    levels : Texts
        The different texts, sorted by their bytes.
    codes : array of int, shape (n,)
        The place of each cell's text among them, in the smallest type that holds all.

    Examples
    --------
    >>> column = Factor.from_values(["b", "a", "b"])
    >>> column.levels.tolist(), column.codes.tolist(), column[2]
    (['a', 'b'], [1, 0, 1], 'b')
    """

    levels: Texts
    codes: NDArray[Any]

    @staticmethod
    def from_values(values: Iterable[Any]) -> Factor:
        """Encode a column as levels and codes."""
        if isinstance(values, Factor):
            return values
        column = Texts.from_values(values)
        is_run_start = np.ones(len(column), np.bool_)  # of runs of the same text, which groups often are
        is_run_start[1:] = ~column[1:].equals_column(column[:-1])
        runs = column if is_run_start.all() else column[is_run_start]
        order, tied = runs.sorted
        run_codes = np.empty(len(runs), np.int64)
        run_codes[order] = np.cumsum(~tied) - 1
        codes = run_codes if runs is column else run_codes[np.cumsum(is_run_start) - 1]
        levels = runs[order[~tied]].compact()
        return Factor(levels, codes.astype(get_code_type(len(levels))))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, which: int) -> str: ...
    @overload
    def __getitem__(self, which: slice | NDArray[Any]) -> Factor: ...
    def __getitem__(self, which: Any) -> str | Factor:
        if not isinstance(which, slice | np.ndarray):
            return self.levels[int(self.codes[which])]
        kept: NDArray[Any] = self.codes[which]
        used: NDArray[Any]
        used, codes = np.unique(kept, return_inverse=True)
        if len(used) == len(self.levels):
            return Factor(self.levels, codes.astype(self.codes.dtype))
        return Factor(self.levels[used], codes.astype(get_code_type(len(used))))

    def __iter__(self) -> Iterator[str]:
        return map(self.levels.tolist().__getitem__, self.codes.tolist())

    def __contains__(self, text: object) -> bool:
        return text in self.levels

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Factor):
            return self.levels == other.levels and bool(np.array_equal(self.codes, other.codes))
        return isinstance(other, tuple | list) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Factor({len(self):,} cells, {len(self.levels):,} levels: {self.levels!r})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        cells: NDArray[Any] = np.array(self.levels.tolist(), dtype or object)[self.codes]
        return cells

    def tolist(self) -> list[str]:
        """Return the cells as a list."""
        return list(self)

    @cached_property
    def first_occurrences(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Levels in order of first occurrence in the column, and for each level the row where it first occurs."""
        first_rows = np.zeros(len(self.levels), np.intp)
        first_rows[self.codes[::-1]] = np.arange(len(self) - 1, -1, -1)
        return np.argsort(first_rows), first_rows

    def equals_text(self, text: str) -> NDArray[np.bool_]:
        """Return a mask of the cells that equal a text."""
        is_equal: NDArray[np.bool_] = self.levels.equals_text(text)[self.codes]
        return is_equal

    def rename_levels(self, names: Mapping[str, str]) -> Factor:
        """Return the column with some texts replaced by others."""
        if not names:
            return self
        levels = Factor.from_values([names.get(level, level) for level in self.levels])
        return Factor(levels.levels, levels.codes[self.codes])


def get_code_type(n: int) -> type[np.signedinteger[Any]]:
    """Return the smallest integer type that holds the codes of `n` levels."""
    return next((t for t in (np.int8, np.int16, np.int32) if n <= np.iinfo(t).max), np.int64)
