"""Opening the database, its transactions, and its errors in plain words.

SQLite runs with a rollback journal and full synchronisation. Committed data survive a loss of power, and the file may
be on a shared file system with working locks, where a write-ahead log could not be used.
"""

from __future__ import annotations

import errno
import logging
import os
import sqlite3
import stat
import tempfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Connection, Engine, make_url

from sigdask.errors import DamagedError, InputError, SigdaskError, StoreError, explain_missing
from sigdask.nightly.store.limits import MAX_CHECKED_BYTES, get_size, limit_lengths
from sigdask.nightly.store.schema import check_version, create_tables, read_version, refuse_foreign_database
from sigdask.text import HIDDEN, redact

log = logging.getLogger("sigdask.nightly.store")

BUSY_SECONDS = 30
ANNOUNCED_SECONDS = 2
"""Seconds of waiting for a lock after which a message names its holder."""
CONNECT_SECONDS = 10
SHARED_FILE_SYSTEMS = frozenset((
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.ceph", "afs", "ocfs2", "gfs2", "virtiofs",
))  # fmt: skip
"""File systems shared by several machines."""

TAKE_TURN = "SELECT set_config('idle_in_transaction_session_timeout', :patience, true), pg_advisory_xact_lock(:lock)"
LOCK_ID = int.from_bytes(b"sigdask", "big")
"""Number of the lock that all drivers of a PostgreSQL database share. The server releases it if a driver dies."""

STOPPED_SECONDS = 60


class Database:
    """An open store: its location and transactions.

    Attributes
    ----------
    where : str
        The file, or the URL without its secrets.
    location : str
        Path or full URL of the store. It is never shown.
    notes : tuple of str
        Notes for the user.
    """

    def __init__(self, engine: Engine, notes: tuple[str, ...] = ()) -> None:
        self.engine = engine
        self.where = _describe_url(engine.url)
        self.location = self.where if self.is_sqlite else engine.url.render_as_string(hide_password=False)
        self.notes = notes
        self._secrets = _list_secrets(engine.url)

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit all statements, or none if one fails."""
        with translate_errors(self.where, self._secrets), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def write_transaction(self) -> Iterator[Connection]:
        """Open a transaction that waits for other writers, to avoid deadlocks; all of it is committed or nothing."""
        with self.transaction() as connection:
            if not self.is_sqlite:  # a file admits one writer anyway
                connection.execute(sa.text(TAKE_TURN), {"lock": LOCK_ID, "patience": f"{STOPPED_SECONDS}s"})
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def read_clock(connection: Connection) -> float:
    """Return the database's own time in seconds, because the clocks of hosts differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def open_to_write(text: str) -> Database:
    """Open a store; a missing store is created.

    Parameters
    ----------
    text : str
        Path of a SQLite file, or a URL (sqlite:///…, postgresql://…).

    Raises
    ------
    InputError
        The file is not a store of this schema version, or its folder does not exist.
    StoreError
        It cannot be reached or written.
    """
    url = parse_url(text)
    notes = _check_folder(url)
    database = Database(_create_engine(url, "BEGIN IMMEDIATE"), notes)
    with _close_on_error(database), _announce_wait(url), database.write_transaction() as connection:
        create_tables(connection, database.where)
        _check_pages(connection)
    return database


@contextmanager
def _announce_wait(url: URL) -> Iterator[None]:
    """Log who holds the lock of a SQLite file, if the body waits for it."""
    path = Path(url.database or "")

    def announce() -> None:
        if holder := find_lock_holder(path):
            log.info("store %s: waiting up to %d s for %s, which holds its lock", path, BUSY_SECONDS, holder)

    timer = threading.Timer(ANNOUNCED_SECONDS, announce)
    timer.daemon = True
    if url.get_backend_name() == "sqlite":
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def find_lock_holder(path: Path, locks: str = "/proc/locks") -> str:
    """Return the other process of this machine that has a lock on a file, or "" if none is known."""
    try:
        inode = str(path.stat().st_ino)
        rows = [line.split() for line in Path(locks).read_text("ascii").splitlines()]
        pids = {row[4] for row in rows if len(row) > 5 and row[5].rpartition(":")[2] == inode}
        pid = next(iter(sorted(pids - {"-1", str(os.getpid())})))
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text('utf-8').strip()})"
    except (OSError, ValueError, IndexError, StopIteration):
        return ""


