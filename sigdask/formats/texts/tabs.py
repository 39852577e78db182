"""Lines of text with tabs: one column is the text, each is a reference, or tabs are part of the text.

Nothing of this is guessed: files in which most lines have tabs are refused until the user chooses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.options import Options
from sigdask.formats.texts.parallel import Texts
from sigdask.interface import spell

ALL = "all"
Lines = tuple[Path, list[str]]


def select_columns(
    format_: str, references: Sequence[Lines], systems: Sequence[Lines], options: Options
) -> tuple[list[Texts], list[Texts]]:
    """Return the texts of references and of systems, whose lines may have tabs.

    Parameters
    ----------
    format_ : str
        Name of the format, whose options are `column` and, if it has several references, `references`.
    references, systems : sequence of (Path, list of str)
        Paths and lines.
    options : Options
        The option column=N takes the Nth column of files with tabs, column=all the whole lines. references=tab takes
        each column of the files of references as one reference.
    """
    column = options.own.get("column")
    are_split = options.own.get("references") == "tab"
    if column is not None and not re.fullmatch(rf"[1-9]\d*|{ALL}", column):
        raise InputError(f"format {format_}: column is a number from 1 on, or {ALL}", found=repr(column))
    unclear = [file for file in (*([] if are_split else references), *systems) if has_tabs(file[1])]
    if unclear and column is None:
        raise _build_error(format_, unclear, references, are_split=are_split)
    if are_split and not any("\t" in line for _, lines in references for line in lines):
        raise InputError("has no tabs between references", file=references[0][0], remedy="leave out references=tab")
    if are_split:
        gold = [texts for _, lines in references for texts in _split_references(lines)]
    else:
        gold = [_take_column(path, lines, column) for path, lines in references]
    return gold, [_take_column(path, lines, column) for path, lines in systems]


def has_tabs(lines: Sequence[str]) -> bool:
    """Return whether most lines with text have tabs."""
    filled = [line for line in lines if line.strip()]
    return 2 * sum("\t" in line for line in filled) > len(filled)


def _take_column(path: Path, lines: Sequence[str], column: str | None) -> Texts:
    """Return a column of a file with tabs, or the whole lines."""
    if column in {None, ALL} or not has_tabs(lines):
        return lines
    k = int(str(column)) - 1
    rows = [line.split("\t") for line in lines]
    for number, row in enumerate(rows, start=1):
        if len(row) <= k and any(row):
            raise InputError(file=path, line=number, found=f"{len(row)} columns", expected=f"{k + 1}, as column= says")
    return [row[k] if len(row) > k else "" for row in rows]


def _split_references(lines: Sequence[str]) -> list[Texts]:
    """Return one list for each reference; a line may have fewer references than others."""
    rows = [line.split("\t") for line in lines]
    n = max(map(len, rows))
    return [[(row[k] if len(row) > k and (row[k].strip() or not k) else None) for row in rows] for k in range(n)]


def _build_error(format_: str, unclear: Sequence[Lines], references: Sequence[Lines], *, are_split: bool) -> InputError:
    """Return the error for lines with tabs, with the ways to read them."""
    prefix = f"{format_}:references=tab," if are_split else f"{format_}:"
    ways = {f"{prefix}column=1": "the text is column 1; other columns have other numbers"}
    ways[f"{prefix}column={ALL}"] = "the whole line is the text"
    n_references = sum(file in references for file in unclear)
    if format_ == "segments" and n_references:
        rest = ",column=1" if n_references < len(unclear) else ""
        ways[f"{format_}:references=tab{rest}"] = f"each column is a reference, as files of {spell('references')} are"
    path, lines = unclear[0]
    return InputError(
        f"its lines have tabs, which may separate several texts, such as {next(filter(str.strip, lines))[:80]!r}",
        file=path,
        remedy="choose " + ", or ".join(f"{spell('format', way)} ({meaning})" for way, meaning in ways.items()),
    )
