"""Agreement of metrics with human scores after swaps: correlations within groups, pairs in one order, SPA.

Scores of two metrics are swapped cell by cell. A* takes metric A's score where a cell is not swapped, and B's where
it is. Both share one order of the 2 n scores of a group, which is sorted once: the scores of A* are a part of it.

Ranks: The predictions of both systems are sorted together once. A trial assigns each of these entries to A* or B*, and
one walk through them finds the ranks within both. The innermost loops are over trials, which LLVM turns into vector
code. Sums are whole numbers in float64, so that a score depends on a trial's swaps alone.
"""

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from sigdask.io.caches import cached_njit


@cached_njit()
def _sum_group(words, codes, weights, start, end, number, total):
    """Write how many of a group's entries each trial assigns to B*, and their weight; return the weight of all."""
    number[:] = 0.0
    total[:] = 0.0
    every = 0
    for e in range(start, end):
        row, shift, flip = words[codes[e] >> 6], np.uint32(codes[e] >> 1 & 31), np.uint32(codes[e] & 1)
        weight = np.float64(weights[e])
        every += weights[e]
        for t in range(number.shape[0]):
            side = np.float64((row[t] >> shift & np.uint32(1)) ^ flip)
            number[t] += side
            total[t] += side * weight
    return every


@cached_njit()
def sum_ranks(words, codes, starts, weights, sums, squares):
    """Write sums over items of weight times rank, and of squared ranks; here ranks are doubled, minus n_items + 1.

    Parameters
    ----------
    words : uint32 array, shape (n_words, n_trials)
        Swap bits of 32 units each, in each trial.
    codes : int64 array, shape (2 * n_items,)
        Twice the unit of each entry, plus 1 if it is of the second system; sorted by the predictions.
    starts : int64 array, shape (n_groups + 1,)
        First entry of each group of equal predictions, and the number of entries. They share the mean of their ranks.
    weights : int64 array, shape (2 * n_items,)
        Weight of each entry's item.
    sums, squares : float64 array, shape (2, n_trials)
        Written.
    """
    n, (_, n_trials) = codes.shape[0] // 2, sums.shape
    number, total, below = np.empty(n_trials), np.empty(n_trials), np.zeros(n_trials)
    sums[:] = 0.0
    squares[:] = (np.float64(n) * n - 1.0) * n / 3.0
    for g in range(starts.shape[0] - 1):
        start, size = starts[g], np.float64(starts[g + 1] - starts[g])
        every = np.float64(_sum_group(words, codes, weights, start, starts[g + 1], number, total))
        for t in range(n_trials):
            second = number[t]
            first = size - second
            sums[0, t] += (every - total[t]) * (2.0 * (start - below[t]) + first - n)
            sums[1, t] += total[t] * (2.0 * below[t] + second - n)
            below[t] += second
            if size > 1.0:
                squares[0, t] -= (first * first - 1.0) * first / 3.0
                squares[1, t] -= (second * second - 1.0) * second / 3.0


def score_spearman(words, codes, starts, weights, square, out):
    """Write Spearman's correlations; 0 where one is 0/0.

    Weights are the ranks of the gold values, doubled and centred as above, and `square` is the sum of their squares.
    """
    squares = np.empty_like(out)
    sum_ranks(words, codes, starts, weights, out, squares)
    below = np.sqrt(squares) * math.sqrt(square)
    np.divide(out, below, out=out, where=below > 0)


