"""Blocks of results: rows that one run recorded, as columns, with the later run that replaced each row."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import is_intact, seal_rows
from sigdask.nightly.store.columns import Columns, Name, count_rows, take_rows
from sigdask.nightly.store.packing import pack_columns, unpack_columns

Integers = NDArray[np.int64]

NEVER_ENDED = 2**62
"""The run that ended what holds."""

MOST_ROWS = 2**17
"""Rows of a block."""

COMPARISON, COMPLETE, POSITION = STORE_COLUMNS = ("comparison",), ("complete",), ("position",)
"""What stands beside a table: the comparison of p, whether all trials asked for were counted, the place in the run."""

PLACES: Name = ("places",)


@dataclass(frozen=True, slots=True, eq=False)
class ResultBlock:
    """Rows of results that one run recorded, each with the run that replaced it, if any.

    Attributes
    ----------
    number : int
        In the store.
    since : int
        The run.
    is_earlier : bool
        Kept by a version whose notes were sentences.
    columns : mapping of name to column
        Those of the table, and `STORE_COLUMNS`.
    until : int64 array, shape (n,)
        The run that found otherwise; `NEVER_ENDED` where none has.
    """

    number: int
    since: int
    is_earlier: bool
    columns: Columns
    until: Integers


def iter_packed_blocks(connection: Connection, plan: str, condition: str = "") -> Iterator[Any]:
    """Yield the database rows of blocks, still packed.

    Raises
    ------
    DamagedError
        One is not what was kept.
    """
    query = text(f"SELECT * FROM found WHERE plan = :plan {condition} ORDER BY id")  # noqa: S608
    for row in connection.execute(query, {"plan": plan}).mappings():
        if not is_intact("found", row):
            raise DamagedError([f"found: block {row['id']} of results"])
        yield row


def iter_blocks(
    connection: Connection, plan: str, condition: str, names: Container[Name] | None = None
) -> Iterator[ResultBlock]:
    """Yield the blocks of a plan's results that meet a condition, oldest first.

    Of a few names, blocks have these columns alone.
    """
    query = f"SELECT ended.* FROM ended JOIN found ON id = block WHERE plan = :plan {condition}"  # noqa: S608
    ended: dict[int, list[tuple[int, bytes]]] = {}
    for ended_row in connection.execute(text(query), {"plan": plan}).mappings():
        if not is_intact("ended", ended_row):
            raise DamagedError([f"ended: what run {ended_row['run']} ended of block {ended_row['block']}"])
        ended.setdefault(ended_row["block"], []).append((ended_row["run"], ended_row["places"]))
    for row in iter_packed_blocks(connection, plan, condition):
        columns = unpack_columns(row["columns"], names)
        until = np.full(count_rows(columns), NEVER_ENDED)
        for run, packed_rows in ended.get(row["id"], ()):
            until[np.asarray(unpack_columns(packed_rows)[PLACES])] = run
        yield ResultBlock(row["id"], row["since"], bool(row["earlier"]), columns, until)


def save_blocks(
    connection: Connection, plan: str, since: int, columns: Columns, *, is_earlier: bool = False
) -> list[int]:
    """Insert rows of results that a run recorded; return the numbers of their blocks."""
    insert = text(
        "INSERT INTO found (plan, since, n, earlier, columns) VALUES (:plan, :since, :n, :earlier, :columns) "
        "RETURNING id"
    )
    numbers = []
    for start in range(0, count_rows(columns), MOST_ROWS):
        part = take_rows(columns, slice(start, start + MOST_ROWS))
        row = {
            "plan": plan,
            "since": since,
            "n": count_rows(part),
            "earlier": int(is_earlier),
            "columns": pack_columns(part),
        }
        numbers.append(int(connection.execute(insert, row).scalar_one()))
    return numbers


def end_rows(connection: Connection, number: int, block: ResultBlock, rows: Integers) -> None:
    """Record that some rows of a block are no longer current since a run."""
    insert = text("INSERT INTO ended (block, run, places) VALUES (:block, :run, :places)")
    connection.execute(insert, {"block": block.number, "run": number, "places": pack_columns({PLACES: rows})})
    if (block.until == NEVER_ENDED).sum() == len(rows):
        end_block(connection, number, block.number)


def seal_blocks(connection: Connection, plan: str, number: int, changed: Iterable[int]) -> None:
    """Write the checksums of blocks that a run inserted, changed or ended."""
    seal_rows(
        connection, "found", "WHERE plan = :plan AND (since = :run OR until = :run)", {"plan": plan, "run": number}
    )
    seal_rows(connection, "ended", "WHERE run = :run", {"run": number})
    for block in changed:
        seal_rows(connection, "found", "WHERE id = :block", {"block": block})


def end_block(connection: Connection, number: int, block: int) -> None:
    """Record that no row of a block is current any longer since a run."""
    connection.execute(text("UPDATE found SET until = :run WHERE id = :block"), {"run": number, "block": block})
