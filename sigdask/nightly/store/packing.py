"""Packing of columns as bytes. Each column is compressed separately, so that some can be read alone.

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
from sigdask.results.columns.coded import CodedColumn, ScoredMetric, Subset
from sigdask.results.messages.notes import Note

LEVEL = 6
ROWS_PER_VALUE = 4
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


def pack_columns(columns: Columns) -> bytes:
    """Return the bytes of columns."""
    headers, parts = [], []
    for name, column in columns.items():
        header, column_parts = _pack_column(name, column)
        headers.append({"name": name, **header, "sizes": [len(part) for part in column_parts]})
        parts += column_parts
    head = zlib.compress(json.dumps(headers, ensure_ascii=False, separators=(",", ":")).encode(), LEVEL)
    return b"".join([_LENGTH.pack(len(head)), head, *parts])


def unpack_columns(data: bytes, names: Container[Name] | None = None) -> Columns:
    """Return the columns of bytes: all, or some by their names."""
    (size,) = _LENGTH.unpack_from(data)
    offset = _LENGTH.size + size
    columns: Columns = {}
    for header in json.loads(zlib.decompress(data[_LENGTH.size : offset])):
        name, parts = tuple(header["name"]), []
        for length in header["sizes"]:
            parts.append(data[offset : offset + length])
            offset += length
        if names is None or name in names:
            columns[name] = _unpack_column(name, header, parts)
    return columns


def _pack_column(name: Name, column: Column) -> tuple[dict[str, Any], list[bytes]]:
    if isinstance(column, CodedColumn):
        to_json, _ = _KINDS.get(name[0], (str, str))
        used, codes = np.unique(column.codes, return_inverse=True)
        values = [None if (value := column.values[k]) is None else to_json(value) for k in used.tolist()]
        kind, data = _pack_integers(codes)
        return {"values": values, "codes": kind}, [data]
    if column.dtype.kind == "f":
        return _pack_floats(column)
    kind, data = _pack_integers(column.astype(np.int64))
    return {"type": column.dtype.str, "codes": kind}, [data]


def _unpack_column(name: Name, header: dict[str, Any], parts: list[bytes]) -> Column:
    if "values" in header:
        _, from_json = _KINDS.get(name[0], (str, str))
        values = tuple(None if value is None else from_json(value) for value in header["values"])
        return CodedColumn(_unpack_integers(header["codes"], parts[0]).astype(np.int32), values)
    if header["type"] != "<f8":
        return _unpack_integers(header["codes"], parts[0]).astype(header["type"])
    distinct = _decompress(parts[0], "<f8")
    return distinct if len(parts) == 1 else distinct[_unpack_integers(header["codes"], parts[1])]


def _pack_floats(column: Values) -> tuple[dict[str, Any], list[bytes]]:
    bits, codes = np.unique(column.astype("<f8").view("<u8"), return_inverse=True)
    if ROWS_PER_VALUE * len(bits) > len(column):
        return {"type": "<f8"}, [_compress(column.astype("<f8"))]
    kind, data = _pack_integers(codes)
    return {"type": "<f8", "codes": kind}, [_compress(bits.view("<f8")), data]


def _pack_integers(values: Values) -> tuple[str, bytes]:
    """Return the type and compressed bytes of integers, or of their differences ("+" before the type) if smaller."""
    steps = np.diff(values, prepend=values[:1])
    steps[:1] = values[:1]
    plain, stepped = (_find_smallest_type(array) for array in (values, steps))
    if stepped.itemsize < plain.itemsize:
        return f"+{stepped.str}", _compress(steps.astype(stepped))
    return plain.str, _compress(values.astype(plain))


def _unpack_integers(kind: str, data: bytes) -> Values:
    values = _decompress(data, kind.lstrip("+")).astype(np.int64)
    return np.cumsum(values) if kind.startswith("+") else values


def _find_smallest_type(values: Values) -> np.dtype[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    return (kind if kind.kind in "iu" else np.dtype(np.int64)).newbyteorder("<")


def _compress(values: Values) -> bytes:
    """Return values compressed by zlib, with the first bytes of all values together, then the second, and so on."""
    byte_rows = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize)
    return zlib.compress(np.ascontiguousarray(byte_rows.T).tobytes(), LEVEL)


def _decompress(data: bytes, kind: str) -> Values:
    dtype = np.dtype(kind)
    byte_rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(byte_rows.T).view(dtype).ravel().astype(dtype.newbyteorder("="), copy=False)
