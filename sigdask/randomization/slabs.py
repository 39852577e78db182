"""One slab of trials of a panel: its shuffled sums, and what the kernels make of them.

A metric is of one kind of kernel, an object that says what it keeps of a slab, counts single comparisons
and adds the differences that families compare. `kernel_of` alone decides which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import COUNTS
from sigdask.metrics.forms import Form, Ratios
from sigdask.randomization.kernels.differences import add_linear, add_ratio, add_scored, add_scores
from sigdask.randomization.kernels.exceedances import count_linear, count_ratio, count_scores
from sigdask.randomization.kernels.layouts import layout
from sigdask.randomization.kernels.scored import Parameters, count_scored, parameters
from sigdask.randomization.kernels.sums import SlabMemory, SumLayout, combined, moved_sums
from sigdask.randomization.panels.scored_sums import ScoredSums

ROOM_BYTES = 2**25
"""What the arrays of one slab may take, for each thread, while `FEWEST_TRIALS` fit."""

FEWEST_TRIALS = 64

Floats = NDArray[np.float64]


def slabs(panel: ScoredSums, *, run: int, first: int, n_trials: int, size: int | None = None) -> Iterator[TrialSlab]:
    """Yield the slabs of a range of trials; each is valid until the next one is asked for."""
    arranged, kernels = layout(panel), kernels_of(panel)
    size = min(size or slab_size(panel), n_trials)
    room, observed = SlabMemory.of(arranged, size), dict[int, Floats]()
    for start in range(first, first + n_trials, size):
        here = min(size, first + n_trials - start)
        moved = moved_sums(panel, arranged, run=run, first=start, n_trials=here, room=room)
        yield TrialSlab(panel, kernels, arranged, moved, room, observed)


def slab_size(panel: ScoredSums) -> int:
    """Return how many trials are summed at a time: what fits the cache, and the memory of a slab."""
    arranged = layout(panel)
    room = ROOM_BYTES - arranged.per_chunk
    numbers = sum(kernel.numbers for kernel in kernels_of(panel)) * len(panel.totals)
    return int(min(arranged.slab, max(room // (arranged.per_trial + 8 * numbers), FEWEST_TRIALS)))


@dataclass(frozen=True, eq=False)
class TrialSlab:
    """Some trials of a panel.

    Attributes
    ----------
    panel : ScoredSums
        Systems, pairs and metrics.
    kernels : tuple of Kernel
        Of each metric.
    arranged : SumLayout
        Its contributions, arranged for summing.
    moved : int array, shape (n_columns, n_trials)
        Sums over the swapped units.
    room : SlabMemory
        Memory used again by the next slab.
    known : dict of int to float64 array, shape (n_pairs,)
        Observed differences of metrics, shared with the other slabs.
    """

    panel: ScoredSums
    kernels: tuple[Kernel, ...]
    arranged: SumLayout
    moved: NDArray[Any]
    room: SlabMemory
    known: dict[int, Floats]
    _prepared: dict[int, Any] = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        """Trials of this slab."""
        return int(self.moved.shape[1])

    def count(self, m: int, counts: NDArray[np.int64]) -> None:
        """Add the exceedances of metric `m` to `counts`, shape (n_pairs, 3)."""
        self.kernels[m].count(self, counts)

    def count_each(self, m: int, counts: NDArray[np.int64]) -> None:
        """Add those of each trial for itself to `counts`, shape (n_pairs, n_trials, 3), which lie in this order."""
        self.kernels[m].count_each(self, counts)

    def add(self, m: int, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
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
        self.kernels[m].add(self, rows, weight, out, tie)

    def observed(self, m: int) -> Floats:
        """Return observed differences under metric `m`, shape (n_pairs,): by its kernel, where nothing is moved."""
        if m not in self.known:
            still = np.zeros((len(self.moved), 1), self.moved.dtype)
            room, rows = SlabMemory.of(self.arranged, 1), np.arange(len(self.panel.pairs))
            out, tie = np.zeros((2, len(rows), 1))
            replace(self, moved=still, room=room, _prepared={}).add(m, rows, 1.0, out, tie)
            self.known[m] = out[:, 0]
        return self.known[m]

    def prepared(self, m: int) -> Any:
        """Return what the kernel of a metric takes of this slab, made once."""
        if m not in self._prepared:
            self._prepared[m] = self.kernels[m].prepare(self)
        return self._prepared[m]

    def combined(self, name: str, fields: list[int], weights: list[int], dtype: Any) -> NDArray[Any]:
        """Return what is moved of a weighted sum of fields, shape (n_systems, n_trials)."""
        out = self.room.array(name, (len(self.panel.totals), self.n_trials), dtype)
        return combined(self.arranged, self.moved, fields, weights, out)

    def row(self, s: int, f: int) -> Any:
        """Return what is moved of one system and field: shape (n_trials,), or 0."""
        column = self.arranged.column_of[s, f]
        return 0 if column < 0 else self.arranged.sign_of[s, f] * self.moved[column].astype(np.int64)


class Kernel(Protocol):
    """One metric of a panel, in the way in which its trials are counted."""

    @property
    def numbers(self) -> int:
        """Numbers that it keeps of a system and trial in one slab."""
        ...

    def prepare(self, slab: TrialSlab) -> Any:
        """Return what `count` and `add` take of a slab."""
        ...

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances, as `TrialSlab.count` does."""
        ...

    def count_each(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances of each trial, as `TrialSlab.count_each` does."""
        ...

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add differences, as `TrialSlab.add` does."""
        ...


def kernels_of(panel: ScoredSums) -> tuple[Kernel, ...]:
    """Return the kernel of each metric."""
    return tuple(kernel_of(panel, m) for m in range(len(panel.metrics)))


def kernel_of(panel: ScoredSums, m: int) -> Kernel:
    """Decide which kernel a metric takes."""
    form, fields = panel.metrics[m].form, list(panel.metrics[m].fields)
    ratio = form if isinstance(form, Ratios) and len(form.numerators) == 1 else None
    if ratio is not None and panel.linear[m]:
        return Linear(m, ratio, fields)
    if any(panel.lattices[f] != COUNTS for f in fields):
        return CalledForm(m, form, fields)  # sums of different scales, which only the form itself puts together
    if ratio is not None:
        return Ratio(m, ratio, fields)
    fused = parameters(form)
    return CalledForm(m, form, fields) if fused is None else Fused(m, fields, fused)


@dataclass(frozen=True, slots=True)
class Linear:
    """One ratio whose denominator no swap changes: integer numerators tell it all."""

    m: int
    form: Ratios
    fields: list[int]
    numbers: ClassVar[int] = 1

    def prepare(self, slab: TrialSlab) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return moved and observed numerators, shape (n_systems, n_trials) and (n_systems,)."""
        weights = list(self.form.numerators[0])
        dtype = slab.arranged.dtype_for(sum(map(abs, weights)))
        return slab.combined(f"above {self.m}", self.fields, weights, dtype), slab.panel.numerators(self.m)

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances."""
        (moved, totals), panel = slab.prepared(self.m), slab.panel
        count_linear(moved, panel.pairs, _between(totals, panel.pairs), panel.slack[:, self.m], counts)

    def count_each(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances of each trial."""
        (moved, totals), panel, n = slab.prepared(self.m), slab.panel, slab.n_trials
        observed, slack = (np.repeat(own, n) for own in (_between(totals, panel.pairs), panel.slack[:, self.m]))
        count_linear(moved.reshape(-1, 1), _each(panel.pairs, n), observed, slack, counts.reshape(-1, 3))

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add differences."""
        (moved, totals), panel = slab.prepared(self.m), slab.panel
        pairs, weights = panel.pairs[rows], np.full(len(rows), weight)
        observed = _between(totals, pairs).astype(np.float64)
        slack = panel.slack[rows, self.m].astype(np.float64)
        add_linear(moved, pairs, observed, slack, weights * panel.unit_of(self.m), out, tie)


@dataclass(frozen=True, slots=True)
class Ratio:
    """One ratio, cross-multiplied."""

    m: int
    form: Ratios
    fields: list[int]
    numbers: ClassVar[int] = 2

    def prepare(self, slab: TrialSlab) -> tuple[Floats, ...]:
        """Return moved numerators and denominators, and their totals."""
        moved, totals = [], []
        for name, weights in (("above", self.form.numerators[0]), ("below", self.form.denominators[0])):
            moved.append(slab.combined(f"{name} {self.m}", self.fields, list(weights), np.float64))
            totals.append((slab.panel.totals[:, self.fields] @ np.array(weights)).astype(np.float64))
        return *moved, *totals

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances."""
        count_ratio(*slab.prepared(self.m), slab.panel.pairs, self.form.zero_division, slab.observed(self.m), counts)

    def count_each(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances of each trial."""
        (*moved, above, below), n = slab.prepared(self.m), slab.n_trials
        count_ratio(
            *(own.reshape(-1, 1) for own in moved),
            *(np.repeat(total, n) for total in (above, below)),
            _each(slab.panel.pairs, n),
            self.form.zero_division,
            np.repeat(slab.observed(self.m), n),
            counts.reshape(-1, 3),
        )

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add differences."""
        add_ratio(
            *slab.prepared(self.m),
            slab.panel.pairs[rows],
            self.form.zero_division,
            np.full(len(rows), weight),
            out,
            tie,
        )


@dataclass(frozen=True, slots=True)
class Fused:
    """A score that has a kernel of its own: macro averages, BLEU, chrF."""

    m: int
    fields: list[int]
    fused: Parameters

    @property
    def numbers(self) -> int:
        """What is moved of each field."""
        return len(self.fields)

    def prepare(self, slab: TrialSlab) -> tuple[Floats, Floats]:
        """Return what is moved, shape (n_systems, n_fields, n_trials), and the totals."""
        shape = (len(slab.panel.totals), len(self.fields), slab.n_trials)
        moved = slab.room.array(f"shifts {self.m}", shape, np.float64)
        for k, f in enumerate(self.fields):
            combined(slab.arranged, slab.moved, [f], [1], moved[:, k])
        return moved, slab.panel.totals[:, self.fields].astype(np.float64)

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances."""
        count_scored(*self.fused, *slab.prepared(self.m), slab.panel.pairs, slab.observed(self.m), counts)

    def count_each(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances of each trial."""
        (moved, totals), n = slab.prepared(self.m), slab.n_trials
        alone = np.ascontiguousarray(moved.transpose(0, 2, 1)).reshape(-1, len(self.fields), 1)
        observed, pairs = np.repeat(slab.observed(self.m), n), _each(slab.panel.pairs, n)
        count_scored(*self.fused, alone, np.repeat(totals, n, axis=0), pairs, observed, counts.reshape(-1, 3))

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add differences."""
        add_scored(*self.fused, *slab.prepared(self.m), slab.panel.pairs[rows], np.full(len(rows), weight), out, tie)


@dataclass(frozen=True, slots=True)
class CalledForm:
    """Any other score: the form is called with the sums of a pair's trials."""

    m: int
    form: Form
    fields: list[int]
    numbers: ClassVar[int] = 0

    def prepare(self, slab: TrialSlab) -> None:
        """Keep nothing: one pair at a time is scored."""

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances."""
        for p, observed in enumerate(slab.panel.differences[:, self.m]):
            count_scores(*self.scores(slab, p), observed, counts[p])

    def count_each(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add exceedances of each trial."""
        for p, observed in enumerate(slab.panel.differences[:, self.m]):
            scores = self.scores(slab, p)
            for k in range(slab.n_trials):
                count_scores(*(own[k : k + 1] for own in scores), observed, counts[p, k])

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add differences."""
        for k, p in enumerate(rows):
            add_scores(*self.scores(slab, int(p)), weight, out[k], tie[k])

    def scores(self, slab: TrialSlab, p: int) -> tuple[Floats, ...]:
        """Return the scores of both pseudo-systems of a pair and their difference's slack, shape (n_trials,) each."""
        panel, (i, j) = slab.panel, slab.panel.pairs[p]
        shift = np.zeros((slab.n_trials, panel.totals.shape[1]), np.int64)
        for f in self.fields:
            shift[:, f] = slab.row(j, f) - slab.row(i, f)
        both = panel.totals[i] + shift, panel.totals[j] - shift
        a, b = (self.form.score(panel.sums(self.m, totals)) for totals in both)
        if not panel.is_approximate(self.m):
            return a, b, np.zeros(slab.n_trials)
        return (
            a,
            b,
            panel.movement(self.m, both[0]) + panel.movement(self.m, both[1]) + panel.observed_movement[p, self.m],
        )


def _between(totals: NDArray[Any], pairs: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(totals[pairs[:, 0]] - totals[pairs[:, 1]])


def _each(pairs: NDArray[np.int64], n_trials: int) -> NDArray[np.int64]:
    """Return pairs of systems that stand for each trial alone: system s in trial k is number s * n_trials + k."""
    return np.asarray((pairs[:, None] * n_trials + np.arange(n_trials)[:, None]).reshape(-1, 2))
