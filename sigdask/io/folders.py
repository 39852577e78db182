"""Private temporary folders.

A process keeps a file in its temporary folder locked. The system removes the lock when the process ends, however it
ends, so the next run removes folders of this host without a lock. Some shared file systems do not show one host the
locks of another, so folders of other hosts are removed only when they are old.
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
