"""Results of many comparisons as one table of Arrow, with a row for each comparison and its columns as arrays.

Checks and notes are numbers and codes. They become sentences when a row is shown or written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Integers
from sigdask.counts.texts import Texts, join_columns
from sigdask.options import Grouping
from sigdask.results.columns import EMPTY_VALUES, KEYED, Column, Rows, get_type
from sigdask.statistics.bounds import CHECKS
from sigdask.statistics.classical import sort_tests
from sigdask.statistics.numbering import number_rows

VERDICTS = ("", "not applicable", "agrees", "disagrees")
"""Outcomes of a cross-check; empty where a row has no such check."""

_, NOT_APPLICABLE, AGREES, DISAGREES = VERDICTS

METHODS = ("approximate", "exact")
"""How p was computed: from random trials, or from all arrangements."""

NO_TEXT = Texts.from_values([""]).array

CHUNK_ROWS = 2048
"""Rows whose texts or records are built at a time."""

CONTESTED = 2
"""Code of a verdict on which the test and the equal-score test differ."""


class Table:
    """Results of comparisons, a row for each. Columns are named by their paths in the JSON of results.

    `table["interval.low"]` is a column: an array of shape (n,), or for texts an encoded `Texts`. Those whose path is a
    single name are attributes too, such as `table.p_value`. A column that the table lacks has no value in any row: NaN,
    0, false or "".

    Attributes
    ----------
    data : pyarrow.Table
        The columns that have values (`sigdask.results.columns`).
    alpha : float
        Level of the verdicts.
    grouping : str
        How rankings mark systems that are not significantly different, as in `options.RankingMarkOptions`.
    """

    def __init__(self, data: pa.Table, alpha: float, grouping: Grouping = "auto") -> None:
        self.data, self.alpha, self.grouping = data, alpha, grouping
        self.paths: list[str] = data.column_names
        self._columns: dict[str, Any] = {}

    @staticmethod
    def from_columns(alpha: float, columns: Mapping[str, Column]) -> Table:
        """Return a table of columns by path."""
        return Table(pa.table(_build_arrays(columns)), alpha)

    @staticmethod
    def build_empty(alpha: float = 0.05) -> Table:
        """Return a table without rows."""
        return Table.from_columns(alpha, {"p_value": np.zeros(0)})

    def replace(self, **columns: Any) -> Table:
        """Return the table with some columns by path, `alpha` or `grouping` replaced."""
        grouping, alpha = columns.pop("grouping", self.grouping), columns.pop("alpha", self.alpha)
        kept = {path: self.data[path] for path in self.paths if path not in columns}
        return Table(pa.table(kept | _build_arrays(columns)) if columns else self.data, alpha, grouping)

    def __reduce__(self) -> tuple[Any, ...]:
        return Table, (self.data, self.alpha, self.grouping)

    def __len__(self) -> int:
        return int(self.data.num_rows)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"tables of results have no column {name!r}") from None

    def has(self, group: str) -> bool:
        """Return whether any row has a value in a group of columns, such as "interval"."""
        return any(path.startswith(f"{group}.") and has_values(self[path]) for path in self.paths)

    def list_keys(self, group: str) -> list[str]:
        """Return the names of the table's checks, tests or columns of dependence, in their order."""
        paths = (path.removeprefix(f"{group}.") for path in self.paths if path.startswith(f"{group}."))
        keys = list(dict.fromkeys(path.rpartition(".")[0] for path in paths))
        order = CHECKS if group == "checks" else sort_tests(keys) if group == "tests" else keys
        return [key for key in order if key in keys]

    def number_rows(self, *paths: str) -> Integers:
        """Return a number for each row, in order of appearance; rows that agree in some columns of texts share it."""
        return number_rows(*(self[path].codes for path in paths))

    def index_systems(self) -> tuple[list[str], Integers, Integers]:
        """Return the names of all systems, and for each row the indices of its A and B in them."""
        both = join_columns([self.a, self.b])
        a, b = np.split(both.codes.astype(np.int64), [len(self)])
        return both.levels.tolist(), a, b

    def __getitem__(self, path: str) -> Any:
        """Return a column by its path."""
        if path not in self._columns:
            self._columns[path] = self._get_column(path)
        return self._columns[path]

    def _get_column(self, path: str) -> Any:
        kind = get_type(path)
        if not kind:
            raise KeyError(path)
        if path not in self.paths and kind == "string":
            return Texts(pa.DictionaryArray.from_arrays(_wrap(np.zeros(len(self), np.int32)), NO_TEXT[: len(self)]))
        if path not in self.paths:
            return np.broadcast_to(EMPTY_VALUES[kind], len(self))
        chunks = self.data[path]
        array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()  # which copies
        return Texts.from_arrow(array).encode() if kind == "string" else _unwrap(array, EMPTY_VALUES[kind])

    def take(self, rows: Rows) -> Table:
        """Return a table of the given rows, in the given order."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        return Table(self.data.take(_wrap(rows)), self.alpha, self.grouping)

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

    @cached_property
    def is_exact(self) -> Bools:
        """Whether each row's p is exact."""
        return self["method"].equals("exact")  # type: ignore[no-any-return]

    @property
    def is_enumerated(self) -> Bools:
        """Whether all arrangements were counted for each row, so that its p has no Monte Carlo error."""
        return np.asarray(self.is_exact & (self.n_trials > 0) & (self["p_interval.0"] == self["p_interval.1"]))

    @cached_property
    def is_open(self) -> Bools:
        """Whether each row is undecided: its interval of p contains alpha, and more trials could change the verdict."""
        low, high = self["p_interval.0"], self["p_interval.1"]
        return np.asarray((low <= self.alpha) & (self.alpha < high) & ~self.is_exact)

    @property
    def is_uncounted(self) -> Bools:
        """Whether nothing is known of each row's p, because no trial is counted yet."""
        return np.asarray((self.n_trials == 0) & np.isnan(self["exact.p_hi"]) & ~(self.p_adjusted < 1))

    @cached_property
    def decision(self) -> NDArray[np.int8]:
        """Significance of each row at alpha, as in `Result.decision`: 1, 0, or -1 if undecided."""
        single = np.where(self.is_open, -1, self.p_value <= self.alpha)
        rejects = self.p_adjusted <= self.alpha
        return np.where(np.isnan(self.p_adjusted) | self.is_uncounted, single, rejects).astype(np.int8)

    @property
    def is_contested(self) -> Bools:
        """Whether exactly one of the test and the equal-score test rejects at alpha, by adjusted p if there are any."""
        adjusted = self["equal_scores.p_adjusted"]
        is_alone = np.isnan(self.p_adjusted) | np.isnan(adjusted)
        p = np.where(is_alone, self["equal_scores.p_value"], adjusted)
        return np.asarray(~np.isnan(p) & (self.decision >= 0) & ((p <= self.alpha) != (self.decision == 1)))

    @property
    def outcome(self) -> NDArray[np.int8]:
        """Verdict on each row: as `decision`, but CONTESTED where only one of the two tests rejects."""
        return np.where(self.is_contested, CONTESTED, self.decision).astype(np.int8)

    @property
    def has_disagreement(self) -> Bools:
        """Whether any check of each row disagrees with its p."""
        disagreement = np.zeros(len(self), np.bool_)
        for name in self.list_keys("checks"):
            disagreement |= self[f"checks.{name}.verdict"].equals(DISAGREES)
        return disagreement


