"""Opening the database, its transactions, and its failures in words.

SQLite runs with a rollback journal and full synchronisation: what is committed survives a loss of
power, and the file can lie on shared file systems whose locks hold (a write-ahead log cannot).
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.engine import URL, Connection, Engine, make_url

from sigdask.errors import DamagedError, InputError, SigdaskError, StoreError, missing_extra
from sigdask.nightly.store.migrations import check_version, migrate, version_of

BUSY_SECONDS = 30
CONNECT_SECONDS = 10
SHARED = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "lustre", "gpfs", "beegfs", "ceph", "glusterfs",
                    "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "afs", "ocfs2", "gfs2", "virtiofs"})  # fmt: skip
"""File systems of several machines."""

TURN = "SELECT set_config('idle_in_transaction_session_timeout', :patience, true), pg_advisory_xact_lock(:lock)"
LOCK = int.from_bytes(b"sigdask", "big")
"""Known to all drivers of a PostgreSQL database; of a driver that was stopped in its turn the server lets go."""

STOPPED_SECONDS = 60

PAGES = frozenset({1, *(2**k for k in range(9, 16))})
VERSIONS, FRACTIONS = (b"\x01\x01", b"\x02\x02"), b"\x40\x20\x20"
"""What stands in the header of every SQLite file."""


class NoDatabaseError(InputError):
    """A file is no SQLite database, or none any more."""


class Database:
    """An open store: where it is, and its transactions.

    Attributes
    ----------
    where : str
        The file, or the URL without its password.
    location : str
        What opens it again: the file, or the whole URL; never shown.
    notes : tuple of str
        What the user should know of it.
    """

    def __init__(self, engine: Engine, notes: tuple[str, ...] = ()) -> None:
        self.engine = engine
        self.where = _where(engine.url)
        self.location = self.where if self.is_sqlite else engine.url.render_as_string(hide_password=False)
        self.notes = notes

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Do everything or nothing."""
        with in_words(self.where), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Do everything or nothing, in turn with other writers: of two, neither waits for what the other holds."""
        with self.transaction() as connection:
            if not self.is_sqlite:  # a file lets one in at a time anyway
                connection.execute(sa.text(TURN), {"lock": LOCK, "patience": f"{STOPPED_SECONDS}s"})
            yield connection

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def clock(connection: Connection) -> float:
    """Return the time by the database's own clock, in seconds: those of several hosts differ."""
    if connection.dialect.name == "sqlite":
        return time.time()
    return float(connection.execute(sa.text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def rows_of(connection: Connection, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query as the driver gives them: of many short ones, wrapping costs more than reading."""
    found: Any = connection.exec_driver_sql(query, values) if values else connection.exec_driver_sql(query)
    raised: Any = connection.dialect.dbapi
    try:
        rows: list[tuple[Any, ...]] = found.cursor.fetchall()
    except raised.Error as error:
        raise exc.DBAPIError.instance(query, None, error, raised.Error) from error
    finally:
        found.close()
    return rows


def open_to_write(text: str) -> Database:
    """Open a store, make it where there is none, and bring it to the newest schema.

    Parameters
    ----------
    text : str
        Path of a SQLite file, or a URL (sqlite:///…, postgresql://…).

    Raises
    ------
    InputError
        It is no store, or its folder does not exist.
    StoreError
        It cannot be reached or written.
    """
    url = url_of(text)
    notes = _check_folder(url)
    database = Database(_engine(url, "BEGIN IMMEDIATE"), notes)
    with _closed_on_error(database), database.writing() as connection:
        migrate(connection, database.where)
    return database


def open_to_read(text: str) -> Database:
    """Open a store that exists, changing nothing.

    Raises
    ------
    InputError
        There is none, or this user may not read it.
    StoreError
        It cannot be reached.
    """
    url = url_of(text)
    if url.get_backend_name() == "sqlite":
        _check_file(Path(url.database or ""))
    database = Database(_engine(url, "BEGIN"))
    with _closed_on_error(database):
        with database.transaction() as connection:
            version = version_of(connection)
        if version == 0:
            raise InputError(f"store {database.where}: nothing was run yet")
        check_version(version, database.where)
    return database


@contextmanager
def _closed_on_error(database: Database) -> Iterator[None]:
    try:
        yield
    except BaseException:
        database.close()
        raise


def url_of(text: str) -> URL:
    """Read a URL, or the path of a SQLite file.

    Examples
    --------
    >>> url_of("night.sqlite").get_backend_name(), url_of("postgresql://me@host/night").drivername
    ('sqlite', 'postgresql+psycopg')
    """
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).absolute()))
    try:
        url = make_url(text)
    except (exc.ArgumentError, ValueError):
        raise InputError(f"store {text!r}: not a URL; expected a path, sqlite:///PATH or postgresql://…") from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise InputError(f"store {_where(url)}: {url.drivername!r} is not supported; expected sqlite or postgresql")
    if url.get_backend_name() == "sqlite" and not url.database:
        raise InputError(f"store {text!r}: no file named; expected sqlite:///PATH")
    return url


@contextmanager
def in_words(where: str) -> Iterator[None]:
    """Turn what the database refuses into an error that says what to do."""
    try:
        yield
    except DamagedError as error:
        raise error.of(where) from None
    except exc.DBAPIError as error:
        raise _failure(where, error) from None
    except (exc.NoSuchColumnError, UnicodeDecodeError) as error:
        raise DamagedError([_first_line(error)], where) from None
    except exc.SQLAlchemyError as error:
        raise StoreError(f"store {where}: {_first_line(error)}") from None


REMEDIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("disk is full", "no space left", "could not extend file", "disk quota"), "the disk is full; free some space"),
    (("readonly database", "read-only", "permission denied"), "it is read-only; make the file and its folder writable"),
    (("unable to open",), "it cannot be opened; is its folder writable?"),
    (("database is locked",), f"another program held its lock for {BUSY_SECONDS} s"),
    (("disk i/o error",), "the file system failed; check the disk, then the store by `sigdask store check`,"),
    (("authentication failed", "no password supplied", 'role "'),
     "the database refuses this user; give the right name and password in the URL, PGPASSWORD or ~/.pgpass"),
    (("connect", "terminat", "closed", "server", "shutdown", "starting up", "recovery", "timeout"),
     "the database cannot be reached; is the server running?"),
)  # fmt: skip
"""Words of a database's error, and what it means here; the first that fits."""


DAMAGE = ("malformed", "corrupt", "unsupported file format", "no such table", "no such column", "duplicate column",
          "already exists", "could not decode", "datatype mismatch", "invalid page", "could not read block",
          "missing chunk", "invalid memory alloc", "does not exist", "constraint")  # fmt: skip
"""Words of a database's error that only a store has which is not as it was made."""


def _failure(where: str, error: exc.DBAPIError) -> SigdaskError:
    words = _first_line(error.orig if error.orig is not None else error)
    if (fault := _damage(where, words)) is not None:
        return DamagedError([fault], where)
    if "not a database" in words:
        return NoDatabaseError(
            f"store {where}: the file is no SQLite database; name another with --store (if it was one, `sigdask store "
            f"repair {where}` looks for rows in it)"
        )
    if re.search(r'database ".*" does not exist', words):
        return InputError(f"store {where}: the server has no such database; make it (createdb), or name another")
    for signs, meaning in REMEDIES:
        if any(sign in words.lower() for sign in signs):
            return StoreError(
                f"store {where}: {meaning} and run again: what is committed is intact ({words})",
                lost=bool(error.connection_invalidated) or "server" in meaning,
            )
    is_file = isinstance(error.orig, sqlite3.Error)  # what else a file refuses, one that is whole does not
    return DamagedError([words], where) if is_file else StoreError(f"store {where}: {words}")


def _damage(where: str, words: str) -> str | None:
    """Return what is damaged by the words of an error, None where nothing is."""
    if any(sign in words.lower() for sign in DAMAGE) and 'role "' not in words and 'database "' not in words:
        return words
    fault = fault_of_file(Path(where))
    return None if fault is None else f"{fault} ({words})"


def fault_of_file(path: Path) -> str | None:
    """Return what is wrong with the header of a SQLite file, None where nothing is or it is none.

    While a transaction is under way or to be taken back, its journal lies beside it, and its size says nothing.
    """
    try:
        with path.open("rb") as file:
            header = file.read(100)
        size, is_at_rest = path.stat().st_size, not path.with_name(f"{path.name}-journal").exists()
    except (OSError, ValueError):
        return None
    page, n_pages = (int.from_bytes(header[at], "big") for at in (slice(16, 18), slice(28, 32)))
    signs = [header[:16] == b"SQLite format 3\0", page in PAGES, header[18:20] in VERSIONS, header[21:24] == FRACTIONS]
    if sum(signs) < 3:
        return None
    if not all(signs):
        return "the header of the file is not what SQLite writes"
    if is_at_rest and size < page * n_pages:
        return f"the file has {size:,} bytes of {page * n_pages:,}"
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(text: str) -> str:
    """Return what a store is called: its file, or its URL without the password."""
    return _where(url_of(text))


def _where(url: URL) -> str:
    return url.database or "" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def _engine(url: URL, begin: str) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine
    try:
        return sa.create_engine(url, connect_args={"connect_timeout": CONNECT_SECONDS, **_CONNECTED})
    except ImportError:
        raise missing_extra("psycopg", "postgres", "a PostgreSQL store") from None


_CONNECTED = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "application_name": "sigdask",
              "client_encoding": "utf8"}  # fmt: skip
"""How a PostgreSQL is connected to; of a database in SQL_ASCII texts would be bytes without the last."""


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions begin where SQLAlchemy says so, not where the driver guesses
    for pragma in ("synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        connection.execute("PRAGMA journal_mode = DELETE")


def _check_file(path: Path) -> None:
    """Refuse what is no file that may be read; it is not opened, as closing it would give up locks of this process."""
    mode = _mode(path)
    if mode is None or not stat.S_ISREG(mode):
        raise InputError(f"store {path}: no such file; nothing was run yet")
    if not os.access(path, os.R_OK):
        raise _unreadable(path, os.strerror(errno.EACCES))


def _mode(path: Path) -> int | None:
    """Return what a path leads to, None where there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def _unreadable(path: Path, why: str) -> InputError:
    return InputError(f"store {path}: cannot be read ({why}); may this user read the file, and enter its folders?")


def _check_folder(url: URL) -> tuple[str, ...]:
    if url.get_backend_name() != "sqlite" or url.database is None:
        return ()
    path = Path(url.database)
    is_folder = [stat.S_ISDIR(_mode(each) or 0) for each in (path, path.parent)]
    if is_folder != [False, True]:
        raise InputError(f"store {path}: {'a folder' if is_folder[0] else 'its folder does not exist'}")
    kind = file_system(path.parent)
    if kind not in SHARED:
        return ()
    if not _locks(path.parent):
        raise InputError(
            f"store {path}: its file system ({kind}) takes no locks, so two drivers could spoil it; name a local file "
            "or a PostgreSQL database with --store"
        )
    return (f"the store lies on a shared file system ({kind}): it is safe where locks hold between machines",)


def file_system(folder: Path, mounts: str = "/proc/self/mounts") -> str:
    """Return the type of the file system that holds a folder, empty where it cannot be told."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    resolved, best, kind = str(folder.resolve()), "", ""
    for _, point, found, *_ in (line.split() for line in lines if len(line.split()) > 2):
        at = point.replace("\\040", " ")
        inside = resolved == at or resolved.startswith(at.rstrip("/") + "/")
        if inside and len(at) >= len(best):
            best, kind = at, found
    return kind


def _locks(folder: Path) -> bool:
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
