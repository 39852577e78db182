"""Short tables for notebooks and rich: the verdict first, some rows, and the test."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from sigdask.report.summary.headline import build_verdict
from sigdask.report.summary.sentences import describe_test
from sigdask.report.tables.comparisons import build_tables, get_default_layout
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.report.terminal.remarks import iter_warnings
from sigdask.text import capitalize_first, make_printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from sigdask.results.comparisons import ComparisonResults

MAX_ROWS = 10


def build_summary_table(results: ComparisonResults) -> PaperTable:
    """Return a short table as `print` shows the results: the answer, warnings, rows, and the test below."""
    verdict = build_verdict(results)
    doubt = (verdict.headline,) if verdict.sentences and not verdict.is_checked else ()
    title = " ".join([*doubt, *(verdict.sentences or (verdict.headline,))])
    if not len(results):
        return PaperTable(title, ())
    layout = get_default_layout(results.table)
    checks = [] if verdict.is_checked else [f"Checks: {verdict.checks}."]
    below = [f"{capitalize_first(describe_test(results))}.", *checks, *verdict.scope]
    if layout == "pairs" and (n_more := len(results) - MAX_ROWS) > 0:
        results = replace(results, table=results.table.take(slice(MAX_ROWS)))
        below.insert(0, f"{n_more:,} more comparisons are not shown.")
    table = shorten_table(build_tables(results, layout, percent=False)[0])
    warnings = tuple(iter_warnings(results))
    return replace(table, title=title, method=(*table.method, *below), warnings=warnings)


def shorten_table(table: PaperTable) -> PaperTable:
    """Return the first rows of a table, with a note on how many are left out and no paper notes."""
    sections, room = [], MAX_ROWS
    for section in table.sections:
        if room:
            rows = range(len(section))[:room]
            sections.append(TableSection(section.heading, tuple(c.select_rows(rows) for c in section.columns)))
            room -= len(sections[-1])
    n_left = sum(map(len, table.sections)) - sum(map(len, sections))
    notes = (f"{n_left:,} more rows are not shown.",) if n_left else ()
    return replace(table, sections=tuple(sections), method=notes, sources=(), warnings=())


def as_html(table: PaperTable) -> str:
    """Return a table as HTML for notebooks; every name is escaped."""
    parts = [f"<p><strong>{_escape_text(table.title)}</strong></p>"]
    parts += [f"<p>warning: {_escape_text(text)}</p>" for text in table.warnings]
    for section in table.sections:
        parts += [f"<p><em>{_escape_text(section.heading)}</em></p>"] if section.heading else []
        head = '<th scope="col"{}>{}</th>'.format
        heads = "".join(head(_format_alignment(column), _escape_text(column.header)) for column in section.columns)
        rows = zip(*map(_render_html_cells, section.columns), strict=True)
        body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
        parts.append(f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>")
    below = [" ".join(texts) for texts in (table.legend, table.method) if texts]
    parts += [f"<p><small>{_escape_text(text)}</small></p>" for text in below]
    return "<div>" + "\n".join(parts) + "</div>"


def as_rich(table: PaperTable) -> Group:
    """Return a table as a rich renderable; names are not read as markup."""
    from rich.console import Group
    from rich.text import Text

    below = (Text(make_printable(" ".join(texts)), style="dim") for texts in (table.legend, table.method) if texts)
    title = Text(make_printable(table.title), style="bold")
    warnings = (Text(make_printable(f"warning: {text}")) for text in table.warnings)
    return Group(title, *warnings, *map(_build_rich_table, table.sections), *below)


def _escape_text(text: str) -> str:
    return escape(make_printable(text))


def _render_html_cells(column: TableColumn) -> list[str]:
    cell = f"<td{_format_alignment(column)}>{{}}{{}}</td>".format
    texts = column.render(_escape_text, _escape_text, "<strong>{}</strong>")
    return [
        cell(text, mark and f"<sup>{_escape_text(mark)}</sup>")
        for text, mark in zip(texts, column.marks or [""] * len(texts), strict=True)
    ]


def _format_alignment(column: TableColumn) -> str:
    return f' style="text-align: {"left" if column.is_name else "right"}"'


def _build_rich_table(section: TableSection) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rich_table = Table(title=Text(make_printable(section.heading)) if section.heading else None, box=box.SIMPLE_HEAD)
    for column in section.columns:
        rich_table.add_column(Text(make_printable(column.header)), justify="left" if column.is_name else "right")
    for row in zip(*map(_build_rich_cells, section.columns), strict=True):
        rich_table.add_row(*row)
    return rich_table


def _build_rich_cells(column: TableColumn) -> list[Text]:
    from rich.text import Text

    rows = ((make_printable(text), "bold" if bold else "", mark) for text, bold, mark in column.iter_rows())
    return [Text.assemble((text, style), mark and f" {mark}") for text, style, mark in rows]
