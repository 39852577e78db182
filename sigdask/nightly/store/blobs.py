"""Values of a store as bytes: compressed, with a checksum at the end, and limited in what they may become.

A store may come from anyone, so no limit depends on what a value says about itself.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa

from sigdask.errors import DamagedError

CHECKSUM_BYTES = 4

MAX_DEPTH = 64
"""Maximum nesting of JSON."""

UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError, OSError,
              pa.ArrowException)  # fmt: skip
"""Errors raised by values that sigdask did not write."""


def compute_checksum(content: bytes, *key: Any) -> bytes:
    """Return the CRC of a value and of the key under which it is stored, so that a moved value is noticed too."""
    return zlib.crc32(content, zlib.crc32(repr(key).encode())).to_bytes(CHECKSUM_BYTES, "little")


def seal(content: bytes, *key: Any) -> bytes:
    """Return compressed bytes, with their checksum at the end."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    packed = bytes(sink.getvalue())
    return packed + compute_checksum(packed, *key)


def unseal(sealed: bytes, *key: Any, spare: int, ratio: int) -> bytes:
    """Return the bytes that `seal` packed.

    Parameters
    ----------
    sealed : bytes
        The value as stored.
    *key
        What it is, such as ("runs", 7).
    spare, ratio : int
        It may unpack to `spare` bytes and `ratio` times its length, and is never unpacked further.

    Raises
    ------
    DamagedError
        It differs from what was stored, or unpacks to more.
    """
    name = " ".join(map(str, key))
    packed = bytes(sealed)[:-CHECKSUM_BYTES]
    if packed + compute_checksum(packed, *key) != sealed:
        raise DamagedError([f"{name}: its checksum differs"])
    limit = spare + ratio * len(packed)
    try:
        with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
            content = bytes(stream.read(limit + 1))
    except UNREADABLE as error:
        raise DamagedError([f"{name} ({error})"]) from None
    if len(content) > limit:
        raise DamagedError([f"{name}: it unpacks to more than {limit:,} bytes"])
    return content


def seal_json(value: Any, *key: Any) -> bytes:
    """Return a JSON value as sealed bytes."""
    return seal(json.dumps(value).encode(), *key)


def unseal_json(sealed: bytes, *key: Any) -> Any:
    """Return a JSON value; raise DamagedError if it is damaged, too long, or nested too deeply."""
    content = unseal(sealed, *key, spare=2**24, ratio=64)
    try:
        value = json.loads(content)
    except UNREADABLE as error:
        raise DamagedError([f"{' '.join(map(str, key))} ({error})"]) from None
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [entry for entry in level if isinstance(entry, dict | list)]
        level = [entry for box in inner for entry in (box.values() if isinstance(box, dict) else box)]
        if not level:
            return value
    raise DamagedError([f"{' '.join(map(str, key))}: JSON nested more than {MAX_DEPTH} deep"])
