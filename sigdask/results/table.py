"""Results of many comparisons as a table: a column for each quantity, a row for each comparison.

Checks and notes are numbers and codes. They become sentences when a row is shown or written. This module also chooses
which exact p-values and which intervals are reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.options import Grouping
from sigdask.results.columns import (
    SIMULTANEOUS,
    UNADJUSTED,
    AdjustmentDetails,
    CodedColumn,
    Column,
    ColumnGroup,
    DecidingUnits,
    EqualScores,
    InputDigests,
    Intervals,
    Margins,
    Rows,
    ScoredMetric,
    Subset,
    Value,
    build_sparse_column,
    divide_columns,
    get_filling,
    join_column,
    sparse_to_dict,
    take_rows,
)
from sigdask.results.notes import Note
from sigdask.results.runs import RunResults
from sigdask.statistics.bounds import EXACT_VALUE, SECOND_RUN, SIGN_TEST
from sigdask.statistics.classical import sort_tests
from sigdask.statistics.exact import CLOSE_SHARE

NOT_APPLICABLE, AGREES, DISAGREES = 0, 1, 2
"""Codes of a cross-check's outcome."""

CONTESTED = 2
"""Code of a verdict on which the test and the equal-score test differ."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckResults(ColumnGroup):
    """Results of one check for each row of a table.

    Attributes
    ----------
    verdict : int8 array, shape (n,)
        NOT_APPLICABLE, AGREES or DISAGREES; -1 where the row has no such check at all.
    p_value : float64 array, shape (n,)
        p-value with which p is compared. NaN if there is none.
    fit : float64 array, shape (n,)
        Binomial p of the count if that p is true; NaN if all arrangements were counted or there is no p.
    why : CodedColumn of str
        Why the check is not applicable; empty if it is.
    kept : mapping of int to str
        Sentences that the columns do not reproduce, by row.
    """

    verdict: NDArray[np.int8]
    p_value: Floats
    fit: Floats
    why: CodedColumn[str]
    kept: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCorrelation(ColumnGroup):
    """Correlation of differences within the groups of one coarser column, for each row of a table.

    Attributes
    ----------
    column : str
        The grouping column.
    n_groups : int64 array, shape (n,)
        0 where the correlation is not tested.
    icc, design_effect, p_value : float64 array, shape (n,)
        As in `Dependence`.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("column",)

    column: str
    n_groups: Integers
    icc: Floats
    design_effect: Floats
    p_value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class AlternativeUnit(ColumnGroup):
    """Results of the same comparisons by swaps of another kind of unit, a row for each row of a table.

    Empty if a row has no alternative unit.
    """

    unit: CodedColumn[str]
    n_units: Integers
    exact: Bools
    n_trials: Integers
    n_extreme: Integers
    p_value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class ClassicalColumn(ColumnGroup):
    """Results of one classical test for each row of a table.

    Attributes
    ----------
    name : str
        Name of the test, one of `statistics.classical.names`.
    statistic, p_value : float64 array, shape (n,)
        NaN where there is none.
    n : int64 array, shape (n,)
        Number of observations, of both samples if there are two. 0 if the test does not apply.
    n_dropped : int64 array, shape (n,)
        Number of units without a difference, which are dropped.
    detail : CodedColumn of str
        How it was computed, or why it does not fit the score, with "{dropped}" for `n_dropped`; empty if not requested.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("name",)

    name: str
    statistic: Floats
    p_value: Floats
    n: Integers
    n_dropped: Integers
    detail: CodedColumn[str]

    @property
    def is_requested(self) -> Bools:
        """Whether the test was requested for each row."""
        return self.detail.find(bool)


@dataclass(frozen=True, slots=True, eq=False)
class Table(ColumnGroup):
    """Results of comparisons: arrays of shape (n,), a row for each comparison.

    Attributes
    ----------
    alpha : float
        Level of the verdicts.
    grouping : str
        How rankings mark systems that are not significantly different, as in `options.RankingMarkOptions`.
    test_set, unit, a, b, alternative : CodedColumn of str
        As in `Result`.
    subset : CodedColumn of Subset or None
    metric : CodedColumn of ScoredMetric
    score_a, score_b, difference : float64
        NaN where a metric of whole outputs gave no score.
    n_items, n_units, n_discordant : int64
    exact : bool
        Whether p is exact.
    n_trials, n_extreme : int64
        Trials and exceedances of the sample, or of all arrangements.
    p_value, p_low, p_high : float64
        p, and the ends of its Monte Carlo interval; both ends are p if there is none.
    r12 : float64
        NaN where it does not apply.
    second_trials, second_extreme : int64
        Trials and exceedances of the second run. 0 trials if there was none.
    agreement_p : float64
        Fisher's p that both runs have the same rate; NaN if there was no second run.
    exact_low, exact_high : float64
        The exact p, or bounds of it. NaN if unknown.
    exact_by : CodedColumn of (str, str) or None
        Its method and its guarantee.
    checks : mapping of str to CheckResults
        By the check's name, in the order in which they are shown.
    p_adjusted, p_adjusted_low, p_adjusted_high : float64
        NaN where p was not adjusted.
    dependence : tuple of UnitCorrelation
    beside : tuple of AlternativeUnit
        In the order in which they are shown.
    undefined_a, undefined_b : float64
        The score used in place of 0/0; NaN if the score is defined.
    step : float64
        Resolution of scores. 0 if they are exact, negative if some differ by less than the resolution.
    seen_with : int64
        Number of trials of an earlier p with fewer trials; 0 if there was none.
    tests : tuple of ClassicalColumn
        One for each requested classical test, in the order of their names.
    intervals : Intervals or None
        None if not requested.
    origins : InputDigests or None
        None for results without digests.
    deciding : DecidingUnits or None
        The few units that decide contested results. None without contested results.
    adjusted : AdjustmentDetails or None
        Details of the adjusted p-values, or None.
    equal_scores : EqualScores or None
        The equal-score test of each row, or None.
    margins : Margins or None
        Tests of a margin. None if not requested.
    runs : RunResults or None
        Tests over runs and of recipes, or None if all systems have one run.
    notes : mapping of int to tuple of Note
        Notes of rows that the columns do not reproduce. Such rows get no other notes.
    added : mapping of str to column
        Columns of registered fields (`sigdask.results.fields`) that have no attribute here.
    """

    alpha: float
    test_set: CodedColumn[str]
    subset: CodedColumn[Subset | None]
    unit: CodedColumn[str]
    a: CodedColumn[str]
    b: CodedColumn[str]
    metric: CodedColumn[ScoredMetric]
    alternative: CodedColumn[str]
    score_a: Floats
    score_b: Floats
    difference: Floats
    n_items: Integers
    n_units: Integers
    n_discordant: Integers
    exact: Bools
    n_trials: Integers
    n_extreme: Integers
    p_value: Floats
    p_low: Floats
    p_high: Floats
    r12: Floats
    second_trials: Integers
    second_extreme: Integers
    agreement_p: Floats
    exact_low: Floats
    exact_high: Floats
    exact_by: CodedColumn[tuple[str, str] | None]
    p_adjusted: Floats
    p_adjusted_low: Floats
    p_adjusted_high: Floats
    undefined_a: Floats
    undefined_b: Floats
    step: Floats
    seen_with: Integers
    checks: Mapping[str, CheckResults] = field(default_factory=dict)
    dependence: tuple[UnitCorrelation, ...] = ()
    beside: tuple[AlternativeUnit, ...] = ()
    tests: tuple[ClassicalColumn, ...] = ()
    intervals: Intervals | None = None
    origins: InputDigests | None = None
    deciding: DecidingUnits | None = None
    adjusted: AdjustmentDetails | None = None
    equal_scores: EqualScores | None = None
    margins: Margins | None = None
    runs: RunResults | None = None
    notes: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    added: Mapping[str, Column] = field(default_factory=dict)
    grouping: Grouping = "auto"

    def __len__(self) -> int:
        return len(self.p_value)

    def columns_by_path(self) -> dict[Name, Column]:
        """Return all columns of the table by path, without `alpha` and `grouping`."""
        columns: dict[Name, Column] = {(name,): column for name, column in (self.columns | dict(self.added)).items()}
        for kind in GROUPS:
            for key, group in _list_groups(getattr(self, kind)):
                columns |= {(kind, key, name): column for name, column in group.to_columns(len(self)).items()}
        return columns | {NOTES: build_sparse_column(self.notes, len(self))}

    @staticmethod
    def from_paths(columns: Mapping[Name, Column], alpha: float, grouping: Grouping = "auto") -> Table:
        """Return the table whose columns `columns_by_path` returned, with a significance level for verdicts."""
        plain, added, layout = _arrange_paths(tuple(columns))
        groups = {}
        for kind, paths_by_key in layout.items():
            by_key = {key: {name: columns[path] for name, path in paths} for key, paths in paths_by_key.items()}
            groups[kind] = _build_groups(kind, by_key)
        values: dict[str, Any] = {name: columns[name,] for name in plain}
        return Table(
            alpha=alpha,
            grouping=grouping,
            **values,
            **groups,
            notes=sparse_to_dict(columns[NOTES]),
            added={name: columns[name,] for name in added},
        )

    def find_pair(self, a: str, b: str) -> list[int]:
        """Return the rows that compare two systems, in this order."""
        if a not in self.a.values or b not in self.b.values:
            return []
        matches = (self.a.codes == self.a.values.index(a)) & (self.b.codes == self.b.values.index(b))
        return np.flatnonzero(matches).tolist()

    def take(self, rows: Rows) -> Table:
        """Return a table of the given rows, in the given order."""
        return Table.from_paths(take_rows(self.columns_by_path(), rows), self.alpha, self.grouping)

    def split(self, max_rows: int) -> Iterator[Table]:
        """Yield the rows in tables of at most `max_rows`."""
        if 0 < len(self) <= max_rows:
            yield self
            return
        columns = self.columns_by_path()
        for start in range(0, len(self), max_rows):
            yield Table.from_paths(take_rows(columns, slice(start, start + max_rows)), self.alpha, self.grouping)

    def divide(self, sizes: Iterable[int]) -> Iterator[Table]:
        """Yield consecutive rows in tables of the given sizes; coded columns list only the values of their rows."""
        columns = self.columns_by_path()
        for parts in zip(*divide_columns(columns.values(), [*sizes]), strict=True):
            yield Table.from_paths(dict(zip(columns, parts, strict=True)), self.alpha)

    @staticmethod
    def join(tables: Sequence[Table]) -> Table:  # type: ignore[override]
        """Return the concatenation of one or more tables that have the same alpha."""
        if len(tables) == 1:
            return tables[0]
        parts = [table.columns_by_path() for table in tables]
        columns = join_columns(parts, merge_orders(tuple(part) for part in parts))
        return Table.from_paths(columns, tables[0].alpha, tables[0].grouping)

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
        return np.where(np.isnan(self.p_adjusted) | np.isnan(test.p_adjusted), test.p_value, test.p_adjusted)

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


GROUPS: dict[str, type[ColumnGroup]] = {
    "checks": CheckResults, "dependence": UnitCorrelation, "beside": AlternativeUnit,
    "tests": ClassicalColumn, "intervals": Intervals, "origins": InputDigests, "deciding": DecidingUnits,
    "adjusted": AdjustmentDetails, "equal_scores": EqualScores, "margins": Margins, "runs": RunResults,
}  # fmt: skip
"""Fields of a table that are groups of columns."""

Name = tuple[str, ...]
"""Path of a column in a table: its name, or field, key and name of a column in a group."""

NOTES: Name = ("notes",)


Keys = dict[str, list[tuple[str, Name]]]
"""Names and paths of the columns of groups of one kind, by the groups' keys."""


