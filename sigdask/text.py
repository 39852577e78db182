"""Formatting of values as text: JSON, durations, counts, and lists of names that may be long."""

from __future__ import annotations

import json
import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any

import orjson

TIME_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
"""Seconds and name of a unit of time, and of the one below it."""

PLAIN_TYPES = (str, int, bool, type(None))


def to_plain(value: Any, *, exact: bool = False) -> Any:
    """Convert a value to JSON types: dataclasses to objects, tuples to lists, NaN and infinity to null.

    Parameters
    ----------
    value : object
        Dataclasses, mappings, lists, tuples and single values.
    exact : bool
        Keep NaN and infinity, for what is read back as it was and by this program alone.

    Examples
    --------
    >>> to_plain({"limits": (0.5, float("inf"))}), to_plain(float("nan"))
    ({'limits': [0.5, None]}, None)
    """
    if type(value) in PLAIN_TYPES:
        return value
    if isinstance(value, float):
        return float(value) if exact or math.isfinite(value) else None
    if isinstance(value, (tuple, list)):
        return [to_plain(item, exact=exact) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item, exact=exact) for key, item in value.items()}
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name), exact=exact) for f in fields(value)}
    return value


def as_json(value: Any, *, lines: bool = True, default: Callable[[Any], Any] | None = None) -> str:
    """Return the readable JSON text of a value, with null for NaN and infinity.

    Parameters
    ----------
    value : object
        What `to_plain` takes.
    lines : bool
        Whether each member has a line of its own; else all is on one.
    default : callable, optional
        What is written of a value that JSON does not have; without it such a value is an error.

    Examples
    --------
    >>> as_json({"p": float("nan"), "system": "ä"}, lines=False)
    '{"p": null, "system": "ä"}'
    """
    return json.dumps(
        to_plain(value), indent=1 if lines else None, ensure_ascii=False, allow_nan=False, default=default
    )


def as_json_line(value: Any) -> str:
    """Return the shortest JSON text of a value, on one line; NaN and infinity are null.

    Examples
    --------
    >>> as_json_line({"p": (0.5, float("nan")), "system": "ä"})
    '{"p":[0.5,null],"system":"ä"}'
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError:  # half a surrogate pair in a name, or an integer beyond 64 bits
        return json.dumps(to_plain(value), separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class JsonMembers:
    """A JSON array whose members come as a stream of texts, each of one or more members separated by commas."""

    parts: Iterable[str]


def iter_json(members: Mapping[str, Any]) -> Iterator[str]:
    r"""Yield the JSON text of an object in parts, with each member and each value of an array on its own line.

    Parameters
    ----------
    members : mapping of str to object
        What `to_plain` takes, or `JsonMembers`.

    Examples
    --------
    >>> print("".join(iter_json({"seed": 0, "results": JsonMembers(["1,\n2", "3"]), "none": []})))
    {
    "seed": 0,
    "results": [
    1,
    2,
    3
    ],
    "none": []
    }
    """
    start = "{\n"
    for key, value in members.items():
        yield f"{start}{as_json_line(key)}: "
        start = ",\n"
        if isinstance(value, JsonMembers):
            yield from _iter_array(value.parts)
        elif isinstance(value, (list, tuple)):
            yield from _iter_array(map(as_json_line, value))
        else:
            yield as_json_line(value)
    yield "\n}"


def _iter_array(parts: Iterable[str]) -> Iterator[str]:
    start = "[\n"
    for part in parts:
        yield f"{start}{part}"
        start = ",\n"
    yield "[]" if start == "[\n" else "\n]"


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units.

    Examples
    --------
    >>> format_duration(0.4), format_duration(5), format_duration(65), format_duration(7265), format_duration(200_000)
    ('< 1 s', '5 s', '1 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 1:
        return "< 1 s"
    n_seconds = round(seconds)
    for size, name, smaller, lesser in TIME_UNITS:
        if n_seconds >= size:
            return f"{n_seconds // size} {name} {n_seconds % size // smaller} {lesser}"
    return f"{n_seconds} s"


def format_time(seconds: float) -> str:
    """Return a time in seconds as local date and time."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def format_list(names: Sequence[str], limit: int = 3, separator: str = ", ") -> str:
    """Return a text of the first names, followed by the number of names left out.

    Examples
    --------
    >>> format_list(["a", "b", "c"]), format_list(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b, c and 2 more')
    """
    suffix = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return separator.join(names[:limit]) + suffix


def format_count(n: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural.

    Examples
    --------
    >>> format_count(1, "item"), format_count(0, "trial"), format_count(1234, "comparison")
    ('1 item', '0 trials', '1,234 comparisons')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def describe_items(items: Sequence[str], noun: str = "item") -> str:
    """Return a text with the number of items and the names of the first ones.

    Examples
    --------
    >>> describe_items(["a", "b", "c", "d", "e"])
    "5 items ('a', 'b', 'c' and 2 more)"
    """
    return f"{format_count(len(items), noun)} ({format_list([*map(repr, items)])})"


def make_printable(text: str, keep: str = "") -> str:
    r"""Return a text with replacement characters for those that are neither printable nor blank, nor in `keep`.

    Examples
    --------
    >>> make_printable("a\x1b[31m", keep="\n").isprintable()
    True
    """
    if _remove_characters(keep, text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def escape_json(text: str) -> str:
    r"""Return JSON text in which characters that a terminal might interpret are escaped; its value is the same.

    Examples
    --------
    >>> print(escape_json('"a\x9b1m"'))
    "a\u009b1m"
    """
    if _remove_characters("\n", text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c == "\n" else _escape_character(c) for c in text)


def _remove_characters(characters: str, text: str) -> str:
    for c in characters:
        text = text.replace(c, "")
    return text


def _is_harmless(c: str) -> bool:
    return c.isprintable() or (c.isspace() and c >= "\xa0" and c not in "\u2028\u2029")


def _escape_character(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))


def value_from_json(kind: Any, value: Any) -> Any:
    """Return the value of type `kind` that `to_plain` converted to the given JSON value."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in {typing.Union, types.UnionType}:
        return value_from_json(next(a for a in arguments if a is not type(None)), value)
    if isinstance(kind, type) and is_dataclass(kind):
        known: dict[str, Any] = _types(kind)
        return kind(**{key: value_from_json(known[key], item) for key, item in value.items() if key in known})
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(value_from_json(k, item) for k, item in zip(kinds, value, strict=True))
    return value


@cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
