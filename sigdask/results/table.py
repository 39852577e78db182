"""Results of many comparisons as one table of Arrow, with a row for each comparison and its columns as arrays.

Checks and notes are numbers and codes. They become sentences when a row is shown or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sigdask.counts.factors import find_distinct, number_rows
from sigdask.counts.fields import Bools, Floats
from sigdask.options import Grouping
from sigdask.results.columns import (
    SIMULTANEOUS,
    UNADJUSTED,
    CodedColumn,
    Column,
    Columns,
    Rows,
    ScoredMetric,
    Subset,
)
from sigdask.results.schema import EMPTY_VALUES, KEYED, get_type
from sigdask.statistics.bounds import CHECKS
from sigdask.statistics.classical import sort_tests

NOT_APPLICABLE, AGREES, DISAGREES = 0, 1, 2
"""Codes of a cross-check's outcome; -1 where a row has no such check."""

CONTESTED = 2
"""Code of a verdict on which the test and the equal-score test differ."""

PATHS = {
    "exact": "is_exact", "p_low": "p_interval.0", "p_high": "p_interval.1", "p_adjusted_low": "p_adjusted_interval.0",
    "p_adjusted_high": "p_adjusted_interval.1", "second_trials": "second_run.n_trials",
    "second_extreme": "second_run.n_extreme", "agreement_p": "second_run.agreement_p", "exact_low": "exact.p_lo",
    "exact_high": "exact.p_hi",
}  # fmt: skip
"""Columns of attributes that are named otherwise."""

GROUPS = {
    "intervals": {
        **{name: f"interval.{name}" for name in ("method", "why", "confidence", "low", "high", "n_resamples")},
        "plain_low": "interval.percentile.0", "plain_high": "interval.percentile.1", "a_low": "score_a_interval.0",
        "a_high": "score_a_interval.1", "b_low": "score_b_interval.0", "b_high": "score_b_interval.1",
        "paired_d": "paired_d", "skewness": "interval.skewness",
    },
    "adjusted": {"p_tukey": "p_adjusted_by.tukey", "low": "interval_simultaneous.0", "high": "interval_simultaneous.1"},
    "equal_scores": {
        name: f"equal_scores.{name}" for name in ("p_value", "p_adjusted", "n_resamples", "why", "cause")
    },
    "margins": {
        "margin": "margin.margin", "not_worse": "margin.p_not_worse", "not_better": "margin.p_not_better",
        "holm_not_worse": "margin.p_adjusted.0", "holm_not_better": "margin.p_adjusted.1",
        "holm_equivalent": "margin.p_adjusted.2", "method": "margin.method",
    },
    "runs": {
        **{name: f"runs.{name}" for name in ("column", "n_runs", "is_paired", "method", "p_runs", "p_value",
                                             "p_adjusted", "df", "se_items", "se_runs")},
        "low": "runs.interval.0", "high": "runs.interval.1",
    },
    "origins": {
        name: f"origins.{name}" for name in ("seed", "method", "units", "data_a", "data_b", "code", "adjust", "members",
                                             "family", "version")
    },
    "deciding": {name: f"deciding.{name}" for name in ("n_deciding", "reverses")},
}  # fmt: skip
"""Columns of groups, by the group and the attribute. A table may lack a group."""

JOINT: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    "metric": (("metric", "higher_is_better", "signature"), lambda *m: ScoredMetric(m[0], bool(m[1]), m[2] or None)),
    "subset": (("subset.column", "subset.value"), lambda column, value: Subset(column, value) if column else None),
    "exact_by": (("exact.method", "exact.guarantee"), lambda *method: method if method[0] else None),
}  # fmt: skip
"""Columns of attributes whose values are objects, and how these are built."""


def build_columns(group: str, n: int, **columns: Column) -> Columns:
    """Return a group of columns of `n` rows: the given ones, and others without values."""
    kinds = {name: get_type(path) for name, path in GROUPS[group].items()}
    empty: dict[str, Column] = {
        name: CodedColumn.from_constant("", n) if kind == "string" else np.full(n, EMPTY_VALUES[kind])
        for name, kind in kinds.items()
    }
    return Columns(**empty | columns)


