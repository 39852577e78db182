"""Objects and lists in the cells of a table (JSON, Parquet): never compared whole; `prediction.label` leads inside."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.rows import as_text
from sigdask.text import listed

SHOWN = 6
ABSENT = object()
DEEPEST = 1000
"""Parts of a name that leads inside."""


def columns_of(rows: Sequence[tuple[int, Sequence[Any]]]) -> dict[int, list[Any]]:
    """Return the columns with objects or lists in them, by number; the first row is the header."""
    holders = sorted({k for _, cells in rows[1:] for k, cell in enumerate(cells) if isinstance(cell, dict | list)})
    return {k: [cells[k] for _, cells in rows[1:]] for k in holders}


def written_in(columns: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """Return the columns of text whose every cell is an object or a list as JSON or Python writes it, or empty."""
    found = {}
    for name, cells in columns.items():
        first = next((cell for cell in cells if cell), "")
        if first[:1] in {"{", "["} and _parsed(first) is not None:
            values = [_parsed(cell) for cell in cells]
            if all(value is not None or not cell for cell, value in zip(cells, values, strict=True)):
                found[name] = values
    return found


def _parsed(cell: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def field(nested: Mapping[str, Sequence[Any]], name: str) -> list[str] | None:
    """Return a field within the objects of a column as text; None where no cell has it, or it is an object itself.

    Examples
    --------
    >>> field({"prediction": [{"label": "A", "p": [0.1, 0.9]}, None]}, "prediction.label")
    ['A', '']
    >>> field({"prediction": [{"label": "A", "p": [0.1, 0.9]}]}, "prediction.p.1")
    ['0.9']
    """
    if name.count(".") > DEEPEST:
        return None
    for column in (name[:k] for k, mark in enumerate(name) if mark == "."):
        if column in nested:
            found = [_within(cell, name[len(column) + 1 :]) for cell in nested[column]]
            if any(cell is not ABSENT for cell in found) and not any(isinstance(cell, dict | list) for cell in found):
                return ["" if cell is ABSENT else as_text(cell).strip() for cell in found]
    return None


def _within(value: Any, path: str) -> Any:
    """Follow keys and places (0 is the first) into a value."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value


def refused(path: Path, name: str, lines: Sequence[int], cells: Sequence[Any]) -> InputError:
    """Return the error for a column that was to be compared whole."""
    row = next(k for k, cell in enumerate(cells) if isinstance(cell, dict | list))
    what = "an object" if isinstance(cells[row], dict) else "a list"
    inner = _fields(name, cells[row])
    remedy = f"name one of its fields instead: {listed(inner, SHOWN)}" if inner else "it has no fields"
    leave = f"or, where it is no system's, leave it out with --ignore {name}"
    return InputError(f"{path}, line {lines[row]}: {name!r} is {what}, which is not compared whole; {remedy}; {leave}")


def _fields(name: str, value: Any) -> list[str]:
    """Return the names of the single values within a value."""
    if not isinstance(value, dict | list):
        return [name]
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    return [inner for key, part in parts for inner in _fields(f"{name}.{key}", part)]
