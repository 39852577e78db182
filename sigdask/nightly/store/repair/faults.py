"""Search for the damaged rows of a store, checking every row."""

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

from sigdask.metrics.extraction.serialization import unpack_statistics
from sigdask.nightly.store import tallies
from sigdask.nightly.store.checksums import SEALED, are_possible, compute_keys, is_intact, iter_sealed_rows
from sigdask.nightly.store.database import find_file_fault
from sigdask.nightly.store.migrations import WITH_CHECKSUMS, read_version
from sigdask.nightly.store.packing import unpack_columns

COMPARISONS_AT_ONCE = 50_000

TABLES = ("tallies", *SEALED, "comparisons", "extracted", "leases")

MAX_RUNS = 2**16
"""More than a comparison has."""

PACKED_COLUMNS = {"found": "columns", "ended": "places"}

ROW_DESCRIPTIONS = {
    "arrays": "comparison {comparison}, run {run}, trials from {first}",
    "runs": "run {id} of plan {plan}",
    "progress": "how far run {run} came, test set {position}",
    "found": "block {id} of results",
    "ended": "what run {run} ended of block {block}",
}

PARENTS = (("progress", "run", "runs"), ("found", "since", "runs"), ("ended", "block", "found"))
"""Rows, and what they are nothing without: tables and the column that names it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a store, with the row that it is in, if any.

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


def count_rows(connection: Connection) -> int:
    """Return the number of rows in all tables that can be read."""
    n_rows = 0
    for table in TABLES:
        try:
            with connection.begin_nested():
                n_rows += connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
        except (exc.SQLAlchemyError, UnicodeDecodeError):
            continue
    return n_rows


def iter_faults(connection: Connection) -> Iterator[Fault]:
    """Yield what is damaged or missing, table by table."""
    if connection.dialect.name == "sqlite":
        yield from _check_file(connection)
    if read_version(connection) < WITH_CHECKSUMS:
        yield from _check_table(connection, "tallies", _check_counts)
        return
    yield from _check_table(connection, "tallies", _check_tallies)
    for table in SEALED:
        yield from _check_table(connection, table, _check_sealed, table)
    for relation in PARENTS:
        yield from _check_table(connection, relation[0], _check_parents, *relation)
    yield from _check_table(connection, "extracted", _check_extracted)
    yield from _check_table(connection, "leases", _check_leases)


def _check_table(connection: Connection, table: str, check: Any, *arguments: Any) -> Iterator[Fault]:
    """Yield the faults that a check finds in a table, or a single fault if the table cannot be read."""
    try:
        with connection.begin_nested():
            yield from list(check(connection, *arguments))
    except (exc.SQLAlchemyError, ValueError, TypeError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines() or [type(error).__name__]
        yield Fault("", (), f"{table}: cannot be read ({reason[0]})")


def _check_file(connection: Connection) -> Iterator[Fault]:
    if (fault := find_file_fault(Path(connection.engine.url.database or ""))) is not None:
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


def _check_tallies(connection: Connection) -> Iterator[Fault]:
    for rows in _iter_tally_rows(connection, "checksum"):
        values = _to_array(rows)
        keys = compute_keys([b"" if row[-1] is None else row[-1] for row in rows])
        is_known = np.array([row[-1] is not None for row in rows], np.bool_)
        is_intact = is_known & tallies.are_intact(keys, values[:, 1], values[:, 2:])
        yield from _iter_row_faults(rows, is_intact)
        yield from _iter_gaps(values, is_intact)


def _check_counts(connection: Connection) -> Iterator[Fault]:
    for rows in _iter_tally_rows(connection, "-1"):
        yield from _iter_row_faults(rows, _are_possible(_to_array(rows)))


def _are_possible(values: Any) -> Any:
    return are_possible(values[:, 2], values[:, 3], values[:, 4:7])


def _iter_tally_rows(connection: Connection, checksum: str) -> Iterator[Sequence[Any]]:
    max_id = connection.execute(text("SELECT max(id) FROM comparisons")).scalar_one() or 0
    lows = range(0, max_id + 1, COMPARISONS_AT_ONCE)
    for low in lows:
        ends = [f"comparison >= {low}"] if low else []
        ends += [f"comparison < {low + COMPARISONS_AT_ONCE}"] if low != lows[-1] else []
        query = TALLIES.format(checksum=checksum, range=" AND ".join(ends) or "1 = 1")
        if rows := connection.execute(text(query)).all():
            yield rows


def _to_array(rows: Sequence[Any]) -> Any:
    """Return rows without their last column, the digest; values that are not integers become -1, which is invalid."""
    return np.array([[v if type(v) is int else -1 for v in row[:-1]] for row in rows], np.int64)


def _iter_row_faults(rows: Sequence[Any], is_intact: Any) -> Iterator[Fault]:
    is_possible = _are_possible(_to_array(rows))
    for k in np.flatnonzero(~is_intact).tolist():
        reason = "another checksum" if is_possible[k] else "counts that no trials give"
        yield Fault("tallies", tuple(rows[k][:3]), f"{_describe_row(*rows[k][:4])}: {reason}")


def _describe_row(comparison: Any, run: Any, first: Any, stop: Any) -> str:
    if all(type(value) is int for value in (comparison, run, first, stop)):
        return tallies.describe_row(comparison, run, first, stop)
    return f"tallies: comparison {comparison!r}, run {run!r}, trials from {first!r}"


def _iter_gaps(values: Any, is_intact: Any) -> Iterator[Fault]:
    """Yield a fault for each range of trials missing before a stored row, except of comparisons with damaged rows."""
    runs = values[:, 0] * MAX_RUNS + values[:, 1]
    values = values[is_intact & ~np.isin(runs, runs[~is_intact])]
    number, run, first, stop = values[np.lexsort((values[:, 2], values[:, 1], values[:, 0]))][:, :4].T
    is_new = (np.diff(number, prepend=-1) != 0) | (np.diff(run, prepend=-1) != 0)
    expected = np.where(is_new, 0, np.roll(stop, 1))
    for k in np.flatnonzero(first != expected).tolist():
        description = tallies.describe_row(number[k], run[k], expected[k], first[k])
        yield Fault("tallies", (), f"{description}, are missing")


def _check_sealed(connection: Connection, table: str) -> Iterator[Fault]:
    for row in iter_sealed_rows(connection, table):
        if not (is_intact(table, row) and _can_unpack(table, row)):
            key = tuple(row[name] for name in SEALED[table].key)
            yield Fault(table, key, f"{table}: {ROW_DESCRIPTIONS[table].format(**row)}")


def _can_unpack(table: str, row: Any) -> bool:
    """Return whether a row's packed bytes or JSON can be read. Rows of earlier versions have no checksum to show it."""
    try:
        if table in PACKED_COLUMNS:
            unpack_columns(row[PACKED_COLUMNS[table]])
        elif table == "runs":
            json.loads(row["details"])
    except (ValueError, TypeError, KeyError, IndexError, zlib.error, struct.error):
        return False
    return table != "arrays" or tallies.is_sound(row)


def _check_parents(connection: Connection, table: str, column: str, parent: str) -> Iterator[Fault]:
    names = ", ".join(SEALED[table].key)
    query = f"SELECT {names} FROM {table} WHERE {column} NOT IN (SELECT id FROM {parent})"  # noqa: S608
    for row in connection.execute(text(query)).mappings():
        yield Fault(table, tuple(row.values()), f"{table}: {ROW_DESCRIPTIONS[table].format(**row)}, which is not there")


def _check_extracted(connection: Connection) -> Iterator[Fault]:
    for digest, content in connection.execute(text("SELECT digest, content FROM extracted")):
        if not isinstance(content, bytes) or unpack_statistics(digest, content) is None:
            yield Fault("extracted", (digest,), f"extracted: {digest!r}")


def _check_leases(connection: Connection) -> Iterator[Fault]:
    for name, holder in connection.execute(text("SELECT name, holder FROM leases")):
        try:
            json.loads(holder)
        except (ValueError, TypeError):
            yield Fault("leases", (name,), f"leases: that of {name!r}")
