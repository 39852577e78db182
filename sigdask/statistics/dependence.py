"""Dependence between units of one group: intraclass correlation of differences, design effect.

Swapping items that hang together (sentences of a document) as if they were independent makes p too
small; Yeh 2000 left it open. The one-way analysis of variance of the units' differences says how
much hangs together: variance between groups against variance within (Donner & Klar 2000, ch. 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

CLEAR = 0.01
"""Level of the F test from which differences are called dependent, shared by all that are tested."""

NEGLIGIBLE = 1.05
"""Design effect up to which dependence does not matter."""


@dataclass(frozen=True, slots=True)
class Dependence:
    """How much differences within the groups of one column hang together.

    Attributes
    ----------
    column : str
        The grouping column.
    n_groups : int
        Its groups.
    icc : float
        Intraclass correlation of the differences, ANOVA estimator; may be below 0.
    design_effect : float
        1 + (m - 1) icc, m the size of the group that a unit meets on average; at least 0. The
        variance of a mean is that many times what independent units would give.
    p_value : float
        Of the F test that the groups do not differ.
    """

    column: str
    n_groups: int
    icc: float
    design_effect: float
    p_value: float

    def is_clear(self, n_tested: int) -> bool:
        """Say whether it would matter and is not chance, among `n_tested` such tests."""
        return self.design_effect > NEGLIGIBLE and self.p_value <= CLEAR / max(n_tested, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """Sums of squares of any linear combination of columns, between and within groups.

    Attributes
    ----------
    column : str
        The grouping column.
    sizes : int64 array, shape (n_groups,)
        Units in each group.
    sums : float64 array, shape (n_columns,)
    scale : float64 array, shape (n_columns,)
        The power of two that each column is divided by in the cross products.
    total, between : float64 array, shape (n_columns, n_columns)
        Cross products of what units have above their share by items, and of the group means of it
        weighted by size.
    """

    column: str
    sizes: NDArray[np.int64]
    sums: NDArray[np.float64]
    scale: NDArray[np.float64]
    total: NDArray[np.float64]
    between: NDArray[np.float64]

    @staticmethod
    def of(column: str, values: NDArray[np.float64], groups: NDArray[np.int64], n_items: NDArray[np.int64]) -> Grams:
        """Sum up.

        Parameters
        ----------
        column : str
            The grouping column.
        values : float64 array, shape (n_units, n_columns)
            What each unit contributes.
        groups : int64 array, shape (n_units,)
            Group of each unit, 0 to n_groups - 1, none empty.
        n_items : int64 array, shape (n_units,)
            Items in each unit: a long document has more of any difference.
        """
        sizes = np.bincount(groups)
        scale = np.ldexp(1.0, np.frexp(np.abs(values).max(axis=0, initial=0.0))[1])  # squares stay within range
        total = values.sum(axis=0)
        centred = (values - np.outer(n_items / n_items.sum(), total)) / scale
        sums = np.zeros((len(sizes), values.shape[1]))
        np.add.at(sums, groups, centred)
        return Grams(column, sizes, total, scale, centred.T @ centred, sums.T @ (sums / sizes[:, None]))

    def dependence(self, weights: NDArray[np.float64]) -> Dependence | None:
        """Return the dependence of one combination of columns; None where nothing varies."""
        n, k = int(self.sizes.sum()), len(self.sizes)
        weights = weights * self.scale
        weights = np.ldexp(weights, -np.frexp(np.abs(weights).max(initial=0.0))[1])
        total = float(weights @ self.total @ weights)
        if k < 2 or n <= k or total <= 1e-12 * float(np.abs(weights) @ np.abs(self.total) @ np.abs(weights)):
            return None
        between = min(float(weights @ self.between @ weights), total)
        mean_between, mean_within = between / (k - 1), (total - between) / (n - k)
        squares = float((self.sizes.astype(np.float64) ** 2).sum())
        usual = (n - squares / n) / (k - 1)
        icc = (mean_between - mean_within) / (mean_between + (usual - 1) * mean_within)
        effect = max(1 + (squares / n - 1) * icc, 0.0)
        ratio = mean_between / mean_within if mean_within > 0 else np.inf
        p = float(special.fdtrc(k - 1, n - k, ratio)) if np.isfinite(ratio) else 0.0
        return Dependence(self.column, k, icc, effect, p)


def naive_size(design_effect: float, alpha: float = 0.05) -> float:
    """Return about the true size of a two-sided test that ignores dependence.

    Examples
    --------
    >>> round(naive_size(1 + 9 * 0.1), 3)
    0.155
    """
    z = special.ndtri(1 - alpha / 2) / np.sqrt(max(design_effect, 1e-12))
    return float(2 * special.ndtr(-z))
