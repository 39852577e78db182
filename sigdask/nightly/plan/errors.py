"""Error messages about plans: the key, what was found and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from sigdask.errors import InputError, SeveralError
from sigdask.nightly.plan.model import (
    BaselineKeys,
    Gate,
    NonInferiorKeys,
    NotWorseKeys,
    PlanKeys,
    ReportFiles,
    TestSetKeys,
)
from sigdask.text import make_printable, redact, suggest_name

PlanKey = tuple[str | int, ...]
_T = TypeVar("_T")

TABLES: dict[str | int, Any] = {
    "test_set": TestSetKeys, "report": ReportFiles, "gate": Gate, "pairs": BaselineKeys,
    "not-worse": NotWorseKeys, "non-inferior": NonInferiorKeys,
}  # fmt: skip
"""Tables of a plan, by the part of a location that names them."""

MAX_SHOWN = 25
LONGEST = 60
"""Maximum number of characters of a value that are shown."""

EXPECTED = {
    "dataclass_type": "a table",
    "dict_type": "a table",
    "too_short": "at least one",
    "string_pattern_mismatch": "text that is not blank",
    "union_tag_not_found": "another value",
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
        return InputError(texts[0], file=path)
    more = [f"and {len(texts) - MAX_SHOWN} more"] if len(texts) > MAX_SHOWN else []
    return SeveralError(f"{path}: {len(texts)} errors", *(f"  {text}" for text in texts[:MAX_SHOWN] + more))


def format_key(key: PlanKey) -> str:
    """Return a key in the dotted form of TOML.

    Examples
    --------
    >>> format_key(("test_set", 0, "map", "a b"))
    'test_set[0].map."a b"'
    """
    parts = []
    for part in key:
        is_bare = str(part).isascii() and str(part).replace("_", "").replace("-", "").isalnum()
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part if is_bare else format_value(part)}")
    return "".join(parts).removeprefix(".")


def format_value(value: Any) -> str:
    """Return a value from a plan as short text."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a table" if isinstance(value, Mapping) else f"a list of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 200:  # Python refuses to write very long ones
        return "a huge number"
    text = f'"{redact(value)}"' if isinstance(value, str) else str(value)
    return make_printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


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
        location, kind, found = error["loc"], error["type"], error["input"]
        key = _find_key(location, data)
        if kind == "too_short" and found:  # pydantic counts only entries without an error, which is told already
            continue
        if kind == "input":
            yield Complaint(key, error["msg"])
        elif kind == "missing":
            yield Complaint((*key, location[-1]), "missing")
        elif kind == "unexpected_keyword_argument":
            known = _list_keys(location)
            hint = suggest_name(str(key[-1]), known, f"; keys: {', '.join(known)}")
            yield Complaint(key, f"unknown key{hint}")
        else:
            yield Complaint(key, f"found {format_value(found)}, expected {_describe_expected(key, error)}")


def _find_key(location: Sequence[str | int], data: Any) -> PlanKey:
    """Return the plan's key for a location in pydantic's error, which also names the members of unions."""
    key: list[str | int] = []
    for part in location:
        try:
            data = data[part]
        except (LookupError, TypeError):  # a member of a union, or a missing key
            continue
        key.append(part)
    return tuple(key)


def _list_keys(location: Sequence[str | int]) -> list[str]:
    """Return the keys of the table in which a location lies."""
    table = next((TABLES[part] for part in reversed(location[:-1]) if part in TABLES), PlanKeys)
    return sorted(f.name for f in fields(table))


def _describe_expected(key: PlanKey, error: Mapping[str, Any]) -> str:
    """Return what was expected, in words that follow "expected"."""
    kind, found, name = error["type"], error["input"], format_key(key)
    if kind in {"tuple_type", "list_type"} and isinstance(found, Mapping):
        return f"a list of tables: write [[{name}]], with two brackets"
    if kind == "dataclass_type" and isinstance(found, (list, tuple)):
        return f"a table: write [{name}], with one bracket"
    if key[:2] == ("gate", "rules") and kind.startswith("union_tag"):
        return 'a table such as { rule = "not-worse" }'
    context = error.get("ctx", {})
    expected = str(context.get("expected") or context.get("expected_tags") or "")
    words = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
    hint = suggest_name(str(found), words) if expected and isinstance(found, str) else ""
    text = error["msg"].removeprefix("Input should be ").removeprefix("Input should ")
    return EXPECTED.get(kind, f"{text[0].lower()}{text[1:]}{hint}")
