"""Scores of COMET: the JSON of `comet-score --to_json`, and its printed segment scores."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import get_stem, name_by_difference, open_text, read_head_lines
from sigdask.formats.reading.json.records import load_json, read_head
from sigdask.formats.reading.rows import format_cell
from sigdask.formats.reading.tables import FileTable

SEGMENT = re.compile(r"Segment \d+")
HEAD_LINES = 200
"""Lines within which the first segment is printed, after what libraries log."""


def is_json(path: Path) -> bool:
    """Return whether a file begins as JSON of lists of objects with `src` or `ref`, `mt` and a score."""
    start, decoder = read_head(path).lstrip(), json.JSONDecoder()
    if not start.startswith("{"):
        return False
    try:
        _, key_end = decoder.raw_decode(start[1:].lstrip())
        records_text = start[1:].lstrip()[key_end:].lstrip().removeprefix(":").lstrip()
        record, _ = (
            decoder.raw_decode(records_text.removeprefix("[").lstrip()) if records_text.startswith("[") else (None, 0)
        )
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(record, dict)
        and "mt" in record
        and bool({"src", "ref"} & record.keys())
        and any(_iter_score_names(record))
    )


def _iter_score_names(record: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, value in record.items() if isinstance(value, int | float) and not isinstance(value, bool))


def read_json(path: Path) -> dict[str, FileTable]:
    """Read the scores of each system, named after its file.

    Raises
    ------
    InputError
        A system has other segments than the first, or a segment is no object.
    """
    document = load_json(path)
    names = _name_systems(list(document))
    tables: dict[str, FileTable] = {}
    sources: list[Any] = []
    for key, records in document.items():
        for k, record in enumerate(records if isinstance(records, list) else [records], start=1):
            if not isinstance(record, dict) or not isinstance(records, list):
                raise InputError(
                    f"{path}, {key!r}, segment {k}: found {str(record)[:40]}, expected an object with a score"
                )
        metrics = dict.fromkeys(name for record in records for name in _iter_score_names(record))
        if not metrics:
            raise InputError(f"{path}, {key!r}: no scores of segments")
        system_sources = [record.get("src", record.get("ref")) for record in records]
        sources = sources or system_sources
        if system_sources != sources:
            k = next(
                (k for k, (a, b) in enumerate(zip(system_sources, sources, strict=False)) if a != b),
                min(map(len, (system_sources, sources))),
            )
            raise InputError(f"{path}, {key!r}, segment {k + 1}: another source than in {next(iter(document))!r}")
        columns = {name: [format_cell(record.get(name)) for record in records] for name in metrics}
        tables[names[key]] = FileTable(path, columns, range(1, len(records) + 1))
    return tables


def is_printed(path: Path) -> bool:
    """Return whether a file is printed output of comet-score with segment scores."""
    return any(_parse_line(line) is not None for line in read_head_lines(path)[:HEAD_LINES])


def _parse_line(line: str) -> tuple[str, str] | None:
    """Return the file and score of a printed segment line, or None for other lines."""
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) < 3 or not SEGMENT.fullmatch(cells[1]) or not cells[2].startswith("score: "):
        return None
    return cells[0], cells[2].removeprefix("score: ").strip()


def read_printed(path: Path) -> dict[str, FileTable]:
    """Read the printed output of comet-score: file, segment number and score; skip other lines."""
    scores: dict[str, list[str]] = {}
    lines: dict[str, list[int]] = {}
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if (fields := _parse_line(line)) is not None:
                scores.setdefault(fields[0], []).append(fields[1])
                lines.setdefault(fields[0], []).append(number)
    names = _name_systems(list(scores))
    return {names[key]: FileTable(path, {"COMET": file_scores}, lines[key]) for key, file_scores in scores.items()}


def _name_systems(files: list[str]) -> dict[str, str]:
    """Return a system name for each file: the file name or, if names repeat, the part of the path that differs."""
    names = {file: get_stem(Path(file)) for file in files}
    if len(set(names.values())) == len(files):
        return names
    names_by_path = name_by_difference([Path(file) for file in files])
    return {file: names_by_path[Path(file)] for file in files}
