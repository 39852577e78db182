"""Jackknife (leave out one unit at a time): standard errors, and the acceleration of BCa intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.metrics.forms import compute_scores_or_nan
from sigdask.randomization.panels.scored_sums import ScoredSums

MOST_NUMBERS = 2**21
"""Sums without one unit that are made at a time."""

CONSTANT = 1e-12
"""Size of a change, relative to the score, below which it is rounding."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Jackknife:
    """Standard error and skewness of n statistics, from their changes when one unit is left out: arrays of shape (n,).

    Attributes
    ----------
    error : float64
        The standard error; 0 where no unit matters.
    skewness : float64
        Of the changes; 0 where they are constant.
    n_units : int
        Units.
    """

    error: Floats
    skewness: Floats
    n_units: int

    @property
    def acceleration(self) -> Floats:
        """Rate at which the standard error changes with the statistic, as Efron 1987 estimates it."""
        return np.asarray(self.skewness / (6 * np.sqrt(max(self.n_units, 1))))

    @staticmethod
    def from_panel(panel: ScoredSums, metric: int) -> Jackknife:
        """Return the jackknife of pairs' differences, followed by systems' scores, for a panel that has all units.

        Returns
        -------
        Jackknife
            Of shape (n_pairs + n_systems,).
        """
        i, j = panel.pairs.T
        n_units, n_systems = panel.values.shape[:2]
        full_scores = _compute_scores(panel, metric, panel.totals)
        moments, unit = np.zeros((3, len(i) + n_systems)), compute_binary_size(full_scores)
        step = max(1, MOST_NUMBERS // max(n_systems * panel.values.shape[2] + len(i), 1))
        for start in range(0, n_units, step):
            remaining = panel.totals - panel.values[start : start + step]  # (n_some, n_systems, n_fields)
            moved = full_scores - _compute_scores(panel, metric, remaining)
            moved[np.abs(moved) <= CONSTANT * np.abs(full_scores)] = 0.0
            changes = np.concatenate([moved[:, i] - moved[:, j], moved], axis=1) / unit
            for power in range(3):
                moments[power] += (changes ** (power + 1)).sum(axis=0)
        return _build_from_moments(moments, n_units, unit)


def _compute_scores(panel: ScoredSums, metric: int, totals: NDArray[np.int64]) -> Floats:
    return compute_scores_or_nan(panel.metrics[metric].form, panel.to_arguments(metric, totals))


def compute_binary_size(values: Floats) -> float:
    """Return a power of two above the largest absolute value, to divide by so that powers of values do not overflow."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.ldexp(1.0, min(int(np.frexp(finite.max(initial=0.0))[1]), MOST_EXPONENT)))


MOST_EXPONENT = 1023


def _build_from_moments(moments: Floats, n_units: int, unit: float) -> Jackknife:
    mean, square, cube = moments / max(n_units, 1)
    variance = square - mean**2
    varies = variance > CONSTANT * square
    variance = np.where(varies, variance, 0.0)
    third = np.where(varies, cube - 3 * mean * square + 2 * mean**3, 0.0)
    return Jackknife(np.sqrt((n_units - 1) * variance) * unit, third / np.where(varies, variance, 1.0) ** 1.5, n_units)
