"""Brat standoff: text-bound annotations of an .ann file, `T1<tab>LABEL 0 5;8 12<tab>text`."""

from __future__ import annotations

import re
from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.reading.files import open_text

SUFFIX = ".ann"
_BOUND = re.compile(r"T[^\t]*\t(\S+) (\d+ \d+(?:;\d+ \d+)*)(?:\t|$)")


def read_ann(path: Path) -> list[list[object]]:
    """Return spans as [fragments, label]; relations, events, attributes and notes say nothing.

    Raises
    ------
    InputError
        For a T line of another form.
    """
    spans: list[list[object]] = []
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if not line.startswith("T"):
                continue
            match = _BOUND.match(line.rstrip("\r\n"))
            if match is None:
                raise InputError(
                    f"{path}, line {number}: found {line.strip()[:40]!r}, expected T1<tab>LABEL START END<tab>text"
                )
            fragments = [[int(offset) for offset in part.split(" ")] for part in match[2].split(";")]
            spans.append([fragments, match[1]])
    return spans
