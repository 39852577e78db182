"""Tables in parts: some rows of one, and several below each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.found.adjusted import AdjustmentDetails, details_of
from sigdask.comparison.found.assumptions import Assumptions, no_assumptions
from sigdask.comparison.found.origins import Origins, no_origins
from sigdask.comparison.intervals.columns import FLOATS, Intervals
from sigdask.comparison.table import Checked, Coded, Hanging, OtherUnit, Stops, Table, Tested
from sigdask.statistics.classical.names import in_order

Rows = slice | NDArray[np.int64]
Part = TypeVar("Part", Checked, OtherUnit, Stops, Table, Tested, Intervals, Origins, Assumptions, AdjustmentDetails)
Value = TypeVar("Value")


def taken(table: Table, rows: Rows) -> Table:
    """Return some rows of a table, in the order given."""
    return replace(
        columns_taken(table, rows),
        checks={name: _checked(checked, rows, len(table)) for name, checked in table.checks.items()},
        dependence=tuple(_hanging(own, rows, len(table)) for own in table.dependence),
        beside=tuple(columns_taken(own, rows) for own in table.beside),
        stops=tuple(columns_taken(own, rows) for own in table.stops),
        tests=tuple(columns_taken(own, rows) for own in table.tests),
        notes=_sparse(table.notes, rows, len(table)),
        intervals=None if table.intervals is None else columns_taken(table.intervals, rows),
        origins=None if table.origins is None else columns_taken(table.origins, rows),
        assumptions=None if table.assumptions is None else columns_taken(table.assumptions, rows),
        adjusted=None if table.adjusted is None else columns_taken(table.adjusted, rows),
    )


def columns_taken(part: Part, rows: Rows) -> Part:
    """Return some rows of the arrays and columns of one part."""
    changed: dict[str, Any] = {}
    for name in part.__slots__:
        column = getattr(part, name)
        if isinstance(column, np.ndarray):
            changed[name] = column[rows]
        elif isinstance(column, Coded):
            changed[name] = Coded(column.codes[rows], column.values)
    return replace(part, **changed)


def _checked(checked: Checked, rows: Rows, n: int) -> Checked:
    return replace(columns_taken(checked, rows), kept=_sparse(checked.kept, rows, n))


def _sparse(kept: Any, rows: Rows, n: int) -> dict[int, Any]:
    """Return what is kept of some rows, by their new places."""
    if not kept:
        return {}
    return {place: kept[row] for place, row in enumerate(_listed(rows, n)) if row in kept}


def _listed(rows: Rows, n: int) -> Sequence[int]:
    return range(n)[rows] if isinstance(rows, slice) else rows.tolist()


def _hanging(hanging: Hanging, rows: Rows, n: int) -> Hanging:
    wanted = np.array(_listed(rows, n), np.int64)
    places = np.minimum(np.searchsorted(hanging.rows, wanted), max(len(hanging.rows) - 1, 0))
    tested = hanging.rows[places] == wanted if len(hanging.rows) else np.zeros(len(wanted), np.bool_)
    own = places[tested]
    return Hanging(
        hanging.column,
        np.flatnonzero(tested),
        hanging.n_groups[own],
        hanging.icc[own],
        hanging.design_effect[own],
        hanging.p_value[own],
    )


def joined(tables: Sequence[Table]) -> Table:
    """Put tables below each other."""
    if len(tables) == 1:
        return tables[0]
    sizes = [len(table) for table in tables]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].tolist()
    names = merged(tuple(table.checks) for table in tables)
    columns = merged(tuple(own.column for own in table.dependence) for table in tables)
    rules = dict.fromkeys(_rule(own) for table in tables for own in table.stops)
    most = max(len(table.beside) for table in tables)
    return replace(
        columns_joined(tables),
        checks={
            name: _checks_joined([table.checks.get(name) or _unchecked(len(table)) for table in tables], starts)
            for name in names
        },
        dependence=tuple(_hanging_joined(tables, starts, column) for column in columns),
        beside=tuple(
            columns_joined([table.beside[k] if k < len(table.beside) else _alone(len(table)) for table in tables])
            for k in range(most)
        ),
        stops=tuple(columns_joined([_stops_of(table, rule) for table in tables]) for rule in rules),
        tests=tuple(columns_joined([_tested(table, name) for table in tables]) for name in tests_of(tables)),
        notes={
            start + row: own
            for start, table in zip(starts, tables, strict=True)
            for row, own in table.notes.items()
        },
        intervals=_intervals_joined(tables),
        origins=_origins_joined(tables),
        assumptions=_assumptions_joined(tables),
        adjusted=_adjusted_joined(tables),
    )  # fmt: skip


def tests_of(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the names of all classical tests that tables have."""
    return in_order(own.name for table in tables for own in table.tests)


