"""Standard deviations of pairs' differences under swaps, and skewness of units' differences.

Families divide by these standard deviations. d_u is what a unit contributes to the difference. A
swap turns the sign of d_u and changes neither its size nor any other d_u. So the standard deviation
of the swapped difference, sqrt(sum_u d_u^2), is the same for every arrangement. It is exact for
means, and linearised at the pooled sums of the two systems, which no swap changes, for other scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sigdask.counts.fields import Floats
from sigdask.errors import InputError
from sigdask.metrics.forms import Form, Formula, compute_gradient, compute_gradients
from sigdask.randomization.panels.scored_sums import ScoredSums
from sigdask.randomization.stream import draw_swap_bits

SAMPLING_RUN, SAMPLES = 255, 256
"""Run and number of swaps that estimate the deviation of a score with jumps. No trial uses this run, so the results
are as good as constants.
"""

ROUNDING = 1e-11
"""Changes of a score below this relative size may be rounding error."""

WIDE = 1e-2
"""Relative step of a second measurement of a formula's slope. A formula with jumps gives another slope."""

PAIRS_WORTH = 64
"""Cost of the differences of one pair, in products of two systems."""

EXACT = 2.0**50
"""Sums of integers below it are exact, and so are sums of four of them."""

MAX_NUMBERS = 2**21
"""Maximum number of unit sums held at a time."""

CONSTANT = 1e-9
"""Units do not vary about their mean if their variance is below this share of the mean square."""


