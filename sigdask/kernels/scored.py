"""Exceedances of scores that are no single ratio, fused: score both pseudo-systems and compare.

One kernel for macro averages, BLEU and chrF, so that a trial of a pair costs nanoseconds and no
array of pairs x trials is made.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sigdask.kernels.exceedances import TIE
from sigdask.metrics.forms import Bleu, ChrF, Form, Ratios

MACRO, BLEU, CHRF = 0, 1, 2
_NONE = np.zeros((1, 1))
Parameters = tuple[int, NDArray[np.float64], NDArray[np.float64], float]


def parameters(form: Form) -> Parameters | None:
    """Return what the kernel takes for a form: kind, two arrays of weights, a number; None for others."""
    if isinstance(form, Ratios):
        return MACRO, np.array(form.numerators, np.float64), np.array(form.denominators, np.float64), form.zero_division
    if isinstance(form, Bleu):
        return BLEU, _NONE, _NONE, 0.0
    if isinstance(form, ChrF):
        return CHRF, _NONE, _NONE, form.beta**2
    return None


@njit(nogil=True, cache=True, error_model="numpy")
def count_scored(kind, above, below, number, moved, totals, pairs, observed, counts, largest):
    """Count pairs of one fused score.

    Parameters
    ----------
    kind, above, below, number
        From `parameters`.
    moved : float64 array, shape (n_systems, n_trials, n_fields)
        Sums over swapped units, relative to the first system.
    totals : float64 array, shape (n_systems, n_fields)
    pairs : int64 array, shape (n_pairs, 2)
    observed : float64 array, shape (n_pairs,)
    counts, largest
        As in `count_linear`.
    """
    n_trials, n_fields = moved.shape[1], moved.shape[2]
    first, second = np.empty(n_fields), np.empty(n_fields)
    for p in range(pairs.shape[0]):
        i, j = pairs[p, 0], pairs[p, 1]
        t = observed[p]
        size = abs(t)
        greater, less, either = 0, 0, 0
        for k in range(n_trials):
            for f in range(n_fields):
                shift = moved[j, k, f] - moved[i, k, f]
                first[f] = totals[i, f] + shift
                second[f] = totals[j, f] - shift
            a = _score(kind, above, below, number, first)
            b = _score(kind, above, below, number, second)
            difference = a - b
            tie = TIE * (abs(a) + abs(b))
            greater += difference >= t - tie
            less += difference <= t + tie
            either += abs(difference) >= size - tie
            if largest.size:
                largest[k] = max(largest[k], abs(difference))
        counts[p, 0] += greater
        counts[p, 1] += less
        counts[p, 2] += either


@njit(nogil=True, cache=True, error_model="numpy")
def _score(kind, above, below, number, sums):
    if kind == MACRO:
        return _macro(above, below, number, sums)
    if kind == BLEU:
        return _bleu(sums)
    return _chrf(number, sums)


@njit(nogil=True, cache=True, error_model="numpy")
def _macro(above, below, zero_division, sums):
    score = 0.0
    for row in range(above.shape[0]):
        n, d = 0.0, 0.0
        for f in range(sums.shape[0]):
            n += above[row, f] * sums[f]
            d += below[row, f] * sums[f]
        score += zero_division if d == 0.0 else n / d
    return score / above.shape[0]


@njit(nogil=True, cache=True, error_model="numpy")
def _bleu(sums):
    if sums[2] == 0.0:
        return 0.0
    product, missing = 1.0, 1.0
    for order in range(4):
        total = sums[6 + order]
        if total == 0.0:
            return 0.0
        correct = sums[2 + order]
        if correct == 0.0:
            missing *= 0.5
            correct = missing
        product *= correct / total
    penalty = math.exp(1.0 - sums[1] / sums[0]) if sums[0] < sums[1] else 1.0
    return 100.0 * penalty * math.sqrt(math.sqrt(product))


@njit(nogil=True, cache=True, error_model="numpy")
def _chrf(factor, sums):
    precision, recall, orders = 0.0, 0.0, 0
    for order in range(sums.shape[0] // 3):
        given, right, both = sums[3 * order], sums[3 * order + 1], sums[3 * order + 2]
        if given > 0.0 and right > 0.0:
            precision += both / given
            recall += both / right
            orders += 1
    if precision == 0.0 and recall == 0.0:
        return 0.0
    precision /= orders
    recall /= orders
    return 100.0 * (1.0 + factor) * precision * recall / (factor * precision + recall)
