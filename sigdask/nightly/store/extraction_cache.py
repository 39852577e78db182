"""The extraction cache in the database: bytes by the digest of what they were extracted from.

If the cache has more than `MAX_BYTES`, entries that were not used for longest are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection

from sigdask.nightly.store.schema import EXTRACTED, upsert

MAX_BYTES = 2**30
"""Maximum bytes of all cached extractions in a store."""

AT_ONCE = 500
"""Keys in one query."""

FRESH_SECONDS = 86400.0
"""Seconds for which the time of last use is not updated, so that a night without changes writes nothing here."""

Write = Callable[[Callable[[Connection], Mapping[str, bytes]]], Mapping[str, bytes]]


class StoredExtractionCache:
    """Extracted statistics in a store (`sigdask.metrics.extraction.ExtractionCache`).

    Parameters
    ----------
    write : callable
        Calls a function in a transaction that writes.
    most_bytes : int
        Maximum size of the cache.
    """

    def __init__(self, write: Write, most_bytes: int = MAX_BYTES) -> None:
        self._write = write
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes by key, for those keys that the cache has, and record that they were used."""
        return self._write(lambda connection: _read(connection, keys))

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries, which replace others of the same key; if the cache is full, old ones are removed."""

        def write(connection: Connection) -> Mapping[str, bytes]:
            insert = upsert(connection, EXTRACTED)
            changes = {name: insert.excluded[name] for name in ("used", "content")}
            rows = [
                {"digest": key, "used": time.time(), "content": content} for key, content in sorted(entries.items())
            ]
            if rows:
                connection.execute(insert.on_conflict_do_update(index_elements=["digest"], set_=changes), rows)
            _make_room(connection, self.most_bytes)
            return {}

        self._write(write)


def _read(connection: Connection, keys: Sequence[str]) -> Mapping[str, bytes]:
    now, contents = time.time(), {}
    for start in range(0, len(keys), AT_ONCE):
        is_found = EXTRACTED.c.digest.in_(keys[start : start + AT_ONCE])
        rows = connection.execute(sa.select(EXTRACTED).where(is_found)).all()
        contents.update({row.digest: bytes(row.content) for row in rows})
        if any(abs(now - row.used) > FRESH_SECONDS for row in rows):
            connection.execute(sa.update(EXTRACTED).where(is_found).values(used=now))
    return contents


def _make_room(connection: Connection, most_bytes: int) -> None:
    """If the cache is full, remove entries, those unused for longest first, until a tenth of it is free."""
    size = sa.func.length(EXTRACTED.c.content)
    if (connection.execute(sa.select(sa.func.sum(size))).scalar_one() or 0) <= most_bytes:
        return
    n_bytes = sa.func.sum(size).over(order_by=[EXTRACTED.c.used.desc(), EXTRACTED.c.digest.desc()])
    latest_first = sa.select(EXTRACTED.c.digest, n_bytes.label("n_bytes")).subquery()
    is_over = latest_first.c.n_bytes > most_bytes - most_bytes // 10
    connection.execute(
        sa.delete(EXTRACTED).where(EXTRACTED.c.digest.in_(sa.select(latest_first.c.digest).where(is_over)))
    )
