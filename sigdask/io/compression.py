"""Limits on decoded sizes: large enough for data files, small enough that no small file fills the memory.

An input below 10 MB needs at most about 1 GB and 20 s. What would need more is refused before it is decoded, and the
error names the option `size=any`, which every format has.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import IO, Any

from sigdask.errors import InputError
from sigdask.interface import spell

MAX_RATIO = 20
"""Maximum ratio of decoded to stored bytes, from the beginning of a file to any position."""

FREE_BYTES = 100 << 20
"""Decoded bytes that are always allowed."""

MEMBER = b"\x1f\x8b\x08"
"""First bytes of each member of a gzip file."""

MEMBER_BYTES, FREE_MEMBERS = 1000, 1000
"""Stored bytes per member of a gzip file at least, and members that are always allowed."""

_own_options: ContextVar[Mapping[str, str]] = ContextVar("options of the format", default={})  # noqa: B039


@contextmanager
def set_variable(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """Give a context variable another value within the body."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def use_options(own: Mapping[str, str]) -> AbstractContextManager[None]:
    """Read files within the body by these options: `size`, `sheet`, `quotes`, `header`; `format` is its name."""
    return set_variable(_own_options, {**_own_options.get(), **own})


def get_option(name: str) -> str | None:
    """Return an option of reading that the user gave, or None."""
    return _own_options.get().get(name)


def spell_option(option: str) -> str:
    """Return an option of the format in use, such as `--format wide:quotes=text`."""
    return spell("format", f"{get_option('format') or 'auto'}:{option}")


def check_unpacked_size(path: Path, n_bytes: int, stored: int) -> None:
    """Raise if the decoded content of a file is larger than the limit.

    Parameters
    ----------
    path : Path
        The file, for the error.
    n_bytes : int
        Decoded size in bytes, so far or in total.
    stored : int
        Number of stored bytes that gave this size.

    Raises
    ------
    InputError
        The message names the limit and the option that lifts it.
    """
    limit = max(FREE_BYTES, MAX_RATIO * stored)
    if n_bytes > limit and get_option("size") != "any":
        problem = f"{stored:,} bytes unpack to more than {limit:,}, which is unusual for data"
        remedy = f"if it is intended, and this machine has the memory, add {spell_option('size=any')}"
        raise InputError(problem, file=path, remedy=remedy)


class _LimitedGzip(gzip.GzipFile):
    """Unpacked content of a gzip file that raises once more than the limit was read."""

    path: Path
    readinto = io.BufferedIOBase.readinto  # by `read`, also where GzipFile has a way of its own

    def read(self, size: int | None = -1) -> bytes:
        """Read the next bytes, or all in parts, and check the limit."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        content = super().read(size)
        check_unpacked_size(self.path, self.tell(), self.fileobj.tell())  # type: ignore[union-attr]
        return content


@contextmanager
def open_unpacked(path: Path, raw: IO[bytes]) -> Iterator[IO[bytes]]:
    """Open the unpacked content of a gzip file; reading raises once the limit on its size is exceeded.

    A file of very many members, of which each takes its time, is refused.
    """
    n_members, size = 0, 0
    while block := raw.read(1 << 20):
        n_members += block.count(MEMBER)
        size += len(block)
    raw.seek(0)
    if n_members > max(FREE_MEMBERS, size // MEMBER_BYTES):
        problem = f"{size:,} bytes hold {n_members:,} gzip members, which is unusual for data"
        raise InputError(problem, file=path, remedy="unpack the file with gunzip, and give the unpacked one")
    with _LimitedGzip(fileobj=raw) as stream, io.BufferedReader(stream, 1 << 16) as reader:
        stream.path = path
        yield reader
