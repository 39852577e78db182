"""Tables and rankings on the page.

The script draws tables, in which each distinct text is stored once; without scripts, the first rows are shown. A
ranking is a dictionary for the templates: `title`, the `reference` from which the differences are, `rows`, the position
of `zero`, `ticks`, `intervals` (the header of the intervals), and its marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.report.comparisons import (
    GROUPINGS,
    VERDICT_HINTS,
    VERDICT_MARKS,
    Setting,
    build_joint_table,
    build_test_table,
    explain_group_marks,
    format_deciding_p,
    format_groups,
    format_interval,
    list_columns,
)
from sigdask.report.document import Column, DocumentTable
from sigdask.report.sentences import get_ends, turn, turn_to_better
from sigdask.report.standings import BASELINE, SOME, Standings
from sigdask.results.columns import encode
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.fields import iter_results
from sigdask.results.ranking import build_ranking, group_rows
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_score, format_signed
from sigdask.text import make_printable

MAX_PLAIN = 200
"""Maximum number of rows in plain HTML, for browsers without scripts."""

MAX_ROWS = 20_000
"""Maximum number of comparisons listed, those with the smallest p."""

MAX_TESTED, MAX_TOGETHER = 500, 5000
"""Maximum numbers of comparisons whose classical tests are listed, and of verdicts over several sets."""


@dataclass(frozen=True, slots=True, eq=False)
class PageTable:
    """A table of the page, drawn by its script.

    Attributes
    ----------
    name : str
        Name by which the script finds its data.
    caption : str
        Caption.
    columns : sequence of Column
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
    columns: Sequence[Column]
    left_out: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    n_plain: int = MAX_PLAIN

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].texts)

    def plain(self) -> Iterator[list[tuple[Column, str]]]:
        """Yield, for each of the first rows, its cells with their columns, for readers without scripts."""
        visible = [column for column in self.columns if not column.is_hidden]
        for row in range(min(self.n_rows, self.n_plain)):
            yield [(column, column.texts[row]) for column in visible]

    def build_script_data(self) -> dict[str, Any]:
        """Return the table as data for the script."""
        columns = [*map(_build_column_data, self.columns)]
        return {"caption": self.caption, "n": self.n_rows, "columns": columns, **self.more}


def build_comparison_grid(table: Table) -> tuple[PageTable, NDArray[np.int64]]:
    """Return the grid of comparisons, and the table rows that it lists: all, or those with the smallest p."""
    rows = np.arange(len(table))
    if len(table) > MAX_ROWS:
        p = np.where(np.isnan(table.p_adjusted), table.p_value, table.p_adjusted)
        rows = np.lexsort((table.p_value, p))[:MAX_ROWS]
    is_cut = len(rows) < len(table)
    left_out = f"The {len(rows):,} with the smallest p of {len(table):,}; the JSON has all." if is_cut else ""
    results = turn_to_better(iter_results(table.take(rows)))
    setting = Setting(results, table.alpha)
    p_header = "adjusted p" if setting.is_adjusted else setting.p_header
    better = [r.better() for r in results]
    extra = {
        "rows": rows.tolist() if is_cut else None,
        "notes": _list_notes(results),
        "better": "".join("0" if b is None else "1" if b == r.a else "2" for b, r in zip(better, results, strict=True)),
        "decides": p_header,
    }
    if any(r.interval is not None for r in results):
        extra["plot"] = _list_interval_ends(results)
    columns = [
        replace(
            column,
            is_aside=column.is_aside or column.header in {"p", "unadjusted p"} - {p_header},
            is_pinned=column.is_pinned or column.header == p_header,
        )
        for column in list_columns(results, setting, is_page=True)
    ]
    return PageTable("comparisons", "Comparisons of systems", columns, left_out, extra), rows


def _build_column_data(column: Column) -> dict[str, Any]:
    """Return a column as data for the script: distinct texts, and each row's index where texts repeat."""
    texts = encode(map(make_printable, column.texts))
    data: dict[str, Any] = {"head": column.header, "values": texts.levels.tolist()}
    if len(texts.levels) < len(texts):
        data["codes"] = texts.codes.tolist()
    more = {
        "hints": dict(column.hints), "links": dict(column.links), "series": column.series, "number": not column.is_name,
        "filter": column.is_filter, "hidden": column.is_hidden, "aside": column.is_aside, "pinned": column.is_pinned,
    }  # fmt: skip
    return data | {name: value for name, value in more.items() if value}


def _list_notes(results: Sequence[Result]) -> dict[str, Any]:
    """Return the notes on rows, with the cause of contested ones."""
    noted = {}
    for row, r in enumerate(results):
        cause = r.equal_scores.cause if r.equal_scores is not None and r.verdict == "contested" else ""
        if texts := [*filter(None, [cause]), *r.warnings]:
            noted[row] = make_printable("; ".join(texts))
    return {"rows": [*noted], "texts": [*noted.values()]}


def _list_interval_ends(results: Sequence[Result]) -> dict[str, list[float | None]]:
    """Return the differences and the ends of their intervals, rounded for drawing; None where there is none."""
    rows = [(*(get_ends(r) or (math.nan, math.nan)), r.difference) for r in results]
    return {
        name: [float(f"{row[k]:.4g}") if math.isfinite(row[k]) else None for row in rows]
        for k, name in enumerate(("low", "high", "at"))
    }


