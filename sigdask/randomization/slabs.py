"""One slab of trials of a panel: its shuffled sums, and what the kernels make of them.

Which kernel a metric takes is decided here alone, once for counting single comparisons and once
for the differences that families compare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import COUNTS
from sigdask.metrics.forms import Ratios
from sigdask.randomization.kernels.differences import add_linear, add_ratio, add_scored, add_scores
from sigdask.randomization.kernels.exceedances import count_linear, count_ratio, count_scores
from sigdask.randomization.kernels.scored import count_scored, parameters
from sigdask.randomization.kernels.sums import Layout, Room, combined, layout, moved_sums
from sigdask.randomization.panels.sums import Panel

ROOM_BYTES = 2**25
"""What the arrays of one slab may take, for each thread, while `FEWEST_TRIALS` fit."""

FEWEST_TRIALS = 64

LINEAR, RATIO, FUSED, OTHER = "linear", "ratio", "fused", "other"


def slabs(panel: Panel, *, run: int, first: int, n_trials: int, size: int | None = None) -> Iterator[Slab]:
    """Yield the slabs of a range of trials; each is valid until the next one is asked for."""
    arranged = layout(panel)
    size = min(size or slab_size(panel), n_trials)
    room = Room.of(arranged, size)
    for start in range(first, first + n_trials, size):
        here = min(size, first + n_trials - start)
        moved = moved_sums(panel, arranged, run=run, first=start, n_trials=here, room=room)
        yield Slab(panel, arranged, moved, room)


def slab_size(panel: Panel) -> int:
    """Return how many trials are summed at a time: what fits the cache, and the memory of a slab."""
    systems = len(panel.totals)
    arranged = layout(panel)
    scores = sum(8 * systems * _arrays(panel, m) for m in range(len(panel.metrics)))
    return int(min(arranged.slab, max(ROOM_BYTES // (arranged.per_trial + scores), FEWEST_TRIALS)))


def _arrays(panel: Panel, m: int) -> int:
    """Return how many numbers a trial and system a metric keeps in one slab."""
    kind = kind_of(panel, m)
    return {LINEAR: 1, RATIO: 2, FUSED: len(panel.metrics[m].fields)}.get(kind, 0)


def kind_of(panel: Panel, m: int) -> str:
    """Say which kernels a metric takes."""
    form = panel.metrics[m].form
    if panel.linear[m]:
        return LINEAR
    if any(panel.lattices[f] != COUNTS for f in panel.metrics[m].fields):
        return OTHER  # sums of different scales, which only the form itself puts together
    if isinstance(form, Ratios) and len(form.numerators) == 1:
        return RATIO
    return OTHER if parameters(form) is None else FUSED


@dataclass(frozen=True, eq=False)
class Slab:
    """Some trials of a panel.

    Attributes
    ----------
    panel : Panel
        Systems, pairs and metrics.
    arranged : Layout
        Its contributions, arranged for summing.
    moved : int array, shape (n_columns, n_trials)
        Sums over the swapped units.
    room : Room
        Memory used again by the next slab.
    """

    panel: Panel
    arranged: Layout
    moved: NDArray[Any]
    room: Room
    _prepared: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        """Trials of this slab."""
        return int(self.moved.shape[1])

    def count(self, m: int, counts: NDArray[np.int64]) -> None:
        """Add the exceedances of metric `m` to `counts`, shape (n_pairs, 3)."""
        panel, kind = self.panel, kind_of(self.panel, m)
        observed = panel.differences[:, m]
        if kind == LINEAR:
            moved, totals = self._linear(m)
            count_linear(moved, panel.pairs, _between(totals, panel.pairs), panel.slack[:, m], counts)
        elif kind == RATIO:
            *parts, zero_division = self._ratio(m)
            count_ratio(*parts, panel.pairs, zero_division, observed, counts)
        elif kind == FUSED:
            count_scored(*self._fused(m), panel.pairs, observed, counts)
        else:
            for p in range(len(panel.pairs)):
                count_scores(*self._scores(m, p), observed[p], counts[p])

    def add(
        self, m: int, rows: NDArray[np.int64], weight: float, out: NDArray[np.float64], tie: NDArray[np.float64]
    ) -> None:
        """Add `weight` times the differences of some pairs under metric `m`.

        Parameters
        ----------
        m : int
            The metric.
        rows : int64 array, shape (n_rows,)
            Pairs of the panel.
        weight : float
            What a unit of score is worth.
        out, tie : float64 array, shape (n_rows, n_trials)
            Differences, and the slack within which they may miss a tie.
        """
        panel, kind = self.panel, kind_of(self.panel, m)
        pairs, weights = panel.pairs[rows], np.full(len(rows), weight)
        if kind == LINEAR:
            moved, totals = self._linear(m)
            observed = _between(totals, pairs).astype(np.float64)
            slack = panel.slack[rows, m].astype(np.float64)
            add_linear(moved, pairs, observed, slack, weights * panel.unit_of(m), out, tie)
        elif kind == RATIO:
            *parts, zero_division = self._ratio(m)
            add_ratio(*parts, pairs, zero_division, weights, out, tie)
        elif kind == FUSED:
            add_scored(*self._fused(m), pairs, weights, out, tie)
        else:
            for k, p in enumerate(rows):
                add_scores(*self._scores(m, int(p)), weight, out[k], tie[k])

    def linear(self, m: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return moved and observed numerators of a linear metric, shape (n_systems, n_trials) and (n_systems,)."""
        moved, totals = self._linear(m)
        return moved, totals

    def _linear(self, m: int) -> tuple[Any, ...]:
        """Return moved and observed totals of the numerators."""
        if m not in self._prepared:
            form, fields = self.panel.metrics[m].form, list(self.panel.metrics[m].fields)
            assert isinstance(form, Ratios)
            weights = np.array(form.numerators[0])
            dtype = self.arranged.dtype_for(int(np.abs(weights).sum()))
            moved = self._combined(f"above {m}", fields, weights.tolist(), dtype)
            self._prepared[m] = moved, self.panel.numerators(m)
        return self._prepared[m]

    def _ratio(self, m: int) -> tuple[Any, ...]:
        """Return moved numerators and denominators, their totals, and the value of 0/0."""
        if m not in self._prepared:
            form, fields = self.panel.metrics[m].form, list(self.panel.metrics[m].fields)
            assert isinstance(form, Ratios)
            moved, totals = [], []
            for name, weights in (("above", form.numerators[0]), ("below", form.denominators[0])):
                moved.append(self._combined(f"{name} {m}", fields, list(weights), np.float64))
                totals.append((self.panel.totals[:, fields] @ np.array(weights)).astype(np.float64))
            self._prepared[m] = *moved, *totals, form.zero_division
        return self._prepared[m]

    def _fused(self, m: int) -> tuple[Any, ...]:
        """Return what `count_scored` takes before the pairs."""
        if m not in self._prepared:
            metric = self.panel.metrics[m]
            fields = list(metric.fields)
            shape = (len(self.panel.totals), len(fields), self.n_trials)
            moved = self.room.array(f"shifts {m}", shape, np.float64)
            for k, f in enumerate(fields):
                combined(self.arranged, self.moved, [f], [1], moved[:, k])
            fused = parameters(metric.form)
            assert fused is not None
            self._prepared[m] = *fused, moved, self.panel.totals[:, fields].astype(np.float64)
        return self._prepared[m]

    def _scores(self, m: int, p: int) -> tuple[NDArray[np.float64], ...]:
        """Return the scores of both pseudo-systems of a pair and their difference's slack, shape (n_trials,) each."""
        panel, (i, j) = self.panel, self.panel.pairs[p]
        shift = np.zeros((self.n_trials, panel.totals.shape[1]), np.int64)
        for f in panel.metrics[m].fields:
            shift[:, f] = self._row(j, f) - self._row(i, f)
        form, both = panel.metrics[m].form, (panel.totals[i] + shift, panel.totals[j] - shift)
        a, b = (form.score(panel.sums(m, totals)) for totals in both)
        if not panel.is_approximate(m):
            return a, b, np.zeros(self.n_trials)
        return a, b, panel.movement(m, both[0]) + panel.movement(m, both[1]) + panel.observed_movement[p, m]

    def _row(self, s: int, f: int) -> Any:
        column = self.arranged.column_of[s, f]
        return 0 if column < 0 else self.arranged.sign_of[s, f] * self.moved[column].astype(np.int64)

    def _combined(self, name: str, fields: list[int], weights: list[int], dtype: Any) -> NDArray[Any]:
        out = self.room.array(name, (len(self.panel.totals), self.n_trials), dtype)
        return combined(self.arranged, self.moved, fields, weights, out)


def _between(totals: NDArray[Any], pairs: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(totals[pairs[:, 0]] - totals[pairs[:, 1]])
