"""Sums over swapped units as a float32 matrix product: exact, and fastest for many columns.

A product of integers is exact in any order of summation while every sum stays below 2^24. Units are multiplied `UNITS`
at a time and each product is added to integers, so only the sums of one chunk must stay below this limit.

A column has a system's contributions to a field minus those of its base system. Columns that are equal up to sign are
computed once. Columns are views of the panel's contributions, so that a panel of 1,000 systems and 10^5 items is not in
memory twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.counts.fields import Integers
from sigdask.io.caches import cached_njit


@dataclass(frozen=True, slots=True, eq=False)
class DistinctColumns:
    """The distinct nonzero columns of a panel: contributions to a field minus those of a base system, up to sign.

    Attributes
    ----------
    values : int array, shape (n_units, n_systems, n_fields)
        The panel's contributions, in a type that holds their differences.
    systems, bases, fields : int64 array, shape (n_columns,)
        The first system that has the column, the base system that is subtracted, and the field.
    signs : int array, shape (n_columns,)
        1 or -1, so that each column's first nonzero number is positive.
    """

    values: NDArray[Any]
    systems: Integers
    bases: Integers
    fields: Integers
    signs: NDArray[Any]

    def __len__(self) -> int:
        return len(self.systems)

    @property
    def n_units(self) -> int:
        """Number of units of each column."""
        return len(self.values)

    def compute_values(self, units: slice) -> NDArray[Any]:
        """Return the columns for some units, shape (n_columns, n_units), in the contributions' type."""
        values = self.values[units]
        differences = values[:, self.systems, self.fields] - values[:, self.bases, self.fields]
        return np.asarray((differences * self.signs).T)

    def write(self, units: slice, out: NDArray[np.float32]) -> None:
        """Write the columns for some units to `out`, shape (n_columns, n_units)."""
        write_columns(self.values[units], self.systems, self.bases, self.fields, self.signs, out)


@cached_njit()
def write_columns(values, systems, bases, fields, signs, out):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    """Write signed differences between systems' contributions to `out`, shape (n_columns, n_units)."""
    for c in range(out.shape[0]):
        column = values[:, systems[c], fields[c]]
        base = values[:, bases[c], fields[c]]
        for u in range(out.shape[1]):
            out[c, u] = signs[c] * (column[u] - base[u])


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


_blas_lock = threading.Lock()
_blas_limits: list[Any] = []
"""Limits BLAS to one thread, once for each thread that multiplies, because tasks already run in parallel threads."""


@lru_cache(maxsize=1)
def _find_blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _take_control() -> None:
    """Let this thread set the limit: since threadpoolctl 3.8 only the first thread that set one may, while it lives."""
    from threadpoolctl import OpenBLASController

    if (clear := getattr(OpenBLASController, "clear_controlling_thread", None)) is not None:
        clear(force=True)


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit BLAS to one thread while any thread of the process is in this context."""
    with _blas_lock:
        if not _blas_limits:
            _take_control()
        _blas_limits.append(_blas_limits[0] if _blas_limits else _find_blas().limit(limits=1))
    try:
        yield
    finally:
        with _blas_lock:
            limit = _blas_limits.pop()
            if not _blas_limits:
                _take_control()
                limit.restore_original_limits()
                _take_control()


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
