"""Export of results: data frames, CSV and Parquet, with files written in parts."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from sigdask.errors import InputError, build_extra_error
from sigdask.results.columns import CodedColumn
from sigdask.results.fields import build_columns
from sigdask.results.table import Table, list_tests
from sigdask.results.values import Nullable, Values, build_optional, list_values

FRAME_EXTRAS = {"pandas": "frame", "pyarrow": "parquet"}
"""Libraries of data frames that come with an extra."""

PART_ROWS = 65_536
"""Rows of a part: of Parquet, a row group."""


def to_array(values: Values) -> Any:
    """Return a column as an array: numbers with NaN where there is none, or objects."""
    if isinstance(values, Nullable):
        values = values.values
    if isinstance(values, np.ndarray):
        return values
    coded = values if isinstance(values, CodedColumn) else CodedColumn.from_values(list_values(values))
    distinct = np.empty(len(coded.values), object)
    distinct[:] = coded.values
    return distinct[coded.codes]


def build_frame(table: Table, library: str) -> Any:
    """Return a table of results as a data frame of the given library, with None or, for pandas, NaN if missing."""
    make_frame = _get_frame_maker(library)
    if not len(table):
        return make_frame({})
    takes_none = library != "pandas"  # which takes NaN for what is missing; others know better
    return make_frame(
        {
            name: list_values(values) if takes_none and isinstance(values, Nullable) else to_array(values)
            for name, values in build_columns(table).items()
        }
    )


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
        writer.writerows(zip(*map(_list_cells, part_columns.values()), strict=True))
        yield out.getvalue()


def list_csv_rows(table: Table, tests: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of a CSV file by column, with their values before they are written as text."""
    columns = build_columns(table, tests)
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*map(_list_cells, columns.values()), strict=True)]


def _list_cells(values: Values) -> list[Any]:
    """Return the values of a column as a list, with None for NaN."""
    is_float = isinstance(values, np.ndarray) and values.dtype == np.float64
    return list_values(build_optional(values) if is_float else values)  # type: ignore[arg-type]


def write_parquet(tables: Iterable[Table], file: IO[bytes]) -> None:
    """Write a Parquet file, one row per comparison, with the columns of a data frame."""
    pyarrow = import_pyarrow()
    writer, tables = None, [*tables]
    tests = list_tests(tables)
    try:
        for part in _split_tables(tables):
            part_columns = build_columns(part, tests)
            batch = pyarrow.table({name: _to_arrow(pyarrow, values) for name, values in part_columns.items()})
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


def _to_arrow(pyarrow: Any, values: Values) -> Any:
    column = to_array(values)
    if column.dtype == object:
        return pyarrow.array(column, pyarrow.string()).dictionary_encode()
    return pyarrow.array(column, from_pandas=isinstance(values, Nullable))  # NaN is null


def _split_tables(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield tables of at most `PART_ROWS` rows; without any row, yield one empty table."""
    n = 0
    for table in tables:
        yield from table.split(PART_ROWS)
        n += len(table)
    if not n:
        yield Table.build_empty(0, alpha=0.05)


def _build_frame_error(library: str) -> InputError:
    if library in FRAME_EXTRAS:
        return build_extra_error(library, FRAME_EXTRAS[library], f"to_frame({library!r})")
    return InputError(
        f"to_frame({library!r}) needs {library}, which is not installed; without a name it takes pandas: "
        f"pip install 'sigdask[{FRAME_EXTRAS['pandas']}]'"
    )
