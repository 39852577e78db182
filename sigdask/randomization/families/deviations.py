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
from sigdask.randomization.stream.shuffles import swap_bits

SAMPLING_RUN, SAMPLES = 255, 256
"""Swaps of a score that jumps: of a run that no trial is of, so that they are as good as constants."""

ROUNDING = 1e-11
"""Relative size of a score below which its changes may be rounding alone."""

WIDE = 1e-2
"""Relative step by which a formula's slope is measured again: of one with jumps another is found."""

PAIRS_WORTH = 64
"""How many products of two systems cost less than the differences of one pair."""

EXACT = 2.0**50
"""Below it sums of integers are exact, and so are four of them together."""

MOST_NUMBERS = 2**21
"""Contributions written out at a time."""

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
    if (sums := power_sums(panel, metric, rows, exact=True)) is not None:
        return np.asarray(np.sqrt(sums[1]) * unit)
    found = [np.sqrt((d**2).sum(axis=1)) * power * unit for d, power in map(_sized, _in_runs(panel, metric, rows))]
    return np.concatenate([np.empty(0), *found])


def skewness(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Array:
    """Return the skewness of the units' differences about their mean, concordant units included; 0 where constant."""
    return moment_skewness(unit_power_sums(panel, metric, rows) / max(panel.n_units, 1))


def unit_power_sums(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Array:
    """Return the sums of the units' differences, their squares and cubes, shape (3, n_rows); each pair on its scale."""
    if (sums := power_sums(panel, metric, rows, exact=False)) is not None:
        return sums
    sized = (_sized(d)[0] for d in _in_runs(panel, metric, rows))
    sums_of_runs = [np.stack([power.sum(axis=1) for power in (d, d * d, d * d * d)]) for d in sized]
    return np.concatenate([np.empty((3, 0)), *sums_of_runs], axis=1)


def leanings(panel: ScoredSums, metric: int) -> Array:
    """Return the skewness of what the units of each system add to their mean over all systems, shape (n_systems,)."""
    sums = panel.sums(metric, panel.totals)
    slope = gradient(panel.metrics[metric].form, np.asarray(sums.mean(axis=0), np.float64))
    largest = max((float(np.abs(d).max(initial=0.0)) for d in _added(panel, metric, slope)), default=0.0)
    power = math.ldexp(1.0, math.frexp(largest)[1])  # squares stay within range
    moments = np.zeros((3, len(sums)))
    for added in _added(panel, metric, slope):
        d = added / power
        for k, raised in enumerate((d, d * d, d * d * d)):
            moments[k] += raised.sum(axis=0)
    return moment_skewness(moments / max(panel.n_units, 1))


def _added(panel: ScoredSums, metric: int, slope: Array) -> Iterator[Array]:
    """Yield what some units of each system add to their mean over all systems, shape (n_some, n_systems)."""
    step = max(1, MOST_NUMBERS // max(len(panel.totals), 1))
    for start in range(0, len(panel.addresses), step):
        moved = np.asarray(panel.sums(metric, panel.values[start : start + step]) @ slope)
        yield moved - moved.mean(axis=1, keepdims=True)


def moment_skewness(moments: Array) -> Array:
    """Return the skewness that the means of first, second and third powers give; 0 where nothing varies."""
    mean, square, cube = moments
    variance = square - mean**2
    varies = variance > CONSTANT * square
    third = cube - 3 * mean * square + 2 * mean**3
    return np.asarray(np.where(varies, third, 0.0) / np.where(varies, variance, 1.0) ** 1.5)


def power_sums(panel: ScoredSums, metric: int, rows: Sequence[int] | None, *, exact: bool) -> Array | None:
    """Return the sums of d_u, d_u^2 and d_u^3 of many pairs under a mean by products of matrices, shape (3, n_rows).

    In steps of `_unit`. None where pairs are few or the score is no mean, and where `exact` is wanted and the
    squares of the integers are too large for it.
    """
    pairs = panel.pairs if rows is None else panel.pairs[np.asarray(rows, np.int64)]
    n_units, n_systems = panel.values.shape[:2]
    if not panel.linear[metric] or n_systems**2 > PAIRS_WORTH * len(pairs):
        return None
    totals, squares, cubes = np.zeros(n_systems), np.zeros((n_systems,) * 2), np.zeros((n_systems,) * 2)
    for start in range(0, n_units, step := max(1, MOST_NUMBERS // n_systems)):
        above = np.asarray(panel.numerators_of(metric, panel.values[start : start + step]), np.float64)
        above -= np.round(above.mean(axis=1, keepdims=True))  # changes no difference
        if exact and np.abs(above).max(initial=0.0) ** 2 * n_units >= EXACT:
            return None
        totals += above.sum(axis=0)
        squares += above.T @ above
        if not exact:
            cubes += (above * above).T @ above
    i, j = pairs.T
    second = squares[i, i] + squares[j, j] - 2 * squares[i, j]
    third = cubes[i, i] - cubes[j, j] - 3 * (cubes[i, j] - cubes[j, i])
    return np.stack([totals[i] - totals[j], second, third])


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
        systems, places = np.unique(panel.pairs[np.asarray(rows, np.int64)], return_inverse=True)
        above = panel.numerators_of(metric, panel.values[:, systems]).T  # (n_systems, n_kept)
        i, j = places.reshape(-1, 2).T
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
