"""Documents as GitHub Markdown; all names are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigdask.report.document import Column, DocumentTable, Section
from sigdask.text import make_printable

ENTITIES = {"\\": "&#92;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""Replacements for backslashes, so that none escapes the next character."""

ESCAPES = str.maketrans(ENTITIES | {c: f"\\{c}" for c in "`*_[]~#$|"})
"""Special characters of Markdown."""


def iter_parts(tables: Iterable[DocumentTable]) -> Iterator[str]:
    """Yield the text of tables, one after the other, with their titles, legends and notes."""
    for k, table in enumerate(tables):
        yield "\n" * (k > 0)
        title = table.title if table.title.endswith(".") else f"{table.title}."
        yield from _iter_paragraph([f"**{escape(title)}**", *map(escape, table.list_sentences())])
        for section in table.sections:
            yield from _iter_paragraph([f"*{escape(section.heading)}*"] if section.heading else [])
            yield from (f"{line}\n" for line in _format_lines(section))
            yield "\n"
        yield from _iter_paragraph(map(escape, table.note))
        for text in table.warnings:
            yield from _iter_paragraph([f"Note: {escape(text)}"])


def escape(text: str) -> str:
    r"""Return text with Markdown's special characters escaped, also for table cells.

    Examples
    --------
    >>> print(escape("a|b_<i>"))
    a\|b\_&lt;i&gt;
    """
    return make_printable(text).translate(ESCAPES)


def _iter_paragraph(sentences: Iterable[str]) -> Iterator[str]:
    if text := " ".join(sentences):
        yield f"{text}\n\n"


def _format_lines(section: Section) -> Iterator[str]:
    """Yield the lines of a table."""
    rules = [":--" if column.is_name else "--:" for column in section.columns]
    rows = zip(*map(_format_cells, section.columns), strict=True)
    header = [escape(column.header) for column in section.columns]
    yield from (f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def _format_cells(column: Column) -> list[str]:
    """Return the cells of a column with marks behind the texts."""
    texts = column.render(escape, lambda text: text.replace("<", ENTITIES["<"]), "**{}**")
    if column.marks is None:
        return texts
    return [f"{text} {escape(mark)}".rstrip() for text, mark in zip(texts, column.marks, strict=True)]
