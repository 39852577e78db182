"""Checksums of rows, which show whether a row is read as it was written.

Checksums of tallies are computed for thousands of rows at once. They include the digest of the comparison, so that a
row that was moved to another comparison is detected too. Values are mixed as in SplitMix64. Each step can be inverted,
so a change of one value always changes the 64 bits. 31 of them are kept, because databases store these in four bytes.

References
----------
Steele, Lea and Flood (2014), Fast splittable pseudorandom number generators, OOPSLA, figure 16.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, TextClause, text

Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]

KEY_BYTES = 24
"""Bytes of a digest, padded to whole words."""

MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(33)


def compute_keys(digests: Sequence[bytes]) -> Keys:
    """Return a number for each comparison from its whole digest, which enters the checksums of its rows."""
    padded = b"".join([bytes(digest[:KEY_BYTES]).ljust(KEY_BYTES, b"\0") for digest in digests])
    words = np.frombuffer(padded, "<u8").reshape(-1, KEY_BYTES // 8)
    return np.asarray(words[:, 0] ^ words[:, 1] * MULTIPLIERS[0] ^ words[:, 2] * MULTIPLIERS[1], np.uint64)


def compute_tally_checksums(keys: Keys, run: Integers, first: Integers, stop: Integers, counts: Integers) -> Integers:
    """Return checksums from arrays of shape (n,), and counts of shape (n, 3)."""
    mixed = keys.copy()
    for values in (run, first, stop, *counts.T):
        mixed ^= values.astype(np.uint64)
        mixed ^= mixed >> SHIFTS[0]
        mixed *= MULTIPLIERS[0]
        mixed ^= mixed >> SHIFTS[1]
        mixed *= MULTIPLIERS[1]
    return np.asarray(mixed >> SHIFTS[2], np.int64)


def are_possible(first: Integers, stop: Integers, counts: Integers) -> NDArray[np.bool_]:
    """Return a mask of tallies whose counts are consistent, so that trials can have produced them.

    A trial that is extreme on the side of the observed difference is also extreme two-sided, and a trial that is
    extreme two-sided is extreme on one side: min(greater, less) <= two-sided <= greater + less.
    """
    greater, less, two_sided = counts.T
    is_within = (counts >= 0).all(axis=1) & (counts <= (stop - first)[:, None]).all(axis=1)
    return np.asarray(is_within & (np.minimum(greater, less) <= two_sided) & (two_sided - greater <= less))


def compute_checksum(values: Sequence[Any]) -> int:
    """Return the checksum of a row of numbers, texts, bytes or None.

    Examples
    --------
    >>> (compute_checksum((1, "a", None)) == compute_checksum((1, "a", None)),
    ...  compute_checksum((1, "a")) == compute_checksum((1, b"a")))
    (True, False)
    """
    parts = []
    for value in values:
        is_bytes = isinstance(value, bytes | bytearray | memoryview)
        data = bytes(value) if is_bytes else repr(value).encode("utf-8", "surrogatepass")
        parts += [b"%d %d " % (is_bytes, len(data)), data]
    return zlib.crc32(b"".join(parts))


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table in which each row has a checksum.

    Attributes
    ----------
    key : tuple of str
        Columns that identify a row.
    values : tuple of str
        Its other columns.
    source : str
        SQL source of its rows.
    """

    key: tuple[str, ...]
    values: tuple[str, ...]
    source: str


SEALED: Mapping[str, SealedTable] = {
    "arrays": SealedTable(
        ("comparison", "run", "first"), ("stop", "counts", "digest"), "arrays LEFT JOIN comparisons ON comparison = id"
    ),
    "runs": SealedTable(
        ("id",), ("plan", "path", "started", "ended", "state", "host", "pid", "details", "message"), "runs"
    ),
    "progress": SealedTable(
        ("run", "position"), ("test_set", "comparisons", "reached", "finished", "kept", "counted", "wanted"), "progress"
    ),
    "found": SealedTable(("id",), ("plan", "since", "until", "n", "columns"), "found"),
    "ended": SealedTable(("block", "run"), ("places",), "ended"),
}
"""Columns that a checksum covers, by table. The time at which a run was last active changes each second and is not
covered. Tallies have checksums of their own.
"""


def is_intact(table: str, row: Any) -> bool:
    """Return whether a row matches its checksum."""
    return bool(row["checksum"] == compute_row_checksum(table, row))


def compute_row_checksum(table: str, row: Any) -> int:
    """Return the checksum of a row, a mapping from the names of columns to values."""
    return compute_checksum([row[name] for name in (*SEALED[table].key, *SEALED[table].values)])


def iter_sealed_rows(
    connection: Connection, table: str, where: str = "", values: Mapping[str, Any] | None = None
) -> Iterator[Any]:
    """Yield the rows of a table with all columns, as mappings."""
    query = f"SELECT * FROM {SEALED[table].source} {where}"  # noqa: S608
    yield from connection.execute(text(query), values or {}).mappings()


def seal_rows(connection: Connection, table: str, where: str = "", values: Mapping[str, Any] | None = None) -> None:
    """Write the checksums of rows of a table."""
    key = SEALED[table].key
    updates = [
        {**{name: row[name] for name in key}, "checksum": compute_row_checksum(table, row)}
        for row in iter_sealed_rows(connection, table, where, values)
    ]
    if updates:
        connection.execute(build_update(table, ("checksum",), key), updates)


def insert_row(connection: Connection, table: str, **values: Any) -> int:
    """Insert a row without its checksum; return its number."""
    return int(connection.execute(text(f"{build_insert(table, values)} RETURNING id"), values).scalar_one())


def change_row(connection: Connection, table: str, number: int, **values: Any) -> None:
    """Change values of a row, and update its checksum."""
    connection.execute(build_update(table, values, ("id",)), {**values, "id": number})
    seal_rows(connection, table, "WHERE id = :id", {"id": number})


def build_insert(table: str, names: Iterable[str]) -> TextClause:
    """Return the statement that inserts a row with values of the given names."""
    names = list(names)
    return text(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})")  # noqa: S608


def build_update(table: str, names: Iterable[str], key: Iterable[str]) -> TextClause:
    """Return the statement that changes values of the given names in the row with a key."""
    changes, conditions = (sep.join(f"{n} = :{n}" for n in part) for sep, part in ((", ", names), (" AND ", key)))
    return text(f"UPDATE {table} SET {changes} WHERE {conditions}")  # noqa: S608