@lru_cache
def _arrange_paths(paths: tuple[Name, ...]) -> tuple[list[str], list[str], dict[str, Keys]]:
    """Return the names of columns that are fields of a table and of those in `added`, and the groups by kind."""
    plain: list[str] = []
    added: list[str] = []
    groups = {kind: Keys() for kind in GROUPS}
    for path in paths:
        if len(path) > 1:
            groups[path[0]].setdefault(path[1], []).append((path[2], path))
        elif path != NOTES:
            (plain if path[0] in Table.__slots__ else added).append(path[0])
    return plain, added, groups


def _list_groups(groups: Any) -> list[tuple[str, ColumnGroup]]:
    """Return a table's groups of one kind with the texts of their keys."""
    if isinstance(groups, Mapping):
        return list(groups.items())
    if not isinstance(groups, tuple):
        return [] if groups is None else [("all", groups)]
    keys = [[getattr(group, name) for name in group.KEYS] for group in groups]
    texts = [key[0] if len(key) == 1 else json.dumps(key) if key else str(k) for k, key in enumerate(keys)]
    return list(zip(texts, groups, strict=True))


def _build_groups(kind: str, columns_by_key: Mapping[str, Mapping[str, Column]]) -> Any:
    """Return the value of a table's field from the columns of its groups."""
    group = GROUPS[kind]
    if kind == "checks":
        return {key: group.from_columns(columns) for key, columns in columns_by_key.items()}
    if kind in {"intervals", "origins", "deciding", "adjusted", "equal_scores", "margins", "runs"}:
        return next((group.from_columns(columns) for columns in columns_by_key.values()), None)
    keys = sort_tests(columns_by_key) if kind == "tests" else columns_by_key
    values = [[key] if len(group.KEYS) == 1 else json.loads(key) if group.KEYS else [] for key in keys]
    return tuple(
        group.from_columns(columns_by_key[key], **dict(zip(group.KEYS, key_values, strict=True)))
        for key, key_values in zip(keys, values, strict=True)
    )


