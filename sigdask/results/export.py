"""Columns as others take them: data frames, CSV and Parquet, the files written in parts."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from sigdask.errors import InputError, missing_extra
from sigdask.results import signature, views
from sigdask.results.assumptions import listed_assumptions
from sigdask.results.columns.assumptions import kinds_text
from sigdask.results.columns.coded import Coded
from sigdask.results.rows import table_from_results
from sigdask.results.table import DISAGREES, Table, details_of, no_intervals, tests_of

FRAMES = {"pandas": "frame", "pyarrow": "parquet"}
"""Libraries of data frames that come with an extra."""

AT_ONCE = 65_536
"""Rows of a part: of Parquet, a row group."""

SURE = {
    "interval_confidence": "confidence", "interval_low": "low", "interval_high": "high", "score_a_low": "a_low",
    "score_a_high": "a_high", "score_b_low": "b_low", "score_b_high": "b_high", "paired_d": "paired_d",
}  # fmt: skip
"""Columns of intervals and sizes of effect, by what `Intervals` calls them."""

BY_METHOD = {
    "p_max_t": ("max-t", "single-step-max-t"), "p_bootstrap_t": ("bootstrap-t",), "p_tukey": ("tukey",),
}  # fmt: skip
"""Columns of the p-values that an adjusted p is the larger of, and their methods."""

OPTIONAL = (
    "p_adjusted", "r12", "p_adjusted_low", "p_adjusted_high", "second_run_p_value", "agreement_p", *SURE, *BY_METHOD,
    "interval_simultaneous_low", "interval_simultaneous_high",
)  # fmt: skip
"""Columns of numbers that rows may be without: NaN in an array."""


def columns(table: Table, tests: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the columns of a data frame: arrays, of objects where they are of words.

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
    metric, sure = table.metric, table.intervals or no_intervals(len(table))
    return {
        "test_set": words(table.test_set),
        "subset": words(Coded(table.subset.codes, tuple(s and s.value for s in table.subset.values))),
        "unit": words(table.unit),
        "a": words(table.a),
        "b": words(table.b),
        "metric": words(Coded(metric.codes, tuple(score.name for score in metric.values))),
        "higher_is_better": np.array([score.higher_is_better for score in metric.values], np.bool_)[metric.codes],
        "score_a": table.score_a,
        "score_b": table.score_b,
        "difference": table.difference,
        "alternative": words(table.alternative),
        "n_items": table.n_items,
        "n_units": table.n_units,
        "n_discordant": table.n_discordant,
        "method": np.array(views.METHODS, object)[table.exact.astype(np.int8)],
        "n_trials": table.n_trials,
        "n_extreme": table.n_extreme,
        "p_value": table.p_value,
        "p_adjusted": table.p_adjusted,
        "r12": table.r12,
        "signature": words(Coded(metric.codes, tuple(score.signature for score in metric.values))),
        "stopped": rule,
        "p_low": table.p_low,
        "p_high": table.p_high,
        "p_adjusted_low": table.p_adjusted_low,
        "p_adjusted_high": table.p_adjusted_high,
        "second_run_p_value": np.where(
            table.second_trials > 0, views.second_p(table.second_trials, table.second_extreme), np.nan
        ),
        "agreement_p": table.agreement_p,
        "disagreements": _disagreements(table),
        **_tests(table, tests),
        "interval_method": words(Coded(sure.method.codes, tuple(method or None for method in sure.method.values))),
        **{name: getattr(sure, own) for name, own in SURE.items()},
        "test_signature": np.array(signature.lines(table), object),
        "assumptions": _assumptions(table),
        **_adjusted(table),
    }


def _adjusted(table: Table) -> dict[str, Any]:
    """Return the p-values of two methods, a column for each method, and the ends of simultaneous intervals."""
    own = details_of(table)
    found = {name: np.full(len(table), np.nan) for name in BY_METHOD}
    for methods, p in ((own.first, own.p_first), (own.second, own.p_second)):
        for name, of_column in BY_METHOD.items():
            here = np.array([method in of_column for method in methods.values], np.bool_)[methods.codes]
            found[name][here] = p[here]
    return {**found, "interval_simultaneous_low": own.low, "interval_simultaneous_high": own.high}


def _tests(table: Table, names: Sequence[str] | None) -> dict[str, Any]:
    found = {own.name: own for own in table.tests}
    nothing = np.full(len(table), np.nan)
    return {
        f"{name}_{column}": getattr(found[name], column) if name in found else nothing
        for name in (found if names is None else names)
        for column in ("statistic", "p_value")
    }


def words(column: Coded[Any]) -> Any:
    """Return the value of each row, as an array of objects."""
    values = np.empty(len(column.values), object)
    values[:] = column.values
    return values[column.codes]


def _may_lack(name: str) -> bool:
    """Whether rows may be without a number of that column."""
    return name in OPTIONAL or name.endswith(("_statistic", "_p_value"))


def _disagreements(table: Table) -> Any:
    """Return the names of the checks that disagree, which are few."""
    found = np.full(len(table), "", object)
    for name, checked in table.checks.items():
        for row in np.flatnonzero(checked.verdict == DISAGREES).tolist():
            found[row] = f"{found[row]}, {name}" if found[row] else name
    return found


def _assumptions(table: Table) -> Any:
    """Return the kinds of doubts that units give, most rows having none."""
    found = np.full(len(table), "", object)
    for row, own in listed_assumptions(table).items():
        found[row] = kinds_text(one.kind for one in own)
    return found


def data_frame(table: Table, library: str) -> Any:
    """Return a data frame of a library; of pandas, the arrays themselves."""
    make = _maker(library)
    if not len(table):
        return make({})
    found = columns(table)
    if library != "pandas":  # which takes NaN for what is missing; others know better
        found |= {name: views.optional(column) for name, column in found.items() if _may_lack(name)}
    return make(found)


def frame_of(rows: Sequence[Mapping[str, Any]], library: str) -> Any:
    """Return a data frame of rows alike, with the columns that hold single values."""
    names = [name for name in (rows[0] if rows else ()) if not any(isinstance(row[name], (list, dict)) for row in rows)]
    return _maker(library)({name: [row[name] for row in rows] for name in names})


def _maker(library: str) -> Any:
    """Return what makes a data frame of a mapping."""
    try:
        module = importlib.import_module(library)
    except ImportError:
        raise _missing_frame(library) from None
    return getattr(module, "DataFrame", None) or module.table


def csv_parts(tables: Iterable[Table]) -> Iterator[str]:
    """Yield the text of a CSV file with a row for each comparison, under the names of a data frame's columns."""
    header, tables = True, [*tables]
    tests = tests_of(tables)
    for part in _parts(tables):
        found = columns(part, tests)
        out = io.StringIO()
        write = csv.writer(out, lineterminator="\n")
        if header:
            write.writerow(found)
        header = False
        write.writerows(zip(*map(_cells, found.values()), strict=True))
        yield out.getvalue()