def merged(orders: Iterable[tuple[str, ...]]) -> list[str]:
    """Return all names in an order that is that of each, as they come first where there is a choice or no such order.

    Examples
    --------
    >>> merged([("b",), ("a", "b"), ("c",)])
    ['a', 'b', 'c']
    """
    before: dict[str, set[str]] = {}
    for order in dict.fromkeys(orders):
        for k, name in enumerate(order):
            before.setdefault(name, set()).update(order[:k])
    found: list[str] = []
    while before:
        ready = (name for name, earlier in before.items() if not earlier & before.keys())
        found.append(next(ready, next(iter(before))))
        del before[found[-1]]
    return found


def columns_joined(parts: Sequence[Part]) -> Part:
    """Put the arrays and columns of parts of one kind below each other."""
    changed: dict[str, Any] = {}
    for name in parts[0].__slots__:
        columns = [getattr(part, name) for part in parts]
        if isinstance(columns[0], np.ndarray):
            changed[name] = np.concatenate(columns)
        elif isinstance(columns[0], Coded):
            changed[name] = _coded(columns)
    return replace(parts[0], **changed)


def _coded(columns: Sequence[Coded[Any]]) -> Coded[Any]:
    places: dict[Any, int] = {}
    codes = []
    for column in columns:
        own = np.array([places.setdefault(value, len(places)) for value in column.values], np.int32)
        codes.append(own[column.codes] if len(own) else column.codes)
    return Coded(np.concatenate(codes), tuple(places))


def _checks_joined(parts: Sequence[Checked], starts: Sequence[int]) -> Checked:
    kept = {start + row: text for start, own in zip(starts, parts, strict=True) for row, text in own.kept.items()}
    return replace(columns_joined(parts), kept=kept)


def _unchecked(n: int) -> Checked:
    return Checked(np.full(n, -1, np.int8), np.full(n, np.nan), np.full(n, np.nan), Coded.same("", n))


def _alone(n: int) -> OtherUnit:
    none = np.zeros(n, np.int64)
    return OtherUnit(Coded.same("", n), none, np.zeros(n, np.bool_), none, none, np.full(n, np.nan))


def _hanging_joined(tables: Sequence[Table], starts: Sequence[int], column: str) -> Hanging:
    own = [
        (start, one)
        for start, table in zip(starts, tables, strict=True)
        for one in table.dependence
        if one.column == column
    ]

    def below(part: Callable[[int, Hanging], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([part(start, one) for start, one in own])

    return Hanging(
        column,
        below(lambda start, one: one.rows + start),
        below(lambda _, one: one.n_groups),
        below(lambda _, one: one.icc),
        below(lambda _, one: one.design_effect),
        below(lambda _, one: one.p_value),
    )


def _intervals_joined(tables: Sequence[Table]) -> Intervals | None:
    if all(table.intervals is None for table in tables):
        return None
    return columns_joined([table.intervals or no_intervals(len(table)) for table in tables])


def _origins_joined(tables: Sequence[Table]) -> Origins | None:
    if all(table.origins is None for table in tables):
        return None
    return columns_joined([table.origins or no_origins(len(table)) for table in tables])


def _assumptions_joined(tables: Sequence[Table]) -> Assumptions | None:
    if all(table.assumptions is None for table in tables):
        return None
    return columns_joined([table.assumptions or no_assumptions(len(table)) for table in tables])


def _adjusted_joined(tables: Sequence[Table]) -> AdjustmentDetails | None:
    if all(table.adjusted is None for table in tables):
        return None
    return columns_joined([details_of(table) for table in tables])


def no_intervals(n: int) -> Intervals:
    """Return the columns of rows that have no interval."""
    nothing = {name: np.full(n, np.nan) for name in FLOATS}
    return Intervals(Coded.same("", n), Coded.same("", n), n_resamples=np.zeros(n, np.int64), **nothing)


Rule = tuple[str, float | None, int | None]


def _rule(stops: Stops) -> Rule:
    return stops.rule, stops.epsilon, stops.h


def _stops_of(table: Table, rule: Rule) -> Stops:
    """Return what a rule did to a table's rows; nothing where the table knows no such rule."""
    n = len(table)
    none, no = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    absent = Stops(rule[0], none, no, np.full(n, -1, np.int8), rule[1], rule[2], no, none, none)
    return next((own for own in table.stops if _rule(own) == rule), absent)


def _tested(table: Table, name: str) -> Tested:
    """Return what a classical test found of a table's rows; nothing where it was not asked for."""
    n = len(table)
    nothing, none = np.full(n, np.nan), np.zeros(n, np.int64)
    absent = Tested(name, nothing, nothing, none, none, Coded.same("", n))
    return next((own for own in table.tests if own.name == name), absent)