def open_to_read(text: str) -> Database:
    """Open an existing store without changing it.

    Raises
    ------
    InputError
        There is no store, or this user may not read it.
    StoreError
        It cannot be reached.
    """
    url = parse_url(text)
    if url.get_backend_name() == "sqlite":
        _check_file(Path(url.database or ""))
    database = Database(_create_engine(url, "BEGIN"))
    with _close_on_error(database), database.transaction() as connection:
        version = read_version(connection)
        check_version(version, database.where)
        if version == 0:
            refuse_foreign_database(connection, database.where)
            raise InputError(f"store {database.where}: no plan has been run yet")
        _check_pages(connection)
    return database


def _check_pages(connection: Connection) -> None:
    """Raise DamagedError for a SQLite file whose pages refer to each other wrongly: reading it might never end."""
    url = connection.engine.url
    if url.get_backend_name() == "sqlite" and get_size(Path(url.database or "")) <= MAX_CHECKED_BYTES:
        words = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        if words != "ok":
            raise DamagedError([f"the file: {' '.join(words.split())}"])


@contextmanager
def _close_on_error(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def parse_url(text: str) -> URL:
    """Parse a URL, or the path of a SQLite file.

    Examples
    --------
    >>> parse_url("night.sqlite").get_backend_name(), parse_url("postgresql://me@host/night").drivername
    ('sqlite', 'postgresql+psycopg')
    """
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        shown = f"{text.partition('://')[0]}://{HIDDEN}"  # the end of the password is ambiguous
        raise InputError(f"store {shown}: not a URL; expected a path, sqlite:///PATH or postgresql://…") from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise InputError(
            f"store {_describe_url(url)}: {url.drivername!r} is not supported; expected sqlite or postgresql"
        )
    if url.get_backend_name() == "sqlite" and not url.database:
        raise InputError(f"store {redact(text)!r}: no file is named; expected sqlite:///PATH")
    if "@" in (url.host or ""):
        raise InputError(
            f"store {_describe_url(url)}: the password holds @", remedy="write it as %40, or keep it in ~/.pgpass"
        )
    return url


@contextmanager
def translate_errors(where: str, secrets: Collection[str] = ()) -> Iterator[None]:
    """Translate database errors into errors with advice, and hide the secrets that they repeat."""
    try:
        yield
    except DamagedError as error:
        raise error.with_store(where) from None
    except exc.DBAPIError as error:
        raise _convert_error(where, error, secrets) from None
    except (exc.NoSuchColumnError, UnicodeDecodeError) as error:
        raise DamagedError([_get_first_line(error)], where) from None
    except exc.SQLAlchemyError as error:
        raise StoreError(f"store {where}: {_get_first_line(error, secrets)}") from None


UNREACHABLE = (
    "the database cannot be reached; check that the server runs and has this database (createdb), and the user and the "
    "password in the URL, PGPASSWORD or ~/.pgpass"
)

SQLITE_REMEDIES: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it is read-only, or a run that was killed left a write to undo; make the file and its "
    "folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; make its folder writable",
    sqlite3.SQLITE_BUSY: f"another program held its lock for {BUSY_SECONDS} s; let it finish",
    sqlite3.SQLITE_IOERR: "the file system failed; check the disk",
}
"""What is wrong and what to do, by SQLite's primary result code. Other errors come only from damaged files."""

