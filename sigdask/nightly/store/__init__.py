"""The store of counts, results and history: SQLite by default, PostgreSQL by URL.

A `Store` is open for writing by one driver at a time. When a method that writes returns, the data are on disk. An
interrupted write leaves no trace.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy import URL, Connection

from sigdask.errors import DamagedError, HeldError, SigdaskError, StoreError
from sigdask.nightly.store import results, runs, tallies
from sigdask.nightly.store.database import (
    META,
    SILENT_SECONDS,
    Database,
    LockedError,
    check_tables,
    create_engine,
    create_tables,
    describe_url,
    hold_lock,
    is_locked,
    open_for_reading,
    parse_url,
    upsert,
)
from sigdask.nightly.store.results import COMPARISON, COMPLETE
from sigdask.nightly.store.runs import UNREADABLE, PlanRun
from sigdask.nightly.store.tallies import NewTallies, StoredTallies
from sigdask.results.table import Table

__all__ = [
    "COMPARISON", "COMPLETE", "NewTallies", "PlanRun", "Store", "StoredTallies", "is_running",
    "open_for_reading", "open_store",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 90.0
"""Seconds for which a lost connection is retried: longer than a session that was lost keeps the lock."""

LOCK_PATIENCE = 2.0
"""Seconds for which a lock is retried: the one of a driver that has just been killed is still released."""


class Store:
    """A store open for writing, by this process alone.

    Attributes
    ----------
    where : str
        The file or URL, for messages.
    location : str
        Path or URL that opens it again.
    notes : tuple of str
        Notes for the user.
    """

    def __init__(self, database: Database, plan: str, is_patient: Callable[[], bool]) -> None:
        self.database, self.plan = database, plan
        self.where, self.location = database.where, database.location
        self.notes: tuple[str, ...] = ()
        self._is_patient = is_patient
        self._run: PlanRun | None = None
        driver = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time(), "token": secrets.token_hex(8)}
        self._driver = json.dumps(driver)
        with database.transaction() as connection:
            if not check_tables(connection, self.where):
                create_tables(connection)
            insert = upsert(connection, META).values(name=_get_driver_name(connection, plan), value=self._driver)
            connection.execute(insert.on_conflict_do_update(index_elements=["name"], set_={"value": self._driver}))

    def begin_run(self, path: str, details: dict[str, Any], **sizes: int) -> int:
        """Record that a run began; return its number. `sizes` are its `comparisons`, and trials `kept` and `wanted`."""
        with self.database.transaction() as connection:
            self._check_driver(connection)
            self._run = runs.begin_run(connection, self.plan, path, details, **sizes)
            driver = json.dumps({**json.loads(self._driver), "run": self._run.number})
            connection.execute(sa.update(META).where(META.c.value == self._driver).values(value=driver))
        self._driver = driver
        return self._run.number

    def commit(self, new: Sequence[NewTallies], n_counted: int = 0, seconds_left: float | None = None) -> None:
        """Save tallies and, until the run has ended, how many trials it has counted and the time left, at once."""
        run = self._get_run()
        if run.ended is None:
            self._run = run = replace(run, counted=n_counted, left=seconds_left)

        def write(connection: Connection) -> None:
            tallies.write_tallies(connection, new)
            runs.save_progress(connection, run)

        self._write(write)

    def save_results(self, table: Table) -> int:
        """Save the results, with `COMPARISON` and `COMPLETE`; return how many are new, changed or gone."""
        return self._write(lambda c: results.save_results(c, self.plan, self._get_run().number, table))

    def end_run(self, state: str, message: str, details: dict[str, Any]) -> None:
        """Record how the run ended."""
        self._save_run(replace(self._get_run(), state=state, message=message, details=details, ended=time.time()))

    def amend_run(self, added: dict[str, Any]) -> None:
        """Add details to the run after it has ended."""
        self._save_run(replace(self._get_run(), details={**self._get_run().details, **added}))

    def _get_run(self) -> PlanRun:
        assert self._run is not None, "no run has begun"
        return self._run

    def _save_run(self, run: PlanRun) -> None:
        self._run = run
        self._write(lambda connection: runs.save_run(connection, run))

    def read(self, read: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function reads in one transaction."""
        with self.database.transaction() as connection:
            return read(connection, *args, **kwargs)

    def _write(self, write: Callable[[Connection], T]) -> T:
        """Return what a function returns that writes in one transaction.

        If the connection is lost, it is called again, though its transaction may have been committed: so whatever
        writes here leaves the same if it is done twice.
        """
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.database.transaction() as connection:
                    self._check_driver(connection)
                    return write(connection)
            except StoreError as error:
                if isinstance(error, LockedError):  # by the session that was lost, unless another driver took over
                    with open_for_reading(self.location) as connection:
                        self._check_driver(connection)
                if not error.lost or time.monotonic() > until or not self._is_patient():
                    raise
            time.sleep(0.5)

    def _check_driver(self, connection: Connection) -> None:
        """Raise StoreError if another driver took over."""
        if _read_driver(connection, self.plan) != self._driver:
            raise StoreError(
                f"store {self.where}: this run gave no sign of life for {SILENT_SECONDS} s, so another run took over "
                "the store; the counts of the other run are stored"
            )


