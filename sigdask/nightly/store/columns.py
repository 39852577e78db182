"""Blocks of results in the store: rows that one run recorded, with the later run that replaced each row.

A block is a table of Arrow as compressed bytes of its stream, with a checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.counts.factors import number_rows
from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import build_insert, build_update, insert_row, is_intact, seal_rows
from sigdask.nightly.store.limits import expect_readable
from sigdask.results.columns import CodedColumn
from sigdask.results.table import Table

Rows = NDArray[np.int64]
Integers = NDArray[np.int64]

IDENTITY = ("test_set", "subset.column", "subset.value", "unit", "a", "b", "metric", "alternative")
"""Columns that identify a result from run to run."""


def are_equal(left: Table, right: Table, names: Iterable[str], left_rows: Rows, right_rows: Rows) -> NDArray[np.bool_]:
    """Return a mask of row pairs, one row from each table, that are equal in the given columns."""
    is_equal = np.ones(len(left_rows), np.bool_)
    for name in names:
        a, b = left[name], right[name]
        if isinstance(a, CodedColumn):
            a, b = np.split(CodedColumn.join([a, b]).codes, [len(left)])
        a, b = a[left_rows], b[right_rows]
        is_equal &= (a == b) | ((a != a) & (b != b))  # noqa: PLR0124  # NaN is not itself
    return is_equal


def match_rows(reference: Table, query: Table) -> NDArray[np.int64]:
    """Return, for each row of `query`, the row of `reference` that has the same identity, or -1.

    Equal rows that occur several times are matched in order.
    """
    n = len(reference)
    if not n:
        return np.full(len(query), -1, np.int64)
    key = number_rows(*(CodedColumn.join([reference[name], query[name]]).codes for name in IDENTITY))
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


def pack(data: pa.Table) -> bytes:
    """Return the compressed bytes of columns."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file, pa.ipc.new_stream(file, data.schema) as writer:
        writer.write_table(data)
    return bytes(sink.getvalue())


def unpack(packed: bytes, n_rows: int) -> pa.Table:
    """Return the columns of bytes; raise ValueError if they do not have this number of rows."""
    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as file:
        data = pa.ipc.open_stream(file).read_all()
    if data.num_rows != n_rows:
        raise ValueError(f"columns that have not {n_rows} rows")
    return data


NEVER_ENDED = 2**62
"""Ending run of rows that are still current."""

MAX_ROWS = 2**17
"""Maximum rows of a block."""

COMPARISON, COMPLETE, POSITION = "store.comparison", "store.complete", "store.position"
"""Columns stored with a table: the comparison of p, whether all requested trials were counted, the position in the
run.
"""


@dataclass(frozen=True, slots=True, eq=False)
class ResultBlock:
    """Rows of results that one run recorded, each with the run that replaced it, if any.

    Attributes
    ----------
    number : int
        Number of the block in the store.
    since : int
        Run that recorded the rows.
    table : Table
        The results, with the columns that only the store has.
    until : int64 array, shape (n,)
        Run that replaced each row; `NEVER_ENDED` if it is current.
    """

    number: int
    since: int
    table: Table
    until: Integers


def iter_packed_blocks(connection: Connection, plan: str, condition: str = "") -> Iterator[Any]:
    """Yield the database rows of blocks, still packed.

    Raises
    ------
    DamagedError
        A block differs from what was stored.
    """
    query = text(f"SELECT * FROM found WHERE plan = :plan {condition} ORDER BY id")  # noqa: S608
    for row in connection.execute(query, {"plan": plan}).mappings():
        if not is_intact("found", row):
            raise DamagedError([f"found: block {row['id']} of results"])
        yield row


def iter_blocks(connection: Connection, plan: str, condition: str) -> Iterator[ResultBlock]:
    """Yield the blocks of a plan's results that meet a condition, oldest first."""
    query = f"SELECT ended.* FROM ended JOIN found ON id = block WHERE plan = :plan {condition}"  # noqa: S608
    ended: dict[int, list[Any]] = {}
    for ended_row in connection.execute(text(query), {"plan": plan}).mappings():
        if not is_intact("ended", ended_row):
            raise DamagedError([f"ended: what run {ended_row['run']} ended of block {ended_row['block']}"])
        ended.setdefault(ended_row["block"], []).append(ended_row)
    for row in iter_packed_blocks(connection, plan, condition):
        with expect_readable(f"found: block {row['id']} of results"):
            table = unpack_block(row)
            until = np.full(len(table), NEVER_ENDED)
            for ended_row in ended.get(row["id"], ()):
                until[np.frombuffer(ended_row["places"], "<i4")] = ended_row["run"]
        yield ResultBlock(row["id"], row["since"], table, until)


def unpack_block(row: Any) -> Table:
    """Return the results of a block's database row."""
    return Table(unpack(row["columns"], row["n"]), np.nan)


def save_blocks(connection: Connection, plan: str, since: int, table: Table) -> None:
    """Insert rows of results that a run recorded."""
    for part in table.split(MAX_ROWS):
        values = {"since": since, "n": len(part), "columns": pack(part.data)}
        insert_row(connection, "found", plan=plan, **values)


def end_rows(connection: Connection, number: int, block: ResultBlock, rows: Integers) -> None:
    """Record that some rows of a block are no longer current since a run."""
    values = {"block": block.number, "run": number, "places": rows.astype("<i4").tobytes()}
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
