"""Opening the database, its transactions, and its errors in plain words.

SQLite runs with a rollback journal and full synchronisation. Committed data survive a loss of power, and the file may
be on a shared file system with working locks, where a write-ahead log could not be used.
"""

from __future__ import annotations

import errno
import os
import sqlite3
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
from sigdask.nightly.store.schema import check_tables
from sigdask.text import HIDDEN, redact

BUSY_SECONDS = 30
CONNECT_SECONDS = 10

SPARE_BYTES, MAX_WRITTEN_BYTES = 2**20, 2**28
"""Maximum length of a value in SQLite: for readers, in excess of the file's size, because a damaged row can claim any
length; for writers, whose values may not be in the file yet, in total.
"""

MAX_CHECKED_BYTES = 2**26
"""Maximum size of files whose pages are checked on opening."""


class Database:
    """An open store: its location and transactions, one at a time.

    Attributes
    ----------
    where : str
        The file, or the URL without its secrets.
    location : str
        Path or full URL of the store. It is never shown.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.where = describe_url(engine.url)
        self.location = self.where if self.is_sqlite else engine.url.render_as_string(hide_password=False)
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

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


@contextmanager
def open_for_reading(location: str) -> Iterator[Connection]:
    """Open an existing store without changing it, and yield a connection.

    Raises
    ------
    InputError
        There is no store, or this user may not read it.
    StoreError
        It cannot be reached.
    """
    url = parse_url(location)
    database = Database(create_engine(url, is_writer=False))  # which refuses a file that may not be seen
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").exists():
        raise InputError(
            f"store {url.database}: no such file. Check the path. A plan has no store before `sigdask run PLAN.toml`"
        )
    try:
        with database.transaction() as connection:
            if not check_tables(connection, database.where):
                raise InputError(f"store {database.where}: no plan has been run yet")
            check_pages(connection)
            yield connection
    finally:
        database.close()


def check_pages(connection: Connection) -> None:
    """Raise DamagedError for a SQLite file whose pages refer to each other wrongly: reading it might never end."""
    url = connection.engine.url
    if url.get_backend_name() == "sqlite" and _get_size(Path(url.database or "")) <= MAX_CHECKED_BYTES:
        words = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        if words != "ok":
            raise DamagedError([f"the file: {' '.join(words.split())}"])


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
            f"store {describe_url(url)}: {url.drivername!r} is not supported; expected sqlite or postgresql"
        )
    if url.get_backend_name() == "sqlite" and not url.database:
        raise InputError(f"store {redact(text)!r}: no file is named; expected sqlite:///PATH")
    if "@" in (url.host or ""):
        raise InputError(
            f"store {describe_url(url)}: the password holds @", remedy="write it as %40, or keep it in ~/.pgpass"
        )
    return url


def describe_url(url: URL) -> str:
    """Return a file, or a URL without its secrets."""
    if url.get_backend_name() == "sqlite":
        return url.database or ""
    return redact(url.render_as_string(hide_password=False).replace(" ", "%20"))


def _list_secrets(url: URL) -> frozenset[str]:
    """Return texts that a server's or driver's message must not repeat: the password, and values of the query."""
    values = [value for several in url.normalized_query.values() for value in several]
    settings = [word.rpartition("=")[2] for value in values for word in value.split()]  # options=-c name=value
    return frozenset(filter(None, [str(url.password or ""), *values, *settings]))


def create_engine(url: URL, *, is_writer: bool) -> Engine:
    """Return an engine with a single connection; of a SQLite file, after checking what lies there."""
    single = {"poolclass": sa.QueuePool, "pool_size": 1, "max_overflow": 0}
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        check_files(path)
        address = f"file:{quote(str(path.absolute()))}?mode={'rwc' if is_writer else 'ro'}"
        connect = partial(sqlite3.connect, address, uri=True, timeout=BUSY_SECONDS, check_same_thread=False)
        engine = sa.create_engine(url, creator=connect, **single)
        event.listen(engine, "connect", partial(_set_up_sqlite, path, is_writer))
        begin = "BEGIN IMMEDIATE" if is_writer else "BEGIN"
        event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine
    with explain_missing("psycopg", "postgres", "a PostgreSQL store"):
        return sa.create_engine(url, connect_args={"connect_timeout": CONNECT_SECONDS, **_CONNECTION_OPTIONS}, **single)


_CONNECTION_OPTIONS = {
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "application_name": "sigdask",
    "client_encoding": "utf8",
}  # fmt: skip
"""Connection options of PostgreSQL. Without the last, a database in SQL_ASCII would return bytes for texts."""


def _set_up_sqlite(path: Path, is_writer: bool, connection: Any, _record: Any) -> None:
    length = max(_get_size(path) + SPARE_BYTES, MAX_WRITTEN_BYTES if is_writer else 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(length, 2**31 - 1))
    connection.isolation_level = None  # SQLAlchemy begins transactions explicitly, not the driver by guessing
    for pragma in ("synchronous = FULL", "trusted_schema = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    if is_writer and connection.execute("PRAGMA journal_mode").fetchone()[0] != "delete":
        connection.execute("PRAGMA journal_mode = DELETE")


def _get_size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of a rollback journal that names a super-journal, a file that SQLite deletes after the rollback."""


