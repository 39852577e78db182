"""What a packed file may become: so much more than its own size that no file of data is refused, and no bomb read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, cast

from sigdask.errors import InputError

MOST_TIMES = 50
"""How many times its own size a packed file may become, from its beginning to wherever it is read."""

FREE = 1 << 28
"""Bytes that every file may become."""

_asked: ContextVar[int | None] = ContextVar("bytes that a file may become", default=None)


@contextmanager
def unpacking_at_most(n_bytes: int | None) -> Iterator[None]:
    """Have another limit within, where one is given."""
    token = _asked.set(n_bytes or _asked.get())
    try:
        yield
    finally:
        _asked.reset(token)


def check_unpacked(path: Path, n_bytes: int, packed: int) -> None:
    """Refuse a file that becomes too large.

    Raises
    ------
    InputError
        It names the limit, and what raises it.
    """
    limit = _asked.get() or max(FREE, MOST_TIMES * packed)
    if n_bytes > limit:
        raise InputError(
            f"{path}: {packed:,} bytes unpack to more than {limit:,}, far more than data do; where that is meant, "
            f"raise the limit with --most-unpacked {2 * n_bytes}"
        )


@contextmanager
def unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open what a gzip file holds, within the limit."""
    packed = raw.seek(0, io.SEEK_END)
    raw.seek(max(packed - 4, 0))
    check_unpacked(path, int.from_bytes(raw.read(4), "little"), packed)  # as the file itself says
    raw.seek(0)
    with gzip.open(raw) as stream, io.BufferedReader(_Counted(path, stream, raw), 1 << 16) as counted:
        yield cast("IO[bytes]", counted)


class _Counted(io.RawIOBase):
    """A stream that ends in an error where it goes on for too long."""

    def __init__(self, path: Path, stream: gzip.GzipFile, raw: IO[bytes]) -> None:
        self.path, self.stream, self.raw = path, stream, raw

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def seekable(self) -> bool:
        """Return that it can begin again."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the place."""
        return self.stream.tell()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read on."""
        n_bytes = self.stream.readinto(buffer)
        check_unpacked(self.path, self.stream.tell(), self.raw.tell())
        return n_bytes
