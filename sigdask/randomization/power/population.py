"""The observed units of two systems as a population to sample from, with their influence on the difference."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import INTEGER_LATTICE
from sigdask.metrics.forms import compute_gradient
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
    """Units of one pair of systems under one metric, in the order of their influence on the difference.

    Attributes
    ----------
    panel : Panel
        Of this pair and metric alone, with all units.
    """

    panel: Panel

    @cached_property
    def _panel_influences(self) -> Array:
        """Influence of each unit on the difference of scores, in the panel's order, shape (n_units,)."""
        panel, form = self.panel, self.panel.metrics[0].form
        n_units = len(panel.values)
        if panel.linear[0] and not self.has_varying_denominator:
            return self._panel_differences.astype(np.float64) * panel.compute_step_value(0) * n_units
        totals = panel.to_arguments(0, panel.totals)  # (2, n_fields)
        slopes = [compute_gradient(form, totals[side]) for side in range(2)]
        added = self._panel_arguments
        influences = (added[:, 0] @ slopes[0] - added[:, 1] @ slopes[1]) * n_units
        return np.asarray(influences - influences.mean())

    @cached_property
    def has_varying_denominator(self) -> bool:
        """Whether units differ in what they add to a mean's denominator."""
        metric = self.panel.metrics[0]
        below = self.panel.values[:, 0, list(metric.fields)] @ np.array(self.panel.get_ratio(0).denominators[0])
        return bool((below != below[0]).any())

    @cached_property
    def _panel_differences(self) -> NDArray[np.int64]:
        """Each unit's difference between the systems' contributions to a mean's numerator, in the panel's order."""
        above = self.panel.compute_numerators(0, self.panel.values)
        return np.asarray(above[:, 0] - above[:, 1])

    @cached_property
    def _panel_arguments(self) -> Array:
        """What each unit adds to the sums that a score is made of, in the panel's order, (n_units, 2, n_fields)."""
        panel = self.panel
        return np.asarray(
            as_arguments(panel.values.astype(np.int64), panel.lattices, panel.metrics[0].fields), np.float64
        )

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Indices of the units by their influence, the smallest first."""
        return np.argsort(self._panel_influences, kind="stable")

    @cached_property
    def influences(self) -> Array:
        """Influence of each unit on the difference of scores, shape (n_units,)."""
        return self._panel_influences[self.order]

    @cached_property
    def numerator_differences(self) -> NDArray[np.int64]:
        """Each unit's difference between the systems' contributions to a mean's numerator, shape (n_units,)."""
        return self._panel_differences[self.order]

    @cached_property
    def arguments(self) -> Array:
        """What each unit adds to the sums that a score is made of, shape (n_units, 2, n_fields)."""
        return self._panel_arguments[self.order]

    @cached_property
    def swap_shifts(self) -> NDArray[Any]:
        """What swapping each unit adds to A's sums and takes from B's, (n_units, n_fields), in 32 bits if exact."""
        shifts = self.arguments[:, 1] - self.arguments[:, 0]
        is_count = all(lattice == INTEGER_LATTICE for lattice in self.panel.lattices)
        fits = is_count and np.abs(shifts).max(initial=0.0) * (MOST_DRAWN // shifts.shape[1]) < EXACT_32
        return shifts.astype(np.float32 if fits else np.float64)

    @cached_property
    def slack(self) -> NDArray[np.int64]:
        """Slack that each unit brings to a sum, in steps, shape (n_units,); 0 where the systems do not differ."""
        sizes = self.panel.sizes[self.order] * self.panel.count_slack_steps(0)
        values = self.panel.values[self.order]
        return np.asarray(np.where((values[:, 0] != values[:, 1]).any(axis=1), sizes, 0))

    def compute_error_bounds(self, totals: Array) -> Array:
        """Return bounds on the error of scores that comes from rounded sums, given sums of shape (..., n_fields)."""
        panel = self.panel
        if not panel.is_approximate(0):
            return np.zeros(totals.shape[:-1])
        scales = [lattice.step for lattice in panel.lattices]
        return panel.compute_error_bounds(0, np.rint(totals / scales).astype(np.int64))

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.panel.values)

    @property
    def n_fields(self) -> int:
        """Number of sums that a unit contributes to; 1 for a mean."""
        return 1 if self.panel.linear[0] else len(self.panel.metrics[0].fields)

    @property
    def has_difference(self) -> bool:
        """Whether the systems differ anywhere in the fields of the metric."""
        return bool(self.panel.n_discordant[0, 0])

    @property
    def difference(self) -> float:
        """The observed difference of scores."""
        return float(self.panel.differences[0, 0])

    def compute_difference(self, weights: Array) -> float:
        """Return the difference of scores at the expected sums, if units are drawn with given probabilities."""
        if self.is_plain_mean:
            return float(weights @ self.influences)
        form = self.panel.metrics[0].form
        sums = np.tensordot(weights, self.arguments, 1) * self.n_units  # (2, n_fields)
        a, b = form.score(sums)
        return float(a - b)

    @cached_property
    def is_plain_mean(self) -> bool:
        """Whether the score is a mean over units of equal weight."""
        return self.panel.linear[0] and not self.has_varying_denominator

    @cached_property
    def sign_counts(self) -> tuple[int, int] | None:
        """Numbers of units won and lost, if all nonzero differences of a mean have one size; else None."""
        wins, losses = self.panel.sign_counts[0, 0]
        return None if wins < 0 or not self.panel.linear[0] else (int(wins), int(losses))

    def compute_spread(self, weights: Array) -> float:
        """Return the standard deviation of the influences under given probabilities."""
        mean = weights @ self.influences
        return float(np.sqrt(weights @ (self.influences - mean) ** 2))

    def find_strength(self, target: float) -> float | None:
        """Return the tilt that gives a target difference; None if there is none."""
        return tilting.find_strength(self.influences, self.compute_difference, target)

    def compute_weights(self, strength: float) -> Array:
        """Return the probabilities of the units under a tilt."""
        return tilting.compute_weights(self.influences, strength)


@dataclass(frozen=True, eq=False)
class SystemPairs:
    """Pairs of systems of a panel under one metric; indexing with a row returns the observed units of a pair.

    Attributes
    ----------
    panel : Panel
        With all units, under one metric.
    """

    panel: Panel
    _cache: dict[int, ObservedPair] = field(default_factory=dict)

    def __getitem__(self, row: int) -> ObservedPair:
        pair = self._cache.get(row)
        if pair is None:
            pair = ObservedPair(self.panel.select([row]))
            if len(self._cache) * len(self.panel.values) < MOST_KEPT:
                self._cache[row] = pair
        return pair

    def select(self, rows: NDArray[np.int64]) -> SystemPairs:
        """Return some of the pairs, with the systems that they need."""
        return SystemPairs(self.panel.select(rows))

    def __reduce__(self) -> tuple[Any, ...]:
        return SystemPairs, (self.panel,)
