"""Folders of this program: compiled functions that persist between runs, and private temporary folders.

A process keeps a file in its temporary folder locked. The system removes the lock when the process ends, however it
ends, so the next run removes folders of this host without a lock. Some shared file systems do not show one host the
locks of another, so folders of other hosts are removed only when they are old.

The cache of functions that numba compiles saves time, but everything works without it. numba notices only changes of a
function's own file, although functions of other files are compiled into it. So the names of cached files have a digest
of all files with kernels. numba unpickles the cache, so a folder that other users could write to is not used.
"""

from __future__ import annotations

import atexit
import glob
import hashlib
import logging
import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any

LOCK = ".alive"

MAX_AGE_SECONDS = 30 * 86400.0
"""Age in seconds from which a folder without a conclusive lock counts as abandoned: incomplete, another host's, or
never locked.
"""


@contextmanager
def make_private_folder(prefix: str, root: Path | None = None) -> Iterator[Path]:
    """Make a folder (mode 0700) and remove it at the end; first remove those that killed processes left.

    Parameters
    ----------
    prefix : str
        Prefix of its name, by which folders left behind are found.
    root : Path, optional
        Parent folder; by default the system's temporary folder.

    Raises
    ------
    OSError
        No folder can be created there.
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
"""Environment variable with the folder of numba's compiled code. Worker processes of this machine inherit it."""

TEMPORARY_FOLDERS = ExitStack()
"""Folder of this process, if no other folder is writable."""

atexit.register(TEMPORARY_FOLDERS.close)


PACKAGE = Path(__file__).parent.parent


def iter_kernel_files(root: Path = PACKAGE) -> Iterator[tuple[str, bytes]]:
    """Yield the relative path and the content of each file that kernels are compiled from.

    These are files that call `njit`, or that say in a docstring that numba compiles a constant.
    """
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        if b"njit" in content or b"numba compiles" in content:
            yield path.relative_to(root).as_posix(), content


@cache
def digest_kernels() -> str:
    """Return a digest of the contents of all files that kernels are compiled from.

    Returns
    -------
    str
        16 hexadecimal digits. It is computed once a process, when the first kernel is called.
    """
    digest = hashlib.sha256()
    for name, content in iter_kernel_files():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


class CompiledCache:
    """Numba's cache, by a digest of all kernels; damaged files are rebuilt and unwritable ones ignored."""

    def __init__(self, function: Any) -> None:
        from numba.core.caching import FunctionCache

        self._cache, self._name = FunctionCache(function), function.__qualname__
        self.cache_path = self._cache.cache_path
        self.flush = self._cache.flush

    def _name_files(self) -> None:
        """Give the cached files names with the digest of kernels, before the first is read or written."""
        from numba.core.caching import IndexDataCacheFile

        cache = self._cache
        name = f"{cache._impl.filename_base}.{digest_kernels()}"  # noqa: SLF001
        if cache._cache_file._index_name != f"{name}.nbi":  # noqa: SLF001
            stamp = cache._impl.locator.get_source_stamp()  # noqa: SLF001
            cache._cache_file = IndexDataCacheFile(self.cache_path, name, stamp)  # noqa: SLF001

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code of a function for argument types, or None if there is none usable.

        Numba's own method first loads everything that the compiler may need, which takes longer than the rest of a
        short comparison. Compiled code needs only the runtime.
        """
        from numba.core.runtime import rtsys

        code = None
        try:
            self._name_files()
            rtsys.initialize(target_context)
            code = self._cache._load_overload(sig, target_context)  # noqa: SLF001
        except Exception:  # noqa: BLE001  # pickle raises whatever damaged bytes lead to
            with suppress(Exception):
                self.flush()
        if code is None:
            COMPILING.add(self._name)
        return code

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a function's compiled code for argument types, if the cache can be written."""
        COMPILING.discard(self._name)
        with suppress(Exception):
            self._name_files()
            # code of this function compiled with other kernels, as the folder would grow without end
            function = self._cache._impl.filename_base.rpartition("-")[0]  # noqa: SLF001
            for path in Path(self.cache_path).glob(f"{glob.escape(function)}-*.nb[ic]"):
                if f".{digest_kernels()}." not in path.name:
                    path.unlink(missing_ok=True)
            self._cache.save_overload(sig, data)


