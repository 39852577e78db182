"""Exact enumeration in fractions, for real scores of so unequal size that integer steps cannot hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.lattice import as_fraction
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.statistics.exact.sums.rationals import count_extreme

Integers = NDArray[np.int64]

MIN_SLACK_RATIO = 2**10
"""How many times a sum's slack the smallest difference must be, for the lattice to tell ties from others."""


@dataclass(frozen=True, slots=True, eq=False)
class RationalCounts:
    """Counts of all arrangements for comparisons with scores of very unequal size: arrays of shape (n,).

    Attributes
    ----------
    n_reached : int64, shape (n, 3)
        Arrangements that are as extreme as the observed one, in the order of `TAILS`; -1 of other comparisons.
    difference : float64
        The observed difference, without rounding of sums; NaN of other comparisons.
    """

    n_reached: Integers
    difference: NDArray[np.float64]

    @staticmethod
    def empty(n: int) -> RationalCounts:
        """Return counts of `n` comparisons that are all unknown."""
        return RationalCounts(np.full((n, 3), -1, np.int64), np.full(n, np.nan))

    @property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each comparison is counted."""
        return np.asarray(self.n_reached[:, 0] >= 0)

    def add(self, k: int, counts: Counts, units: SwapUnits, metric: BoundMetric, systems: Sequence[int],
            mask: NDArray[np.bool_] | None, panel: Panel, row: int, column: int) -> None:  # fmt: skip
        """Enumerate comparison `k` in fractions, and enter its extreme arrangements and its difference."""
        i, j = panel.pairs[row]
        values = panel.compute_numerators(column, panel.values[:, [i, j]])
        addresses = panel.addresses[values[:, 0] != values[:, 1]]
        items = counts.in_common(list(systems), mask, metric.held)
        items &= np.isin(units.index, addresses)
        sums = {unit: [Fraction(), Fraction()] for unit in addresses.tolist()}
        for item in np.flatnonzero(items).tolist():
            for index, change in enumerate(_compute_change(counts, metric, systems, item)):
                sums[int(units.index[item])][index] += change
        differences, roundings = (list(values_of_side) for values_of_side in zip(*sums.values(), strict=True))
        self.n_reached[k] = count_extreme(differences, roundings)
        self.difference[k] = float(sum(differences) / _sum_weights(panel, column))


def is_unequal(panel: ComparedPanel, rows: Integers, column: int) -> NDArray[np.bool_]:
    """Return which pairs have units with differences so small that integer steps cannot tell them from ties."""
    if not isinstance(panel, Panel) or not panel.linear[column] or not panel.count_slack_steps(column):
        return np.zeros(len(rows), np.bool_)
    if panel.is_coarse(column):
        return np.ones(len(rows), np.bool_)
    values = panel.compute_numerators(column, panel.values)
    result = np.zeros(len(rows), np.bool_)
    for index, (i, j) in enumerate(panel.pairs[rows].tolist()):
        sizes = np.abs(values[:, i] - values[:, j])
        sizes = sizes[sizes > 0]
        result[index] = bool(len(sizes)) and sizes.min() < MIN_SLACK_RATIO * panel.slack[rows[index], column]
    return result


def _sum_weights(panel: Panel, column: int) -> Fraction:
    """Return the denominator of a panel's mean as a fraction."""
    total = Fraction()
    for f, weight in zip(panel.metrics[column].fields, panel.get_ratio(column).denominators[0], strict=True):
        lattice = panel.lattices[f]
        step = Fraction(lattice.step) if lattice.digits is None else Fraction(1, 10**lattice.digits)
        total += Fraction(weight) * int(panel.totals[0, f]) * step
    return total


def _compute_change(
    counts: Counts, metric: BoundMetric, systems: Sequence[int], item: int
) -> tuple[Fraction, Fraction]:
    """Return the difference of two systems' numerators on an item, and a bound of its rounding error."""
    assert isinstance(metric.form, Ratios)
    difference, rounding = Fraction(), Fraction()
    for name, weight in zip(metric.fields, metric.form.numerators[0], strict=True):
        field = metric.get_field(name, counts)
        if not weight or field.shape[1] == 1:
            continue
        values = [float(field[item, s]) for s in systems]
        if values[0] == values[1]:
            continue
        for sign, value, s in zip((1, -1), values, systems, strict=True):
            number, error = as_fraction(value)
            difference += sign * Fraction(weight) * number
            rounding += abs(Fraction(weight)) * (error + Fraction(metric.get_rounding(name, counts)[s]))
    return difference, rounding
