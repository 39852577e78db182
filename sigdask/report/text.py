"""Documents as plain text for terminal or pipe. Names are printed as they are, never read as markup.

Control characters from users are made harmless first. Widths are those of the characters in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, Literal

from sigdask.report.document import Block, Column, DocumentTable
from sigdask.text import make_printable

if TYPE_CHECKING:
    from rich.console import Console

COLUMN_GAP = 2
"""Blanks between columns, and before continued lines."""

MAX_COLUMNS = 100_000
"""Columns of a pipe."""

KEPT_BLANK = "\ue000"
"""A character for private use in place of a blank where a line may not be broken."""

LINE_BREAK, BLANK = re.compile("\n"), re.compile(r"\s+")

WORD_BREAK = re.compile(r"(?<!=)\s+(?![=%]|-?(?:[\d.,e-]+|inf)\])")
"""Pattern of places where a line may be broken: `p = 0.05`, `99 %` and `[-0.5, 29.1]` stay whole."""

NUMBER = re.compile(r"(?:≤ |<)?[-+]?\d[\d,.]*(?:e[-+]?\d+)?(?: %)?|")
"""Pattern of cells of right-aligned columns."""


def render_blocks(blocks: Iterable[Block], width: int | None = None) -> str:
    """Return a document as text, with a blank line between its blocks.

    Parameters
    ----------
    blocks : iterable of str or DocumentTable
        Paragraphs of lines, and tables.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    texts = (make_printable(b, keep="\n") if isinstance(b, str) else render_table(b, width) for b in blocks)
    return "\n\n".join(text.strip("\n") for text in texts if text)


def render_table(table: DocumentTable, width: int | None = None) -> str:
    """Return a table as text: its title, rows, and the meaning of its marks."""
    lines = [make_printable(table.title)] if table.title else []
    for section in table.sections:
        marked = ([c, *[Column("", c.marks or "", is_name=True)] * any(c.marks or "")] for c in section.columns)
        lines += [make_printable(section.heading)] if section.heading else []
        lines.append(_format_columns([*chain.from_iterable(marked)], width))
    return "\n".join([*lines, *filter(None, [make_printable("; ".join(table.legend))])])


def format_table(names: Sequence[str], rows: Iterable[Sequence[str]], width: int | None) -> str:
    """Return a table as text, given its headers and cells; columns of numbers are right-aligned."""
    cells = [*zip(*rows, strict=True)] or [()] * len(names)
    columns = [
        Column(name, texts, is_name=not all(map(NUMBER.fullmatch, texts)))
        for name, texts in zip(names, cells, strict=True)
    ]
    return _format_columns(columns, width)


def _format_columns(columns: Sequence[Column], width: int | None) -> str:
    """Return columns side by side, of which the widest are narrowed until all fit, if possible not below a word.

    Headers are broken before intervals, these before names, and names before numbers, which would be misread.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    whole, cells = [[c.header, *c.texts] for c in columns], [c.texts for c in columns]
    levels = (LINE_BREAK, whole), (WORD_BREAK, whole), (WORD_BREAK, cells), (BLANK, cells)
    widths, *least = ([_measure(pattern, texts) for texts in columns_texts] for pattern, columns_texts in levels)
    gaps = COLUMN_GAP * (len(widths) - 1)
    gaps = gaps if width is None or sum(least[-1]) + gaps <= width else len(widths) - 1
    for _ in range(0 if width is None else sum(widths) + gaps - width):
        order = ((n > 1, *(n > level[k] for level in least), columns[k].is_name, n, k) for k, n in enumerate(widths))
        widths[max(order)[-1]] -= 1
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, int(gaps >= len(widths)), 0, 0))
    for column, n in zip(columns, widths, strict=True):
        side: Literal["left", "right"] = "left" if column.is_name else "right"
        drawn.add_column(Text(make_printable(column.header)), justify=side, width=max(n, 1), overflow="fold")
    for row in zip(*(column.texts for column in columns), strict=True):
        drawn.add_row(*(Text(make_printable(text)) for text in row))
    console = _build_console()
    with console.capture() as captured:
        console.print(drawn, crop=False)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


@cache
def _build_console() -> Console:
    from rich.console import Console

    return Console(file=StringIO(), width=MAX_COLUMNS, color_system=None, legacy_windows=False)


def _measure(pattern: re.Pattern[str], texts: Iterable[str]) -> int:
    """Return the columns of the widest part of texts between the matches of a pattern."""
    from rich.cells import cell_len

    return max(map(cell_len, {part for t in texts for part in pattern.split(make_printable(t))}), default=0)


def wrap_lines(text: str, width: int | None, *, hang: int = COLUMN_GAP) -> str:
    """Break lines wider than the terminal between words; continuation lines are indented further.

    Parameters
    ----------
    text : str
        Lines. Those that fit are not changed.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    hang : int
        Additional blanks before continuation lines.

    Examples
    --------
    >>> print(wrap_lines("    note: about 4,000 trials would decide", 26))
        note: about 4,000
          trials would decide
    """
    if width is None:
        return text
    from rich.cells import cell_len
    from rich.text import Text

    lines = []
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        indent = min(len(line) - len(inner), width // 2)
        margin = indent + min(hang, (width - indent) // 2)
        parts = [line]
        if cell_len(line) > width:
            whole = " ".join(part.replace(" ", KEPT_BLANK) for part in WORD_BREAK.split(inner))
            parts = [part.plain.rstrip() for part in Text(whole).wrap(_build_console(), width - margin)]
            parts = [" " * (margin if k else indent) + part for k, part in enumerate(parts)]
        lines += parts
    return "\n".join(lines).replace(KEPT_BLANK, " ")