def _build_arrays(columns: Mapping[str, Column]) -> dict[str, pa.Array]:
    """Return the columns that have a value. Those of checks, tests and the like, and p, stay in any case."""
    always = (*KEYED, "p_value")
    shown = {path for path, column in columns.items() if path.partition(".")[0] in always or has_values(column)}
    return {path: to_arrow(column) for path, column in columns.items() if path in shown}


def has_values(column: Column) -> bool:
    """Return whether a column is not empty."""
    if isinstance(column, Texts):
        return any(column.levels)
    if column.strides == (0,):
        column = column[:1]  # all values are this one
    return bool((~np.isnan(column)).any() if column.dtype.kind == "f" else column.any())


def to_arrow(column: Column | pa.Array) -> pa.Array:
    """Return a column as an array of Arrow."""
    if not isinstance(column, Texts):
        return _wrap(column) if isinstance(column, np.ndarray) else column
    return pa.DictionaryArray.from_arrays(column.array.indices, column.levels.array.cast(pa.string()))


def _wrap(values: NDArray[Any]) -> pa.Array:
    """Return an array of Arrow that shares the memory of numbers; `pa.array` would import pandas, for 0.3 s."""
    buffer = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(buffer)])


def _unwrap(array: pa.Array, empty: float) -> NDArray[Any]:
    """Return the values of an array, with `empty` for nulls; `to_numpy` would import pandas."""
    if pa.types.is_boolean(array.type):
        return _unwrap(array.cast(pa.uint8()), empty).astype(np.bool_)
    plain = pa.Array.from_buffers(array.type, len(array), [None, array.buffers()[1]], offset=array.offset)
    values = np.from_dlpack(plain)
    return np.where(_unwrap(array.is_null(), 0), empty, values) if array.null_count else values


def list_scorers(table: Table) -> list[tuple[str, str]]:
    """Return the name of each metric that a library scores, with the library's signature."""
    pairs = dict.fromkeys(zip(table.metric.tolist(), table.signature.tolist(), strict=True))
    return [(metric, signature) for metric, signature in pairs if signature]
