"""Dependence between units of one group: intraclass correlation of differences, and design effect.

If correlated items (sentences of a document) are swapped as if they were independent, p is too small. Yeh 2000 names
this problem without a solution. The correlation is estimated by the one-way analysis of variance of the units'
differences: variance between groups against variance within groups (Donner & Klar 2000, ch. 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from sigdask.counts.fields import Bools, Floats, Integers

CLEAR_LEVEL = 0.01
"""Level of the F test, shared by all tested differences, at which they are called dependent."""

NEGLIGIBLE_EFFECT = 1.05
"""Design effects up to this do not matter."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How strongly the differences of units in the same group are correlated, for one grouping column.

    Attributes
    ----------
    column : str
        The grouping column.
    n_groups : int
        Number of groups.
    icc : float
        Intraclass correlation of the differences (ANOVA estimator), which may be negative.
    design_effect : float
        1 + (m - 1) icc, at least 0, where m is the mean over units of their group's size. The variance of a mean is
        larger by this factor than for independent units.
    p_value : float
        p-value of the F test that the groups do not differ.
    """

    column: str
    n_groups: int
    icc: float
    design_effect: float
    p_value: float


@dataclass(frozen=True, slots=True, eq=False)
class SumsOfSquares:
    """Sums of squares between and within groups, from which the ICC of any linear combination of columns is computed.

    Attributes
    ----------
    column : str
        The grouping column.
    sizes : int64 array, shape (n_groups,)
        Units in each group.
    sums : float64 array, shape (n_columns,)
    scale : float64 array, shape (n_columns,)
        The power of two by which each column is divided in the cross products.
    total, between : float64 array, shape (n_columns, n_columns)
        Cross products of the units' excess over their share by items, and of its group means weighted by size.
    """

    column: str
    sizes: Integers
    sums: Floats
    scale: Floats
    total: Floats
    between: Floats

    @staticmethod
    def from_values(column: str, values: Floats, groups: Integers, n_items: Integers) -> SumsOfSquares:
        """Compute the sums of squares from each unit's values and group.

        Parameters
        ----------
        column : str
            The grouping column.
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
        return SumsOfSquares(column, sizes, total, scale, centred.T @ centred, sums.T @ (sums / sizes[:, None]))

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
            ICC, design effect and p, as in `Dependence`; NaN where nothing varies.
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
