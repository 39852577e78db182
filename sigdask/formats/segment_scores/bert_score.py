"""What `bert-score -s` prints: the means in one line, then precision, recall and F1 of each segment."""

from __future__ import annotations

import re
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import head_lines, open_text
from sigdask.formats.reading.tables import FileTable

MEANS = re.compile(r" P: -?\d+\.\d+ R: -?\d+\.\d+ F1: -?\d+\.\d+")
"""The end of the line of means."""

LONGEST = 80
"""Characters of it."""

COLUMNS = ("P", "R", "F1")
LOOKED_AT = 20
"""Lines within which the means stand, after warnings."""


def is_printed(path: Path) -> bool:
    """Whether a file is what bert-score prints."""
    return any(map(_are_means, head_lines(path)[:LOOKED_AT]))


def _are_means(line: str) -> bool:
    end = line.rstrip()[-LONGEST:]
    at = end.find(" P: ")
    return at >= 0 and MEANS.fullmatch(end, at) is not None


def printed(path: Path) -> FileTable:
    """Read the scores of segments.

    Raises
    ------
    InputError
        For a line after the means that is no three cells, and where none follows.
    """
    with open_text(path) as text:
        lines = [line.rstrip("\r\n") for line in text]
    first = next((k for k, line in enumerate(lines) if _are_means(line)), -1) + 1
    rows: dict[int, list[str]] = {}
    for number, line in enumerate(lines[first:], start=first + 1):
        cells = line.split("\t")
        if len(cells) == len(COLUMNS):
            rows[number] = [cell.strip() for cell in cells]
        elif line.strip():
            raise InputError(f"{path}, line {number}: found {line[:40]!r}, expected P, R and F1 of a segment, by tabs")
    if not rows:
        raise InputError(f"{path}: bert-score printed its means alone; run it with -s (--seg_level)")
    return FileTable(path, dict(zip(COLUMNS, map(list, zip(*rows.values(), strict=True)), strict=True)), [*rows])
