"""JSON objects with one list per column, as `evaluate`, BERTScore and pandas write them.

Single values beside the lists (a hash, a mean, the version of a tool) are left out, and so are lists that a tool
writes of a whole system, not of its items (the precisions of BLEU).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json.records import is_json_lines, load_json, read_head
from sigdask.formats.reading.rows import format_cell
from sigdask.text import describe_items

Cells = dict[str, list[str]]

SYSTEM_LISTS = frozenset({"precisions", "counts", "totals", "p_hist", "q_hist", "divergence_curve", "confusion_matrix"})
"""Such lists in the outputs of `evaluate`: bleu, sacrebleu, mauve."""

BLANKS = " \t\r\n"


def read_list_columns(path: Path) -> Cells | None:
    """Return the columns of a JSON object of lists with numbers; None for any other file.

    Raises
    ------
    InputError
        The lists are not of one length, or none is of items.
    """
    if not begins_with_list(read_head(path)) or is_json_lines(path):
        return None
    document = load_json(path)
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    columns = {name: cells for name, cells in lists.items() if name not in SYSTEM_LISTS}
    if any(isinstance(value, dict) for value in document.values()) or not any(map(_are_numbers, lists.values())):
        return None
    if any(isinstance(cell, dict | list) for cells in columns.values() for cell in cells):
        return None
    if not columns:
        raise InputError(
            f"{path}: {describe_items([*lists], 'list')} of the whole system, and none of a score an item; compare "
            "the outputs "
            "themselves (--gold REFERENCE --metric BLEU), or write the metric's score of each segment"
        )
    first_name, n = next((name, len(cells)) for name, cells in columns.items())
    for name, cells in columns.items():
        if len(cells) != n:
            raise InputError(
                f"{path}: {name!r} holds {len(cells):,} values, but {first_name!r} {n:,}; expected one an item"
            )
    return {name: [format_cell(cell).strip() for cell in cells] for name, cells in columns.items()}


def _are_numbers(cells: list[Any]) -> bool:
    return bool(cells) and all(cell is None or isinstance(cell, int | float) for cell in cells)


def begins_with_list(start: str) -> bool:
    """Return whether a text begins like a JSON object of single values and lists of them.

    Examples
    --------
    >>> [begins_with_list(text) for text in ('{"model": "x", "f1": [0.5, ', '{"a": {"f1": [', '{"a": [[1', '[0.5')]
    [True, False, False, False]
    """
    decoder, start = json.JSONDecoder(), start.lstrip()
    position = 1
    while start.startswith("{"):
        try:
            key, position = decoder.raw_decode(start, _skip_blanks(start, position))
            position = _skip_blanks(start, position)
            if not isinstance(key, str) or start[position : position + 1] != ":":
                return False
            position = _skip_blanks(start, position + 1)
            if start[position : position + 1] == "[":
                return start[_skip_blanks(start, position + 1) :][:1] not in {"", "[", "{", "]"}
            if start[position : position + 1] in {"", "{"}:
                return False
            _, position = decoder.raw_decode(start, position)
        except (ValueError, RecursionError):
            return False
        position = _skip_blanks(start, position)
        if start[position : position + 1] != ",":
            return False
        position = _skip_blanks(start, position + 1)
    return False


def _skip_blanks(text: str, position: int) -> int:
    """Return the position of the next character that is not blank."""
    while position < len(text) and text[position] in BLANKS:
        position += 1
    return position
