"""Count agreements of labellings with a labelling that is permuted over the items (purpose 2 of the stream).

The items stand in canonical order, those of a stratum together. In trial t a Fisher-Yates shuffle of each stratum
in turn, from its last item down, takes its draws from the words at counters (t, call), in turn; each draw is unbiased
(Lemire 2019), a rejected word is followed by the next one. So a permutation is addressed as a swap is: a pure function
of seed, test set, run and trial.
"""
# ruff: noqa: ANN001, ANN201
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sigdask.io.compiled_cache import cached_njit
from sigdask.randomization.stream.swaps import call_philox


@cached_njit()
def count_agreements(key, run_word, first, starts, meant, given, part, out):
    """Count, for each trial, system and part of the labels, the items on which the system agrees with permuted labels.

    Parameters
    ----------
    key : uint32 array, shape (2,)
        Of the stream.
    run_word : uint32
        Run and purpose, from `stream.swaps.get_permute_word`.
    first : int
        The first trial.
    starts : int64 array, shape (n_strata + 1,)
        Where the items of each stratum begin, and their end.
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
        permuted[:] = meant
        permute(key, np.uint64(first + t), run_word, starts, words, permuted)
        out[t] = 0
        for s in range(given.shape[0]):
            for i in range(n_items):
                label = permuted[i]
                if given[s, i] == label and part[label] >= 0:
                    out[t, s, part[label]] += 1


@cached_njit()
def permute(key, trial, run_word, starts, words, permuted):
    """Permute the labels of the items within each stratum at random, in place.

    The calls that suffice without a rejection are made in one loop, which vectorises; `words`, shape (4, n_calls), is
    room for them.
    """
    for c in range(words.shape[1]):
        words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
            key[0], key[1], trial, run_word, np.uint32(c), np.uint32(0)
        )
    used, call = 0, words.shape[1]
    for s in range(starts.shape[0] - 1):
        for i in range(starts[s + 1] - 1, starts[s], -1):
            span = np.uint64(i + 1 - starts[s])
            product = np.uint64(0)
            while True:
                if used == 4 * words.shape[1]:  # further calls take the place of the last
                    used -= 4
                    c = words.shape[1] - 1
                    words[0, c], words[1, c], words[2, c], words[3, c] = call_philox(
                        key[0], key[1], trial, run_word, np.uint32(call), np.uint32(0)
                    )
                    call += 1
                product = np.uint64(words[used & 3, used >> 2]) * span
                used += 1
                low = product & np.uint64(0xFFFFFFFF)
                if low >= span or low >= (np.uint64(1) << np.uint64(32)) % span:
                    break
            j = starts[s] + np.int64(product >> np.uint64(32))
            permuted[i], permuted[j] = permuted[j], permuted[i]
