"""The observed pairs of units of two systems: what they add to each score, and how far each leads the difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import COUNTS
from sigdask.metrics.forms import gradient
from sigdask.randomization.panels.scored_sums import as_arguments
from sigdask.randomization.panels.sums import Panel
from sigdask.statistics.power import tilting

Array = NDArray[np.float64]

EXACT_32 = 2**24
"""Whole numbers below it are exact in 32 bits, and so are sums of them."""

MOST_DRAWN = 2**16
"""Contributions of units to a sample, at most."""

MOST_KEPT = 2**20
"""Numbers of units' influences that are kept for many pairs; of further pairs they are made anew."""


@dataclass(frozen=True, eq=False)
class ObservedPair:
    """The units of one pair under one metric, in the order of their influence on the difference.

    Attributes
    ----------
    panel : Panel
        Of this pair and metric alone, with all units.
    """

    panel: Panel

    @cached_property
    def _unsorted(self) -> Array:
        """Influence of each unit on the difference of scores, in the order of the panel, shape (n_units,)."""
        panel, form = self.panel, self.panel.metrics[0].form
        n_units = len(panel.values)
        if panel.linear[0] and not self.varies_below:
            return self._apart.astype(np.float64) * panel.unit_of(0) * n_units
        totals = panel.sums(0, panel.totals)  # (2, n_fields)
        slopes = [gradient(form, totals[side]) for side in range(2)]
        added = self._arguments
        found = (added[:, 0] @ slopes[0] - added[:, 1] @ slopes[1]) * n_units
        return np.asarray(found - found.mean())

    @cached_property
    def varies_below(self) -> bool:
        """Whether units differ in what a mean is divided by."""
        own = self.panel.metrics[0]
        below = self.panel.values[:, 0, list(own.fields)] @ np.array(self.panel.ratio(0).denominators[0])
        return bool((below != below[0]).any())

    @cached_property
    def _apart(self) -> NDArray[np.int64]:
        """What the numerators of a mean differ by in each unit, in the order of the panel."""
        above = self.panel.numerators_of(0, self.panel.values)
        return np.asarray(above[:, 0] - above[:, 1])

    @cached_property
    def _arguments(self) -> Array:
        """What units add to the arguments of the score, shape (n_units, 2, n_fields)."""
        own = self.panel
        return np.asarray(as_arguments(own.values.astype(np.int64), own.lattices, own.metrics[0].fields), np.float64)

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Places of the units by their influence, the least first."""
        return np.argsort(self._unsorted, kind="stable")

    @cached_property
    def influences(self) -> Array:
        """Influence of each unit on the difference of scores, shape (n_units,)."""
        return self._unsorted[self.order]

    @cached_property
    def apart(self) -> NDArray[np.int64]:
        """What the numerators of a mean differ by in each unit, shape (n_units,)."""
        return self._apart[self.order]

    @cached_property
    def arguments(self) -> Array:
        """What units add to the arguments of the score, shape (n_units, 2, n_fields)."""
        return self._arguments[self.order]

    @cached_property
    def moved(self) -> NDArray[Any]:
        """What a swap of each unit moves from B to A, shape (n_units, n_fields), in 32 bits where those are exact."""
        apart = self.arguments[:, 1] - self.arguments[:, 0]
        counted = all(lattice == COUNTS for lattice in self.panel.lattices)
        fits = counted and np.abs(apart).max(initial=0.0) * (MOST_DRAWN // apart.shape[1]) < EXACT_32
        return apart.astype(np.float32 if fits else np.float64)

    @cached_property
    def slack(self) -> NDArray[np.int64]:
        """Lattice steps within which each unit may miss a true tie, shape (n_units,)."""
        sizes = self.panel.sizes[self.order] * self.panel.steps(0)
        values = self.panel.values[self.order]
        return np.asarray(np.where((values[:, 0] != values[:, 1]).any(axis=1), sizes, 0))

    def roundoff(self, totals: Array) -> Array:
        """Return how far scores may lie from those of the true sums, of arguments of shape (..., n_fields)."""
        panel = self.panel
        if not panel.is_approximate(0):
            return np.zeros(totals.shape[:-1])
        scales = [lattice.step for lattice in panel.lattices]
        return panel.movement(0, np.rint(totals / scales).astype(np.int64))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.panel.values)

    @property
    def n_fields(self) -> int:
        """Numbers that each unit has a part in: of a mean one."""
        return 1 if self.panel.linear[0] else len(self.panel.metrics[0].fields)

    @property
    def differs(self) -> bool:
        """Whether the systems differ anywhere in what the metric takes."""
        return bool(self.panel.n_discordant[0, 0])

    @property
    def difference(self) -> float:
        """The observed difference of scores."""
        return float(self.panel.differences[0, 0])

    def difference_at(self, weights: Array) -> float:
        """Return the difference of the scores of the expected sums of as many units, drawn with some probabilities."""
        if self.is_plain:
            return float(weights @ self.influences)
        form = self.panel.metrics[0].form
        sums = np.tensordot(weights, self.arguments, 1) * self.n_units  # (2, n_fields)
        a, b = form.score(sums)
        return float(a - b)

    @cached_property
    def is_plain(self) -> bool:
        """Whether the score is a mean over units, of which each counts alike."""
        return self.panel.linear[0] and not self.varies_below

    @cached_property
    def signs(self) -> tuple[int, int] | None:
        """Units won and lost, where all nonzero differences of a mean are equally large."""
        wins, losses = self.panel.signs[0, 0]
        return None if wins < 0 or not self.panel.linear[0] else (int(wins), int(losses))

    def spread_at(self, weights: Array) -> float:
        """Return the standard deviation of the influences under some probabilities."""
        mean = weights @ self.influences
        return float(np.sqrt(weights @ (self.influences - mean) ** 2))

    def strength_of(self, wanted: float) -> float | None:
        """Return the tilt under which the difference is as wanted; None where none is."""
        return tilting.strength_of(self.influences, self.difference_at, wanted)

    def weights(self, strength: float) -> Array:
        """Return the probabilities of the units under a tilt."""
        return tilting.weights(self.influences, strength)


@dataclass(frozen=True, eq=False)
class SystemPairs:
    """Pairs of systems of a panel that has all units, under one metric; a pair is looked at when it is asked for.

    Attributes
    ----------
    panel : Panel
        Of one metric.
    """

    panel: Panel
    _kept: dict[int, ObservedPair] = field(default_factory=dict)

    def __getitem__(self, row: int) -> ObservedPair:
        found = self._kept.get(row)
        if found is None:
            found = ObservedPair(self.panel.part([row]))
            if len(self._kept) * len(self.panel.values) < MOST_KEPT:
                self._kept[row] = found
        return found

    def part(self, rows: NDArray[np.int64]) -> SystemPairs:
        """Return some of the pairs, with the systems that they need."""
        return SystemPairs(self.panel.part(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemPairs, (self.panel,)
