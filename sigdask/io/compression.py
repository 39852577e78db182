"""What a packed file may become: so much more than its own size that no file of data is refused, and no bomb read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, cast

from sigdask.errors import InputError

MOST_TIMES = 100
"""How many times its own size a packed file may become, from its beginning to wherever it is read."""

FREE = 1 << 25
"""Bytes that every file may become."""

CELL = 4
"""Bytes of a value of Parquet, which may keep a million that are equal in none."""

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

    Parameters
    ----------
    path : Path
        The file, for the error.
    n_bytes : int
        What it becomes, or has become so far.
    packed : int
        The bytes of it that this was packed in.

    Raises
    ------
    InputError
        It names the limit, and what raises it.
    """
    limit = _asked.get() or max(FREE, MOST_TIMES * packed)
    if n_bytes > limit:
        raise InputError(
            f"{path}: {packed:,} bytes unpack to more than {limit:,}, far more than data do; where that is meant, "
            "raise the limit with --most-unpacked BYTES"
        )


def check_parquet(path: Path, metadata: Any) -> None:
    """Refuse a Parquet file that becomes too large: in bytes, or in values."""
    n_bytes = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
    check_unpacked(path, max(n_bytes, CELL * metadata.num_rows * metadata.num_columns), path.stat().st_size)


@contextmanager
def unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open what a gzip file holds, within the limit."""
    with gzip.open(raw) as stream, io.BufferedReader(_LimitedStream(path, stream, raw), 1 << 16) as counted:
        yield cast("IO[bytes]", counted)


class _LimitedStream(io.RawIOBase):
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
