"""Scores of both systems of a pair by the order of their predictions, after the swaps of each trial.

The predictions of both systems are sorted together once. A trial assigns each of these entries to A* or B*, and one
walk through them finds the ranks within both. The innermost loops are over trials, which LLVM turns into vector code.
Sums are whole numbers in float64, so that a score depends on a trial's swaps alone.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np

from sigdask.io.caches import cached_njit

LANES = 16
"""Trials whose counts are adjacent in a tree."""


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


@cached_njit()
def score_kendall(words, codes, starts, gold, n_gold, n_gold_ties, out):  # noqa: C901, PLR0912  # one walk
    """Write Kendall's tau-b.

    Predictions are visited in ascending order. A Fenwick tree over gold values counts the visited entries of B*, for
    `LANES` trials at a time. The others are those of A*: `passed` counts all.

    Parameters
    ----------
    words, codes, starts
        As above.
    gold : int64 array, shape (2 * n_items,)
        For each entry, the number of smaller distinct gold values.
    n_gold : int
        The number of distinct gold values.
    n_gold_ties : int
        Pairs of items with equal gold values.
    out : float64 array, shape (2, n_trials)
        Written; 0 where tau-b is 0/0.
    """
    n_items, (_, n_trials) = codes.shape[0] // 2, out.shape
    tree, passed = np.empty((n_gold + 1, LANES), np.int32), np.empty(n_gold + 1, np.int32)
    largest = 1
    for g in range(starts.shape[0] - 1):
        largest = max(largest, starts[g + 1] - starts[g])
    sides = np.zeros((largest, LANES), np.int32)  # of a group of equal predictions
    number, below = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    lower, up_to = np.empty(LANES, np.int32), np.empty(LANES, np.int32)
    balance, ties = np.empty((2, LANES), np.int64), np.empty((2, LANES), np.int64)
    n_pairs = n_items * (n_items - 1) // 2
    for block in range(0, n_trials, LANES):
        width = min(LANES, n_trials - block)
        tree[:] = 0
        passed[:] = 0
        below[:] = 0
        balance[:] = 0
        ties[:] = 0
        for g in range(starts.shape[0] - 1):
            start, end = starts[g], starts[g + 1]
            number[:] = 0
            for e in range(start, end):
                side = sides[e - start]
                _read_sides(words, codes[e], block, width, side)
                lower[:] = 0
                all_lower = _add_counts(tree, passed, gold[e], lower)
                up_to[:] = lower
                all_up_to = all_lower
                if n_gold_ties:
                    up_to[:] = 0
                    all_up_to = _add_counts(tree, passed, gold[e] + 1, up_to)
                every = np.int32(all_lower + all_up_to - start)
                for t in range(LANES):  # all ones where B* has the entry, else zero
                    mask = np.int32(-side[t])
                    second = np.int32(lower[t] + up_to[t] - below[t])
                    balance[1, t] += np.int32(second & mask)
                    balance[0, t] += np.int32(np.int32(every - second) & ~mask)
                    number[t] += side[t]
            for e in range(start, end):
                side = sides[e - start]
                k = gold[e] + 1
                while k <= n_gold:
                    passed[k] += 1
                    for t in range(LANES):
                        tree[k, t] += side[t]
                    k += k & -k
            for t in range(LANES):
                below[t] += number[t]
            if end - start > 1:
                for t in range(LANES):
                    n_first = end - start - number[t]
                    ties[0, t] += n_first * (n_first - 1) >> 1
                    ties[1, t] += np.int64(number[t]) * (number[t] - 1) >> 1
        for s in range(2):
            for t in range(width):
                unequal = math.sqrt(n_pairs - ties[s, t]) * math.sqrt(n_pairs - n_gold_ties)
                out[s, block + t] = balance[s, t] / unequal if unequal else 0.0


@cached_njit()
def _read_sides(words, code, block, width, side):
    """Write to which system each trial of a block assigns an entry: 0 for A*, 1 for B*."""
    word, shift, flip = code >> 6, np.uint32(code >> 1 & 31), np.uint32(code & 1)
    for t in range(width):
        side[t] = (words[word, block + t] >> shift & np.uint32(1)) ^ flip


@cached_njit()
def _add_counts(tree, passed, k, counts):
    """Add the tree's counts of the k lowest gold values to `counts`; return the same sum over `passed`."""
    total = 0
    while k > 0:
        total += passed[k]
        for t in range(LANES):
            counts[t] += tree[k, t]
        k &= k - 1
    return total
