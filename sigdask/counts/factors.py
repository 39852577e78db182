"""Columns of texts of which many are the same: the groups that items are in, labels, systems of long tables."""

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
    """A column of texts of which many are the same; behaves like a tuple of str.

    Attributes
    ----------
    levels : Texts
        The different texts, sorted by their bytes.
    codes : array of int, shape (n,)
        The place of each cell's text among them, in the smallest type that holds all.

    Examples
    --------
    >>> column = Factor.of(["b", "a", "b"])
    >>> column.levels.tolist(), column.codes.tolist(), column[2]
    (['a', 'b'], [1, 0, 1], 'b')
    """

    levels: Texts
    codes: NDArray[Any]

    @staticmethod
    def of(values: Iterable[Any]) -> Factor:
        """Find the levels of a column."""
        if isinstance(values, Factor):
            return values
        column = Texts.of(values)
        first = np.ones(len(column), np.bool_)  # of runs of the same text, which groups often are
        first[1:] = ~column[1:].alike(column[:-1])
        runs = column if first.all() else column[first]
        order, tied = runs.sorted
        of_runs = np.empty(len(runs), np.int64)
        of_runs[order] = np.cumsum(~tied) - 1
        codes = of_runs if runs is column else of_runs[np.cumsum(first) - 1]
        levels = runs[order[~tied]].compact()
        return Factor(levels, codes.astype(code_type(len(levels))))

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
        return Factor(self.levels[used], codes.astype(code_type(len(used))))

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
    def met(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The levels in the order in which they are first met, and the row at which each level is."""
        first = np.zeros(len(self.levels), np.intp)
        first[self.codes[::-1]] = np.arange(len(self) - 1, -1, -1)
        return np.argsort(first), first

    def are(self, text: str) -> NDArray[np.bool_]:
        """Return which cells are a given text."""
        same: NDArray[np.bool_] = self.levels.are(text)[self.codes]
        return same

    def renamed(self, names: Mapping[str, str]) -> Factor:
        """Return the column with some texts read as others."""
        if not names:
            return self
        levels = Factor.of([names.get(level, level) for level in self.levels])
        return Factor(levels.levels, levels.codes[self.codes])


def code_type(n: int) -> type[np.signedinteger[Any]]:
    """Return the smallest type of codes of `n` levels."""
    return next((t for t in (np.int8, np.int16, np.int32) if n <= np.iinfo(t).max), np.int64)
