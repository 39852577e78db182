"""Results of many comparisons as a table: a column for each quantity, a row for each comparison.

Words are not in it: checks and notes are numbers and codes here, and become sentences where a row
is looked at or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.adjusted import AdjustmentDetails, build_empty_details
from sigdask.results.columns.assumptions import Assumptions, build_empty_assumptions
from sigdask.results.columns.coded import CodedColumn, ScoredMetric, Subset
from sigdask.results.columns.inputs import InputDigests, build_empty_digests
from sigdask.results.columns.intervals import FLOAT_COLUMNS, Intervals
from sigdask.results.messages.notes import Note
from sigdask.statistics.classical.names import sort_tests

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RuleKey = tuple[str, float | None, int | None]


NOT_APPLICABLE, AGREES, DISAGREES = 0, 1, 2
"""Codes of what a cross-check found."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckResults:
    """Results of one check for each row of a table.

    Attributes
    ----------
    verdict : int8 array, shape (n,)
        NOT_APPLICABLE, AGREES or DISAGREES; -1 where the row has no such check at all.
    p_value : float64 array, shape (n,)
        Of the other side; NaN where there is none.
    fit : float64 array, shape (n,)
        The binomial p of the count if that p is true; NaN where the count is of all arrangements or there is no p.
    why : CodedColumn of str
        Why it is not applicable; empty where it is.
    kept : mapping of int to str
        Of rows whose words are not those that the numbers give, as an earlier version kept them: these words.
    """

    verdict: NDArray[np.int8]
    p_value: Floats
    fit: Floats
    why: CodedColumn[str]
    kept: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCorrelation:
    """Correlation of differences within the groups of one coarser column, for the tested rows.

    Attributes
    ----------
    column : str
        The grouping column.
    rows : int64 array, shape (n_tested,)
        Rows of the table, ascending.
    n_groups : int64 array, shape (n_tested,)
    icc, design_effect, p_value : float64 array, shape (n_tested,)
        As in `Dependence`.
    """

    column: str
    rows: Integers
    n_groups: Integers
    icc: Floats
    design_effect: Floats
    p_value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class AlternativeUnit:
    """Results of the same comparisons by swaps of another kind of unit, a row for each row of a table.

    No units where a row has none beside it.
    """

    unit: CodedColumn[str]
    n_units: Integers
    exact: NDArray[np.bool_]
    n_trials: Integers
    n_extreme: Integers
    p_value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StoppedCounts:
    """How an early-stopping rule ended the counting of each row.

    Attributes
    ----------
    rule : str
        Which.
    n_asked : int64 array, shape (n,)
        Trials that it could have taken; 0 where no rule looked at the row.
    is_early : bool array, shape (n,)
    is_significant : int8 array, shape (n,)
        1, 0, or -1 where it is undecided or the rule gives a p.
    epsilon : float or None
    h : int or None
    is_unknown : bool array, shape (n,)
        The trial to stop at is not looked for yet.
    n_counted, n_counted_extreme : int64 array, shape (n,)
        Trials and exceedances that were counted, which the checks are of; those of the table are up to
        where the rule stopped.
    """

    rule: str
    n_asked: Integers
    is_early: NDArray[np.bool_]
    is_significant: NDArray[np.int8]
    epsilon: float | None
    h: int | None
    is_unknown: NDArray[np.bool_]
    n_counted: Integers
    n_counted_extreme: Integers

    @property
    def has_decision(self) -> bool:
        """Whether the rule gives a decision instead of a p-value."""
        return self.rule == "confidence-sequence"