def compute_swap_deviations(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Floats:
    """Return the standard deviation of the difference of some pairs (default: all) under swaps.

    Returns
    -------
    float64 array, shape (n_rows,)
        In units of the score.
    """
    unit = get_contribution_step(panel, metric)
    if (sums := sum_powers_by_products(panel, metric, rows, exact=True)) is not None:
        return np.asarray(np.sqrt(sums[1]) * unit)
    deviations = [
        np.sqrt((d**2).sum(axis=1)) * power * unit
        for d, power in map(_scale_rows, _iter_contributions(panel, metric, rows))
    ]
    return np.concatenate([np.empty(0), *deviations])


def compute_skewness(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Floats:
    """Return, for each pair, the skewness of its units' differences, concordant units included; 0 if constant."""
    return compute_moment_skewness(sum_unit_powers(panel, metric, rows) / max(panel.n_units, 1))


def sum_unit_powers(panel: ScoredSums, metric: int, rows: Sequence[int] | None = None) -> Floats:
    """Return sums of each pair's unit differences, their squares and cubes, (3, n_rows), on a scale of its own."""
    if (sums := sum_powers_by_products(panel, metric, rows, exact=False)) is not None:
        return sums
    scaled = (_scale_rows(d)[0] for d in _iter_contributions(panel, metric, rows))
    sums_of_runs = [np.stack([power.sum(axis=1) for power in (d, d * d, d * d * d)]) for d in scaled]
    return np.concatenate([np.empty((3, 0)), *sums_of_runs], axis=1)


def compute_moment_skewness(moments: Floats, constant: float = CONSTANT) -> Floats:
    """Return the skewness from the means of first, second and third powers; 0 if nothing varies."""
    mean, square, cube = moments
    variance = square - mean**2
    varies = variance > constant * square
    third = cube - 3 * mean * square + 2 * mean**3
    return np.asarray(np.where(varies, third, 0.0) / np.where(varies, variance, 1.0) ** 1.5)


def sum_powers_by_products(panel: ScoredSums, metric: int, rows: Sequence[int] | None, *, exact: bool) -> Floats | None:
    """Return sums of units' differences, their squares and cubes, for many pairs by matrix products, (3, n_rows).

    Sums are in steps of `get_contribution_step`. The result is None if pairs are few, if the score is not a mean, or if
    `exact` sums are requested and the squares of the integers are too large for them.
    """
    pairs = panel.pairs if rows is None else panel.pairs[np.asarray(rows, np.int64)]
    n_units, n_systems = panel.values.shape[:2]
    if not panel.linear[metric] or n_systems**2 > PAIRS_WORTH * len(pairs):
        return None
    totals, squares, cubes = np.zeros(n_systems), np.zeros((n_systems,) * 2), np.zeros((n_systems,) * 2)
    for start in range(0, n_units, step := max(1, MAX_NUMBERS // n_systems)):
        above = np.asarray(panel.compute_numerators(metric, panel.values[start : start + step]), np.float64)
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


def _scale_rows(d: Floats) -> tuple[Floats, Floats]:
    """Return rows divided by a power of two so that no square overflows, and the powers, shape (n_rows,)."""
    power = np.ldexp(1.0, np.frexp(np.abs(d).max(axis=1, initial=0.0))[1])
    return d / power[:, None], power


def compute_contributions(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Floats:
    """Return the contribution of each kept unit to the differences of some pairs, (n_rows, n_kept), in score units."""
    return _compute_contributions(panel, metric, rows) * get_contribution_step(panel, metric)


def compute_resolution(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Floats:
    """Return the standard deviation that rounding alone may give each difference, shape (n_rows,), in score units."""
    if panel.linear[metric]:
        return np.asarray(2.0 * panel.slack[list(rows), metric] * get_contribution_step(panel, metric))
    form, sums = panel.metrics[metric].form, panel.to_arguments(metric, panel.totals)
    rounding = ROUNDING * np.array([_compute_magnitude(form, _average_sums(sums, panel, row)) for row in rows])
    return np.maximum(rounding, 2.0 * panel.observed_error_bounds[list(rows), metric])


def _compute_magnitude(form: Form, pooled: Floats) -> float:
    """Return the size of a score and its linearised terms, to judge rounding; 0 if a formula takes only integers."""
    try:
        score = abs(float(form.score(pooled[None])[0]))
    except InputError:
        return 0.0
    return score + float(np.abs(compute_gradient(form, pooled) * pooled).sum())


def _iter_contributions(panel: ScoredSums, metric: int, rows: Sequence[int] | None) -> Iterator[Floats]:
    """Yield the contributions of units to the differences of pairs, in batches of pairs, in `get_contribution_step`."""
    rows = range(len(panel.pairs)) if rows is None else rows
    size = max(1, MAX_NUMBERS // max(len(panel.addresses), 1))
    for start in range(0, len(rows), size):
        yield _compute_contributions(panel, metric, rows[start : start + size])


def get_contribution_step(panel: ScoredSums, metric: int) -> float:
    """Return the score of a contribution of 1: a step of a mean, or 1 for scores that are not means."""
    return panel.compute_step_value(metric) if panel.linear[metric] else 1.0


def _compute_contributions(panel: ScoredSums, metric: int, rows: Sequence[int]) -> Floats:
    form = panel.metrics[metric].form
    if panel.linear[metric]:
        systems, positions = np.unique(panel.pairs[np.asarray(rows, np.int64)], return_inverse=True)
        above = panel.compute_numerators(metric, panel.values[:, systems]).T  # (n_systems, n_kept)
        i, j = positions.reshape(-1, 2).T
        return np.asarray(above[i] - above[j], np.float64)
    values, sums = panel.to_arguments(metric, panel.values), panel.to_arguments(metric, panel.totals)
    result = np.empty((len(rows), len(values)))
    pooled = np.array([_average_sums(sums, panel, row) for row in rows]).reshape(len(rows), -1)
    is_formula = isinstance(form, Formula)  # a user's formula may accept only one pair at a time
    slopes = [compute_gradient(form, point) for point in pooled] if is_formula else compute_gradients(form, pooled)
    for k, row in enumerate(rows):
        i, j = panel.pairs[row]
        moved = values[:, i] - values[:, j]  # (n_kept, n_fields)
        result[k] = moved @ slopes[k]
        if is_formula and moved.any() and not _is_smooth(result[k], moved @ compute_gradient(form, pooled[k], WIDE)):
            result[k] = _estimate_unit_size(panel, metric, row) * moved.any(axis=1)
    return result


def _is_smooth(narrow: Floats, wide: Floats) -> bool:
    """Return whether slopes of a formula measured by small and by large steps are nonzero and nearly equal."""
    narrow_norm, wide_norm = _compute_norm(narrow), _compute_norm(wide)
    return bool(narrow_norm > 0 and abs(narrow_norm - wide_norm) < 0.25 * narrow_norm)


def _compute_norm(d: Floats) -> float:
    """Return the root of the sum of squares without overflow or underflow."""
    sized, power = _scale_rows(d.reshape(1, -1))
    return float(np.sqrt((sized**2).sum()) * power[0])


def _average_sums(sums: Floats, panel: ScoredSums, row: int) -> Floats:
    i, j = panel.pairs[row]
    return np.asarray((sums[i] + sums[j]) / 2, np.float64)


def _estimate_unit_size(panel: ScoredSums, metric: int, row: int) -> float:
    """Estimate from sampled swaps how much a discordant unit moves a score that jumps: one size for all units."""
    fields, (i, j) = list(panel.metrics[metric].fields), panel.pairs[row]
    moved = panel.values[:, j].astype(np.int64) - panel.values[:, i]  # (n_kept, n_fields)
    differs = moved[:, fields].any(axis=1)
    n_units, size = int(panel.addresses[-1]) + 1, SAMPLES // 16
    shifts = []
    for first in range(0, SAMPLES, size):
        bits = draw_swap_bits(panel.key, run=SAMPLING_RUN, first=first, n_trials=size, n_units=n_units)
        shifts.append(bits[:, panel.addresses].astype(np.int64) @ moved)
    shift, score = np.concatenate(shifts), panel.metrics[metric].form.score
    a, b = (
        score(panel.to_arguments(metric, panel.totals[i] + shift)),
        score(panel.to_arguments(metric, panel.totals[j] - shift)),
    )
    return _compute_norm(a - b) / math.sqrt(SAMPLES * np.count_nonzero(differs))


def compute_relabel_deviation(panel: ScoredSums, metric: int) -> float:
    """Return the root mean square deviation of differences under relabelling, linearised."""
    slope = compute_gradient(panel.metrics[metric].form, panel.to_arguments(metric, panel.totals).mean(axis=0))
    values = panel.to_arguments(metric, panel.values) @ slope  # (n_kept, n_systems)
    n_systems = values.shape[1]
    return math.sqrt(2 * n_systems / max(n_systems - 1, 1) * float(values.var(axis=1).sum()))


def compute_root_mean_square(deviations: Floats) -> float:
    """Return the root mean square of the deviations of a group of hypotheses; 1 if it is 0 or not finite."""
    size = math.sqrt(float((deviations**2).mean())) if len(deviations) else 0.0
    return size if math.isfinite(size) and size > 0 else 1.0
