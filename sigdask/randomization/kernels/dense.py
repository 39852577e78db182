"""Sums over swapped units as a float32 matrix product: exact, and fastest if columns are many.

A product of integers is exact in whatever order it is summed while every sum stays below 2^24. Units
are taken `UNITS` at a time, each chunk's product is added to integers, so only a chunk's sums must.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.io.compiled_cache import cached_njit

UNITS = 512
"""Units of one chunk."""

EXACT = 2**24


def has_exact_sums(sizes: NDArray[Any]) -> bool:
    """Return whether float32 holds a column's sums over every chunk of units exactly, given the sizes of its values."""
    chunks = np.add.reduceat(sizes, np.arange(0, len(sizes), UNITS), dtype=np.int64)
    return int(chunks.max(initial=0)) < EXACT


def estimate_seconds(n_columns: int, n_units: int) -> float:
    """Return the estimated seconds that this machine takes to sum one trial by matrix products, from measured rates."""
    product_seconds, expansion_seconds, addition_seconds = _measure_rates()
    chunks = -(-n_units // UNITS)
    return n_columns * n_units * product_seconds + n_units * expansion_seconds + n_columns * chunks * addition_seconds


@lru_cache(maxsize=1)
def _measure_rates() -> tuple[float, float, float]:
    """Measure the seconds of a multiply-add, of a swap written as a float, and of an integer addition."""
    n_columns, n_units, n_trials = 64, 64, 2048
    values, swaps = np.ones((n_columns, n_units), np.float32), np.ones((n_units, n_trials), np.float32)
    products, sums = np.empty((n_columns, n_trials), np.float32), np.zeros((n_columns, n_trials), np.int32)
    words, positions = np.zeros((4, n_trials), np.uint32), np.arange(n_units)
    with limit_blas_threads():
        product = measure_fastest(np.matmul, values, swaps, products)
    expansion = measure_fastest(expand_swaps, words, positions, swaps)
    addition = measure_fastest(add_rounded, products, sums)
    return product / values.size / n_trials, expansion / swaps.size, addition / sums.size


def measure_fastest(call: Any, *arguments: Any) -> float:
    """Return the seconds that the fastest of several identical calls takes."""
    call(*arguments)
    times = []
    for _ in range(9):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


class _BlasLimit:
    """A limit of BLAS to one thread, in force while any thread of the process multiplies.

    Tasks already run in parallel threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limiter: Any = None
        self._controller: Any = None

    def enter(self) -> None:
        from threadpoolctl import ThreadpoolController

        with self._lock:
            if self._users == 0:
                self._controller = self._controller or ThreadpoolController().select(user_api="blas")
                self._limiter = self._controller.limit(limits=1)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                self._limiter.restore_original_limits()


_blas_limit = _BlasLimit()


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of the process is in this context."""
    _blas_limit.enter()
    try:
        yield
    finally:
        _blas_limit.leave()


@cached_njit()
def expand_swaps(words, positions, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write whether each trial swaps each of some units, as 1.0 or 0.0, to `out`, shape (n_units, n_trials)."""
    for k in range(positions.shape[0]):
        word = words[positions[k] // 32]
        shift = np.uint32(positions[k] % 32)
        row = out[k]
        for t in range(row.shape[0]):
            row[t] = np.float32((word[t] >> shift) & np.uint32(1))


@cached_njit()
def add_rounded(products, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add `products`, whole numbers stored as float32, to the integers in `out`."""
    number = out.dtype.type
    for c in range(out.shape[0]):
        for t in range(out.shape[1]):
            out[c, t] += number(products[c, t])
