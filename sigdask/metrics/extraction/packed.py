"""Statistics as bytes: a raw array with a header before it and a checksum behind it, and nothing that runs.

A line of magic words; a line of JSON, `{"key": …, "dtype": "<i8", "stored": "<u2", "shape": [997, 10]}`; the array,
compressed by zlib; 32 bytes of BLAKE2b of all that. What was cut off, changed on its way or put under another's name is
told by it, and is no entry.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib

import numpy as np

from sigdask.counts.fields import Array

MAGIC = b"sigdask extracted 1\n"
CHECK = 32
DTYPES = ("<i8", "<f8")
STORED = ("<u1", "<u2", "<i4", "<i8", "<f8")
"""How arrays are stored: of integers the first that holds them."""


def pack(key: str, array: Array) -> bytes:
    """Return what is kept of statistics, int64 or float64, under a key.

    Examples
    --------
    >>> unpack("k", pack("k", np.array([[1, 300]]))).tolist()
    [[1, 300]]
    >>> unpack("k", pack("k", np.array([[1, 300]]))[:-1]), unpack("other", pack("k", np.array([[1]])))
    (None, None)
    """
    dtype = array.dtype.newbyteorder("<").str
    stored = dtype if dtype == "<f8" else _smallest(array)
    header = json.dumps({"key": key, "dtype": dtype, "stored": stored, "shape": array.shape})
    content = zlib.compress(np.ascontiguousarray(array, stored).tobytes(), 1)
    whole = b"".join((MAGIC, header.encode(), b"\n", content))
    return whole + _checksum(whole)


def unpack(key: str, packed: bytes) -> Array | None:
    """Return the statistics that were kept under a key; None where these are not they, or not whole."""
    whole, check = packed[:-CHECK], packed[-CHECK:]
    if not whole.startswith(MAGIC) or _checksum(whole) != check:
        return None
    header, _, content = whole[len(MAGIC) :].partition(b"\n")
    try:
        said = json.loads(header)
        shape, dtype, stored = tuple(said["shape"]), said["dtype"], said["stored"]
        if said["key"] != key or dtype not in DTYPES or stored not in STORED:
            return None
        size = math.prod(shape) * np.dtype(stored).itemsize
        found = zlib.decompressobj().decompress(content, size + 1)
        return np.frombuffer(found, stored).reshape(shape).astype(dtype)
    except (ValueError, TypeError, KeyError, zlib.error):
        return None


def _smallest(array: Array) -> str:
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    ranges = ((name, np.iinfo(name)) for name in STORED[:4])
    return next(name for name, of in ranges if of.min <= low and high <= of.max)


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECK).digest()
