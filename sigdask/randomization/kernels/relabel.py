"""Sums of contributions after the systems' labels are permuted within each unit (purpose 1 of the stream).

A Fisher-Yates shuffle of the systems of unit u in trial t takes its draws from the words at
counters (t, u, call), in turn; each draw is unbiased (Lemire 2019), a rejected word is followed by
the next one. So a relabelling is addressed as a swap is.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.compiled_cache import cached_njit
from sigdask.randomization.stream.swaps import call_philox


@cached_njit()
def sum_relabelled(key, run_word, first, addresses, values, fixed, enumerated, out):
    """Write, for each trial, the sums of contributions per label after relabelling the systems within each unit.

    Parameters
    ----------
    key : uint32 array, shape (2,)
        Of the stream.
    run_word : uint32
        Run and purpose, from `stream.swaps.get_relabel_word`.
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
    labels = np.empty(n_systems, np.int32)
    words = allocate_words(n_systems)
    for t in range(out.shape[0]):
        out[t] = fixed
        trial = np.uint64(first + t)
        rest = trial
        for u in range(addresses.shape[0]):
            if enumerated:
                rest = _relabel_by_digits(rest, labels)
            else:
                _relabel_by_draws(key, trial, run_word, np.uint32(addresses[u]), words, labels)
            for f in range(n_fields):
                for s in range(n_systems):
                    out[t, s, f] += values[u, labels[s], f]


@cached_njit()
def allocate_words(n_systems):
    """Return memory for the random words that relabel one unit if no draw is rejected, at least four words."""
    return np.empty((4, max(n_systems + 2, 4) // 4), np.uint32)


@cached_njit()
def _relabel_by_digits(rest, labels):
    """Set `labels` to the permutation encoded by the lowest digits of `rest`; return `rest` without these digits.

    The digit for step i of the Fisher-Yates shuffle has base i + 1.
    """
    for s in range(labels.shape[0]):
        labels[s] = s
    for i in range(labels.shape[0] - 1, 0, -1):
        span = np.uint64(i + 1)
        j = np.int64(rest % span)
        rest //= span
        labels[i], labels[j] = labels[j], labels[i]
    return rest


@cached_njit()
def _relabel_by_draws(key, trial, run_word, unit, words, labels):
    """Set `labels` to a random permutation, by unbiased draws from the words of one unit and trial.

    The calls that suffice without a rejection are made in one loop, which vectorises. The words of further calls
    overwrite those of the last call.
    """
    for s in range(labels.shape[0]):
        labels[s] = s
    for c in range(words.shape[1]):
        words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
            key[0], key[1], trial, run_word, unit, np.uint32(c)
        )
    used, call = 0, words.shape[1]
    for i in range(labels.shape[0] - 1, 0, -1):
        span = np.uint64(i + 1)
        product = np.uint64(0)
        while True:
            if used == 4 * words.shape[1]:
                used -= 4
                c = words.shape[1] - 1
                words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
                    key[0], key[1], trial, run_word, unit, np.uint32(call)
                )
                call += 1
            product = np.uint64(words[used & 3, used >> 2]) * span
            used += 1
            low = product & np.uint64(0xFFFFFFFF)
            if low >= span or low >= (np.uint64(1) << np.uint64(32)) % span:  # the remainder is slow and seldom needed
                break
        j = np.int64(product >> np.uint64(32))
        labels[i], labels[j] = labels[j], labels[i]
