"""Columns of result tables, and groups of them: intervals, adjusted p-values, doubts, digests of inputs.

A `ColumnGroup` declares its columns as annotated fields. Taking rows, joining, filling and storing work on what is
declared, so a new column needs no further code there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers

Value = TypeVar("Value", bound=Hashable)
Rows = slice | Integers


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn(Generic[Value]):
    """A column with few distinct values, such as names, units or metrics.

    Attributes
    ----------
    codes : int32 array, shape (n,)
        The place of each row's value.
    values : tuple
        The distinct values.
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
    def join(columns: Iterable[CodedColumn[Value]]) -> CodedColumn[Value]:
        """Return the values of several columns one after the other."""
        codes_by_value: dict[Value, int] = {}
        codes = [recode(column, codes_by_value) for column in columns]
        return CodedColumn(codes[0] if len(codes) == 1 else np.concatenate(codes), tuple(codes_by_value))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def to_list(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]

    def map(self, convert: Callable[[Value], Any]) -> CodedColumn[Any]:
        """Return the column with each distinct value converted."""
        return CodedColumn(self.codes, tuple(map(convert, self.values)))

    def find(self, condition: Callable[[Value], bool]) -> Bools:
        """Return whether a condition holds for the value of each row."""
        return np.array([condition(value) for value in self.values], np.bool_)[self.codes]


class DeferredNumbers:
    """An array of a `ColumnGroup` that is computed when it is first read."""

    def __init__(self, compute: Callable[[], NDArray[Any]]) -> None:
        self._compute = compute

    @cached_property
    def values(self) -> NDArray[Any]:
        """The array."""
        values = self._compute()
        self._compute = lambda: values  # no longer holds the data; another thread may be computing the same array
        return values

    def __array__(self, *args: Any, **options: Any) -> NDArray[Any]:
        return np.asarray(self.values, *args, **options)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (self.values,)


Column = NDArray[Any] | CodedColumn[Any]
Name = TypeVar("Name", bound=Hashable)


def take_column(column: Column, rows: Rows) -> Column:
    """Return some rows of a column."""
    return CodedColumn(column.codes[rows], column.values) if isinstance(column, CodedColumn) else column[rows]


def take_rows(columns: Mapping[Name, Column], rows: Rows) -> dict[Name, Column]:
    """Return some rows of all columns."""
    return {name: take_column(column, rows) for name, column in columns.items()}


def join_column(columns: Sequence[Any]) -> Column:
    """Return the values of several columns one after the other."""
    return CodedColumn.join(columns) if isinstance(columns[0], CodedColumn) else np.asarray(np.concatenate(columns))


def recode(column: CodedColumn[Any], codes_by_value: dict[Any, int]) -> NDArray[np.int32]:
    """Return a column's codes in a mapping shared with other columns; new values are added to it."""
    codes = [codes_by_value.setdefault(value, len(codes_by_value)) for value in column.values]
    return column.codes if codes == [*range(len(codes))] else np.array(codes, np.int32)[column.codes]


def get_filling(dtype: Any) -> Any:
    """Return the number that stands for "none" in columns of a type."""
    return {"f": np.nan, "b": False, "i": -1 if dtype == np.int8 else 0}[np.dtype(dtype).kind]


@dataclass(frozen=True, slots=True, eq=False)
class ColumnGroup:
    """Base of groups of columns that have a row for each comparison.

    Columns are arrays and coded columns. A mapping from rows to values is a column that few rows have. Fields named in
    `KEYS` distinguish groups of one class.
    """

    KEYS: ClassVar[tuple[str, ...]] = ()

    @property
    def columns(self) -> dict[str, Column]:
        """The columns by name."""
        columns = {name: getattr(self, name) for name in _list_fields(type(self), np.ndarray, CodedColumn)}  # type: ignore[arg-type]
        return {name: c.values if isinstance(c, DeferredNumbers) else c for name, c in columns.items()}

    def to_columns(self, n: int) -> dict[str, Column]:
        """Return all columns with full length `n`."""
        sparse = _list_fields(type(self), Mapping)  # type: ignore[arg-type]
        return self.columns | {name: build_sparse_column(getattr(self, name), n) for name in sparse}

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column], **keys: Any) -> Self:
        """Return the group from which `to_columns` built the columns."""
        sparse = {name: sparse_to_dict(columns[name]) for name in _list_fields(cls, Mapping)}  # type: ignore[arg-type]
        return cls(**{**keys, **columns, **sparse})

    def take(self, rows: Rows) -> Self:
        """Return some rows of all columns."""
        return replace(self, **take_rows(self.columns, rows))

    @staticmethod
    def join(groups: Sequence[Group]) -> Group:
        """Return the rows of several groups one after the other."""
        names = groups[0].columns
        return replace(groups[0], **{name: join_column([group.columns[name] for group in groups]) for name in names})

    @classmethod
    def build_empty(cls, n: int, **values: Any) -> Self:
        """Return columns for `n` rows without values; other fields have the given values."""
        for name, hint in _find_hints(cls).items():  # type: ignore[arg-type]
            if name not in values and get_origin(hint) is np.ndarray:
                dtype = get_args(get_args(hint)[-1])[0]
                values[name] = np.full(n, get_filling(dtype), dtype)
            elif name not in values and get_origin(hint) is CodedColumn:
                filling = None if type(None) in get_args(get_args(hint)[0]) else ""
                values[name] = CodedColumn(np.broadcast_to(np.int32(0), n), (filling,)[:n])
        return cls(**values)


