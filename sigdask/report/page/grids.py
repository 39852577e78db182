"""Tables that the page's script draws: comparisons, classical tests, verdicts over several sets, and p-value curves.

Each distinct text is stored once. Without scripts, the first rows are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.tables.cells import format_ends, format_p_cell
from sigdask.report.tables.model import list_cells
from sigdask.report.terminal import comparisons
from sigdask.report.wording import ADJUSTMENTS
from sigdask.results.columns import CodedColumn
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.ranking_letters import achieved_significance
from sigdask.statistics.rounding import format_signed

MAX_PLAIN = 200
"""Maximum number of rows in plain HTML, for browsers without scripts."""


@dataclass(frozen=True, slots=True, eq=False)
class PageColumn:
    """A column of a grid.

    Attributes
    ----------
    head : str
        Header.
    texts : CodedColumn of str
        The cells.
    is_number : bool
        Whether it is sorted by the number at the beginning of its cells.
    is_filter : bool
        Whether a choice of its values narrows the table.
    is_hidden : bool
        Whether it is only for the script.
    is_aside : bool
        Whether it says how a number was computed. Printed pages leave it out.
    is_pinned : bool
        Whether it remains visible at the right while the table scrolls sideways.
    hints : mapping of str to str
        Hover texts of cells, by their texts.
    links : mapping of str to str
        Addresses that cells lead to, by their texts.
    series : str
        Whether cells are drawings of numbers over the nights: "scores", "p", or "" for texts.
    """

    head: str
    texts: CodedColumn[str]
    is_number: bool = False
    is_filter: bool = False
    is_hidden: bool = False
    is_aside: bool = False
    is_pinned: bool = False
    hints: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    series: str = ""

    def build_script_data(self) -> dict[str, Any]:
        """Return the column as data for the script: distinct texts, and each row's index where texts repeat."""
        codes = self.texts.codes.tolist()
        column: dict[str, Any] = {"head": self.head, "values": self.texts.values}
        if codes != [*range(len(codes))]:
            column["codes"] = codes
        more = {"hints": dict(self.hints), "links": dict(self.links), "series": self.series}
        column |= {name: value for name, value in more.items() if value}
        marks = {
            "number": self.is_number, "filter": self.is_filter, "hidden": self.is_hidden, "aside": self.is_aside,
            "pinned": self.is_pinned,
        }  # fmt: skip
        return column | {name: True for name, is_so in marks.items() if is_so}


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """A table of the page, drawn by its script.

    Attributes
    ----------
    name : str
        Name by which the script finds its data.
    caption : str
        Caption.
    columns : sequence of PageColumn
        Columns, at least one.
    left_out : str
        Text about rows that are left out.
    more : dict
        Further values for the script.
    n_plain : int
        Number of rows that the page shows without its script.
    """

    name: str
    caption: str
    columns: Sequence[PageColumn]
    left_out: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    n_plain: int = MAX_PLAIN

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].texts)

    def plain(self) -> Iterator[list[tuple[PageColumn, str]]]:
        """Yield, for each of the first rows, its cells with their columns, for readers without scripts."""
        visible = [column for column in self.columns if not column.is_hidden]
        for row in range(min(self.n_rows, self.n_plain)):
            yield [(column, column.texts[row]) for column in visible]

    def build_script_data(self) -> dict[str, Any]:
        """Return the table as data for the script."""
        return {
            "caption": self.caption,
            "n": self.n_rows,
            "columns": [column.build_script_data() for column in self.columns],
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


FILTERS = frozenset({"test set", "subset", "metric", "test"})
"""Columns whose texts filter the rows."""

NUMBERS = frozenset({"statistic", "p", "n", "mean A − B", "unadjusted p", "adjusted p"})
"""Columns of numbers."""


def build_columns(cells: Mapping[str, Sequence[str]]) -> list[PageColumn]:
    """Return columns of cells by their headers; test sets and subsets are hidden where there are not several."""
    columns = []
    for head, column_cells in cells.items():
        texts = CodedColumn.from_values(column_cells)
        is_hidden = len(texts.values) < 2 if head == "test set" else head == "subset" and not any(texts.values)
        pinned = head == "adjusted p" or (head == "p" and "adjusted p" not in cells)
        columns.append(PageColumn(head, texts, head in NUMBERS, head in FILTERS, is_hidden, is_pinned=pinned))
    return columns


def _merge_texts(texts: Any, codes: NDArray[Any]) -> CodedColumn[str]:
    """Return a column of texts, given as texts and each row's index, in which equal texts share an index."""
    indices: dict[str, int] = {}
    new_codes = np.array([indices.setdefault(text, len(indices)) for text in texts], np.int32)
    return CodedColumn(new_codes[codes], tuple(indices))


MAX_TESTED = 500
"""Maximum number of comparisons whose classical tests are listed."""

MAX_TOGETHER = 5000
"""Maximum number of verdicts over several sets that are listed."""

MIN_IN_CURVE, MAX_IN_CURVE = 10, 1000
"""Minimum number of comparisons for a curve, and its maximum number of points."""


def build_tests_grid(table: Table) -> tuple[PageTable | None, list[str]]:
    """Return classical tests of the first comparisons (None if none fits), and lines on tests that do not fit."""
    tested = [r for r in iter_results(table) if r.tests] if table.tests else []
    rows = [*comparisons.iter_rows(tested[:MAX_TESTED], table.alpha)]
    misfits = [*comparisons.iter_misfits(tested)]
    if not rows:
        return None, misfits
    columns = build_columns(comparisons.build_test_columns(rows))
    left_out = ""
    if len(tested) > MAX_TESTED:
        left_out = f"Of {MAX_TESTED:,} comparisons of {len(tested):,}; the JSON has all."
    extra = {"quiet": "".join("1" if row.is_contrast else "0" for row in rows)}
    return PageTable("tests", "Classical tests of the same comparisons", columns, left_out, extra), misfits


def build_sets_grid(name: str, results: ComparisonResults) -> PageTable:
    """Return a grid of the verdicts over several test sets or subsets."""
    shown = results.together[:MAX_TOGETHER]
    alpha = results.alpha
    columns = list_cells(shown, A="a", B="b", metric="metric") | {
        "mean A − B": [format_signed(v.difference) for v in shown],
        "interval": [format_ends(*v.interval) if v.interval else "" for v in shown],
        "unadjusted p": [format_p_cell(v.p_value, alpha) for v in shown],
        "adjusted p": [format_p_cell(v.p_adjusted, alpha) for v in shown],
        "A above B in": [_format_replications(v.greater_in, v.n_sets, v.p_greater, alpha) for v in shown],
        "below in": [_format_replications(v.less_in, v.n_sets, v.p_less, alpha) for v in shown],
    }
    left_out = ""
    if len(shown) < len(results.together):
        left_out = f"The first {len(shown):,} of {len(results.together):,}; the JSON has all."
    family = results.family_across_sets
    adjustment = f", p adjusted by {ADJUSTMENTS[family.adjust].label}" if family else ""
    return PageTable(name, f"Comparisons over all sets{adjustment}", build_columns(columns), left_out)


def _format_replications(n_shown: int, n_sets: int, p: float, alpha: float) -> str:
    return f"{n_shown} of {n_sets}" + (f" (p = {format_p_cell(p, alpha)})" if n_shown else "")


WIDTH, HEIGHT = 600, 240
"""Size of the curve's drawing."""


def build_curve(table: Table) -> dict[str, Any] | None:
    """Return the curve of all p-values, the largest first (Sakai 2006), or None for too few p-values.

    The template draws its points, alpha's level and the number of comparisons in a drawing of WIDTH by HEIGHT.
    """
    ordered = np.array(achieved_significance(table.p_value))
    n = len(ordered)
    if n < MIN_IN_CURVE:
        return None
    indices = np.unique(np.linspace(0, n - 1, min(n, MAX_IN_CURVE)).round().astype(np.int64))
    positions, heights = WIDTH * indices / (n - 1), HEIGHT * (1 - ordered[indices])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(positions.tolist(), heights.tolist(), strict=True))
    return {"points": points, "level": HEIGHT * (1 - table.alpha), "n": n}