def join_columns(parts: Sequence[Mapping[Name, Column]], names: Iterable[Name] | None = None) -> dict[Name, Column]:
    """Return the rows of several tables one after the other; a column that a table lacks is filled for its rows."""
    if len(parts) == 1:
        return dict(parts[0])
    examples = {name: column for part in parts for name, column in part.items()}
    sizes = [count_rows(part) for part in parts]
    joined = {}
    for name in examples if names is None else names:
        pairs = zip(parts, sizes, strict=True)
        filled = [part[name] if name in part else build_filling(name, examples[name], n) for part, n in pairs]
        joined[name] = join_column(filled)
    return joined


def count_rows(columns: Mapping[Name, Column]) -> int:
    """Return the length of the columns."""
    return len(next(iter(columns.values()), ()))


def build_filling(name: Name, example: Column, n: int) -> Column:
    """Return a column of values that stand for "none", of the same type as an example column."""
    if isinstance(example, CodedColumn):
        return CodedColumn.from_constant(None if name[-1] in {"kept", "notes"} else "", n)
    return np.full(n, get_filling(example.dtype), example.dtype)


def list_tests(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the names of all classical tests in some tables, in their fixed order."""
    return sort_tests(test.name for table in tables for test in table.tests)


def merge_orders(orders: Iterable[tuple[Value, ...]]) -> list[Value]:
    """Return one order of all names that agrees with each of several orders, if possible.

    Examples
    --------
    >>> merge_orders([("b",), ("a", "b"), ("c",)])
    ['a', 'b', 'c']
    """
    predecessors: dict[Value, set[Value]] = {}
    for order in dict.fromkeys(orders):
        for k, name in enumerate(order):
            predecessors.setdefault(name, set()).update(order[:k])
    names: list[Value] = []
    while predecessors:
        ready = (name for name, earlier in predecessors.items() if not earlier & predecessors.keys())
        names.append(next(ready, next(iter(predecessors))))
        del predecessors[names[-1]]
    return names


def get_details(table: Table) -> AdjustmentDetails:
    """Return the details of adjusted p-values of a table's rows; NaN if the table has none."""
    return AdjustmentDetails.build_empty(len(table)) if table.adjusted is None else table.adjusted


def get_equal_scores(table: Table) -> EqualScores:
    """Return the equal-score test of a table's rows; NaN if the table has none."""
    return EqualScores.build_empty(len(table)) if table.equal_scores is None else table.equal_scores


ExactMethod = tuple[str, str]

GUARANTEED = ("exact", "certified")
"""Guarantees with which an exact value counts as p. A `numeric` value is only compared with the trials."""

ENUMERATION: ExactMethod = ("enumeration", "exact")


@dataclass(frozen=True, slots=True, eq=False)
class ExactValues:
    """Exact p-values of one tail, or bounds of them: arrays of shape (n,).

    Attributes
    ----------
    low, high : float64
        NaN if unknown.
    by : CodedColumn of (str, str) or None
        Method and guarantee.
    """

    low: Floats
    high: Floats
    by: CodedColumn[ExactMethod | None]

    @staticmethod
    def from_shares(share: Floats) -> ExactValues:
        """Return exact p-values from the shares of extreme arrangements; NaN where arrangements were not enumerated."""
        return ExactValues(share, share, CodedColumn((~np.isnan(share)).astype(np.int32), (None, ENUMERATION)))

    def where(self, mask: Bools, other: ExactValues) -> ExactValues:
        """Return these values where `mask` is true, and the values of `other` elsewhere."""
        codes = np.where(mask, self.by.codes, other.by.codes + len(self.by.values)).astype(np.int32)
        methods = CodedColumn(codes, (*self.by.values, *other.by.values))
        return ExactValues(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high), methods)

    @property
    def is_p(self) -> Bools:
        """Whether each upper bound can be used as p: the bounds are guaranteed and close enough."""
        is_guaranteed = self.by.find(lambda method: method is not None and method[1] in GUARANTEED)
        return np.asarray(is_guaranteed & ((self.high - self.low < CLOSE_SHARE * self.high) | (self.high == self.low)))


