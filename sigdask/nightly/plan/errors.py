"""Error messages about plans: the key, what was found and what was expected."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from sigdask.errors import InputError, SeveralError
from sigdask.nightly.plan.keys import PlanKeys
from sigdask.text import redact, suggest_name

PlanKey = tuple[str | int, ...]
_T = TypeVar("_T")


def has_part(data: Any, part: str | int) -> bool:
    """Return whether a table or list has this key or index."""
    if isinstance(part, int):
        return isinstance(data, list) and part < len(data)
    return isinstance(data, Mapping) and part in data


MAX_SHOWN = 25
LONGEST = 60
"""Maximum number of characters of a value that are shown."""

_EXPECTED = {
    "dataclass_type": "a table",
    "dict_type": "a table",
    "string_pattern_mismatch": "text that is not blank",
}
"""What was expected, for errors that pydantic describes in the words of Python."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """One error in a plan.

    Attributes
    ----------
    key : tuple of str and int
        Its position in the plan. Empty for the plan as a whole.
    text : str
        The value and what was expected.
    """

    key: PlanKey
    text: str


def attempt(complaints: list[Complaint], key: PlanKey, call: Callable[..., _T], *arguments: Any) -> _T | None:
    """Return what a call returns, or None if it raises an InputError, which becomes a complaint about a key."""
    try:
        return call(*arguments)
    except InputError as error:
        complaints.append(Complaint(key, str(error)))
        return None


def build_error(path: Path, complaints: Sequence[Complaint]) -> InputError:
    """Return the error that lists all complaints, each with its key."""
    texts = [f"{format_key(c.key)}: {c.text}" if c.key else c.text for c in complaints]
    if len(texts) == 1:
        return InputError(f"{texts[0]}", file=path)
    shown = [f"  {text}" for text in texts[:MAX_SHOWN]]
    if len(texts) > MAX_SHOWN:
        shown.append(f"  and {len(texts) - MAX_SHOWN} more")
    return SeveralError(f"{path}: {len(texts)} errors", *shown)


def format_key(key: PlanKey) -> str:
    """Return a key in the dotted form of TOML.

    Examples
    --------
    >>> format_key(("test_set", 0, "map", "a b"))
    'test_set[0].map."a b"'
    """
    parts = []
    for part in key:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            bare = part.isascii() and part.replace("_", "").replace("-", "").isalnum()
            parts.append(f".{format_value(part) if not bare else part}")
    return "".join(parts).removeprefix(".")


def format_value(value: Any) -> str:
    """Return a value from a plan as short text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        text = f'"{redact(value)}"'
    elif isinstance(value, int) and abs(value) >= 10**LONGEST:
        return f"a number of about {value.bit_length() * 3 // 10} digits"
    elif isinstance(value, Mapping):
        text = "{ " + ", ".join(f"{k} = …" for k in list(value)[:8]) + " }" if value else "an empty table"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}" if value else "an empty list"
    else:
        text = str(value)
    text = escape_text(text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def escape_text(text: object) -> str:
    """Return text with unprintable characters escaped for the terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in str(text))


def suggest_nearest(word: str, choices: Sequence[str], intro: str = "there are") -> str:
    """Return a hint with the known word most similar to a mistyped one, or with all known words.

    Examples
    --------
    >>> suggest_nearest("metrcs", ["name", "metrics"])
    "did you mean 'metrics'?"
    """
    close = difflib.get_close_matches(word[:200], choices, 1, 0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    choices_text = ", ".join(sorted(choices)[:30]) + (", …" if len(choices) > 30 else "")
    return f"{intro}: {choices_text or 'none'}"


def describe_validation(errors: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> Iterator[Complaint]:
    """Yield a complaint for each of pydantic's errors.

    Parameters
    ----------
    errors : sequence of mapping
        Errors, as `ValidationError.errors()` returns them.
    data : mapping
        The validated data.
    """
    for error in errors:
        key = _find_key(error["loc"], data, missing=error["type"] == "missing")
        if error["type"] == "unexpected_keyword_argument":
            known = sorted({field for table in _list_tables(key[:-1]) for field in _get_annotations(table)})
            yield Complaint(key, f"unknown key; {suggest_nearest(str(key[-1]), known, 'keys')}")
        elif error["type"] == "missing":
            yield Complaint(key, f"missing; {_describe_expected(key)}")
        else:
            yield Complaint(key, f"found {format_value(error['input'])}, expected {_find_expected(key, error)}")


def _find_key(loc: Sequence[str | int], data: Any, *, missing: bool) -> PlanKey:
    """Return the plan's key for a location in pydantic's error, which also names the members of unions."""
    key: list[str | int] = []
    for index, part in enumerate(loc):
        if has_part(data, part):
            data = data[part]
            key.append(part)
        elif missing and index == len(loc) - 1:
            key.append(part)
    return tuple(key)


def _find_expected(key: PlanKey, error: Mapping[str, Any]) -> str:
    """Return what was expected, in words that follow "expected"."""
    kind, found = error["type"], error["input"]
    if kind in {"tuple_type", "list_type"} and isinstance(found, Mapping):
        return f"a list of tables: write [[{'.'.join(map(str, key))}]], with two brackets"
    if kind == "dataclass_type" and isinstance(found, (list, tuple)):
        return f"a table: write [{'.'.join(map(str, key))}], with one bracket"
    if kind == "union_tag_not_found":
        is_rule = key[:2] == ("gate", "rules")
        expected = 'expected a table such as { rule = "not-worse" }' if is_rule else _describe_expected(key)
        return expected.removeprefix("expected ")
    expected = str(error.get("ctx", {}).get("expected") or error.get("ctx", {}).get("expected_tags") or "")
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    hint = suggest_name(str(found), words) if expected and isinstance(found, str) else ""
    text = error["msg"].removeprefix("Input should be ").removeprefix("Input should ")
    return _EXPECTED.get(kind, f"{text[0].lower()}{text[1:]}{hint}")


def _describe_expected(key: PlanKey) -> str:
    """Return "expected" and the description of a key's value."""
    for table in _list_tables(key[:-1]):
        for extra in getattr(_get_annotations(table).get(str(key[-1])), "__metadata__", ()):
            if text := getattr(extra, "description", None):
                return f"expected {text[0].lower()}{text[1:].rstrip('.')}"
    return "expected another value"


def _list_tables(key: PlanKey) -> list[type]:
    """Return the classes that declare the keys of the table with this name."""
    tables: list[type] = [PlanKeys]
    for part in key:
        if isinstance(part, str):
            tables = [t for table in tables for t in _iter_tables(_get_annotations(table).get(part))]
    return tables


@cache
def _get_annotations(table: type) -> dict[str, Any]:
    return typing.get_type_hints(table, include_extras=True)


def _iter_tables(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _iter_tables(argument)
