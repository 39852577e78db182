"""Bootstrap sums for all systems of a panel, histograms of resampled values, and the jackknife.

Weighted sums of contributions are a matrix product that is exact in any order of summation.

Resampled values are counted in histograms whose cells have the same edges in every task, so that counts add up. A value
is counted by its distance from an origin in widths. A width is a power of two, and 1/128 to 1/64 of the standard
deviation. The first `INNER` widths on either side (four standard deviations or more) are cells of their own, and each
further octave has `PARTS` cells. A value that ties with the origin has the middle cell, and an undefined value the
last. So a quantile is known to a part of a width. If values lie on steps that are no finer than cells, it is known
exactly.

The jackknife leaves out one unit at a time. It gives standard errors, and the acceleration of BCa intervals (Efron
1987, "Better bootstrap confidence intervals", Journal of the American Statistical Association 82).

The paired bootstrap of a panel: units drawn with replacement, jointly for all systems, and scored.

Each resample's differences and scores are counted by the cell in which they lie, so that tallies add up
and can be stored. `sigdask.statistics.bounds` computes intervals from the counts.

`BootstrapOutputs` is the bootstrap under a metric computed by a function, which is called once for each system and
resample.

The inverted randomization test of a mean: shifts of the difference at which each trial is as extreme as observed.

Where each unit's difference is shifted by D times its weight, a trial that swaps the units of a set S is
as extreme as the observed difference, in one direction, just where the mean of S (or of its complement)
has D on its other side. So each trial gives two shifts, the means of S and of the units it leaves, and the
interval ends where enough of the smaller ones lie below, and of the larger ones above. These are counted in cells,
0 with one of its own, so that the interval holds 0 just where the test of as many trials does not reject.

References
----------
Efron 1979, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7. Koehn 2004, "Statistical
significance tests for machine translation evaluation", EMNLP. Hartigan 1969, Journal of the American Statistical
Association 64:1303. Garthwaite 1996, Biometrics 52:1387.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.io.caches import cached_njit
from sigdask.metrics.forms import compute_scores_or_nan
from sigdask.randomization.kernels.sums import SlabMemory, SumLayout, compute_moved_sums, get_layout, sum_fields
from sigdask.randomization.panels.digests import ResampledPanel, mix_bits
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.scored_sums import ScoredSums, compute_moment_skewness
from sigdask.randomization.panels.sums import Panel
from sigdask.randomization.stream import draw_kind_counts, draw_units
from sigdask.randomization.tallies import CountingMethod, Tally
from sigdask.statistics.lattice import TIE

WEIGHT_BYTES = 2**23
"""Maximum bytes of the weights of one block of trials."""

MAX_TRIALS = 4096
EXACT = {np.float32: 2.0**24, np.float64: 2.0**53}
"""Sums of integers below it are exact."""

FEW_KINDS = 0.5
"""Units with equal contributions are merged if distinct ones are fewer than this share."""

FEW = 256
"""Maximum number of kinds whose codes fit into bytes, so that those of a million units stay in the cache."""

Fill = Callable[[int, NDArray[Any], NDArray[Any]], None]
"""Function of the first trial, the kind of each unit and an array of shape (n_trials, n_kinds), which it fills with
weights.
"""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSums:
    """A panel's contributions, arranged for sums with weights of units; each distinct column is stored once.

    Attributes
    ----------
    kinds : uint8 or int32 array, shape (n_units,)
        Kind of each unit. Units of one kind have equal contributions.
    columns : tuple of float array, shape (n_kinds, n_columns)
        Parts that add up to the contributions: one, unless sums are too large to be exact.
    weights : tuple of float
        Value of a step of each part.
    column_of : int64 array, shape (n_systems, n_fields)
        The column of each system and field.
    """

    kinds: NDArray[Any]
    columns: tuple[NDArray[Any], ...]
    weights: tuple[int, ...]
    column_of: Integers

    @staticmethod
    def from_panel(panel: ScoredSums) -> WeightedSums:
        """Return the arranged contributions of a panel that has all its units."""
        n_units, n_systems, n_fields = panel.values.shape
        every, seen = np.ascontiguousarray(panel.values.reshape(n_units, -1).T), dict[bytes, int]()
        column_of = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in every], np.int64)
        columns = every[np.unique(column_of, return_index=True)[1]].T
        column_of = column_of.reshape(n_systems, n_fields)
        kinds, first_units = find_kinds(n_units, list(columns.T))
        columns = np.ascontiguousarray(columns[first_units])
        largest = max(int(columns.max(initial=0)), -int(columns.min(initial=0))) * max(n_units, 1)
        kind = next((kind for kind, limit in EXACT.items() if largest < limit), None)
        if kind is not None:
            return WeightedSums(kinds, (columns.astype(kind),), (1,), column_of)
        high = columns.astype(np.int64) >> PART_BITS
        low = columns.astype(np.int64) - (high << PART_BITS)
        return WeightedSums(kinds, (high.astype(np.float64), low.astype(np.float64)), (1 << PART_BITS, 1), column_of)

    def iter_blocks(self, fill: Fill, first: int, n_trials: int) -> Iterator[Integers]:
        """Yield weighted sums for consecutive ranges of trials, shape (n_some, n_systems, n_fields)."""
        n_kinds, kind = len(self.columns[0]), self.columns[0].dtype
        size = int(np.clip(WEIGHT_BYTES // (max(n_kinds, 1) * kind.itemsize), 1, min(MAX_TRIALS, n_trials)))
        room = np.empty((size, n_kinds), kind)
        for start in range(first, first + n_trials, size):
            weights = room[: min(size, first + n_trials - start)]
            fill(start, self.kinds, weights)
            parts = [weights @ columns for columns in self.columns]
            sums = sum(part.astype(np.int64) * worth for part, worth in zip(parts, self.weights, strict=True))
            yield np.asarray(sums)[:, self.column_of]


def find_kinds(n_units: int, columns: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], Integers]:
    """Group units with equal values: return the kind of each unit, and the first unit of each kind.

    If most units differ, each unit is a kind of its own.

    Parameters
    ----------
    n_units : int
        Number of units.
    columns : sequence of int array, shape (n_units,)
        Units of one kind have the same in each.
    """
    hashed = np.zeros(n_units, np.uint64)
    for column in columns:
        hashed = mix_bits(hashed ^ column.astype(np.uint64))
    _, first_units, kinds = np.unique(hashed, return_index=True, return_inverse=True)
    if len(first_units) > FEW_KINDS * n_units or any(
        (column[first_units][kinds] != column).any() for column in columns
    ):
        return np.arange(n_units, dtype=np.int32), np.arange(n_units)
    return kinds.astype(np.uint8 if len(first_units) <= FEW else np.int32), first_units


PART_BITS = 30
"""Bits of the lower part of contributions whose sums are too large for floats."""


INNER, OCTAVES, PARTS = 512, 16, 8
"""Cells of equal width on either side, and beyond them the number of doublings of the distance with so many cells
each.
"""

SIDE = INNER + OCTAVES * PARTS
TIED = SIDE
"""Cell of values that tie with the origin."""

DEFINED = 2 * SIDE + 1
UNDEFINED = DEFINED
"""Cell of resamples without a score."""

N_CELLS = DEFINED + 1

FINENESS = 64
"""Minimum number of cells per standard deviation. The maximum is twice as large."""

GUARD = 2.0**-20
"""Share of a cell's width by which its lower edge is shifted down, so that rounding does not separate equal values."""

