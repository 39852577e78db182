"""Kernels that score two systems after swaps and count exceedances.

Ratios and their averages, BLEU and chrF of both systems are computed for the trials of a slab, one pair at a time. So a
trial of a pair costs nanoseconds, and no array of pairs x trials is made.

A trial counts if the difference after swaps is at least as extreme as the observed one, so ties count (`>=`). All three
tails are counted at once: greater, less and two-sided. With D = moved_j - moved_i, the difference after swaps is t + 2
D on the scale of numerators, so in one dimension it reaches the observed difference exactly when D >= 0.

Differences of pairs after swaps, and the running maximum over hypotheses that families need.

Counting keeps no difference; for families they are written out, a few pairs by one
slab of trials at a time, because a family compares each with the largest of all. Beside each
difference stands the slack within which it may miss a tie, so that a maximum errs upwards.
"""

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.io.caches import cached_njit
from sigdask.metrics.forms import Bleu, ChrF, Form, Ratios
from sigdask.statistics.lattice import TIE

MAX_32 = 2**30
"""Maximum difference of sums that are stored in 32 bits."""


@cached_njit()
def compare_tails(number, difference, bar, size, tie):
    """Return whether a difference is at least, at most, and at least as far from 0 as the observed one; ties count.

    This is the rule of every kernel; numba makes it part of each.

    Parameters
    ----------
    number : type
        Type of the comparison: 32-bit sums in 32-bit lanes.
    difference : number
        The difference after swaps.
    bar, size : number
        The observed difference and its size, on the same scale.
    tie : number
        Maximum distance of a tied difference after swaps.
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
        Observed differences of totals, and steps within which a sum is a tie.
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
        wide = min(slack[p], MAX_32) if a.itemsize == 4 else slack[p]  # no sum of 32 bits is larger
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
def count_scores(a, b, slack, observed, counts):
    """Add one pair's exceedances to `counts`, given both systems' scores after the swaps of each trial.

    Parameters
    ----------
    a, b : float64 array, shape (n_trials,)
        Scores of the two pseudo-systems.
    slack : float64 array, shape (n_trials,)
        Maximum distance of a true tie, in addition to rounding.
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


RATIOS, BLEU, CHRF = 0, 1, 2
TILE = 256
"""Trials scored at a time, so that their sums stay in the L1 and L2 caches."""

Parameters = tuple[int, float, Integers]


def get_parameters(form: Form, n_fields: int) -> Parameters | None:
    """Return what the compiled code of a form needs, or None for other forms.

    Returns
    -------
    (int, float, int64 array of shape (n_sums, n_fields))
        The kind of the form, its number, and the weights of fields in each sum of which it is computed: numerator and
        denominator of each ratio, or the fields themselves.
    """
    if isinstance(form, Ratios):
        weights = np.stack([form.numerators, form.denominators], axis=1)
        return RATIOS, form.zero_division, weights.reshape(-1, n_fields)
    if isinstance(form, Bleu):
        return BLEU, 0.0, np.eye(n_fields, dtype=np.int64)
    return (CHRF, form.beta**2, np.eye(n_fields, dtype=np.int64)) if isinstance(form, ChrF) else None


@cached_njit(error_model="numpy")
def count_scored(kind, number, moved, totals, pairs, observed, counts):
    """Add each pair's exceedances to `counts`, for ratios, BLEU or chrF, which are scored in the same loop.

    NumPy takes 13 times as long for macro averages of eight systems, 9 times for F1, and twice as long for BLEU.

    Parameters
    ----------
    kind, number
        From `get_parameters`.
    moved : float64 array, shape (n_systems, n_sums, n_trials)
        Sums over swapped units, relative to the base system; integers in value.
    totals : float64 array, shape (n_systems, n_sums)
    pairs : int64 array, shape (n_pairs, 2)
    observed : float64 array, shape (n_pairs,)
    counts
        As in `count_linear`.
    """
    scores, room, slack = np.empty((2, TILE)), np.empty((2, TILE)), np.zeros(TILE)
    for p in range(pairs.shape[0]):
        for start in range(0, moved.shape[2], TILE):
            end = min(start + TILE, moved.shape[2])
            a, b = scores[0, : end - start], scores[1, : end - start]
            score_pair(kind, number, moved[:, :, start:end], totals, pairs[p], a, b, room)
            count_scores(a, b, slack, observed[p], counts[p])