COMPILING: set[str] = set()
"""Names of the functions that are being compiled, because no code of them is cached yet."""

FEW_STEPS = 2**19
"""Steps of a loop that take Python about as long as loading numba."""


class FunctionToCompile:
    """A function that numba compiles when it is first called, so that importing it does not import numba.

    Parameters
    ----------
    function : callable
        The function to compile.
    build : callable
        Returns the compiled function.
    """

    def __init__(self, function: Any, build: Callable[[Any], Any]) -> None:
        self._build, self._built, self._n_steps = build, None, 0
        update_wrapper(self, function)

    @property
    def is_compiled(self) -> bool:
        """Whether it was called before in this process, and numba with it."""
        return self._built is not None

    def build(self) -> Any:
        """Return the compiled function, which is built once, and replace this object by it."""
        with _BUILDING:
            if self._built is None:
                function = self.__wrapped__
                for name in function.__code__.co_names:
                    if isinstance(value := function.__globals__.get(name), FunctionToCompile):
                        function.__globals__[name] = value.build()
                self._built = self._build(function)
            return self._built

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function."""
        return (self._built or self.build())(*arguments)

    def is_worth_loading(self, n_steps: int) -> bool:
        """Return whether to call the compiled function, given the steps that Python would take instead.

        Python is faster until its steps in this process have taken as long as loading numba.
        """
        self._n_steps += n_steps
        return self.is_compiled or self._n_steps > FEW_STEPS

    def call_for_steps(self, n_steps: int, *arguments: Any) -> Any:
        """Call the function, without numba if that is faster for this number of loop steps."""
        return (self if self.is_worth_loading(n_steps) else self.__wrapped__)(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the compiled function."""
        return getattr(self.build(), name)


_BUILDING = threading.RLock()


def cached_njit(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles functions with numba, releases the interpreter lock, and caches the result."""

    def build(function: Any) -> Any:
        import numba

        dispatcher = numba.njit(nogil=True, **options)(function)
        with suppress(OSError, RuntimeError):  # not even a temporary folder: compiled again in every process
            dispatcher._cache = _open_cache(function)  # noqa: SLF001  # what njit(cache=True) does
        return dispatcher

    return lambda function: FunctionToCompile(function, build)


def inlined_njit(function: Any) -> FunctionToCompile:
    """Compile a function into each of its callers."""

    def build(function: Any) -> Any:
        import numba

        return numba.njit(inline="always")(function)

    return FunctionToCompile(function, build)


def _open_cache(function: Any) -> CompiledCache:
    _check_folder_owner()
    try:
        return CompiledCache(function)
    except RuntimeError:  # neither next to the module nor in the user's cache folder
        _set_cache_folder(str(TEMPORARY_FOLDERS.enter_context(make_private_folder("sigdask-compiled-"))))
        return CompiledCache(function)


def _check_folder_owner() -> None:
    """Stop using the configured cache folder if another user owns it or may write to it."""
    import numba

    folder = numba.config.CACHE_DIR
    if not folder or not Path(folder).exists():
        return
    info = Path(folder).stat()
    if info.st_uid not in (os.geteuid(), 0) or info.st_mode & stat.S_IWOTH:
        log.warning("%s = %s: ignored, because another user can write to this folder", CACHE_VARIABLE, folder)
        _set_cache_folder("")


def _set_cache_folder(folder: str) -> None:
    import numba

    os.environ[CACHE_VARIABLE] = folder
    numba.config.CACHE_DIR = folder
