"""Objects and lists in table cells (JSON, Parquet), whose fields are used as columns named `a.b`."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.rows import format_cell
from sigdask.text import format_list

SHOWN = 6
ABSENT = object()
DEEPEST = 1000
"""Parts of a name that leads inside."""


def find_nested_columns(rows: Sequence[tuple[int, Sequence[Any]]]) -> dict[int, list[Any]]:
    """Return the cells of each column that contains objects or lists, by column index; the first row is the header."""
    holders = sorted({k for _, cells in rows[1:] for k, cell in enumerate(cells) if isinstance(cell, dict | list)})
    return {k: [cells[k] for _, cells in rows[1:]] for k in holders}


def parse_nested_columns(columns: Mapping[str, Sequence[str]]) -> dict[str, list[Any]]:
    """Return the parsed cells of text columns whose filled cells are all objects or lists in JSON or Python syntax."""
    parsed = {}
    for name, cells in columns.items():
        first_cell = next((cell for cell in cells if cell), "")
        if first_cell[:1] in {"{", "["} and _parse_cell(first_cell) is not None:
            values = [_parse_cell(cell) for cell in cells]
            if all(value is not None or not cell for cell, value in zip(cells, values, strict=True)):
                parsed[name] = values
    return parsed


def _parse_cell(cell: str) -> Any:
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, dict | list) else None
    return None


def get_field(nested: Mapping[str, Sequence[Any]], name: str) -> list[str] | None:
    """Return a field inside the objects of a column as text; None if absent or itself an object.

    Examples
    --------
    >>> get_field({"prediction": [{"label": "A", "p": [0.1, 0.9]}, None]}, "prediction.label")
    ['A', '']
    >>> get_field({"prediction": [{"label": "A", "p": [0.1, 0.9]}]}, "prediction.p.1")
    ['0.9']
    """
    if name.count(".") > DEEPEST:
        return None
    for column in (name[:k] for k, mark in enumerate(name) if mark == "."):
        if column in nested:
            values = [_follow_path(cell, name[len(column) + 1 :]) for cell in nested[column]]
            if any(cell is not ABSENT for cell in values) and not any(isinstance(cell, dict | list) for cell in values):
                return ["" if cell is ABSENT else format_cell(cell).strip() for cell in values]
    return None


def _follow_path(value: Any, path: str) -> Any:
    """Follow a dotted path of keys and list indices (from 0) into a value."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for key in path.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return ABSENT
    return value


def build_nested_error(path: Path, name: str, lines: Sequence[int], cells: Sequence[Any]) -> InputError:
    """Return the error for a column of objects or lists that was used as a whole."""
    row = next(k for k, cell in enumerate(cells) if isinstance(cell, dict | list))
    kind = "an object" if isinstance(cells[row], dict) else "a list"
    inner = _list_fields(name, cells[row])
    remedy = f"name one of its fields instead: {format_list(inner, SHOWN)}" if inner else "it has no fields"
    leave = f"or, where it is no system's, leave it out with --ignore {name}"
    return InputError(f"{path}, line {lines[row]}: {name!r} is {kind}, which is not compared whole; {remedy}; {leave}")


def _list_fields(name: str, value: Any) -> list[str]:
    """Return the dotted names of all single values inside a value."""
    if not isinstance(value, dict | list):
        return [name]
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    return [inner for key, item in entries for inner in _list_fields(f"{name}.{key}", item)]
