"""Blocks of results in the store: rows that one run recorded, with the later run that replaced each row.

The columns are those of the table, named by path. Each is compressed separately, so that some can be read alone.
Integers are stored in the smallest type, as differences if these are smaller. Numbers with few distinct values are
stored as positions in a list of these. Bytes of equal significance are stored together. Everything has a checksum
(zlib's).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import build_insert, build_update, insert_row, is_intact, seal_rows
from sigdask.nightly.store.limits import decompress, expect_readable, unpack_json
from sigdask.results.columns import (
    CodedColumn,
    Column,
    ScoredMetric,
    Subset,
    join_column,
    recode,
    take_column,
    take_rows,
)
from sigdask.results.notes import Note
from sigdask.results.table import Name, build_filling, count_rows

Columns = dict[Name, Column]
Rows = NDArray[np.int64]

ORIGINS: Name = ("origins", "all")


def select_rows(columns: Columns, mask: NDArray[np.bool_]) -> Columns:
    """Return the rows of columns that a mask selects."""
    return columns if mask.all() else take_rows(columns, np.flatnonzero(mask))


def are_equal(
    left: Columns, right: Columns, names: Iterable[Name], left_rows: Rows, right_rows: Rows
) -> NDArray[np.bool_]:
    """Return a mask of row pairs, one row from each table, that are equal in the given columns."""
    is_equal = np.ones(len(left_rows), np.bool_)
    for name in names:
        example = left[name] if name in left else right[name]
        a, b = (
            take_column(columns[name] if name in columns else build_filling(name, example, count_rows(columns)), rows)
            for columns, rows in ((left, left_rows), (right, right_rows))
        )
        if isinstance(a, CodedColumn) and isinstance(b, CodedColumn):
            codes_by_value: dict[Any, int] = {}
            is_equal &= recode(a, codes_by_value) == recode(b, codes_by_value)
        else:
            is_equal &= (a == b) | ((a != a) & (b != b))  # noqa: PLR0124  # NaN is not itself
    return is_equal


def match_rows(reference: Columns, query: Columns) -> NDArray[np.int64]:
    """Return, for each row of `query`, the index of the equal row of `reference`, or -1.

    Equal rows that occur several times are matched in order.
    """
    n = count_rows(reference)
    if not n:
        return np.full(count_rows(query), -1, np.int64)
    key = np.zeros(n + count_rows(query), np.int64)
    for name in query:
        column: Any = join_column([reference[name], query[name]])
        _, key = np.unique(key * len(column.values) + column.codes, return_inverse=True)
    number = np.concatenate([_count_earlier_equal(key[:n]), _count_earlier_equal(key[n:])])
    keys = key * (n + 1) + np.minimum(number, n)
    order = np.argsort(keys[:n])
    positions = np.minimum(np.searchsorted(keys[:n], keys[n:], sorter=order), n - 1)
    return np.where(keys[order[positions]] == keys[n:], order[positions], -1)


def _count_earlier_equal(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each element of an array how many equal elements come before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    numbers = np.empty_like(key)
    numbers[order] = np.arange(len(key)) - np.searchsorted(ordered, ordered)
    return numbers


LEVEL = 6
ROWS_PER_VALUE = 4
"""Minimum number of rows per distinct number for which distinct numbers are stored once."""

MAX_COLUMNS = 512

FREE_ROWS, MIN_ROW_BYTES = 2**20, 4
"""Number of rows that any block may have, and compressed bytes required for each further row."""

DTYPES = frozenset({"<f8", "|b1", "|u1", "|i1", *(f"<{kind}{size}" for kind in "iu" for size in (2, 4, 8))})

Values = NDArray[Any]
_LENGTH = struct.Struct("<I")

_KINDS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "subset": (lambda value: [value.column, value.value], lambda kept: Subset(*kept)),
    "metric": (lambda value: [value.name, value.higher_is_better, value.signature], lambda kept: ScoredMetric(*kept)),
    "exact_by": (list, tuple),
    "notes": (lambda notes: [asdict(note) for note in notes], lambda kept: tuple(Note(**note) for note in kept)),
}
"""Conversions of values other than texts to and from JSON, by column."""


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
    """Return the columns of bytes: all, or some by their names.

    Raises
    ------
    ValueError
        The columns are larger than a block can be.
    """
    (size,) = _LENGTH.unpack_from(data)
    offset = _LENGTH.size + size
    columns: Columns = {}
    headers = unpack_json(data[_LENGTH.size : offset])
    if len(headers) > MAX_COLUMNS or min((length for header in headers for length in header["sizes"]), default=0) < 0:
        raise ValueError(f"more than {MAX_COLUMNS} columns, or one of negative size")
    for header in headers:
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
        bits, codes = np.unique(column.astype("<f8").view("<u8"), return_inverse=True)
        if ROWS_PER_VALUE * len(bits) > len(column):
            return {"type": "<f8"}, [_compress(column.astype("<f8"))]
        kind, data = _pack_integers(codes)
        return {"type": "<f8", "codes": kind}, [_compress(bits.view("<f8")), data]
    kind, data = _pack_integers(column.astype(np.int64))
    return {"type": column.dtype.str, "codes": kind}, [data]


def _unpack_column(name: Name, header: dict[str, Any], parts: list[bytes]) -> Column:
    if "values" in header:
        _, from_json = _KINDS.get(name[0], (str, str))
        values = tuple(None if value is None else from_json(value) for value in header["values"])
        return CodedColumn(_unpack_codes(header, parts[0], len(values)).astype(np.int32), values)
    if header["type"] != "<f8":
        return _unpack_integers(header["codes"], parts[0]).astype(header["type"])
    distinct = _decompress(parts[0], "<f8")
    return distinct if len(parts) == 1 else distinct[_unpack_codes(header, parts[1], len(distinct))]


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


def _unpack_codes(header: dict[str, Any], data: bytes, n_values: int) -> Values:
    codes = _unpack_integers(header["codes"], data)
    if codes.min(initial=0) < 0 or codes.max(initial=-1) >= n_values:
        raise ValueError(f"codes beyond {n_values:,} values")
    return codes


def _find_smallest_type(values: Values) -> np.dtype[Any]:
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    kind = np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high))
    return (kind if kind.kind in "iu" else np.dtype(np.int64)).newbyteorder("<")


def _compress(values: Values) -> bytes:
    """Return values compressed by zlib: the first bytes of all values together, then all second bytes, and so on."""
    byte_rows = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.itemsize)
    return zlib.compress(np.ascontiguousarray(byte_rows.T).tobytes(), LEVEL)


def _decompress(data: bytes, kind: str) -> Values:
    if kind not in DTYPES:
        raise ValueError(f"values of type {kind!r}")
    dtype = np.dtype(kind)
    byte_rows = np.frombuffer(decompress(data, dtype.itemsize * MAX_ROWS), np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(byte_rows.T).view(dtype).ravel().astype(dtype.newbyteorder("="), copy=False)


Integers = NDArray[np.int64]

NEVER_ENDED = 2**62
"""Ending run of rows that are still current."""

MAX_ROWS = 2**17
"""Maximum rows of a block."""

COMPARISON, COMPLETE, POSITION = STORE_COLUMNS = ("comparison",), ("complete",), ("position",)
"""Columns stored with a table: the comparison of p, whether all requested trials were counted, the position in the
run.
"""

PLACES: Name = ("places",)


@dataclass(frozen=True, slots=True, eq=False)
class ResultBlock:
    """Rows of results that one run recorded, each with the run that replaced it, if any.

    Attributes
    ----------
    number : int
        Number of the block in the store.
    since : int
        Run that recorded the rows.
    columns : mapping of name to column
        Columns of the table, and `STORE_COLUMNS`.
    until : int64 array, shape (n,)
        Run that replaced each row; `NEVER_ENDED` if it is current.
    """

    number: int
    since: int
    columns: Columns
    until: Integers


def iter_packed_blocks(connection: Connection, plan: str, condition: str = "") -> Iterator[Any]:
    """Yield the database rows of blocks, still packed.

    Raises
    ------
    DamagedError
        A block differs from what was stored.
    """
    if hollow := find_hollow_blocks(connection):
        raise DamagedError([f"found: block {number} of results" for number in hollow])
    query = text(f"SELECT * FROM found WHERE plan = :plan {condition} ORDER BY id")  # noqa: S608
    for row in connection.execute(query, {"plan": plan}).mappings():
        if not is_intact("found", row):
            raise DamagedError([f"found: block {row['id']} of results"])
        yield row


def find_hollow_blocks(connection: Connection) -> list[int]:
    """Return the blocks with too many rows for their bytes, if all their rows together may exceed the memory."""
    query = text("SELECT id, CAST(n AS BIGINT), length(columns) FROM found")
    hollow = {number: n for number, n, size in connection.execute(query) if n * MIN_ROW_BYTES > size}
    return list(hollow) if sum(hollow.values()) > FREE_ROWS else []


def iter_blocks(
    connection: Connection, plan: str, condition: str, names: Container[Name] | None = None
) -> Iterator[ResultBlock]:
    """Yield the blocks of a plan's results that meet a condition, oldest first.

    Given a few names, blocks have only these columns.
    """
    query = f"SELECT ended.* FROM ended JOIN found ON id = block WHERE plan = :plan {condition}"  # noqa: S608
    ended: dict[int, list[tuple[int, bytes]]] = {}
    for ended_row in connection.execute(text(query), {"plan": plan}).mappings():
        if not is_intact("ended", ended_row):
            raise DamagedError([f"ended: what run {ended_row['run']} ended of block {ended_row['block']}"])
        ended.setdefault(ended_row["block"], []).append((ended_row["run"], ended_row["places"]))
    for row in iter_packed_blocks(connection, plan, condition):
        with expect_readable(f"found: block {row['id']} of results"):
            columns = unpack_block(row, names)
            until = np.full(count_rows(columns), NEVER_ENDED)
            for run, packed_rows in ended.get(row["id"], ()):
                until[unpack_places(packed_rows, len(until))] = run
        yield ResultBlock(row["id"], row["since"], columns, until)


def unpack_block(row: Any, names: Container[Name] | None = None) -> Columns:
    """Return the columns of a block's database row; raise ValueError if their length is not its number of rows."""
    columns = unpack_columns(row["columns"], names)
    if any(len(column) != row["n"] for column in columns.values()):
        raise ValueError(f"columns that have not {row['n']} rows")
    return columns


