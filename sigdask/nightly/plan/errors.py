"""What is wrong with a plan, in words: the line, the key, what was found, what was expected."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigdask.errors import InputError, SeveralError
from sigdask.io import redacted
from sigdask.nightly.plan.keys import PlanKeys
from sigdask.nightly.plan.lines import Key, has

MOST_SHOWN = 25
LONGEST = 60
"""Characters of a value that are shown."""

_TYPES: dict[str, str] = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
    "string_pattern_mismatch": "text that is not blank",
}
_LIMITS: dict[str, tuple[str, str]] = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "at least {}"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "at most {}"),
    "string_too_short": ("min_length", "text of at least {} character"),
    "string_too_long": ("max_length", "text of at most {} characters"),
    "too_short": ("min_length", "at least {} entry"),
    "too_long": ("max_length", "at most {} entries"),
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing wrong with a plan.

    Attributes
    ----------
    key : tuple of str and int
        Where it stands; empty for the plan as a whole.
    text : str
        What was found, what was expected.
    """

    key: Key
    text: str


def refuse(path: Path, complaints: Sequence[Complaint], lines: Mapping[Key, int]) -> InputError:
    """Return the error that lists all complaints in the order of the file."""
    placed = sorted(((_line(c.key, lines), _written(c) + c.text) for c in complaints), key=lambda pair: pair[0] or 0)
    if len(placed) == 1:
        line, text = placed[0]
        return InputError(f"{path}{f', line {line}' if line else ''}: {text}")
    shown = [f"  {f'line {line}: ' if line else ''}{text}" for line, text in placed[:MOST_SHOWN]]
    if len(placed) > MOST_SHOWN:
        shown.append(f"  and {len(placed) - MOST_SHOWN} more")
    return SeveralError(f"{path}: {len(placed)} errors", *shown)


def _line(key: Key, lines: Mapping[Key, int]) -> int | None:
    """Return the line of a key, or of the nearest table around it."""
    while key and key not in lines:
        key = key[:-1]
    return lines.get(key)


def _written(complaint: Complaint) -> str:
    return f"{dotted(complaint.key)}: " if complaint.key else ""


def dotted(key: Key) -> str:
    """Write a key as plans do.

    Examples
    --------
    >>> dotted(("test_set", 0, "map", "a b"))
    'test_set[0].map."a b"'
    """
    parts = []
    for part in key:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            bare = part.isascii() and part.replace("_", "").replace("-", "").isalnum()
            parts.append(f".{shown(part) if not bare else part}")
    return "".join(parts).removeprefix(".")


def shown(value: Any) -> str:
    """Write a value that was found, shortened."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = f'"{redacted(value)}"'
    elif isinstance(value, int) and abs(value) >= 10**LONGEST:
        return f"a number of about {value.bit_length() * 3 // 10} digits"
    elif isinstance(value, Mapping):
        text = "{ " + ", ".join(f"{k} = …" for k in list(value)[:8]) + " }" if value else "an empty table"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}" if value else "an empty list"
    else:
        text = str(value)
    text = plain(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def plain(text: object) -> str:
    """Write what a terminal must not get as escapes."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))


