"""Comparisons of real scores of very unequal size, enumerated in fractions: no lattice of 64 bits holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sigdask.counts import Counts
from sigdask.counts.lattice import as_meant
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.sums import Panel, SwapUnits
from sigdask.statistics.exact.sums.rationals import count_reached

Integers = NDArray[np.int64]

NEAR = 2**10
"""How many times a sum's slack the smallest difference must be, for the lattice to tell ties from others."""


@dataclass(frozen=True, slots=True, eq=False)
class RationalCounts:
    """Exact counts of comparisons whose scores are of very unequal size: arrays of shape (n,).

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
    def nothing(n: int) -> RationalCounts:
        """Return the counts of comparisons of which none needs any."""
        return RationalCounts(np.full((n, 3), -1, np.int64), np.full(n, np.nan))

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which comparisons are counted."""
        return np.asarray(self.n_reached[:, 0] >= 0)

    def add(self, k: int, counts: Counts, units: SwapUnits, metric: BoundMetric, systems: Sequence[int],
            mask: NDArray[np.bool_] | None, panel: Panel, row: int, column: int) -> None:  # fmt: skip
        """Count the arrangements of one comparison, which stands in a panel."""
        i, j = panel.pairs[row]
        values = panel.numerators_of(column, panel.values[:, [i, j]])
        addresses = panel.addresses[values[:, 0] != values[:, 1]]
        items = counts.in_common(list(systems), mask, metric.held)
        items &= np.isin(units.index, addresses)
        sums = {unit: [Fraction(), Fraction()] for unit in addresses.tolist()}
        for item in np.flatnonzero(items).tolist():
            for part, one in enumerate(_moved(counts, metric, systems, item)):
                sums[int(units.index[item])][part] += one
        differences, roundings = (list(own) for own in zip(*sums.values(), strict=True))
        self.n_reached[k] = count_reached(differences, roundings)
        self.difference[k] = float(sum(differences) / _total_weight(panel, column))


def is_unequal(panel: ComparedPanel, rows: Integers, column: int) -> NDArray[np.bool_]:
    """Say which pairs have differences so small beside others that the lattice does not tell their sums from ties."""
    if not isinstance(panel, Panel) or not panel.linear[column] or not panel.steps(column):
        return np.zeros(len(rows), np.bool_)
    if panel.is_coarse(column):
        return np.ones(len(rows), np.bool_)
    values = panel.numerators_of(column, panel.values)
    found = np.zeros(len(rows), np.bool_)
    for place, (i, j) in enumerate(panel.pairs[rows].tolist()):
        sizes = np.abs(values[:, i] - values[:, j])
        sizes = sizes[sizes > 0]
        found[place] = bool(len(sizes)) and sizes.min() < NEAR * panel.slack[rows[place], column]
    return found


def _total_weight(panel: Panel, column: int) -> Fraction:
    """Return the denominator of a mean."""
    found = Fraction()
    for f, weight in zip(panel.metrics[column].fields, panel.ratio(column).denominators[0], strict=True):
        lattice = panel.lattices[f]
        step = Fraction(lattice.step) if lattice.digits is None else Fraction(1, 10**lattice.digits)
        found += Fraction(weight) * int(panel.totals[0, f]) * step
    return found


def _moved(counts: Counts, metric: BoundMetric, systems: Sequence[int], item: int) -> tuple[Fraction, Fraction]:
    """Return by how much the first system's numerator of an item exceeds the second's, and how far that may be off."""
    assert isinstance(metric.form, Ratios)
    difference, rounding = Fraction(), Fraction()
    for name, weight in zip(metric.fields, metric.form.numerators[0], strict=True):
        field = metric.field(name, counts)
        if not weight or field.shape[1] == 1:
            continue
        values = [float(field[item, s]) for s in systems]
        if values[0] == values[1]:
            continue
        for sign, value, s in zip((1, -1), values, systems, strict=True):
            number, off = as_meant(value)
            difference += sign * Fraction(weight) * number
            rounding += abs(Fraction(weight)) * (off + Fraction(metric.rounding(name, counts)[s]))
    return difference, rounding
