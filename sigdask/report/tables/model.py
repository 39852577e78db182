"""A paper table as values: columns of texts, with bold type and marks, for all writers.

Texts are as they are printed; names are as users gave them, and each writer escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TableColumn:
    """A column of a table.

    Attributes
    ----------
    header : str
        Its name.
    texts : sequence of str
        Of each row; empty where it has none.
    is_name : bool
        Words, which stand to the left; else numbers.
    bold : bool array or None
        Which are the best.
    marks : sequence of str or None
        Raised behind the texts.
    is_p : bool
        P-values, which align at their points where they stand to the left.
    """

    header: str
    texts: Sequence[str]
    is_name: bool = False
    bold: NDArray[np.bool_] | None = None
    marks: Sequence[str] | None = None
    is_p: bool = False

    def iter_rows(self) -> Iterator[tuple[str, bool, str]]:
        """Yield the text, bold flag and mark of each row."""
        n = len(self.texts)
        bold = [False] * n if self.bold is None else self.bold.tolist()
        return zip(self.texts, bold, [""] * n if self.marks is None else self.marks, strict=True)

    def select_rows(self, rows: Sequence[int]) -> TableColumn:
        """Return the column with only some rows."""
        bold = None if self.bold is None else self.bold[list(rows)]
        marks = None if self.marks is None else [self.marks[k] for k in rows]
        return replace(self, texts=[self.texts[k] for k in rows], bold=bold, marks=marks)


@dataclass(frozen=True, slots=True, eq=False)
class TableSection:
    """Rows under a heading, which may be empty. All sections of a table have the same headers."""

    heading: str
    columns: tuple[TableColumn, ...]

    def __len__(self) -> int:
        return len(self.columns[0].texts)


@dataclass(frozen=True, slots=True, eq=False)
class PaperTable:
    """A table with its title, legend and notes.

    Attributes
    ----------
    title : str
        What it shows.
    sections : tuple of TableSection
        Its rows.
    legend : tuple of str
        Sentences on bold type, letters and marks.
    method : tuple of str
        The test's full description, in sentences.
    sources : tuple of str
        Keys of the works that it rests on.
    warnings : tuple of str
        On the results.
    """

    title: str
    sections: tuple[TableSection, ...]
    legend: tuple[str, ...] = ()
    method: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
