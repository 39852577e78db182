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
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Floats, Integers
from sigdask.io.caches import cached_njit
from sigdask.metrics.forms import compute_scores_or_nan
from sigdask.randomization.families.deviations import compute_moment_skewness
from sigdask.randomization.kernels.blas import limit_blas_threads
from sigdask.randomization.panels.digests import mix_bits
from sigdask.randomization.panels.scored_sums import ScoredSums

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
        seen: dict[bytes, int] = {}
        column_of = np.empty((n_systems, n_fields), np.int64)
        distinct: list[NDArray[Any]] = []
        for s in range(n_systems):
            for f in range(n_fields):
                column = np.ascontiguousarray(panel.values[:, s, f])
                column_of[s, f] = seen.setdefault(column.tobytes(), len(seen))
                if len(distinct) < len(seen):
                    distinct.append(column)
        columns = np.stack(distinct, axis=1) if distinct else np.zeros((n_units, 0), np.int8)
        kinds, first_units = find_kinds(n_units, list(columns.T))
        columns = columns[first_units]
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
            with limit_blas_threads():
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
