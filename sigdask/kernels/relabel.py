"""Sums after the systems were relabelled within each unit (purpose 1 of the stream).

A Fisher-Yates shuffle of the systems of unit u in trial t takes its draws from the words at
counters (t, u, call), in turn; each draw is unbiased (Lemire 2019), a rejected word is followed by
the next one. So a relabelling is addressed as a swap is.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
from numba import njit

from sigdask.shuffles import philox_call


@njit(nogil=True, cache=True)
def relabelled_sums(key, run_word, first, addresses, values, fixed, enumerated, out):
    """Write the sums of each pseudo-system.

    Parameters
    ----------
    key : uint32 array, shape (2,)
        Of the stream.
    run_word : uint32
        Run and purpose, `shuffles.relabel_word`.
    first : int
        The first trial.
    addresses : int64 array, shape (n_kept,)
    values : int64 array, shape (n_kept, n_systems, n_fields)
    fixed : int64 array, shape (n_systems, n_fields)
        Sums over the units in which all systems are equal.
    enumerated : bool
        Trial t is relabelling t of all: its draws are the digits of t.
    out : int64 array, shape (n_trials, n_systems, n_fields)
    """
    n_systems, n_fields = fixed.shape
    labels = np.empty(n_systems, np.int64)
    words = np.empty(4, np.uint32)
    for t in range(out.shape[0]):
        out[t] = fixed
        trial = np.uint64(first + t)
        rest = trial
        for u in range(addresses.shape[0]):
            if enumerated:
                rest = _digits(rest, labels)
            else:
                _draw(key, trial, run_word, np.uint32(addresses[u]), words, labels)
            for s in range(n_systems):
                for f in range(n_fields):
                    out[t, s, f] += values[u, labels[s], f]


@njit(nogil=True, cache=True)
def _digits(rest, labels):
    """Relabel by the lowest digits of `rest`, which has one of base i + 1 for each step; return what is left."""
    for s in range(labels.shape[0]):
        labels[s] = s
    for i in range(labels.shape[0] - 1, 0, -1):
        span = np.uint64(i + 1)
        j = np.int64(rest % span)
        rest //= span
        labels[i], labels[j] = labels[j], labels[i]
    return rest


@njit(nogil=True, cache=True)
def _draw(key, trial, run_word, unit, words, labels):
    """Relabel by unbiased draws from the words of one unit and trial."""
    for s in range(labels.shape[0]):
        labels[s] = s
    call, left = np.uint32(0), 0
    for i in range(labels.shape[0] - 1, 0, -1):
        span = np.uint64(i + 1)
        threshold = (np.uint64(1) << np.uint64(32)) % span
        product = np.uint64(0)
        while True:
            if left == 0:
                x0, x1, x2, x3 = philox_call(key[0], key[1], trial, run_word, unit, call)
                words[0], words[1], words[2], words[3] = x0, x1, x2, x3
                call += np.uint32(1)
                left = 4
            product = np.uint64(words[4 - left]) * span
            left -= 1
            if (product & np.uint64(0xFFFFFFFF)) >= threshold:
                break
        j = np.int64(product >> np.uint64(32))
        labels[i], labels[j] = labels[j], labels[i]
