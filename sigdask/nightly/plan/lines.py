"""Which line of a TOML file each key stands on; `tomllib` does not say.

A reader of line structure alone: headers, keys, multi-line strings and lists. Where it is not sure it
says nothing, so a line that is given is right.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

Key = tuple[str | int, ...]

MOST_PARSED = 5_000_000
"""Characters after which no more lines are looked for: statements of many lines are parsed at each."""

_HEADER = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\\]*"|'[^']*'))*)\s*=""")


def lines_of_keys(text: str, data: Mapping[str, Any]) -> dict[Key, int]:
    r"""Return the line of each key that starts one.

    Parameters
    ----------
    text : str
        The file.
    data : mapping
        What it was parsed to.

    Examples
    --------
    >>> text = 'seed = 1\n[[test_set]]\nname = "a"\n'
    >>> lines_of_keys(text, tomllib.loads(text))[("test_set", 0, "name")]
    3
    """
    found: dict[Key, int] = {}
    table: Key = ()
    tables: dict[Key, int] = {}
    for number, statement in _statements(text):
        if header := _HEADER.match(statement):
            table = _in_arrays(_parts(header[2]), tables)
            if header[1] == "[[":
                tables[table] = tables.get(table, -1) + 1
                table = (*table, tables[table])
            found.setdefault(table, number)
        elif key := _KEY.match(statement):
            found.setdefault((*table, *_parts(key[1])), number)
    return {key: line for key, line in found.items() if _exists(key, data)}


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, first line) of statements, over lists and strings of several lines."""
    waiting = ""
    first = parsed = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not waiting:
            first = number
        waiting = f"{waiting}\n{line}" if waiting else line
        parsed += len(waiting)
        if parsed > MOST_PARSED:
            return
        if _is_whole(waiting):
            yield first, waiting.split("\n")[0]
            waiting = ""


def _is_whole(statement: str) -> bool:
    try:
        tomllib.loads(statement)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        return "at end of document" not in str(error)
    return True


def _parts(written: str) -> Key:
    try:
        parsed: Any = tomllib.loads(f"{written} = 0")
    except (tomllib.TOMLDecodeError, RecursionError):
        return (written,)
    parts: list[str] = []
    while isinstance(parsed, dict):
        name, parsed = next(iter(parsed.items()))
        parts.append(name)
    return tuple(parts)


def _in_arrays(parts: Key, tables: Mapping[Key, int]) -> Key:
    """Put the indices of the tables now open into a header's name."""
    key: Key = ()
    for place, part in enumerate(parts):
        key = (*key, part)
        if place < len(parts) - 1 and key in tables:
            key = (*key, tables[key])
    return key


def has(data: Any, part: str | int) -> bool:
    """Say whether a table or list has this key or place."""
    if isinstance(part, int):
        return isinstance(data, list) and part < len(data)
    return isinstance(data, Mapping) and part in data


def _exists(key: Key, data: Any) -> bool:
    for part in key:
        if not has(data, part):
            return False
        data = data[part]
    return True