def unpack_places(packed: bytes, n_rows: int) -> Integers:
    """Return the rows of a block that a run ended; raise ValueError if the block does not have as many rows."""
    rows = np.asarray(unpack_columns(packed)[PLACES])
    if rows.min(initial=0) < 0 or rows.max(initial=-1) >= n_rows:
        raise ValueError(f"rows beyond {n_rows:,}")
    return rows


def save_blocks(connection: Connection, plan: str, since: int, columns: Columns) -> None:
    """Insert rows of results that a run recorded."""
    for start in range(0, count_rows(columns), MAX_ROWS):
        part = take_rows(columns, slice(start, start + MAX_ROWS))
        values = {"since": since, "n": count_rows(part), "columns": pack_columns(part)}
        insert_row(connection, "found", plan=plan, **values)


def end_rows(connection: Connection, number: int, block: ResultBlock, rows: Integers) -> None:
    """Record that some rows of a block are no longer current since a run."""
    values = {"block": block.number, "run": number, "places": pack_columns({PLACES: rows})}
    connection.execute(build_insert("ended", values), values)
    if (block.until == NEVER_ENDED).sum() == len(rows):
        end_block(connection, number, block.number)


def seal_blocks(connection: Connection, plan: str, number: int) -> None:
    """Write the checksums of blocks that a run inserted or ended."""
    seal_rows(
        connection, "found", "WHERE plan = :plan AND (since = :run OR until = :run)", {"plan": plan, "run": number}
    )
    seal_rows(connection, "ended", "WHERE run = :run", {"run": number})


def end_block(connection: Connection, number: int, block: int) -> None:
    """Record that no row of a block is current any longer since a run."""
    connection.execute(build_update("found", ("until",), ("id",)), {"until": number, "id": block})
