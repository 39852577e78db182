"""Tables of results as plain columns, named by where they stand: they are put together, compared and packed alike.

What only some rows have (checks, other units, rules) is a column all the same, with a filling where a row has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.columns.assumptions import Assumptions
from sigdask.results.columns.coded import Coded
from sigdask.results.columns.inputs import InputDigests
from sigdask.results.columns.intervals import Intervals
from sigdask.results.table import AlternativeUnit, CheckResults, ClassicalColumn, StoppedCounts, Table, UnitCorrelation
from sigdask.statistics.classical.names import in_order

Name = tuple[str, ...]
Column = NDArray[Any] | Coded[Any]
Columns = dict[Name, Column]
Rows = NDArray[np.int64]

NOTES: Name = ("notes",)
ORIGINS: Name = ("origins", "all")
ASSUMPTIONS: Name = ("assumptions", "all")
UNNAMED = (
    "alpha", "checks", "dependence", "beside", "stops", "tests", "notes", "intervals", "origins", "assumptions",
    "adjusted",
)  # fmt: skip
"""Fields of a table that are no columns: its level is that of the run, the others are several."""


def columns_of(table: Table) -> Columns:
    """Return the columns of a table."""
    found: Columns = {(f.name,): getattr(table, f.name) for f in fields(table) if f.name not in UNNAMED}
    n = len(table)
    for name, checked in table.checks.items():
        found |= _inside(("checks", name), checked)
        found["checks", name, "kept"] = _sparse(checked.kept, n)
    for hanging in table.dependence:
        own = _inside(("dependence", hanging.column), hanging)
        rows = own.pop(("dependence", hanging.column, "rows"))
        found |= {name: _spread(column, rows, n) for name, column in own.items()}
    for place, other in enumerate(table.beside):
        found |= _inside(("beside", str(place)), other)
    for stops in table.stops:
        found |= _inside(("stops", json.dumps([stops.rule, stops.epsilon, stops.h])), stops)
    for tested in table.tests:
        found |= _inside(("tests", tested.name), tested)
    if table.intervals is not None:
        found |= _inside(("intervals", "all"), table.intervals)
    if table.origins is not None:
        found |= _inside(ORIGINS, table.origins)
    if table.assumptions is not None:
        found |= _inside(ASSUMPTIONS, table.assumptions)
    if table.adjusted is not None:
        found |= _inside(("adjusted", "all"), table.adjusted)
    found[NOTES] = _sparse(table.notes, n)
    return found


def _inside(start: Name, part: Any) -> Columns:
    values = {(*start, f.name): getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray | Coded)}


def _sparse(values: Mapping[int, Any], n: int) -> Coded[Any]:
    """Return a column of what some rows have, None where one has nothing."""
    codes, distinct = np.zeros(n, np.int32), [None, *values.values()]
    codes[list(values)] = np.arange(1, len(distinct))
    return Coded(codes, tuple(distinct))


def _spread(column: Any, rows: Any, n: int) -> Column:
    """Return a column of some rows as one of all."""
    found: NDArray[Any] = _filling("", column, n)
    found[rows] = column
    return found


def table_of(columns: Columns, alpha: float) -> Table:
    """Return the table of columns, at a level of the verdicts."""
    plain = {name[0]: column for name, column in columns.items() if len(name) == 1 and name != NOTES}
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    for name, column in columns.items():
        if len(name) > 1:
            parts.setdefault((name[0], name[1]), {})[name[2]] = column
    grouped: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for (kind, which), own in parts.items():
        grouped.setdefault(kind, []).append((which, own))
    return Table(
        alpha=alpha,
        **plain,  # type: ignore[arg-type]
        checks={name: _checked(own) for name, own in grouped.get("checks", ())},
        dependence=tuple(_hanging(column, own) for column, own in grouped.get("dependence", ())),
        beside=tuple(
            AlternativeUnit(**own) for _, own in sorted(grouped.get("beside", ()), key=lambda each: int(each[0]))
        ),
        stops=tuple(_stops(rule, own) for rule, own in grouped.get("stops", ())),
        tests=_tests(dict(grouped.get("tests", ()))),
        notes=_dense(columns[NOTES]),
        intervals=next((Intervals(**own) for _, own in grouped.get("intervals", ())), None),
        origins=next((InputDigests(**own) for _, own in grouped.get(ORIGINS[0], ())), None),
        assumptions=next((Assumptions(**own) for _, own in grouped.get(ASSUMPTIONS[0], ())), None),
        adjusted=next((AdjustmentDetails(**own) for _, own in grouped.get("adjusted", ())), None),
    )


def _checked(own: dict[str, Any]) -> CheckResults:
    return CheckResults(**{**own, "kept": _dense(own["kept"])})


def _hanging(column: str, own: dict[str, Any]) -> UnitCorrelation:
    rows = np.flatnonzero(own["n_groups"])
    return UnitCorrelation(column, rows, **{name: values[rows] for name, values in own.items()})


def _tests(found: dict[str, dict[str, Any]]) -> tuple[ClassicalColumn, ...]:
    return tuple(ClassicalColumn(name=name, **found[name]) for name in in_order(found))


def _stops(rule: str, own: dict[str, Any]) -> StoppedCounts:
    name, epsilon, h = json.loads(rule)
    return StoppedCounts(rule=name, epsilon=epsilon, h=h, **own)


def _dense(column: Any) -> dict[int, Any]:
    has = np.array([value is not None for value in column.values], np.bool_)[column.codes]
    return {row: column[row] for row in np.flatnonzero(has).tolist()}


def taken(columns: Columns, rows: Rows | slice) -> Columns:
    """Return some rows."""
    return {name: _taken(column, rows) for name, column in columns.items()}


def _taken(column: Column, rows: Rows | slice) -> Column:
    return Coded(column.codes[rows], column.values) if isinstance(column, Coded) else column[rows]


def only(columns: Columns, which: NDArray[np.bool_]) -> Columns:
    """Return the rows that are marked; where these are all, the columns as they are."""
    return columns if which.all() else taken(columns, np.flatnonzero(which))


def size_of(columns: Columns) -> int:
    """Return the number of rows."""
    return len(next(iter(columns.values()), ()))


def joined(several: Sequence[Columns]) -> Columns:
    """Put columns below each other."""
    if len(several) == 1:
        return several[0]
    some = {name: column for own in several for name, column in own.items()}  # one of each name
    return {
        name: _below([own.get(name, _filling(name[-1], column, size_of(own))) for own in several])
        for name, column in some.items()
    }


def _below(parts: Sequence[Any]) -> Column:
    if not isinstance(parts[0], Coded):
        return np.asarray(np.concatenate(parts))
    places: dict[Any, int] = {}
    codes = [_recoded(part, places) for part in parts]
    return Coded(np.concatenate(codes), tuple(places))


def _recoded(column: Coded[Any], places: dict[Any, int]) -> NDArray[np.int32]:
    """Return the codes of a column by the places of values, where new ones are entered."""
    return np.array([places.setdefault(value, len(places)) for value in column.values], np.int32)[column.codes]


def _filling(last: str, like: Column, n: int) -> Any:
    """Return what stands where rows have nothing: no number, no verdict, no words."""
    if isinstance(like, Coded):
        return Coded.same(None if last in {"kept", "notes"} else "", n)
    kinds = {"f": np.nan, "b": False, "i": -1 if like.dtype == np.int8 else 0}
    return np.full(n, kinds[like.dtype.kind], like.dtype)


def same(one: Columns, other: Columns, names: Iterable[Name], rows: Rows, others: Rows) -> NDArray[np.bool_]:
    """Say of rows of one and as many of another whether they are the same by some columns."""
    found = np.ones(len(rows), np.bool_)
    for name in names:
        a, b = _both(one, other, name)
        found &= _equal(_taken(a, rows), _taken(b, others))
    return found


def _both(one: Columns, other: Columns, name: Name) -> tuple[Column, Column]:
    a, b = one.get(name), other.get(name)
    a = _filling(name[-1], b, size_of(one)) if a is None and b is not None else a
    b = _filling(name[-1], a, size_of(other)) if b is None and a is not None else b
    assert a is not None
    assert b is not None
    return a, b


def _equal(a: Any, b: Any) -> NDArray[np.bool_]:
    if isinstance(a, Coded):
        places: dict[Any, int] = {}
        return np.asarray(_recoded(a, places) == _recoded(b, places))
    is_same = a == b
    return np.asarray(is_same | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else is_same)


def matches(held: Columns, found: Columns) -> NDArray[np.int64]:
    """Return for each row of `found` the row of `held` with the same values in all columns, -1 where there is none.

    Of several that are the same in both, the first is the first's.
    """
    n = size_of(held)
    if not n:
        return np.full(size_of(found), -1, np.int64)
    key = np.zeros(n + size_of(found), np.int64)
    for name in found:
        column: Any = _below([held[name], found[name]])
        _, key = np.unique(key * len(column.values) + column.codes, return_inverse=True)
    number = np.concatenate([_numbers(key[:n]), _numbers(key[n:])])
    keys = key * (n + 1) + np.minimum(number, n)
    order = np.argsort(keys[:n])
    at = np.minimum(np.searchsorted(keys[:n], keys[n:], sorter=order), n - 1)
    return np.where(keys[order[at]] == keys[n:], order[at], -1)


def _numbers(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of those before each one have its key."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    numbers = np.empty_like(key)
    numbers[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered)
    return numbers
