"""Tables and lines that fit a terminal: plain text, words whole, nothing that a terminal takes as a command.

What rich lays out is left as it is; users' words are made harmless before it gets them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sigdask.text import printable

NUMBERS = frozenset((
    "score", "A - B", "mean A - B", "p", "unadjusted p", "adjusted p", "rank", "systems", "items", "units",
    "comparisons", "trials", "time", "run", "took", "with a bound", "finished", "of trials", "changed",
    "statistic", "n",
))  # fmt: skip
"""Headers of columns that stand to the right."""

BETWEEN = 2
"""Blanks between columns, and before what continues a line."""

WORDS = re.compile(r"(?<!=) (?![=%]|-?(?:[\d.]+|inf)\])")
"""Where a line may be broken: `p = 0.05`, `99 %` and `[-0.5, 29.1]` stay whole."""

JOINTS = re.compile(r"[^|/,;]+[|/,;]*|[|/,;]+"), re.compile(r"[^\W_]+[\W_]*|[\W_]+")
"""Of a word that is wider than a line: the members of a list or path, and what punctuation divides."""


def lay_out(names: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> str:
    """Return a table as text, columns of `NUMBERS` to the right.

    Where not even single words fit side by side, each row becomes a line of names and values.

    Parameters
    ----------
    names : sequence of str
        Headers.
    rows : sequence of sequence of str
        Cells.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    least = [max(_longest_word(text) for text in column) for column in zip(names, *cells, strict=True)]
    if width is not None and sum(least) + BETWEEN * (len(least) - 1) > width:
        return "\n".join(line for row in cells for line in _filled(_parts(names, row), width, BETWEEN))
    return _table(names, cells, least, width)


def _table(names: Sequence[str], cells: Sequence[Sequence[str]], least: Sequence[int], width: int | None) -> str:
    columns = [*zip(names, *cells, strict=True)]
    widths = _widths(columns, least, width)
    right = [name in NUMBERS or name.startswith("score") for name in names]
    if width is None:
        return _whole(names, cells, widths, right)
    return _wrapped(names, cells, widths, right, width)


def _whole(names: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> str:
    """Lay out a table whose cells all fit: as the wrapped one, and much faster, for it may be long."""
    from rich.cells import cell_len

    def line(row: Sequence[str]) -> str:
        ends = [cell.rstrip() if to_right else cell for cell, to_right in zip(row, right, strict=True)]
        blanks = (" " * (n - cell_len(cell)) for cell, n in zip(ends, widths, strict=True))
        parts = (
            gap + cell if to_right else cell + gap for cell, gap, to_right in zip(ends, blanks, right, strict=True)
        )
        return (" " * BETWEEN).join(parts).rstrip()

    rule = "─" * (sum(widths) + BETWEEN * (len(widths) - 1))
    return "\n".join([line(names), rule, *map(line, cells)])


def _wrapped(
    names: Sequence[str], cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool], width: int
) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    for name, n, to_right in zip(names, widths, right, strict=True):
        table.add_column(Text(name), justify="right" if to_right else "left", width=n)
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    # with a height, too, it does not ask what kind of terminal there is: it takes dumb ones for 80 columns wide
    console = Console(width=width, height=1, color_system=None, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().strip("\n").split("\n"))


def _widths(columns: Sequence[Sequence[str]], least: Sequence[int], width: int | None) -> list[int]:
    """Return how wide each column is: whole where all fit, else the widest narrowed, to their words at least."""
    from rich.cells import cell_len

    found = [max(map(cell_len, column)) for column in columns]
    for _ in range(0 if width is None else sum(found) + BETWEEN * (len(found) - 1) - width):
        found[max((n, k) for k, n in enumerate(found) if n > least[k])[1]] -= 1
    return found


def _longest_word(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split()), default=0)


def _parts(names: Sequence[str], row: Sequence[str]) -> list[str]:
    """Return what a row says; each but the last ends with a comma."""
    said = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=True) if cell]
    return [f"{part}," for part in said[:-1]] + said[-1:]


def fitted(text: str, width: int | None, *, hang: int = BETWEEN) -> str:
    """Break lines that are wider than a terminal between words; what continues one is indented further.

    Parameters
    ----------
    text : str
        Any lines; those that fit stay as they are.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    hang : int
        Blanks before what continues a line, beyond its own.

    Examples
    --------
    >>> print(fitted("    note: about 4,000 trials would decide", 26))
        note: about 4,000
          trials would decide
    """
    if width is None:
        return text
    return "\n".join(broken for line in text.split("\n") for broken in _broken(line, width, hang))


def _broken(line: str, width: int, hang: int) -> Iterable[str]:
    from rich.cells import cell_len

    if cell_len(line) <= width:
        return [line]
    inner = line.lstrip(" ")
    indent = min(len(line) - len(inner), width // 2)
    return (
        " " * indent + part for part in _filled(WORDS.split(inner), width - indent, min(hang, (width - indent) // 2))
    )


def _filled(parts: Sequence[str], width: int, hang: int) -> Iterator[str]:
    """Put parts on lines, as many as fit; one that is wider than a line is broken between words, then within them."""
    from rich.cells import cell_len

    line = ""
    for part, is_whole in _no_wider(parts, width - hang):
        if line.strip() and (not is_whole or cell_len(line) + 1 + cell_len(part) > width):
            yield line.rstrip()
            line = " " * hang + part
        else:
            line = f"{line} {part}" if line else part
    yield line.rstrip()


def _no_wider(parts: Sequence[str], width: int) -> Iterator[tuple[str, bool]]:
    """Yield what fits on a line, and whether it begins with a word's beginning."""
    from rich.cells import cell_len

    for part in parts:
        if cell_len(part) <= width:
            yield part, True
        elif " " in part:
            yield from _no_wider(part.split(" "), width)
        else:
            yield from ((piece, k == 0) for k, piece in enumerate(_pieces(part, width)))


def _pieces(word: str, width: int, joints: Sequence[re.Pattern[str]] = JOINTS) -> Iterator[str]:
    """Break a word behind its separators, else behind its punctuation, anywhere only where there is none."""
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
        *whole, piece = [joint] if cell_len(joint) <= width else _pieces(joint, width, joints[1:])
        yield from whole
    yield piece