POSTGRESQL_REMEDIES: Mapping[str, str] = {
    "53": "the server's disk, memory or connections are used up; free some",
    "25006": "it is read-only; give a database that may be written",
    "42501": "this user may not write; grant the rights",
    "28": "the database refuses this user; give the right name and password in the URL, PGPASSWORD or ~/.pgpass",
    "58": "the server's file system failed; check its disk",
    **dict.fromkeys(("08", "57", "25P03"), UNREACHABLE),
}
"""The same by the start of PostgreSQL's SQLSTATE."""

DAMAGE_STATES = ("XX", "42", "23", "22")
"""Start of the SQLSTATE of errors that only damaged databases cause."""


def _convert_error(where: str, error: exc.DBAPIError, secrets: Collection[str]) -> SigdaskError:
    words = _get_first_line(error.orig if error.orig is not None else error, secrets)
    if isinstance(error.orig, sqlite3.Error):
        return _convert_sqlite_error(where, error.orig, words)
    state = getattr(error.orig, "sqlstate", None)
    if state is None:  # psycopg reports none for a connection that fails
        return _build_store_error(where, UNREACHABLE, words, lost=True)
    remedy = next((text for start, text in POSTGRESQL_REMEDIES.items() if state.startswith(start)), None)
    if remedy is not None:
        is_lost = bool(error.connection_invalidated) or remedy == UNREACHABLE
        return _build_store_error(where, remedy, words, lost=is_lost)
    return DamagedError([words], where) if state.startswith(DAMAGE_STATES) else StoreError(f"store {where}: {words}")


def _convert_sqlite_error(where: str, error: sqlite3.Error, words: str) -> SigdaskError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary result code
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(
            f"store {where}: the file is not an SQLite database",
            remedy="give a plan (.toml), or another file with --store. If it was a store, move it aside, and "
            "the next run counts again",
        )
    if code == sqlite3.SQLITE_BUSY and (holder := find_lock_holder(Path(where))):
        words = f"{words} by {holder}"
    remedy = SQLITE_REMEDIES.get(code)
    return DamagedError([words], where) if remedy is None else _build_store_error(where, remedy, words)


def _build_store_error(where: str, remedy: str, words: str, *, lost: bool = False) -> StoreError:
    return StoreError(f"store {where}: {remedy}, then run again: all committed counts are intact ({words})", lost=lost)


def _get_first_line(error: BaseException, secrets: Collection[str] = ()) -> str:
    return redact((str(error).strip().splitlines() or [type(error).__name__])[0], values=secrets)


