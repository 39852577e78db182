"""Blocks of results: rows that one run found, in columns, and which of them later runs found otherwise."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from sigdask.errors import DamagedError
from sigdask.nightly.store.checksums import is_whole, seal
from sigdask.nightly.store.columns import Columns, Name, size_of, taken
from sigdask.nightly.store.packing import packed, unpacked

Integers = NDArray[np.int64]

HOLDS = 2**62
"""The run that ended what holds."""

MOST_ROWS = 2**17
"""Rows of a block."""

COMPARISON, COMPLETE, POSITION = OWN = ("comparison",), ("complete",), ("position",)
"""What stands beside a table: the comparison of p, whether all trials asked for were counted, the place in the run."""

PLACES: Name = ("places",)


@dataclass(frozen=True, slots=True, eq=False)
class ResultBlock:
    """Rows that one run found.

    Attributes
    ----------
    number : int
        In the store.
    since : int
        The run.
    is_earlier : bool
        Kept by a version whose notes were sentences.
    columns : mapping of name to column
        Those of the table, and `OWN`.
    until : int64 array, shape (n,)
        The run that found otherwise; `HOLDS` where none has.
    """

    number: int
    since: int
    is_earlier: bool
    columns: Columns
    until: Integers


def listed(connection: Connection, plan: str, where: str = "") -> Iterator[Any]:
    """Yield the rows of blocks, packed as they are.

    Raises
    ------
    DamagedError
        One is not what was kept.
    """
    query = text(f"SELECT * FROM found WHERE plan = :plan {where} ORDER BY id")  # noqa: S608
    for row in connection.execute(query, {"plan": plan}).mappings():
        if not is_whole("found", row):
            raise DamagedError([f"found: block {row['id']} of results"])
        yield row


def blocks_of(
    connection: Connection, plan: str, where: str, names: Container[Name] | None = None
) -> Iterator[ResultBlock]:
    """Yield the blocks of a plan's results that a condition holds of, in the order in which they were found.

    Of a few names, blocks have these columns alone.
    """
    query = f"SELECT ended.* FROM ended JOIN found ON id = block WHERE plan = :plan {where}"  # noqa: S608
    ended: dict[int, list[tuple[int, bytes]]] = {}
    for own in connection.execute(text(query), {"plan": plan}).mappings():
        if not is_whole("ended", own):
            raise DamagedError([f"ended: what run {own['run']} ended of block {own['block']}"])
        ended.setdefault(own["block"], []).append((own["run"], own["places"]))
    for row in listed(connection, plan, where):
        columns = unpacked(row["columns"], names)
        until = np.full(size_of(columns), HOLDS)
        for run, places in ended.get(row["id"], ()):
            until[np.asarray(unpacked(places)[PLACES])] = run
        yield ResultBlock(row["id"], row["since"], bool(row["earlier"]), columns, until)


def keep(connection: Connection, plan: str, since: int, columns: Columns, *, is_earlier: bool = False) -> list[int]:
    """Enter rows that a run found; return the numbers of their blocks."""
    insert = text(
        "INSERT INTO found (plan, since, n, earlier, columns) VALUES (:plan, :since, :n, :earlier, :columns) "
        "RETURNING id"
    )
    numbers = []
    for first in range(0, size_of(columns), MOST_ROWS):
        own = taken(columns, slice(first, first + MOST_ROWS))
        row = {"plan": plan, "since": since, "n": size_of(own), "earlier": int(is_earlier), "columns": packed(own)}
        numbers.append(int(connection.execute(insert, row).scalar_one()))
    return numbers


def end(connection: Connection, number: int, block: ResultBlock, rows: Integers) -> None:
    """Say of some rows of a block that a run found otherwise."""
    insert = text("INSERT INTO ended (block, run, places) VALUES (:block, :run, :places)")
    connection.execute(insert, {"block": block.number, "run": number, "places": packed({PLACES: rows})})
    if (block.until == HOLDS).sum() == len(rows):
        end_whole(connection, number, block.number)


def seal_all(connection: Connection, plan: str, number: int, changed: Iterable[int]) -> None:
    """Give checksums to what a run has written: blocks it found, changed or ended, and what it ended of them."""
    seal(connection, "found", "WHERE plan = :plan AND (since = :run OR until = :run)", {"plan": plan, "run": number})
    seal(connection, "ended", "WHERE run = :run", {"run": number})
    for block in changed:
        seal(connection, "found", "WHERE id = :block", {"block": block})


def end_whole(connection: Connection, number: int, block: int) -> None:
    """Say of a block that none of its rows holds after a run."""
    connection.execute(text("UPDATE found SET until = :run WHERE id = :block"), {"run": number, "block": block})
