"""Count exceedances of scores that are not a single ratio: one loop scores both systems after swaps and compares.

One kernel for macro averages, BLEU and chrF, so that a trial of a pair costs nanoseconds and no
array of pairs x trials is made.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.lattice import TIE
from sigdask.io.compiled_cache import cached_njit
from sigdask.metrics.forms import Bleu, ChrF, Form, Ratios
from sigdask.randomization.kernels.exceedances import compare_tails

MACRO, BLEU, CHRF = 0, 1, 2
TILE = 256
"""Trials scored at a time, so that their sums stay in the L1 and L2 cache."""

_NO_WEIGHTS = np.zeros((1, 1))
Parameters = tuple[int, NDArray[np.float64], NDArray[np.float64], float]


def get_parameters(form: Form) -> Parameters | None:
    """Return a form's kernel parameters: kind, two arrays of weights, a number; None for other forms."""
    if isinstance(form, Ratios):
        return MACRO, np.array(form.numerators, np.float64), np.array(form.denominators, np.float64), form.zero_division
    if isinstance(form, Bleu):
        return BLEU, _NO_WEIGHTS, _NO_WEIGHTS, 0.0
    if isinstance(form, ChrF):
        return CHRF, _NO_WEIGHTS, _NO_WEIGHTS, form.beta**2
    return None


@cached_njit(error_model="numpy")
def count_scored(kind, above, below, number, moved, totals, pairs, observed, counts):
    """Add each pair's exceedances to `counts`, for macro averages, BLEU or chrF, which are scored in the same loop.

    Scores are made tile by tile, field by field in plain loops over trials, which LLVM turns into
    vector code.

    Parameters
    ----------
    kind, above, below, number
        From `get_parameters`.
    moved : float64 array, shape (n_systems, n_fields, n_trials)
        Sums over swapped units, relative to the first system.
    totals : float64 array, shape (n_systems, n_fields)
    pairs : int64 array, shape (n_pairs, 2)
    observed : float64 array, shape (n_pairs,)
    counts
        As in `count_linear`.
    """
    n_trials = moved.shape[2]
    scores = np.empty((2, TILE))
    room = np.empty((2, TILE))
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        t = observed[p]
        size = abs(t)
        greater, less, either = np.int32(0), np.int32(0), np.int32(0)
        for start in range(0, n_trials, TILE):
            end = min(start + TILE, n_trials)
            x, y = moved[i, :, start:end], moved[j, :, start:end]
            a, b = scores[0, : end - start], scores[1, : end - start]
            score_tile(kind, above, below, number, totals[i], x, y, a, room)
            score_tile(kind, above, below, number, totals[j], y, x, b, room)
            for k in range(end - start):
                difference = a[k] - b[k]
                tie = TIE * (abs(a[k]) + abs(b[k]))
                high, low, far = compare_tails(np.float64, difference, t, size, tie)
                greater += np.int32(high)
                less += np.int32(low)
                either += np.int32(far)
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either


@cached_njit(error_model="numpy")
def score_tile(kind, above, below, number, total, x, y, out, room):
    """Write the score of each trial's sums, total + y - x of shape (n_fields, n_trials), to `out`."""
    if kind == MACRO:
        _score_macro(above, below, number, total, x, y, out, room)
    elif kind == BLEU:
        _score_bleu(total, x, y, out, room)
    else:
        _score_chrf(number, total, x, y, out, room)


@cached_njit(error_model="numpy")
def _score_macro(above, below, zero_division, total, x, y, out, room):
    n_trials = out.shape[0]
    out[:] = 0.0
    n, d = room[0], room[1]
    for row in range(above.shape[0]):
        n[:n_trials] = 0.0
        d[:n_trials] = 0.0
        for f in range(total.shape[0]):
            weight_above, weight_below = above[row, f], below[row, f]
            if weight_above == 0.0 and weight_below == 0.0:
                continue
            for k in range(n_trials):
                value = total[f] + (y[f, k] - x[f, k])
                n[k] += weight_above * value
                d[k] += weight_below * value
        for k in range(n_trials):
            undefined = d[k] == 0.0
            out[k] += (zero_division if undefined else n[k]) / (1.0 if undefined else d[k])
    for k in range(n_trials):
        out[k] /= above.shape[0]


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
