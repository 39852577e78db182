"""Lines of text with tabs: one column is the text, each is a reference, or tabs are part of the text.

Nothing of this is guessed: files in which most lines have tabs are refused until the user chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.interface import spell

ALL = "all"
MOST = 0.5
"""Share of the lines with text that have tabs, from which on a file is taken for a table."""


def select_columns(
    format_: str, n_references: int, files: Sequence[tuple[Path, list[str]]], options: Options
) -> tuple[int, list[list[str | None]]]:
    """Return the texts of parallel files whose lines may have tabs, and the number of references among them.

    Parameters
    ----------
    format_ : str
        Name of the format, whose options are `column` and, if it has several references, `references`.
    n_references : int
        Number of files of references, which come first.
    files : sequence of (Path, list of str)
        Paths and lines.
    options : Options
        The option column=N takes the Nth column of files with tabs, column=all the whole lines. references=tab takes
        each column of the files of references as one reference.
    """
    column = options.own.get("column")
    if column is not None and column != ALL and not (column.isdecimal() and int(column) > 0):
        raise InputError(f"format {format_}: column is a number from 1 on, or {ALL}", found=repr(column))
    are_references = options.own.get("references") == "tab"
    tabbed = [has_tabs(lines) for _, lines in files]
    unclear = [k for k, found in enumerate(tabbed) if found and not (are_references and k < n_references)]
    if unclear and column is None:
        raise _build_error(format_, n_references, files, unclear, are_references=are_references)
    if are_references and not any("\t" in line for _, lines in files[:n_references] for line in lines):
        raise InputError(
            "has no tabs between references", file=files[0][0], remedy="leave out the option references=tab"
        )
    texts: list[list[str | None]] = []
    for k, (path, lines) in enumerate(files):
        if are_references and k < n_references:
            texts += _split_references(lines)
        elif tabbed[k] and column != ALL:
            texts.append(_take_column(path, lines, int(column or 1)))
        else:
            texts.append([*lines])
    return n_references + len(texts) - len(files), texts


def has_tabs(lines: Sequence[str]) -> bool:
    """Return whether most lines with text have tabs."""
    filled = [line for line in lines if line.strip()]
    return sum("\t" in line for line in filled) > MOST * len(filled)


def _take_column(path: Path, lines: Sequence[str], column: int) -> list[str | None]:
    texts: list[str | None] = []
    for number, line in enumerate(lines, start=1):
        cells = line.split("\t")
        if len(cells) < column and line.strip():
            raise InputError(
                file=path, line=number, found=f"{len(cells)} columns", expected=f"{column}, as the option column says"
            )
        texts.append(cells[column - 1] if len(cells) >= column else "")
    return texts


def _split_references(lines: Sequence[str]) -> list[list[str | None]]:
    """Return one list for each reference; a line may have fewer references than others."""
    rows = [line.split("\t") for line in lines]
    n = max(map(len, rows))
    return [[(row[k] if len(row) > k and (row[k].strip() or not k) else None) for row in rows] for k in range(n)]


def _build_error(
    format_: str,
    n_references: int,
    files: Sequence[tuple[Path, list[str]]],
    unclear: Sequence[int],
    *,
    are_references: bool,
) -> InputError:
    """Return the error for lines with tabs, with their columns and one way to read each."""
    path, lines = files[unclear[0]]
    first_lines = [line.split("\t") for line in lines if line.strip()][:2]
    n_columns = min(len(cells) for _, other in (files[k] for k in unclear) for cells in _split_all(other))
    shown = "; ".join(
        f"column {k + 1}: {', '.join(repr(cells[k][:40]) for cells in first_lines if len(cells) > k)}, …"
        for k in range(max(map(len, first_lines)))
    )
    prefix = f"{format_}:references=tab," if are_references else f"{format_}:"
    ways = [
        f"{spell('format', f'{prefix}column={k}')} (the text is column {k}, as `cut -f{k}` writes it)"
        for k in range(1, n_columns + 1)
    ]
    if format_ == "segments" and not are_references and unclear[0] < n_references:
        rest = ",column=1" if unclear[-1] >= n_references else ""
        way = f"{format_}:references=tab{rest}"
        ways.insert(0, f"{spell('format', way)} (each column is a reference, as files of {spell('references')} are)")
    ways.append(f"{spell('format', f'{prefix}column={ALL}')} (the whole line is the text)")
    others = "".join(f", {files[k][0]}" for k in unclear[1:])
    also = f" (and those of {others[2:]})" if others else ""
    return InputError(
        f"its lines have tabs{also}, which may separate several texts",
        file=path,
        remedy=f"choose {', or '.join(ways)}. {shown}",
    )


def _split_all(lines: Sequence[str]) -> list[list[str]]:
    return [line.split("\t") for line in lines if line.strip()]
