"""Writing reports: whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from sigdask.errors import UnfinishedError


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all; what is no file (a pipe, a device) is written to.

    A file that is there keeps its mode, a new one has that of the umask.

    Raises
    ------
    UnfinishedError
        It cannot be written.
    """
    try:
        content = text.encode()
        mode = _mode(path)
        if mode is not None and not stat.S_ISREG(mode):
            path.write_bytes(content)
        else:
            _replace(path, content, _new_mode() if mode is None else stat.S_IMODE(mode))
    except OSError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.strerror})") from None
    except UnicodeEncodeError as error:
        raise UnfinishedError(f"{path}: cannot be written ({error.reason} in {error.object[error.start]!r})") from None


def _replace(path: Path, content: bytes, mode: int) -> None:
    target = path.resolve()  # a link stays one
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:100]}-", delete=False) as file:
        made = Path(file.name)
        try:
            file.write(content)
            file.flush()
            made.chmod(mode)
            made.replace(target)
        except BaseException:
            with suppress(OSError):
                made.unlink()
            raise


def _mode(path: Path) -> int | None:
    with suppress(FileNotFoundError):
        return path.stat().st_mode
    return None


def _new_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
