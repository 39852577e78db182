"""The addressed random stream, scheme 1: which units are swapped in which trial.

A swap bit is a function of seed, test set, run, trial and unit. It is computed from these, not drawn in turn. So every
task is seeded by its own counters, and partition, order, restarts and number of workers cannot change a count. Only
this module knows the layout, which is fixed as `SCHEME`.

Philox4x32-10 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"):

- key: NumPy's `SeedSequence` over the seed and the SHA-256 of the test set's name and unit ids
- counter word 0: low 32 bits of the trial; word 1: high 16 bits of the trial, 8 bits run, 8 bits purpose; word 2:
  column of 128 units; word 3: 0
- unit u: bit u mod 32 of output word (u mod 128) // 32 in column u // 128

Other purposes use the words as follows:

- Permuting systems needs several words per unit: word 2 is the unit, and word 3 the number of the call.
- A resample draws as many units as there are, with replacement. Draw s of resample t is output word s mod 4 of the call
  at (trial t, purpose 3, word 2 = s // 4, word 3 = 0). It takes the unit at place floor(word * n_units / 2**32) in
  canonical order. The probability of a place differs from 1 / n_units by less than the share n_units / 2**32 of it:
  less than 1 in 4,000 for a million units, which changes no interval.
- Permuting labels needs about one word per item: word 2 is the number of the call, and word 3 is 0. A trial's words,
  the four of each call in turn, are the draws of a Fisher-Yates shuffle of the items in canonical order
  (`kernels.labels`).
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Bools, Integers
from sigdask.counts.texts import Texts, canonicalize
from sigdask.errors import InputError
from sigdask.io.caches import cached_njit

SCHEME = 1
SWAP, RELABEL, PERMUTE, BOOTSTRAP, SAMPLE, RESAMPLE = range(6)
"""Purposes of a stream: 0 swap, 1 relabel, 2 permute, 3 bootstrap, 4 sample, 5 samples of any size and their swaps."""

BLOCK = 4096
"""Consecutive trials of one stored tally."""

COLUMN = 128
"""Units that one call of the generator serves."""


SLOTS, CALLS = 4, 128
"""Words that one call draws, and calls made at a time."""

Key = tuple[int, int]


def compute_stream_key(seed: int, name: str, units: Sequence[str] | int) -> Key:
    """Return the generator's key for one test set.

    Parameters
    ----------
    seed : int
        Not negative.
    name : str
        The test set's name, empty unless given.
    units : sequence of str, or int
        Unit ids in canonical order (NFC, UTF-8, sorted by bytes), or the number of units if they have no ids.

    Examples
    --------
    >>> compute_stream_key(0, "", 86) == compute_stream_key(0, "", 86)
    True
    """
    return compute_stream_keys([(seed, name)], units)[0]


def compute_stream_keys(seeds_and_names: Iterable[tuple[int, str]], units: Sequence[str] | int) -> list[Key]:
    """Return the keys of the same units for several seeds and names; the units' bytes are made once."""
    digests = []
    for seed, name in seeds_and_names:
        if seed < 0:
            raise InputError(f"seed = {seed}: must not be negative")
        digests.append((seed, hashlib.sha256(_prefix_length(canonicalize(name)))))
    if isinstance(units, int):
        parts: Iterable[bytes] = map(_prefix_length, (b"positions", units.to_bytes(8, "little")))
    else:
        parts = itertools.chain([_prefix_length(b"ids")], Texts.from_values(units).canonical.iter_framed())
    for part in parts:
        for _, digest in digests:
            digest.update(part)
    keys = []
    for seed, digest in digests:
        entropy = np.random.SeedSequence([seed, *struct.unpack(">8I", digest.digest())])
        low, high = entropy.generate_state(2, np.uint32)
        keys.append((int(low), int(high)))
    return keys


def _prefix_length(part: bytes) -> bytes:
    return len(part).to_bytes(8, "little") + part


