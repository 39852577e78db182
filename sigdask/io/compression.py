"""Limits on decoded sizes: large enough for data files, small enough that no small file fills the memory.

An input below 10 MB needs at most about 1 GB and 20 s. What would need more is refused before it is decoded, and the
error names the option `max-size`, which every format has.
"""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, TypeVar, cast

from sigdask.errors import InputError
from sigdask.interface import spell

T = TypeVar("T")

MAX_RATIO = 20
"""Maximum ratio of decoded to stored bytes, from the beginning of a file to any position."""

FREE_BYTES = 100 << 20
"""Decoded bytes that are always allowed."""

MAX_DEFLATE_RATIO = 1032
"""Largest ratio of decoded to stored bytes in gzip and zip files."""

MEMBER = b"\x1f\x8b\x08"
"""First bytes of each member of a gzip file."""

MEMBER_BYTES, FREE_MEMBERS = 1000, 1000
"""Stored bytes per member of a gzip file at least, and members that are always allowed."""

UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}

_own_options: ContextVar[Mapping[str, str]] = ContextVar("options of the format", default={})  # noqa: B039


@contextmanager
def set_variable(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give a context variable another value within the body."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_options(own: Mapping[str, str]) -> AbstractContextManager[None]:
    """Read files within the body by these options: `max-size`, `sheet`, `quotes`, `header`; `format` is its name."""
    return set_variable(_own_options, {**_own_options.get(), **own})


def get_option(name: str) -> str | None:
    """Return an option of reading that the user gave, or None."""
    return _own_options.get().get(name)


def spell_option(option: str) -> str:
    """Return an option of the format in use, such as `--format wide:quotes=text`."""
    return spell("format", f"{get_option('format') or 'auto'}:{option}")


def check_unpacked_size(path: Path, n_bytes: int, stored: int, needed: int | None = None) -> None:
    """Raise if the decoded content of a file is larger than the limit.

    Parameters
    ----------
    path : Path
        The file, for the error.
    n_bytes : int
        Decoded size in bytes, so far or in total.
    stored : int
        Number of stored bytes that gave this size.
    needed : int, optional
        Decoded size of the whole file, at most.

    Raises
    ------
    InputError
        The message names the limit and the option that raises it.
    """
    requested = get_option("max-size")
    limit = max(FREE_BYTES, MAX_RATIO * stored) if requested is None else parse_size(requested)
    if n_bytes > limit:
        size = max(needed or 0, n_bytes)
        raise InputError(
            f"{stored:,} bytes unpack to more than {limit:,}, which is unusual for data",
            file=path,
            remedy=f"if it is intended, add {spell_option(f'max-size={-(-size // 10**9)}GB')}",
        )


def parse_size(text: str) -> int:
    """Return the bytes of a size such as 500MB.

    Examples
    --------
    >>> parse_size("2GB"), parse_size("500 mb")
    (2000000000, 500000000)
    """
    match = re.fullmatch(r"(\d+) ?([KMGT]?B|)", text.strip().upper())
    if match is None:
        raise InputError(f"max-size={text}: expected a size such as 2GB")
    return int(match[1]) * UNITS[match[2]]


@contextmanager
def open_unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the unpacked content of a gzip file; reading raises once the limit on its size is exceeded."""
    size = _check_members(path, raw)
    with gzip.open(raw) as stream, io.BufferedReader(_LimitedStream(path, stream, raw, size), 1 << 16) as reader:
        yield cast("IO[bytes]", reader)


def _check_members(path: Path, raw: IO[bytes]) -> int:
    """Raise an error for a gzip file of very many members, of which each takes its time; return the file's size."""
    n_members, size = 0, 0
    while block := raw.read(1 << 20):
        n_members += block.count(MEMBER)
        size += len(block)
    raw.seek(0)
    if n_members > max(FREE_MEMBERS, size // MEMBER_BYTES):
        raise InputError(
            f"{size:,} bytes hold {n_members:,} gzip members, which is unusual for data",
            file=path,
            remedy="unpack the file with gunzip, and give the unpacked one",
        )
    return size


class _LimitedStream(io.RawIOBase):
    """A stream of unpacked content that raises once more than the limit was read."""

    def __init__(self, path: Path, stream: gzip.GzipFile, raw: IO[bytes], size: int) -> None:
        self.path, self.stream, self.raw, self.size = path, stream, raw, size

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
        check_unpacked_size(self.path, self.stream.tell(), self.raw.tell(), MAX_DEFLATE_RATIO * self.size)
        return n_bytes
