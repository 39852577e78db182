"""Kernels that permute labels over items (purpose 2 of the stream), or systems within units (purpose 1).

Labels: the agreements of labellings with a permuted labelling are counted. Items stand in canonical order, with the
items of a stratum together. In trial t, each stratum is shuffled in turn (Fisher-Yates, from its last item down), with
the words at counters (t, call).

Systems: contributions are summed after the systems' labels are permuted within each unit. In trial t, the systems of
unit u are shuffled in the same way, with the words at counters (t, u, call).

Each draw is unbiased (Lemire 2019): a rejected word is followed by the next one. So a permutation depends only on seed,
test set, run and trial (and unit), as a swap does.
"""
# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.caches import cached_njit
from sigdask.randomization.stream import call_philox


@cached_njit()
def count_agreements(key, run_word, first, starts, meant, given, part, out):
    """Count, for each trial, system and part of the labels, the items on which the system agrees with permuted labels.

    Parameters
    ----------
    key : uint32 array, shape (2,)
        Key of the stream.
    run_word : uint32
        Run and purpose, from `stream.get_run_word`.
    first : int
        The first trial.
    starts : int64 array, shape (n_strata + 1,)
        First item of each stratum, and the number of items.
    meant : int32 array, shape (n_items,)
        Labels that are permuted within each stratum.
    given : int32 array, shape (n_systems, n_items)
        Labels that stay.
    part : int32 array, shape (n_labels,)
        The part that each label is in, -1 where its agreements count for nothing.
    out : int64 array, shape (n_trials, n_systems, n_parts)
    """
    n_items = meant.shape[0]
    words = np.empty((4, n_items // 4 + 1), np.uint32)
    permuted = np.empty(n_items, np.int32)
    for t in range(out.shape[0]):
        for i in range(n_items):  # to copy a whole array would take seconds more to compile
            permuted[i] = meant[i]
        permute(key, np.uint64(first + t), run_word, -1, starts, words, permuted)
        out[t] = 0
        for s in range(given.shape[0]):
            for i in range(n_items):
                label = permuted[i]
                if given[s, i] == label and part[label] >= 0:
                    out[t, s, part[label]] += 1


@cached_njit()
def permute(key, trial, run_word, unit, starts, words, permuted):
    """Permute the labels of the items within each stratum at random, in place, by unbiased draws.

    The words are those of the counters (trial, call), or (trial, unit, call) if `unit` is not -1. The calls that
    suffice without a rejection are made in one loop, which vectorises. `words`, shape (4, n_calls), is its memory. The
    words of further calls overwrite those of the last call.
    """
    for c in range(words.shape[1]):
        words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
            key[0], key[1], trial, run_word, np.uint32(c if unit < 0 else unit), np.uint32(0 if unit < 0 else c)
        )
    used, call = 0, words.shape[1]
    for s in range(starts.shape[0] - 1):
        block = permuted[starts[s] : starts[s + 1]]
        for i in range(block.shape[0] - 1, 0, -1):
            span = np.uint64(i + 1)
            product = np.uint64(0)
            while True:
                if used == 4 * words.shape[1]:
                    used -= 4
                    c = words.shape[1] - 1
                    words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
                        key[0], key[1], trial, run_word,
                        np.uint32(call if unit < 0 else unit), np.uint32(0 if unit < 0 else call),
                    )  # fmt: skip
                    call += 1
                product = np.uint64(words[used & 3, used >> 2]) * span
                used += 1
                low = product & np.uint64(0xFFFFFFFF)
                if low >= span or low >= (np.uint64(1) << np.uint64(32)) % span:  # the remainder is slow, seldom needed
                    break
            j = np.int64(product >> np.uint64(32))
            block[i], block[j] = block[j], block[i]


@cached_njit()
def sum_relabelled(key, run_word, first, addresses, values, fixed, enumerated, out):
    """Write, for each trial, the sums of contributions per label after relabelling the systems within each unit.

    Parameters
    ----------
    key : uint32 array, shape (2,)
        Key of the stream.
    run_word : uint32
        Run and purpose, from `stream.get_run_word`.
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
    words, starts = np.empty((4, max(n_systems + 2, 4) // 4), np.uint32), np.array([0, n_systems])
    for t in range(out.shape[0]):
        for s in range(n_systems):  # to copy a whole array would take seconds more to compile
            for f in range(n_fields):
                out[t, s, f] = fixed[s, f]
        trial = np.uint64(first + t)
        rest = trial
        for u in range(addresses.shape[0]):
            for s in range(n_systems):
                labels[s] = s
            if enumerated:
                rest = _relabel_by_digits(rest, labels)
            else:
                permute(key, trial, run_word, addresses[u], starts, words, labels)
            for f in range(n_fields):
                for s in range(n_systems):
                    out[t, s, f] += values[u, labels[s], f]


@cached_njit()
def _relabel_by_digits(rest, labels):
    """Permute sorted `labels` as the lowest digits of `rest` encode; return `rest` without these digits.

    The digit for step i of the Fisher-Yates shuffle has base i + 1.
    """
    for i in range(labels.shape[0] - 1, 0, -1):
        span = np.uint64(i + 1)
        j = np.int64(rest % span)
        rest //= span
        labels[i], labels[j] = labels[j], labels[i]
    return rest
