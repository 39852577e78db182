"""How options are called by the front end that runs: command line, Python, or a plan.

The same code reads files and computes for all three. Where a message names an option, it calls `spell`, which gives
`--missing pairwise`, `missing='pairwise'` or `missing = "pairwise"`. This is the one place where an option is rendered.
"""

from __future__ import annotations

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


PLACEHOLDERS = frozenset({"COLUMN", "FILE", "KEY", "LABEL", "NAME", "QRELS"})


def spell(name: str, value: Any = None) -> str:
    """Return an option as the running front end writes it.

    Parameters
    ----------
    name : str
        Its name in Python.
    value : object, optional
        Value to give it. `PLACEHOLDERS` stand for a value that the user knows. False turns a Boolean option off.

    Examples
    --------
    >>> spell("missing", "pairwise"), spell("columns", "item=NAME"), spell("second_run", False), spell("gold")
    ("missing='pairwise'", "columns={'item': NAME}", 'second_run=False', 'gold=')
    >>> with use_interface("command line"):
    ...     spell("missing", "pairwise"), spell("columns", "item=NAME"), spell("second_run", False), spell("metrics")
    ('--missing pairwise', '--columns item=NAME', '--no-second-run', '--metric')
    """
    interface = get_interface()
    if interface == "command line":
        flag = get_flag(name)
        return flag if value is None else f"--no-{flag[2:]}" if value is False else f"{flag} {quote(str(value))}"
    is_plan = interface == "plan"
    key = PLAN_KEYS.get(name, name) if is_plan else name
    if value is None:
        return f"`{key}`" if is_plan else f"{key}="
    equals, mark = (" = ", '"') if is_plan else ("=", "'")
    if isinstance(value, bool):
        return f"{key}{equals}{str(value).lower() if is_plan else value}"
    if name == "ignore":
        return f"{key}{equals}[{_quote(str(value), mark)}]"
    if name in {"columns", "label_map"}:
        pairs = []
        for entry in re.split(r",(?=\w+=)", str(value)) if name == "columns" else [str(value)]:
            first, _, second = entry.partition("=")
            second = _quote(second, mark) if name == "columns" else f"[{mark}{second}{mark}]"
            pairs.append(f"{first} = {second}" if is_plan else f"'{first}': {second}")
        return f"{key}{equals}{{{', '.join(pairs)}}}"
    is_number = str(value).replace(".", "", 1).isdigit()
    return f"{key}{equals}{value if is_number else _quote(str(value), mark)}"


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
    interface = get_interface()
    if interface == "plan":
        lists = (f'"{new}" = [{", ".join(_quote(old, chr(34)) for old in olds)}]' for new, olds in entries.items())
        return f"map = {{{', '.join(lists)}}}"
    if interface == "python":
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


def _quote(text: str, mark: str) -> str:
    """Return a value in quotation marks, or bare if it stands for one that the user knows."""
    return text if text in PLACEHOLDERS else f"{mark}{text}{mark}"


def suggest_group_file(name: str) -> str:
    """Return which option reads the groups of a column from a separate file."""
    if name == "document":
        return f"Give a file with the document of each item with {spell('documents', 'FILE')}"
    return f"Give a table of items and their groups with {spell('group_file', 'FILE')}"