class Table:
    """Results of comparisons, a row for each. Columns are attributes, and arrays of shape (n,).

    Attributes
    ----------
    data : pyarrow.Table
        The columns, named by their paths in the JSON of results (`sigdask.results.schema`).
    alpha : float
        Level of the verdicts.
    grouping : str
        How rankings mark systems that are not significantly different, as in `options.RankingMarkOptions`.
    exact : bool array
        Whether p is exact.
    p_low, p_high, p_adjusted_low, p_adjusted_high : float64 array
        Ends of Monte Carlo intervals.
    metric, subset, exact_by : CodedColumn of ScoredMetric, of Subset or None, and of (method, guarantee) or None
    checks, tests, dependence, beside : dict of str to Columns
        By the name of the check, test, grouping column or unit. The verdict of a check is a code.
    intervals, adjusted, equal_scores, margins, runs, origins, deciding : Columns or None
        Groups of columns (`GROUPS`); None if the table has none of them.
    """

    def __init__(self, data: pa.Table, alpha: float, grouping: Grouping = "auto") -> None:
        self.data, self.alpha, self.grouping = data, alpha, grouping
        self._paths = data.column_names
        self._cache: dict[str, Any] = {}
        self._columns: dict[str, Any] = {}

    @staticmethod
    def from_columns(alpha: float, columns: Mapping[str, Any], grouping: Grouping = "auto") -> Table:
        """Return a table of columns, given by their attributes; groups that are None are left out."""
        return Table(pa.table(_build_arrays(_split_columns(columns))), alpha, grouping)

    @staticmethod
    def build_empty(alpha: float = 0.05) -> Table:
        """Return a table without rows."""
        return Table.from_columns(alpha, {"p_value": np.zeros(0)})

    def replace(self, **columns: Any) -> Table:
        """Return the table with some columns, `alpha` or `grouping` replaced."""
        grouping, alpha = columns.pop("grouping", self.grouping), columns.pop("alpha", self.alpha)
        new = _split_columns(columns)
        dropped = {*new, *(path for name in columns for path in GROUPS.get(name, {}).values())}
        kept = {name: self.data[name] for name in self._paths if name not in dropped}
        return Table(pa.table(kept | _build_arrays(new)), alpha, grouping)

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.data, self.alpha, self.grouping)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._cache:
            try:
                self._cache[name] = self._read(name)
            except KeyError:
                raise AttributeError(f"tables of results have no column {name!r}") from None
        return self._cache[name]

    def _read(self, name: str) -> Any:
        if name in KEYED:
            return {key: Columns(**self._read_group(f"{name}.{key}.")) for key in self._list_keys(name)}
        if name in GROUPS:
            paths = GROUPS[name]
            has_any = any(path in self._paths for path in paths.values())
            return Columns(**{key: self[path] for key, path in paths.items()}) if has_any else None
        return self._join(*JOINT[name]) if name in JOINT else self[PATHS.get(name, name)]

    def _read_group(self, prefix: str) -> dict[str, Column]:
        paths = [path for path in self._paths if path.startswith(prefix)]
        return {path.removeprefix(prefix): self[path] for path in paths}

    def _list_keys(self, name: str) -> list[str]:
        """Return the names of a table's checks, classical tests, grouping columns or units in their order."""
        paths = (path.removeprefix(f"{name}.") for path in self._paths if path.startswith(f"{name}."))
        keys = list(dict.fromkeys(path.rpartition(".")[0] for path in paths))
        order = CHECKS if name == "checks" else sort_tests(keys) if name == "tests" else ()
        return [key for key in order if key in keys] if order else keys

    def _join(self, paths: Sequence[str], build: Any) -> CodedColumn[Any]:
        columns = [self[path] for path in paths]
        numbers = number_rows(*(c.codes if isinstance(c, CodedColumn) else c for c in columns))
        _, firsts, codes = np.unique(numbers, return_index=True, return_inverse=True)
        values = [build(*(column[row] for column in columns)) for row in firsts.tolist()]
        return CodedColumn(codes.astype(np.int32), tuple(values))

    def __getitem__(self, path: str) -> Any:
        """Return a column by its path: numbers with NaN or 0 and texts with "" where there is none."""
        if path not in self._columns:
            self._columns[path] = self._get_column(path)
        return self._columns[path]

    def _get_column(self, path: str) -> Any:
        kind = get_type(path)
        if path not in self._paths:
            empty = EMPTY_VALUES[kind]
            return CodedColumn.from_constant("", len(self)) if kind == "string" else np.broadcast_to(empty, len(self))
        column = self.data[path]
        if kind == "string":
            array = column.combine_chunks()
            n = len(array.dictionary)
            used, codes = find_distinct(_unwrap(array.indices, n))
            texts = array.dictionary.take(_wrap(used[used < n])).to_pylist()
            return CodedColumn.join([CodedColumn(codes.astype(np.int32), (*texts, *[""] * int((used == n).any())))])
        return _unwrap(column.combine_chunks(), -1 if path.endswith(".verdict") else EMPTY_VALUES[kind])

    def find_pair(self, a: str, b: str) -> list[int]:
        """Return the rows that compare two systems, in either order."""
        is_pair = self.a.find(a.__eq__) & self.b.find(b.__eq__) | self.a.find(b.__eq__) & self.b.find(a.__eq__)
        return np.flatnonzero(is_pair).tolist()

    def take(self, rows: Rows) -> Table:
        """Return a table of the given rows, in the given order."""
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return Table(self.data.slice(start, max(stop - start, 0)), self.alpha, self.grouping)
            rows = np.arange(start, stop, step)
        return Table(self.data.take(_wrap(np.asarray(rows))), self.alpha, self.grouping)

    def divide(self, sizes: Iterable[int]) -> Iterator[Table]:
        """Yield consecutive rows in tables of the given sizes."""
        start = 0
        for size in sizes:
            yield Table(self.data.slice(start, size), self.alpha, self.grouping)
            start += size

    def split(self, max_rows: int) -> Iterator[Table]:
        """Yield the rows in tables of at most `max_rows`."""
        return self.divide([max_rows] * -(-len(self) // max_rows))

    @staticmethod
    def join(tables: Sequence[Table]) -> Table:
        """Return the rows of one or more tables that have the same alpha, with nulls where one lacks a column."""
        first = tables[0]
        if len(tables) == 1:
            return first
        data = pa.concat_tables([table.data for table in tables], promote_options="default")
        return Table(data.unify_dictionaries().combine_chunks(), first.alpha, first.grouping)

    @property
    def is_enumerated(self) -> Bools:
        """Whether all arrangements were counted for each row, so that its p has no Monte Carlo error."""
        return np.asarray(self.exact & (self.n_trials > 0) & (self.p_low == self.p_high))

    @property
    def is_open(self) -> Bools:
        """Whether each row is undecided: its interval of p contains alpha, and more trials could change the verdict."""
        return np.asarray((self.p_low <= self.alpha) & (self.alpha < self.p_high) & ~self.exact)

    @property
    def decision(self) -> NDArray[np.int8]:
        """Significance of each row at alpha, as in `Result.decision`: 1, 0, or -1 if undecided."""
        single = np.where(self.is_open, -1, self.p_value <= self.alpha)
        return np.where(np.isnan(self.p_adjusted), single, self.p_adjusted <= self.alpha).astype(np.int8)

    @property
    def equal_score_p(self) -> Floats:
        """The p of the equal-score test with which each row's verdict is compared: adjusted if that of the row is."""
        test = get_equal_scores(self)
        is_alone = np.isnan(self.p_adjusted) | np.isnan(test.p_adjusted)
        return np.asarray(np.where(is_alone, test.p_value, test.p_adjusted))

    @property
    def is_contested(self) -> Bools:
        """Whether exactly one of the test and the equal-score test rejects at alpha, by adjusted p if there are any."""
        p = self.equal_score_p
        return np.asarray(~np.isnan(p) & (self.decision >= 0) & ((p <= self.alpha) != (self.decision == 1)))

    @property
    def outcome(self) -> NDArray[np.int8]:
        """Verdict on each row: as `decision`, but CONTESTED where only one of the two tests rejects."""
        return np.where(self.is_contested, CONTESTED, self.decision).astype(np.int8)

    @property
    def has_disagreement(self) -> Bools:
        """Whether any check of each row disagrees with its p."""
        disagreement = np.zeros(len(self), np.bool_)
        for checked in self.checks.values():
            disagreement |= checked.verdict == DISAGREES
        return disagreement


def _split_columns(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns by path, given by the attributes of a table."""
    return {path: column for name, value in columns.items() for path, column in _iter_columns(name, value)}


def _build_arrays(columns: Mapping[str, Any]) -> dict[str, pa.Array]:
    """Return the columns that have a value. Those of checks, tests and the like, and p, stay in any case."""
    always = (*KEYED, "p_value")
    shown = {path for path, column in columns.items() if path.partition(".")[0] in always or has_values(column)}
    return {path: to_arrow(column) for path, column in columns.items() if path in shown}


def has_values(column: Column) -> bool:
    """Return whether a column is not empty."""
    if isinstance(column, CodedColumn):
        return any(column.values)
    if column.strides == (0,):
        column = column[:1]  # all values are this one
    return bool((~np.isnan(column)).any() if column.dtype.kind == "f" else column.any())


def _iter_columns(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if name in KEYED:
        for key, group in value.items():
            yield from ((f"{name}.{key}.{attribute}", column) for attribute, column in vars(group).items())
    elif name in GROUPS:
        if value is not None:
            yield from ((GROUPS[name][attribute], column) for attribute, column in vars(value).items())
    elif name == "metric":
        yield "metric", value.map(lambda metric: metric.name)
        yield "higher_is_better", value.find(lambda metric: metric.higher_is_better)
        yield "signature", value.map(lambda metric: metric.signature)
    elif name == "subset":
        yield "subset.column", value.map(lambda subset: subset and subset.column)
        yield "subset.value", value.map(lambda subset: subset and subset.value)
    elif name == "exact_by":
        yield "exact.method", value.map(lambda by: by and by[0])
        yield "exact.guarantee", value.map(lambda by: by and by[1])
    else:
        yield PATHS.get(name, name), value


def to_arrow(column: Column | pa.Array) -> pa.Array:
    """Return a column as an array of Arrow; half surrogate pairs in names, which Arrow does not hold, are escaped."""
    if not isinstance(column, CodedColumn):
        return _wrap(column) if isinstance(column, np.ndarray) else column
    texts = [("" if value is None else value).encode("utf-8", "backslashreplace") for value in column.values]
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    values = pa.StringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))
    is_none = np.array([value is None for value in column.values], np.bool_)[column.codes]
    return pa.DictionaryArray.from_arrays(_wrap(column.codes, is_none if is_none.any() else None), values)


def _wrap(values: NDArray[Any], is_none: Bools | None = None) -> pa.Array:
    """Return an array of Arrow that shares the memory of numbers; `pa.array` would import pandas, for 0.3 s."""
    buffer = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    validity = None if is_none is None else pa.py_buffer(np.packbits(~is_none, bitorder="little"))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(buffer)])


def _unwrap(array: pa.Array, empty: float) -> NDArray[Any]:
    """Return the values of an array, with `empty` for nulls; `to_numpy` would import pandas."""
    if pa.types.is_boolean(array.type):
        return _unwrap(array.cast(pa.uint8()), empty).astype(np.bool_)
    plain = pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset)
    values = np.from_dlpack(plain)
    return np.where(_unwrap(array.is_null(), 0), empty, values) if array.null_count else values


def list_tests(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the names of all classical tests in some tables, in their fixed order."""
    return sort_tests(name for table in tables for name in table.tests)


def get_group(table: Table, name: str) -> Columns:
    """Return a group of columns, without values if the table has none."""
    group = getattr(table, name)
    return build_columns(name, len(table)) if group is None else group


def get_details(table: Table) -> Columns:
    """Return the details of adjusted p-values of a table's rows; NaN if the table has none."""
    return get_group(table, "adjusted")


def get_equal_scores(table: Table) -> Columns:
    """Return the equal-score test of a table's rows; NaN if the table has none."""
    return get_group(table, "equal_scores")


def decide_runs(runs: Columns, alpha: float) -> NDArray[np.int8]:
    """Return whether each row's difference is significant for recipes: 1, 0, or -1 if runs are too few."""
    p = np.where(np.isnan(runs.p_adjusted), runs.p_value, runs.p_adjusted)
    return np.where(np.isnan(p), -1, p <= alpha).astype(np.int8)


def select_intervals(table: Table) -> tuple[Columns | None, str]:
    """Return the intervals to show with the p that decides, and the word to put before "interval".

    With adjusted p-values these are the simultaneous intervals of the family, if there are any. All other intervals are
    of single comparisons, and called unadjusted.
    """
    details, intervals = get_details(table), table.intervals
    if intervals is None or np.isnan(table.p_adjusted).all():
        return intervals, ""
    has_interval = ~np.isnan(details.low)
    if not has_interval.any():
        return intervals, f"{UNADJUSTED} "
    confidence = np.where(has_interval, 1 - table.alpha, np.nan)
    return intervals.with_columns(low=details.low, high=details.high, confidence=confidence), SIMULTANEOUS