def _describe_url(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    return redact(url.render_as_string(hide_password=False).replace(" ", "%20"))


def _list_secrets(url: URL) -> frozenset[str]:
    """Return texts that a server's or driver's message must not repeat: the password, and values of the query."""
    values = [value for several in url.normalized_query.values() for value in several]
    settings = [word.rpartition("=")[2] for value in values for word in value.split()]  # options=-c name=value
    return frozenset(filter(None, [str(url.password or ""), *values, *settings]))


def _create_engine(url: URL, begin: str) -> Engine:
    if url.get_backend_name() == "sqlite":
        path, is_writer = Path(url.database or ""), begin != "BEGIN"
        check_journal(path)
        address = f"file:{quote(str(path.absolute()))}?mode={'rwc' if is_writer else 'ro'}"
        options = {"uri": True, "timeout": BUSY_SECONDS, "check_same_thread": False}
        engine = sa.create_engine(url, creator=partial(sqlite3.connect, address, **options))
        event.listen(engine, "connect", partial(_set_up_sqlite, path, is_writer))
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine
    with explain_missing("psycopg", "postgres", "a PostgreSQL store"):
        return sa.create_engine(url, connect_args={"connect_timeout": CONNECT_SECONDS, **_CONNECTION_OPTIONS})


_CONNECTION_OPTIONS = {
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "application_name": "sigdask",
    "client_encoding": "utf8",
}  # fmt: skip
"""Connection options of PostgreSQL. Without the last, a database in SQL_ASCII would return bytes for texts."""


def _set_up_sqlite(path: Path, is_writer: bool, connection: Any, _record: Any) -> None:
    limit_lengths(connection, path, is_writer=is_writer)
    connection.isolation_level = None  # SQLAlchemy begins transactions explicitly, not the driver by guessing
    for pragma in ("synchronous = FULL", "foreign_keys = ON", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    if is_writer and connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        connection.execute("PRAGMA journal_mode = DELETE")


SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of a rollback journal that names a super-journal, a file that SQLite deletes after the rollback."""


def check_journal(path: Path) -> None:
    """Raise if SQLite must not see the journal beside a store: a link, another user's file, or one that names a file.

    SQLite writes what a journal holds into the store, and deletes the super-journal that it names. A journal of
    sigdask's own names none (SQLite's file format, "The rollback journal").
    """
    journal = path.with_name(f"{path.name}-journal")
    try:
        state = journal.lstat()
        end = b"" if stat.S_ISLNK(state.st_mode) else journal.read_bytes()[-8:]
    except FileNotFoundError:
        return
    except OSError as error:
        raise _build_unreadable_error(journal, error.strerror or str(error)) from None
    faults = {
        "is a symbolic link": stat.S_ISLNK(state.st_mode),
        "belongs to another user": state.st_uid not in {os.geteuid(), path.stat().st_uid if path.exists() else -1},
        "names another file, which SQLite would delete": end == SUPER_JOURNAL_MAGIC,
    }
    for fault, is_found in faults.items():
        if is_found:
            raise InputError(fault, file=journal, remedy="move it aside, and make sure who wrote this store")


def _check_file(path: Path) -> None:
    """Raise if a SQLite file is missing or unreadable, without opening it, which would release this process's locks."""
    mode = _get_mode(path)
    if mode is None:
        raise InputError(
            f"store {path}: no such file. Check the path. A plan has no store before `sigdask run PLAN.toml`"
        )
    if not stat.S_ISREG(mode):
        raise InputError(f"store {path}: {NO_FILE}")
    if not os.access(path, os.R_OK):
        raise _build_unreadable_error(path, os.strerror(errno.EACCES))


NO_FILE = "a folder, pipe or device; name a file with --store"


def _get_mode(path: Path) -> int | None:
    """Return the file mode of a path, None if nothing exists there."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise _build_unreadable_error(path, error.strerror or str(error)) from None


def _build_unreadable_error(path: Path, reason: str) -> InputError:
    return InputError(
        f"store {path}: cannot be read ({reason})", remedy="check the permissions of the file and of its folders"
    )


def _check_folder(url: URL) -> tuple[str, ...]:
    if url.get_backend_name() != "sqlite" or url.database is None:
        return ()
    path = Path(url.database)
    mode, folder_mode = (_get_mode(candidate) for candidate in (path, path.parent))
    if mode is not None and not stat.S_ISREG(mode):
        raise InputError(f"store {path}: {NO_FILE}")
    if not stat.S_ISDIR(folder_mode or 0):
        raise InputError(f"store {path}: its folder does not exist")
    kind = find_file_system(path.parent)
    if kind not in SHARED_FILE_SYSTEMS:
        return ()
    if not _can_lock(path.parent):
        raise InputError(
            f"store {path}: its file system ({kind}) does not support locks, so two runs could damage the store",
            remedy="give a local file or a PostgreSQL database with --store",
        )
    return (f"the store is on a shared file system ({kind}): it is safe only if locks work across machines",)


def find_file_system(folder: Path, mounts: str = "/proc/self/mounts") -> str:
    """Return the type of a folder's file system, or "" if unknown."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    resolved, best, kind = str(folder.resolve()), "", ""
    for _, point, type_name, *_ in (line.split() for line in lines if len(line.split()) > 2):
        mount = point.replace("\\040", " ")
        is_inside = resolved == mount or resolved.startswith(mount.rstrip("/") + "/")
        if is_inside and len(mount) >= len(best):
            best, kind = mount, type_name
    return kind


def _can_lock(folder: Path) -> bool:
    try:
        import fcntl
    except ImportError:
        return True
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            fcntl.lockf(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}
    return True
