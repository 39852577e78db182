"""Export of results: data frames, CSV and Parquet, with files written in parts."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from sigdask.errors import InputError, build_extra_error
from sigdask.results import signature, views
from sigdask.results.columns.assumptions import format_kinds
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.doubts import list_assumptions
from sigdask.results.from_records import results_to_table
from sigdask.results.table import DISAGREES, Table, build_empty_intervals, get_details, list_tests

FRAME_EXTRAS = {"pandas": "frame", "pyarrow": "parquet"}
"""Libraries of data frames that come with an extra."""

PART_ROWS = 65_536
"""Rows of a part: of Parquet, a row group."""

INTERVAL_COLUMNS = {
    "interval_confidence": "confidence", "interval_low": "low", "interval_high": "high", "score_a_low": "a_low",
    "score_a_high": "a_high", "score_b_low": "b_low", "score_b_high": "b_high", "paired_d": "paired_d",
}  # fmt: skip
"""Columns of intervals and sizes of effect, by what `Intervals` calls them."""

METHOD_COLUMNS = {
    "p_max_t": ("max-t", "single-step-max-t"), "p_bootstrap_t": ("bootstrap-t",), "p_tukey": ("tukey",),
}  # fmt: skip
"""Columns of the p-values that an adjusted p is the larger of, and their methods."""

OPTIONAL_COLUMNS = (
    "p_adjusted",
    "r12",
    "p_adjusted_low",
    "p_adjusted_high",
    "second_run_p_value",
    "agreement_p",
    *INTERVAL_COLUMNS,
    *METHOD_COLUMNS,
    "interval_simultaneous_low",
    "interval_simultaneous_high",
)
"""Columns of numbers that rows may be without: NaN in an array."""


def build_columns(table: Table, tests: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the columns of a data frame as arrays; text columns are object arrays.

    Parameters
    ----------
    table : Table
        The results.
    tests : sequence of str, optional
        The classical tests that have columns, statistic and p-value; by default those that were asked for.
    """
    rule = np.full(len(table), None, object)
    for stops in table.stops:
        rule[stops.n_asked > 0] = stops.rule
    metric, intervals = table.metric, table.intervals or build_empty_intervals(len(table))
    return {
        "test_set": to_object_array(table.test_set),
        "subset": to_object_array(CodedColumn(table.subset.codes, tuple(s and s.value for s in table.subset.values))),
        "unit": to_object_array(table.unit),
        "a": to_object_array(table.a),
        "b": to_object_array(table.b),
        "metric": to_object_array(CodedColumn(metric.codes, tuple(score.name for score in metric.values))),
        "higher_is_better": np.array([score.higher_is_better for score in metric.values], np.bool_)[metric.codes],
        "score_a": table.score_a,
        "score_b": table.score_b,
        "difference": table.difference,
        "alternative": to_object_array(table.alternative),
        "n_items": table.n_items,
        "n_units": table.n_units,
        "n_discordant": table.n_discordant,
        "method": np.array(views.METHODS, object)[table.exact.astype(np.int8)],
        "n_trials": table.n_trials,
        "n_extreme": table.n_extreme,
        "p_value": table.p_value,
        "p_adjusted": table.p_adjusted,
        "r12": table.r12,
        "signature": to_object_array(CodedColumn(metric.codes, tuple(score.signature for score in metric.values))),
        "stopped": rule,
        "p_low": table.p_low,
        "p_high": table.p_high,
        "p_adjusted_low": table.p_adjusted_low,
        "p_adjusted_high": table.p_adjusted_high,
        "second_run_p_value": np.where(
            table.second_trials > 0, views.compute_second_p(table.second_trials, table.second_extreme), np.nan
        ),
        "agreement_p": table.agreement_p,
        "disagreements": _list_disagreements(table),
        **_build_test_columns(table, tests),
        "interval_method": to_object_array(
            CodedColumn(intervals.method.codes, tuple(method or None for method in intervals.method.values))
        ),
        **{name: getattr(intervals, field_name) for name, field_name in INTERVAL_COLUMNS.items()},
        "test_signature": np.array(signature.format_signatures(table), object),
        "assumptions": _list_doubts(table),
        **_build_adjusted_columns(table),
    }


def _build_adjusted_columns(table: Table) -> dict[str, Any]:
    """Return the columns of adjusted p-values by method, and those of simultaneous intervals' ends, by name."""
    details = get_details(table)
    p_columns = {name: np.full(len(table), np.nan) for name in METHOD_COLUMNS}
    for methods, p in ((details.first, details.p_first), (details.second, details.p_second)):
        for name, column_methods in METHOD_COLUMNS.items():
            rows = np.array([method in column_methods for method in methods.values], np.bool_)[methods.codes]
            p_columns[name][rows] = p[rows]
    return {**p_columns, "interval_simultaneous_low": details.low, "interval_simultaneous_high": details.high}


