"""Values of annotated types out of what JSON kept of them."""

from __future__ import annotations

import types
import typing
from dataclasses import is_dataclass
from functools import cache
from typing import Any


def made(kind: Any, value: Any) -> Any:
    """Make a value of an annotated type out of what JSON gave."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if value is None or kind is Any:
        return value
    if origin in {typing.Union, types.UnionType}:
        return made(next(a for a in arguments if a is not type(None)), value)
    if isinstance(kind, type) and is_dataclass(kind):
        known: dict[str, Any] = _types(kind)
        return kind(**{key: made(known[key], item) for key, item in value.items() if key in known})
    if origin is tuple:
        kinds = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        return tuple(made(k, item) for k, item in zip(kinds, value, strict=True))
    return value


@cache
def _types(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
