"""Cache of the functions that numba compiles, which persists between runs. Everything works without it.

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

from sigdask.io.folders import make_private_folder

log = logging.getLogger("sigdask.io")


CACHE_VARIABLE = "NUMBA_CACHE_DIR"
"""Where numba keeps what it compiled; worker processes of this machine inherit it."""

TEMPORARY_FOLDERS = ExitStack()
"""The folder of this process, where nothing else can be written."""

atexit.register(TEMPORARY_FOLDERS.close)


class CompiledCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache, except that damaged files are rebuilt and unwritable ones ignored."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code of a function for argument types, or None if there is none usable."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # noqa: BLE001  # pickle raises whatever damaged bytes lead to
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a function's compiled code for argument types, if the cache can be written."""
        with suppress(Exception):
            super().save_overload(sig, data)


def cached_njit(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles functions with numba, releases the interpreter lock, and caches the result."""

    def decorate(function: Any) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        with suppress(OSError, RuntimeError):  # not even a temporary folder: compiled again in every process
            dispatcher._cache = _open_cache(function)  # noqa: SLF001  # what njit(cache=True) does
        return dispatcher

    return decorate


def _open_cache(function: Any) -> CompiledCache:
    _check_folder_owner()
    try:
        return CompiledCache(function)
    except RuntimeError:  # neither beside the module nor in the user's folder of caches
        _set_cache_folder(str(TEMPORARY_FOLDERS.enter_context(make_private_folder("sigdask-compiled-"))))
        return CompiledCache(function)


def _check_folder_owner() -> None:
    """Stop using the configured cache folder if another user owns it or may write to it."""
    folder = numba.config.CACHE_DIR
    if not folder or not Path(folder).exists():
        return
    info = Path(folder).stat()
    if info.st_uid not in (os.geteuid(), 0) or info.st_mode & stat.S_IWOTH:
        log.warning("%s = %s: another user may write there; it is not used", CACHE_VARIABLE, folder)
        _set_cache_folder("")


def _set_cache_folder(folder: str) -> None:
    os.environ[CACHE_VARIABLE] = folder
    numba.config.CACHE_DIR = folder
