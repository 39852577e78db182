"""The extraction cache in the database: bytes by the digest of what they were extracted from.

If the cache has more than `MAX_BYTES`, entries that were not used for longest are deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy import Connection, text

from sigdask.nightly.store.checksums import build_insert
from sigdask.nightly.store.database import Database, read_clock

MAX_BYTES = 2**30
"""Maximum bytes of all cached extractions in a store."""

AT_ONCE = 500
"""Keys in one query."""

FRESH_SECONDS = 86400.0
"""Seconds for which the time of last use is not updated, so that a night without changes writes nothing here."""

DIGEST = sa.column("digest", sa.String)
EXTRACTED = sa.table("extracted", DIGEST, sa.column("content", sa.LargeBinary), sa.column("used", sa.Float))

OLDEST_FIRST = "SELECT digest, size FROM extracted ORDER BY used, digest"


class StoredExtractionCache:
    """Extracted statistics in a store (`sigdask.metrics.extraction.ExtractionCache`).

    Parameters
    ----------
    database : Database
        Open for writing.
    commit_once : callable
        Commits one transaction under the driver's lease.
    most_bytes : int
        Maximum size of the cache.
    """

    def __init__(
        self,
        database: Database,
        commit_once: Callable[[Callable[[Connection], None]], None],
        most_bytes: int = MAX_BYTES,
    ) -> None:
        self._database = database
        self._commit_once = commit_once
        self.most_bytes = most_bytes

    def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Return the stored bytes by key, for those keys that the cache has."""
        with self._database.write_transaction() as connection:
            return read(connection, keys)

    def put(self, entries: Mapping[str, bytes]) -> None:
        """Store entries; if the cache is full, those unused for longest are removed."""

        def write_all(connection: Connection) -> None:
            write_entries(connection, entries)
            make_room(connection, self.most_bytes)

        self._commit_once(write_all)


def read(connection: Connection, keys: Sequence[str]) -> dict[str, bytes]:
    """Read the stored bytes of some keys, and record that they were used."""
    now = read_clock(connection)
    contents: dict[str, bytes] = {}
    stale: list[str] = []
    for chunk in _split_keys(keys):
        for digest, content, used in connection.execute(sa.select(EXTRACTED).where(DIGEST.in_(chunk))):
            contents[digest] = bytes(content)
            if now - used > FRESH_SECONDS:
                stale.append(digest)
    for chunk in _split_keys(stale):
        connection.execute(sa.update(EXTRACTED).where(DIGEST.in_(chunk)).values(used=now))
    return contents


def write_entries(connection: Connection, entries: Mapping[str, bytes]) -> None:
    """Insert entries, replacing those of the same digest."""
    now = read_clock(connection)
    rows = [{"digest": d, "used": now, "size": len(c), "content": c} for d, c in entries.items()]
    if rows:
        changes = "used = excluded.used, size = excluded.size, content = excluded.content"
        insert = build_insert("extracted", rows[0])
        connection.execute(text(f"{insert} ON CONFLICT (digest) DO UPDATE SET {changes}"), rows)


def make_room(connection: Connection, most_bytes: int) -> None:
    """If the cache is full, remove entries, those unused for longest first, until a tenth of it is free."""
    excess = connection.execute(text("SELECT coalesce(sum(size), 0) FROM extracted")).scalar_one() - most_bytes
    if excess <= 0:
        return
    excess += most_bytes // 10
    removed = []
    for digest, size in connection.execute(text(OLDEST_FIRST)):
        if excess <= 0:
            break
        removed.append(digest)
        excess -= size
    for chunk in _split_keys(removed):
        connection.execute(sa.delete(EXTRACTED).where(DIGEST.in_(chunk)))


def _split_keys(keys: Sequence[str]) -> Iterator[list[str]]:
    return (list(keys[start : start + AT_ONCE]) for start in range(0, len(keys), AT_ONCE))
