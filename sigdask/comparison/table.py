"""What was found of many comparisons: a column for each quantity, a row for each comparison.

Words are not in it: checks and notes are numbers and codes here, and become sentences where a row
is looked at or written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.found import views
from sigdask.comparison.found.adjusted import AdjustmentDetails
from sigdask.comparison.found.assumptions import Assumptions
from sigdask.comparison.found.origins import Origins
from sigdask.comparison.found.result import Result
from sigdask.comparison.intervals.columns import Intervals
from sigdask.comparison.notes import Note

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Value = TypeVar("Value", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Coded(Generic[Value]):
    """A column of few distinct values: names, units, metrics.

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
    def of(values: Iterable[Value]) -> Coded[Value]:
        """Make a column of each row's value, in the order in which values come first."""
        places: dict[Value, int] = {}
        codes = np.array([places.setdefault(value, len(places)) for value in values], np.int32)
        return Coded(codes, tuple(places))

    @staticmethod
    def same(value: Value, n: int) -> Coded[Value]:
        """Make a column of one value."""
        return Coded(np.zeros(n, np.int32), (value,))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, row: int) -> Value:
        return self.values[int(self.codes[row])]

    def listed(self) -> list[Value]:
        """Return the value of each row."""
        return [self.values[code] for code in self.codes.tolist()]


@dataclass(frozen=True, slots=True)
class Score:
    """What a row's metric is.

    Attributes
    ----------
    name : str
        As it was asked for.
    higher_is_better : bool
        Whether more is better.
    signature : str or None
        How the scorer library counted, in its own words.
    """

    name: str
    higher_is_better: bool
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Subset:
    """The items of one value of a column."""

    column: str
    value: str


NOT_APPLICABLE, AGREES, DISAGREES = 0, 1, 2
"""Codes of what a cross-check found."""


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
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
class Hanging:
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
class OtherUnit:
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
class Stops:
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
class Tested:
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
    metric : Coded of Score
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
    checks : mapping of str to Checked
        By the check's name, in the order in which they are shown.
    p_adjusted, p_adjusted_low, p_adjusted_high : float64
        NaN where p was not adjusted.
    dependence : tuple of Hanging
    beside : tuple of OtherUnit
        In the order in which they are shown.
    undefined_a, undefined_b : float64
        The score that 0/0 was given; NaN where the score is defined.
    step : float64
        How finely scores are distinguished; 0 where exactly, below 0 where some differ by less than that.
    stops : tuple of Stops
        One for each rule; no row is in two.
    seen_with : int64
        Trials that a p was had with before; 0 where it was not, or with no fewer.
    tests : tuple of Tested
        One for each classical test that was asked for, in the order of their names.
    notes : mapping of int to tuple of Note
        Of rows that an earlier version kept: their texts; such rows get no notes of their own.
    intervals : Intervals or None
        None where none were asked for.
    origins : Origins or None
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
    metric: Coded[Score]
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
    checks: Mapping[str, Checked]
    p_adjusted: Floats
    p_adjusted_low: Floats
    p_adjusted_high: Floats
    undefined_a: Floats
    undefined_b: Floats
    step: Floats
    seen_with: Integers
    dependence: tuple[Hanging, ...] = ()
    beside: tuple[OtherUnit, ...] = ()
    stops: tuple[Stops, ...] = ()
    tests: tuple[Tested, ...] = ()
    notes: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    intervals: Intervals | None = None
    origins: Origins | None = None
    assumptions: Assumptions | None = None
    adjusted: AdjustmentDetails | None = None

    def __len__(self) -> int:
        return len(self.p_value)

    def result(self, row: int) -> Result:
        """Return the view of one row, with its words."""
        [result] = views.results(self.take(slice(row, row + 1)))
        return result

    def results(self) -> Iterator[Result]:
        """Yield the view of each row, some thousands made at a time."""
        for first in range(0, len(self), views.AT_ONCE):
            yield from views.results(self.take(slice(first, first + views.AT_ONCE)))

    @staticmethod
    def of(results: Sequence[Result], alpha: float) -> Table:
        """Make columns of rows, such as are read one by one.

        Parameters
        ----------
        results : sequence of Result
            In their order.
        alpha : float
            Level of the verdicts, which notes speak of.
        """
        from sigdask.comparison.found.rows import table_of

        return table_of(results, alpha)

    def take(self, rows: slice | Integers) -> Table:
        """Return some rows, in the order given."""
        from sigdask.comparison.found.parts import taken

        return taken(self, rows)

    @staticmethod
    def joined(tables: Sequence[Table]) -> Table:
        """Put tables below each other; at least one, all of one alpha."""
        from sigdask.comparison.found.parts import joined

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
