"""Validation of results read from JSON against their schema, so that an error names the key that is wrong."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sigdask.results.schema import load_schema

NAMES: Mapping[type, tuple[str, ...]] = {
    dict: ("object",), list: ("array",), str: ("string",), bool: ("boolean",), type(None): ("null",),
    int: ("integer", "number"), float: ("number",),
}  # fmt: skip
"""Names of JSON types in the schema."""

MAX_NUMBER = {int: 2**63, float: math.inf}
"""Numbers in columns of results are below these."""

BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    "minimum": operator.ge, "maximum": operator.le, "exclusiveMinimum": operator.gt, "exclusiveMaximum": operator.lt,
    "minItems": lambda value, n: len(value) >= n, "maxItems": lambda value, n: len(value) <= n,
    "minProperties": lambda value, n: len(value) >= n,
}  # fmt: skip
"""Bounds in the schema, and how values keep them."""

MAX_CHARACTERS = 80
"""Maximum characters of a wrong value in a message."""


def find_fault(document: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the first value that the schema of results does not allow, or None.

    Unknown keys are skipped, as in files of other versions.

    Examples
    --------
    >>> find_fault({"sigdask": "0.4.0", "schema_version": 2})
    'schema_version = 2: must be 1'
    """
    schema = load_schema()
    return next(_iter_faults("", document, schema, schema["$defs"]), None)


def _iter_faults(path: str, value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a JSON value under a path and with its members."""
    if "$ref" in schema:
        yield from _iter_faults(path, value, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    elif "anyOf" in schema:
        faults = [next(_iter_faults(path, value, option, definitions), None) for option in schema["anyOf"]]
        yield from [str(faults[0])] if all(faults) else []
    elif (expected := _describe_expected(value, schema)) is not None:
        text = repr(value)
        shown = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
        yield f"{path} = {shown}: must be {expected}"
    elif isinstance(value, dict):
        start, known = f"{path}." if path else "", schema.get("properties", {})
        for key, member in value.items():
            if member_schema := known.get(key, schema.get("additionalProperties")):
                yield from _iter_faults(f"{start}{key}", member, member_schema, definitions)
        yield from (f"{start}{key} = nothing: must be given" for key in schema.get("required", ()) if key not in value)
    elif isinstance(value, list) and "items" in schema:
        for k, member in enumerate(value):
            yield from _iter_faults(f"{path}[{k}]", member, schema["items"], definitions)


def _describe_expected(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return what is expected in place of a value, or None if the schema allows it. Its members are not checked."""
    names = schema.get("type", ())
    names = (names,) if isinstance(names, str) else names
    if names and not any(name in names for name in NAMES[type(value)]):
        return " or ".join(names)
    choices = schema.get("enum", (schema["const"],) if "const" in schema else None)
    if choices is not None and value not in choices:
        return f"one of {', '.join(map(repr, choices))}" if len(choices) > 1 else repr(choices[0])
    if type(value) in {int, float} and not (math.isfinite(value) and abs(value) < MAX_NUMBER[type(value)]):
        return "a finite number, or an integer of 63 bits"
    bounds = {key: schema[key] for key in BOUNDS if key in schema and value is not None}
    return next((f"{key} {bound}" for key, bound in bounds.items() if not BOUNDS[key](value, bound)), None)
