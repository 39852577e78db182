"""Find the line of each key in a TOML file, because `tomllib` does not report lines.

A reader of line structure alone: headers, keys, multi-line strings and lists. Where it is not sure it
says nothing, so a line that is given is right.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

PlanKey = tuple[str | int, ...]

MOST_PARSED = 5_000_000
"""Characters after which no more lines are looked for: statements of many lines are parsed at each."""

_HEADER = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*'))*)\s*=""")


def find_key_lines(text: str, data: Mapping[str, Any]) -> dict[PlanKey, int]:
    r"""Return the line number of each key that starts a line.

    Parameters
    ----------
    text : str
        The file.
    data : mapping
        What it was parsed to.

    Examples
    --------
    >>> text = 'seed = 1\n[[test_set]]\nname = "a"\n'
    >>> find_key_lines(text, tomllib.loads(text))[("test_set", 0, "name")]
    3
    """
    key_lines: dict[PlanKey, int] = {}
    table: PlanKey = ()
    tables: dict[PlanKey, int] = {}
    for number, statement in _iter_statements(text):
        if header := _HEADER.match(statement):
            table = _add_indices(_parse_key(header[2]), tables)
            if header[1] == "[[":
                tables[table] = tables.get(table, -1) + 1
                table = (*table, tables[table])
            key_lines.setdefault(table, number)
        elif key := _KEY.match(statement):
            key_lines.setdefault((*table, *_parse_key(key[1])), number)
    return {key: line for key, line in key_lines.items() if _has_key(key, data)}


def _iter_statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and first line of each TOML statement; lists and strings may take several lines."""
    pending = ""
    first_number = parsed = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not pending:
            first_number = number
        pending = f"{pending}\n{line}" if pending else line
        parsed += len(pending)
        if parsed > MOST_PARSED:
            return
        if _is_complete(pending):
            yield first_number, pending.split("\n")[0]
            pending = ""


def _is_complete(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        return "at end of document" not in str(error)
    return True


def _parse_key(text: str) -> PlanKey:
    try:
        parsed: Any = tomllib.loads(f"{text} = 0")
    except (tomllib.TOMLDecodeError, RecursionError):
        return (text,)
    parts: list[str] = []
    while isinstance(parsed, dict):
        name, parsed = next(iter(parsed.items()))
        parts.append(name)
    return tuple(parts)


def _add_indices(parts: PlanKey, tables: Mapping[PlanKey, int]) -> PlanKey:
    """Return the key of a table header, with the index of the current entry after each list of tables in it."""
    key: PlanKey = ()
    for index, part in enumerate(parts):
        key = (*key, part)
        if index < len(parts) - 1 and key in tables:
            key = (*key, tables[key])
    return key


def has_part(data: Any, part: str | int) -> bool:
    """Return whether a table or list has this key or index."""
    if isinstance(part, int):
        return isinstance(data, list) and part < len(data)
    return isinstance(data, Mapping) and part in data


def _has_key(key: PlanKey, data: Any) -> bool:
    for part in key:
        if not has_part(data, part):
            return False
        data = data[part]
    return True