def use_exact_p(table: Table) -> Table:
    """Return the table with exact p-values in place of those from trials, if they are known closely enough.

    If no trials were requested, p is the upper bound, whatever the lower bound is.
    """
    is_known = ExactValues(table.exact_low, table.exact_high, table.exact_by).is_p
    is_only_exact = (table.n_trials == 0) & ~np.isnan(table.exact_high)
    p = np.where(is_known | is_only_exact, table.exact_high, table.p_value)
    low = np.where(is_only_exact, np.where(is_known, p, table.exact_low), table.p_low)
    exact = table.exact | is_known
    return replace(
        table,
        exact=exact,
        p_value=p,
        p_low=low,
        p_high=np.where(is_only_exact, p, table.p_high),
        checks=_remove_repeated_checks(table, exact),
    )


def _remove_repeated_checks(table: Table, exact: Bools) -> dict[str, CheckResults]:
    """Return the checks, of which those that compute an exact p again, or have no part in it, are not applicable."""
    checks = dict(table.checks)
    sign_p, exact_check = checks[SIGN_TEST].p_value, checks[EXACT_VALUE]
    is_same = exact & (exact_check.verdict > 0) & np.isclose(sign_p, table.exact_high, rtol=1e-9, atol=0)
    for name, is_repeated, why in (
        (SECOND_RUN, exact, "p is exact, so a second run checks nothing"),
        (SIGN_TEST, is_same, "the exact p is that of the sign test, and the trials are compared with it"),
    ):
        check = checks[name]
        rows = is_repeated & (check.verdict > 0)
        reasons = np.where(rows, len(check.why.values), check.why.codes).astype(np.int32)
        checks[name] = replace(
            check,
            verdict=np.where(rows, NOT_APPLICABLE, check.verdict).astype(np.int8),
            p_value=np.where(rows, np.nan, check.p_value),
            why=CodedColumn(reasons, (*check.why.values, why)),
        )
    return checks


def select_intervals(table: Table) -> tuple[Intervals | None, str]:
    """Return the intervals to show with the p that decides, and the word to put before "interval".

    With adjusted p-values these are the simultaneous intervals of the family, if there are any. All other intervals are
    of single comparisons, and called unadjusted.
    """
    details, intervals = get_details(table), table.intervals
    if intervals is None or np.isnan(table.p_adjusted).all():
        return intervals, ""
    if not details.has_interval.any():
        return intervals, f"{UNADJUSTED} "
    confidence = np.where(details.has_interval, 1 - table.alpha, np.nan)
    return replace(intervals, low=details.low, high=details.high, confidence=confidence), SIMULTANEOUS
