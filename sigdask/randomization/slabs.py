"""Slabs: sums over the units swapped in a range of trials, and the kernels that count exceedances from them.

A metric is of one kind of kernel, an object that says what it keeps of a slab, counts single comparisons
and adds the differences that families compare. `build_kernel` alone decides which.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import INTEGER_LATTICE
from sigdask.metrics.forms import Form, Ratios
from sigdask.randomization.kernels.differences import add_linear, add_ratio, add_scored, add_scores
from sigdask.randomization.kernels.exceedances import count_linear, count_ratio, count_scores
from sigdask.randomization.kernels.layouts import get_layout
from sigdask.randomization.kernels.scored import Parameters, count_scored, get_parameters
from sigdask.randomization.kernels.sums import SlabMemory, SumLayout, compute_moved_sums, sum_fields
from sigdask.randomization.panels.scored_sums import ScoredSums

ROOM_BYTES = 2**25
"""What the arrays of one slab may take, for each thread, while `FEWEST_TRIALS` fit."""

FEWEST_TRIALS = 64

Floats = NDArray[np.float64]


def iter_slabs(
    panel: ScoredSums, *, run: int, first: int, n_trials: int, size: int | None = None
) -> Iterator[TrialSlab]:
    """Yield the slabs of a range of trials. Each is valid until the next one is requested."""
    arranged, kernels = get_layout(panel), build_kernels(panel)
    size = min(size or compute_slab_size(panel), n_trials)
    room, observed = SlabMemory.from_layout(arranged, size), dict[int, Floats]()
    for start in range(first, first + n_trials, size):
        n_slab = min(size, first + n_trials - start)
        moved = compute_moved_sums(panel, arranged, run=run, first=start, n_trials=n_slab, room=room)
        yield TrialSlab(panel, kernels, arranged, moved, room, observed)


def compute_slab_size(panel: ScoredSums) -> int:
    """Return how many trials to sum at a time, so that they fit the cache and the memory of a slab."""
    arranged = get_layout(panel)
    room = ROOM_BYTES - arranged.bytes_per_chunk
    numbers = sum(kernel.numbers_per_trial for kernel in build_kernels(panel)) * len(panel.totals)
    return int(min(arranged.slab_size, max(room // (arranged.bytes_per_trial + 8 * numbers), FEWEST_TRIALS)))


@dataclass(frozen=True, eq=False)
class TrialSlab:
    """A slab: a range of trials of a panel, with the sums over the units that each trial swaps.

    Attributes
    ----------
    panel : ScoredSums
        Systems, pairs and metrics.
    kernels : tuple of Kernel
        Of each metric.
    arranged : SumLayout
        Its contributions, arranged for summing.
    moved : int array, shape (n_columns, n_trials)
        Sums over the swapped units of what columns contribute beyond the base system (`get_base_system`).
    room : SlabMemory
        Memory used again by the next slab.
    observed_cache : dict of int to float64 array, shape (n_pairs,)
        Observed differences of metrics, shared with the other slabs.
    """

    panel: ScoredSums
    kernels: tuple[Kernel, ...]
    arranged: SumLayout
    moved: NDArray[Any]
    room: SlabMemory
    observed_cache: dict[int, Floats]
    _prepared: dict[int, Any] = field(default_factory=dict)

    @property
    def n_trials(self) -> int:
        """Number of trials of this slab."""
        return int(self.moved.shape[1])

    def count(self, m: int, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances under metric `m` to `counts`, shape (n_pairs, 3)."""
        self.kernels[m].count(self, counts)

    def count_by_trial(self, m: int, counts: NDArray[np.int64]) -> None:
        """Add the exceedances under metric `m` trial by trial to `counts`, C-ordered, shape (n_pairs, n_trials, 3)."""
        self.kernels[m].count_by_trial(self, counts)

    def add(self, m: int, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs under metric `m` to `out`, and their slack to `tie`.

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

    def get_observed(self, m: int) -> Floats:
        """Return observed differences under metric `m`, shape (n_pairs,), computed by its kernel."""
        if m not in self.observed_cache:
            moved = np.zeros((len(self.moved), 1), self.moved.dtype)
            room, rows = SlabMemory.from_layout(self.arranged, 1), np.arange(len(self.panel.pairs))
            out, tie = np.zeros((2, len(rows), 1))
            replace(self, moved=moved, room=room, _prepared={}).add(m, rows, 1.0, out, tie)
            self.observed_cache[m] = out[:, 0]
        return self.observed_cache[m]

    def get_prepared(self, m: int) -> Any:
        """Return what the kernel of metric `m` computes from this slab before it counts; computed on the first call."""
        if m not in self._prepared:
            self._prepared[m] = self.kernels[m].prepare(self)
        return self._prepared[m]

    def sum_moved_fields(self, name: str, fields: list[int], weights: list[int], dtype: Any) -> NDArray[Any]:
        """Return weighted sums of fields over the swapped units, minus the base system's, (n_systems, n_trials)."""
        out = self.room.get_array(name, (len(self.panel.totals), self.n_trials), dtype)
        return sum_fields(self.arranged, self.moved, fields, weights, out)

    def get_moved(self, s: int, f: int) -> Any:
        """Return one system's sums of a field over the swapped units, minus the base system's: (n_trials,), or 0."""
        column = self.arranged.column_of[s, f]
        return 0 if column < 0 else self.arranged.sign_of[s, f] * self.moved[column].astype(np.int64)


class Kernel(Protocol):
    """Interface of kernels, which count the trials of a slab under one metric."""

    @property
    def numbers_per_trial(self) -> int:
        """How many numbers the kernel stores for each system and trial in a slab."""
        ...

    def prepare(self, slab: TrialSlab) -> Any:
        """Compute the data of a slab that `count` and `add` need."""
        ...

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        ...

    def count_by_trial(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the exceedances trial by trial to `counts`, shape (n_pairs, n_trials, 3)."""
        ...

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        ...


def build_kernels(panel: ScoredSums) -> tuple[Kernel, ...]:
    """Return the kernel of each metric of a panel."""
    return tuple(build_kernel(panel, m) for m in range(len(panel.metrics)))


def build_kernel(panel: ScoredSums, m: int) -> Kernel:
    """Return the kernel that counts one metric of a panel, chosen by the metric's form and its fields' lattices."""
    form, fields = panel.metrics[m].form, list(panel.metrics[m].fields)
    ratio = form if isinstance(form, Ratios) and len(form.numerators) == 1 else None
    if ratio is not None and panel.linear[m]:
        return LinearKernel(m, ratio, fields)
    if any(panel.lattices[f] != INTEGER_LATTICE for f in fields):
        return CalledFormKernel(m, form, fields)  # sums of different scales, which only the form itself puts together
    if ratio is not None:
        return RatioKernel(m, ratio, fields)
    fused = get_parameters(form)
    return CalledFormKernel(m, form, fields) if fused is None else FusedKernel(m, fields, fused)


@dataclass(frozen=True, slots=True)
class LinearKernel:
    """Kernel of a ratio whose denominator no swap changes, so that integer numerators are compared."""

    m: int
    form: Ratios
    fields: list[int]
    numbers_per_trial: ClassVar[int] = 1

    def prepare(self, slab: TrialSlab) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the sums that scores need: numerators over the swapped units (less the first system's) and over all.

        Shapes are (n_systems, n_trials) and (n_systems,).
        """
        weights = list(self.form.numerators[0])
        dtype = slab.arranged.get_dtype(sum(map(abs, weights)))
        return slab.sum_moved_fields(
            f"above {self.m}", self.fields, weights, dtype
        ), slab.panel.compute_observed_numerators(self.m)

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        (moved, totals), panel = slab.get_prepared(self.m), slab.panel
        count_linear(moved, panel.pairs, _subtract_pairs(totals, panel.pairs), panel.slack[:, self.m], counts)

    def count_by_trial(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the exceedances trial by trial to `counts`, shape (n_pairs, n_trials, 3)."""
        (moved, totals), panel, n = slab.get_prepared(self.m), slab.panel, slab.n_trials
        observed, slack = (
            np.repeat(values, n) for values in (_subtract_pairs(totals, panel.pairs), panel.slack[:, self.m])
        )
        count_linear(moved.reshape(-1, 1), _repeat_pairs(panel.pairs, n), observed, slack, counts.reshape(-1, 3))

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        (moved, totals), panel = slab.get_prepared(self.m), slab.panel
        pairs, weights = panel.pairs[rows], np.full(len(rows), weight)
        observed = _subtract_pairs(totals, pairs).astype(np.float64)
        slack = panel.slack[rows, self.m].astype(np.float64)
        add_linear(moved, pairs, observed, slack, weights * panel.compute_step_value(self.m), out, tie)


@dataclass(frozen=True, slots=True)
class RatioKernel:
    """Kernel of a ratio whose denominator swaps may change, compared by cross-multiplication."""

    m: int
    form: Ratios
    fields: list[int]
    numbers_per_trial: ClassVar[int] = 2

    def prepare(self, slab: TrialSlab) -> tuple[Floats, ...]:
        """Return numerators and denominators over the swapped units, minus the base system's, and over all units."""
        moved, totals = [], []
        for name, weights in (("above", self.form.numerators[0]), ("below", self.form.denominators[0])):
            moved.append(slab.sum_moved_fields(f"{name} {self.m}", self.fields, list(weights), np.float64))
            totals.append((slab.panel.totals[:, self.fields] @ np.array(weights)).astype(np.float64))
        return *moved, *totals

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        count_ratio(
            *slab.get_prepared(self.m), slab.panel.pairs, self.form.zero_division, slab.get_observed(self.m), counts
        )

    def count_by_trial(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the exceedances trial by trial to `counts`, shape (n_pairs, n_trials, 3)."""
        (*moved, above, below), n = slab.get_prepared(self.m), slab.n_trials
        count_ratio(
            *(values.reshape(-1, 1) for values in moved),
            *(np.repeat(total, n) for total in (above, below)),
            _repeat_pairs(slab.panel.pairs, n),
            self.form.zero_division,
            np.repeat(slab.get_observed(self.m), n),
            counts.reshape(-1, 3),
        )

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        add_ratio(
            *slab.get_prepared(self.m),
            slab.panel.pairs[rows],
            self.form.zero_division,
            np.full(len(rows), weight),
            out,
            tie,
        )


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """Kernel of a score that has compiled code of its own: macro averages, BLEU, chrF."""

    m: int
    fields: list[int]
    fused: Parameters

    @property
    def numbers_per_trial(self) -> int:
        """How many numbers the kernel stores for each system and trial in a slab: one for each field."""
        return len(self.fields)

    def prepare(self, slab: TrialSlab) -> tuple[Floats, Floats]:
        """Return sums of fields over the swapped units, minus the base system's, and over all units.

        Shapes are (n_systems, n_fields, n_trials) and (n_systems, n_fields).
        """
        shape = (len(slab.panel.totals), len(self.fields), slab.n_trials)
        moved = slab.room.get_array(f"shifts {self.m}", shape, np.float64)
        for k, f in enumerate(self.fields):
            sum_fields(slab.arranged, slab.moved, [f], [1], moved[:, k])
        return moved, slab.panel.totals[:, self.fields].astype(np.float64)

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        count_scored(*self.fused, *slab.get_prepared(self.m), slab.panel.pairs, slab.get_observed(self.m), counts)

    def count_by_trial(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the exceedances trial by trial to `counts`, shape (n_pairs, n_trials, 3)."""
        (moved, totals), n = slab.get_prepared(self.m), slab.n_trials
        by_trial = np.ascontiguousarray(moved.transpose(0, 2, 1)).reshape(-1, len(self.fields), 1)
        observed, pairs = np.repeat(slab.get_observed(self.m), n), _repeat_pairs(slab.panel.pairs, n)
        count_scored(*self.fused, by_trial, np.repeat(totals, n, axis=0), pairs, observed, counts.reshape(-1, 3))

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        add_scored(
            *self.fused, *slab.get_prepared(self.m), slab.panel.pairs[rows], np.full(len(rows), weight), out, tie
        )


@dataclass(frozen=True, slots=True)
class CalledFormKernel:
    """Kernel of any other score, which calls the score's form with the sums of a pair's trials."""

    m: int
    form: Form
    fields: list[int]
    numbers_per_trial: ClassVar[int] = 0

    def prepare(self, slab: TrialSlab) -> None:
        """Prepare nothing: pairs are scored one at a time."""

    def count(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        for p, observed in enumerate(slab.panel.differences[:, self.m]):
            count_scores(*self.compute_scores(slab, p), observed, counts[p])

    def count_by_trial(self, slab: TrialSlab, counts: NDArray[np.int64]) -> None:
        """Add the exceedances trial by trial to `counts`, shape (n_pairs, n_trials, 3)."""
        for p, observed in enumerate(slab.panel.differences[:, self.m]):
            scores = self.compute_scores(slab, p)
            for k in range(slab.n_trials):
                count_scores(*(values[k : k + 1] for values in scores), observed, counts[p, k])

    def add(self, slab: TrialSlab, rows: NDArray[np.int64], weight: float, out: Floats, tie: Floats) -> None:
        """Add `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        for k, p in enumerate(rows):
            add_scores(*self.compute_scores(slab, int(p)), weight, out[k], tie[k])

    def compute_scores(self, slab: TrialSlab, p: int) -> tuple[Floats, ...]:
        """Return both systems' scores after each trial's swaps, and the slack of their difference, (n_trials,) each."""
        panel, (i, j) = slab.panel, slab.panel.pairs[p]
        shift = np.zeros((slab.n_trials, panel.totals.shape[1]), np.int64)
        for f in self.fields:
            shift[:, f] = slab.get_moved(j, f) - slab.get_moved(i, f)
        pseudo_totals = panel.totals[i] + shift, panel.totals[j] - shift
        a, b = (self.form.score(panel.to_arguments(self.m, totals)) for totals in pseudo_totals)
        if not panel.is_approximate(self.m):
            return a, b, np.zeros(slab.n_trials)
        return (
            a,
            b,
            panel.compute_error_bounds(self.m, pseudo_totals[0])
            + panel.compute_error_bounds(self.m, pseudo_totals[1])
            + panel.observed_error_bounds[p, self.m],
        )


def _subtract_pairs(totals: NDArray[Any], pairs: NDArray[np.int64]) -> NDArray[Any]:
    return np.asarray(totals[pairs[:, 0]] - totals[pairs[:, 1]])


def _repeat_pairs(pairs: NDArray[np.int64], n_trials: int) -> NDArray[np.int64]:
    """Return each pair once for every trial, with system s in trial k renumbered as s * n_trials + k."""
    return np.asarray((pairs[:, None] * n_trials + np.arange(n_trials)[:, None]).reshape(-1, 2))
