"""Result tables as plain columns, named by path, to be joined, compared and packed alike.

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
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.columns.inputs import InputDigests
from sigdask.results.columns.intervals import Intervals
from sigdask.results.table import AlternativeUnit, CheckResults, ClassicalColumn, StoppedCounts, Table, UnitCorrelation
from sigdask.statistics.classical.names import sort_tests

Name = tuple[str, ...]
Column = NDArray[Any] | CodedColumn[Any]
Columns = dict[Name, Column]
Rows = NDArray[np.int64]

NOTES: Name = ("notes",)
ORIGINS: Name = ("origins", "all")
ASSUMPTIONS: Name = ("assumptions", "all")
NON_COLUMNS = (
    "alpha", "checks", "dependence", "beside", "stops", "tests", "notes", "intervals", "origins", "assumptions",
    "adjusted",
)  # fmt: skip
"""Fields of a table that are no columns: its level is that of the run, the others are several."""


def table_to_columns(table: Table) -> Columns:
    """Return a table's data as columns, named by their path in the table, without its significance level."""
    columns: Columns = {(f.name,): getattr(table, f.name) for f in fields(table) if f.name not in NON_COLUMNS}
    n = len(table)
    for name, checked in table.checks.items():
        columns |= _list_columns(("checks", name), checked)
        columns["checks", name, "kept"] = _build_sparse_column(checked.kept, n)
    for correlation in table.dependence:
        arrays = _list_columns(("dependence", correlation.column), correlation)
        rows = arrays.pop(("dependence", correlation.column, "rows"))
        columns |= {name: _expand_column(column, rows, n) for name, column in arrays.items()}
    for position, alternative in enumerate(table.beside):
        columns |= _list_columns(("beside", str(position)), alternative)
    for stops in table.stops:
        columns |= _list_columns(("stops", json.dumps([stops.rule, stops.epsilon, stops.h])), stops)
    for test in table.tests:
        columns |= _list_columns(("tests", test.name), test)
    if table.intervals is not None:
        columns |= _list_columns(("intervals", "all"), table.intervals)
    if table.origins is not None:
        columns |= _list_columns(ORIGINS, table.origins)
    if table.assumptions is not None:
        columns |= _list_columns(ASSUMPTIONS, table.assumptions)
    if table.adjusted is not None:
        columns |= _list_columns(("adjusted", "all"), table.adjusted)
    columns[NOTES] = _build_sparse_column(table.notes, n)
    return columns


def _list_columns(start: Name, part: Any) -> Columns:
    values = {(*start, f.name): getattr(part, f.name) for f in fields(part)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray | CodedColumn)}


def _build_sparse_column(values: Mapping[int, Any], n: int) -> CodedColumn[Any]:
    """Return a column of n rows with the given values by row, and None elsewhere."""
    codes, distinct = np.zeros(n, np.int32), [None, *values.values()]
    codes[list(values)] = np.arange(1, len(distinct))
    return CodedColumn(codes, tuple(distinct))


def _expand_column(column: Any, rows: Any, n: int) -> Column:
    """Return a column of n rows with the given values in some rows, and fillings elsewhere."""
    expanded: NDArray[Any] = _build_filling("", column, n)
    expanded[rows] = column
    return expanded


def columns_to_table(columns: Columns, alpha: float) -> Table:
    """Return columns as a table of results, with a significance level for verdicts."""
    plain = {name[0]: column for name, column in columns.items() if len(name) == 1 and name != NOTES}
    parts: dict[tuple[str, str], dict[str, Any]] = {}
    for name, column in columns.items():
        if len(name) > 1:
            parts.setdefault((name[0], name[1]), {})[name[2]] = column
    grouped: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for (kind, part_name), arrays in parts.items():
        grouped.setdefault(kind, []).append((part_name, arrays))
    return Table(
        alpha=alpha,
        **plain,  # type: ignore[arg-type]
        checks={name: _build_check(arrays) for name, arrays in grouped.get("checks", ())},
        dependence=tuple(_build_correlation(column, arrays) for column, arrays in grouped.get("dependence", ())),
        beside=tuple(
            AlternativeUnit(**arrays) for _, arrays in sorted(grouped.get("beside", ()), key=lambda item: int(item[0]))
        ),
        stops=tuple(_build_stops(rule, arrays) for rule, arrays in grouped.get("stops", ())),
        tests=_build_tests(dict(grouped.get("tests", ()))),
        notes=_sparse_to_dict(columns[NOTES]),
        intervals=next((Intervals(**arrays) for _, arrays in grouped.get("intervals", ())), None),
        origins=next((InputDigests(**arrays) for _, arrays in grouped.get(ORIGINS[0], ())), None),
        assumptions=next((Assumptions(**arrays) for _, arrays in grouped.get(ASSUMPTIONS[0], ())), None),
        adjusted=next((AdjustmentDetails(**arrays) for _, arrays in grouped.get("adjusted", ())), None),
    )


def _build_check(arrays: dict[str, Any]) -> CheckResults:
    return CheckResults(**{**arrays, "kept": _sparse_to_dict(arrays["kept"])})


def _build_correlation(column: str, arrays: dict[str, Any]) -> UnitCorrelation:
    rows = np.flatnonzero(arrays["n_groups"])
    return UnitCorrelation(column, rows, **{name: values[rows] for name, values in arrays.items()})


