"""What was found of many comparisons: a column for each quantity, a row for each comparison.

Words are not in it: checks and notes are numbers and codes here, and become sentences where a row
is looked at or written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.results.columns.adjusted import AdjustmentDetails, no_details
from sigdask.results.columns.assumptions import Assumptions, no_assumptions
from sigdask.results.columns.coded import Coded, ScoredMetric, Subset
from sigdask.results.columns.inputs import InputDigests, no_origins
from sigdask.results.columns.intervals import FLOATS, Intervals
from sigdask.results.messages.notes import Note
from sigdask.statistics.classical.names import in_order

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Rule = tuple[str, float | None, int | None]


NOT_APPLICABLE, AGREES, DISAGREES = 0, 1, 2
"""Codes of what a cross-check found."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckResults:
    """What one cross-check found of each row.

    Attributes
    ----------
    verdict : int8 array, shape (n,)
        NOT_APPLICABLE, AGREES or DISAGREES; -1 where the row has no such check at all.
    p_value : float64 array, shape (n,)
        Of the other side; NaN where there is none.
    fit : float64 array, shape (n,)
        The binomial p of the count if that p is true; NaN where the count is of all arrangements or there is no p.
    why : Coded of str
        Why it is not applicable; empty where it is.
    kept : mapping of int to str
        Of rows whose words are not those that the numbers give, as an earlier version kept them: these words.
    """

    verdict: NDArray[np.int8]
    p_value: Floats
    fit: Floats
    why: Coded[str]
    kept: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class UnitCorrelation:
    """How differences are correlated within the groups of one coarser column: rows that it was tested of.

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
    """The same comparisons with another unit exchanged; columns as in `Table`, one row for each of its rows.

    No units where a row has none beside it.
    """

    unit: Coded[str]
    n_units: Integers
    exact: NDArray[np.bool_]
    n_trials: Integers
    n_extreme: Integers
    p_value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class StoppedCounts:
    """How a rule to stop early ended the counting of each row.

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
        """Whether the rule decides without a p."""
        return self.rule == "confidence-sequence"


@dataclass(frozen=True, slots=True, eq=False)
class ClassicalColumn:
    """What one classical test found of each row.

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
    detail : Coded of str
        How it was had, or why it does not fit the score, with "{dropped}" for `n_dropped`; empty where it was not asked
        for.
    """

    name: str
    statistic: Floats
    p_value: Floats
    n: Integers
    n_dropped: Integers
    detail: Coded[str]

    @property
    def is_asked(self) -> NDArray[np.bool_]:
        """Of which rows it was asked for."""
        return np.array([text != "" for text in self.detail.values], np.bool_)[self.detail.codes]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """What was found of comparisons: arrays of shape (n,), a row for each.

    Attributes
    ----------
    alpha : float
        Level of the verdicts.
    test_set, unit, a, b, alternative : Coded of str
        As in `Result`.
    subset : Coded of Subset or None
    metric : Coded of ScoredMetric
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
    exact_by : Coded of (str, str) or None
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
    test_set: Coded[str]
    subset: Coded[Subset | None]
    unit: Coded[str]
    a: Coded[str]
    b: Coded[str]
    metric: Coded[ScoredMetric]
    alternative: Coded[str]
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
    exact_by: Coded[tuple[str, str] | None]
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
        """Return some rows, in the order given."""
        return taken(self, rows)

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """Put tables below each other; at least one, all of one alpha."""
        return joined(tables)

    @property
    def enumerated(self) -> NDArray[np.bool_]:
        """Where trials are all arrangements: the interval of a sample has a width."""
        return np.asarray(self.exact & (self.n_trials > 0) & (self.p_low == self.p_high))

    @property
    def counted(self) -> tuple[Integers, Integers]:
        """Trials and exceedances that checks are of: all that were counted, also where a rule stopped before."""
        trials, extreme = self.n_trials, self.n_extreme
        for stops in self.stops:
            ruled = stops.n_asked > 0
            trials = np.where(ruled, stops.n_counted, trials)
            extreme = np.where(ruled, stops.n_counted_extreme, extreme)
        return trials, extreme

    @property
    def is_settled(self) -> NDArray[np.bool_]:
        """Where a rule to stop early has had its say: more trials are not asked for."""
        settled = np.zeros(len(self), np.bool_)
        for stops in self.stops:
            settled |= (stops.n_asked > 0) & (stops.is_early | (self.n_trials >= stops.n_asked))
        return settled

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Where the interval of p holds alpha, and more trials could turn its verdict."""
        found = (self.p_low <= self.alpha) & (self.alpha < self.p_high) & ~self.is_settled & ~self.exact
        for stops in self.stops:
            if stops.has_decision:
                found &= stops.n_asked == 0
        return found

    @property
    def decision(self) -> NDArray[np.int8]:
        """Whether each difference is significant at alpha, as `Result.decision`: 1, 0, or -1 where it is undecided."""
        single = np.where(self.is_open, -1, self.p_value <= self.alpha)
        found = np.where(np.isnan(self.p_adjusted), single, self.p_adjusted <= self.alpha).astype(np.int8)
        for stops in self.stops:
            if stops.has_decision:
                found = np.where((stops.n_asked > 0) & ~self.exact, stops.is_significant, found)
        return found

    @property
    def is_skewed(self) -> NDArray[np.bool_]:
        """Where the differences of units are skewed, so that the verdict stands with a note."""
        return np.zeros(len(self), np.bool_) if self.assumptions is None else self.assumptions.is_skewed

    @property
    def disagrees(self) -> NDArray[np.bool_]:
        """Where a cross-check disagrees."""
        found = np.zeros(len(self), np.bool_)
        for checked in self.checks.values():
            found |= checked.verdict == DISAGREES
        return found


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


