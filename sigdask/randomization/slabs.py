"""Slabs: sums over the units swapped in a range of trials, and the kernels that count exceedances from them.

Each metric has a kernel. This object computes what it needs from a slab, counts the exceedances of single
comparisons, and adds up the differences that families compare. `build_kernel` chooses its kind.

A `Job` says which trials of which panel to count. `Tallies` are the counts of jobs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.metrics.forms import Form, Ratios
from sigdask.randomization.kernels.scored import (
    Parameters,
    count_linear,
    count_scored,
    count_scores,
    get_parameters,
    write_linear,
    write_scored,
    write_scores,
)
from sigdask.randomization.kernels.sums import SlabMemory, SumLayout, compute_moved_sums, get_layout, sum_fields
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.tallies import Tally
from sigdask.statistics.lattice import INTEGER_LATTICE

ROOM_BYTES = 2**25
"""Maximum bytes of the arrays of one slab in each thread, if `MIN_TRIALS` fit."""

MIN_TRIALS = 64


def iter_slabs(
    panel: ScoredSums, *, run: int, first: int, n_trials: int, size: int | None = None
) -> Iterator[TrialSlab]:
    """Yield the slabs of a range of trials. Each is valid until the next one is requested."""
    arranged, kernels = get_layout(panel), build_kernels(panel)
    size = min(size or compute_slab_size(panel), n_trials)
    room, observed = SlabMemory(), dict[int, Floats]()
    for start in range(first, first + n_trials, size):
        n_slab = min(size, first + n_trials - start)
        moved = compute_moved_sums(panel, arranged, run=run, first=start, n_trials=n_slab, room=room)
        yield TrialSlab(panel, kernels, arranged, moved, room, observed)


def compute_slab_size(panel: ScoredSums) -> int:
    """Return how many trials to sum at a time, so that they fit the cache and the memory of a slab."""
    arranged = get_layout(panel)
    numbers = sum(kernel.numbers_per_trial for kernel in build_kernels(panel)) * len(panel.totals)
    return int(min(arranged.slab_size, max(ROOM_BYTES // (arranged.bytes_per_trial + 8 * numbers), MIN_TRIALS)))


@dataclass(frozen=True, eq=False)
class TrialSlab:
    """A slab: a range of trials of a panel, with the sums over the units that each trial swaps.

    Attributes
    ----------
    panel : ScoredSums
        Systems, pairs and metrics.
    kernels : tuple of Kernel
        Kernel of each metric.
    arranged : SumLayout
        The panel's contributions, arranged for summing.
    moved : int array, shape (n_columns, n_trials)
        Sums over the swapped units of contributions minus those of the base system (`get_base_system`).
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

    def get_observed(self, m: int) -> Floats:
        """Return observed differences under metric `m`, shape (n_pairs,), computed by its kernel."""
        if m not in self.observed_cache:
            moved = np.zeros((len(self.moved), 1), self.moved.dtype)
            room, rows = SlabMemory(), np.arange(len(self.panel.pairs))
            out, tie = np.empty((2, len(rows), 1))
            self.kernels[m].write(replace(self, moved=moved, room=room, _prepared={}), rows, 1.0, out, tie)
            self.observed_cache[m] = out[:, 0]
        return self.observed_cache[m]

    def get_prepared(self, m: int) -> Any:
        """Return what the kernel of metric `m` computes from this slab before it counts; computed on the first call."""
        if m not in self._prepared:
            self._prepared[m] = self.kernels[m].prepare(self)
        return self._prepared[m]

    def get_moved(self, s: int, f: int) -> Any:
        """Return one system's sums of a field over the swapped units, minus the base system's: (n_trials,), or 0."""
        column = self.arranged.column_of[s, f]
        return 0 if column < 0 else self.moved[column].astype(np.int64)


Prepared = tuple[list[NDArray[Any]], list[NDArray[Any]]]
"""Arrays of sums over the swapped units, with systems on the first axis and trials on the last, and of sums over all
units, without trials.
"""


def build_kernels(panel: ScoredSums) -> tuple[Kernel, ...]:
    """Return the kernel of each metric of a panel."""
    return tuple(build_kernel(panel, m) for m in range(len(panel.metrics)))


def build_kernel(panel: ScoredSums, m: int) -> Kernel:
    """Return the kernel that counts one metric of a panel, chosen by the metric's form and its fields' lattices."""
    form, fields = panel.metrics[m].form, list(panel.metrics[m].fields)
    if panel.linear[m]:
        return LinearKernel(m, fields, panel.get_ratio(m))
    is_of_counts = all(panel.lattices[f] == INTEGER_LATTICE for f in fields)  # otherwise only the form combines scales
    parameters = get_parameters(form, len(fields)) if is_of_counts else None
    return ScoreKernel(m, fields, form) if parameters is None else CompiledKernel(m, fields, parameters)