def draw_swap_bits(key: Key, *, run: int, first: int, n_trials: int, n_units: int, purpose: int = SWAP) -> Bools:
    """Return which units each trial of a range swaps, as a matrix of booleans.

    The kernels never make this matrix; it serves black-box metrics, samples of other sizes and tests.

    Returns
    -------
    bool array, shape (n_trials, n_units)
        True where the unit's outputs are swapped.
    """
    words = np.empty((4, n_trials), np.uint32)
    columns = []
    for column in range(-(-n_units // COLUMN)):
        fill_swap_words(key, run, first, column, words, purpose)
        columns.append(np.array(words.T, "<u4", order="C").view(np.uint8))  # a copy, of one trial too
    swap_bytes = np.concatenate([np.empty((n_trials, 0), np.uint8), *columns], axis=1)
    return np.unpackbits(swap_bytes, axis=1, count=n_units, bitorder="little").view(np.bool_)


def fill_swap_words(
    key: Key, run: int, first: int, column: int, words: NDArray[np.uint32], purpose: int = SWAP
) -> None:
    """Fill `words`, shape (4, n_trials), with the swap bits of one column of 128 units."""
    k0, k1, c1, c2 = map(np.uint32, (*key, run << 16 | purpose << 24, column))
    philox(k0, k1, c1, c2, first, words)


def get_run_word(run: int, purpose: int) -> np.uint32:
    """Return the generator's counter word 1, which holds run and purpose."""
    return np.uint32(run << 16 | purpose << 24)


def fill_counting_words(first: int, words: NDArray[np.uint32]) -> None:
    """Fill `words`, shape (4, n_trials), with trial numbers, so that trial t swaps the units whose bits are set in t.

    The stream of full enumeration: trials 0 to 2**k - 1 are all arrangements of k <= 32 units.
    """
    words[0] = np.arange(first, first + words.shape[1], dtype=np.uint32)
    words[1:] = 0


def draw_sample_ranks(
    key: Key, *, run: int, first: int, n_trials: int, n_units: int, purpose: int = SAMPLE
) -> NDArray[np.uint32]:
    """Return a random number for each unit and trial; the units with the smallest ones are the sample.

    Unit u is output word u mod 4 of column u // 4, which is counter word 2.

    Returns
    -------
    uint32 array, shape (n_trials, n_units)
    """
    return _draw_words(key, get_run_word(run, purpose), first, n_trials, n_units)


def _draw_words(key: Key, run_word: np.uint32, first: int, n_trials: int, n: int) -> NDArray[np.uint32]:
    """Return n words for each trial, shape (n_trials, n): word k is output word k mod 4 of column k // 4."""
    words = np.empty((SLOTS, n_trials), np.uint32)
    drawn = np.empty((n_trials, -(-n // SLOTS) * SLOTS), np.uint32)
    for column in range(drawn.shape[1] // SLOTS):
        philox(np.uint32(key[0]), np.uint32(key[1]), run_word, np.uint32(column), first, words)
        drawn[:, SLOTS * column : SLOTS * (column + 1)] = words.T
    return drawn[:, :n]


def draw_units(key: Key, *, run: int, first: int, n_trials: int, n_units: int) -> Integers:
    """Return the units that each resample of a range draws, shape (n_trials, n_units).

    It serves black-box metrics and tests; sums are made of `draw_kind_counts`.
    """
    words = _draw_words(key, get_run_word(run, BOOTSTRAP), first, n_trials, n_units)
    return (words.astype(np.uint64) * np.uint64(n_units) >> np.uint64(32)).astype(np.int64)


def draw_kind_counts(key: Key, run: int, first: int, kinds: NDArray[Any], out: NDArray[Any]) -> None:
    """Fill `out`, floats of shape (n_trials, n_kinds), with how often resamples draw each kind of unit.

    Parameters
    ----------
    key, run, first
        Key of the stream, run, and first resample.
    kinds : int array, shape (n_units,)
        The kind of each unit; their places, where each is one of its own.
    out : float array, shape (n_trials, n_kinds)
        Filled.
    """
    out[:] = 0
    words = np.empty((SLOTS, CALLS), np.uint32)
    _count_draws(np.uint32(key[0]), np.uint32(key[1]), get_run_word(run, BOOTSTRAP), first, kinds, words, out)


@cached_njit()
def _count_draws(k0, k1, c1, first, kinds, words, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Add how often each resample draws each kind of unit to `out`, in a loop that LLVM vectorises."""
    n_trials, n = out.shape[0], kinds.shape[0]
    for t in range(n_trials):
        trial = np.uint64(first) + np.uint64(t)
        row = out[t]
        for start in range(0, n, SLOTS * CALLS):
            for c in range(CALLS):
                x0, x1, x2, x3 = call_philox(k0, k1, trial, c1, np.uint32(start // SLOTS + c), np.uint32(0))
                words[0, c] = x0
                words[1, c] = x1
                words[2, c] = x2
                words[3, c] = x3
            n_left = min(n - start, SLOTS * CALLS)
            for j in range(SLOTS):
                for c in range((n_left - j + SLOTS - 1) // SLOTS):
                    row[kinds[np.int64(np.uint64(words[j, c]) * np.uint64(n) >> np.uint64(32))]] += 1


@cached_njit()
def philox(k0, k1, c1, c2, first, words):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Fill `words`, shape (4, n_trials), with Philox4x32-10 at counters (first + t, c1, c2, 0).

    A plain loop over trials, which LLVM turns into vector code; the high bits of the trial number
    go into c1.
    """
    for t in range(words.shape[1]):
        trial = np.uint64(first) + np.uint64(t)
        x0, x1, x2, x3 = call_philox(k0, k1, trial, c1, c2, np.uint32(0))
        words[0, t] = x0
        words[1, t] = x1
        words[2, t] = x2
        words[3, t] = x3


@cached_njit(inline="always")
def call_philox(k0, k1, trial, c1, c2, c3):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Return the four words of Philox4x32-10 at the counter (trial, c1, c2, c3)."""
    x0 = np.uint32(trial)
    x1 = c1 | np.uint32(trial >> np.uint64(32))
    x2 = c2
    x3 = c3
    a = k0
    b = k1
    for _ in range(10):
        p = np.uint64(x0) * np.uint64(0xD2511F53)
        q = np.uint64(x2) * np.uint64(0xCD9E8D57)
        x0 = np.uint32(q >> np.uint64(32)) ^ x1 ^ a
        x1 = np.uint32(q)
        x2 = np.uint32(p >> np.uint64(32)) ^ x3 ^ b
        x3 = np.uint32(p)
        a = np.uint32(a + np.uint32(0x9E3779B9))
        b = np.uint32(b + np.uint32(0xBB67AE85))
    return x0, x1, x2, x3
