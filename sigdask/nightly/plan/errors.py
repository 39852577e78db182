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
    keys = [_find_key(error["loc"], data, missing=error["type"] == "missing") for error in errors]
    for error, key in zip(errors, keys, strict=True):
        if key == ("gate", "rules") and error["type"] == "missing" and ("gate", "rule") in keys:
            continue  # the complaint about gate.rule states it
        if error["type"] == "unexpected_keyword_argument":
            yield Complaint(key, _describe_unknown(key, data))
        elif error["type"] != "too_short" or not error["input"] or error["ctx"]["min_length"] > 1:
            yield Complaint(key, _describe_error(key, error))


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


def _describe_error(key: PlanKey, error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if (hint := _describe_form(key, error["input"])) and kind != "missing":
        return f"found {format_value(error['input'])}, expected {hint}"
    if kind == "missing":
        if isinstance(key[-1], int):
            return f'missing, expected {key[-1] + 1} or more entries, such as ["A", "B"]'
        return f"missing; {_describe_expected(key)}"
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        limit = context[name]
        expected = words.format(f"{limit:,g}" if isinstance(limit, float) else f"{limit:,}")
    elif kind == "literal_error":
        expected = f"one of {context['expected']}"
        expected += _format_hint(error["input"], context["expected"])
    elif kind == "union_tag_invalid":
        tag, tags = context["tag"], context["expected_tags"]
        return f"rule = {format_value(tag)}: expected one of {tags}{_format_hint(tag, tags)}"
    elif kind == "union_tag_not_found" and isinstance(error["input"], Mapping):
        return "rule is missing; it names the kind of rule"
    elif kind == "union_tag_not_found":
        expected = _describe_expected(key)
    else:
        expected = _TYPES.get(kind, error["msg"].removeprefix("Input should be ").removeprefix("Input should "))
    return f"found {format_value(error['input'])}, expected {expected}"


TABLE_LISTS = frozenset({"test_set", "rankings", "independence"})


def _describe_form(key: PlanKey, value: Any) -> str:
    """Return how a key is written in TOML if its value has another form, else nothing."""
    if len(key) == 1 and key[0] in TABLE_LISTS and isinstance(value, Mapping):
        return f"a list of tables: write [[{key[0]}]], with two brackets"
    if key == ("gate",) and isinstance(value, list):
        return "one table: write [gate], with one bracket"
    if key == ("gate", "rules") and isinstance(value, Mapping):
        return "a list of tables: write [[gate.rules]], with two brackets"
    if key[:2] == ("gate", "rules") and len(key) < 4 and isinstance(value, str):
        return f"a table: write {_write_rules(value)}"
    return ""


def _write_rules(rule: Any) -> str:
    """Return the entry `rules` of a gate with one rule, as it stands in a plan."""
    return f"rules = [{{ rule = {format_value(rule)} }}]"


def _format_hint(value: Any, choices: str) -> str:
    """Return which of the choices that pydantic lists a mistyped one may be, or nothing."""
    words = [word.strip("'") for word in choices.replace(" or ", ", ").split(", ")]
    return suggest_name(value, words) if isinstance(value, str) else ""


def _describe_expected(key: PlanKey) -> str:
    """Return "expected" and the description of a key's value, or how it is written."""
    if key == ("gate", "rules"):
        return f"write for example {_write_rules('not-worse')}"
    for table in _list_tables(key[:-1]):
        if key[-1] in (hints := _get_annotations(table)):
            for extra in getattr(hints[str(key[-1])], "__metadata__", ()):
                if text := getattr(extra, "description", None):
                    return f"expected {text[0].lower()}{text[1:].rstrip('.')}"
    return "expected another type of value"


def _describe_unknown(key: PlanKey, data: Mapping[str, Any]) -> str:
    name, around = str(key[-1]), key[:-1]
    tables = _list_tables(around)
    known_keys = sorted({field for table in tables for field in _get_annotations(table)})
    if name in known_keys:
        rule: Any = data
        for part in around:
            rule = rule[part]
        return f"not a key of rule {format_value(rule.get('rule'))}"
    if key == ("gate", "rule"):
        return f"unknown key here; write {_write_rules(data['gate']['rule'])}, with the rule's other keys in the braces"
    if around == ("gate",) and any(name in _get_annotations(table) for table in _list_tables(("gate", "rules"))):
        return f"unknown key here; {name} belongs in a rule: rules = [{{ rule = …, {name} = … }}]"
    if elsewhere := _find_home(name):
        return f"unknown key here; {name} belongs {elsewhere}"
    return f"unknown key; {suggest_nearest(name, known_keys, 'keys')}"


@cache
def _find_home(name: str) -> str | None:
    """Return text on the table that a misplaced key belongs to, or None unless exactly one table has such a key."""
    if name in _get_annotations(PlanKeys):
        return "at the top, before the first [table]"
    homes = [
        home
        for home, key in (("in [[test_set]]", ("test_set",)), ("in [gate]", ("gate",)), ("in [report]", ("report",)))
        for table in _list_tables(key)
        if name in _get_annotations(table)
    ]
    return homes[0] if len(homes) == 1 else None


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