@cached_njit(error_model="numpy")
def write_scored(kind, number, moved, totals, pairs, weight, out, tie):
    """Write each pair's differences after swaps, and their slack, (n_pairs, n_trials), as `count_scored` does."""
    scores, room = np.empty((2, TILE)), np.empty((2, TILE))
    for p in range(pairs.shape[0]):
        for start in range(0, moved.shape[2], TILE):
            end = min(start + TILE, moved.shape[2])
            a, b = scores[0, : end - start], scores[1, : end - start]
            score_pair(kind, number, moved[:, :, start:end], totals, pairs[p], a, b, room)
            difference, width = out[p, start:end], tie[p, start:end]
            for k in range(end - start):
                difference[k] = (a[k] - b[k]) * weight
                width[k] = 2.0 * TIE * (abs(a[k]) + abs(b[k])) * weight


@cached_njit()
def write_scores(a, b, slack, weight, out, tie):
    """Write one pair's differences after swaps, and their slack, given both systems' scores after swaps.

    `a`, `b` and `slack` are as in `count_scores`.
    """
    for k in range(a.shape[0]):
        out[k] = (a[k] - b[k]) * weight
        tie[k] = (2.0 * TIE * (abs(a[k]) + abs(b[k])) + slack[k]) * weight


@cached_njit(error_model="numpy")
def score_pair(kind, number, moved, totals, pair, a, b, room):
    """Write the scores of both systems of a pair after the swaps of at most `TILE` trials to `a` and `b`.

    Scores are computed sum by sum in plain loops over trials, which LLVM vectorises. `room` has shape (2, TILE).
    """
    for side in range(2):
        x, y, total = moved[pair[side]], moved[pair[1 - side]], totals[pair[side]]  # sums are total + y - x
        out = b if side else a
        if kind == RATIOS:
            _score_ratios(number, total, x, y, out)
        elif kind == BLEU:
            _score_bleu(total, x, y, out, room)
        else:
            _score_chrf(number, total, x, y, out, room)


@cached_njit(error_model="numpy")
def _score_ratios(zero_division, total, x, y, out):
    n_ratios = total.shape[0] // 2
    for r in range(n_ratios):
        above, below, y_above, x_above = total[2 * r], total[2 * r + 1], y[2 * r], x[2 * r]
        y_below, x_below = y[2 * r + 1], x[2 * r + 1]
        for k in range(out.shape[0]):
            n, d = above + (y_above[k] - x_above[k]), below + (y_below[k] - x_below[k])
            undefined = d == 0.0
            ratio = (zero_division if undefined else n) / (1.0 if undefined else d)
            out[k] = ratio if r == 0 else out[k] + ratio
    if n_ratios > 1:
        for k in range(out.shape[0]):
            out[k] /= n_ratios


@cached_njit(error_model="numpy")
def _score_bleu(total, x, y, out, room):
    n_trials = out.shape[0]
    missing = room[0]
    for k in range(n_trials):
        n_unigrams = total[2] + (y[2, k] - x[2, k])
        out[k] = 0.0 if n_unigrams == 0.0 else 1.0
        missing[k] = 1.0
    for order in range(4):
        c, n = 2 + order, 6 + order
        for k in range(n_trials):
            correct = total[c] + (y[c, k] - x[c, k])
            n_given = total[n] + (y[n, k] - x[n, k])
            missing[k] *= 0.5 if correct == 0.0 else 1.0
            matches = missing[k] if correct == 0.0 else correct
            out[k] *= (0.0 if n_given == 0.0 else matches) / (1.0 if n_given == 0.0 else n_given)
    for k in range(n_trials):
        out[k] = 100.0 * math.sqrt(math.sqrt(out[k]))
    for k in range(n_trials):
        length = total[0] + (y[0, k] - x[0, k])
        reference = total[1] + (y[1, k] - x[1, k])
        if length < reference:
            out[k] *= math.exp(1.0 - reference / length) if length > 0.0 else 0.0


