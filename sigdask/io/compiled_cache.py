"""Functions that numba compiles, kept from run to run where a folder can be written; no run hangs on what is kept.

numba unpickles what it finds, so nothing is taken from a folder that somebody else could have filled.
"""

from __future__ import annotations

import atexit
import logging
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

from sigdask.io.folders import own_folder

log = logging.getLogger("sigdask.io")


VARIABLE = "NUMBA_CACHE_DIR"
"""Where numba keeps what it compiled; worker processes of this machine inherit it."""

TEMPORARY = ExitStack()
"""The folder of this process, where nothing else can be written."""

atexit.register(TEMPORARY.close)


class CompiledCache(FunctionCache):  # type: ignore[misc]
    """numba's cache, of which files that are damaged or cannot be written are no error: they are made anew."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept, or None where nothing of use is."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001  # pickle raises whatever damaged bytes lead to
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, where that can be done."""
        with suppress(Exception):
            super().save_overload(sig, data)


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Return numba's `njit` without the interpreter's lock, with its results kept."""

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        with suppress(OSError, RuntimeError):  # not even a temporary folder: compiled again in every process
            dispatcher._cache = _cache_of(function)  # noqa: SLF001  # what njit(cache=True) does
        return dispatcher

    return decorate


def _cache_of(function: Any) -> CompiledCache:
    _distrust_strangers()
    try:
        return CompiledCache(function)
    except RuntimeError:  # neither beside the module nor in the user's folder of caches
        _keep_in(str(TEMPORARY.enter_context(own_folder("sigdask-compiled-"))))
        return CompiledCache(function)


def _distrust_strangers() -> None:
    """Forget a folder that was named and that another user made, or may write to."""
    folder = numba.config.CACHE_DIR
    if not folder or not Path(folder).exists():
        return
    found = Path(folder).stat()
    if found.st_uid not in (os.geteuid(), 0) or found.st_mode & stat.S_IWOTH:
        log.warning("%s = %s: another user may write there; it is not used", VARIABLE, folder)
        _keep_in("")


def _keep_in(folder: str) -> None:
    os.environ[VARIABLE] = folder
    numba.config.CACHE_DIR = folder