def _checked(checked: CheckResults, rows: Rows, n: int) -> CheckResults:
    return replace(columns_taken(checked, rows), kept=_sparse(checked.kept, rows, n))


def _sparse(kept: Any, rows: Rows, n: int) -> dict[int, Any]:
    """Return what is kept of some rows, by their new places."""
    if not kept:
        return {}
    return {place: kept[row] for place, row in enumerate(_listed(rows, n)) if row in kept}


def _listed(rows: Rows, n: int) -> Sequence[int]:
    return range(n)[rows] if isinstance(rows, slice) else rows.tolist()


def _hanging(hanging: UnitCorrelation, rows: Rows, n: int) -> UnitCorrelation:
    wanted = np.array(_listed(rows, n), np.int64)
    places = np.minimum(np.searchsorted(hanging.rows, wanted), max(len(hanging.rows) - 1, 0))
    tested = hanging.rows[places] == wanted if len(hanging.rows) else np.zeros(len(wanted), np.bool_)
    own = places[tested]
    return UnitCorrelation(
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


def _checks_joined(parts: Sequence[CheckResults], starts: Sequence[int]) -> CheckResults:
    kept = {start + row: text for start, own in zip(starts, parts, strict=True) for row, text in own.kept.items()}
    return replace(columns_joined(parts), kept=kept)


def _unchecked(n: int) -> CheckResults:
    return CheckResults(np.full(n, -1, np.int8), np.full(n, np.nan), np.full(n, np.nan), Coded.same("", n))


def _alone(n: int) -> AlternativeUnit:
    none = np.zeros(n, np.int64)
    return AlternativeUnit(Coded.same("", n), none, np.zeros(n, np.bool_), none, none, np.full(n, np.nan))


def _hanging_joined(tables: Sequence[Table], starts: Sequence[int], column: str) -> UnitCorrelation:
    own = [
        (start, one)
        for start, table in zip(starts, tables, strict=True)
        for one in table.dependence
        if one.column == column
    ]

    def below(part: Callable[[int, UnitCorrelation], NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([part(start, one) for start, one in own])

    return UnitCorrelation(
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


def _origins_joined(tables: Sequence[Table]) -> InputDigests | None:
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


def _rule(stops: StoppedCounts) -> Rule:
    return stops.rule, stops.epsilon, stops.h


def _stops_of(table: Table, rule: Rule) -> StoppedCounts:
    """Return what a rule did to a table's rows; nothing where the table knows no such rule."""
    n = len(table)
    none, no = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    absent = StoppedCounts(rule[0], none, no, np.full(n, -1, np.int8), rule[1], rule[2], no, none, none)
    return next((own for own in table.stops if _rule(own) == rule), absent)


def _tested(table: Table, name: str) -> ClassicalColumn:
    """Return what a classical test found of a table's rows; nothing where it was not asked for."""
    n = len(table)
    nothing, none = np.full(n, np.nan), np.zeros(n, np.int64)
    absent = ClassicalColumn(name, nothing, nothing, none, none, Coded.same("", n))
    return next((own for own in table.tests if own.name == name), absent)


def details_of(table: Table) -> AdjustmentDetails:
    """Return what stands beside the adjusted p of a table's rows; NaN where that is nothing."""
    return no_details(len(table)) if table.adjusted is None else table.adjusted
