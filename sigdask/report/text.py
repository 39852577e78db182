"""Documents as plain text for terminal or pipe. Names are printed as they are, never read as markup.

Control characters from users are made harmless first. Widths are those of the characters in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from sigdask.report.document import Block, Column, DocumentTable, Section
from sigdask.text import make_printable

COLUMN_GAP = 2
"""Blanks between columns, and before continued lines."""

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
    lines, legend = [table.title] if table.title else [], [*table.legend]
    lines = [*map(make_printable, lines)]
    for section in table.sections:
        shown = _select_columns(section, width)
        left_out = [column.header for column in section.columns if column not in shown]
        legend += [f"in a wider terminal: {', '.join(left_out)}"] if left_out else []
        marks = [Column("", c.marks, is_name=True) for c in shown if c.marks is not None and any(c.marks)]
        lines += [make_printable(section.heading)] if section.heading else []
        lines.append(_format_columns([*shown, *marks], width))
    return "\n".join([*lines, *filter(None, [make_printable("; ".join(dict.fromkeys(legend)))])])


def _select_columns(section: Section, width: int | None) -> list[Column]:
    """Return the columns that fit side by side, without as many of the spare ones as necessary; all if none do."""
    columns = [*section.columns]
    for spare in [None, *sorted((c for c in columns if c.spare), key=lambda c: -c.spare)]:
        columns = [column for column in columns if column is not spare]
        marks = [Column("", c.marks) for c in columns if c.marks is not None and any(c.marks)]
        if _fits([*map(_measure_longest_word, [*columns, *marks])], width):
            return columns
    return [*section.columns]


def format_table(names: Sequence[str], rows: Iterable[Sequence[str]], width: int | None) -> str:
    """Return a table as text, given its headers and cells; columns of numbers are right-aligned."""
    cells = [*zip(*rows, strict=True)] or [()] * len(names)
    columns = [
        Column(name, texts, is_name=not all(map(NUMBER.fullmatch, texts)))
        for name, texts in zip(names, cells, strict=True)
    ]
    return _format_columns(columns, width)


def _format_columns(columns: Sequence[Column], width: int | None) -> str:
    """Return columns side by side; if not even single words fit, each row becomes a line of names and values."""
    from rich.cells import cell_len

    cells = [[make_printable(text) for text in (column.header, *column.texts)] for column in columns]
    min_widths = [*map(_measure_longest_word, columns)]
    heads, *rows = zip(*cells, strict=True)
    if not _fits(min_widths, width):
        named = ([f"{name}: {cell}" if name else cell for name, cell in zip(heads, row, strict=True) if cell]
                 for row in rows)  # fmt: skip
        return "\n".join(line for fields in named for line in _fill(", ".join(fields), width or 0, COLUMN_GAP))
    widths = [max(map(cell_len, column)) for column in cells]
    for _ in range(0 if width is None else sum(widths) + COLUMN_GAP * (len(widths) - 1) - width):
        widths[max((n, k) for k, n in enumerate(widths) if n > min_widths[k])[1]] -= 1
    is_left = [column.is_name for column in columns]
    head, *body = ("\n".join(_format_row(row, widths, is_left)) for row in (heads, *rows))
    return "\n".join([head, "─" * (sum(widths) + COLUMN_GAP * (len(widths) - 1)), *body])


def _format_row(cells: Sequence[str], widths: Sequence[int], is_left: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a row, whose cells are broken between words where they are wider than their columns."""
    from rich.cells import cell_len

    columns = ([*_fill(cell, n, 0)] for cell, n in zip(cells, widths, strict=True))
    for parts in zip_longest(*columns, fillvalue=""):
        blanks = (" " * (n - cell_len(part)) for part, n in zip(parts, widths, strict=True))
        padded = (p + gap if left else gap + p for p, gap, left in zip(parts, blanks, is_left, strict=True))
        yield (" " * COLUMN_GAP).join(padded).rstrip()


def _measure_longest_word(column: Column) -> int:
    from rich.cells import cell_len

    words = (word for text in (column.header, *column.texts) for word in WORD_BREAK.split(make_printable(text)))
    return max(map(cell_len, {*words}))


def _fits(min_widths: Sequence[int], width: int | None) -> bool:
    return width is None or sum(min_widths) + COLUMN_GAP * (len(min_widths) - 1) <= width


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
    lines = []
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        indent = min(len(line) - len(inner), width // 2)
        lines += [" " * indent + part for part in _fill(inner, width - indent, min(hang, (width - indent) // 2))]
    return "\n".join(lines)


def _fill(text: str, width: int, hang: int) -> Iterator[str]:
    """Yield lines with as many words as fit. A word that is wider than a line is broken at blanks, then anywhere."""
    from rich.cells import cell_len, chop_cells

    if cell_len(text) <= width:
        yield text
        return
    line = ""
    for word in WORD_BREAK.split(text):
        parts = [word] if cell_len(word) <= width - hang else word.split()
        for piece in (p for part in parts for p in (chop_cells(part, max(width - hang, 1)) or [""])):
            joined = f"{line} {piece}" if line.strip() else line + piece
            if line.strip() and cell_len(joined) > width:
                yield line
                joined = " " * hang + piece
            line = joined
    yield line
