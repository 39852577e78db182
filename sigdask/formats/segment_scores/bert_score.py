"""Output of `bert-score -s`: one line of means, then precision, recall and F1 of each segment."""

from __future__ import annotations

import re
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_text, read_head_lines
from sigdask.formats.reading.tables import FileTable

MEANS_PATTERN = re.compile(r" P: -?\d+\.\d+ R: -?\d+\.\d+ F1: -?\d+\.\d+")
"""The end of the line of means."""

MEANS_LENGTH = 80
"""Characters of it."""

COLUMNS = ("P", "R", "F1")
HEAD_LINES = 20
"""Lines within which the means stand, after warnings."""


def is_printed(path: Path) -> bool:
    """Return whether a file is printed output of bert-score."""
    return any(map(_is_means_line, read_head_lines(path)[:HEAD_LINES]))


def _is_means_line(line: str) -> bool:
    end = line.rstrip()[-MEANS_LENGTH:]
    start = end.find(" P: ")
    return start >= 0 and MEANS_PATTERN.fullmatch(end, start) is not None


def read_printed(path: Path) -> FileTable:
    """Read the segment scores that bert-score printed.

    Raises
    ------
    InputError
        For a line after the means that is no three cells, and where none follows.
    """
    with open_text(path) as text:
        lines = [line.rstrip("\r\n") for line in text]
    first_row = next((k for k, line in enumerate(lines) if _is_means_line(line)), -1) + 1
    rows: dict[int, list[str]] = {}
    for number, line in enumerate(lines[first_row:], start=first_row + 1):
        cells = line.split("\t")
        if len(cells) == len(COLUMNS):
            rows[number] = [cell.strip() for cell in cells]
        elif line.strip():
            raise InputError(f"{path}, line {number}: found {line[:40]!r}, expected P, R and F1 of a segment, by tabs")
    if not rows:
        raise InputError(f"{path}: bert-score printed its means alone; run it with -s (--seg_level)")
    return FileTable(path, dict(zip(COLUMNS, map(list, zip(*rows.values(), strict=True)), strict=True)), [*rows])
