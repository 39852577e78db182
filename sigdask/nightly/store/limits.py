"""Limits on the cost of reading a store, for files that anyone may have made.

No limit depends on what a file says about itself. Each is fixed, or follows from the size of the file.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import ArrowException

from sigdask.errors import DamagedError

MAX_DEPTH = 64
"""Maximum nesting of a JSON text."""

MAX_VALUES, MAX_JSON_BYTES = 2**23, 2**28
"""Maximum values and bytes of a compressed JSON text."""

FREE_JSON_BYTES, MAX_RATIO = 2**24, 128
"""Texts longer than the first must not exceed this ratio to their compressed bytes."""

UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, OSError, zlib.error,
              struct.error, ArrowException)  # fmt: skip
"""Errors raised by values that sigdask did not write."""

SPARE_BYTES, MAX_WRITTEN_BYTES = 2**20, 2**28
"""Maximum length of a value: for readers, in excess of the file's size; for writers, whose values may not be in the
file yet, in total.
"""

MAX_CHECKED_BYTES = 2**26
"""Maximum size of files whose pages are checked on opening."""

MAX_TIME = 253_402_300_799
"""The last second of the year 9999."""


@contextmanager
def expect_readable(row: str) -> Iterator[None]:
    """Raise DamagedError, with the name of a row, for values that sigdask did not write."""
    try:
        yield
    except UNREADABLE as error:
        raise DamagedError([f"{row} ({error})"]) from None


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError or RecursionError if it is nested too deeply."""
    value = json.loads(text)
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [entry for entry in level if isinstance(entry, dict | list)]
        level = [entry for box in inner for entry in (box.values() if isinstance(box, dict) else box)]
        if not level:
            return value
    raise ValueError(f"JSON nested more than {MAX_DEPTH} deep")


def unpack_json(packed: bytes) -> Any:
    """Return the value of a JSON text that zlib compressed; raise ValueError if it has too many values."""
    text = decompress(packed, min(MAX_JSON_BYTES, max(FREE_JSON_BYTES, MAX_RATIO * len(packed))))
    n_values = sum(map(text.count, (b"[", b"{", b",")))
    if n_values > MAX_VALUES:
        raise ValueError(f"{n_values:,} values, expected at most {MAX_VALUES:,}")
    return parse_json(text)


def decompress(data: bytes, max_bytes: int) -> bytes:
    """Return the bytes that zlib compressed; raise ValueError if they are more than `max_bytes`, or cut off."""
    stream = zlib.decompressobj()
    unpacked = stream.decompress(data, max_bytes + 1)
    if len(unpacked) > max_bytes or not stream.eof:
        raise ValueError(f"compressed bytes that are cut off, or more than {max_bytes:,}")
    return unpacked


def is_time(value: Any) -> bool:
    """Return whether a value is a time in seconds since 1970."""
    return type(value) in {int, float} and 0 <= value <= MAX_TIME


def limit_lengths(connection: sqlite3.Connection, path: Path, *, is_writer: bool) -> None:
    """Limit the length of values by the size of the file, because a damaged row can claim any length."""
    length = max(get_size(path) + SPARE_BYTES, MAX_WRITTEN_BYTES if is_writer else 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(length, 2**31 - 1))


def get_size(path: Path) -> int:
    """Return the size of a file in bytes, 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
