"""Results over several runs of each system: columns of a table, and the record of one comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.results.columns import CodedColumn, ColumnGroup
from sigdask.results.values import Nullable, Values, build_optional, build_optional_pairs, build_records
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS


@dataclass(frozen=True, slots=True, eq=False)
class RunResults(ColumnGroup):
    """Tests over runs and of recipes: arrays of shape (n,), NaN where a row has none.

    Attributes
    ----------
    column, method : CodedColumn of str
        As in `RecipeResult`.
    n_runs : int64
        Number of runs of each system; 0 for systems with one run.
    is_paired : bool
        As in `RecipeResult`.
    p_runs, p_value, p_adjusted, df, se_items, se_runs, low, high : float64
        As in `RecipeResult`.
    """

    column: CodedColumn[str]
    method: CodedColumn[str]
    n_runs: Integers
    is_paired: Bools
    p_runs: Floats
    p_value: Floats
    p_adjusted: Floats
    df: Floats
    se_items: Floats
    se_runs: Floats
    low: Floats
    high: Floats

    def decide(self, alpha: float) -> NDArray[np.int8]:
        """Return whether each row's difference is significant for recipes: 1, 0, or -1 if runs are too few."""
        p = np.where(np.isnan(self.p_adjusted), self.p_value, self.p_adjusted)
        return np.where(np.isnan(p), -1, p <= alpha).astype(np.int8)

    def read(self, alpha: float) -> Values:
        """Return the records of all rows."""
        words = CodedColumn(self.decide(alpha).astype(np.int32) + 1, VERDICTS)
        p_values = [build_optional(p) for p in (self.p_runs, self.p_value, self.p_adjusted, self.df)]
        named = self.column, self.n_runs, self.is_paired, self.method
        interval = build_optional_pairs(self.low, self.high)
        records = build_records(RecipeResult, *named, *p_values, self.se_items, self.se_runs, interval, words)
        return Nullable(records, self.n_runs > 0)


VERDICTS = ("too few runs", "not significant", "significant")


@dataclass(frozen=True, slots=True)
class RecipeResult:
    """Results of a comparison over several runs of each system, which are a sample of its recipe.

    Attributes
    ----------
    column : str
        What the runs are: a column such as "seed", or "run" for several files of a system.
    n_runs : int
        Number of runs of each system.
    is_paired : bool
        Whether the runs of both systems share seeds.
    method : {"permutation", "paired t", "Welch's t"}
        Test of `p_runs`. Permutations are exact.
    p_runs : float or None
        p over runs, for the items of the test set. `p_value` of the result is over items, for these runs.
    p_value : float or None
        p of the recipes: for further runs and items. None with fewer than three runs.
    p_adjusted : float or None
        p of the recipes, adjusted over the family (Holm). None if p was not adjusted.
    df : float or None
        Degrees of freedom of the test of recipes.
    se_items, se_runs : float
        Standard errors of the difference over items and over runs.
    interval : tuple of float, or None
        Interval of the difference between recipes, with confidence 1 - alpha.
    verdict : {"significant", "not significant", "too few runs"}
        Verdict on the recipes.
    """

    column: str
    n_runs: int
    is_paired: bool
    method: str
    p_runs: float | None
    p_value: float | None
    p_adjusted: float | None
    df: float | None
    se_items: float
    se_runs: float
    interval: tuple[float, float] | None
    verdict: str

    @property
    def best_p(self) -> float | None:
        """The adjusted p of the recipes, or the p if it was not adjusted."""
        return self.p_value if self.p_adjusted is None else self.p_adjusted


def adjust_runs(runs: RunResults, families: list[tuple[str, Integers]]) -> RunResults:
    """Return the results with the p of recipes adjusted in each family: by Holm, or by bh where that is requested."""
    adjusted = runs.p_adjusted.copy()
    for method, rows in families:
        known = rows[~np.isnan(runs.p_value[rows])]
        if method != "none" and len(rows) > 1 and len(known):
            adjusted[known] = P_VALUE_ADJUSTMENTS["bh" if method == "bh" else "holm"](runs.p_value[known])
    return replace(runs, p_adjusted=adjusted)
