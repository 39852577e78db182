"""Two components of variance beside that of items: of groups of dependent units, and of the runs of a system.

If correlated items (sentences of a document) are swapped as if they were independent, p is too small. Yeh 2000 names
this problem without a solution. The correlation is estimated by the one-way analysis of variance of the units'
differences: variance between groups against variance within groups (Donner & Klar 2000, ch. 1).

A recipe, such as an architecture with its training, gives another system with each random seed. Swapping items tests
the runs that were made, and permuting runs tests the items that were chosen. The test of recipes has both components
of variance: D / sqrt(s_items^2 + s_runs^2), with Student's t.

References
----------
Satterthwaite 1946, "An approximate distribution of estimates of variance components". Bouthillier et al. 2021,
"Accounting for variance in machine learning benchmarks". Owen 2007, "The pigeonhole bootstrap", on the sum of both
components.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

import numpy as np
import scipy

from sigdask.counts.fields import Bools, Floats, Integers
from sigdask.options import Alternative

CLEAR_LEVEL = 0.01
"""Level of the F test, shared by all tested differences, at which they are called dependent."""

NEGLIGIBLE_EFFECT = 1.05
"""Design effects up to this do not matter."""


@dataclass(frozen=True, slots=True, eq=False)
class SumsOfSquares:
    """Sums of squares between and within groups, from which the ICC of any linear combination of columns is computed.

    Attributes
    ----------
    sizes : int64 array, shape (n_groups,)
        Units in each group.
    sums : float64 array, shape (n_columns,)
    scale : float64 array, shape (n_columns,)
        The power of two by which each column is divided in the cross products.
    total, between : float64 array, shape (n_columns, n_columns)
        Cross products of the units' excess over their share by items, and of its group means weighted by size.
    """

    sizes: Integers
    sums: Floats
    scale: Floats
    total: Floats
    between: Floats

    @staticmethod
    def from_values(values: Floats, groups: Integers, n_items: Integers) -> SumsOfSquares:
        """Compute the sums of squares from each unit's values and group.

        Parameters
        ----------
        values : float64 array, shape (n_units, n_columns)
            Contributions of each unit.
        groups : int64 array, shape (n_units,)
            Group of each unit, 0 to n_groups - 1, none empty.
        n_items : int64 array, shape (n_units,)
            Items in each unit, because a long document has more of any difference.
        """
        sizes = np.bincount(groups)
        scale = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0, initial=0.0))[1])  # squares stay within range
        total = values.sum(axis=0)
        centred = (values - np.outer(n_items / n_items.sum(), total)) / scale
        sums = np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, groups, centred)
        return SumsOfSquares(sizes, total, scale, centred.T @ centred, sums.T @ (sums / sizes[:, None]))

    def compute_dependence(self, columns: Integers, weights: Floats) -> tuple[Floats, Floats, Floats]:
        """Return ICC, design effect and p-value of many linear combinations, each of a few columns.

        Parameters
        ----------
        columns : int64 array, shape (n, n_taken)
            The columns of each combination.
        weights : float64 array, shape (n, n_taken)
            Factors of the columns.

        Returns
        -------
        tuple of float64 array, shape (n,)
            Intraclass correlation of the differences (ANOVA estimator), the factor 1 + (m - 1) icc of the variance of a
            mean, where m is the mean over units of their group's size, and p of the F test; NaN where nothing varies.
        """
        weights = weights * self.scale[columns]
        weights = np.ldexp(weights, -np.frexp(np.abs(weights).max(axis=1, initial=0.0))[1][:, None])
        total, between, size = (np.zeros(len(weights)) for _ in range(3))
        for k, first in enumerate(columns.T):
            for other, second in enumerate(columns.T):
                products = weights[:, k] * weights[:, other]
                squares = self.total[first, second] * products
                total, size = total + squares, size + np.abs(squares)
                between = between + self.between[first, second] * products
        return _analyse_variance(self.sizes, total, np.clip(between, 0.0, total), total > 1e-12 * size)


def _analyse_variance(sizes: Integers, total: Floats, between: Floats, varies: Bools) -> tuple[Floats, Floats, Floats]:
    """Return ICC, design effect and p-value from the sums of squares of an analysis of variance; NaN if undefined."""
    n, k = int(sizes.sum()), len(sizes)
    if k < 2 or n <= k:
        return np.full((3, len(total)), np.nan)  # type: ignore[return-value]
    squares = float((sizes.astype(np.float64) ** 2).sum())
    usual = (n - squares / n) / (k - 1)
    total, between = np.where(varies, total, 1.0), np.where(varies, between, 0.0)
    mean_between, mean_within = between / (k - 1), (total - between) / (n - k)
    icc = (mean_between - mean_within) / (mean_between + (usual - 1) * mean_within)
    effect = np.maximum(1 + (squares / n - 1) * icc, 0.0)
    inside = mean_within > 0
    ratio = np.where(inside, mean_between, 0.0) / np.where(inside, mean_within, 1.0)
    p = np.where(inside & np.isfinite(ratio), scipy.special.fdtrc(k - 1, n - k, ratio), 0.0)
    icc, effect, p = (np.where(varies, x, np.nan) for x in (icc, effect, p))
    return icc, effect, p


def find_clear(design_effect: Floats, p_value: Floats, n_tested: int) -> Bools:
    """Return which dependences are large enough to matter and significant, corrected for `n_tested` tests."""
    return np.asarray((design_effect > NEGLIGIBLE_EFFECT) & (p_value <= CLEAR_LEVEL / max(n_tested, 1)))


def compute_naive_size(design_effect: float) -> float:
    """Return the approximate size of a two-sided test at 0.05 that treats dependent units as independent.

    Examples
    --------
    >>> round(compute_naive_size(1 + 9 * 0.1), 3)
    0.155
    """
    z = scipy.special.ndtri(0.975) / np.sqrt(max(design_effect, 1e-12))
    return float(2 * scipy.special.ndtr(-z))


RunsMethod = Literal["permutation", "paired t", "Welch's t"]

MIN_RUNS = 3
"""Minimum number of runs of each system for the test of recipes. With two, its level is not held."""

MAX_ARRANGEMENTS = 2**18
"""Maximum number of arrangements of runs that are enumerated: 18 pairs, or 10 runs of each system."""

MAX_SUMS = 2**22
"""Maximum number of sums that are held at a time."""

FEW = 5
"""Number of pairs of runs, or of units, below which Satterthwaite's degrees of freedom are too many: the level rises to
0.08.
"""

TIE = 1e-9
"""Relative difference of means of runs that may be rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class RunsTest:
    """Tests of n differences between systems with several runs each: arrays of shape (n,).

    Attributes
    ----------
    method : str
        Test over runs.
    p_runs : float64
        p over runs, for these items.
    p_value : float64
        p of the recipes, for further runs and items. NaN with fewer than `MIN_RUNS` runs.
    df : float64
        Its degrees of freedom.
    se_items, se_runs : float64
        Standard errors of the difference over items and over runs.
    """

    method: RunsMethod
    p_runs: Floats
    p_value: Floats
    df: Floats
    se_items: Floats
    se_runs: Floats

    def compute_interval(self, difference: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of differences that the two-sided test of recipes does not reject."""
        reach = scipy.special.stdtrit(self.df, (1 + confidence) / 2) * np.hypot(self.se_items, self.se_runs)
        return difference - reach, difference + reach


def compare_runs(
    scores: Floats,
    se_items: Floats,
    n_units: int | Integers,
    *,
    is_paired: bool,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> RunsTest:
    """Test differences between systems over their runs, and between their recipes.

    Parameters
    ----------
    scores : float64 array, shape (n, 2, n_runs)
        Score of each run of both systems.
    se_items : float64 array, shape (n,)
        Standard errors of the differences of mean scores over items.
    n_units : int, or int64 array, shape (n,)
        Number of units from which these are estimated.
    is_paired : bool
        Whether runs of both systems share seeds (or raters, or prompts), in the same order.
    alternative : str
        Alternative of the tests.
    alpha : float
        Level. Runs are permuted if there are at least 20 / alpha arrangements.

    Examples
    --------
    >>> scores = np.array([[[0.81, 0.79, 0.80], [0.70, 0.73, 0.71]]])
    >>> test = compare_runs(scores, np.array([0.02]), 500, is_paired=False)
    >>> test.method, test.p_runs.round(4).tolist(), test.p_value.round(4).tolist()
    ("Welch's t", [0.0022], [0.0003])
    """
    n_runs = scores.shape[2]
    difference = np.diff(scores.mean(axis=2)[:, ::-1], axis=1)[:, 0]
    samples = [scores[:, 0] - scores[:, 1]] if is_paired else [scores[:, 0], scores[:, 1]]
    parts = np.array([sample.var(axis=1, ddof=1) / n_runs for sample in samples])  # (1 or 2, n)
    variance = parts.sum(axis=0)
    total = se_items**2 + variance
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = (parts**2).sum(axis=0) / (n_runs - 1)
        df_runs = variance**2 / squares
        df = total**2 / (squares + se_items**4 / (n_units - 1))
        if is_paired and n_runs < FEW:
            df = np.minimum(df, (n_runs - 1) * total / variance)  # NaN with one unit, which shows no variance of items
        df = np.where(np.less(n_units, FEW), np.minimum(df, (n_units - 1) * total / se_items**2), df)
        p_value = _compute_tail(difference / np.sqrt(total), df, alternative)
        p_runs = _compute_tail(difference / np.sqrt(variance), df_runs, alternative)
    method: RunsMethod = "paired t" if is_paired else "Welch's t"
    n_arrangements = 2**n_runs if is_paired else math.comb(2 * n_runs, n_runs)
    if 20 / alpha <= n_arrangements <= MAX_ARRANGEMENTS:
        method, p_runs = "permutation", _permute_runs(samples, alternative)
    if n_runs < MIN_RUNS:
        p_value, df = np.full(len(p_value), np.nan), np.full(len(df), np.nan)
    return RunsTest(method, p_runs, p_value, df, se_items, np.sqrt(variance))


def _compute_tail(t: Floats, df: Floats, alternative: Alternative) -> Floats:
    """Return the p-values of Student's t."""
    if alternative == "two-sided":
        return np.asarray(2 * scipy.special.stdtr(df, -np.abs(t)))
    return np.asarray(scipy.special.stdtr(df, -t if alternative == "greater" else t))


def _permute_runs(samples: list[Floats], alternative: Alternative) -> Floats:
    """Return the share of arrangements of runs whose mean difference is at least as extreme as the observed one.

    Both systems' runs of a seed are swapped if they are paired, else runs are dealt to the two systems.
    """
    values = np.concatenate(samples, axis=1)
    signs = _list_signs(samples[0].shape[1], is_paired=len(samples) == 1)
    slack = TIE * np.abs(values).sum(axis=1)
    p_values = np.empty(len(values))
    size = max(1, MAX_SUMS // len(signs))
    for start in range(0, len(values), size):
        rows = slice(start, start + size)
        sums = signs @ values[rows].T if alternative != "less" else signs @ -values[rows].T
        sums = np.abs(sums) if alternative == "two-sided" else sums
        p_values[rows] = np.mean(sums >= sums[0] - slack[rows], axis=0)
    return p_values


@lru_cache(2)
def _list_signs(n_runs: int, *, is_paired: bool) -> Floats:
    """Return the sign of each run's score in all arrangements, the observed one first."""
    if is_paired:
        return np.asarray(1.0 - 2 * (np.arange(2**n_runs)[:, None] >> np.arange(n_runs) & 1), np.float64)
    chosen = np.array([*combinations(range(2 * n_runs), n_runs)])
    signs = np.full((len(chosen), 2 * n_runs), -1.0)
    np.put_along_axis(signs, chosen, 1.0, axis=1)
    return signs