def _build_test_columns(table: Table, names: Sequence[str] | None) -> dict[str, Any]:
    tests = {test.name: test for test in table.tests}
    missing = np.full(len(table), np.nan)
    return {
        f"{name}_{column}": getattr(tests[name], column) if name in tests else missing
        for name in (tests if names is None else names)
        for column in ("statistic", "p_value")
    }


def to_object_array(column: CodedColumn[Any]) -> Any:
    """Return the values of a coded column as an array of objects."""
    values = np.empty(len(column.values), object)
    values[:] = column.values
    return values[column.codes]


def _is_optional(name: str) -> bool:
    """Return whether a column of numbers may have missing values."""
    return name in OPTIONAL_COLUMNS or name.endswith(("_statistic", "_p_value"))


def _list_disagreements(table: Table) -> Any:
    """Return for each row the names of the checks that disagree."""
    check_names = np.full(len(table), "", object)
    for name, checked in table.checks.items():
        for row in np.flatnonzero(checked.verdict == DISAGREES).tolist():
            check_names[row] = f"{check_names[row]}, {name}" if check_names[row] else name
    return check_names


def _list_doubts(table: Table) -> Any:
    """Return for each row the kinds of doubts about the test's assumptions."""
    kinds = np.full(len(table), "", object)
    for row, doubts in list_assumptions(table).items():
        kinds[row] = format_kinds(doubt.kind for doubt in doubts)
    return kinds


def build_frame(table: Table, library: str) -> Any:
    """Return a table of results as a data frame of the given library, with None or, for pandas, NaN if missing."""
    make_frame = _get_frame_maker(library)
    if not len(table):
        return make_frame({})
    frame_columns = build_columns(table)
    if library != "pandas":  # which takes NaN for what is missing; others know better
        frame_columns |= {
            name: views.nan_to_none(column) for name, column in frame_columns.items() if _is_optional(name)
        }
    return make_frame(frame_columns)


def build_frame_from_rows(rows: Sequence[Mapping[str, Any]], library: str) -> Any:
    """Return a data frame from dictionaries with equal keys, without columns of lists or dictionaries."""
    names = [name for name in (rows[0] if rows else ()) if not any(isinstance(row[name], (list, dict)) for row in rows)]
    return _get_frame_maker(library)({name: [row[name] for row in rows] for name in names})


def _get_frame_maker(library: str) -> Any:
    """Return the function or class that builds a library's data frame from a mapping."""
    try:
        module = importlib.import_module(library)
    except ImportError:
        raise _build_frame_error(library) from None
    return getattr(module, "DataFrame", None) or module.table


def iter_csv(tables: Iterable[Table]) -> Iterator[str]:
    """Yield parts of a CSV file, one row per comparison, with the columns of a data frame."""
    is_first, tables = True, [*tables]
    tests = list_tests(tables)
    for part in _split_tables(tables):
        part_columns = build_columns(part, tests)
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if is_first:
            writer.writerow(part_columns)
        is_first = False
        writer.writerows(zip(*map(_to_cells, part_columns.values()), strict=True))
        yield out.getvalue()


def _to_cells(column: Any) -> list[Any]:
    """Return the values of a column as a list, with None for NaN."""
    return views.nan_to_none(column) if column.dtype == np.float64 else column.tolist()


def write_parquet(tables: Iterable[Table], file: IO[bytes]) -> None:
    """Write a Parquet file, one row per comparison, with the columns of a data frame."""
    pyarrow = import_pyarrow()
    writer, tables = None, [*tables]
    tests = list_tests(tables)
    try:
        for part in _split_tables(tables):
            part_columns = build_columns(part, tests)
            batch = pyarrow.table({name: _to_arrow(pyarrow, name, column) for name, column in part_columns.items()})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(file, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()


def import_pyarrow() -> Any:
    """Import pyarrow with its Parquet module, or raise which extra to install."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise build_extra_error("pyarrow", FRAME_EXTRAS["pyarrow"], "Parquet") from None
    return importlib.import_module("pyarrow")


def _to_arrow(pyarrow: Any, name: str, column: Any) -> Any:
    if column.dtype == object:
        return pyarrow.array(column, pyarrow.string()).dictionary_encode()
    return pyarrow.array(column, from_pandas=_is_optional(name))  # NaN is null


def _split_tables(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield tables of at most `PART_ROWS` rows; without any row, yield one empty table."""
    n = 0
    for table in tables:
        for start in range(0, len(table), PART_ROWS):
            yield table.take(slice(start, start + PART_ROWS))
        n += len(table)
    if not n:
        yield results_to_table((), 0.05)


def _build_frame_error(library: str) -> InputError:
    if library in FRAME_EXTRAS:
        return build_extra_error(library, FRAME_EXTRAS[library], f"to_frame({library!r})")
    return InputError(
        f"to_frame({library!r}) needs {library}, which is not installed; without a name it takes pandas: "
        f"pip install 'sigdask[{FRAME_EXTRAS['pandas']}]'"
    )
