"""How values are written wherever they are: as JSON, durations, and lists of names that may be long."""

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

UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
"""Seconds and name of a unit of time, and of the one below it."""

PLAIN = (str, int, bool, type(None))


def plain(value: Any, *, exact: bool = False) -> Any:
    """Make a value of what JSON has: dataclasses become objects, tuples lists, NaN and infinity null.

    Parameters
    ----------
    value : object
        Dataclasses, mappings, lists, tuples and single values.
    exact : bool
        Keep NaN and infinity, for what is read back as it was and by this program alone.

    Examples
    --------
    >>> plain({"limits": (0.5, float("inf"))}), plain(float("nan"))
    ({'limits': [0.5, None]}, None)
    """
    if type(value) in PLAIN:
        return value
    if isinstance(value, float):
        return float(value) if exact or math.isfinite(value) else None
    if isinstance(value, (tuple, list)):
        return [plain(item, exact=exact) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, exact=exact) for key, item in value.items()}
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name), exact=exact) for f in fields(value)}
    return value


def as_json(value: Any, *, lines: bool = True, other: Callable[[Any], Any] | None = None) -> str:
    """Return the JSON text of a value: readable, and never NaN or infinity, which JSON does not have.

    Parameters
    ----------
    value : object
        What `plain` takes.
    lines : bool
        Whether each member has a line of its own; else all is on one.
    other : callable, optional
        What is written of a value that JSON does not have; without it such a value is an error.

    Examples
    --------
    >>> as_json({"p": float("nan"), "system": "ä"}, lines=False)
    '{"p": null, "system": "ä"}'
    """
    return json.dumps(plain(value), indent=1 if lines else None, ensure_ascii=False, allow_nan=False, default=other)


def as_line(value: Any) -> str:
    """Return the JSON text of a value, as short as can be; NaN and infinity are null.

    Examples
    --------
    >>> as_line({"p": (0.5, float("nan")), "system": "ä"})
    '{"p":[0.5,null],"system":"ä"}'
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    except TypeError:  # half a surrogate pair in a name, or an integer beyond 64 bits
        return json.dumps(plain(value), separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class JsonMembers:
    """The members of a JSON array as they are made: texts of one or more, with commas and ends of lines between."""

    parts: Iterable[str]


def json_parts(members: Mapping[str, Any]) -> Iterator[str]:
    r"""Yield the JSON text of an object in parts: a member on each line, and each value of an array.

    Parameters
    ----------
    members : mapping of str to object
        What `plain` takes, or `JsonMembers`.

    Examples
    --------
    >>> print("".join(json_parts({"seed": 0, "results": JsonMembers(["1,\n2", "3"]), "none": []})))
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
        yield f"{start}{as_line(key)}: "
        start = ",\n"
        if isinstance(value, JsonMembers):
            yield from _array(value.parts)
        elif isinstance(value, (list, tuple)):
            yield from _array(map(as_line, value))
        else:
            yield as_line(value)
    yield "\n}"


def _array(parts: Iterable[str]) -> Iterator[str]:
    start = "[\n"
    for part in parts:
        yield f"{start}{part}"
        start = ",\n"
    yield "[]" if start == "[\n" else "\n]"


def duration(seconds: float) -> str:
    """Write a duration in its two largest units.

    Examples
    --------
    >>> duration(0.4), duration(5), duration(65), duration(7265), duration(200_000)
    ('< 1 s', '5 s', '1 min 5 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 1:
        return "< 1 s"
    whole = round(seconds)
    for size, name, smaller, lesser in UNITS:
        if whole >= size:
            return f"{whole // size} {name} {whole % size // smaller} {lesser}"
    return f"{whole} s"


def clock(seconds: float) -> str:
    """Write a time in local time."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M:%S}"


def listed(names: Sequence[str], most: int = 3, between: str = ", ") -> str:
    """Name the first of many.

    Examples
    --------
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c", "d", "e"])
    ('a, b, c', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return between.join(names[:most]) + more


def count_noun(n: int, noun: str) -> str:
    """Write a number and a noun in the singular or plural.

    Examples
    --------
    >>> count_noun(1, "item"), count_noun(0, "trial"), count_noun(1234, "comparison")
    ('1 item', '0 trials', '1,234 comparisons')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def some(items: Sequence[str], noun: str = "item") -> str:
    """Count things and name the first of them.

    Examples
    --------
    >>> some(["a", "b", "c", "d", "e"])
    "5 items ('a', 'b', 'c' and 2 more)"
    """
    return f"{count_noun(len(items), noun)} ({listed([*map(repr, items)])})"


def printable(text: str, keep: str = "") -> str:
    r"""Replace what is no printable character and no blank, but for those to keep.

    Examples
    --------
    >>> printable("a\x1b[31m", keep="\n").isprintable()
    True
    """
    if _without(keep, text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)


def printable_json(text: str) -> str:
    r"""Escape in JSON what a terminal might take as a command; its meaning stays.

    Examples
    --------
    >>> print(printable_json('"a\x9b1m"'))
    "a\u009b1m"
    """
    if _without("\n", text).isprintable():
        return text
    return "".join(c if _is_harmless(c) or c == "\n" else _escaped(c) for c in text)


def _without(some: str, text: str) -> str:
    for c in some:
        text = text.replace(c, "")
    return text


def _is_harmless(c: str) -> bool:
    return c.isprintable() or (c.isspace() and c >= "\xa0" and c not in "\u2028\u2029")


def _escaped(c: str) -> str:
    units = c.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))


def value_from_json(kind: Any, value: Any) -> Any:
    """Return a value of an annotated type (`kind`) from the JSON that `plain` made of it."""
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
