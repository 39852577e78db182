"""Limits on unpacked sizes: large enough for any data file, small enough to stop bombs."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any, TypeVar, cast

from sigdask.errors import InputError

T = TypeVar("T")

MAX_RATIO = 100
"""Maximum ratio of unpacked to packed bytes, from the beginning of a file to any position."""

FREE_BYTES = 1 << 25
"""Unpacked bytes that are always allowed."""

CELL_BYTES = 4
"""Bytes counted for each value of Parquet, which can store a million equal values in no space."""


@contextmanager
def set_variable(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable another value within the body."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def check_unpacked_size(path: Path, n_bytes: int, packed: int) -> None:
    """Raise if the unpacked content of a file is larger than the limit.

    Parameters
    ----------
    path : Path
        The file, for the error.
    n_bytes : int
        Unpacked size in bytes, so far or in total.
    packed : int
        Number of packed bytes that gave this size.

    Raises
    ------
    InputError
        The message names the limit.
    """
    limit = max(FREE_BYTES, MAX_RATIO * packed)
    if n_bytes > limit:
        raise InputError(
            f"{packed:,} bytes unpack to more than {limit:,}, which is unusual for data; if it is intended, unpack "
            "the file and give the unpacked one",
            file=path,
        )


def check_parquet(path: Path, metadata: Any) -> None:
    """Raise if the content of a Parquet file is larger than the limit, in bytes or in number of values."""
    n_bytes = sum(metadata.row_group(k).total_byte_size for k in range(metadata.num_row_groups))
    check_unpacked_size(path, max(n_bytes, CELL_BYTES * metadata.num_rows * metadata.num_columns), path.stat().st_size)


@contextmanager
def open_unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the unpacked content of a gzip file; reading raises once the limit on its size is exceeded."""
    with gzip.open(raw) as stream, io.BufferedReader(_LimitedStream(path, stream, raw), 1 << 16) as reader:
        yield cast("IO[bytes]", reader)


class _LimitedStream(io.RawIOBase):
    """A stream of unpacked content that raises once more than the limit was read."""

    def __init__(self, path: Path, stream: gzip.GzipFile, raw: IO[bytes]) -> None:
        self.path, self.stream, self.raw = path, stream, raw

    def readable(self) -> bool:
        """Return True, because the stream can be read."""
        return True

    def seekable(self) -> bool:
        """Return True, because the stream can be read again from its start."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a position."""
        return self.stream.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self.stream.tell()

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Read the next bytes and check the limit."""
        n_bytes = self.stream.readinto(buffer)
        check_unpacked_size(self.path, self.stream.tell(), self.raw.tell())
        return n_bytes
