"""Count how often a difference after swaps is at least as extreme as the observed one.

Ties count (`>=`). Three tails at once: greater, less and two-sided.

With D = moved_j - moved_i the shuffled difference of a pair is t + 2 D on the scale of numerators,
so in one dimension the observed difference is reached exactly when D >= 0.
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.counts.lattice import TIE
from sigdask.io.compiled_cache import cached_njit

LARGEST_32 = 2**30
"""Of a difference of sums that are kept in 32 bits."""


@cached_njit()
def compare_tails(number, difference, bar, size, tie):
    """Return whether a difference is at least, at most, and at least as far from 0 as the observed one; ties count.

    This is the rule of every kernel; numba makes it part of each.

    Parameters
    ----------
    number : type
        In which they are compared: 32-bit sums in 32-bit lanes.
    difference : number
        The difference after swaps.
    bar, size : number
        The observed difference and its size, on the same scale.
    tie : number
        How far the difference after swaps may be off and still tie.
    """
    lower, upper, far = number(bar - tie), number(bar + tie), number(size - tie)
    return difference >= lower, difference <= upper, number(abs(difference)) >= far


@cached_njit()
def count_linear(moved, pairs, observed, slack, counts):
    """Add each pair's exceedances to `counts`, for scores that are integer sums of contributions.

    Parameters
    ----------
    moved : int array, shape (n_systems, n_trials)
    pairs : int64 array, shape (n_pairs, 2)
    observed, slack : int array like `moved`, shape (n_pairs,)
        Observed differences of totals; steps within which a sum is a tie.
    counts : int64 array, shape (n_pairs, 3)
        Added to.
    """
    number = moved.dtype.type  # 32-bit sums are compared and counted in 32-bit lanes
    n_trials = moved.shape[1]
    for p in range(pairs.shape[0]):
        i, j, t = pairs[p, 0], pairs[p, 1], observed[p]
        if t < 0:  # mirrored, so that the observed difference is not negative
            i, j = j, i
        a, b, size = moved[i], moved[j], abs(t)
        wide = min(slack[p], LARGEST_32) if a.itemsize == 4 else slack[p]  # no sum of 32 bits is larger
        tie, none, opposite = number(wide), number(0), number(-size)
        greater, less, far = number(0), number(0), number(0)
        for k in range(n_trials):  # |t + 2 D| >= t  <=>  D >= 0 or D <= -t
            d = number(b[k] - a[k])
            high, low, _ = compare_tails(number, d, none, none, tie)
            _, beyond, _ = compare_tails(number, d, opposite, none, tie)
            greater = number(greater + number(high))
            less = number(less + number(low))
            far = number(far + number(beyond))
        # the two ends of two-sided meet where |t| lies within the slack: then every trial counts
        counts[p, 2] += n_trials if size <= 2 * slack[p] else far + greater
        if t < 0:
            greater, less = less, greater
        counts[p, 0] += greater
        counts[p, 1] += less


@cached_njit()
def count_ratio(above, below, total_above, total_below, pairs, zero_division, observed, counts):
    """Add each pair's exceedances to `counts`, for scores that are one ratio of sums.

    Ratios are compared by cross-multiplication, so that no division rounds.

    With A = u/x and B = v/y, A - B >= t is u y - v x >= t x y; ties within TIE (|A| + |B|).

    Parameters
    ----------
    above, below : float64 array, shape (n_systems, n_trials)
        Sums of numerators and denominators over swapped units, relative to the first system; integers in value.
    total_above, total_below : float64 array, shape (n_systems,)
    pairs : int64 array, shape (n_pairs, 2)
    zero_division : float
        Value of 0/0.
    observed : float64 array, shape (n_pairs,)
    counts
        As in `count_linear`.
    """
    n_trials = above.shape[1]
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        t = observed[p]
        size = abs(t)
        greater, less, either = np.int32(0), np.int32(0), np.int32(0)
        for k in range(n_trials):
            shift = above[j, k] - above[i, k]
            u, v = total_above[i] + shift, total_above[j] - shift
            shift = below[j, k] - below[i, k]
            x, y = total_below[i] + shift, total_below[j] - shift
            u, x = (zero_division, 1.0) if x == 0.0 else (u, x)
            v, y = (zero_division, 1.0) if y == 0.0 else (v, y)
            difference = u * y - v * x
            tie = TIE * (abs(u * y) + abs(v * x))
            bar = t * (x * y)
            high, low, far = compare_tails(np.float64, difference, bar, size * (x * y), tie)
            greater += np.int32(high)
            less += np.int32(low)
            either += np.int32(far)
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either


@cached_njit()
def count_scores(a, b, slack, observed, counts):
    """Add one pair's exceedances to `counts`, given both systems' scores after the swaps of each trial.

    Parameters
    ----------
    a, b : float64 array, shape (n_trials,)
        Scores of the two pseudo-systems.
    slack : float64 array, shape (n_trials,)
        How far a difference may miss a true tie, besides rounding.
    observed : float
    counts : int64 array, shape (3,)
        Added to.
    """
    size = abs(observed)
    greater, less, either = np.int32(0), np.int32(0), np.int32(0)
    for k in range(a.shape[0]):
        difference = a[k] - b[k]
        tie = TIE * (abs(a[k]) + abs(b[k])) + slack[k]
        high, low, far = compare_tails(np.float64, difference, observed, size, tie)
        greater += np.int32(high)
        less += np.int32(low)
        either += np.int32(far)
    counts[0] += greater
    counts[1] += less
    counts[2] += either
