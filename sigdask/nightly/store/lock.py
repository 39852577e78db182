"""One driver at a time: a lock on a file beside an SQLite store, or a lock of the PostgreSQL server for each plan.

The system and the server release the lock if a driver ends, however that happens. A driver on a machine that is gone,
or that hangs, loses the server's lock when its session was silent for `SILENT_SECONDS`. The lock of a file is lost when
its process ends; on a shared file system, also when the server of the files gives up its machine.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, event

from sigdask.errors import InputError, SigdaskError, StoreError
from sigdask.nightly.store.database import Database

SILENT_SECONDS = 60
"""Seconds without a statement after which the server ends the session of a driver, and so its lock."""

BEAT_SECONDS = 10.0

LOCK_ID = int.from_bytes(b"sig", "big")
"""First number of the locks that drivers of a PostgreSQL database take; the second is that of a plan."""


class LockedError(StoreError):
    """Another session or process has the lock; it may give it back at any time."""


@contextmanager
def hold_lock(database: Database, plan: str) -> Iterator[None]:
    """Hold the lock of a file; of a server, the first session takes the lock. LockedError: another process holds it."""
    if not database.is_sqlite:
        event.listen(database.engine, "connect", partial(_lock_session, plan))
        is_over = threading.Event()
        threading.Thread(target=_keep_alive, args=(database, is_over), name="sigdask lock", daemon=True).start()
        try:
            yield
        finally:
            is_over.set()
        return
    path = _get_lock_path(database.where)
    descriptor = _open_lock(database.where, path)
    try:
        _lock(database.where, descriptor)
        if not path.exists() or not os.path.samestat(path.stat(), os.fstat(descriptor)):
            raise LockedError(f"store {database.where}: the run that held its lock has just ended", lost=True)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _keep_alive(database: Database, is_over: threading.Event) -> None:
    while not is_over.wait(BEAT_SECONDS):
        with suppress(SigdaskError), database.transaction() as connection:
            connection.execute(sa.select(1))


def _open_lock(store: str, path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        remedy = "make its folder writable" if error.errno != errno.ELOOP else f"{path.name} is a link; remove it"
        raise StoreError(f"store {store}: it is read-only, or its folder is; {remedy} ({error.strerror})") from None


def _lock(store: str, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(f"store {store}: another run holds its lock", lost=True) from None
    except OSError as error:
        raise InputError(
            f"store {store}: its file system does not support locks ({error.strerror}), so two runs could damage it",
            remedy="give a local file or a PostgreSQL database with --store",
        ) from None


def _get_lock_path(store: str | None) -> Path:
    path = Path(store or "").resolve()
    return path.with_name(f"{path.name}-lock")


def _lock_session(plan: str, connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        for name in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
            cursor.execute(f"SET {name} = '{SILENT_SECONDS}s'")
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", (LOCK_ID, _get_number(plan)))
        [is_locked] = cursor.fetchone()
    connection.commit()
    if not is_locked:
        connection.close()
        raise LockedError("locked", lost=True)


def _get_number(plan: str) -> int:
    """Return a number of 32 bits, with a sign, for a plan."""
    return zlib.crc32(plan.encode()) - 2**31


def is_locked(connection: Connection, plan: str) -> bool:
    """Return whether a driver holds the lock of a store or plan."""
    if connection.dialect.name == "postgresql":
        query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = :lock AND objid = :plan"
        values = {"lock": LOCK_ID, "plan": _get_number(plan) % 2**32}
        return bool(connection.execute(sa.text(query), values).scalar_one())
    path = _get_lock_path(connection.engine.url.database)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
    except BlockingIOError:
        return True
    except OSError:  # no file, or one that this user may not see
        return False
    return False
