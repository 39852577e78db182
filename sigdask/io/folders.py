"""Temporary folders of one process, for its owner alone; what a kill leaves behind the next run sweeps.

A folder holds a file that its maker keeps locked, with its host's name. The system drops the lock with
the process, however it ended, so that an unlocked one of this host is of no use to anyone. Not every
shared file system shows one host the locks of another: what is another's must be old, too.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".alive"

LONGEST = 30 * 86400.0
"""Seconds after which a folder is left behind whose lock says nothing: half made, another host's, or never locked."""


@contextmanager
def own_folder(prefix: str, root: Path | None = None) -> Iterator[Path]:
    """Make a fresh folder (mode 0700), remove it in the end, and before that those of processes that were killed.

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
    where = Path(tempfile.gettempdir()) if root is None else root
    _sweep(where, prefix)
    folder, maker = Path(tempfile.mkdtemp(prefix=prefix, dir=where)), os.getpid()
    lock = _locked(folder)
    try:
        yield folder
    finally:
        if os.getpid() == maker:  # a fork leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Return the locked file that says that this process lives; it gets its name once it is locked."""
    descriptor = os.open(folder / f"{LOCK}.new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _lock(descriptor)
    except (ImportError, OSError):
        os.close(descriptor)
        return None
    os.write(descriptor, _host())
    (folder / f"{LOCK}.new").rename(folder / LOCK)
    return descriptor


def _host() -> bytes:
    return socket.gethostname().encode()


def _lock(descriptor: int) -> None:
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sweep(root: Path, prefix: str) -> None:
    for folder in root.glob(f"{prefix}*"):
        with suppress(OSError, ImportError):
            if _is_left_behind(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left_behind(folder: Path) -> bool:
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return False
    is_old = time.time() - found.st_mtime > LONGEST
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return is_old
    try:
        _lock(descriptor)
        return is_old or os.read(descriptor, 1024) == _host()
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