def _get_driver_name(connection: Connection, plan: str) -> str:
    """Return the name under which `META` has the driver: of the only one of a file, or of a plan's."""
    return "driver" if connection.dialect.name == "sqlite" else f"driver {plan}"


def _read_driver(connection: Connection, plan: str) -> str:
    query = sa.select(META.c.value).where(META.c.name == _get_driver_name(connection, plan))
    return str(connection.execute(query).scalar_one_or_none())


def is_running(connection: Connection, run: PlanRun) -> bool:
    """Return whether the driver of a run is at work."""
    if run.ended is not None or not is_locked(connection, run.plan):
        return False
    try:
        return bool(json.loads(_read_driver(connection, run.plan))["run"] == run.number)
    except UNREADABLE:
        return False


@contextmanager
def open_store(location: str, plan: str, patient: Callable[[], bool] = lambda: True) -> Iterator[Store]:
    """Open a store for writing, for the driver of one plan; a missing store is created.

    Parameters
    ----------
    location : str
        Path of a SQLite file, or a URL (postgresql://…).
    plan : str
        Name of the plan.
    patient : callable
        Whether to wait for a database that is unavailable.

    Raises
    ------
    HeldError
        Another driver uses the store.
    InputError
        The file is not a store of this version, or its folder does not exist.
    StoreError
        It cannot be reached or written.
    """
    url, until = parse_url(location), time.monotonic() + LOCK_PATIENCE
    with ExitStack() as stack:
        while True:
            try:
                store = stack.enter_context(_open_locked(url, plan, patient))
                break
            except LockedError:
                if time.monotonic() > until:
                    raise _build_held_error(location, plan) from None
            time.sleep(0.1)
        yield store


@contextmanager
def _open_locked(url: URL, plan: str, patient: Callable[[], bool]) -> Iterator[Store]:
    with closing(Database(create_engine(url, is_writer=True))) as database, hold_lock(database, plan):
        try:
            store = Store(database, plan, patient)
        except DamagedError as error:
            note = str(_move_aside(database, error))
            store = Store(database, plan, patient)
            store.notes = (note,)
        try:
            yield store
        except DamagedError as error:
            raise _move_aside(database, error) from None


def _move_aside(database: Database, error: DamagedError) -> DamagedError:
    """Rename a damaged SQLite file, and the journal beside it; return the error with the new name."""
    if not database.is_sqlite:
        raise error
    database.close()
    path = Path(database.where)
    aside = path.with_name(f"{path.name}.damaged-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
    for ending in ("-journal", ""):
        with suppress(FileNotFoundError):
            path.with_name(f"{path.name}{ending}").rename(f"{aside}{ending}")
    return DamagedError(error.fault, database.where, aside.name)


def _build_held_error(location: str, plan: str) -> HeldError:
    what = f"store {describe_url(parse_url(location))}" + (f", plan {plan!r}," if "://" in location else "")
    try:
        with open_for_reading(location) as connection:
            driver = json.loads(_read_driver(connection, plan))
        since = datetime.fromtimestamp(driver["since"]).astimezone()
        who = f"process {driver['pid']} on {driver['host']} since {since:%Y-%m-%d %H:%M:%S}"
    except (SigdaskError, *UNREADABLE):
        who = "another process"
    return HeldError(f"{what} is being run by {who}. Wait for it, or end it if it hangs")
