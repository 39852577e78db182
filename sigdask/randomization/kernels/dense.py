"""Sums over swapped units as a matrix product in float32: exact, and fastest where columns are many.

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

from sigdask.io.compiled_cache import compiled

UNITS = 512
"""Units of one chunk."""

EXACT = 2**24


def fits(sizes: NDArray[Any]) -> bool:
    """Say whether the sums of every chunk of units are exact, for the sizes of one column's numbers."""
    chunks = np.add.reduceat(sizes, np.arange(0, len(sizes), UNITS), dtype=np.int64)
    return int(chunks.max(initial=0)) < EXACT


def cost(n_columns: int, n_units: int) -> float:
    """Return about how many seconds a trial takes here, by measurement."""
    a_product, an_expansion, an_addition = _rates()
    chunks = -(-n_units // UNITS)
    return n_columns * n_units * a_product + n_units * an_expansion + n_columns * chunks * an_addition


@lru_cache(maxsize=1)
def _rates() -> tuple[float, float, float]:
    """Measure seconds of a multiply-add, of making a unit's row of swaps, and of an addition to integers."""
    n_columns, n_units, n_trials = 64, 64, 2048
    values, swaps = np.ones((n_columns, n_units), np.float32), np.ones((n_units, n_trials), np.float32)
    products, sums = np.empty((n_columns, n_trials), np.float32), np.zeros((n_columns, n_trials), np.int32)
    words, places = np.zeros((4, n_trials), np.uint32), np.arange(n_units)
    with one_thread():
        product = fastest(np.matmul, values, swaps, products)
    expansion = fastest(expand, words, places, swaps)
    addition = fastest(add_rounded, products, sums)
    return product / values.size / n_trials, expansion / swaps.size, addition / sums.size


def fastest(call: Any, *arguments: Any) -> float:
    """Return the seconds of the fastest of some calls."""
    call(*arguments)
    times = []
    for _ in range(9):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times)


class _BlasLimit:
    """Holds BLAS to one thread while anybody multiplies: tasks are the threads here."""

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


_limit = _BlasLimit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread, for as long as any thread of the process is within."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


@compiled()
def expand(words, places, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write the swaps of some units of one column of 128 as 0 and 1: `out`, shape (n_units, n_trials)."""
    for k in range(places.shape[0]):
        word = words[places[k] // 32]
        shift = np.uint32(places[k] % 32)
        row = out[k]
        for t in range(row.shape[0]):
            row[t] = np.float32((word[t] >> shift) & np.uint32(1))


@compiled()
def add_rounded(products, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Add whole numbers held in float32 to integers."""
    number = out.dtype.type
    for c in range(out.shape[0]):
        for t in range(out.shape[1]):
            out[c, t] += number(products[c, t])