def score_auc(words, codes, starts, positive, n_positive, out):
    """Write areas under the ROC curve; a tie of a positive and a negative item counts half. 0 where one is 0/0."""
    sum_ranks(words, codes, starts, positive, out, np.empty_like(out))
    n_pairs = n_positive * (codes.shape[0] // 2 - n_positive)
    out[:] = (out + n_pairs) / (2 * n_pairs) if n_pairs else 0.0


@cached_njit(error_model="numpy")
def score_average_precision(words, codes, starts, positive, n_positive, out):
    """Write average precisions, of thresholds between unequal predictions, by Kahan's sums. Arguments as above."""
    _, n_trials = out.shape
    number, new_hits = np.empty(n_trials), np.empty(n_trials)
    above, hits, lost = np.zeros((2, n_trials)), np.zeros((2, n_trials)), np.zeros((2, n_trials))
    out[:] = 0.0
    for g in range(starts.shape[0] - 2, -1, -1):
        size = np.float64(starts[g + 1] - starts[g])
        every = np.float64(_sum_group(words, codes, positive, starts[g], starts[g + 1], number, new_hits))
        for t in range(n_trials):
            above[0, t] += size - number[t]
            above[1, t] += number[t]
        if every == 0.0:
            continue
        for s in range(2):
            for t in range(n_trials):
                new = new_hits[t] if s else every - new_hits[t]
                hits[s, t] += new
                term = new * (hits[s, t] / max(above[s, t], 1.0)) - lost[s, t]
                larger = out[s, t] + term
                lost[s, t] = (larger - out[s, t]) - term
                out[s, t] = larger
    for s in range(2):
        for t in range(n_trials):
            out[s, t] = out[s, t] / n_positive if n_positive else 0.0


PEARSON, SPEARMAN, KENDALL, ACCURACY = range(4)

CONSTANT = 1e-13
"""A sum of squares around the mean is 0 if it is below this share of that around zero."""

SMALL_STEP = 1e-9
"""Standardised system scores that differ by less are tied."""


@cached_njit()
def divide_orders(is_accuracy, same, opposite, tied, tied_both, n, n_tied_human):
    """Return Kendall's tau-b, or the share of pairs in the human order or tied in both; NaN where it is undefined."""
    n_pairs = n * (n - 1) // 2
    if is_accuracy:
        return (same + tied_both) / n_pairs if n_pairs else np.nan
    above, below = n_pairs - tied, n_pairs - n_tied_human
    return (same - opposite) / math.sqrt(float(above) * float(below)) if above > 0 and below > 0 else np.nan


@cached_njit()
def rank_values(values, step):
    """Return midranks of values; those within `step` of the one before are tied."""
    n = values.shape[0]
    order = np.argsort(values, kind="mergesort")
    ranks = np.empty(n)
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and values[order[stop]] - values[order[stop - 1]] <= step:
            stop += 1
        for k in range(start, stop):
            ranks[order[k]] = 0.5 * (start + stop + 1)
        start = stop
    return ranks


@cached_njit()
def score_order(is_accuracy, scores, human, step):
    """Return tau-b or the accuracy of all pairs, one after the other; NaN where it is undefined."""
    n = scores.shape[0]
    same, opposite, tied, tied_human, tied_both = 0, 0, 0, 0, 0
    for i in range(n):
        for j in range(i + 1, n):
            d, h = scores[i] - scores[j], human[i] - human[j]
            is_tied = abs(d) <= step
            tied += is_tied
            tied_human += h == 0
            tied_both += is_tied and h == 0
            is_ordered = not is_tied and h != 0
            same += is_ordered and (d > 0) == (h > 0)
            opposite += is_ordered and (d > 0) != (h > 0)
    return divide_orders(is_accuracy, same, opposite, tied, tied_both, n, tied_human)


@cached_njit()
def score_group(statistic, scores, human, step):
    """Return the agreement of some scores with human ones; NaN where it is undefined. Scores within `step` tie."""
    if statistic >= KENDALL:
        return score_order(statistic == ACCURACY, scores, human, step)
    if statistic == SPEARMAN:
        scores, human = rank_values(scores, step), rank_values(human, 0.0)
    n = scores.shape[0]
    total, total_human, has_values, has_human_values = 0.0, 0.0, False, False
    for k in range(n):  # expressions of whole arrays would take seconds more to compile
        total += scores[k]
        total_human += human[k]
        has_values |= scores[k] != scores[0]
        has_human_values |= human[k] != human[0]
    if not (has_values and has_human_values):
        return np.nan
    mean, mean_human = total / n, total_human / n
    squares, above, below, covariance = 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        d, h = scores[k] - mean, human[k] - mean_human
        squares += scores[k] * scores[k]
        above += d * d
        below += h * h
        covariance += d * h
    if above <= CONSTANT * squares or below <= 0:
        return np.nan
    return min(max(covariance / math.sqrt(above * below), -1.0), 1.0)


@cached_njit()
def average_groups(values, set_of_group, n_sets, zero):
    """Return the mean over sets of the mean over their groups; undefined groups are omitted, or count as 0.

    NaN if a set has no defined group.
    """
    total = 0.0
    g = 0
    for s in range(n_sets):
        n, sum_of_set = 0, 0.0
        while g < values.shape[0] and set_of_group[g] == s:
            if not math.isnan(values[g]):
                sum_of_set += values[g]
                n += 1
            elif zero:
                n += 1
            g += 1
        if n == 0:
            return np.nan
        total += sum_of_set / n
    return total / n_sets


@cached_njit()
def average_trials(values, set_of_group, n_sets, zero, scores):
    """Fill `scores`, shape (2, n_trials), with means over sets and groups of values, shape (2, n_trials, n_groups)."""
    for side in range(2):
        for t in range(scores.shape[1]):
            scores[side, t] = average_groups(values[side, t], set_of_group, n_sets, zero)


@cached_njit()
def count_orders(  # noqa: C901  # one walk
    is_accuracy, swapped, entries, starts, human_levels, n_levels, n_tied_human, values
):
    """Fill `values`, (2, n_trials, n_groups), with tau-b or the accuracy of pairs of one pair of metrics.

    One walk through the sorted scores of both metrics counts all trials together. A Fenwick tree over human scores has
    the passed scores of A*. In one extra trial, A* has all scores. Its counts minus those of A* are those of B*. To
    compare all pairs of scores takes 30 times as long in groups of 15 cells, and 400 times for 1,500 cells.

    Parameters
    ----------
    swapped : int32 array, shape (n_cells, n_trials + 1)
        1 if a trial swaps a cell, otherwise 0. The last column is not read.
    human_levels : int64 array, shape (n_cells,)
        The number of each human score within its group.
    n_levels, n_tied_human : int64 array, shape (n_groups,)
        How many human scores differ, and pairs of equal ones.
    entries : int32 array, shape (2, 2 * n_cells)
        The scores of both metrics in the order of groups and scores: twice the cell, and one more for the second
        metric; and the number of the score's level.
    starts : int64 array, shape (n_groups + 1,)
    """
    n_groups, width = starts.shape[0] - 1, swapped.shape[1]
    tree, equal = np.empty((n_levels.max() + 1, width), np.int32), np.empty((n_levels.max(), width), np.int32)
    tied_equal = np.zeros((n_levels.max(), width), np.int32)  # of equal human scores, those of this group of ties
    is_first, passed = np.empty(width, np.int32), np.empty(width, np.int32)
    tied, gain = np.empty(width, np.int32), np.empty(width, np.int32)
    sums, ties = np.empty((2, width), np.int64), np.empty((2, width), np.int64)
    for g in range(n_groups):
        n, end = starts[g + 1] - starts[g], 2 * starts[g + 1]
        tree[: n_levels[g] + 1] = 0
        equal[: n_levels[g]] = 0
        passed[:] = 0
        sums[:] = 0
        ties[:] = 0
        start = 2 * starts[g]
        while start < end:
            stop = start + 1
            while stop < end and entries[1, stop] == entries[1, start]:
                stop += 1
            is_tie = stop - start > 1
            tied[:] = 0
            for k in range(start, stop):
                human = human_levels[entries[0, k] >> 1]
                _find_first(swapped, entries[0, k], is_first)
                _find_gain(is_accuracy, tree, human, equal[human], passed, gain)
                if is_tie:
                    _add_sides(tied, is_first, ties)
                    _add_lanes(tied, is_first)
                    if is_accuracy:
                        _add_lanes(gain, tied_equal[human])
                        _add_lanes(tied_equal[human], is_first)
                _add_sides(gain, is_first, sums)
            for k in range(start, stop):
                human = human_levels[entries[0, k] >> 1]
                if is_tie:
                    _find_first(swapped, entries[0, k], is_first)
                    tied_equal[human] = 0
                _add_lanes(passed, is_first)
                _add_lanes(equal[human], is_first)
                human += 1
                while human <= n_levels[g]:
                    _add_lanes(tree[human], is_first)
                    human += human & -human
            start = stop
        for t in range(width - 1):
            for side in range(2):
                values[side, t, g] = divide_orders(is_accuracy, sums[side, t], 0, ties[side, t], 0, n, n_tied_human[g])


@cached_njit()
def _find_first(swapped, entry, is_first):
    """Fill `is_first` with 1 if A* has an entry, as in the last lane, otherwise 0."""
    row, flip = swapped[entry >> 1], np.int32(1 - (entry & 1))
    for t in range(is_first.shape[0] - 1):
        is_first[t] = row[t] ^ flip
    is_first[-1] = 1


@cached_njit()
def _find_gain(is_accuracy, tree, human, equal, passed, gain):
    """Fill `gain` with A*'s passed scores with a lower human score; for tau-b, minus those with a higher one."""
    gain[:] = 0
    while human:
        _add_lanes(gain, tree[human])
        human &= human - 1
    if not is_accuracy:
        for t in range(gain.shape[0]):
            gain[t] += gain[t] + equal[t] - passed[t]


@cached_njit()
def _add_lanes(total, more):
    for t in range(total.shape[0]):
        total[t] += more[t]


@cached_njit()
def _add_sides(numbers, is_first, sums):
    """Add an entry's numbers to the sums of A* where it has the entry, else what the last lane has more to B*'s."""
    every, first, second = numbers[-1], sums[0], sums[1]
    for t in range(numbers.shape[0]):
        mask = np.int32(-is_first[t])
        first[t] += np.int32(numbers[t] & mask)
        second[t] += np.int32(np.int32(every - numbers[t]) & ~mask)


@cached_njit()
def count_ordered(swapped, first, second, changes, state):
    """Raise `state` to the largest weight of right pairs over all thresholds of ties, for one pair of metrics.

    The threshold decreases from the one at which all pairs are ties. Weights are integers, so the order of additions
    does not matter.

    Parameters
    ----------
    swapped : int32 array, shape (n_cells, n_trials)
        -1 if a cell is swapped, otherwise 0.
    first, second : int32 array, shape (n_differences,)
        Both cells of each difference, ~cell for the score of the first metric. The largest difference comes first. Of
        equal ones, those come first that are right as ties.
    changes : int array, shape (n_differences,)
        Change in agreement when the threshold falls below the difference.
    state : int array of the same type, shape (4, n_trials)
        The weight of right pairs for A* and B*, and the largest one of both.
    """
    number = state.dtype.type
    won_a, won_b, best_a, best_b = state[0], state[1], state[2], state[3]
    for k in range(first.shape[0]):
        flip_i, flip_j, change = np.int32(first[k] >> 31), np.int32(second[k] >> 31), changes[k]
        i, j = swapped[first[k] ^ flip_i], swapped[second[k] ^ flip_j]
        for t in range(state.shape[1]):
            u, v = np.int32(i[t] ^ flip_i), np.int32(j[t] ^ flip_j)
            won_a[t] = number(won_a[t] + (number(u & v) & change))
            won_b[t] = number(won_b[t] + (number(~(u | v)) & change))
        if change > 0:
            for t in range(state.shape[1]):
                best_a[t] = max(best_a[t], won_a[t])
                best_b[t] = max(best_b[t], won_b[t])


@cached_njit()
def _count_above(bar, value):
    """Return in how many signs a bar is above the value; the cast lets the compiler count in 32 bits."""
    count = np.int32(0)
    for r in range(bar.shape[0]):
        count += np.int32(bar[r] > value[r])
    return np.int32(count)


@cached_njit()
def count_soft_accuracy(moved, sums, slack, human, pairs, scores):
    """Add to `scores`, shape (n_pairs, 2), the soft pairwise accuracies after the swaps of one trial.

    Random signs lower the difference of two systems by twice the difference of their sums over the cells with sign -1.
    It is at least the observed one if the first of these sums exceeds the second by at most the slack. Each sum has two
    parts: cells of the metric itself that are not swapped, and swapped cells of the other metric. The parts are
    subtracted once for all pairs of metrics, and then compared for each pair of metrics.

    Parameters
    ----------
    moved, sums : int32 array, shape (n_systems, n_metrics, n_signs)
        Sums of whole numbers over the cells with sign -1: over the swapped cells, and over all.
    slack : int
        By how much the sums may differ the other way.
    human : float64 array, shape (n_system_pairs,)
        The share of signs for the human scores whose difference is at least the observed one.
    pairs : int64 array, shape (n_pairs, 2)
    """
    n_systems, n_metrics, n_signs = sums.shape
    bars, values = np.empty((n_metrics, n_signs), np.int32), np.empty((n_metrics, n_signs), np.int32)
    shift = np.int32(slack + 1)
    k = 0
    for i in range(n_systems):
        for j in range(i + 1, n_systems):
            for m in range(n_metrics):
                for r in range(n_signs):
                    values[m, r] = moved[i, m, r] - moved[j, m, r]
                    bars[m, r] = sums[j, m, r] - sums[i, m, r] + values[m, r] + shift
            for p in range(pairs.shape[0]):
                for side in range(2):
                    n_wins = _count_above(bars[pairs[p, side]], values[pairs[p, 1 - side]])
                    scores[p, side] -= abs(n_wins / n_signs - human[k]) / human.shape[0]
            k += 1
    for p in range(pairs.shape[0]):
        for side in range(2):
            scores[p, side] += 1.0


@cached_njit()
def score_means(statistic, means, human, system_starts, scores):
    """Fill `scores`, shape (n_trials,), with agreements of systems' means, shape (n_trials, n_systems), over sets."""
    n_sets = system_starts.shape[0] - 1
    for t in range(scores.shape[0]):
        total = 0.0
        for s in range(n_sets):
            here = slice(system_starts[s], system_starts[s + 1])
            total += score_group(statistic, means[t, here], human[here], SMALL_STEP)
        scores[t] = total / n_sets
