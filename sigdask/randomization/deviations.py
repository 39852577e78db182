"""How far each unit's exchange moves a pair's difference of scores: what families are divided by.

d_u is what a unit contributes to the difference; an exchange turns its sign and changes neither its
size nor any other d_u. So the standard deviation of the shuffled difference, sqrt(sum_u d_u^2), is
the same for every arrangement. It is exact for means, and linearised at the pooled sums of the two
systems, which no exchange changes, for other scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import InputError
from sigdask.metrics.forms import Form, Formula, gradient
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.shuffles import swap_bits

SAMPLING_RUN, SAMPLES = 255, 256
"""Swaps of a score that jumps: of a run that no trial is of, so that they are as good as constants."""

ROUNDING = 1e-11
"""Relative size of a score below which its changes may be rounding alone."""

WIDE = 1e-2
"""Relative step by which a formula's slope is measured again: of one with jumps another is found."""

MOST_NUMBERS = 2**21
"""Contributions written out at a time."""

EXACT, EXACT_32 = 2**53, 2**24
"""Whole numbers below them are exact in float64 and float32."""

CONSTANT = 1e-9
"""Share of the mean square below which units do not vary about their mean."""

Array = NDArray[np.float64]


def swap_deviations(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Array:
    """Return the standard deviation of the difference of some pairs (all by default) under swaps.

    Returns
    -------
    float64 array, shape (n_rows,)
        In units of the score.
    """
    unit = _unit(panel, metric)
    if (sums := _sums_of_powers(panel, metric, rows, 2)) is not None:
        return np.asarray(np.sqrt(sums[1]) * unit)
    found = [np.sqrt((d**2).sum(axis=1)) * power * unit for d, power in map(_sized, _in_runs(panel, metric, rows))]
    return np.concatenate([np.empty(0), *found])


def skewness(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Array:
    """Return the skewness of the units' differences about their mean, concordant units included; 0 where constant."""
    if (sums := _sums_of_powers(panel, metric, rows, 3)) is not None:
        return _skewness_of(*sums, panel.n_units)
    found = [_skewness(d, panel.n_units) for d in _in_runs(panel, metric, rows)]
    return np.concatenate([np.empty(0), *found])


def leanings(panel: ScoredSums, metric: int) -> Array:
    """Return the skewness of what the units of each system add to their mean over all systems, shape (n_systems,)."""
    sums = panel.sums(metric, panel.totals)
    slope = gradient(panel.metrics[metric].form, np.asarray(sums.mean(axis=0), np.float64))
    moved = (panel.sums(metric, panel.values) @ slope).T  # (n_systems, n_kept)
    return _skewness(moved - moved.mean(axis=0), panel.n_units)


def _skewness(d: Array, n_units: int) -> Array:
    """Return the skewness of rows of units, of which those that are not there are 0."""
    d, _ = _sized(d)
    return _skewness_of(*(power.sum(axis=1) for power in (d, d * d, d * d * d)), n_units)


def _skewness_of(first: Array, second: Array, third: Array, n_units: int) -> Array:
    """Return skewness from sums of powers over the units."""
    mean, square, cube = (power / max(n_units, 1) for power in (first, second, third))
    variance = square - mean**2
    varies = variance > CONSTANT * square
    about_mean = cube - 3 * mean * square + 2 * mean**3
    return np.asarray(np.where(varies, about_mean, 0.0) / np.where(varies, variance, 1.0) ** 1.5)


def _sums_of_powers(panel: ScoredSums, metric: int, rows: Sequence[int] | None, most: int) -> tuple[Array, ...] | None:
    """Return the sums of d_u, d_u^2 and so on over units, of pairs of a mean, in steps of `_unit`.

    Of all pairs of n systems they are made of products of two systems, one product of matrices for all: no pair is
    gone through unit by unit. None where pairs are few, or where whole numbers in float64 do not hold the sums.
    """
    pairs = panel.pairs if rows is None else panel.pairs[list(rows)]
    if not panel.linear[metric] or len(pairs) < len(panel.totals):
        return None
    n_units, n_systems = len(panel.addresses), len(panel.totals)
    step = max(1, MOST_NUMBERS // n_systems)
    firsts = np.zeros(n_systems)
    squares, mixed, cubes = np.zeros((n_systems, n_systems)), np.zeros((n_systems, n_systems)), np.zeros(n_systems)
    for start in range(0, n_units, step):
        above = panel.numerators_of(metric, panel.values[start : start + step])
        above = above - above[:, :1]
        size = int(np.abs(above).max(initial=0))
        if 8 * size**most * n_units >= EXACT:
            return None
        x = above.astype(np.float32 if size**most * len(above) < EXACT_32 else np.float64)
        firsts += x.sum(axis=0, dtype=np.float64)
        squares += x.T @ x
        if most > 2:
            mixed += (x * x).T @ x  # of u and v: the sum of u^2 v
            cubes += np.einsum("us,us,us->s", x, x, x, dtype=np.float64)
    i, j = pairs.T
    sums = firsts[i] - firsts[j], squares[i, i] + squares[j, j] - 2 * squares[i, j]
    if most == 2:
        return sums
    return *sums, cubes[i] - cubes[j] - 3 * (mixed[i, j] - mixed[j, i])


def _sized(d: Array) -> tuple[Array, Array]:
    """Return rows by a power of two below 1, so that no square overflows, and that power, shape (n_rows,)."""
    power = np.ldexp(1.0, np.frexp(np.abs(d).max(axis=1, initial=0.0))[1])
    return d / power[:, None], power


def contributions(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Array:
    """Return d_u of some pairs, shape (n_rows, n_kept), in units of the score."""
    return _contributions(panel, metric, rows) * _unit(panel, metric)


def resolution(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Array:
    """Return the deviation up to which differences may be rounding alone, shape (n_rows,), in units of the score."""
    if panel.linear[metric]:
        return np.asarray(2.0 * panel.slack[list(rows), metric] * _unit(panel, metric))
    form, sums = panel.metrics[metric].form, panel.sums(metric, panel.totals)
    rounding = ROUNDING * np.array([_size(form, _pooled(sums, panel, row)) for row in rows])
    return np.maximum(rounding, 2.0 * panel.observed_movement[list(rows), metric])


def _size(form: Form, pooled: Array) -> float:
    """Return the size of what a score is made of; 0 where a formula takes whole sums alone."""
    try:
        score = abs(float(form.score(pooled[None])[0]))
    except InputError:
        return 0.0
    return score + float(np.abs(gradient(form, pooled) * pooled).sum())


def _in_runs(panel: ScoredSums, metric: int, rows: Sequence[int] | None) -> Iterator[Array]:
    """Yield the contributions of pairs, in steps of `_unit`, as many pairs at a time as memory allows."""
    rows = range(len(panel.pairs)) if rows is None else rows
    size = max(1, MOST_NUMBERS // max(len(panel.addresses), 1))
    for start in range(0, len(rows), size):
        yield _contributions(panel, metric, rows[start : start + size])


def _unit(panel: ScoredSums, metric: int) -> float:
    """Return what a step of `_contributions` is worth: of a mean they are integers, whose squares sum exactly."""
    return panel.unit_of(metric) if panel.linear[metric] else 1.0


def _contributions(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Array:
    form = panel.metrics[metric].form
    if panel.linear[metric]:
        above = panel.numerators_of(metric, panel.values).T  # (n_systems, n_kept)
        i, j = panel.pairs[list(rows)].T
        return np.asarray(above[i] - above[j], np.float64)
    values, sums = panel.sums(metric, panel.values), panel.sums(metric, panel.totals)
    found = np.empty((len(rows), len(values)))
    for k, row in enumerate(rows):
        i, j = panel.pairs[row]
        moved = values[:, i] - values[:, j]  # (n_kept, n_fields)
        pooled = _pooled(sums, panel, row)
        found[k] = moved @ gradient(form, pooled)
        if isinstance(form, Formula) and moved.any() and not _is_smooth(found[k], moved @ gradient(form, pooled, WIDE)):
            found[k] = _sampled(panel, metric, row) * moved.any(axis=1)
    return found


def _is_smooth(narrow: Array, wide: Array) -> bool:
    """Say whether the slopes of a formula are the same by small and by large steps, and any there at all."""
    one, two = _norm(narrow), _norm(wide)
    return bool(one > 0 and abs(one - two) < 0.25 * one)


def _norm(d: Array) -> float:
    """Return the root of the sum of squares, of which none overflows or vanishes."""
    sized, power = _sized(d.reshape(1, -1))
    return float(np.sqrt((sized**2).sum()) * power[0])


def _pooled(sums: NDArray[np.float64], panel: ScoredSums, row: int) -> Array:
    i, j = panel.pairs[row]
    return np.asarray((sums[i] + sums[j]) / 2, np.float64)


def _sampled(panel: ScoredSums, metric: int, row: int) -> float:
    """Return one size of all units that differ, where the score jumps: their spread is sampled."""
    fields, (i, j) = list(panel.metrics[metric].fields), panel.pairs[row]
    moved = panel.values[:, j].astype(np.int64) - panel.values[:, i]  # (n_kept, n_fields)
    differs = moved[:, fields].any(axis=1)
    n_units, size = int(panel.addresses[-1]) + 1, SAMPLES // 16
    shifts = []
    for first in range(0, SAMPLES, size):
        bits = swap_bits(panel.key, run=SAMPLING_RUN, first=first, n_trials=size, n_units=n_units)
        shifts.append(bits[:, panel.addresses].astype(np.int64) @ moved)
    shift, score = np.concatenate(shifts), panel.metrics[metric].form.score
    a, b = score(panel.sums(metric, panel.totals[i] + shift)), score(panel.sums(metric, panel.totals[j] - shift))
    return _norm(a - b) / math.sqrt(SAMPLES * np.count_nonzero(differs))


def spread(panel: ScoredSums, metric: int) -> float:
    """Return the root mean square deviation of differences under relabelling, linearised at the mean sums."""
    slope = gradient(panel.metrics[metric].form, panel.sums(metric, panel.totals).mean(axis=0))
    values = panel.sums(metric, panel.values) @ slope  # (n_kept, n_systems)
    n_systems = values.shape[1]
    return math.sqrt(2 * n_systems / max(n_systems - 1, 1) * float(values.var(axis=1).sum()))


def root_mean_square(deviations: NDArray[np.float64]) -> float:
    """Return the scale of a group of hypotheses; 1 where nothing varies."""
    size = math.sqrt(float((deviations**2).mean())) if len(deviations) else 0.0
    return size if math.isfinite(size) and size > 0 else 1.0
