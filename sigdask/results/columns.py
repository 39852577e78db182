"""Columns of results: texts as codes, the type of each, records as columns and back, and faults of records.

`schema.json` declares each field once: its name, its type and its meaning. A column of a table of results is named by
the path of its values in the JSON of a result, such as `interval.low`, `p_interval.0` or `checks.sign test.p_value`.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Integers

Value = TypeVar("Value", bound=Hashable)
Rows = slice | Integers
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn(Generic[Value]):
    """A column with few distinct values, such as names, units or metrics: a dictionary array of Arrow.

    Attributes
    ----------
    codes : int32 array, shape (n,)
        The place of each row's value.
    values : tuple
        The values.
    """

    codes: NDArray[np.int32]
    values: tuple[Value, ...]

    @staticmethod
    def from_values(values: Iterable[Value]) -> CodedColumn[Value]:
        """Build a column from each row's value, with distinct values in order of appearance."""
        codes_by_value: dict[Value, int] = {}
        codes = np.array([codes_by_value.setdefault(value, len(codes_by_value)) for value in values], np.int32)
        return CodedColumn(codes, tuple(codes_by_value))

    @staticmethod
    def from_constant(value: Value, n: int) -> CodedColumn[Value]:
        """Build a column with one value in all rows; its codes are read-only and take no memory."""
        return CodedColumn(np.broadcast_to(np.int32(0), n), (value,))

    @staticmethod
    def join(columns: Sequence[CodedColumn[Value]]) -> CodedColumn[Value]:
        """Return the values of several columns one after the other."""
        codes_by_value: dict[Value, int] = {}
        codes = [
            np.array([codes_by_value.setdefault(v, len(codes_by_value)) for v in column.values], np.int32)[column.codes]
            for column in columns
        ]
        return CodedColumn(np.concatenate(codes), tuple(codes_by_value))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def to_list(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]

    def take(self, rows: Rows | Bools) -> CodedColumn[Value]:
        """Return the column of some rows."""
        return CodedColumn(self.codes[rows], self.values)

    def map(self, convert: Callable[[Value], Any]) -> CodedColumn[Any]:
        """Return the column with each distinct value converted."""
        return CodedColumn.join([CodedColumn(self.codes, tuple(map(convert, self.values)))])

    def fill(self, rows: Bools, value: Value) -> CodedColumn[Value]:
        """Return the column with one value in some rows."""
        codes = np.where(rows, len(self.values), self.codes).astype(np.int32)
        return CodedColumn.join([CodedColumn(codes, (*self.values, value))])

    def find(self, condition: Callable[[Value], bool]) -> Bools:
        """Return whether a condition holds for the value of each row."""
        return np.array([condition(value) for value in self.values], np.bool_)[self.codes]


Column = NDArray[Any] | CodedColumn[Any]


Columns = dict[str, Any]
"""Columns of equal length, arrays or coded, by their paths in the JSON of results."""


def take_rows(columns: Columns, rows: Rows) -> Columns:
    """Return some rows of all columns."""
    return {
        path: column.take(rows) if isinstance(column, CodedColumn) else column[rows] for path, column in columns.items()
    }


def join_columns(groups: Sequence[Columns]) -> Columns:
    """Return the rows of several groups that have the same columns, one after the other; none without groups."""
    columns = {path: [group[path] for group in groups] for path in (groups[0] if groups else ())}
    return {
        path: CodedColumn.join(parts) if isinstance(parts[0], CodedColumn) else np.concatenate(parts)
        for path, parts in columns.items()
    }


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the items: those with a given value in a grouping column."""

    column: str
    value: str


EMPTY = "(empty)"
"""Name of the subset of items without a value."""

UNADJUSTED = "unadjusted"
"""Name of the p of a single comparison next to that of a family."""


def format_deciding(n_deciding: int, n_units: int, unit: str) -> str:
    """Return a phrase on how few units decide.

    Examples
    --------
    >>> format_deciding(2, 20, "item"), format_deciding(1, 1200, "topic")
    ('2 of 20 items decide', '1 of 1,200 topics decides')
    """
    return f"{n_deciding:,} of {n_units:,} {pluralize(unit, n_units)} decide{'s' if n_deciding == 1 else ''}"


def pluralize(unit: str, n: int = 2) -> str:
    """Return a unit's name, plural unless `n` is 1; names that are no words become "unit" or "units"."""
    name = unit if unit.isalpha() and not unit.endswith("s") else "unit"
    return name if n == 1 else f"{name}s"


BCA, PERCENTILE, TANGO, INVERSION, NORMAL = "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal"
RECIPE = "recipe-t"
METHODS = ("", BCA, PERCENTILE, TANGO, INVERSION, NORMAL, RECIPE)
"""Names of interval methods, by code."""

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
    return {path: kind for path, kind, _ in _iter_leaves("", get_result_schema())} | INTERNAL | of_groups


@cache
def get_frame_columns() -> dict[str, str]:
    """Return the names of the columns of data frames, with the paths of their values; `*` stands for a test's name."""
    return {name: path for path, _, name in _iter_leaves("", get_result_schema()) if name}


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
    return CodedColumn.from_values(filled) if kind == "string" else np.array(filled, DTYPES[kind])


def flatten(path: str, schema: Schema, values: Sequence[Any]) -> Iterator[tuple[str, Column]]:
    """Yield the columns of values, some of which may be None, under a path."""
    schema, kind, _ = resolve(schema)
    if kind == "object":
        for name, inner in schema["properties"].items():
            yield from flatten(join_path(path, name), inner, [None if v is None else _get(v, name) for v in values])
    elif path in KEYED:
        rows = [{str(entry[KEYED[path]]): entry for entry in v or ()} for v in values]
        for name in dict.fromkeys(name for row in rows for name in row):
            yield from flatten(f"{path}.{name}", schema["items"], [row.get(name) for row in rows])
    elif kind == "array" and path not in LEFT_OUT:
        for k in range(schema["maxItems"]):
            ends = [None if v is None else _get(dict(enumerate(v)), k) for v in values]
            yield from flatten(f"{path}.{k}", schema["items"], ends)
    elif kind != "array" and any(value is not None for value in values):
        yield path, build_column(kind, values)


ENDS: Mapping[str | int, float] = {0: -np.inf, 1: np.inf, "low": -np.inf, "high": np.inf}
"""Ends of intervals that are null."""


def _get(members: Mapping[Any, Any], key: str | int) -> Any:
    return ENDS.get(key) if members.get(key) is None else members[key]


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
