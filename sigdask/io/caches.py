"""Folders of this program: compiled functions that persist between runs, and private temporary folders.

Private temporary folders of one process; the next run removes what a killed process left.

A folder holds a file that its maker keeps locked, with its host's name. The system drops the lock with
the process, however it ended, so that an unlocked one of this host is of no use to anyone. Not every
shared file system shows one host the locks of another: what is another's must be old, too.

Cache of the functions that numba compiles, which persists between runs. Everything works without it.

numba unpickles what it finds, so nothing is taken from a folder that somebody else could have filled.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache

LOCK = ".alive"

MAX_AGE_SECONDS = 30 * 86400.0
"""Seconds after which a folder is left behind whose lock says nothing: half made, another host's, or never locked."""


@contextmanager
def make_private_folder(prefix: str, root: Path | None = None) -> Iterator[Path]:
    """Make a folder (mode 0700) and remove it at the end, after those that killed processes left.

    Parameters
    ----------
    prefix : str
        Beginning of its name, by which those left behind are found.
    root : Path, optional
        Where; by default the system's temporary folder.

    Raises
    ------
    OSError
        Nothing can be made there.
    """
    parent = Path(tempfile.gettempdir()) if root is None else root
    for leftover in parent.glob(f"{prefix}*"):
        with suppress(OSError, ImportError):
            if _is_left_behind(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
    folder, maker = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)), os.getpid()
    lock = _create_lock(folder)
    try:
        yield folder
    finally:
        if os.getpid() == maker:  # a fork leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _create_lock(folder: Path) -> int | None:
    """Create a file that this process keeps locked while it lives; return its descriptor, None if locks do not work."""
    descriptor = os.open(folder / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock_file(descriptor)
    except (ImportError, OSError):
        os.close(descriptor)
        return None
    os.write(descriptor, _get_host())
    (folder / f"{LOCK}.new").rename(folder / LOCK)
    return descriptor


def _get_host() -> bytes:
    return socket.gethostname().encode()


def _lock_file(descriptor: int) -> None:
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_left_behind(folder: Path) -> bool:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        return False
    is_old = time.time() - info.st_mtime > MAX_AGE_SECONDS
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return is_old
    try:
        _lock_file(descriptor)
        return is_old or os.read(descriptor, 1024) == _get_host()
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


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
