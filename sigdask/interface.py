"""How options are called by the front end that runs: command line, Python, or a plan.

The same code reads files and computes for all three. Where a message names an option, it calls `spell`, which gives
`--missing pairwise`, `missing='pairwise'` or `missing = "pairwise"`. This is the one place where an option is rendered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from shlex import quote
from typing import Any, Literal

Interface = Literal["command line", "python", "plan"]

FLAGS = {
    "group_file": "groups", "ids": "id", "label_map": "map", "measures": "measure", "metrics": "metric",
    "pairs": "pair", "references": "reference",
}  # fmt: skip
"""Flags of options whose flags are not their Python names, without dashes."""

PLAN_KEYS = {"group_file": "groups", "label_map": "map"}
"""Keys of options whose keys in plans are not their Python names."""

PLACEHOLDERS = ("COLUMN", "FILE", "KEY", "LABEL", "NAME", "QRELS", "SECONDS")
"""Words in remedies for a value that the user knows."""

_running: list[Interface] = ["python"]


@contextmanager
def use_interface(interface: Interface) -> Iterator[None]:
    """Name options as a front end does while the block runs, in all threads.

    Examples
    --------
    >>> with use_interface("plan"):
    ...     spell("missing", "pairwise")
    'missing = "pairwise"'
    """
    _running.append(interface)
    try:
        yield
    finally:
        _running.pop()


def get_interface() -> Interface:
    """Return the front end that runs."""
    return _running[-1]


def get_flag(name: str) -> str:
    """Return the flag of an option.

    Examples
    --------
    >>> get_flag("exact_limit"), get_flag("metrics")
    ('--exact-limit', '--metric')
    """
    return f"--{FLAGS.get(name, name).replace('_', '-')}"


def spell(name: str, *values: Any) -> str:
    """Return an option as the running front end writes it.

    Parameters
    ----------
    name : str
        Its name in Python.
    *values : object
        Value to give it, or several. A word of `PLACEHOLDERS` stands for one that the user knows. False turns an option
        off.

    Examples
    --------
    >>> spell("missing", "pairwise"), spell("columns", "item=NAME"), spell("second_run", False), spell("gold")
    ("missing='pairwise'", "columns={'item': NAME}", 'second_run=False', 'gold=')
    >>> with use_interface("command line"):
    ...     spell("ignore", "a", "b"), spell("columns", "item=NAME"), spell("second_run", False), spell("metrics")
    ('--ignore a --ignore b', '--columns item=NAME', '--no-second-run', '--metric')
    """
    values = tuple(value for value in values if value is not None)
    interface, value = get_interface(), values[0] if values else None
    if interface == "command line":
        flag = get_flag(name)
        given = " ".join(f"{flag} {quote(str(each))}" for each in values)
        return f"--no-{flag[2:]}" if value is False else given or flag
    is_plan = interface == "plan"
    key = PLAN_KEYS.get(name, name) if is_plan else name
    if value is None:
        return f"`{key}`" if is_plan else f"{key}="
    equals = " = " if is_plan else "="
    if not isinstance(value, str):
        return f"{key}{equals}{str(value).lower() if is_plan else value}"
    if name == "label_map":
        new, _, old = value.partition("=")
        return spell_map({old: new})
    if name == "columns":
        pairs = (entry.partition("=") for entry in re.split(r",(?=\w+=)", value))
        entries = (f"{role} = {_quote(name)}" if is_plan else f"'{role}': {_quote(name)}" for role, _, name in pairs)
        return f"{key}{equals}{{{', '.join(entries)}}}"
    return f"{key}{equals}{_quote([*values] if name in {'ignore', 'metrics'} else value)}"


def spell_map(names: Mapping[str, str]) -> str:
    """Return the option that replaces labels by others, as the running front end writes it.

    Examples
    --------
    >>> spell_map({"per": "PER", "Per": "PER"})
    "label_map={'PER': ['per', 'Per']}"
    >>> with use_interface("command line"):
    ...     spell_map({"per": "PER", "loc": "LOC"}), spell_map({"cause": "Cause(e1,e2)"})
    ('--map PER=per --map LOC=loc', "--map @FILE with the line 'Cause(e1,e2)<tab>cause'")
    """
    entries: dict[str, list[str]] = {}
    for old, new in names.items():
        entries.setdefault(new, []).append(old)
    if get_interface() == "plan":
        lists = (f"{json.dumps(new, ensure_ascii=False)} = {_quote(olds)}" for new, olds in entries.items())
        return f"map = {{{', '.join(lists)}}}"
    if get_interface() == "python":
        return f"label_map={entries}"
    if any(mark in label for label in (*names, *entries) for mark in ",=\t") or any(new[0] == "@" for new in entries):
        lines = [f"'{'<tab>'.join((new, *olds))}'" for new, olds in entries.items()]
        return f"{spell('label_map', '@FILE')} with the line{'s' * (len(lines) > 1)} {', '.join(lines)}"
    return " ".join(spell("label_map", f"{new}={','.join(olds)}") for new, olds in entries.items())


def spell_in(text: str) -> str:
    """Return a text with the options that stand in braces as the running front end writes them.

    Examples
    --------
    >>> spell_in("give {gold=FILE}, or choose {missing=pairwise}")
    "give gold=FILE, or choose missing='pairwise'"
    """
    return re.sub(r"\{(\w+)(?:=([^}]*))?\}", lambda option: spell(option[1], option[2]), text)


def _quote(value: str | list[str]) -> str:
    """Return a text or a list as a plan or Python writes it, or bare if it stands for a text that the user knows."""
    written = json.dumps(value, ensure_ascii=False) if get_interface() == "plan" else repr(value)
    return str(value) if value in PLACEHOLDERS else written


def suggest_group_file(name: str) -> str:
    """Return which option reads the groups of a column from a separate file."""
    if name == "document":
        return f"Give a file with the document of each item with {spell('documents', 'FILE')}"
    return f"Give a table of items and their groups with {spell('group_file', 'FILE')}"
