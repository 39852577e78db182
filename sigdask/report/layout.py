"""Tables and lines of plain text that fit a terminal. Control characters from users are made harmless.

This happens before rich lays out the text, whose output is not changed any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sigdask.text import make_printable

NUMERIC_HEADERS = frozenset((
    "score", "A - B", "mean A - B", "p", "unadjusted p", "adjusted p", "equal-score p", "rank", "systems", "items",
    "units", "comparisons", "trials", "time", "run", "took", "with p", "finished", "trials counted", "changed",
    "statistic", "n",
))  # fmt: skip
"""Headers of right-aligned columns."""

COLUMN_GAP = 2
"""Blanks between columns, and before continued lines."""

INTERVAL_END = r"-?(?:[\d.,e-]+|inf)\]"
"""Pattern of the upper end of an interval, which stays on the line of the lower one."""

WORD_BREAK = re.compile(rf"(?<!=) (?![=%]|{INTERVAL_END})")
"""Pattern of places where a line may be broken: `p = 0.05`, `99 %` and `[-0.5, 29.1]` stay whole."""

CELL_BREAK = re.compile(rf"\s+(?!{INTERVAL_END})")
"""Pattern of places where a cell may be broken."""

UNBROKEN = "\ue000"
"""What stands for the blank of an interval while rich breaks cells; it would break them at every kind of blank."""

PIECE_PATTERNS = re.compile(r"[^|/,;]+[|/,;]*|[|/,;]+"), re.compile(r"[^\W_]+[\W_]*|[\W_]+")
"""Patterns of the pieces of words wider than a line: members of a list or path, and parts between punctuation."""


def format_table(names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return a table as text; columns of `NUMERIC_HEADERS` are right-aligned.

    If not even single words fit side by side, each row becomes a line of names and values.

    Parameters
    ----------
    names : sequence of str
        Headers.
    rows : sequence of sequence of str
        Cells.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    cells = [[make_printable(cell) for cell in row] for row in rows]
    min_widths = _measure_columns(zip(names, *cells, strict=True))
    if width is not None and not _fits(min_widths, width):
        return "\n".join(line for row in cells for line in _fill_lines(_list_fields(names, row), width, COLUMN_GAP))
    return _format_columns(names, cells, min_widths, width)


def select_columns(
    columns: Mapping[str, Sequence[str]], others: Sequence[Sequence[str]], spare: Sequence[str], width: int | None
) -> list[str]:
    """Return the names of the columns that fit side by side, without as many of the spare ones as necessary.

    If they still do not fit, all are returned. `others` are further columns without a name.
    """
    needed = dict(zip(columns, _measure_columns((name, *cells) for name, cells in columns.items()), strict=True))
    fixed = _measure_columns(others)
    for n in range(len(spare) + 1):
        names = [name for name in columns if name not in spare[:n]]
        if _fits([*(needed[name] for name in names), *fixed], width):
            return names
    return [*columns]


def _measure_columns(columns: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of the longest word of each column."""
    return [max(_measure_longest_word(make_printable(text)) for text in column) for column in columns]


def _fits(min_widths: Sequence[int], width: int | None) -> bool:
    return width is None or sum(min_widths) + COLUMN_GAP * (len(min_widths) - 1) <= width


def _format_columns(
    names: Sequence[str], cells: Sequence[Sequence[str]], min_widths: Sequence[int], width: int | None
) -> str:
    columns = [*zip(names, *cells, strict=True)]
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in columns]
    for _ in range(0 if width is None else sum(widths) + COLUMN_GAP * (len(widths) - 1) - width):
        widths[max((n, k) for k, n in enumerate(widths) if n > min_widths[k])[1]] -= 1
    is_right = [name in NUMERIC_HEADERS or name.startswith("score") for name in names]
    if width is None:
        from rich.cells import cell_len

        def line(row: Sequence[str]) -> str:
            ends = [cell.rstrip() if to_right else cell for cell, to_right in zip(row, is_right, strict=True)]
            blanks = (" " * (n - cell_len(cell)) for cell, n in zip(ends, widths, strict=True))
            parts = (
                gap + cell if to_right else cell + gap
                for cell, gap, to_right in zip(ends, blanks, is_right, strict=True)
            )
            return (" " * COLUMN_GAP).join(parts).rstrip()

        rule = "─" * (sum(widths) + COLUMN_GAP * (len(widths) - 1))
        return "\n".join([line(names), rule, *map(line, cells)])
    return _format_wrapped(names, cells, widths, is_right, width)


def _format_wrapped(
    names: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], is_right: Sequence[bool], width: int
) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for name, n, to_right in zip(names, widths, is_right, strict=True):
        table.add_column(Text(name), justify="right" if to_right else "left", width=n)
    for row in cells:
        table.add_row(*(Text(re.sub(rf" (?={INTERVAL_END})", UNBROKEN, cell)) for cell in row))
    # given a height too, it does not detect the kind of terminal: dumb ones would get 80 columns
    console = Console(width=width, height=1, color_system=None, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().replace(UNBROKEN, " ").strip("\n").split("\n"))


def _measure_longest_word(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, CELL_BREAK.split(text.strip())))


def _list_fields(names: Sequence[str], row: Sequence[str]) -> list[str]:
    """Return a row as `name: cell` texts; each but the last ends with a comma."""
    fields = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
    return [f"{field}," for field in fields[:-1]] + fields[-1:]


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
    return "\n".join(broken for line in text.split("\n") for broken in _wrap_line(line, width, hang))


def _wrap_line(line: str, width: int, hang: int) -> Iterable[str]:
    from rich.cells import cell_len

    if cell_len(line) <= width:
        return [line]
    inner = line.lstrip(" ")
    indent = min(len(line) - len(inner), width // 2)
    return (
        " " * indent + part
        for part in _fill_lines(WORD_BREAK.split(inner), width - indent, min(hang, (width - indent) // 2))
    )


def _fill_lines(parts: Sequence[str], width: int, hang: int) -> Iterator[str]:
    """Yield lines with as many parts as fit. A part that is wider than a line is broken between words, then within."""
    from rich.cells import cell_len

    line = ""
    for part, is_whole in _split_wide_parts(parts, width - hang):
        if line.strip() and (not is_whole or cell_len(line) + 1 + cell_len(part) > width):
            yield line.rstrip()
            line = " " * hang + part
        else:
            line = f"{line} {part}" if line else part
    yield line.rstrip()


def _split_wide_parts(parts: Sequence[str], width: int) -> Iterator[tuple[str, bool]]:
    """Yield pieces of parts that each fit on a line, and whether a piece may share its line with the one before."""
    from rich.cells import cell_len

    for part in parts:
        if cell_len(part) <= width:
            yield part, True
        elif " " in part:
            yield from _split_wide_parts(part.split(" "), width)
        else:
            yield from ((piece, k == 0) for k, piece in enumerate(_split_word(part, width)))


def _split_word(word: str, width: int, joints: Sequence[re.Pattern[str]] = PIECE_PATTERNS) -> Iterator[str]:
    """Yield pieces of a word that fit a width, broken after separators, punctuation or anywhere, in this order."""
    from rich.cells import cell_len, chop_cells

    if not joints:
        yield from chop_cells(word, width)
        return
    piece = ""
    for joint in joints[0].findall(word):
        if cell_len(piece) + cell_len(joint) <= width:
            piece += joint
            continue
        if piece:
            yield piece
        *complete, piece = [joint] if cell_len(joint) <= width else _split_word(joint, width, joints[1:])
        yield from complete
    yield piece
