"""Data sets of UCS (.ds): comments, then a tab-separated table of `am.*` scores and `b.*` annotations."""

from __future__ import annotations

from pathlib import Path

from sigdask.errors import InputError
from sigdask.formats.candidates.columns import Conventions
from sigdask.formats.reading.files import open_text
from sigdask.formats.reading.json.records import read_head
from sigdask.formats.reading.rows import Row, build_width_error
from sigdask.formats.reading.tables import FileTable, build_table

ENDINGS = (".ds", ".ds.gz")

CONVENTIONS = Conventions(gold=("b.*",), measures=("am.*",), ids=("l1", "l2"))


def is_data_set(path: Path) -> bool:
    """Return whether a file is a UCS data set, by its name or its comments."""
    return path.name.endswith(ENDINGS) or read_head(path).startswith("##")


def read_table(path: Path) -> FileTable:
    """Read a UCS data set as a table; quotation marks are ordinary characters.

    Raises
    ------
    InputError
        A row is of another width than the names.
    """
    rows: list[Row] = []
    with open_text(path) as text:
        for number, raw in enumerate(text, start=1):
            line = raw.rstrip("\r\n")
            if not rows and (line.startswith("#") or not line.strip()):
                continue
            cells = line.split("\t")
            if rows and len(cells) != len(rows[0][1]):
                raise build_width_error(path, number, len(cells) if line else 0, len(rows[0][1]))
            rows.append((number, cells))
    if not rows:
        raise InputError(f"{path}: has comments alone, expected the names of variables and a row a candidate")
    return build_table(path, rows)
