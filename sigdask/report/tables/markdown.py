"""Tables as Markdown with GitHub's tables; every name is text, whatever it holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigdask.report.methods.sources import named
from sigdask.report.tables.model import PaperTable, TableColumn, TableSection
from sigdask.text import printable

ENTITIES = {"\\": "&#92;", "&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""No backslash of a name stays, so that none escapes what follows it."""

ESCAPED = str.maketrans(ENTITIES | {c: f"\\{c}" for c in "`*_[]~#$|"})
"""What means something to Markdown."""


def document_parts(tables: Iterable[PaperTable]) -> Iterator[str]:
    """Yield the text of tables, one after the other, with what is said around them."""
    between = ""
    for table in tables:
        yield between
        yield from _paragraph([f"**{escaped(table.title)}**", *map(escaped, table.legend)])
        for section in table.sections:
            if section.heading:
                yield from _paragraph([f"*{escaped(section.heading)}*"])
            yield from (f"{line}\n" for line in _lines(section))
            yield "\n"
        yield from _paragraph(map(escaped, table.method))
        if table.sources:
            yield from _paragraph([escaped(f"References: {'; '.join(map(named, table.sources))}.")])
        for note in table.warnings:
            yield from _paragraph([f"Note: {escaped(note)}"])
        between = "\n"


def escaped(text: str) -> str:
    r"""Return text that Markdown shows as it is, in a cell as well.

    Examples
    --------
    >>> print(escaped("a|b_<i>"))
    a\|b\_&lt;i&gt;
    """
    return printable(text).translate(ESCAPED)


def _number(text: str) -> str:
    return text.replace("<", ENTITIES["<"])


def _paragraph(sentences: Iterable[str]) -> Iterator[str]:
    text = " ".join(sentences)
    if text:
        yield f"{text}\n\n"


def _lines(section: TableSection) -> Iterator[str]:
    """Yield the lines of a table, its columns filled so that people can read them as well."""
    columns = [[escaped(column.header), *_cells(column)] for column in section.columns]
    widths = [max(3, *map(len, cells)) for cells in columns]
    names = [column.is_name for column in section.columns]
    rules = [f":{'-' * (width - 1)}" if left else f"{'-' * (width - 1)}:"
             for width, left in zip(widths, names, strict=True)]  # fmt: skip
    filled = [
        [cell.ljust(width) if left else cell.rjust(width) for cell in cells]
        for cells, width, left in zip(columns, widths, names, strict=True)
    ]
    header, *rows = zip(*filled, strict=True)
    yield from (f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def _cells(column: TableColumn) -> list[str]:
    """Return the cells of a column, each distinct text made once; marks stand behind their texts."""
    of = escaped if column.is_name else _number
    made = {text: of(text) for text in dict.fromkeys(column.texts)}
    texts = [made[text] for text in column.texts]
    if column.bold is not None:
        texts = [f"**{text}**" if bold else text for text, bold in zip(texts, column.bold.tolist(), strict=True)]
    if column.marks is None:
        return texts
    marks = {mark: mark and f" {escaped(mark)}" for mark in dict.fromkeys(column.marks)}
    widest = max(map(len, marks.values()), default=0)
    return [text + marks[mark].ljust(widest) for text, mark in zip(texts, column.marks, strict=True)]