def check_files(path: Path) -> None:
    """Raise InputError if SQLite must not see a store, or the journal beside it.

    SQLite writes what a journal holds into the store, and deletes the super-journal that it names. A journal of
    sigdask's own names none (SQLite's file format, "The rollback journal"). The store itself is not opened here, which
    would release this process's locks on it.
    """
    path = path.resolve()  # SQLite looks for the journal beside the file that a link names
    try:
        if not path.parent.is_dir():
            raise InputError(f"store {path}: its folder does not exist")
        if path.exists() and not path.is_file():
            raise InputError(f"store {path}: a folder, pipe or device; name a file with --store")
        if path.exists() and not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        for journal in (path.with_name(f"{path.name}-{kind}") for kind in ("journal", "wal")):
            if os.path.lexists(journal) and (fault := _find_fault(path, journal)):
                raise InputError(fault, file=journal, remedy="move it aside, and make sure who wrote this store")
    except OSError as error:
        raise InputError(
            f"store {path}: cannot be read ({error.strerror})",
            remedy="check the permissions of the file and of its folders",
        ) from None


def _find_fault(path: Path, journal: Path) -> str:
    """Return why SQLite must not see a journal, or ""."""
    owner = journal.lstat().st_uid
    if journal.is_symlink():
        return "is a symbolic link"
    if owner != os.geteuid() and not (path.exists() and path.stat().st_uid == owner):
        return "belongs to another user"
    with journal.open("rb") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - len(SUPER_JOURNAL_MAGIC), 0))
        return "names another file, which SQLite would delete" if file.read() == SUPER_JOURNAL_MAGIC else ""


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
    except exc.TimeoutError:
        raise StoreError(f"store {where}: the database does not answer", lost=True) from None
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
    sqlite3.SQLITE_NOMEM: "the memory is used up; free some",
}
"""What is wrong and what to do, by SQLite's primary result code. Other errors come only from damaged files."""

POSTGRESQL_REMEDIES: Mapping[str, str] = {
    "53": "the server's disk, memory or connections are used up; free some",
    "25006": "it is read-only; give a database that may be written",
    "42501": "this user may not write; grant the rights",
    "28": "the database refuses this user; give the right name and password in the URL, PGPASSWORD or ~/.pgpass",
    "58": "the server's file system failed; check its disk",
    **dict.fromkeys(("08", "57", "25P"), UNREACHABLE),
}
"""The same by the start of PostgreSQL's SQLSTATE."""

DAMAGE_STATES = ("XX", "42", "23", "22")
"""Start of the SQLSTATE of errors that only damaged databases cause."""


def _convert_error(where: str, error: exc.DBAPIError, secrets: Collection[str]) -> SigdaskError:
    words = _get_first_line(error.orig if error.orig is not None else error, secrets)
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # the primary result code
        if code == sqlite3.SQLITE_NOTADB:
            return InputError(
                f"store {where}: the file is not an SQLite database",
                remedy="give a plan (.toml), or another file with --store. If it was a store, move it aside, and "
                "the next run counts again",
            )
        remedy, is_lost, is_damage = SQLITE_REMEDIES.get(code), False, True
    else:  # psycopg reports no state for a connection that fails
        state = getattr(error.orig, "sqlstate", None) or "08"
        remedy = next((text for start, text in POSTGRESQL_REMEDIES.items() if state.startswith(start)), None)
        is_lost, is_damage = error.connection_invalidated or remedy == UNREACHABLE, state.startswith(DAMAGE_STATES)
    if remedy is None:
        return DamagedError([words], where) if is_damage else StoreError(f"store {where}: {words}")
    return StoreError(
        f"store {where}: {remedy}, then run again: all committed counts are intact ({words})", lost=is_lost
    )


def _get_first_line(error: BaseException, secrets: Collection[str] = ()) -> str:
    return redact((str(error).strip().splitlines() or [type(error).__name__])[0], values=secrets)
