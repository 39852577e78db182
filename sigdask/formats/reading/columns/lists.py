"""JSON objects of lists, a column each: what `evaluate`, BERTScore and `json.dump(frame.to_dict("list"))` write.

Single values beside the lists (a hash, a mean, the version of a tool) are left out, and so are lists that a tool
writes of a whole system, not of its items (the precisions of BLEU).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sigdask.errors import InputError
from sigdask.formats.reading.json.records import head, is_json_lines, load
from sigdask.formats.reading.rows import as_text
from sigdask.text import some

Cells = dict[str, list[str]]

OF_SYSTEMS = frozenset({"precisions", "counts", "totals", "p_hist", "q_hist", "divergence_curve", "confusion_matrix"})
"""Such lists in the outputs of `evaluate`: bleu, sacrebleu, mauve."""

BLANKS = " \t\r\n"


def by_column(path: Path) -> Cells | None:
    """Return the columns of a JSON object of lists, one of numbers at least; None of all else.

    Raises
    ------
    InputError
        The lists are not of one length, or none is of items.
    """
    if not begins_with_list(head(path)) or is_json_lines(path):
        return None
    document = load(path)
    lists = {name: value for name, value in document.items() if isinstance(value, list)}
    own = {name: cells for name, cells in lists.items() if name not in OF_SYSTEMS}
    if any(isinstance(value, dict) for value in document.values()) or not any(map(_are_numbers, lists.values())):
        return None
    if any(isinstance(cell, dict | list) for cells in own.values() for cell in cells):
        return None
    if not own:
        raise InputError(
            f"{path}: {some([*lists], 'list')} of the whole system, and none of a score an item; compare the outputs "
            "themselves (--gold REFERENCE --metric BLEU), or write the metric's score of each segment"
        )
    first, n = next((name, len(cells)) for name, cells in own.items())
    for name, cells in own.items():
        if len(cells) != n:
            raise InputError(f"{path}: {name!r} holds {len(cells):,} values, but {first!r} {n:,}; expected one an item")
    return {name: [as_text(cell).strip() for cell in cells] for name, cells in own.items()}


def _are_numbers(cells: list[Any]) -> bool:
    return bool(cells) and all(cell is None or isinstance(cell, int | float) for cell in cells)


def begins_with_list(start: str) -> bool:
    """Whether the beginning of a file is that of a JSON object of single values and lists of these.

    Examples
    --------
    >>> [begins_with_list(text) for text in ('{"model": "x", "f1": [0.5, ', '{"a": {"f1": [', '{"a": [[1', '[0.5')]
    [True, False, False, False]
    """
    decoder, start = json.JSONDecoder(), start.lstrip()
    at = 1
    while start.startswith("{"):
        try:
            key, at = decoder.raw_decode(start, _filled(start, at))
            at = _filled(start, at)
            if not isinstance(key, str) or start[at : at + 1] != ":":
                return False
            at = _filled(start, at + 1)
            if start[at : at + 1] == "[":
                return start[_filled(start, at + 1) :][:1] not in {"", "[", "{", "]"}
            if start[at : at + 1] in {"", "{"}:
                return False
            _, at = decoder.raw_decode(start, at)
        except (ValueError, RecursionError):
            return False
        at = _filled(start, at)
        if start[at : at + 1] != ",":
            return False
        at = _filled(start, at + 1)
    return False


def _filled(text: str, at: int) -> int:
    """Return the place of the next character that is no blank."""
    while at < len(text) and text[at] in BLANKS:
        at += 1
    return at
