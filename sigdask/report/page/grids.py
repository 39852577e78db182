"""Tables that the page's script draws; each distinct text is stored once. Without scripts, the first rows are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import CodedColumn
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import iter_results

MOST_PLAIN = 200
"""Rows that stand in the page as plain HTML, for browsers without a script."""


@dataclass(frozen=True, slots=True, eq=False)
class GridColumn:
    """A column of a grid.

    Attributes
    ----------
    head : str
        What stands above it.
    texts : CodedColumn of str
        The cells.
    is_number : bool
        Whether it is sorted by the number that its cells begin with.
    is_filter : bool
        Whether a choice of its values narrows the table.
    is_hidden : bool
        Whether it is for the script alone.
    is_aside : bool
        Whether it says how a number was had: paper has no room for it.
    """

    head: str
    texts: CodedColumn[str]
    is_number: bool = False
    is_filter: bool = False
    is_hidden: bool = False
    is_aside: bool = False

    def build_data(self) -> dict[str, Any]:
        """Return the column as data for the script: distinct texts, and each row's index where texts repeat."""
        codes = self.texts.codes.tolist()
        column: dict[str, Any] = {"head": self.head, "values": self.texts.values}
        if codes != [*range(len(codes))]:
            column["codes"] = codes
        marks = {"number": self.is_number, "filter": self.is_filter, "hidden": self.is_hidden, "aside": self.is_aside}
        return column | {name: True for name, is_so in marks.items() if is_so}


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """A table of the page, drawn by its script.

    Attributes
    ----------
    name : str
        Of its data, by which the script finds it.
    caption : str
        What it is a table of.
    columns : sequence of GridColumn
        At least one.
    left_out : str
        What is said of rows that the page does not have.
    more : dict
        What else the script reads.
    n_plain : int
        Rows that stand in the page without a script.
    """

    name: str
    caption: str
    columns: Sequence[GridColumn]
    left_out: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    n_plain: int = MOST_PLAIN

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].texts)

    def plain(self) -> Iterator[list[tuple[GridColumn, str]]]:
        """Yield, for each of the first rows, its cells with their columns, for readers without scripts."""
        visible = [column for column in self.columns if not column.is_hidden]
        for row in range(min(self.n_rows, self.n_plain)):
            yield [(column, column.texts[row]) for column in visible]

    def build_data(self) -> dict[str, Any]:
        """Return the table as data for the script."""
        return {
            "caption": self.caption,
            "n": self.n_rows,
            "columns": [column.build_data() for column in self.columns],
            **self.more,
        }


def encode_values(values: NDArray[Any], format_value: Callable[[Any], str]) -> CodedColumn[str]:
    """Return numbers as text, with each distinct number formatted once."""
    distinct, codes = np.unique(values, return_inverse=True)
    return _merge_texts(map(format_value, distinct.tolist()), codes)


def encode_names(column: CodedColumn[Any], format_value: Callable[[Any], str] = str) -> CodedColumn[str]:
    """Return a column of names as text."""
    return _merge_texts(map(format_value, column.values), column.codes)


def encode_rows(
    table: Table, columns: Sequence[NDArray[Any]], format_result: Callable[[Result], str]
) -> CodedColumn[str]:
    """Return a text for each row; rows that agree in the given columns share one text, which is made once."""
    keys = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    _, first_rows, codes = np.unique(np.column_stack(keys), axis=0, return_index=True, return_inverse=True)
    return _merge_texts(map(format_result, iter_results(table.take(first_rows))), codes.reshape(-1))


def encode_texts(texts: Sequence[str]) -> CodedColumn[str]:
    """Return texts as a column."""
    return CodedColumn.from_values(texts)


def _merge_texts(texts: Any, codes: NDArray[Any]) -> CodedColumn[str]:
    """Return a column of texts, given as texts and each row's index, in which equal texts share an index."""
    indices: dict[str, int] = {}
    new_codes = np.array([indices.setdefault(text, len(indices)) for text in texts], np.int32)
    return CodedColumn(new_codes[codes], tuple(indices))
