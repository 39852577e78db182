"""What metrics took from outputs, in the database: bytes under the digest of what they are of.

A store of many nights holds what its plans' files gave, old and new; beyond `MOST_BYTES` those go that no night used
for longest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, text

from sigdask.nightly.store.database import Database, clock

MOST_BYTES = 2**30
"""Of all that a store keeps of this."""

AT_ONCE = 500
"""Keys in one query."""

FRESH = 86400.0
"""Seconds for which the time of last use is not told again, so that a night without changes writes nothing here."""

OLDEST_FIRST = "SELECT digest, size FROM extracted ORDER BY used, digest"


class StoredExtractionCache:
    """Keeps statistics in a store (`sigdask.metrics.extraction.ExtractionCache`).

    Parameters
    ----------
    database : Database
        Open for writing.
    surely : callable
        Makes one transaction, under the driver's lease.
    most_bytes : int
        How much is kept.
    """

    def __init__(
        self,
        database: Database,
        surely: Callable[[Callable[[Connection], None]], None],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._database = database
        self._surely = surely
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return what is kept of some keys."""
        with self._database.writing() as connection:
            return read(connection, keys)

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep entries, in place of those that there are; what was not used for longest makes room."""

        def write_all(connection: Connection) -> None:
            write(connection, entries)
            make_room(connection, self.most_bytes)

        self._surely(write_all)


def read(connection: Connection, keys: Sequence[str]) -> dict[str, bytes]:
    """Read what is kept of some keys, and note that it is used."""
    now = clock(connection)
    query = text("SELECT digest, content, used FROM extracted WHERE digest IN :some").bindparams(_some())
    found: dict[str, bytes] = {}
    stale: list[str] = []
    for some in _chunks(keys):
        for digest, content, used in connection.execute(query, {"some": some}):
            found[digest] = bytes(content)
            if now - used > FRESH:
                stale.append(digest)
    touch = text("UPDATE extracted SET used = :now WHERE digest IN :some").bindparams(_some())
    for some in _chunks(stale):
        connection.execute(touch, {"now": now, "some": some})
    return found


def write(connection: Connection, entries: Mapping[str, bytes]) -> None:
    """Write entries in place of those that there are."""
    now = clock(connection)
    query = text(
        "INSERT INTO extracted (digest, used, size, content) VALUES (:d, :now, :n, :c) ON CONFLICT (digest) DO UPDATE "
        "SET used = excluded.used, size = excluded.size, content = excluded.content"
    )
    rows: list[dict[str, Any]] = [{"d": d, "now": now, "n": len(c), "c": c} for d, c in entries.items()]
    if rows:
        connection.execute(query, rows)


def make_room(connection: Connection, most_bytes: int) -> None:
    """Remove what was not used for longest until nine tenths of the room are taken, where it is more than all."""
    over = connection.execute(text("SELECT coalesce(sum(size), 0) FROM extracted")).scalar_one() - most_bytes
    if over <= 0:
        return
    over += most_bytes // 10
    gone = []
    for digest, size in connection.execute(text(OLDEST_FIRST)):
        if over <= 0:
            break
        gone.append(digest)
        over -= size
    remove = text("DELETE FROM extracted WHERE digest IN :some").bindparams(_some())
    for some in _chunks(gone):
        connection.execute(remove, {"some": some})


def _some() -> sa.BindParameter[Any]:
    return sa.bindparam("some", expanding=True)


def _chunks(keys: Sequence[str]) -> Iterator[list[str]]:
    return (list(keys[start : start + AT_ONCE]) for start in range(0, len(keys), AT_ONCE))
