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
