"""Tables where they are looked at, in a notebook and by rich: the answer first, some rows, what was checked."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from sigdask.report.summary.verdict import of as verdict_of
from sigdask.report.tables import markdown
from sigdask.report.tables.comparisons import natural, tables
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.text import printable

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from sigdask.results.comparisons import ComparisonResults

SHOWN = 10
"""Rows of a table."""


def answer(results: ComparisonResults) -> PaperTable:
    """Return a short table under the verdict's headline, with what was checked below."""
    verdict = verdict_of(results)
    title = " ".join([*verdict.scope, verdict.headline])
    if not len(results):
        return PaperTable(title, ())
    layout = natural(results.table)
    some = results
    if layout == "pairs" and len(results) > SHOWN:
        some = replace(results, table=results.table.take(slice(SHOWN)))
    table = short(tables(some, layout)[0])
    more = [f"{len(results) - len(some):,} more comparisons are not shown."] if some is not results else []
    return replace(table, title=title, method=(*table.method, *more, f"Checks: {verdict.checks}."))


def short(table: PaperTable) -> PaperTable:
    """Return the first rows of a table, saying how many there are more; without what a paper needs beside."""
    kept, room = [], SHOWN
    for section in table.sections:
        if room:
            kept.append(
                TableSection(section.heading, tuple(c.chosen(range(len(section))[:room]) for c in section.columns))
            )
            room -= len(kept[-1])
    n_left = sum(map(len, table.sections)) - sum(map(len, kept))
    more = (f"{n_left:,} more rows are not shown.",) if n_left else ()
    return replace(table, sections=tuple(kept), method=more, sources=(), warnings=())


def as_markdown(table: PaperTable) -> str:
    """Return what a notebook shows where it takes Markdown alone."""
    return "".join(markdown.document_parts([table]))


def as_html(table: PaperTable) -> str:
    """Return what a notebook shows; every name is text."""
    parts = [f"<p><strong>{_text(table.title)}</strong></p>"]
    for section in table.sections:
        parts += [f"<p><em>{_text(section.heading)}</em></p>"] if section.heading else []
        parts.append(_html_table(section))
    parts += [f"<p><small>{_text(' '.join(said))}</small></p>" for said in (table.legend, table.method) if said]
    return "<div>" + "\n".join(parts) + "</div>"


def as_rich(table: PaperTable) -> Group:
    """Return what rich prints; no name is read as markup."""
    from rich.console import Group
    from rich.text import Text

    below = (Text(printable(" ".join(said)), style="dim") for said in (table.legend, table.method) if said)
    return Group(Text(printable(table.title), style="bold"), *map(_rich_table, table.sections), *below)


def _text(text: str) -> str:
    return escape(printable(text))


def _html_table(section: TableSection) -> str:
    heads = "".join(f'<th scope="col"{_side(column)}>{_text(column.header)}</th>' for column in section.columns)
    rows = zip(*map(_html_cells, section.columns), strict=True)
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _html_cells(column: TableColumn) -> list[str]:
    forms = (f"<td{_side(column)}>{{}}{{}}</td>", f"<td{_side(column)}><strong>{{}}</strong>{{}}</td>")
    raised = {mark: mark and f"<sup>{_text(mark)}</sup>" for mark in column.marks or [""]}
    return [forms[bold].format(_text(text), raised[mark]) for text, bold, mark in column.rows()]


def _side(column: TableColumn) -> str:
    return f' style="text-align: {"left" if column.is_name else "right"}"'


def _rich_table(section: TableSection) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(printable(section.heading)) if section.heading else None, box=box.SIMPLE_HEAD)
    for column in section.columns:
        made.add_column(Text(printable(column.header)), justify="left" if column.is_name else "right")
    for row in zip(*map(_rich_cells, section.columns), strict=True):
        made.add_row(*row)
    return made


def _rich_cells(column: TableColumn) -> list[Text]:
    from rich.text import Text

    style = {False: "", True: "bold"}
    return [Text.assemble((printable(text), style[bold]), mark and f" {mark}") for text, bold, mark in column.rows()]