def build_grid(name: str, caption: str, table: DocumentTable, left_out: str = "", **more: Any) -> PageTable:
    """Return a table of a document as a grid: names filter its rows, its last p stays visible, and marks are words."""
    [section] = table.sections
    *_, last_p = (column for column in section.columns if column.is_p)
    filters = {"test set", "subset", "metric", "test"}
    columns = [replace(c, is_filter=c.header in filters, is_pinned=c is last_p) for c in section.columns]
    words = {mark: verdict for verdict, mark in VERDICT_MARKS.items()}
    verdicts = [words.get(mark, "not significant") for mark in last_p.marks or ()]
    columns += [Column("verdict", verdicts, is_name=True, is_filter=True, hints=VERDICT_HINTS)] if verdicts else []
    return PageTable(name, caption, columns, left_out, more)


def build_tests_grid(table: Table) -> tuple[PageTable | None, Sequence[str]]:
    """Return classical tests of the first comparisons (None if none fits), and lines on tests that do not fit."""
    if not table.list_keys("tests"):
        return None, ()
    tests = build_test_table([*iter_results(table.take(slice(MAX_TESTED)))], table.alpha)
    if not tests.sections:
        return None, tests.legend
    n = len(table)
    left_out = f"Of {MAX_TESTED:,} comparisons of {n:,}; the JSON has all." if n > MAX_TESTED else ""
    caption = "Classical tests of the same comparisons"
    return build_grid("tests", caption, tests, left_out), tests.legend


def build_joint_grid(name: str, results: ComparisonResults) -> PageTable:
    """Return a grid of the verdicts over several test sets or subsets."""
    n = len(results.together)
    left_out = f"{MAX_TOGETHER:,} of {n:,}, those with the smallest p; the JSON has all." if n > MAX_TOGETHER else ""
    table = build_joint_table(results, n_rows=MAX_TOGETHER)
    return build_grid(name, f"{table.title[0].upper()}{table.title[1:]}", table, left_out)


MAX_IN_MATRIX = 150
"""Maximum number of systems for which every pair is drawn."""

MAX_RANKINGS = 100
"""Maximum number of rankings on a page."""

WIDTH, PAD = 340, 24
"""Width of the drawing of differences, and its margins."""

MAX_FORESTS, MAX_IN_FOREST = 3, 6
"""Maximum numbers of forest plots at the top of the page, and of systems in each."""

Drawing = dict[str, Any]


def build_forests(tables: Iterable[Table]) -> list[Drawing]:
    """Return forest plots for the top of the page, of the first test sets, subsets and metrics."""
    groups = [table.take(rows) for table in tables for rows in group_rows(table)]
    has_many_sets = len({group.test_set[0] for group in groups}) > 1
    forests = []
    for table in groups[:MAX_FORESTS]:
        c, column, value = Standings(table), table["subset.column"][0], table["subset.value"][0]
        if c.design != SOME:
            reference = c.names[int(c.b[0] if c.design == BASELINE else c.top[0])]
            sign = 1 if table.higher_is_better[0] else -1
            compared = _compare_with(table, reference)
            nearest = sorted(compared, key=lambda r: (math.isnan(r.difference), sign * r.difference))
            shown = nearest[:MAX_IN_FOREST]
            place = f"{column} {value}" if column else ""
            title = ", ".join(filter(None, (table.metric[0], table.test_set[0] if has_many_sets else "", place)))
            forests.append(_draw(title, reference, shown, table.alpha) | {"n_more": len(nearest) - len(shown)})
    return forests


def draw_ranking(table: Table, *, all_listed: bool) -> Drawing:
    """Return the ranking of a group, with a matrix if the page lists every comparison."""
    ranking = build_ranking(table)
    best = ranking.systems[0].system
    place = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    drawing = _draw(f"{ranking.metric}{place}", best, _compare_with(table, best), table.alpha)
    blank = dict.fromkeys(("low", "high")) | dict.fromkeys(("difference", "interval", "p", "verdict"), "")
    compared = {row["system"]: row for row in drawing["rows"]} | {best: blank | {"at": drawing["zero"]}}
    ranks = ranking.clusters or [system.rank for system in ranking.systems]
    rows = [
        compared[s.system] | {"system": s.system, "rank": rank, "score": format_score(s.score), "letters": letters}
        for s, letters, rank in zip(ranking.systems, format_groups(ranking), ranks, strict=True)
    ]
    return drawing | {
        "rows": rows,
        "of": ranking,
        "meaning": explain_group_marks(ranking),
        "mark_header": GROUPINGS[ranking.grouping][0],
        "has_matrix": all_listed and len(rows) <= MAX_IN_MATRIX,
    }


def _compare_with(table: Table, reference: str) -> list[Result]:
    """Return the comparisons of the other systems with one, turned so that it is B."""
    has_it = table.a.equals(reference) | table.b.equals(reference)
    return [turn(r) if r.a == reference else r for r in iter_results(table.take(np.flatnonzero(has_it)))]


def _draw(title: str, reference: str, results: Sequence[Result], alpha: float) -> Drawing:
    """Return a drawing with a row for each comparison."""
    setting, ends = Setting(results, alpha), [get_ends(r) for r in results]
    known = [pair if pair is not None and all(map(math.isfinite, pair)) else None for pair in ends]
    values = [0.0, *(r.difference for r in results), *(end for pair in known if pair for end in pair)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if min(finite) < max(finite) else (-1.0, 1.0)

    def locate(value: float) -> float:
        return round(PAD + (WIDTH - 2 * PAD) * (value - low) / (high - low), 1)

    rows = []
    for r, pair in zip(results, known, strict=True):
        rows.append({
            "system": r.a,
            "at": locate(r.difference),
            "low": None if pair is None else locate(pair[0]),
            "high": None if pair is None else locate(pair[1]),
            "difference": format_signed(r.difference),
            "interval": format_interval(r, setting),
            "p": format_deciding_p(r, alpha),
            "verdict": r.verdict,
        })  # fmt: skip
    return {
        "title": title,
        "reference": reference,
        "rows": rows,
        "zero": locate(0.0),
        "intervals": setting.interval_header if any(known) else "",
    }