def _build_tests(arrays_by_test: dict[str, dict[str, Any]]) -> tuple[ClassicalColumn, ...]:
    return tuple(ClassicalColumn(name=name, **arrays_by_test[name]) for name in sort_tests(arrays_by_test))


def _build_stops(rule: str, arrays: dict[str, Any]) -> StoppedCounts:
    name, epsilon, h = json.loads(rule)
    return StoppedCounts(rule=name, epsilon=epsilon, h=h, **arrays)


def _sparse_to_dict(column: Any) -> dict[int, Any]:
    has = np.array([value is not None for value in column.values], np.bool_)[column.codes]
    return {row: column[row] for row in np.flatnonzero(has).tolist()}


def take_rows(columns: Columns, rows: Rows | slice) -> Columns:
    """Return the given rows."""
    return {name: _take(column, rows) for name, column in columns.items()}


def _take(column: Column, rows: Rows | slice) -> Column:
    return CodedColumn(column.codes[rows], column.values) if isinstance(column, CodedColumn) else column[rows]


def select_rows(columns: Columns, mask: NDArray[np.bool_]) -> Columns:
    """Return the rows of columns that a mask selects."""
    return columns if mask.all() else take_rows(columns, np.flatnonzero(mask))


def count_rows(columns: Columns) -> int:
    """Return the length of the columns."""
    return len(next(iter(columns.values()), ()))


def join_columns(parts: Sequence[Columns]) -> Columns:
    """Return the rows of several tables one after the other; a column that a table lacks is filled for its rows."""
    if len(parts) == 1:
        return parts[0]
    examples = {name: column for part in parts for name, column in part.items()}  # one of each name
    return {
        name: _join_column([part.get(name, _build_filling(name[-1], column, count_rows(part))) for part in parts])
        for name, column in examples.items()
    }


def _join_column(columns: Sequence[Any]) -> Column:
    if not isinstance(columns[0], CodedColumn):
        return np.asarray(np.concatenate(columns))
    codes_by_value: dict[Any, int] = {}
    codes = [_recode(column, codes_by_value) for column in columns]
    return CodedColumn(np.concatenate(codes), tuple(codes_by_value))


def _recode(column: CodedColumn[Any], codes_by_value: dict[Any, int]) -> NDArray[np.int32]:
    """Return a column's codes in a mapping shared with other columns; new values are added to it."""
    return np.array([codes_by_value.setdefault(value, len(codes_by_value)) for value in column.values], np.int32)[
        column.codes
    ]


def _build_filling(field_name: str, example: Column, n: int) -> Any:
    """Return a column of values that stand for "none", of the same type as an example column."""
    if isinstance(example, CodedColumn):
        return CodedColumn.from_constant(None if field_name in {"kept", "notes"} else "", n)
    kinds = {"f": np.nan, "b": False, "i": -1 if example.dtype == np.int8 else 0}
    return np.full(n, kinds[example.dtype.kind], example.dtype)


def are_equal(
    left: Columns, right: Columns, names: Iterable[Name], left_rows: Rows, right_rows: Rows
) -> NDArray[np.bool_]:
    """Return a mask of row pairs, one row from each table, that are equal in the given columns."""
    is_equal = np.ones(len(left_rows), np.bool_)
    for name in names:
        a, b = _get_both(left, right, name)
        is_equal &= _is_equal(_take(a, left_rows), _take(b, right_rows))
    return is_equal


def _get_both(left: Columns, right: Columns, name: Name) -> tuple[Column, Column]:
    a, b = left.get(name), right.get(name)
    a = _build_filling(name[-1], b, count_rows(left)) if a is None and b is not None else a
    b = _build_filling(name[-1], a, count_rows(right)) if b is None and a is not None else b
    assert a is not None
    assert b is not None
    return a, b


def _is_equal(a: Any, b: Any) -> NDArray[np.bool_]:
    if isinstance(a, CodedColumn):
        codes_by_value: dict[Any, int] = {}
        return np.asarray(_recode(a, codes_by_value) == _recode(b, codes_by_value))
    is_same = a == b
    return np.asarray(is_same | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else is_same)


def match_rows(reference: Columns, query: Columns) -> NDArray[np.int64]:
    """Return, for each row of `query`, the index of the equal row of `reference`, or -1.

    Of several that are the same in both, the first is the first's.
    """
    n = count_rows(reference)
    if not n:
        return np.full(count_rows(query), -1, np.int64)
    key = np.zeros(n + count_rows(query), np.int64)
    for name in query:
        column: Any = _join_column([reference[name], query[name]])
        _, key = np.unique(key * len(column.values) + column.codes, return_inverse=True)
    number = np.concatenate([_count_earlier_equal(key[:n]), _count_earlier_equal(key[n:])])
    keys = key * (n + 1) + np.minimum(number, n)
    order = np.argsort(keys[:n])
    positions = np.minimum(np.searchsorted(keys[:n], keys[n:], sorter=order), n - 1)
    return np.where(keys[order[positions]] == keys[n:], order[positions], -1)


def _count_earlier_equal(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each element of an array how many equal elements come before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    numbers = np.empty_like(key)
    numbers[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered)
    return numbers
