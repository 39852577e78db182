"""Kernels that compute differences in precision of two rankings after swaps of ranks, trial by trial.

A candidate that is exchanged takes its rank in the other ranking, so at each rank of a shuffled ranking stand
none, one or two candidates. What differs from the observed lists are sums over ranks, so no list is sorted again.
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.counts.lattice import TIE
from sigdask.io.compiled_cache import cached_njit


@cached_njit()
def write_precisions(swapped, orders, gold, pairs, cutoffs, out, tie):
    """Write the difference in n-best precision of each pair and n, for each trial, into `out`.

    Parameters
    ----------
    swapped : bool array, shape (n_trials, n_candidates)
    orders : int32 array, shape (n_measures, n_candidates)
        The candidate at each rank.
    gold : uint8 array, shape (n_candidates,)
    pairs : int64 array, shape (n_pairs, 2)
    cutoffs : int64 array, shape (n_measures, n_cutoffs)
        Candidates of each list; ascending.
    out, tie : float64 array, shape (n_pairs * n_cutoffs, n_trials)
        Differences, and how far they may miss a tie.
    """
    n_measures, n_cutoffs = cutoffs.shape
    true = np.zeros((n_measures, n_cutoffs), np.int64)
    for m in range(n_measures):
        for c in range(n_cutoffs):
            for r in range(cutoffs[m, c]):
                true[m, c] += gold[orders[m, r]]
    moved = np.empty((n_measures, n_cutoffs), np.int64)
    moved_true = np.empty((n_measures, n_cutoffs), np.int64)
    for t in range(swapped.shape[0]):
        for m in range(n_measures):
            size, size_true, r = np.int64(0), np.int64(0), 0
            for c in range(n_cutoffs):
                while r < cutoffs[m, c]:
                    candidate = orders[m, r]
                    bit = np.int64(swapped[t, candidate])
                    size += bit
                    size_true += bit & np.int64(gold[candidate])
                    r += 1
                moved[m, c], moved_true[m, c] = size, size_true
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            for c in range(n_cutoffs):
                shift, shift_true = moved[b, c] - moved[a, c], moved_true[b, c] - moved_true[a, c]
                size_a, size_b = cutoffs[a, c] + shift, cutoffs[b, c] - shift
                x = (true[a, c] + shift_true) / size_a if size_a > 0 else 0.0
                y = (true[b, c] - shift_true) / size_b if size_b > 0 else 0.0
                out[p * n_cutoffs + c, t] = x - y
                tie[p * n_cutoffs + c, t] = 2.0 * TIE * (x + y)


@cached_njit()
def write_average_precisions(swapped, orders, gold, pairs, out, tie):  # noqa: C901  # one loop a level
    """Write the difference in average precision of each pair, for each trial, into `out`.

    Two candidates at one rank are tied, and both count there.

    Parameters
    ----------
    swapped, orders, gold, pairs
        As in `write_precisions`.
    out, tie : float64 array, shape (n_pairs, n_trials)
        Likewise.
    """
    n_measures, n = orders.shape
    n_true = max(gold.sum(), 1)
    true = np.zeros((n_measures, n), np.int32)
    for m in range(n_measures):
        size_true = np.int32(0)
        for r in range(n):
            size_true += np.int32(gold[orders[m, r]])
            true[m, r] = size_true
    moved = np.empty((n_measures, n), np.int32)
    moved_true = np.empty((n_measures, n), np.int32)
    for t in range(swapped.shape[0]):
        for m in range(n_measures):
            size, size_true = np.int32(0), np.int32(0)
            for r in range(n):
                candidate = orders[m, r]
                bit = np.int32(swapped[t, candidate])
                size += bit
                size_true += bit & np.int32(gold[candidate])
                moved[m, r], moved_true[m, r] = size, size_true
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            x, y = 0.0, 0.0
            before_a, before_b = np.int32(0), np.int32(0)
            for r in range(n):
                shift_true = moved_true[b, r] - moved_true[a, r]
                now_a, now_b = true[a, r] + shift_true, true[b, r] - shift_true
                if now_a == before_a and now_b == before_b:
                    continue
                shift = moved[b, r] - moved[a, r]
                if now_a != before_a:
                    x += (now_a - before_a) * (now_a / (r + 1 + shift))
                if now_b != before_b:
                    y += (now_b - before_b) * (now_b / (r + 1 - shift))
                before_a, before_b = now_a, now_b
            out[p, t] = (x - y) / n_true
            tie[p, t] = 2.0 * TIE * (x + y) / n_true
