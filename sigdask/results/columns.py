"""Columns of results: the type of each, records as columns and back, and faults of records.

`schema.json` declares each field once: its name, its type and its meaning. A column of a table of results is named by
the path of its values in the JSON of a result, such as `interval.low`, `p_interval.0` or `checks.sign test.p_value`.
`internal.json` declares the columns that the JSON lacks, because texts are made from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sigdask.counts.fields import Bools, Integers
from sigdask.counts.texts import Texts
from sigdask.counts.texts import join_columns as join_texts

Rows = slice | Integers


Column = NDArray[Any] | Texts


Columns = dict[str, Any]
"""Columns of equal length, arrays or encoded texts, by their paths in the JSON of results."""


def encode(texts: Iterable[str], codes: ArrayLike | None = None) -> Texts:
    """Return a column of texts, or of the text at each of some places; few are distinct, such as names or reasons.

    Half surrogate pairs in names, which Arrow does not hold, are escaped.
    """
    places: dict[str, int] = {}
    rows = np.array([places.setdefault(text, len(places)) for text in texts], np.int64)
    distinct = Texts.from_values(text.encode("utf-8", "backslashreplace").decode() for text in places)
    return distinct.encode()[rows if codes is None else rows[np.asarray(codes, np.int64)]]


def repeat(text: str, n: int) -> Texts:
    """Return a column with one text in all rows."""
    return encode([text], np.zeros(n, np.int64))


def fill(column: Texts, rows: Bools, text: str) -> Texts:
    """Return a column with one text in some rows."""
    return encode([*column.levels, text], np.where(rows, len(column.levels), column.codes))


def take_rows(columns: Columns, rows: Rows) -> Columns:
    """Return some rows of all columns."""
    return {path: column[rows] for path, column in columns.items()}


def join_columns(groups: Sequence[Columns]) -> Columns:
    """Return the rows of several groups that have the same columns, one after the other; none without groups."""
    columns = {path: [group[path] for group in groups] for path in (groups[0] if groups else ())}
    return {
        path: join_texts(parts) if isinstance(parts[0], Texts) else np.concatenate(parts)
        for path, parts in columns.items()
    }


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the items: those with a given value in a grouping column."""

    column: str
    value: str


UNADJUSTED = "unadjusted"
"""Name of the p of a single comparison next to that of a family."""


def pluralize(unit: str, n: int = 2) -> str:
    """Return a unit's name, plural unless `n` is 1; names that are no words become "unit" or "units"."""
    name = unit if unit.isalpha() and not unit.endswith("s") else "unit"
    return name if n == 1 else f"{name}s"


BCA, PERCENTILE, TANGO, INVERSION, NORMAL = "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal"
RECIPE = "recipe-t"
METHODS = ("", BCA, PERCENTILE, TANGO, INVERSION, NORMAL, RECIPE)
"""Names of interval methods, by code."""

KEYED = {"checks": "name", "tests": "name", "dependence": "column"}
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


@cache
def get_type(path: str) -> str:
    """Return the JSON type of a column, empty if there is no such column."""
    group, _, rest = path.partition(".")
    return _list_types().get(f"{group}.*.{rest.rpartition('.')[2]}" if group in KEYED else path, "")


@cache
def _list_types() -> dict[str, str]:
    internal = json.loads(files("sigdask.results").joinpath("internal.json").read_text("utf-8"))
    kinds = {path: column["type"] for path, column in internal.items()}
    return kinds | {path: kind for path, kind, _ in _iter_leaves("", load_schema()["$defs"]["result"])}


@cache
def get_frame_columns() -> dict[str, str]:
    """Return the names of the columns of data frames, with the paths of their values; `*` stands for a test's name."""
    return {name: path for path, _, name in _iter_leaves("", load_schema()["$defs"]["result"]) if name}


