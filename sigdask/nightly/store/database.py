"""The database of a store: its four tables, transactions, lock, and errors in plain words.

SQLite runs with a rollback journal and full synchronisation. Committed data survive a loss of power, and the file may
be on a shared file system with working locks, where a write-ahead log could not be used.

One driver at a time has the lock: on a file beside an SQLite store, or of the PostgreSQL server for each plan. The
system and the server release it if a driver ends, however that happens. A driver on a machine that is gone, or that
hangs, loses the server's lock when its session was silent for `SILENT_SECONDS`. The lock of a file is lost when its
process ends; on a shared file system, also when the server of the files gives up its machine.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import BigInteger, Column, Connection, Integer, LargeBinary, SmallInteger, String, Table, Text
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.schema import CreateTable

from sigdask.errors import DamagedError, InputError, SigdaskError, StoreError, explain_missing
from sigdask.text import HIDDEN, format_list, redact

VERSION = 13
"""Version of the schema. It changes with every change of the tables or of what they hold."""

TABLES = sa.MetaData()

META = Table("meta", TABLES, Column("name", String(300), primary_key=True), Column("value", Text, nullable=False))
"""The version of the schema."""

RUNS = Table(
    "runs", TABLES,
    Column("id", Integer, primary_key=True), Column("plan", String(255), nullable=False),
    Column("record", LargeBinary, nullable=False),
)  # fmt: skip
"""Runs, each a JSON value (`runs`)."""

TALLIES = Table(
    "tallies", TABLES,
    Column("digest", LargeBinary(20), primary_key=True), Column("run", SmallInteger, primary_key=True),
    Column("n_trials", BigInteger, nullable=False), Column("counts", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)  # fmt: skip
"""Counts of the first `n_trials` trials of a comparison (`tallies`), by the digest of its data."""

RESULTS = Table(
    "results", TABLES,
    Column("run", Integer, primary_key=True, autoincrement=False), Column("plan", String(255), nullable=False),
    Column("base", Integer, nullable=False), Column("places", LargeBinary, nullable=False),
    Column("rows", LargeBinary, nullable=False),
)  # fmt: skip
"""What each run changed in the results of its plan (`results`)."""


def check_tables(connection: Connection, where: str, *, is_writer: bool) -> None:
    """Check that a database has the tables of a store, and no others; a writer creates them in an empty one.

    Raises
    ------
    InputError
        It is empty, the database of another program, or a store of another version.
    DamagedError
        It states no version, or its pages refer to each other wrongly.
    """
    own = {name: str(CreateTable(table).compile(connection)).strip() for name, table in TABLES.tables.items()}
    is_sqlite = connection.dialect.name == "sqlite"
    if is_sqlite:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        objects = {str(name): str(sql).strip() for name, sql in rows}
    else:  # which may hold tables of others
        objects = {name: own[name] for name in sa.inspect(connection).get_table_names() if name in own}
    if not objects and not is_writer:
        raise InputError(f"store {where}: no plan has been run yet")
    if not objects:
        TABLES.create_all(connection)
        connection.execute(sa.insert(META).values(name="version", value=str(VERSION)))
        return
    version, others = None, [name for name in {**objects, **own} if objects.get(name) != own.get(name)]
    if "meta" not in others:
        version = connection.execute(sa.select(META.c.value).where(META.c.name == "version")).scalar_one_or_none()
        if version is None:
            raise DamagedError("meta: it states no version")
    if others or version != str(VERSION):
        found = "a database of another program" if version is None else f"schema version {version[:20]}"
        differences = f", with another {format_list(others, 5)}" if others else ""
        raise InputError(
            f"store {where}: found {found}{differences}, expected {VERSION}",
            remedy="move the file aside (or name another store with --store), and the next run counts again",
        )
    if is_sqlite:  # reading pages that refer to each other wrongly might never end
        words = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
        if words != "ok":
            raise DamagedError(f"the file: {' '.join(words.split())}")


BUSY_SECONDS = 30
CONNECT_SECONDS = 10


class Database:
    """An open store: its location and transactions, one at a time.

    Attributes
    ----------
    where : str
        The file, or the URL without its secrets.
    location : str
        Path or full URL of the store. It is never shown.
    is_sqlite : bool
        Whether the store is a file.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine, self.close = engine, engine.dispose
        self.is_sqlite = engine.dialect.name == "sqlite"
        self.where = describe_url(engine.url)
        self.location = self.where if self.is_sqlite else engine.url.render_as_string(hide_password=False)
        self._secrets = _list_secrets(engine.url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit all statements, or none if one fails."""
        with translate_errors(self.where, self._secrets), self.engine.begin() as connection:
            yield connection


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
    engine = create_engine(parse_url(location), is_writer=False)
    with closing(Database(engine)) as database, database.transaction() as connection:
        check_tables(connection, database.where, is_writer=False)
        yield connection


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
    except (sa.exc.ArgumentError, ValueError):
        shown = f"{text.partition('://')[0]}://{HIDDEN}"  # the end of the password is ambiguous
        raise InputError(f"store {shown}: not a URL; expected a path or postgresql://…") from None
    if url.drivername in {"postgresql", "postgres"}:
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "postgresql":
        raise InputError(
            f"store {describe_url(url)}: {url.drivername!r} is not supported; expected a path or postgresql://…"
        )
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
        check_files(path, is_writer=is_writer)
        address = f"file:{quote(str(path.absolute()))}?mode={'rwc' if is_writer else 'ro'}"
        # SQLAlchemy begins transactions explicitly, not the driver by guessing
        options = {"uri": True, "timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None}
        engine = sa.create_engine(url, creator=partial(sqlite3.connect, address, **options), **single)
        pragmas = "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF"
        sa.event.listen(engine, "connect", lambda connection, _: connection.executescript(pragmas))
        begin = "BEGIN IMMEDIATE" if is_writer else "BEGIN"
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
        return engine
    with explain_missing("psycopg[binary]", "a PostgreSQL store"):
        return sa.create_engine(url, connect_args={"connect_timeout": CONNECT_SECONDS, **_CONNECTION_OPTIONS}, **single)


_CONNECTION_OPTIONS = {
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "application_name": "sigdask",
    "client_encoding": "utf8",
}  # fmt: skip
"""Connection options of PostgreSQL. Without the last, a database in SQL_ASCII would return bytes for texts."""


READ_WITH_LOG = b"\2"
"""Version of the file format, at byte 19, of a database with a write-ahead log."""

SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of a rollback journal that names a super-journal, a file that SQLite deletes after the rollback."""


def check_files(path: Path, *, is_writer: bool) -> None:
    """Raise InputError if there is nothing to read, or if SQLite must not see a store, or the journal beside it.

    SQLite writes what a journal holds into the store, and deletes the super-journal that it names. A journal of
    sigdask's own names none (SQLite's file format, "The rollback journal"), and its stores have no write-ahead log,
    beside which SQLite writes even if it only reads.
    """
    try:
        if not path.parent.is_dir():
            raise InputError(f"store {path}: its folder does not exist")
        if not is_writer:
            path.lstat()
        if path.exists() and not path.is_file():
            raise InputError(f"store {path}: a folder, pipe or device; name a file with --store")
        for file in (path, *(path.with_name(f"{path.name}-{kind}") for kind in ("journal", "wal"))):
            if os.path.lexists(file) and (fault := _find_fault(path, file)):
                raise InputError(fault, file=file, remedy="move it aside, and make sure who wrote the store")
    except FileNotFoundError:
        raise InputError(
            f"store {path}: no such file. Check the path. A plan has no store before `sigdask run PLAN.toml`"
        ) from None
    except OSError as error:
        raise InputError(
            f"store {path}: cannot be read ({error.strerror})",
            remedy="check the permissions of the file and of its folders",
        ) from None


def _find_fault(path: Path, file: Path) -> str:
    """Return why SQLite must not see a store or a journal beside it, or ""."""
    owner = file.lstat().st_uid
    if file.is_symlink():
        return "is a symbolic link, not the file itself"
    if owner != os.geteuid() and not (path.exists() and path.stat().st_uid == owner):
        return "belongs to another user"
    with file.open("rb") as content:
        if file.name.endswith("-wal") or (file == path and content.read(20)[19:] == READ_WITH_LOG):
            return "has a write-ahead log, so another program wrote it"
        content.seek(max(content.seek(0, os.SEEK_END) - len(SUPER_JOURNAL_MAGIC), 0))
        return "names another file, which SQLite would delete" if content.read() == SUPER_JOURNAL_MAGIC else ""


@contextmanager
def translate_errors(where: str, secrets: Collection[str] = ()) -> Iterator[None]:
    """Translate database errors into errors with advice, and hide the secrets that they repeat."""
    try:
        yield
    except DamagedError as error:
        raise error.with_store(where) from None
    except sa.exc.DBAPIError as error:
        raise _convert_error(where, error, secrets) from None
    except UnicodeDecodeError as error:
        raise DamagedError(_get_first_line(error), where) from None
    except sa.exc.SQLAlchemyError as error:
        is_lost = isinstance(error, sa.exc.TimeoutError)
        raise StoreError(f"store {where}: {_get_first_line(error, secrets)}", lost=is_lost) from None


UNREACHABLE = (
    "the database cannot be reached; check that the server runs and has this database (createdb), and the user and the "
    "password in the URL, PGPASSWORD or ~/.pgpass"
)

REMEDIES: Mapping[str, str] = {
    "SQLITE_FULL": "the disk is full; free some space",
    "SQLITE_READONLY": "it is read-only, or a run that was killed left a write to undo; make the file and its folder "
    "writable",
    "SQLITE_CANTOPEN": "it cannot be opened; make its folder writable",
    "SQLITE_BUSY": f"another program held its lock for {BUSY_SECONDS} s; let it finish",
    "SQLITE_IOERR": "the file system failed; check the disk",
    "SQLITE_NOMEM": "the memory is used up; free some",
    "53": "the server's disk, memory or connections are used up; free some",
    "25006": "it is read-only; give a database that may be written",
    "42501": "this user may not write; grant the rights",
    "28": "the database refuses this user; give the right name and password in the URL, PGPASSWORD or ~/.pgpass",
    "58": "the server's file system failed; check its disk",
    **dict.fromkeys(("08", "57", "25P"), UNREACHABLE),
}
"""What is wrong and what to do, by the start of the name of SQLite's error or of PostgreSQL's SQLSTATE."""

DAMAGE = ("SQLITE_", "XX", "42", "23", "22")
"""The same of other errors that only damaged databases cause."""


def _convert_error(where: str, error: sa.exc.DBAPIError, secrets: Collection[str]) -> SigdaskError:
    words = _get_first_line(error.orig if error.orig is not None else error, secrets)
    unknown = "SQLITE_ERROR" if isinstance(error.orig, sqlite3.Error) else "08"  # a connection of psycopg that fails
    code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or unknown
    if code == "SQLITE_NOTADB":
        return InputError(
            f"store {where}: the file is not an SQLite database",
            remedy="give a plan (.toml), or another file with --store. If it was a store, move it aside, and "
            "the next run counts again",
        )
    remedy = next((text for start, text in REMEDIES.items() if code.startswith(start)), None)
    if remedy is None:
        return DamagedError(words, where) if code.startswith(DAMAGE) else StoreError(f"store {where}: {words}")
    return StoreError(
        f"store {where}: {remedy}, then run again: all committed counts are intact ({words})",
        lost=error.connection_invalidated or remedy == UNREACHABLE,
    )


def _get_first_line(error: BaseException, secrets: Collection[str] = ()) -> str:
    return redact((str(error).strip().splitlines() or [type(error).__name__])[0], values=secrets)


SILENT_SECONDS = 60
"""Seconds without a statement after which the server ends the session of a driver, and so its lock."""

BEAT_SECONDS = 10.0

LOCK_ID = int.from_bytes(b"sig", "big")
"""First number of the locks that drivers of a PostgreSQL database take; the second is that of a plan."""


LOCK_PATIENCE = 2.0
"""Seconds for which a lock is asked for: a driver that was just killed, or a command that reads, gives it back."""


class LockedError(StoreError):
    """Another session or process has the lock; it may give it back at any time."""


@contextmanager
def hold_lock(database: Database, plan: str) -> Iterator[None]:
    """Hold the lock of a file; of a server, the first session takes the lock. LockedError: another process holds it."""
    if database.is_sqlite:
        with ExitStack() as stack:
            try:
                file = stack.enter_context(_open_lock(database.where, os.O_RDWR | os.O_CREAT))
                _wait_for_lock(database.where, partial(_take_lock, file, fcntl.LOCK_EX))
            except OSError as error:
                problem = f"store {database.where}: it, its folder or its {database.where}-lock is read-only"
                remedy = "make them writable, or choose a file system that has locks"
                raise StoreError(f"{problem} ({error.strerror}); {remedy}") from None
            yield
        return
    sa.event.listen(database.engine, "connect", partial(_lock_session, database.where, plan))
    is_over = threading.Event()
    threading.Thread(target=_keep_alive, args=(database, is_over), name="sigdask lock", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


def _keep_alive(database: Database, is_over: threading.Event) -> None:
    while not is_over.wait(BEAT_SECONDS):
        with suppress(SigdaskError), database.transaction() as connection:
            connection.execute(sa.select(1))


def _wait_for_lock(store: str, take: Callable[[], bool]) -> None:
    until = time.monotonic() + LOCK_PATIENCE
    while not take():
        if time.monotonic() > until:
            raise LockedError(f"store {store}: another run holds its lock", lost=True)
        time.sleep(0.1)


def _open_lock(store: str, flags: int) -> IO[bytes]:
    """Open the file beside a store that is locked. It stays, so that no two runs can lock two files of its name."""
    return os.fdopen(os.open(f"{store}-lock", flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666), "rb")


def _take_lock(file: IO[bytes], kind: int) -> bool:
    """Return whether no other process had the lock of a file, which this one has then."""
    with suppress(BlockingIOError):
        fcntl.flock(file, kind | fcntl.LOCK_NB)
        return True
    return False


def _lock_session(store: str, plan: str, connection: Any, _record: Any) -> None:
    def take() -> bool:
        query = f"SELECT pg_try_advisory_lock({LOCK_ID}, {_get_number(plan)})"
        return bool(connection.execute(query).fetchone()[0])

    for name in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
        connection.execute(f"SET {name} = '{SILENT_SECONDS}s'")
    try:
        _wait_for_lock(store, take)
        connection.commit()
    except LockedError:
        connection.close()
        raise


def _get_number(plan: str) -> int:
    """Return a number of 32 bits, with a sign, for a plan."""
    return zlib.crc32(plan.encode()) - 2**31


def is_locked(connection: Connection, plan: str) -> bool:
    """Return whether a driver holds the lock of a store or plan."""
    if connection.dialect.name == "postgresql":  # until the transaction ends, others can only share it
        query = f"SELECT pg_try_advisory_xact_lock_shared({LOCK_ID}, {_get_number(plan)})"
        return not connection.exec_driver_sql(query).scalar_one()
    with suppress(OSError), _open_lock(str(connection.engine.url.database), os.O_RDONLY) as file:
        return not _take_lock(file, fcntl.LOCK_SH)
    return False  # there is no such file, or this user may not see it
