"""Columns of truth values (True/False, yes/no, TRUE) to scores of 1 and 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sigdask.counts.factors import Factor
from sigdask.counts.texts import Texts
from sigdask.formats.reading.numbers import MISSING, is_number
from sigdask.formats.reading.tables import FileTable
from sigdask.text import some

PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("correct", "incorrect"), ("right", "wrong"),
         ("pass", "fail"), ("passed", "failed"))  # fmt: skip
"""Words for 1 and for 0, compared without case; a column keeps to one pair."""

WORDS = frozenset(word for pair in PAIRS for word in pair)
HEAD = 1000
"""Cells by which most other columns are known."""

Written = Mapping[str, str]
"""Word to the number that it is read as."""


def truths(cells: Texts) -> Written | None:
    """Say how the words of a column of truth values are read; None of other columns.

    Beside true and false numbers may stand (a mean below, a score in part).

    Examples
    --------
    >>> truths(Texts.of(["TRUE", "FALSE", "", "0.5"])), truths(Texts.of(["no", "yes", "maybe"]))
    ({'FALSE': '0', 'TRUE': '1'}, None)
    """
    if not any(cell.lower() in WORDS for cell in cells[:HEAD]):
        return None
    levels = Factor.of(cells).levels.tolist()
    words = {level.lower() for level in levels if level not in MISSING}
    for pair in PAIRS:
        others = words.difference(pair)
        if others < words and (not others or (pair[0] == "true" and all(map(is_number, others)))):
            return {level: str(int(level.lower() == pair[0])) for level in levels if level.lower() in pair}
    return None


def as_numbers(table: FileTable, found: Mapping[str, Written]) -> FileTable:
    """Return a table with 1 and 0 for the words of some columns, and a note."""
    if not found:
        return table
    columns = {name: Texts.of(Factor.of(table.columns[name]).renamed(dict(own))) for name, own in found.items()}
    return replace(table, columns={**table.columns, **columns}, notes=[*table.notes, *_told(table, found)])


def _told(table: FileTable, found: Mapping[str, Written]) -> Iterator[str]:
    """Say which columns hold words, of all that hold the same ones at once."""
    alike: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, own in found.items():
        alike.setdefault(tuple(sorted(own.items(), key=lambda pair: pair[1], reverse=True)), []).append(name)
    for written, names in alike.items():
        what = "scores hold" if names == [""] else f"{some(names, 'column')} hold{'s' * (len(names) == 1)}"
        words, numbers = ("/".join(part) for part in zip(*written, strict=True))
        doubt = "" if words.lower() in {"true/false", "true", "false"} else "; are they labels? Then give --gold FILE"
        yield f"{table.path}: {what} {words}, read as {numbers}{doubt}"