_OUTER = INNER * 2.0 ** np.arange(OCTAVES)[:, None] * (1 + np.arange(PARTS) / PARTS)
EDGES = np.concatenate([np.arange(INNER), _OUTER.ravel(), [INNER * 2.0**OCTAVES]])
"""Lower edges of the cells of one side, in widths from the origin, and the last upper edge."""


def compute_widths(deviations: Floats, sizes: Floats) -> Floats:
    """Return the width of each row's cells, a power of two near its deviation / 64, so that rounding does not matter.

    Parameters
    ----------
    deviations : float64 array, shape (n,)
        Standard deviations of the values.
    sizes : float64 array, shape (n,)
        Sizes of the values, used where the standard deviation is 0.
    """
    assumed = np.where(deviations > 0, deviations, np.where(sizes > 0, sizes / 4096, 1.0))
    return np.asarray(np.ldexp(1.0, np.frexp(assumed / FINENESS)[1] - 1))


@cached_njit()
def add_differences(scores, pairs, origins, ties, widths, counts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add the differences between two systems' scores, (n_systems, n_trials), to each pair's counts of cells."""
    for p in range(pairs.shape[0]):
        a, b = scores[pairs[p, 0]], scores[pairs[p, 1]]
        row, origin, tie, scale = counts[p], origins[p], ties[p], 1.0 / widths[p]
        for t in range(a.shape[0]):
            row[_find_cell((a[t] - b[t]) - origin, tie, scale)] += 1


@cached_njit()
def add_to_histogram(values, origins, ties, widths, counts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add values, shape (n_rows, n_trials), to each row's counts of cells."""
    for p in range(values.shape[0]):
        row, origin, tie, scale = counts[p], origins[p], ties[p], 1.0 / widths[p]
        for t in range(values.shape[1]):
            row[_find_cell(values[p, t] - origin, tie, scale)] += 1


@cached_njit(inline="always")
def _find_cell(offset, tie, scale):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return the cell of a value at a distance `offset` from the origin."""
    if np.isnan(offset):
        return UNDEFINED
    far = abs(offset)
    if far <= tie:
        return TIED
    far = far * scale + GUARD
    if far < INNER:
        k = int(far)
    elif far >= INNER * 2.0**OCTAVES:
        k = SIDE - 1
    else:
        octave = 0
        far /= INNER
        while far >= 2.0:
            far /= 2.0
            octave += 1
        k = INNER + octave * PARTS + int((far - 1.0) * PARTS)
    return TIED + 1 + k if offset > 0 else TIED - 1 - k


def compute_quantiles(counts: Integers, shares: Floats, origins: Floats, widths: Floats, steps: Floats) -> Floats:
    """Return the value in each row below which a given share of the counted values lies.

    Parameters
    ----------
    counts : int64 array, shape (n, N_CELLS)
        Counted values.
    shares : float64 array, shape (n,)
        Between 0 and 1. From 0.5 on, values above are counted, so that changing the sign of all values changes only the
        sign of a quantile.
    origins, widths : float64 array, shape (n,)
        Origins and widths of the cells.
    steps : float64 array, shape (n,)
        Values are the origin plus integer multiples of the step. 0 if there is no such step.

    Returns
    -------
    float64 array, shape (n,)
        NaN where nothing is counted.
    """
    is_upper = shares > 0.5
    defined_counts = counts[:, :DEFINED]
    turned = np.where(is_upper[:, None], defined_counts[:, ::-1], defined_counts)
    total = defined_counts.sum(axis=1)
    n_wanted = np.where(is_upper, 1 - shares, shares) * total
    below = np.cumsum(turned, axis=1)
    cell = np.argmax((below >= n_wanted[:, None]) & (below > 0), axis=1)
    rows = np.arange(len(defined_counts))
    n_in_cell = turned[rows, cell]
    fraction = np.clip((n_wanted - (below[rows, cell] - n_in_cell)) / np.maximum(n_in_cell, 1), 0.0, 1.0)
    offset = _compute_offset(cell, fraction, widths, np.where(steps >= widths, steps, 0.0))
    return np.where(total > 0, origins + np.where(is_upper, -offset, offset), np.nan)


def _compute_offset(cells: Integers, fraction: Floats, widths: Floats, steps: Floats) -> Floats:
    """Return the signed distance from the origin of the point that lies a fraction of a cell above its lower edge."""
    cells_away = np.abs(cells - TIED) - 1
    near, far = EDGES[np.maximum(cells_away, 0)], EDGES[np.maximum(cells_away, 0) + 1]
    into = np.where(cells < TIED, 1 - fraction, fraction)
    offset = (near + into * (far - near)) * widths
    safe = np.where(steps > 0, steps, 1.0)
    on_step = np.ceil((near - 2 * GUARD) * widths / safe) * safe  # the one value that such a cell can hold
    offset = np.where((steps > 0) & (cells_away < INNER), on_step, offset)
    return np.asarray(np.where(cells == TIED, 0.0, np.sign(cells - TIED) * offset))


def compute_share_below(counts: Integers) -> Floats:
    """Return the share of counted values below the origin, with ties split in half, shape (n,)."""
    defined_counts = counts[:, :DEFINED]
    return np.asarray(
        (defined_counts[:, :TIED].sum(axis=1) + defined_counts[:, TIED] / 2) / np.maximum(defined_counts.sum(axis=1), 1)
    )


MAX_NUMBERS = 2**21
"""Maximum number of sums without one unit that are computed at a time."""

CONSTANT = 1e-12
"""Changes below this share of the score are rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class Jackknife:
    """Standard error and skewness of n statistics, from their changes when one unit is left out: arrays of shape (n,).

    Attributes
    ----------
    error : float64
        The standard error; 0 where no unit matters.
    skewness : float64
        Skewness of the changes, 0 if they are constant.
    n_units : int
        Units.
    """

    error: Floats
    skewness: Floats
    n_units: int

    @property
    def acceleration(self) -> Floats:
        """Rate at which the standard error changes with the statistic (Efron 1987)."""
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
        step = max(1, MAX_NUMBERS // max(n_systems * panel.values.shape[2] + len(i), 1))
        for start in range(0, n_units, step):
            remaining = panel.totals - panel.values[start : start + step]  # (n_some, n_systems, n_fields)
            moved = full_scores - _compute_scores(panel, metric, remaining)
            moved[np.abs(moved) <= CONSTANT * np.abs(full_scores)] = 0.0
            changes = np.concatenate([moved[:, i] - moved[:, j], moved], axis=1) / unit
            for power in range(3):
                moments[power] += (changes ** (power + 1)).sum(axis=-2)
        means = moments / max(n_units, 1)
        variance = means[1] - means[0] ** 2
        variance = np.where(variance > CONSTANT * means[1], variance, 0.0)
        skewness = compute_moment_skewness(means, CONSTANT)
        return Jackknife(np.sqrt((n_units - 1) * variance) * unit, skewness, n_units)


def _compute_scores(panel: ScoredSums, metric: int, totals: Integers) -> Floats:
    return compute_scores_or_nan(panel.metrics[metric].form, panel.to_arguments(metric, totals))


def compute_binary_size(values: Floats) -> float:
    """Return a power of two above the largest absolute value, to divide by so that powers of values do not overflow."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.ldexp(1.0, min(int(np.frexp(finite.max(initial=0.0))[1]), MAX_EXPONENT)))


MAX_EXPONENT = 1023

PILOT = 256
"""Number of resamples that determine the width of cells."""

MAX_DIFFERENCES = 2**20
"""Maximum number of differences held at a time."""


@dataclass(frozen=True, eq=False)
class Bootstrap(ResampledPanel):
    """The bootstrap of a panel: resampled differences of its pairs and scores of its systems, counted in cells.

    Rows are, for each metric in turn, the differences of all pairs and then the scores of all systems.

    Attributes
    ----------
    panel : Panel
        With all its units, concordant ones included.
    origins, ties, widths : float64 array, shape (n_rows,)
        Observed values, how far off a value still ties, and the widths of cells.
    """

    panel: Panel
    origins: Floats
    ties: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, timed=64)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "bootstrap", self.panel, self.widths

    @staticmethod
    def from_panel(panel: Panel) -> Bootstrap:
        """Return the bootstrap of a panel, with widths of cells chosen from a few resamples."""
        empty = np.zeros(0)
        draft = Bootstrap(panel, empty, empty, empty)
        i, j = panel.pairs.T
        observed = [draft._compute_scores(m, panel.totals[None])[:, 0] for m in range(len(panel.metrics))]
        origins = np.concatenate([np.concatenate([values[i] - values[j], values]) for values in observed])
        sizes = np.concatenate(
            [np.concatenate([np.abs(values[i]) + np.abs(values[j]), np.abs(values)]) for values in observed]
        )
        ties, pilot_scores = np.asarray(TIE * sizes), list(draft._iter_scores(0, 0, PILOT))
        deviations = np.concatenate(
            [
                draft._compute_deviations(np.concatenate([values[m] for values in pilot_scores], axis=1))
                for m in range(len(observed))
            ]
        )
        return replace(
            draft, origins=origins, ties=ties, widths=compute_widths(np.where(deviations > ties, deviations, 0), sizes)
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows of counts over all metrics, and 1."""
        return self.n_rows * self.panel.shape[1], 1

    @property
    def n_rows(self) -> int:
        """Number of rows of counts for each metric: one for each pair and one for each system."""
        return len(self.panel.pairs) + len(self.panel.totals)

    @cached_property
    def weighted_sums(self) -> WeightedSums:
        """Contributions of the panel's units, arranged for summing over each resample."""
        return WeightedSums.from_panel(self.panel)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count how many resampled values fall into each cell, for resamples `first` to `first + n_trials - 1`."""
        counts = np.zeros((*self.shape, N_CELLS), np.int64)
        n_pairs = len(self.panel.pairs)
        for scores in self._iter_scores(run, first, n_trials):
            for m, metric_scores in enumerate(scores):
                rows = slice(m * self.n_rows, (m + 1) * self.n_rows)
                cells, bounds = counts[rows, 0], (self.origins[rows], self.ties[rows], self.widths[rows])
                add_differences(metric_scores, self.panel.pairs, *(x[:n_pairs] for x in bounds), cells[:n_pairs])
                add_to_histogram(metric_scores, *(x[n_pairs:] for x in bounds), cells[n_pairs:])
        return Tally(n_trials, counts)

    def _iter_scores(self, run: int, first: int, n_trials: int) -> Iterator[list[Floats]]:
        """Yield the scores of some resamples under each metric, shape (n_systems, n_some)."""
        fill = partial(draw_kind_counts, self.panel.key, run)
        for totals in self.weighted_sums.iter_blocks(fill, first, n_trials):
            yield [self._compute_scores(m, totals) for m in range(len(self.panel.metrics))]

    def _compute_scores(self, m: int, totals: Integers) -> Floats:
        sums = self.panel.to_arguments(m, totals)
        return np.ascontiguousarray(compute_scores_or_nan(self.panel.metrics[m].form, sums).T)

    def _compute_deviations(self, scores: Floats) -> Floats:
        """Return the standard deviations over resamples of pairs' differences and systems' scores, shape (n_rows,)."""
        scores = np.where(np.isfinite(scores), scores, scores[:, :1])
        unit = compute_binary_size(scores)
        scores = scores / unit
        i, j = self.panel.pairs.T
        step = max(1, MAX_DIFFERENCES // scores.shape[1])
        deviations = [(scores[i[k : k + step]] - scores[j[k : k + step]]).std(axis=1) for k in range(0, len(i), step)]
        return np.asarray(unit * np.nan_to_num(np.concatenate([*deviations, scores.std(axis=1)])))


DEFAULT_RESAMPLES = 1000
"""Default number of resamples of a metric of whole outputs, which is called twice for each."""

ASSUMED = 1 / 64
"""Assumed standard deviation as a share of the scores, by which cells are sized. A metric of whole outputs is not
called to measure it.
"""

AT_ONCE = 64
"""Resamples drawn at a time."""


@dataclass(frozen=True, eq=False)
class BootstrapOutputs(Bootstrap):
    """The bootstrap of two systems under a metric of whole outputs, counted in cells.

    Rows of counts are the difference a - b, the score of a and the score of b.

    Attributes
    ----------
    panel : OutputsPanel
        The outputs.
    """

    panel: OutputsPanel  # type: ignore[assignment]

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, grain=1, timed=2, vectorised=False)
    n_rows: ClassVar[int] = 3

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "bootstrap of outputs", self.panel, self.widths

    @staticmethod
    def from_panel(panel: OutputsPanel) -> BootstrapOutputs:  # type: ignore[override]
        """Return the bootstrap of a panel, with widths of cells chosen from the size of the observed scores."""
        a, b = panel.scores[:, 0]
        origins, sizes = np.array([a - b, a, b]), np.array([abs(a) + abs(b), abs(a), abs(b)])
        return BootstrapOutputs(panel, origins, np.asarray(TIE * sizes), compute_widths(ASSUMED * sizes, sizes))

    @cached_property
    def items_by_unit(self) -> list[Integers]:
        """Items of each unit that has any, in the order of the units."""
        order = np.argsort(self.panel.index, kind="stable")
        _, starts = np.unique(self.panel.index[order], return_index=True)
        return np.split(order, starts[1:])

    def _iter_scores(self, run: int, first: int, n_trials: int) -> Iterator[list[Floats]]:
        """Yield the scores of some resamples, shape (2, n_some); NaN where resampled outputs have no score."""
        panel, n_units = self.panel, len(self.items_by_unit)
        for start in range(first, first + n_trials, AT_ONCE):
            scores = np.full((2, min(AT_ONCE, first + n_trials - start)), np.nan)
            drawn_units = draw_units(panel.key, run=run, first=start, n_trials=scores.shape[1], n_units=n_units)
            for t, units in enumerate(drawn_units):
                drawn = np.concatenate([self.items_by_unit[u] for u in units])
                with suppress(InputError):
                    scores[:, t] = panel.select_items(drawn).scores[:, 0]
            yield [scores]


COARSER = 4
"""Width of cells relative to those of resamples, so that they reach both ends, and 0 if it is near."""

NEAR = INNER // 64
"""Cells begin at a shift of 0 if it is within so many standard errors."""


@dataclass(frozen=True, eq=False)
class ShiftPanel(ResampledPanel):
    """Shifts of pairs' differences at which each trial becomes as extreme as observed, counted in cells.

    Rows are, for each metric in turn, the smaller shifts of all pairs and then the larger ones.

    Attributes
    ----------
    panel : Panel
        Panel with all its units, whose metrics are means.
    origins, widths : float64 array, shape (n_rows,)
        Origins and widths of the cells.
    """

    panel: Panel
    origins: Floats
    widths: Floats

    manner: ClassVar[CountingMethod] = CountingMethod(n_tails=N_CELLS, timed=64)

    def digest_parts(self) -> tuple[Any, ...]:
        """Return what its digest is made of."""
        return "shifts", self.panel, self.origins, self.widths

    @staticmethod
    def from_panel(panel: Panel) -> ShiftPanel:
        """Return the shifts of a panel, with cells chosen from the observed differences and their standard errors."""
        origins, widths = [], []
        for m in range(len(panel.metrics)):
            above, below = compute_numerators_and_weights(panel, m)
            n_pairs = len(panel.pairs)
            value, total = compute_score_value(panel, m), float(below.sum())
            observed, errors = np.empty(n_pairs), np.empty(n_pairs)
            for p, (a, b) in enumerate(panel.pairs.tolist()):
                d = (above[:, a] - above[:, b]).astype(np.float64)
                observed[p] = d.sum() / total
                errors[p] = np.sqrt(((d - observed[p] * below) ** 2).sum()) / total
            width = COARSER * compute_widths(errors * value, np.abs(observed) * value)
            is_near = np.abs(observed) <= NEAR * errors
            origins += [np.where(is_near, 0.0, observed * value)] * 2
            widths += [width] * 2
        return ShiftPanel(panel, np.concatenate(origins), np.concatenate(widths))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows of counts over all metrics, and 1."""
        return len(self.origins), 1

    @cached_property
    def _with_zeros(self) -> Panel:
        """The panel with a first system of zeros, relative to which the others' sums are their own."""
        values, totals = (np.insert(x, 0, 0, axis=x.ndim - 2) for x in (self.panel.values, self.panel.totals))
        return replace(self.panel, values=values, totals=totals)

    def tally(self, *, run: int, first: int, n_trials: int) -> Tally:
        """Count how many shifts fall into each cell, for the test's trials `first` to `first + n_trials - 1`."""
        counts, arranged, room = np.zeros((*self.shape, N_CELLS), np.int64), get_layout(self._with_zeros), SlabMemory()
        for start in range(first, first + n_trials, arranged.slab_size):
            n_some = min(arranged.slab_size, first + n_trials - start)
            moved = compute_moved_sums(self._with_zeros, arranged, run=run, first=start, n_trials=n_some, room=room)
            for m in range(len(self.panel.metrics)):
                self._count_shifts(m, arranged, moved, counts)
        return Tally(n_trials, counts)

    def _count_shifts(self, m: int, arranged: SumLayout, moved: NDArray[Any], counts: Integers) -> None:
        """Add the shifts of some trials under one metric to `counts`, shape (n_rows, 1, N_CELLS)."""
        panel, ratio, sums, n_pairs = self.panel, self.panel.get_ratio(m), [], len(self.panel.pairs)
        for weights in (ratio.numerators[0], ratio.denominators[0]):
            out = np.empty((len(arranged.column_of), moved.shape[1]), arranged.get_dtype(sum(map(abs, weights))))
            sums.append(sum_fields(arranged, moved, panel.metrics[m].fields, weights, out)[1:])
        shifts = np.empty((2, n_pairs, moved.shape[1]))
        all_numerators = panel.compute_numerators(m, panel.totals)
        all_weights = panel.compute_denominators(m, panel.totals[0])
        slack = np.ascontiguousarray(panel.slack[:, m])
        _write_means(sums[0], sums[1][0], all_numerators, all_weights, panel.pairs, slack, shifts)
        shifts *= compute_score_value(panel, m)
        rows = slice(2 * m * n_pairs, 2 * (m + 1) * n_pairs)
        cell_bounds = self.origins[rows], np.zeros(2 * n_pairs), self.widths[rows]
        add_to_histogram(shifts.reshape(2 * n_pairs, -1), *cell_bounds, counts[rows, 0])


def compute_numerators_and_weights(panel: Panel, m: int) -> tuple[Integers, Integers]:
    """Return contributions of each unit to a mean's numerators, (n_units, n_systems), and denominator, (n_units,)."""
    return panel.compute_numerators(m, panel.values), panel.compute_denominators(m, panel.values[:, 0])


def compute_score_value(panel: Panel, m: int) -> float:
    """Return the score that a numerator of 1 and a denominator of 1 give."""
    return panel.compute_step_value(m) * float(panel.compute_denominators(m, panel.totals[0]))


@cached_njit()
def _write_means(above, weights, all_numerators, all_weights, pairs, slack, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Write mean differences of swapped and of other units, the smaller first, to `out`, (2, n_pairs, n_trials)."""
    for p in range(pairs.shape[0]):
        i, j = pairs[p]
        total = all_numerators[i] - all_numerators[j]
        for t in range(weights.shape[0]):
            swapped = above[i, t] - above[j, t]
            swapped_mean = _compute_mean(swapped, weights[t], slack[p])
            other_mean = _compute_mean(total - swapped, all_weights - weights[t], slack[p])
            if np.isnan(swapped_mean) or np.isnan(other_mean):
                # the observed difference, or its negative: extreme at any shift
                swapped_mean, other_mean = -np.inf, np.inf
            out[0, p, t] = min(swapped_mean, other_mean)
            out[1, p, t] = max(swapped_mean, other_mean)


@cached_njit(inline="always")
def _compute_mean(above, below, slack):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    if below == 0:  # units without weight: no shift changes the sign of their sum
        return np.nan if abs(above) <= slack else np.copysign(np.inf, above)
    return 0.0 if abs(above) <= slack else above / below
