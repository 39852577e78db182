"""The lines of a plan on which its keys stand, for errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

PlanKey = tuple[str | int, ...]
"""A position in a plan: keys of tables and numbers of entries of lists, from the outermost inwards."""


def find_lines(text: str) -> Mapping[PlanKey, int]:
    r"""Return the first line of each key, table and entry of a list in a TOML text, counted from 1.

    Examples
    --------
    >>> find_lines('seed = 1\n\n[[test_set]]\nname = "a"')["test_set", 0, "name"]
    4
    """
    import tree_sitter
    import tree_sitter_toml

    grammar = tree_sitter.Language(tree_sitter_toml.language())
    last_entries: dict[PlanKey, int] = {}  # of each list of tables
    lines: dict[PlanKey, int] = {}
    for node in tree_sitter.Parser(grammar).parse(text.encode()).root_node.named_children:
        table: PlanKey = ()
        if node.type in {"table", "table_array_element"}:
            for name in _read_key(node.named_children[0]):
                table += (name, last_entries[(*table, name)]) if (*table, name) in last_entries else (name,)
            if node.type == "table_array_element":
                path = table if isinstance(table[-1], str) else table[:-1]
                last_entries[path] = last_entries.get(path, -1) + 1
                table = (*path, last_entries[path])
            lines[table] = node.start_point[0] + 1
        pairs = [node] if node.type == "pair" else node.named_children[1:]
        lines |= (line for pair in pairs for line in _iter_lines(pair, table))
    outer = {key[:n]: line for key, line in reversed(lines.items()) for n in range(1, len(key))}
    return outer | lines


def _iter_lines(node: Any, parent: PlanKey) -> Iterator[tuple[PlanKey, int]]:
    """Yield the line of each key and entry in a value of `parent`, or in one pair of a table."""
    if node.type == "pair":
        key = (*parent, *_read_key(node.named_children[0]))
        yield key, node.start_point[0] + 1
        yield from _iter_lines(node.named_children[1], key)
    elif node.type == "inline_table":
        for pair in node.named_children:
            yield from _iter_lines(pair, parent)
    elif node.type == "array":
        entries = [entry for entry in node.named_children if entry.type != "comment"]
        for number, entry in enumerate(entries):
            yield (*parent, number), entry.start_point[0] + 1
            yield from _iter_lines(entry, (*parent, number))


def _read_key(node: Any) -> Iterator[str]:
    """Yield the parts of a dotted key, without its quotes and escapes."""
    value: Any = tomllib.loads(f"{node.text.decode()} = 0")
    while value:
        [(name, value)] = value.items()
        yield name
