"""Tables that the page's script draws: columns of texts, each distinct text once; without a script, the first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.coded import Coded
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import result_views

MOST_PLAIN = 200
"""Rows that stand in the page as plain HTML, for browsers without a script."""


@dataclass(frozen=True, slots=True, eq=False)
class GridColumn:
    """A column of a grid.

    Attributes
    ----------
    head : str
        What stands above it.
    texts : Coded of str
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
    texts: Coded[str]
    is_number: bool = False
    is_filter: bool = False
    is_hidden: bool = False
    is_aside: bool = False

    def data(self) -> dict[str, Any]:
        """Return what the script reads: distinct texts, and each row's place among them where texts repeat."""
        codes = self.texts.codes.tolist()
        own: dict[str, Any] = {"head": self.head, "values": self.texts.values}
        if codes != [*range(len(codes))]:
            own["codes"] = codes
        marks = {"number": self.is_number, "filter": self.is_filter, "hidden": self.is_hidden, "aside": self.is_aside}
        return own | {name: True for name, is_so in marks.items() if is_so}


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """A table of the page.

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
        """Return the number of its rows."""
        return len(self.columns[0].texts)

    def plain(self) -> Iterator[list[tuple[GridColumn, str]]]:
        """Yield the cells of the first rows, each with its column."""
        shown = [column for column in self.columns if not column.is_hidden]
        for row in range(min(self.n_rows, self.n_plain)):
            yield [(column, column.texts[row]) for column in shown]

    def data(self) -> dict[str, Any]:
        """Return what the script reads."""
        return {
            "caption": self.caption,
            "n": self.n_rows,
            "columns": [column.data() for column in self.columns],
            **self.more,
        }


def coded(values: NDArray[Any], text: Callable[[Any], str]) -> Coded[str]:
    """Write numbers, each distinct one once."""
    distinct, codes = np.unique(values, return_inverse=True)
    return _merged(map(text, distinct.tolist()), codes)


def named(column: Coded[Any], text: Callable[[Any], str] = str) -> Coded[str]:
    """Write what a column of names holds."""
    return _merged(map(text, column.values), column.codes)


def by_rows(table: Table, columns: Sequence[NDArray[Any]], text: Callable[[Result], str]) -> Coded[str]:
    """Write something of each row that follows from some columns alone, once for rows alike in all of them."""
    keys = [np.unique(column, return_inverse=True)[1].reshape(-1) for column in columns]
    _, first, codes = np.unique(np.column_stack(keys), axis=0, return_index=True, return_inverse=True)
    return _merged(map(text, result_views(table.take(first))), codes.reshape(-1))


def of_texts(texts: Sequence[str]) -> Coded[str]:
    """Make a column of texts."""
    return Coded.of(texts)


def _merged(texts: Any, codes: NDArray[Any]) -> Coded[str]:
    """Give equal texts one place."""
    places: dict[str, int] = {}
    own = np.array([places.setdefault(text, len(places)) for text in texts], np.int32)
    return Coded(own[codes], tuple(places))
