"""Tables as GitHub Markdown; all names are escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigdask.report.methods.sources import format_citation
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.text import make_printable

ENTITIES = {"\\": "&#92;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""Replacements for backslashes, so that none escapes the next character."""

ESCAPES = str.maketrans(ENTITIES | {c: f"\\{c}" for c in "`*_[]~#$|"})
"""Special characters of Markdown."""


def iter_document_parts(tables: Iterable[PaperTable]) -> Iterator[str]:
    """Yield the text of tables, one after the other, with their titles, legends and notes."""
    separator = ""
    for table in tables:
        yield separator
        yield from _iter_paragraph([f"**{escape(table.title)}**", *map(escape, table.legend)])
        for section in table.sections:
            if section.heading:
                yield from _iter_paragraph([f"*{escape(section.heading)}*"])
            yield from (f"{line}\n" for line in _format_lines(section))
            yield "\n"
        yield from _iter_paragraph(map(escape, table.method))
        if table.sources:
            yield from _iter_paragraph([escape(f"References: {'; '.join(map(format_citation, table.sources))}.")])
        for note in table.warnings:
            yield from _iter_paragraph([f"Note: {escape(note)}"])
        separator = "\n"


def escape(text: str) -> str:
    r"""Return text with Markdown's special characters escaped, also for table cells.

    Examples
    --------
    >>> print(escape("a|b_<i>"))
    a\|b\_&lt;i&gt;
    """
    return make_printable(text).translate(ESCAPES)


def _escape_number(text: str) -> str:
    return text.replace("<", ENTITIES["<"])


def _iter_paragraph(sentences: Iterable[str]) -> Iterator[str]:
    text = " ".join(sentences)
    if text:
        yield f"{text}\n\n"


def _format_lines(section: TableSection) -> Iterator[str]:
    """Yield the lines of a table, padded so that the source is readable as well."""
    columns = [[escape(column.header), *_format_cells(column)] for column in section.columns]
    widths = [max(3, *map(len, cells)) for cells in columns]
    names = [column.is_name for column in section.columns]
    rules = [f":{'-' * (width - 1)}" if is_left else f"{'-' * (width - 1)}:"
             for width, is_left in zip(widths, names, strict=True)]  # fmt: skip
    filled = [
        [cell.ljust(width) if is_left else cell.rjust(width) for cell in cells]
        for cells, width, is_left in zip(columns, widths, names, strict=True)
    ]
    header, *rows = zip(*filled, strict=True)
    yield from (f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def _format_cells(column: TableColumn) -> list[str]:
    """Return the cells of a column with marks behind the texts; each distinct text is formatted once."""
    texts = column.render(escape, _escape_number, "**{}**")
    if column.marks is None:
        return texts
    marks = {mark: mark and f" {escape(mark)}" for mark in dict.fromkeys(column.marks)}
    widest = max(map(len, marks.values()), default=0)
    return [text + marks[mark].ljust(widest) for text, mark in zip(texts, column.marks, strict=True)]
