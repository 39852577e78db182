"""Differences of pairs after swaps, and the running maximum over hypotheses that families need.

`exceedances` counts without keeping a difference; here they are written out, a few pairs by one
slab of trials at a time, because a family compares each with the largest of all. Beside each
difference stands the slack within which it may miss a tie, so that a maximum errs upwards.
"""

# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from sigdask.counts.precision import TIE
from sigdask.io.caches import cached_njit
from sigdask.randomization.kernels.scored import compare_tails


@cached_njit()
def add_linear(moved, pairs, observed, slack, weights, out, tie):
    """Add each pair's differences after swaps, and their slack, for scores that are integer sums of contributions.

    Parameters
    ----------
    moved : int array, shape (n_systems, n_trials)
    pairs : int64 array, shape (n_pairs, 2)
    observed, slack, weights : float64 array, shape (n_pairs,)
        Observed differences of totals, steps of slack, and the score of a step.
    out, tie : float64 array, shape (n_pairs, n_trials)
        Added to.
    """
    for p in range(pairs.shape[0]):
        a, b = moved[pairs[p, 0]], moved[pairs[p, 1]]
        t, weight = observed[p], weights[p]
        width = 2.0 * slack[p] + TIE * abs(t)  # parts of a mean over sets may cancel, so each adds its own rounding
        for k in range(moved.shape[1]):
            d = t + 2.0 * (b[k] - a[k])
            out[p, k] += d * weight
            tie[p, k] += (width + TIE * abs(d)) * weight


@cached_njit()
def raise_maxima(differences, tie, observed, scales, thresholds, side, largest, counts):
    """Count each hypothesis's exceedances by its own difference, and by the largest statistic so far (max-T).

    Hypotheses are given in ascending order of their observed statistic.

    Parameters
    ----------
    differences, tie : float64 array, shape (n_hypotheses, n_trials)
    observed : float64 array, shape (n_hypotheses,)
        Observed differences on the same scale.
    scales, thresholds : float64 array, shape (n_hypotheses,)
        Factor of each hypothesis in the maximum, 0 if it is left out, and the threshold that the maximum must reach.
    side : int
        0 compares |T|, 1 compares T, -1 compares -T.
    largest : float64 array, shape (n_trials,)
        Largest statistic of the hypotheses so far; raised.
    counts : int64 array, shape (n_hypotheses, 4)
        Added to: T >= t, T <= t, |T| >= |t|, and largest so far >= own (step-down).
    """
    for p in range(differences.shape[0]):
        t = observed[p]
        size, scale = abs(t), scales[p]
        greater, less, either, n_step_down = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for k in range(largest.shape[0]):
            d, slack = differences[p, k], tie[p, k]
            high, low, far = compare_tails(np.float64, d, t, size, slack)
            greater += np.int32(high)
            less += np.int32(low)
            either += np.int32(far)
            statistic = ((abs(d) if side == 0 else side * d) + slack) * scale
            reached = max(largest[k], statistic if scale > 0.0 else -np.inf)
            largest[k] = reached
            n_step_down += np.int32(reached >= thresholds[p])
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either
        counts[p, 3] += n_step_down


@cached_njit()
def raise_scaled(moved, pairs, observed, scales, thresholds, side, largest, counts):
    """Count exceedances as `raise_maxima` does, for differences of integer sums, none of which is stored.

    Parameters
    ----------
    moved : int array, shape (n_systems, n_trials)
    pairs : int64 array, shape (n_hypotheses, 2)
        In ascending order of their observed statistic.
    observed : int64 array, shape (n_hypotheses,)
        Observed differences of totals.
    scales, thresholds, side, largest, counts
        As in `raise_maxima`.
    """
    number = moved.dtype.type
    statistics = np.empty(largest.shape[0], moved.dtype)
    sign, none = number(-1 if side < 0 else 1), number(0)
    for p in range(pairs.shape[0]):
        a, b = moved[pairs[p, 0]], moved[pairs[p, 1]]
        t = number(observed[p])
        size = number(abs(t))
        greater, less, either = number(0), number(0), number(0)
        for k in range(statistics.shape[0]):
            moved_by = number(b[k] - a[k])
            d = number(t + moved_by + moved_by)
            reach = number(abs(d))
            high, low, _ = compare_tails(number, moved_by, none, none, none)  # t + 2 D >= t  <=>  D >= 0
            _, _, far = compare_tails(number, d, t, size, none)
            greater = number(greater + number(high))
            less = number(less + number(low))
            either = number(either + number(far))
            statistics[k] = reach if side == 0 else number(sign * d)
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either
        counts[p, 3] += _raise_row(statistics, scales[p], thresholds[p], largest)


@cached_njit(fastmath={"nnan", "nsz"})  # no NaN comes here: comparisons become vectors
def _raise_row(statistics, scale, threshold, largest):  # noqa: ANN202
    """Update each trial's maximum with a hypothesis's statistic; return in how many trials it reaches `threshold`."""
    if scale == 0.0:
        return largest.shape[0]
    n_reached = np.int64(0)
    for k in range(largest.shape[0]):
        statistic, previous = np.float64(statistics[k]) * scale, largest[k]
        reached = statistic if statistic > previous else previous  # noqa: FURB136 (max is not made a vector)
        largest[k] = reached
        n_reached += np.int64(reached >= threshold)
    return n_reached