def nearest(word: str, known: Sequence[str], what: str = "there are") -> str:
    """Return a hint to the nearest known word, or the known ones.

    Examples
    --------
    >>> nearest("metrcs", ["name", "metrics"])
    "did you mean 'metrics'?"
    """
    close = difflib.get_close_matches(word[:200], known, 1, 0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(sorted(known)[:30]) + (", …" if len(known) > 30 else "")
    return f"{what}: {listed or 'none'}"


def of_validation(errors: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterator[Complaint]:
    """Put pydantic's errors into words.

    Parameters
    ----------
    errors : sequence of mapping
        As `ValidationError.errors()` gives them.
    data : mapping
        What was validated.
    """
    for error in errors:
        key = _key(error["loc"], data, missing=error["type"] == "missing")
        if error["type"] == "unexpected_keyword_argument":
            yield Complaint(key, _unknown(key, data))
        elif error["type"] != "too_short" or not error["input"] or error["ctx"]["min_length"] > 1:
            yield Complaint(key, _wrong(key, error))


def _key(loc: Sequence[str | int], data: Any, *, missing: bool) -> Key:
    """Return the keys of a location: pydantic names the branch of a union among them."""
    key: list[str | int] = []
    for place, part in enumerate(loc):
        if has(data, part):
            data = data[part]
            key.append(part)
        elif missing and place == len(loc) - 1:
            key.append(part)
    return tuple(key)


def _wrong(key: Key, error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        if isinstance(key[-1], int):
            return f'missing, expected {key[-1] + 1} or more entries, such as ["A", "B"]'
        return f"missing; {_described(key)}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        expected = words.format(f"{limit:,g}" if isinstance(limit, float) else f"{limit:,}")
    elif kind == "literal_error":
        expected = f"one of {context['expected']}"
        expected += _hint(error["input"], [word.strip("'") for word in _words(context["expected"])])
    elif kind == "union_tag_invalid":
        found, tags = context["tag"], context["expected_tags"]
        hint = _hint(found, [word.strip("'") for word in _words(tags)])
        return f"rule = {shown(found)}: expected one of {tags}{hint}"
    elif kind == "union_tag_not_found" and isinstance(error["input"], Mapping):
        return "rule is missing; it says which rule this is"
    elif kind == "union_tag_not_found":
        expected = _described(key)
    elif kind == "too_long":
        expected = "fewer entries"
    else:
        expected = _TYPES.get(kind, error["msg"].removeprefix("Input should be ").removeprefix("Input should "))
    return f"found {shown(error['input'])}, expected {expected}"


def _words(listed: str) -> list[str]:
    return listed.replace(" or ", ", ").split(", ")


def _hint(found: Any, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(found[:200], known, 1, 0.6) if isinstance(found, str) else []
    return f"; did you mean {close[0]!r}?" if close else ""


def _described(key: Key) -> str:
    """Return the description of a key, lower case at its start."""
    for table in _tables_at(key[:-1]):
        if key[-1] in (hints := _annotations(table)):
            for extra in getattr(hints[str(key[-1])], "__metadata__", ()):
                if text := getattr(extra, "description", None):
                    return f"expected {text[0].lower()}{text[1:].rstrip('.')}"
    return "expected another type of value"


def _unknown(key: Key, data: Mapping[str, Any]) -> str:
    name, around = str(key[-1]), key[:-1]
    tables = _tables_at(around)
    known = sorted({field for table in tables for field in _annotations(table)})
    if name in known:
        rule: Any = data
        for part in around:
            rule = rule[part]
        return f"not a key of rule {shown(rule.get('rule'))}"
    if elsewhere := _belongs(name):
        return f"unknown key here; {name} belongs {elsewhere}"
    return f"unknown key; {nearest(name, known, 'keys')}"


def _belongs(name: str) -> str | None:
    """Say where a key of this name is at home, if it is at one place alone."""
    if name in _annotations(PlanKeys):
        return "at the top, before the first [table]"
    homes = [
        home
        for home, key in (("in [[test_set]]", ("test_set",)), ("in [gate]", ("gate",)), ("in [report]", ("report",)))
        for table in _tables_at(key)
        if name in _annotations(table)
    ]
    return homes[0] if len(homes) == 1 else None


def _tables_at(key: Key) -> list[type]:
    """Return the declarations that a table at this key may have."""
    tables: list[type] = [PlanKeys]
    for part in key:
        if isinstance(part, str):
            tables = [t for table in tables for t in _tables_in(_annotations(table).get(part))]
    return tables


def _annotations(table: type) -> dict[str, Any]:
    return typing.get_type_hints(table, include_extras=True)


def _tables_in(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _tables_in(argument)