Group = TypeVar("Group", bound=ColumnGroup)


@cache
def _find_hints(group: type[ColumnGroup]) -> dict[str, Any]:
    return {name: _resolve_alias(hint) for name, hint in get_type_hints(group).items() if name != "KEYS"}


FEW_VALUES = 8
"""Maximum number of values that a coded column may list although no row has them."""


def divide_columns(columns: Iterable[Column], sizes: Sequence[int]) -> Iterator[list[Column]]:
    """Yield the parts of each column that have consecutive rows.

    A part of a coded column lists only values that its rows have, unless the column has few values.
    """
    ends = np.cumsum([0, *sizes]).tolist()
    slices = [slice(start, end) for start, end in pairwise(ends)]
    part_of_row = np.repeat(np.arange(len(sizes)), sizes)
    for column in columns:
        if not isinstance(column, CodedColumn):
            yield [column[rows] for rows in slices]
        elif len(column.values) <= FEW_VALUES:
            yield [CodedColumn(column.codes[rows], column.values) for rows in slices]
        else:
            n = len(column.values)
            used, numbers = np.unique(part_of_row * n + column.codes[: len(part_of_row)], return_inverse=True)
            first = np.searchsorted(used, np.arange(len(sizes) + 1) * n)
            codes = (numbers - first[part_of_row]).astype(np.int32)
            values = [column.values[code] for code in (used % n).tolist()]
            borders = pairwise(first.tolist())
            yield [CodedColumn(codes[rows], tuple(values[a:b])) for rows, (a, b) in zip(slices, borders, strict=True)]


def _resolve_alias(hint: Any) -> Any:
    """Return the type behind an alias with parameters, such as `NDArray` of NumPy 2.5, and other types unchanged."""
    alias = getattr(get_origin(hint), "__value__", None)
    return hint if alias is None else alias[get_args(hint)]


@cache
def _list_fields(group: type[ColumnGroup], *origins: type) -> tuple[str, ...]:
    """Return the fields of a group that are annotated with one of some classes."""
    return tuple(name for name, hint in _find_hints(group).items() if get_origin(hint) in origins)  # type: ignore[arg-type]


def build_sparse_column(values: Mapping[int, Any], n: int) -> CodedColumn[Any]:
    """Return a column of n rows with the given values by row, and None elsewhere."""
    codes, distinct = np.zeros(n, np.int32), [None, *values.values()]
    codes[list(values)] = np.arange(1, len(distinct))
    return CodedColumn(codes, tuple(distinct))


def sparse_to_dict(column: Any) -> dict[int, Any]:
    """Return the values of a column by row, without those that are None."""
    if column.values == (None,):  # of nearly all parts of tables
        return {}
    rows = np.flatnonzero(column.find(lambda value: value is not None))
    return {row: column[row] for row in rows.tolist()}