def _cells(column: Any) -> list[Any]:
    """Return the values of a column, None where there is none."""
    return views.optional(column) if column.dtype == np.float64 else column.tolist()


def write_parquet(tables: Iterable[Table], file: IO[bytes]) -> None:
    """Write a Parquet file with a row for each comparison, the columns those of a data frame."""
    pyarrow = parquet_library()
    writer, tables = None, [*tables]
    tests = tests_of(tables)
    try:
        for part in _parts(tables):
            found = columns(part, tests)
            batch = pyarrow.table({name: _arrow(pyarrow, name, column) for name, column in found.items()})
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(file, batch.schema)
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()


def parquet_library() -> Any:
    """Return pyarrow, with what writes Parquet."""
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise missing_extra("pyarrow", FRAMES["pyarrow"], "Parquet") from None
    return importlib.import_module("pyarrow")


def _arrow(pyarrow: Any, name: str, column: Any) -> Any:
    if column.dtype == object:
        return pyarrow.array(column, pyarrow.string()).dictionary_encode()
    return pyarrow.array(column, from_pandas=_may_lack(name))  # NaN is null


def _parts(tables: Iterable[Table]) -> Iterator[Table]:
    """Yield tables in parts; of no row at all, an empty one, which has columns as well."""
    n = 0
    for table in tables:
        for first in range(0, len(table), AT_ONCE):
            yield table.take(slice(first, first + AT_ONCE))
        n += len(table)
    if not n:
        yield table_from_results((), 0.05)


def _missing_frame(library: str) -> InputError:
    if library in FRAMES:
        return missing_extra(library, FRAMES[library], f"to_frame({library!r})")
    return InputError(
        f"to_frame({library!r}) needs {library}, which is not installed; without a name it takes pandas: "
        f"pip install 'sigdask[{FRAMES['pandas']}]'"
    )
