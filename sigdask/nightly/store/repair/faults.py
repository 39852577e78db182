"""What of a store is not as it was kept, found by looking at every row."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection, exc, text

from sigdask.metrics.extraction.packed import unpack
from sigdask.nightly.store import tallies
from sigdask.nightly.store.checksums import SEALED, are_possible, is_whole, keys_of, rows_of
from sigdask.nightly.store.database import fault_of_file
from sigdask.nightly.store.migrations import WITH_CHECKSUMS, version_of
from sigdask.nightly.store.packing import unpacked

COMPARISONS_AT_ONCE = 50_000

TABLES = ("tallies", *SEALED, "comparisons", "extracted", "leases")

RUNS = 2**16
"""More than a comparison has."""

PACKED = {"found": "columns", "ended": "places"}

CALLED = {
    "arrays": "comparison {comparison}, run {run}, trials from {first}",
    "runs": "run {id} of plan {plan}",
    "progress": "how far run {run} came, test set {position}",
    "found": "block {id} of results",
    "ended": "what run {run} ended of block {block}",
}

BELONGS = (("progress", "run", "runs"), ("found", "since", "runs"), ("ended", "block", "found"))
"""Rows, and what they are nothing without: tables and the column that names it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a row.

    Attributes
    ----------
    table : str
        Where it is; empty where the file as such is damaged.
    key : tuple
        The row, by the columns that it is known by; empty where it is none.
    text : str
        What it is called, and what is wrong.
    """

    table: str
    key: tuple[Any, ...]
    text: str


def n_rows_in(connection: Connection) -> int:
    """Return the number of rows, as far as they can be counted."""
    found = 0
    for table in TABLES:
        try:
            with connection.begin_nested():
                found += connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
        except (exc.SQLAlchemyError, UnicodeDecodeError):
            continue
    return found


def faults_in(connection: Connection) -> Iterator[Fault]:
    """Yield what is wrong, table by table."""
    if connection.dialect.name == "sqlite":
        yield from _of_file(connection)
    if version_of(connection) < WITH_CHECKSUMS:
        yield from _looked_at(connection, "tallies", _impossible)
        return
    yield from _looked_at(connection, "tallies", _of_tallies)
    for table in SEALED:
        yield from _looked_at(connection, table, _of_sealed, table)
    for each in BELONGS:
        yield from _looked_at(connection, each[0], _orphans, *each)
    yield from _looked_at(connection, "extracted", _of_extracted)
    yield from _looked_at(connection, "leases", _of_leases)


def _looked_at(connection: Connection, table: str, look: Any, *more: Any) -> Iterator[Fault]:
    """Yield what is found of a table; where it cannot be read, that."""
    try:
        with connection.begin_nested():
            yield from list(look(connection, *more))
    except (exc.SQLAlchemyError, ValueError, TypeError) as error:
        why = str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__]
        yield Fault("", (), f"{table}: cannot be read ({why[0]})")


def _of_file(connection: Connection) -> Iterator[Fault]:
    if (fault := fault_of_file(Path(connection.engine.url.database or ""))) is not None:
        yield Fault("", (), f"the file: {fault}")
    try:
        for (words,) in connection.execute(text("PRAGMA integrity_check(20)")):
            if words != "ok":
                yield Fault("", (), f"the file: {' '.join(str(words).split())}")
    except exc.DBAPIError as error:
        yield Fault("", (), f"the file: {error.orig}")


TALLIES = (
    "SELECT comparison, run, first, stop, greater, less, two_sided, {checksum}, digest FROM tallies "
    "LEFT JOIN comparisons ON comparison = id WHERE {range}"
)


def _of_tallies(connection: Connection) -> Iterator[Fault]:
    for rows in _parts(connection, "checksum"):
        values = _numbers(rows)
        keys = keys_of([b"" if row[-1] is None else row[-1] for row in rows])
        is_known = np.array([row[-1] is not None for row in rows], np.bool_)
        whole = is_known & tallies.are_whole(keys, values[:, 1], values[:, 2:])
        yield from _told(rows, whole)
        yield from _gaps(values, whole)


def _impossible(connection: Connection) -> Iterator[Fault]:
    for rows in _parts(connection, "-1"):
        yield from _told(rows, _are_possible(_numbers(rows)))


def _are_possible(values: Any) -> Any:
    return are_possible(values[:, 2], values[:, 3], values[:, 4:7])


def _parts(connection: Connection, checksum: str) -> Iterator[Sequence[Any]]:
    last = connection.execute(text("SELECT max(id) FROM comparisons")).scalar_one() or 0
    lows = range(0, last + 1, COMPARISONS_AT_ONCE)
    for low in lows:
        ends = [f"comparison >= {low}"] if low else []
        ends += [f"comparison < {low + COMPARISONS_AT_ONCE}"] if low != lows[-1] else []
        query = TALLIES.format(checksum=checksum, range=" AND ".join(ends) or "1 = 1")
        if rows := connection.execute(text(query)).all():
            yield rows


def _numbers(rows: Sequence[Any]) -> Any:
    """Return rows without their digests; what is no number in them is -1, which none of them holds."""
    return np.array([[v if type(v) is int else -1 for v in row[:-1]] for row in rows], np.int64)


def _told(rows: Sequence[Any], whole: Any) -> Iterator[Fault]:
    is_possible = _are_possible(_numbers(rows))
    for k in np.flatnonzero(~whole).tolist():
        why = "another checksum" if is_possible[k] else "counts that no trials give"
        yield Fault("tallies", tuple(rows[k][:3]), f"{_called(*rows[k][:4])}: {why}")


def _called(comparison: Any, run: Any, first: Any, stop: Any) -> str:
    if all(type(value) is int for value in (comparison, run, first, stop)):
        return tallies.told(comparison, run, first, stop)
    return f"tallies: comparison {comparison!r}, run {run!r}, trials from {first!r}"


def _gaps(values: Any, whole: Any) -> Iterator[Fault]:
    """Yield what is missing before rows, where no damaged one stands for it."""
    runs = values[:, 0] * RUNS + values[:, 1]
    values = values[whole & ~np.isin(runs, runs[~whole])]
    number, run, first, stop = values[np.lexsort((values[:, 2], values[:, 1], values[:, 0]))][:, :4].T
    is_new = (np.diff(number, prepend=-1) != 0) | (np.diff(run, prepend=-1) != 0)
    before = np.where(is_new, 0, np.roll(stop, 1))
    for k in np.flatnonzero(first != before).tolist():
        called = tallies.told(number[k], run[k], before[k], first[k])
        yield Fault("tallies", (), f"{called}, are missing")


def _of_sealed(connection: Connection, table: str) -> Iterator[Fault]:
    for row in rows_of(connection, table):
        if not (is_whole(table, row) and _can_be_read(table, row)):
            key = tuple(row[name] for name in SEALED[table].key)
            yield Fault(table, key, f"{table}: {CALLED[table].format(**row)}")


def _can_be_read(table: str, row: Any) -> bool:
    """Say whether bytes and JSON are some; stores of versions before had rows without checksums."""
    try:
        if table in PACKED:
            unpacked(row[PACKED[table]])
        elif table == "runs":
            json.loads(row["details"])
    except (ValueError, TypeError, KeyError, IndexError, zlib.error, struct.error):
        return False
    return table != "arrays" or tallies.is_sound(row)


def _orphans(connection: Connection, table: str, column: str, parent: str) -> Iterator[Fault]:
    names = ", ".join(SEALED[table].key)
    query = f"SELECT {names} FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})"  # noqa: S608
    for row in connection.execute(text(query)).mappings():
        yield Fault(table, tuple(row.values()), f"{table}: {CALLED[table].format(**row)}, which is not there")


def _of_extracted(connection: Connection) -> Iterator[Fault]:
    for digest, content in connection.execute(text("SELECT digest, content FROM extracted")):
        if not isinstance(content, bytes) or unpack(digest, content) is None:
            yield Fault("extracted", (digest,), f"extracted: {digest!r}")


def _of_leases(connection: Connection) -> Iterator[Fault]:
    for name, holder in connection.execute(text("SELECT name, holder FROM leases")):
        try:
            json.loads(holder)
        except (ValueError, TypeError):
            yield Fault("leases", (name,), f"leases: that of {name!r}")
