"""Histogram cells in which resampled values are counted, with the same edges in every task, so that counts add up.

Values are counted by their distance from an origin in widths, a power of two that is 1/128 to 1/64 of their
standard deviation. The first `INNER` widths on either side are cells of their own (four deviations or
more), each octave beyond has `PARTS`. A value that ties with the origin has the middle cell, one that is
not defined the last. So a quantile is known to a part of a width, whatever the partition, and where
all values lie on steps that are no finer than cells it is known exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit

INNER, OCTAVES, PARTS = 512, 16, 8
"""Cells of one width on either side, and doublings of the distance beyond them, of so many cells each."""

SIDE = INNER + OCTAVES * PARTS
TIED = SIDE
"""The cell of values that tie with the origin."""

DEFINED = 2 * SIDE + 1
UNDEFINED = DEFINED
"""The cell of resamples that have no score."""

N_CELLS = DEFINED + 1

FINENESS = 64
"""Cells of a standard deviation, at least; at most twice as many."""

GUARD = 2.0**-20
"""Share of a width by which a cell begins early, so that rounding does not part values that lie on an edge."""

_OUTER = INNER * 2.0 ** np.arange(OCTAVES)[:, None] * (1 + np.arange(PARTS) / PARTS)
EDGES = np.concatenate([np.arange(INNER), _OUTER.ravel(), [INNER * 2.0**OCTAVES]])
"""Where the cells of one side begin, in widths from the origin, and where the last ends."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
def add_values(values, origins, ties, widths, counts):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
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
        Between 0 and 1; from 0.5 on, the share above is what is counted, so that a quantile of turned signs
        is the turned quantile.
    origins, widths : float64 array, shape (n,)
        Of the cells.
    steps : float64 array, shape (n,)
        Values are the origin and whole multiples of these off it; 0 where they lie on none.

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
