"""Integer sums of systems' units and what scores make of them: what kernels and digests know of a panel of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import COUNTS, Lattice
from sigdask.identity import known_as
from sigdask.metrics.forms import Form, Ratios, any_formula, movement
from sigdask.randomization.kernels.discordance import add_signs, discordant
from sigdask.randomization.stream.shuffles import Key

EACH = np.empty(0, np.int64)
"""Weights of units that count as one each."""


@known_as("PanelMetric", "name form fields higher_is_better")
@dataclass(frozen=True, slots=True)
class PanelMetric:
    """A metric within a panel: the form, which of the panel's fields it takes, its direction."""

    name: str
    form: Form
    fields: tuple[int, ...]
    higher_is_better: bool


MOST_NUMBERS = 2**20
"""Contributions that are laid out system by system at a time."""


@dataclass(frozen=True, eq=False)
class ScoredSums:
    """Systems of one test set, with pairs and metrics that share shuffles; arrays alone.

    Attributes
    ----------
    key : tuple of int
        Key of the stream.
    addresses : int64 array, shape (n_kept,)
        Addresses of the units in which any two systems differ; the others need no swapping.
    values : int array, shape (n_kept, n_systems, n_fields)
        What these units contribute, in the smallest type that holds their differences as well.
    totals : int64 array, shape (n_systems, n_fields)
        Sums over all units, concordant ones included.
    lattices : tuple of Lattice, length n_fields
        What the integers of a field stand for.
    pairs : int64 array, shape (n_pairs, 2)
        Systems compared.
    metrics : tuple of PanelMetric
        Scores compared.
    sizes : int64 array, shape (n_kept,)
        Items in each of these units.
    n_items, n_units : int
        Items and units, concordant ones included.
    enumerated : bool
        Trials are all arrangements of the kept units instead of random ones.
    """

    key: Key
    addresses: NDArray[np.int64]
    values: NDArray[Any]
    totals: NDArray[np.int64]
    lattices: tuple[Lattice, ...]
    pairs: NDArray[np.int64]
    metrics: tuple[PanelMetric, ...]
    sizes: NDArray[np.int64]
    n_items: int
    n_units: int
    enumerated: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of pairs and metrics."""
        return len(self.pairs), len(self.metrics)

    @property
    def nbytes(self) -> int:
        """Size of its arrays, about."""
        return self.values.nbytes

    def sums(self, metric: int, totals: NDArray[np.int64]) -> NDArray[Any]:
        """Return integer sums, shape (..., n_fields), as the arguments of a metric's score."""
        return as_arguments(totals, self.lattices, self.metrics[metric].fields)

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Observed scores, shape (n_systems, n_metrics)."""
        return np.column_stack([m.form.score(self.sums(k, self.totals)) for k, m in enumerate(self.metrics)])

    @cached_property
    def differences(self) -> NDArray[np.float64]:
        """Observed differences of scores, shape (n_pairs, n_metrics).

        Of linear metrics by their numerators: scores of a large size and a small difference cancel.
        """
        found = np.asarray(self.scores[self.pairs[:, 0]] - self.scores[self.pairs[:, 1]])
        for m in np.flatnonzero(self.linear):
            above = self.numerators(int(m))
            found[:, m] = (above[self.pairs[:, 0]] - above[self.pairs[:, 1]]) * self.unit_of(int(m))
        return found

    def numerators(self, metric: int) -> NDArray[np.int64]:
        """Return the observed numerators of a metric of one ratio, shape (n_systems,)."""
        return self.numerators_of(metric, self.totals)

    def numerators_of(self, metric: int, sums: NDArray[Any]) -> NDArray[Any]:
        """Return the numerators that a metric of one ratio makes of integer sums, shape (..., n_fields)."""
        weighted = zip(self.metrics[metric].fields, self.ratio(metric).numerators[0], strict=True)
        used = [(f, w) for f, w in weighted if w] or [(self.metrics[metric].fields[0], 0)]
        found = np.multiply(sums[..., used[0][0]], used[0][1], dtype=np.int64)
        for f, w in used[1:]:  # a product of integer matrices is many times slower
            found = found + np.multiply(sums[..., f], w, dtype=np.int64)
        return np.asarray(found)

    def ratio(self, metric: int) -> Ratios:
        """Return the form of a metric of one ratio, which every linear one is."""
        form = self.metrics[metric].form
        assert isinstance(form, Ratios)
        return form

    def unit_of(self, metric: int) -> float:
        """Return what one step of the numerator is worth, where the metric is linear."""
        form, fields = self.ratio(metric), list(self.metrics[metric].fields)
        below = int(self.totals[0, fields] @ np.array(form.denominators[0]))
        above = _scales_of(self.lattices, fields, form.numerators[0])
        return above.pop().step / (below * _scales_of(self.lattices, fields, form.denominators[0]).pop().step)

    @cached_property
    def n_discordant(self) -> NDArray[np.int64]:
        """Units that differ in the metric's own fields, shape (n_pairs, n_metrics)."""
        return self._discordant(EACH)

    @cached_property
    def slack(self) -> NDArray[np.int64]:
        """Lattice steps within which a sum may miss a true tie, shape (n_pairs, n_metrics)."""
        steps = [self.steps(m) for m in range(len(self.metrics))]
        if not any(steps):
            return np.zeros(self.shape, np.int64)
        return np.asarray(self._discordant(self.sizes) * np.array(steps))

    def steps(self, m: int) -> int:
        """Return the steps of slack that a discordant item has under one metric."""
        own = self.metrics[m]
        if not self.linear[m]:
            return max((self.lattices[f].slack for f in own.fields), default=0)
        weights = self.ratio(m).numerators[0]
        return sum(abs(w) * self.lattices[f].slack for f, w in zip(own.fields, weights, strict=True))

    def is_approximate(self, metric: int) -> bool:
        """Whether a score that no integers decide is made of sums that are not exact as it takes them."""
        return not self.linear[metric] and self.is_rounded(metric)

    def is_rounded(self, metric: int) -> bool:
        """Whether a metric's sums are not exact as its score takes them, if no integers decide it."""
        own = self.metrics[metric]
        lattices = [self.lattices[f] for f in own.fields]
        return any(x.slack for x in lattices) or (any_formula(own.form) and any(x.digits for x in lattices))

    def movement(self, metric: int, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how far a metric's scores may lie from those of the true sums.

        Parameters
        ----------
        metric : int
            One that is approximate.
        totals : int64 array, shape (..., n_fields)
            Integer sums.

        Returns
        -------
        float64 array, shape (...)
        """
        sums = np.asarray(self.sums(metric, totals), np.float64)
        errors = np.zeros_like(sums)
        for k, f in enumerate(self.metrics[metric].fields):
            lattice = self.lattices[f]
            if lattice.slack:
                moved = (sums[..., k] != 0) | ~self._positive[f]  # nothing is rounded in a sum of zeros
                errors[..., k] = np.where(moved, self.n_items * lattice.slack * lattice.step, 0.0)
            elif lattice.digits:
                errors[..., k] = np.spacing(np.abs(sums[..., k]))
        return movement(self.metrics[metric].form, sums, errors)

    @cached_property
    def observed_movement(self) -> NDArray[np.float64]:
        """How far observed differences may lie from the true ones, shape (n_pairs, n_metrics).

        Of metrics that are approximate; the ties of others are known in steps (`slack`) or exactly.
        """
        found = np.zeros(self.shape)
        for m in range(len(self.metrics)):
            if self.is_approximate(m):
                by_system = self.movement(m, self.totals)
                found[:, m] = by_system[self.pairs[:, 0]] + by_system[self.pairs[:, 1]]
        return found

    @cached_property
    def _positive(self) -> NDArray[np.bool_]:
        """Which fields have no negative part, so that a sum of 0 is one of zeros, shape (n_fields,)."""
        rest = self.totals - self.values.sum(axis=0, dtype=np.int64)
        lowest = self.values.min(axis=(0, 1), initial=0)
        return np.asarray((lowest >= 0) & (rest >= 0).all(axis=0))

    def compared(self, metric: int) -> list[int]:
        """Return the fields whose sums are compared: of a linear metric those of the numerator."""
        own = self.metrics[metric]
        if not self.linear[metric]:
            return list(own.fields)
        return [f for f, w in zip(own.fields, self.ratio(metric).numerators[0], strict=True) if w]

    def _discordant(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the weights of the units that differ, shape (n_pairs, n_metrics); no weights are 1 each."""
        by_fields = {m.fields: discordant(self.values, m.fields, self.pairs, weights) for m in self.metrics}
        return np.column_stack([by_fields[m.fields] for m in self.metrics])

    def _blocks(self) -> Iterator[slice]:
        """Yield the units, some at a time, fewer of many systems."""
        step = max(MOST_NUMBERS // max(len(self.totals), 1), 1)
        for start in range(0, len(self.addresses), step):
            yield slice(start, start + step)

    @cached_property
    def signs(self) -> NDArray[np.int64]:
        """Wins and losses where all nonzero differences of a mean are equally large, shape (n_pairs, n_metrics, 2).

        -1 where they are not, and of scores that are no means.
        """
        found = np.full((*self.shape, 2), -1, np.int64)
        for m in np.flatnonzero(self.linear):
            alike, both = self._signs(int(m))
            alike &= self.slack[:, m] == 0  # differences of the size of the slack have no sign
            found[alike, m] = both[alike]
        return found

    def _signs(self, metric: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return whether the nonzero differences of each pair are equally large, and wins and losses."""
        n = len(self.pairs)
        least, most = np.full(n, np.iinfo(np.int64).max), np.zeros(n, np.int64)
        wins, losses = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for units in self._blocks():
            values = self.numerators_of(metric, self.values[units])  # (n_units, n_systems)
            add_signs(np.ascontiguousarray(_smallest(values).T), self.pairs, least, most, wins, losses)
        return (most == 0) | (least == most), np.column_stack([wins, losses])

    @cached_property
    def linear(self) -> tuple[bool, ...]:
        """Which metrics are one ratio whose denominator no swap can change.

        Their differences are compared in integers, by the numerators alone.
        """
        return tuple(map(self._is_linear, range(len(self.metrics))))

    def _is_linear(self, m: int) -> bool:
        weights = self._denominator(m)
        if weights is None:
            return False
        totals = self.totals[:, list(self.metrics[m].fields)] @ weights
        if (totals != totals[0]).any() or totals[0] <= 0:
            return False
        own, weights = np.array(self.metrics[m].fields)[weights != 0], weights[weights != 0]
        first = self.values[:, 0][:, own]  # (n_kept, n_own)
        below = first @ weights
        each = (self.values[:, s][:, own] for s in range(1, len(totals)))
        return all(np.array_equal(one, first) or np.array_equal(one @ weights, below) for one in each)

    def constants(self, rows: NDArray[np.int64], m: int) -> NDArray[np.int64]:
        """Return the denominators of pairs whose systems no swap can give another, shape (n_rows,); 0 of others."""
        weights = self._denominator(m)
        if weights is None:
            return np.zeros(len(rows), np.int64)
        i, j = self.pairs[rows].T
        below = self.values[:, :, list(self.metrics[m].fields)] @ weights  # (n_kept, n_systems)
        totals = self.totals[:, list(self.metrics[m].fields)] @ weights
        alike = np.zeros(below.shape[1], np.int64)
        if (below != below[:, :1]).any():
            seen: dict[bytes, int] = {}
            alike = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in below.T])
        return np.where((alike[i] == alike[j]) & (totals[i] == totals[j]), np.maximum(totals[i], 0), 0)

    def _denominator(self, m: int) -> NDArray[np.int64] | None:
        """Return the weights of the denominator of one ratio of sums on one scale each; None of other scores."""
        form, fields = self.metrics[m].form, list(self.metrics[m].fields)
        if not isinstance(form, Ratios) or len(form.numerators) != 1:
            return None
        if any(len(_scales_of(self.lattices, fields, w)) > 1 for w in (form.numerators[0], form.denominators[0])):
            return None
        return np.array(form.denominators[0])

    def base_of(self, _system: int) -> int:
        """Return the system from which the contributions of another are measured."""
        return 0

    def sizes_of(self, _systems: slice) -> NDArray[np.int64]:
        """Return the items in each kept unit of some systems, shape (n_kept, n_systems); or (n_kept, 1)."""
        return self.sizes[:, None]


def _smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds their differences as well."""
    reach = int(values.max(initial=0)) - int(values.min(initial=0))
    kind = next(kind for kind in (np.int8, np.int16, np.int32, np.int64) if reach <= np.iinfo(kind).max)
    return np.asarray(values - values.min(initial=0), kind)


def as_arguments(sums: NDArray[Any], lattices: Sequence[Lattice], fields: Sequence[int]) -> NDArray[Any]:
    """Turn integer sums, shape (..., n_fields), into what a form takes: integers, or scores."""
    own = [lattices[f] for f in fields]
    taken = sums[..., list(fields)]
    if all(lattice == COUNTS for lattice in own):
        return taken
    return np.stack([lattice.to_scores(taken[..., k]) for k, lattice in enumerate(own)], axis=-1)


def _scales_of(lattices: Sequence[Lattice], fields: Sequence[int], weights: Sequence[float]) -> set[Lattice]:
    """Return the scales of the fields that have a weight; that of counts where none has."""
    return {lattices[f] for f, w in zip(fields, weights, strict=True) if w} or {COUNTS}
