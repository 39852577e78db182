"""Columns as bytes: each compressed on its own, so that some are read without the others.

Integers are kept in the smallest type, as steps where these are smaller; numbers of which few are distinct
as places among them; the bytes of equal weight together. All that is packed carries its checksum (zlib's).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Container
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.store.columns import Column, Columns, Name
from sigdask.results.columns.coded import Coded, ScoredMetric, Subset
from sigdask.results.messages.notes import Note

LEVEL = 6
FEW = 4
"""Rows to a distinct number, from which on these are kept once."""

Values = NDArray[Any]
_LENGTH = struct.Struct("<I")

_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "subset": (lambda value: [value.column, value.value], lambda kept: Subset(*kept)),
    "metric": (lambda value: [value.name, value.higher_is_better, value.signature], lambda kept: ScoredMetric(*kept)),
    "exact_by": (list, tuple),
    "notes": (lambda notes: [asdict(note) for note in notes], lambda kept: tuple(Note(**note) for note in kept)),
}
"""Values that are no texts, by their columns: to JSON, and from it."""


def packed(columns: Columns) -> bytes:
    """Return columns as bytes."""
    listed, parts = [], []
    for name, column in columns.items():
        told, own = _packed(name, column)
        listed.append({"name": name, **told, "sizes": [len(part) for part in own]})
        parts += own
    head = zlib.compress(json.dumps(listed, ensure_ascii=False, separators=(",", ":")).encode(), LEVEL)
    return b"".join([_LENGTH.pack(len(head)), head, *parts])


def unpacked(whole: bytes, only: Container[Name] | None = None) -> Columns:
    """Return columns of bytes: all, or some by their names."""
    (size,) = _LENGTH.unpack_from(whole)
    at = _LENGTH.size + size
    found: Columns = {}
    for told in json.loads(zlib.decompress(whole[_LENGTH.size : at])):
        name, parts = tuple(told["name"]), []
        for length in told["sizes"]:
            parts.append(whole[at : at + length])
            at += length
        if only is None or name in only:
            found[name] = _unpacked(name, told, parts)
    return found


def _packed(name: Name, column: Column) -> tuple[dict[str, Any], list[bytes]]:
    if isinstance(column, Coded):
        to, _ = _KINDS.get(name[0], (str, str))
        used, codes = np.unique(column.codes, return_inverse=True)
        values = [None if (value := column.values[k]) is None else to(value) for k in used.tolist()]
        kind, part = _integers(codes)
        return {"values": values, "codes": kind}, [part]
    if column.dtype.kind == "f":
        return _floats(column)
    kind, part = _integers(column.astype(np.int64))
    return {"type": column.dtype.str, "codes": kind}, [part]


def _unpacked(name: Name, told: dict[str, Any], parts: list[bytes]) -> Column:
    if "values" in told:
        _, back = _KINDS.get(name[0], (str, str))
        values = tuple(None if value is None else back(value) for value in told["values"])
        return Coded(_integers_of(told["codes"], parts[0]).astype(np.int32), values)
    if told["type"] != "<f8":
        return _integers_of(told["codes"], parts[0]).astype(told["type"])
    distinct = _whole(parts[0], "<f8")
    return distinct if len(parts) == 1 else distinct[_integers_of(told["codes"], parts[1])]


def _floats(column: Values) -> tuple[dict[str, Any], list[bytes]]:
    bits, codes = np.unique(column.astype("<f8").view("<u8"), return_inverse=True)
    if FEW * len(bits) > len(column):
        return {"type": "<f8"}, [_shuffled(column.astype("<f8"))]
    kind, part = _integers(codes)
    return {"type": "<f8", "codes": kind}, [_shuffled(bits.view("<f8")), part]


def _integers(values: Values) -> tuple[str, bytes]:
    """Return integers, or their steps, in the smallest type, which is named with a + where they are steps."""
    steps = np.diff(values, prepend=values[:1])
    steps[:1] = values[:1]
    plain, stepped = (_smallest(own) for own in (values, steps))
    if stepped.itemsize < plain.itemsize:
        return f"+{stepped.str}", _shuffled(steps.astype(stepped))
    return plain.str, _shuffled(values.astype(plain))


def _integers_of(kind: str, part: bytes) -> Values:
    values = _whole(part, kind.lstrip("+")).astype(np.int64)
    return np.cumsum(values) if kind.startswith("+") else values


def _smallest(values: Values) -> np.dtype[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    return (kind if kind.kind in "iu" else np.dtype(np.int64)).newbyteorder("<")


def _shuffled(values: Values) -> bytes:
    """Compress values, the bytes of equal weight together."""
    parts = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize)
    return zlib.compress(np.ascontiguousarray(parts.T).tobytes(), LEVEL)


def _whole(part: bytes, kind: str) -> Values:
    dtype = np.dtype(kind)
    parts = np.frombuffer(zlib.decompress(part), np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(parts.T).view(dtype).ravel().astype(dtype.newbyteorder("="), copy=False)
