"""Draw samples of units from the random stream: unit k of sample s is the same however work is divided into tasks.

Purpose 5 of the stream (`stream.swaps`): in run 0 position k of sample s is word k mod 4 of the call at
(s, k div 4); in run 1 are the swaps by which samples are judged, which all samples share.
"""
# ruff: noqa: ANN001, ANN202
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit
from sigdask.randomization.stream.swaps import COLUMN, RESAMPLE, Key, call_philox, draw_swap_bits

UNITS_RUN, SWAPS_RUN = 0, 1

MOST_SWAPS, KEPT, FEWEST = 2**19, 256, 64
"""Numbers of 0 and 1 in a matrix of swaps; swaps of it from which it is kept, and at least."""


def draw_samples(key: Key, weights: NDArray[np.float64], *, first: int, n_samples: int, size: int) -> NDArray[np.int64]:
    """Draw samples of units with replacement.

    A smaller sample is the beginning of a larger one, and weights that lean to later units draw later ones.

    Parameters
    ----------
    key : tuple of int
        Of the stream.
    weights : array, shape (n_units,)
        Probabilities.
    first, n_samples : int
        The range of samples.
    size : int
        Units of each.

    Returns
    -------
    int64 array, shape (n_samples, size)
        Places of units.
    """
    sums = np.cumsum(weights)
    borders = np.round(sums / sums[-1] * 2.0**32).astype(np.uint64)
    units = np.empty((n_samples, size), np.int64)
    run = np.uint32(UNITS_RUN << 16 | RESAMPLE << 24)
    _fill_samples(np.uint32(key[0]), np.uint32(key[1]), run, borders, first, units)
    return units


@cached_njit()
def _fill_samples(k0, k1, c1, borders, first, units):
    """Fill `units` with random draws, by looking up random words in the cumulative weights."""
    n_units = borders.shape[0]
    for s in range(units.shape[0]):
        trial = np.uint64(first) + np.uint64(s)
        for start in range(0, units.shape[1], 4):
            w0, w1, w2, w3 = call_philox(k0, k1, trial, c1, np.uint32(start // 4), np.uint32(0))
            words = (np.uint64(w0), np.uint64(w1), np.uint64(w2), np.uint64(w3))
            for q in range(4):
                if start + q < units.shape[1]:
                    word = words[q]
                    low, high = 0, n_units - 1
                    while low < high:  # the first unit whose border is above the word
                        middle = (low + high) // 2
                        if borders[middle] > word:
                            high = middle
                        else:
                            low = middle + 1
                    units[s, start + q] = low


def iter_swaps(key: Key, *, first: int, stop: int, size: int) -> Iterator[NDArray[np.float32]]:
    """Yield which units of a sample each trial swaps, as 0 and 1, in batches of shape (n_some, size)."""
    columns = -(-size // COLUMN)
    step = max(MOST_SWAPS // (columns * COLUMN) // FEWEST * FEWEST, FEWEST)
    for start in range(first // step * step, stop, step):
        low, high = max(first, start), min(stop, start + step)
        if step >= KEPT:
            yield _draw_shared_swaps(key, start, step, columns * COLUMN)[low - start : high - start, :size]
        else:
            yield _draw_swaps(key, low, high - low, size)


def _draw_swaps(key: Key, first: int, n_trials: int, size: int) -> NDArray[np.float32]:
    bits = draw_swap_bits(key, run=SWAPS_RUN, first=first, n_trials=n_trials, n_units=size, purpose=RESAMPLE)
    return bits.astype(np.float32)


@lru_cache(maxsize=48)
def _draw_shared_swaps(key: Key, first: int, n_trials: int, size: int) -> NDArray[np.float32]:
    """Return which units each trial swaps, as 0 and 1; cached, since the samples of many pairs share the swaps."""
    return _draw_swaps(key, first, n_trials, size)