def _iter_leaves(path: str, schema: Schema) -> Iterator[tuple[str, str, str]]:
    """Yield the path of each column, its JSON type and its name in data frames, which is empty if these lack it."""
    schema, kind, _ = resolve(schema)
    if kind == "object":
        for name, inner in schema["properties"].items():
            yield from _iter_leaves(join_path(path, name), inner)
    elif kind == "array" and path not in LEFT_OUT:
        names = schema.get("columns", [""] * schema.get("maxItems", 0))
        for k, name in enumerate(names) if names else [("*", "")]:
            yield from _iter_leaves(join_path(path, k), {"column": name, **schema["items"]})
    elif kind != "array":
        yield path, kind, schema.get("column", "")


def join_path(path: str, name: object) -> str:
    """Return the path of a member."""
    return f"{path}.{name}" if path else str(name)


def build_column(kind: str, values: Sequence[Any]) -> Column:
    """Return a column of a JSON type from values, in which None stands for none."""
    empty = EMPTY_VALUES[kind]
    filled = [empty if value is None else value for value in values]
    return encode(filled) if kind == "string" else np.array(filled, DTYPES[kind])


ENDS: Mapping[str | int, float] = {0: -np.inf, 1: np.inf, "low": -np.inf, "high": np.inf}
"""Ends of intervals that are null."""


def flatten(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values within a JSON value at a path that are not null, with the paths of their columns."""
    if path in LEFT_OUT:
        return
    if path in KEYED:
        value = {entry[KEYED[path]]: entry for entry in value}
    if isinstance(value, dict | list | tuple):
        for name, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flatten(join_path(path, name), ENDS.get(name) if member is None else member)
    elif value is not None:
        yield path, value


BOUNDS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
    "minItems": "min_length", "maxItems": "max_length", "minLength": "min_length",
}  # fmt: skip
"""Bounds in the schema, with their names in pydantic."""

PLAIN_VALUES: Mapping[str, Any] = {
    "number": {"type": "float", "allow_inf_nan": False},
    "integer": {"type": "int", "ge": -(2**63), "le": 2**63 - 1},
    "boolean": {"type": "bool"},
    "string": {"type": "str"},
}
"""Schemas of pydantic for JSON types. Columns hold finite numbers and integers of 64 bits."""


def find_fault(document: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the first value that the schema of results does not allow, or None.

    Unknown keys are skipped, as in files of other versions.

    Examples
    --------
    >>> find_fault({"sigdask": "0.4.0", "schema_version": 2})
    'schema_version: Input should be 1'
    """
    from pydantic_core import ValidationError  # which takes a tenth of a second

    try:
        _build_validator().validate_python(document, strict=True)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    if (document.get("options") or document)["alpha"] != document["alpha"]:
        return f"alpha is {document['alpha']}, but not in the options"
    for group, number, row in ((g, k, row) for g in ("results", "together") for k, row in enumerate(document[g], 1)):
        values = dict(flatten("", row))
        if row["a"] == row["b"]:
            return f"{group} {number}: a and b are {row['a']!r}"
        for low, high in load_schema()["ordered"]:
            if values.get(low, -np.inf) > values.get(high, np.inf):
                return f"{group} {number}: {low} is {values[low]}, above {high}, {values[high]}"
    return None


@cache
def _build_validator() -> Any:
    from pydantic_core import SchemaValidator

    return SchemaValidator(_convert(load_schema()))


def _convert(schema: Schema) -> Any:
    """Return a JSON schema as pydantic has it."""
    schema, kind, is_nullable = resolve(schema)
    converted: dict[str, Any]
    if "enum" in schema or "const" in schema:
        converted = {"type": "literal", "expected": schema.get("enum") or [schema["const"]]}
    elif "properties" in schema:
        required = schema.get("required", ())
        fields = {
            name: {"type": "typed-dict-field", "required": name in required, "schema": _convert(member)}
            for name, member in schema["properties"].items()
        }
        converted = {"type": "typed-dict", "fields": fields}
    elif kind == "object":
        converted = {"type": "dict", "values_schema": _convert(schema["additionalProperties"])}
    elif kind == "array":
        converted = {"type": "list", "items_schema": _convert(schema["items"])}
    else:
        converted = PLAIN_VALUES[kind]
    converted = converted | {name: schema[key] for key, name in BOUNDS.items() if key in schema}
    return {"type": "nullable", "schema": converted} if is_nullable else converted