@cached_njit(error_model="numpy")
def _score_chrf(factor, total, x, y, out, room):
    n_trials = out.shape[0]
    precision, recall = out, room[0]
    orders = room[1]
    precision[:] = 0.0
    recall[:n_trials] = 0.0
    orders[:n_trials] = 0.0
    for f in range(0, total.shape[0], 3):
        for k in range(n_trials):
            n_output = total[f] + (y[f, k] - x[f, k])
            n_reference = total[f + 1] + (y[f + 1, k] - x[f + 1, k])
            n_matching = total[f + 2] + (y[f + 2, k] - x[f + 2, k])
            is_counted = (n_output > 0.0) & (n_reference > 0.0)
            n_matching = n_matching if is_counted else 0.0
            precision[k] += n_matching / (n_output if is_counted else 1.0)
            recall[k] += n_matching / (n_reference if is_counted else 1.0)
            orders[k] += 1.0 if is_counted else 0.0
    for k in range(n_trials):
        n = max(orders[k], 1.0)
        p, r = precision[k] / n, recall[k] / n
        d = factor * p + r
        out[k] = 100.0 * (1.0 + factor) * p * r / (1.0 if d == 0.0 else d)


@cached_njit()
def write_linear(moved, pairs, observed, slack, weight, out, tie):
    """Write each pair's differences after swaps, and their slack, for scores that are integer sums of contributions.

    Parameters
    ----------
    moved : int array, shape (n_systems, n_trials)
    pairs : int64 array, shape (n_pairs, 2)
    observed, slack : float64 array, shape (n_pairs,)
        Observed differences of totals, and steps of slack.
    weight : float
        Score of a step.
    out, tie : float64 array, shape (n_pairs, n_trials)
        Filled.
    """
    for p in range(pairs.shape[0]):
        a, b = moved[pairs[p, 0]], moved[pairs[p, 1]]
        t = observed[p]
        width = 2.0 * slack[p] + TIE * abs(t)  # parts of a mean over sets may cancel, so each adds its own rounding
        for k in range(moved.shape[1]):
            d = t + 2.0 * (b[k] - a[k])
            out[p, k] = d * weight
            tie[p, k] = (width + TIE * abs(d)) * weight


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
def raise_scaled(moved, pairs, observed, slack, scales, thresholds, side, largest, counts):
    """Count exceedances as `raise_maxima` does, for differences of integer sums, none of which is stored.

    That is 7 times as fast for 8,256 pairs of 50 topics.

    Parameters
    ----------
    moved : int array, shape (n_systems, n_trials)
    pairs : int64 array, shape (n_hypotheses, 2)
        In ascending order of their observed statistic.
    observed, slack : int64 array, shape (n_hypotheses,)
        Observed differences of totals, and steps within which a sum is a tie.
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
        wide = number(min(slack[p], MAX_32) if a.itemsize == 4 else slack[p])
        tie = number(min(2 * slack[p], abs(observed[p])))  # then every trial counts for two sides
        greater, less, either = number(0), number(0), number(0)
        for k in range(statistics.shape[0]):
            moved_by = number(b[k] - a[k])
            d = number(t + moved_by + moved_by)
            reach = number(abs(d))
            high, low, _ = compare_tails(number, moved_by, none, none, wide)  # t + 2 D >= t  <=>  D >= 0
            _, _, far = compare_tails(number, d, t, size, tie)
            greater = number(greater + number(high))
            less = number(less + number(low))
            either = number(either + number(far))
            statistics[k] = reach if side == 0 else number(sign * d)
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either
        counts[p, 3] += _raise_row(statistics, 2.0 * slack[p], scales[p], thresholds[p], largest)


@cached_njit(fastmath={"nnan", "nsz"})  # no NaN comes here: comparisons become vectors
def _raise_row(statistics, width, scale, threshold, largest):
    """Update each trial's maximum with a hypothesis's statistic; return in how many trials it reaches `threshold`."""
    if scale == 0.0:
        return largest.shape[0]
    n_reached = np.int64(0)
    for k in range(largest.shape[0]):
        statistic, previous = (np.float64(statistics[k]) + width) * scale, largest[k]
        reached = statistic if statistic > previous else previous  # noqa: FURB136 (max is not made a vector)
        largest[k] = reached
        n_reached += np.int64(reached >= threshold)
    return n_reached
