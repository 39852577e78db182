"""A paper table as values: columns of texts, with bold type and marks, for all writers.

Numbers are texts as printed. Names are those of the users, and each writer escapes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
        Text of each row, or "".
    is_name : bool
        Whether it holds left-aligned words instead of numbers.
    bold : bool array or None
        Whether each row is the best.
    marks : sequence of str or None
        Raised behind the texts.
    is_p : bool
        Whether it holds p-values, which are aligned at their decimal points.
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

    def render(self, format_name: Callable[[str], str], format_number: Callable[[str], str], bold: str) -> list[str]:
        """Return the texts as a writer formats them; `bold` has the place of a text that is bold."""
        format_text = format_name if self.is_name else format_number
        formatted = {text: format_text(text) for text in dict.fromkeys(self.texts)}
        if self.bold is None:
            return [formatted[text] for text in self.texts]
        templates = ("{}", bold)
        return [templates[b].format(formatted[text]) for text, b in zip(self.texts, self.bold.tolist(), strict=True)]

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
        Title of the table.
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


def list_cells(rows: Iterable[Any], **attributes: str) -> dict[str, list[str]]:
    """Return the cells of columns by their headers, given the attribute of the rows that each header stands for."""
    return {header: [getattr(row, name) for row in rows] for header, name in attributes.items()}


def build_name_columns(rows: Iterable[Any], **attributes: str) -> list[TableColumn]:
    """Return columns of names, given the attribute of the rows that each header stands for."""
    return [TableColumn(header, names, is_name=True) for header, names in list_cells(rows, **attributes).items()]


def collect_numbers(rows: Iterable[Any], name: str) -> NDArray[np.float64]:
    """Return an attribute of rows as an array; None becomes NaN."""
    return np.array([getattr(row, name) for row in rows], np.float64)
