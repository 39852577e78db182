"""What was found of many comparisons: a column for each quantity, a row for each comparison.

Words are not in it: checks and notes are numbers and codes here, and become sentences where a row
is looked at or written.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

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
    """

    verdict: NDArray[np.int8]
    p_value: Floats
    fit: Floats
    why: Coded[str]


@dataclass(frozen=True, slots=True, eq=False)
class Hanging:
    """How differences hang together within the groups of one coarser column: rows that it was tested of.

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
    """The same comparisons with another unit exchanged; columns as in `Table`, one row for each of its rows."""

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
    """

    rule: str
    n_asked: Integers
    is_early: NDArray[np.bool_]
    is_significant: NDArray[np.int8]
    epsilon: float | None
    h: int | None
    is_unknown: NDArray[np.bool_]


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
        NaN where a black box gave no score.
    n_items, n_units, n_discordant : int64
    exact : bool
        Whether p is of all arrangements.
    n_trials, n_extreme : int64
        Of the sample, or of all arrangements.
    p_value, p_low, p_high : float64
        p, and the ends of its interval.
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
    undefined_a, undefined_b : float64
        The score that 0/0 was given; NaN where the score is defined.
    step : float64
        How finely scores are told apart; 0 where exactly.
    stops : tuple of Stops
        One for each rule; no row is in two.
    seen_with : int64
        Trials that a p was had with before; 0 where it was not, or with no fewer.
    notes : mapping of int to tuple of Note
        Of rows that an earlier version kept: their texts; such rows get no notes of their own.
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
    notes: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.p_value)
