"""Kernels: compiled loops over swap words, sums and scores, which do the counting; a limit on the threads of BLAS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

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
