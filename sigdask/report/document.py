"""A report as values: sentences, tables of marked cells, and notes, which each renderer writes in its format.

Numbers are texts as printed. Names are those of the users, and each renderer escapes them. Renderers: `text` for
terminals, `latex`, `markdown`, and `html`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Column:
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
    is_filter, is_hidden, is_aside, is_pinned : bool
        On pages: whether a choice of its values narrows the table, whether it is only for the script, whether it says
        how a number was computed (printed pages leave it out), and whether it stays visible while the table scrolls.
    hints, links : mapping of str to str
        On pages: hover texts and addresses of cells, by their texts.
    series : str
        On pages: whether cells are drawings of numbers over the nights: "scores", "p", or "" for texts.
    """

    header: str
    texts: Sequence[str] = ()
    is_name: bool = False
    bold: NDArray[np.bool_] | None = None
    marks: Sequence[str] | None = None
    is_p: bool = False
    is_filter: bool = False
    is_hidden: bool = False
    is_aside: bool = False
    is_pinned: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    series: str = ""

    def iter_rows(self) -> Iterator[tuple[str, bool, str]]:
        """Yield the text, bold flag and mark of each row."""
        n = len(self.texts)
        bold = [False] * n if self.bold is None else self.bold.tolist()
        return zip(self.texts, bold, [""] * n if self.marks is None else self.marks, strict=True)

    def render(self, format_name: Callable[[str], str], format_number: Callable[[str], str], bold: str) -> list[str]:
        """Return the texts as a renderer formats them; `bold` has the place of a text that is bold."""
        format_text = format_name if self.is_name else format_number
        formatted = {text: format_text(text) for text in dict.fromkeys(self.texts)}
        return [bold.format(formatted[text]) if is_bold else formatted[text] for text, is_bold, _ in self.iter_rows()]

    def select_rows(self, rows: Sequence[int]) -> Column:
        """Return the column with only some rows."""
        bold = None if self.bold is None else self.bold[list(rows)]
        marks = None if self.marks is None else [self.marks[k] for k in rows]
        return replace(self, texts=[self.texts[k] for k in rows], bold=bold, marks=marks)


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """Rows under a heading, which may be empty. All sections of a table have the same headers."""

    heading: str
    columns: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.columns[0].texts) if self.columns else 0


@dataclass(frozen=True, slots=True, eq=False)
class DocumentTable:
    """A table with its title, legend and notes.

    Attributes
    ----------
    title : str
        Title of the table, without a full stop.
    sections : tuple of Section
        Its rows.
    legend : tuple of str
        Meanings of marks, without full stops.
    note : tuple of str
        The test, in a few sentences.
    warnings : tuple of str
        On the results.
    """

    title: str
    sections: tuple[Section, ...]
    legend: tuple[str, ...] = ()
    note: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(title: str, columns: Iterable[Column], legend: Iterable[str] = (), note: str = "") -> DocumentTable:
        """Return a table of one section without a heading."""
        return DocumentTable(title, (Section("", tuple(columns)),), tuple(legend), (note,) if note else ())

    def list_sentences(self) -> list[str]:
        """Return the legend in sentences, with the meaning of bold type."""
        has_bold = any(c.bold is not None and c.bold.any() for section in self.sections for c in section.columns)
        texts = (text if text.startswith("p ") else f"{text[:1].upper()}{text[1:]}" for text in self.legend)
        return [*["Best in bold."] * has_bold, *(f"{text}." for text in texts)]

    def divide(self, n_rows: int) -> Iterator[DocumentTable]:
        """Yield the rows in tables of at most `n_rows`, of which the first has the note."""
        n, first_rows = sum(map(len, self.sections)), accumulate(map(len, self.sections), initial=0)
        places = [*zip(self.sections, first_rows, strict=False)]
        for first in range(0, n, n_rows):
            rows = [(s, range(len(s))[max(first - k, 0) : max(first - k + n_rows, 0)]) for s, k in places]
            sections = (Section(s.heading, tuple(c.select_rows(own) for c in s.columns)) for s, own in rows if own)
            part = f", part {first // n_rows + 1} of {-(-n // n_rows)}" if n > n_rows else ""
            further: dict[str, Any] = {"note": (), "warnings": ()} if first else {}
            yield replace(self, title=f"{self.title}{part}", sections=tuple(sections), **further)

    def shorten(self, n_rows: int) -> DocumentTable:
        """Return the first rows, with a note on how many are left out instead of the test's."""
        n_left = sum(map(len, self.sections)) - n_rows
        note = (f"{n_left:,} more rows are not shown.",) if n_left > 0 else ()
        return replace(next(self.divide(n_rows), self), title=self.title, note=note)


Block = str | DocumentTable
"""A paragraph of lines, or a table."""


Cells = dict[str, str | Callable[[Any], str]]
"""Columns by their headers: the attribute of a row that holds a name, or a function that returns its number as text."""


def build_columns(rows: Iterable[Any], cells: Cells) -> list[Column]:
    """Return the columns of rows."""
    rows = [*rows]
    return [
        Column(header, [getattr(row, cell) for row in rows], is_name=True)
        if isinstance(cell, str)
        else Column(header, [*map(cell, rows)])
        for header, cell in cells.items()
    ]