@dataclass(frozen=True, slots=True)
class ScoredMetric:
    """The metric of results: its name, whether higher is better, and its scorer's signature.

    Attributes
    ----------
    name : str
        Name as requested.
    higher_is_better : bool
        Whether more is better.
    signature : str or None
        Signature that the scorer library gives, such as that of sacrebleu.
    """

    name: str
    higher_is_better: bool
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the items: those with a given value in a grouping column."""

    column: str
    value: str


EMPTY = "(empty)"
"""Name of the subset of items without a value."""

UNADJUSTED = "unadjusted"
"""Name of the p of a single comparison next to that of a family."""

SIMULTANEOUS = "simultaneous "
"""Prefix of simultaneous intervals."""


@dataclass(frozen=True, slots=True, eq=False)
class AdjustmentDetails(ColumnGroup):
    """Details of adjusted p-values: arrays of shape (n,), NaN where a row has none.

    Attributes
    ----------
    first, second : CodedColumn of str
        The two methods whose larger p is the adjusted p. Empty if there is only one method.
    p_first, p_second : float64
        Their p-values.
    low, high : float64
        Ends of the simultaneous interval of the difference at confidence 1 - alpha; infinite on the side that a
        one-sided test leaves open.
    """

    first: CodedColumn[str]
    second: CodedColumn[str]
    p_first: Floats
    p_second: Floats
    low: Floats
    high: Floats

    @property
    def has_two_methods(self) -> Bools:
        """Whether each row has the p-values of two methods."""
        return ~np.isnan(self.p_first)

    @property
    def has_interval(self) -> Bools:
        """Whether each row has a simultaneous interval."""
        return ~np.isnan(self.low)


@dataclass(frozen=True, slots=True, eq=False)
class EqualScores(ColumnGroup):
    """The equal-score test of each comparison: arrays of shape (n,).

    Attributes
    ----------
    p_value : float64
        p of the symmetric studentised bootstrap of the comparison alone. NaN if there is none.
    p_adjusted : float64
        p adjusted over the same comparisons as the table's. NaN if that is not adjusted, or there is none.
    n_resamples : int64
        Number of resamples, 0 if there were none.
    why : CodedColumn of str
        Why there is no such p; empty if there is.
    cause : CodedColumn of str
        For contested results, why the two tests differ, if this is known; otherwise empty.
    """

    p_value: Floats
    p_adjusted: Floats
    n_resamples: Integers
    why: CodedColumn[str]
    cause: CodedColumn[str]


@dataclass(frozen=True, slots=True, eq=False)
class DecidingUnits(ColumnGroup):
    """The few units that decide contested results: arrays of shape (n,).

    Attributes
    ----------
    n_deciding : int64
        The fewest units without which the sign or the verdict changes; 0 where these are not few.
    reverses : bool
        Whether the sign changes without them; else the verdict does.
    """

    n_deciding: Integers
    reverses: Bools


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


Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, eq=False)
class InputDigests(ColumnGroup):
    """Inputs of p that other columns of a table lack: seed, method, digests of data and code.

    Attributes
    ----------
    seed : int64
        Seed of the random stream.
    method : CodedColumn of str
        Method as requested. The limit in seconds for exact p-values (`auto` and `both`) follows a colon.
    units : CodedColumn of str
        The ids of the test set's units, by content.
    data_a, data_b : CodedColumn of str
        Digests of both systems' contributions under the metric on the compared items, with the gold standard.
    code : CodedColumn of str
        Digest of the metric's code, if the user wrote it.
    adjust, members, family : CodedColumn of str
        How p was adjusted, over how many comparisons, and a digest of these.
    version : CodedColumn of str
        Version of sigdask that computed the result.
    """

    seed: Integers
    method: CodedColumn[str]
    units: CodedColumn[str]
    data_a: CodedColumn[str]
    data_b: CodedColumn[str]
    code: CodedColumn[str]
    adjust: CodedColumn[str]
    members: CodedColumn[str]
    family: CodedColumn[str]
    version: CodedColumn[str]


@dataclass(frozen=True, slots=True, eq=False)
class Intervals(ColumnGroup):
    """Intervals of differences and scores, and effect sizes: shape (n,), NaN where a row has none.

    Attributes
    ----------
    method : CodedColumn of str
        "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal", "conditional-exact" or "recipe-t";
        empty where there is no interval.
    why : CodedColumn of str
        A remark on the interval, or the reason why there is none. Usually empty.
    confidence : float64
    low, high : float64
        Interval of the difference. Infinite if no shift is rejected.
    plain_low, plain_high : float64
        Percentile interval from the same resamples.
    a_low, a_high, b_low, b_high : float64
        Intervals of both scores.
    n_resamples : int64
        Resamples, or trials of the inverted test; 0 where none were drawn.
    paired_d : float64
        The difference over the standard deviation of what units contribute to it.
    skewness : float64
        Skewness of the contributions.
    """

    method: CodedColumn[str]
    why: CodedColumn[str]
    confidence: Floats
    low: Floats
    high: Floats
    plain_low: Floats
    plain_high: Floats
    a_low: Floats
    a_high: Floats
    b_low: Floats
    b_high: Floats
    n_resamples: Integers
    paired_d: Floats
    skewness: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Margins(ColumnGroup):
    """Tests that A and B differ by less than a margin: arrays of shape (n,), NaN where a row has none.

    Attributes
    ----------
    margin : float64
        The margin, on the metric's own scale.
    not_worse, not_better : float64
        One-sided p of the hypothesis that A is worse, and better, than B by the margin or more.
    holm_not_worse, holm_not_better, holm_equivalent : float64
        p adjusted by Holm over the family, of these and of the larger of both. NaN if p is not adjusted.
    method : CodedColumn of str
        The test, and its limitations.
    """

    margin: Floats
    not_worse: Floats
    not_better: Floats
    holm_not_worse: Floats
    holm_not_better: Floats
    holm_equivalent: Floats
    method: CodedColumn[str]


BCA, PERCENTILE, TANGO, INVERSION, NORMAL = "bootstrap-bca", "bootstrap-percentile", "tango", "inversion", "normal"
CONDITIONAL, RECIPE = "conditional-exact", "recipe-t"
METHODS = ("", BCA, PERCENTILE, TANGO, INVERSION, NORMAL, CONDITIONAL, RECIPE)
"""Names of interval methods, by code."""
