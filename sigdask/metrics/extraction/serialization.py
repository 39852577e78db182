"""Statistics as bytes: a header, the raw array and a checksum; reading them executes nothing.

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
CHECKSUM_SIZE = 32
DTYPES = ("<i8", "<f8")
STORED_DTYPES = ("<u1", "<u2", "<i4", "<i8", "<f8")
"""How arrays are stored: of integers the first that holds them."""


def pack_statistics(key: str, array: Array) -> bytes:
    """Return int64 or float64 statistics and their key as bytes.

    Examples
    --------
    >>> unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))).tolist()
    [[1, 300]]
    >>> (unpack_statistics("k", pack_statistics("k", np.array([[1, 300]]))[:-1]),
    ...  unpack_statistics("other", pack_statistics("k", np.array([[1]]))))
    (None, None)
    """
    dtype = array.dtype.newbyteorder("<").str
    stored = dtype if dtype == "<f8" else _find_smallest_dtype(array)
    header = json.dumps({"key": key, "dtype": dtype, "stored": stored, "shape": array.shape})
    content = zlib.compress(np.ascontiguousarray(array, stored).tobytes(), 1)
    data = b"".join((MAGIC, header.encode(), b"\n", content))
    return data + _compute_checksum(data)


def unpack_statistics(key: str, packed: bytes) -> Array | None:
    """Return the statistics that bytes hold, or None if the bytes have another key or are damaged."""
    data, check = packed[:-CHECKSUM_SIZE], packed[-CHECKSUM_SIZE:]
    if not data.startswith(MAGIC) or _compute_checksum(data) != check:
        return None
    header, _, content = data[len(MAGIC) :].partition(b"\n")
    try:
        fields = json.loads(header)
        shape, dtype, stored = tuple(fields["shape"]), fields["dtype"], fields["stored"]
        if fields["key"] != key or dtype not in DTYPES or stored not in STORED_DTYPES:
            return None
        size = math.prod(shape) * np.dtype(stored).itemsize
        raw = zlib.decompressobj().decompress(content, size + 1)
        return np.frombuffer(raw, stored).reshape(shape).astype(dtype)
    except (ValueError, TypeError, KeyError, zlib.error):
        return None


def _find_smallest_dtype(array: Array) -> str:
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    ranges = ((name, np.iinfo(name)) for name in STORED_DTYPES[:4])
    return next(name for name, limits in ranges if limits.min <= low and high <= limits.max)


def _compute_checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE).digest()