@dataclass(frozen=True, slots=True, eq=False)
class ClassicalColumn:
    """Results of one classical test for each row of a table.

    Attributes
    ----------
    name : str
        Of the test, one of `statistics.classical.names`.
    statistic, p_value : float64 array, shape (n,)
        NaN where there is none.
    n : int64 array, shape (n,)
        Observations that it takes, of both samples where there are two; 0 where it does not fit.
    n_dropped : int64 array, shape (n,)
        Those without a difference that it drops.
    detail : CodedColumn of str
        How it was had, or why it does not fit the score, with "{dropped}" for `n_dropped`; empty where it was not asked
        for.
    """

    name: str
    statistic: Floats
    p_value: Floats
    n: Integers
    n_dropped: Integers
    detail: CodedColumn[str]

    @property
    def is_requested(self) -> NDArray[np.bool_]:
        """Whether the test was requested for each row."""
        return np.array([text != "" for text in self.detail.values], np.bool_)[self.detail.codes]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Results of comparisons: arrays of shape (n,), a row for each comparison.

    Attributes
    ----------
    alpha : float
        Level of the verdicts.
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
        Of the sample, or of all arrangements.
    p_value, p_low, p_high : float64
        p, and the ends of the interval that the sample gives; of p where there is none.
    r12 : float64
        NaN where it does not apply.
    second_trials, second_extreme : int64
        Of the second run; 0 trials where there is none to compare with.
    agreement_p : float64
        Fisher's; NaN likewise.
    exact_low, exact_high : float64
        The exact p, or bounds of it; NaN where it is not known.
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
        The score that 0/0 was given; NaN where the score is defined.
    step : float64
        How finely scores are distinguished; 0 where exactly, below 0 where some differ by less than that.
    stops : tuple of StoppedCounts
        One for each rule; no row is in two.
    seen_with : int64
        Trials that a p was had with before; 0 where it was not, or with no fewer.
    tests : tuple of ClassicalColumn
        One for each classical test that was asked for, in the order of their names.
    notes : mapping of int to tuple of Note
        Of rows that an earlier version kept: their texts; such rows get no notes of their own.
    intervals : Intervals or None
        None where none were asked for.
    origins : InputDigests or None
        None where an earlier version kept the results.
    assumptions : Assumptions or None
        The diagnosis of units; None where nothing was diagnosed, as in results of earlier versions.
    adjusted : AdjustmentDetails or None
        What stands beside the adjusted p-values; None where that is nothing.
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
    exact: NDArray[np.bool_]
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
    checks: Mapping[str, CheckResults]
    p_adjusted: Floats
    p_adjusted_low: Floats
    p_adjusted_high: Floats
    undefined_a: Floats
    undefined_b: Floats
    step: Floats
    seen_with: Integers
    dependence: tuple[UnitCorrelation, ...] = ()
    beside: tuple[AlternativeUnit, ...] = ()
    stops: tuple[StoppedCounts, ...] = ()
    tests: tuple[ClassicalColumn, ...] = ()
    notes: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    intervals: Intervals | None = None
    origins: InputDigests | None = None
    assumptions: Assumptions | None = None
    adjusted: AdjustmentDetails | None = None

    def __len__(self) -> int:
        return len(self.p_value)

    def take(self, rows: slice | Integers) -> Table:
        """Return a table of the given rows, in the given order."""
        return take_rows(self, rows)

    @staticmethod
    def join(tables: Sequence[Table]) -> Table:
        """Return the concatenation of one or more tables that have the same alpha."""
        return join_tables(tables)

    @property
    def is_enumerated(self) -> NDArray[np.bool_]:
        """Whether all arrangements were counted for each row, so that its p has no Monte Carlo error."""
        return np.asarray(self.exact & (self.n_trials > 0) & (self.p_low == self.p_high))

    @property
    def total_counts(self) -> tuple[Integers, Integers]:
        """Number of trials and of exceedances of each row, including those counted after a stopping rule's stop."""
        trials, extreme = self.n_trials, self.n_extreme
        for stops in self.stops:
            is_ruled = stops.n_asked > 0
            trials = np.where(is_ruled, stops.n_counted, trials)
            extreme = np.where(is_ruled, stops.n_counted_extreme, extreme)
        return trials, extreme

    @property
    def is_settled(self) -> NDArray[np.bool_]:
        """Whether an early-stopping rule has ended the counting of each row."""
        settled = np.zeros(len(self), np.bool_)
        for stops in self.stops:
            settled |= (stops.n_asked > 0) & (stops.is_early | (self.n_trials >= stops.n_asked))
        return settled

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Whether each row is undecided: its interval of p contains alpha, and more trials could change the verdict."""
        undecided = (self.p_low <= self.alpha) & (self.alpha < self.p_high) & ~self.is_settled & ~self.exact
        for stops in self.stops:
            if stops.has_decision:
                undecided &= stops.n_asked == 0
        return undecided

    @property
    def decision(self) -> NDArray[np.int8]:
        """Significance of each row at alpha, as in `Result.decision`: 1, 0, or -1 if undecided."""
        single = np.where(self.is_open, -1, self.p_value <= self.alpha)
        decisions = np.where(np.isnan(self.p_adjusted), single, self.p_adjusted <= self.alpha).astype(np.int8)
        for stops in self.stops:
            if stops.has_decision:
                decisions = np.where((stops.n_asked > 0) & ~self.exact, stops.is_significant, decisions)
        return decisions

    @property
    def is_skewed(self) -> NDArray[np.bool_]:
        """Whether the differences between units are skewed, for each row."""
        return np.zeros(len(self), np.bool_) if self.assumptions is None else self.assumptions.is_skewed

    @property
    def has_disagreement(self) -> NDArray[np.bool_]:
        """Whether any check of each row disagrees with its p."""
        disagreement = np.zeros(len(self), np.bool_)
        for checked in self.checks.values():
            disagreement |= checked.verdict == DISAGREES
        return disagreement


Rows = slice | NDArray[np.int64]


Part = TypeVar(
    "Part",
    CheckResults,
    AlternativeUnit,
    StoppedCounts,
    Table,
    ClassicalColumn,
    Intervals,
    InputDigests,
    Assumptions,
    AdjustmentDetails,
)


def take_rows(table: Table, rows: Rows) -> Table:
    """Return a table of the given rows of a table, in the given order."""
    return replace(
        take_part_rows(table, rows),
        checks={name: _take_check_rows(checked, rows, len(table)) for name, checked in table.checks.items()},
        dependence=tuple(_take_correlation_rows(part, rows, len(table)) for part in table.dependence),
        beside=tuple(take_part_rows(part, rows) for part in table.beside),
        stops=tuple(take_part_rows(part, rows) for part in table.stops),
        tests=tuple(take_part_rows(part, rows) for part in table.tests),
        notes=_take_sparse(table.notes, rows, len(table)),
        intervals=None if table.intervals is None else take_part_rows(table.intervals, rows),
        origins=None if table.origins is None else take_part_rows(table.origins, rows),
        assumptions=None if table.assumptions is None else take_part_rows(table.assumptions, rows),
        adjusted=None if table.adjusted is None else take_part_rows(table.adjusted, rows),
    )


def take_part_rows(part: Part, rows: Rows) -> Part:
    """Return the given rows of one part of a table, that is, of all its arrays and coded columns."""
    changed: dict[str, Any] = {}
    for name in part.__slots__:
        column = getattr(part, name)
        if isinstance(column, np.ndarray):
            changed[name] = column[rows]
        elif isinstance(column, CodedColumn):
            changed[name] = CodedColumn(column.codes[rows], column.values)
    return replace(part, **changed)


def _take_check_rows(checked: CheckResults, rows: Rows, n: int) -> CheckResults:
    return replace(take_part_rows(checked, rows), kept=_take_sparse(checked.kept, rows, n))


def _take_sparse(entries: Any, rows: Rows, n: int) -> dict[int, Any]:
    """Return the entries of the given rows, keyed by the new row numbers; most rows have no entry."""
    if not entries:
        return {}
    return {position: entries[row] for position, row in enumerate(_list_rows(rows, n)) if row in entries}


def _list_rows(rows: Rows, n: int) -> Sequence[int]:
    return range(n)[rows] if isinstance(rows, slice) else rows.tolist()


def _take_correlation_rows(correlation: UnitCorrelation, rows: Rows, n: int) -> UnitCorrelation:
    selected = np.array(_list_rows(rows, n), np.int64)
    positions = np.minimum(np.searchsorted(correlation.rows, selected), max(len(correlation.rows) - 1, 0))
    tested = correlation.rows[positions] == selected if len(correlation.rows) else np.zeros(len(selected), np.bool_)
    indices = positions[tested]
    return UnitCorrelation(
        correlation.column,
        np.flatnonzero(tested),
        correlation.n_groups[indices],
        correlation.icc[indices],
        correlation.design_effect[indices],
        correlation.p_value[indices],
    )


def join_tables(tables: Sequence[Table]) -> Table:
    """Return the concatenation of tables, including parts that only some of them have."""
    if len(tables) == 1:
        return tables[0]
    sizes = [len(table) for table in tables]
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].tolist()
    names = merge_orders(tuple(table.checks) for table in tables)
    columns = merge_orders(tuple(part.column for part in table.dependence) for table in tables)
    rules = dict.fromkeys(_get_rule(part) for table in tables for part in table.stops)
    n_other_units = max(len(table.beside) for table in tables)
    return replace(
        join_parts(tables),
        checks={
            name: _join_checks([table.checks.get(name) or _build_empty_check(len(table)) for table in tables], starts)
            for name in names
        },
        dependence=tuple(_join_correlations(tables, starts, column) for column in columns),
        beside=tuple(
            join_parts(
                [table.beside[k] if k < len(table.beside) else _build_empty_unit(len(table)) for table in tables]
            )
            for k in range(n_other_units)
        ),
        stops=tuple(join_parts([_get_stops(table, rule) for table in tables]) for rule in rules),
        tests=tuple(join_parts([_get_test(table, name) for table in tables]) for name in list_tests(tables)),
        notes={
            start + row: part for start, table in zip(starts, tables, strict=True) for row, part in table.notes.items()
        },
        intervals=_join_intervals(tables),
        origins=_join_digests(tables),
        assumptions=_join_assumptions(tables),
        adjusted=_join_adjusted(tables),
    )


def list_tests(tables: Iterable[Table]) -> tuple[str, ...]:
    """Return the names of all classical tests in some tables, in their fixed order."""
    return sort_tests(test.name for table in tables for test in table.tests)


def merge_orders(orders: Iterable[tuple[str, ...]]) -> list[str]:
    """Return one order of all names that agrees with each of several orders, if possible.

    Examples
    --------
    >>> merge_orders([("b",), ("a", "b"), ("c",)])
    ['a', 'b', 'c']
    """
    predecessors: dict[str, set[str]] = {}
    for order in dict.fromkeys(orders):
        for k, name in enumerate(order):
            predecessors.setdefault(name, set()).update(order[:k])
    names: list[str] = []
    while predecessors:
        ready = (name for name, earlier in predecessors.items() if not earlier & predecessors.keys())
        names.append(next(ready, next(iter(predecessors))))
        del predecessors[names[-1]]
    return names


def join_parts(parts: Sequence[Part]) -> Part:
    """Return the concatenation of table parts of one kind, that is, of their arrays and coded columns."""
    changed: dict[str, Any] = {}
    for name in parts[0].__slots__:
        columns = [getattr(part, name) for part in parts]
        if isinstance(columns[0], np.ndarray):
            changed[name] = np.concatenate(columns)
        elif isinstance(columns[0], CodedColumn):
            changed[name] = _join_coded(columns)
    return replace(parts[0], **changed)


def _join_coded(columns: Sequence[CodedColumn[Any]]) -> CodedColumn[Any]:
    codes_by_value: dict[Any, int] = {}
    codes = []
    for column in columns:
        new_codes = np.array(
            [codes_by_value.setdefault(value, len(codes_by_value)) for value in column.values], np.int32
        )
        codes.append(new_codes[column.codes] if len(new_codes) else column.codes)
    return CodedColumn(np.concatenate(codes), tuple(codes_by_value))


def _join_checks(parts: Sequence[CheckResults], starts: Sequence[int]) -> CheckResults:
    kept_texts = {
        start + row: text for start, part in zip(starts, parts, strict=True) for row, text in part.kept.items()
    }
    return replace(join_parts(parts), kept=kept_texts)


def _build_empty_check(n: int) -> CheckResults:
    return CheckResults(
        np.full(n, -1, np.int8), np.full(n, np.nan), np.full(n, np.nan), CodedColumn.from_constant("", n)
    )


def _build_empty_unit(n: int) -> AlternativeUnit:
    none = np.zeros(n, np.int64)
    return AlternativeUnit(
        CodedColumn.from_constant("", n), none, np.zeros(n, np.bool_), none, none, np.full(n, np.nan)
    )


def _join_correlations(tables: Sequence[Table], starts: Sequence[int], column: str) -> UnitCorrelation:
    correlations = [
        (start, correlation)
        for start, table in zip(starts, tables, strict=True)
        for correlation in table.dependence
        if correlation.column == column
    ]

    def join_column(get_array: Callable[[int, UnitCorrelation], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([get_array(start, correlation) for start, correlation in correlations])

    return UnitCorrelation(
        column,
        join_column(lambda start, correlation: correlation.rows + start),
        join_column(lambda _, correlation: correlation.n_groups),
        join_column(lambda _, correlation: correlation.icc),
        join_column(lambda _, correlation: correlation.design_effect),
        join_column(lambda _, correlation: correlation.p_value),
    )


def _join_intervals(tables: Sequence[Table]) -> Intervals | None:
    if all(table.intervals is None for table in tables):
        return None
    return join_parts([table.intervals or build_empty_intervals(len(table)) for table in tables])


def _join_digests(tables: Sequence[Table]) -> InputDigests | None:
    if all(table.origins is None for table in tables):
        return None
    return join_parts([table.origins or build_empty_digests(len(table)) for table in tables])


def _join_assumptions(tables: Sequence[Table]) -> Assumptions | None:
    if all(table.assumptions is None for table in tables):
        return None
    return join_parts([table.assumptions or build_empty_assumptions(len(table)) for table in tables])


def _join_adjusted(tables: Sequence[Table]) -> AdjustmentDetails | None:
    if all(table.adjusted is None for table in tables):
        return None
    return join_parts([get_details(table) for table in tables])


def build_empty_intervals(n: int) -> Intervals:
    """Return columns for `n` rows that have no intervals."""
    missing = {name: np.full(n, np.nan) for name in FLOAT_COLUMNS}
    return Intervals(
        CodedColumn.from_constant("", n), CodedColumn.from_constant("", n), n_resamples=np.zeros(n, np.int64), **missing
    )


def _get_rule(stops: StoppedCounts) -> RuleKey:
    return stops.rule, stops.epsilon, stops.h


def _get_stops(table: Table, rule: RuleKey) -> StoppedCounts:
    """Return the columns of a stopping rule for a table's rows; empty values if no row has this rule."""
    n = len(table)
    none, no = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    absent = StoppedCounts(rule[0], none, no, np.full(n, -1, np.int8), rule[1], rule[2], no, none, none)
    return next((stops for stops in table.stops if _get_rule(stops) == rule), absent)


def _get_test(table: Table, name: str) -> ClassicalColumn:
    """Return the columns of a classical test for a table's rows; empty values if it was not requested."""
    n = len(table)
    nothing, none = np.full(n, np.nan), np.zeros(n, np.int64)
    absent = ClassicalColumn(name, nothing, nothing, none, none, CodedColumn.from_constant("", n))
    return next((test for test in table.tests if test.name == name), absent)


def get_details(table: Table) -> AdjustmentDetails:
    """Return the details of adjusted p-values of a table's rows; NaN if the table has none."""
    return build_empty_details(len(table)) if table.adjusted is None else table.adjusted