@dataclass(frozen=True, slots=True)
class LinearKernel:
    """Kernel of a ratio whose denominator no swap changes, so that integer numerators are compared."""

    m: int
    fields: list[int]
    form: Ratios
    numbers_per_trial: ClassVar[int] = 1

    def prepare(self, slab: TrialSlab) -> Prepared:
        """Return the numerators over the swapped units, less the first system's, and over all units."""
        weights = list(self.form.numerators[0])
        dtype = slab.arranged.get_dtype(sum(map(abs, weights)))
        out = slab.room.get_array(f"above {self.m}", (len(slab.panel.totals), slab.n_trials), dtype)
        moved = sum_fields(slab.arranged, slab.moved, self.fields, weights, out)
        return [moved], [slab.panel.compute_numerators(self.m, slab.panel.totals)]

    def count(self, slab: TrialSlab, counts: Integers) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        ((moved,), (totals,)), panel = slab.get_prepared(self.m), slab.panel
        slack = np.ascontiguousarray(panel.slack[:, self.m])
        count_linear(moved, panel.pairs, _subtract_pairs(totals, panel.pairs), slack, counts)

    def write(self, slab: TrialSlab, rows: Integers, weight: float, out: Floats, tie: Floats) -> None:
        """Write `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`.

        Parameters
        ----------
        slab : TrialSlab
            The trials.
        rows : int64 array, shape (n_rows,)
            Pairs of the panel.
        weight : float
            Factor of the differences.
        out, tie : float64 array, shape (n_rows, n_trials)
            Differences, and the slack within which they tie.
        """
        ((moved,), (totals,)), panel = slab.get_prepared(self.m), slab.panel
        pairs = panel.pairs[rows]
        observed = _subtract_pairs(totals, pairs).astype(np.float64)
        slack = panel.slack[rows, self.m].astype(np.float64)
        write_linear(moved, pairs, observed, slack, weight * panel.compute_step_value(self.m), out, tie)


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Kernel of a score of counts that has compiled code of its own: ratios and their averages, BLEU, chrF."""

    m: int
    fields: list[int]
    parameters: Parameters

    @property
    def numbers_per_trial(self) -> int:
        """How many numbers the kernel stores for each system and trial in a slab."""
        return len(self.parameters[2])

    def prepare(self, slab: TrialSlab) -> Prepared:
        """Return the sums that the form needs over the swapped units, minus the base system's, and over all units.

        Shapes are (n_systems, n_sums, n_trials) and (n_systems, n_sums).
        """
        weights = self.parameters[2]
        shape = (len(slab.panel.totals), len(weights), slab.n_trials)
        moved = slab.room.get_array(f"sums {self.m}", shape, np.float64)
        for k, row in enumerate(weights.tolist()):
            sum_fields(slab.arranged, slab.moved, self.fields, row, moved[:, k])
        return [moved], [(slab.panel.totals[:, self.fields] @ weights.T).astype(np.float64)]

    def count(self, slab: TrialSlab, counts: Integers) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        (moved,), (totals,) = slab.get_prepared(self.m)
        count_scored(*self.parameters[:2], moved, totals, slab.panel.pairs, slab.get_observed(self.m), counts)

    def write(self, slab: TrialSlab, rows: Integers, weight: float, out: Floats, tie: Floats) -> None:
        """Write `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        (moved,), (totals,) = slab.get_prepared(self.m)
        write_scored(*self.parameters[:2], moved, totals, slab.panel.pairs[rows], weight, out, tie)


@dataclass(frozen=True, slots=True)
class ScoreKernel:
    """Kernel of any other score: the form computes both systems' scores of a pair for the trials of a slab."""

    m: int
    fields: list[int]
    form: Form
    numbers_per_trial: ClassVar[int] = 0

    def prepare(self, slab: TrialSlab) -> Any:
        """Prepare nothing."""

    def count(self, slab: TrialSlab, counts: Integers) -> None:
        """Add the numbers of exceedances in a slab to `counts`, shape (n_pairs, 3)."""
        for p, observed in enumerate(slab.get_observed(self.m)):
            count_scores(*self._compute_scores(slab, p), observed, counts[p])

    def write(self, slab: TrialSlab, rows: Integers, weight: float, out: Floats, tie: Floats) -> None:
        """Write `weight` times the differences of some pairs in each trial to `out`, and their slack to `tie`."""
        for k, p in enumerate(rows):
            write_scores(*self._compute_scores(slab, int(p)), weight, out[k], tie[k])

    def _compute_scores(self, slab: TrialSlab, p: int) -> Floats:
        """Return both systems' scores after each trial's swaps, and the slack of their difference, (3, n_trials)."""
        panel, (i, j) = slab.panel, slab.panel.pairs[p]
        shift = np.zeros((slab.n_trials, panel.totals.shape[1]), np.int64)
        for f in self.fields:
            shift[:, f] = slab.get_moved(j, f) - slab.get_moved(i, f)
        scores = np.zeros((3, slab.n_trials))
        for k, totals in enumerate((panel.totals[i] + shift, panel.totals[j] - shift)):
            scores[k] = self.form.score(panel.to_arguments(self.m, totals))
            if panel.is_approximate(self.m):
                scores[2] += panel.compute_error_bounds(self.m, totals)
        scores[2] += panel.observed_error_bounds[p, self.m]
        return scores


Kernel = LinearKernel | CompiledKernel | ScoreKernel
"""Object that counts the trials of a slab under one metric."""


def _subtract_pairs(totals: NDArray[Any], pairs: Integers) -> NDArray[Any]:
    return np.asarray(totals[pairs[:, 0]] - totals[pairs[:, 1]])


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Trials `first` to `first + n_trials - 1` of one run of one panel.

    Jobs are compared by identity: two jobs of the same trials are different, each with its own tally.

    Attributes
    ----------
    panel : AnyPanel
        The panel to count.
    n_trials : int
        Number of trials.
    run : int
        0 for the first run, 1 for the second.
    label : str
        Description of the comparison, for errors.
    first : int
        The first trial.
    """

    panel: AnyPanel
    n_trials: int
    run: int = 0
    label: str = ""
    first: int = 0

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons that each trial counts for: pairs times metrics, or 1 for panels counted as a whole."""
        return 1 if self.panel.is_whole else math.prod(self.panel.shape)


def sum_trials(jobs: Iterable[Job]) -> int:
    """Return the sum of trials over the comparisons of all jobs, which is the number that messages state."""
    return sum(job.n_trials * job.n_comparisons for job in jobs)


Tallies = Mapping[Job, Tally]
"""Tallies of each job."""
