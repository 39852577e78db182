"""The schema of results. `schema.json` declares each field once: its name, its type and its meaning.

A column of a table of results is named by the path of its values in the JSON of a result, such as `interval.low`,
`p_interval.0` or `checks.sign test.p_value`. This module tells the type of each, and turns rows of columns into records
(the JSON of results as dictionaries) and back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sigdask.results.columns import CodedColumn, Column

INTERNAL = {
    "step": "number", "seen_with": "integer", "undefined_a": "number", "undefined_b": "number",
    "kept_notes": "string", "interval.why": "string", "interval.skewness": "number",
    "deciding.n_deciding": "integer", "deciding.reverses": "boolean", "origins.seed": "integer",
    **{f"origins.{name}": "string" for name in ("method", "units", "data_a", "data_b", "code", "adjust", "members",
                                                "family", "version")},
    "store.comparison": "integer", "store.complete": "boolean",
}  # fmt: skip
"""Columns from which texts are made, and which the JSON of results lacks, with their types.

`step` is the resolution of scores: 0 if they are exact, negative if some differ by
less than the resolution. `seen_with` is the number of trials of an earlier p with fewer trials. `undefined_a` and
`undefined_b` are scores used in place of 0/0. `kept_notes` has the notes of results read from a file, as JSON.
`interval.why` says why there is no interval, and `interval.skewness` is that of the units' contributions.
`deciding.n_deciding` are the fewest units without which the sign (`deciding.reverses`) or the verdict changes.
`origins` has the inputs of p: the seed, the method with its limit in seconds after a colon, and digests of the ids of
units, of both systems' contributions, of the metric's code, and of the family.
`store` has what only the store of a plan needs: the number of the comparison that gives p, and whether all requested
trials were counted.
"""

KEYED = {"checks": "name", "tests": "name", "dependence": "column", "beside": "unit"}
"""Fields that are lists of objects, with the key of an object that names its columns."""

LEFT_OUT = ("notes", "warnings", "margin.verdicts")
"""Lists that have no columns."""

EMPTY_VALUES: Mapping[str, Any] = {"number": np.nan, "integer": 0, "boolean": False, "string": ""}
DTYPES = {"number": np.float64, "integer": np.int64, "boolean": np.bool_}

Schema = Mapping[str, Any]


def read_schema() -> str:
    """Return the JSON schema of results as text."""
    return files("sigdask.results").joinpath("schema.json").read_text("utf-8")


@cache
def load_schema() -> dict[str, Any]:
    """Return the JSON schema of results."""
    return dict(json.loads(read_schema()))


def resolve(schema: Schema) -> tuple[Schema, str, bool]:
    """Return a schema without references and alternatives, its JSON type, and whether values may be null."""
    is_nullable = False
    while "$ref" in schema or "anyOf" in schema:
        is_nullable |= "anyOf" in schema
        schema = schema["anyOf"][0] if "anyOf" in schema else load_schema()["$defs"][schema["$ref"].split("/")[-1]]
    types = schema.get("type", "string")
    kinds = [types] if isinstance(types, str) else types
    return schema, kinds[0], is_nullable or "null" in kinds


def get_result_schema() -> Schema:
    """Return the schema of one result."""
    schema: Schema = load_schema()["$defs"]["result"]
    return schema


def get_type(path: str) -> str:
    """Return the JSON type of a column; KeyError if there is no such column."""
    group, _, rest = path.partition(".")
    return _list_types()[f"{group}.*.{rest.rpartition('.')[2]}" if group in KEYED else path]


@cache
def _list_types() -> dict[str, str]:
    of_groups = {"checks.*.fit": "number", "checks.*.why": "string", "tests.*.n_dropped": "integer"}
    return dict(_iter_types("", get_result_schema())) | INTERNAL | of_groups


def _iter_types(path: str, schema: Schema) -> Iterator[tuple[str, str]]:
    schema, kind, _ = resolve(schema)
    if kind == "object":
        for name, inner in schema["properties"].items():
            yield from _iter_types(_join(path, name), inner)
    elif kind == "array" and path not in LEFT_OUT:
        for k in range(schema["maxItems"]) if "maxItems" in schema else "*":
            yield from _iter_types(_join(path, k), schema["items"])
    elif kind != "array":
        yield path, kind


def _join(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


def build_column(kind: str, values: Sequence[Any]) -> Column:
    """Return a column of a JSON type from values, in which None stands for none."""
    empty = EMPTY_VALUES[kind]
    filled = [empty if value is None else value for value in values]
    return CodedColumn.from_values(filled) if kind == "string" else np.array(filled, DTYPES[kind])


def flatten(records: Sequence[Any]) -> dict[str, Column]:
    """Return the columns of records."""
    return dict(_flatten("", get_result_schema(), records))


def _flatten(path: str, schema: Schema, values: Sequence[Any]) -> Iterator[tuple[str, Column]]:
    """Yield the columns of values, some of which may be None, under a path."""
    schema, kind, is_nullable = resolve(schema)
    if kind == "object":
        for name, inner in schema["properties"].items():
            yield from _flatten(_join(path, name), inner, [None if v is None else v.get(name) for v in values])
    elif path in KEYED:
        rows = [{str(entry[KEYED[path]]): entry for entry in v or ()} for v in values]
        for name in dict.fromkeys(name for row in rows for name in row):
            yield from _flatten(f"{path}.{name}", schema["items"], [row.get(name) for row in rows])
    elif kind == "array" and path not in LEFT_OUT:
        for k in range(schema["maxItems"]):
            limit = np.inf if k else -np.inf  # an end that is null is infinite
            ends = [None if v is None else limit if v[k] is None and is_nullable else v[k] for v in values]
            yield from _flatten(f"{path}.{k}", schema["items"], ends)
    elif kind != "array" and any(value is not None for value in values):
        yield path, build_column(kind, values)


def nest(
    n: int,
    given: Mapping[str, list[Any]],
    presence: Mapping[str, Sequence[bool]],
    keys: Mapping[str, Sequence[str]],
    read: Callable[[str, str, bool], list[Any]],
) -> list[dict[str, Any]]:
    """Return records of `n` rows.

    Parameters
    ----------
    n : int
        Number of rows.
    given : mapping of str to list
        Values by path that no column has.
    presence : mapping of str to sequence of bool
        Whether each row has an object, by path; all have the others.
    keys : mapping of str to sequence of str
        Names of the entries of lists of objects.
    read : callable
        Function from a column's path, its type and whether it may be null to its values.
    """

    def collect(path: str, schema: Schema) -> list[Any]:
        if path in given:
            return given[path]
        if path in presence and not any(presence[path]):
            return [None] * n
        schema, kind, is_nullable = resolve(schema)
        rows: list[Any]
        if path in keys:
            entries = [collect(f"{path}.{key}", schema["items"]) for key in keys[path]]
            rows = [[entry for entry in row if entry is not None] for row in zip(*entries, strict=True)]
            return rows or [[] for _ in range(n)]
        if kind == "array":
            rows = list(zip(*(collect(f"{path}.{k}", schema["items"]) for k in range(schema["maxItems"])), strict=True))
            return [None if row[0] is None or np.isnan(row[0]) else row for row in rows] if is_nullable else rows
        if kind != "object":
            return read(path, kind, is_nullable)
        columns = [collect(_join(path, name), inner) for name, inner in schema["properties"].items()]
        rows = [dict(zip(schema["properties"], row, strict=True)) for row in zip(*columns, strict=True)]
        pairs = zip(rows, presence[path], strict=True) if path in presence else ()
        return [row if has else None for row, has in pairs] if path in presence else rows

    return collect("", get_result_schema())
