"""COMET's scores: the JSON of `comet-score --to_json`, of file to its segments, and what it prints of each segment."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.files import differing, head_lines, open_text, stem
from sigdask.formats.reading.json.records import head, load
from sigdask.formats.reading.rows import as_text
from sigdask.formats.reading.tables import FileTable

SEGMENT = re.compile(r"Segment \d+")
LOOKED_AT = 200
"""Lines within which the first segment is printed, after what libraries log."""


def is_json(path: Path) -> bool:
    """Whether a file is an object of lists of objects with `src` or `ref`, `mt` and a score, by its first bytes."""
    start, decoder = head(path).lstrip(), json.JSONDecoder()
    if not start.startswith("{"):
        return False
    try:
        _, at = decoder.raw_decode(start[1:].lstrip())
        rest = start[1:].lstrip()[at:].lstrip().removeprefix(":").lstrip()
        record, _ = decoder.raw_decode(rest.removeprefix("[").lstrip()) if rest.startswith("[") else (None, 0)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "mt" in record and bool({"src", "ref"} & record.keys()) and any(_scores(record))


def _scores(record: Mapping[str, Any]) -> Iterator[str]:
    return (name for name, value in record.items() if isinstance(value, int | float) and not isinstance(value, bool))


def of_json(path: Path) -> dict[str, FileTable]:
    """Read the scores of each system, called after its file.

    Raises
    ------
    InputError
        A system has other segments than the first, or a segment is no object.
    """
    document = load(path)
    names = _names(list(document))
    found: dict[str, FileTable] = {}
    sources: list[Any] = []
    for key, records in document.items():
        for k, record in enumerate(records if isinstance(records, list) else [records], start=1):
            if not isinstance(record, dict) or not isinstance(records, list):
                raise InputError(
                    f"{path}, {key!r}, segment {k}: found {str(record)[:40]}, expected an object with a score"
                )
        metrics = dict.fromkeys(name for record in records for name in _scores(record))
        if not metrics:
            raise InputError(f"{path}, {key!r}: no scores of segments")
        own = [record.get("src", record.get("ref")) for record in records]
        sources = sources or own
        if own != sources:
            k = next(
                (k for k, (a, b) in enumerate(zip(own, sources, strict=False)) if a != b), min(map(len, (own, sources)))
            )
            raise InputError(f"{path}, {key!r}, segment {k + 1}: another source than in {next(iter(document))!r}")
        columns = {name: [as_text(record.get(name)) for record in records] for name in metrics}
        found[names[key]] = FileTable(path, columns, range(1, len(records) + 1))
    return found


def is_printed(path: Path) -> bool:
    """Whether a file is what comet-score prints of segments."""
    return any(_parts(line) is not None for line in head_lines(path)[:LOOKED_AT])


def _parts(line: str) -> tuple[str, str] | None:
    """Return file and score of a line of a segment."""
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) < 3 or not SEGMENT.fullmatch(cells[1]) or not cells[2].startswith("score: "):
        return None
    return cells[0], cells[2].removeprefix("score: ").strip()


def printed(path: Path) -> dict[str, FileTable]:
    """Read what comet-score prints: file, number of the segment and score; other lines are passed over."""
    scores: dict[str, list[str]] = {}
    lines: dict[str, list[int]] = {}
    with open_text(path) as text:
        for number, line in enumerate(text, start=1):
            if (parts := _parts(line)) is not None:
                scores.setdefault(parts[0], []).append(parts[1])
                lines.setdefault(parts[0], []).append(number)
    names = _names(list(scores))
    return {names[key]: FileTable(path, {"COMET": own}, lines[key]) for key, own in scores.items()}


def _names(files: list[str]) -> dict[str, str]:
    """Call systems after their files, those called alike by what differs in their paths."""
    names = {file: stem(Path(file)) for file in files}
    if len(set(names.values())) == len(files):
        return names
    apart = differing([Path(file) for file in files])
    return {file: apart[Path(file)] for file in files}
