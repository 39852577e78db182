"""The store of counts, results and history: SQLite by default, PostgreSQL by URL.

A `Store` is open for writing by one driver at a time, for one run. When a method that writes returns, the data are on
disk. An interrupted write leaves no trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from sigdask.errors import DamagedError, HeldError, SigdaskError, StoreError
from sigdask.nightly.store import database as databases
from sigdask.nightly.store import results, runs, tallies
from sigdask.nightly.store.database import Database, LockedError, open_for_reading
from sigdask.nightly.store.results import COMPARISON, COMPLETE
from sigdask.nightly.store.runs import PlanRun
from sigdask.nightly.store.tallies import NewTallies
from sigdask.results.table import Table

__all__ = ["COMPARISON", "COMPLETE", "NewTallies", "PlanRun", "Store", "open_for_reading", "open_store"]

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 90.0
"""Seconds for which a lost connection is retried: longer than a session that was lost keeps the lock."""


class Store:
    """A store open for writing, by this process alone, for a run that began when it was opened.

    Attributes
    ----------
    where : str
        The file or URL, for messages.
    location : str
        Path or URL that opens it again.
    run : PlanRun
        The run, as last saved.
    """

    def __init__(
        self, database: Database, plan: str, path: str, details: dict[str, Any], is_patient: Callable[[], bool]
    ) -> None:
        self.database, self._is_patient = database, is_patient
        self.where, self.location = database.where, database.location
        with database.transaction() as connection:
            databases.check_tables(connection, self.where, is_writer=True)
            self.run = runs.begin_run(connection, plan, path, details)

    def commit(self, new: Sequence[NewTallies] = (), **changes: Any) -> None:
        """Save tallies, and other values of some fields of the run, at once."""
        self.run = replace(self.run, **changes)

        def write(connection: Connection) -> None:
            tallies.write_tallies(connection, new)
            runs.save_run(connection, self.run)

        self._write(write)

    def save_results(self, table: Table) -> int:
        """Save the results, with `COMPARISON` and `COMPLETE`; return how many are new, changed or gone."""
        return self._write(lambda c: results.save_results(c, self.run.plan, self.run.number, table))

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
        """Raise StoreError if another run has begun, so that its driver took over."""
        if runs.find_latest(connection, self.run.plan) != self.run.number:
            raise StoreError(
                f"store {self.where}: this run gave no sign of life for {databases.SILENT_SECONDS} s, so another run "
                "took over the store; the counts of the other run are stored"
            )


@contextmanager
def open_store(
    location: str,
    plan: str,
    path: str = "",
    *,
    details: dict[str, Any],
    patient: Callable[[], bool] = lambda: True,
) -> Iterator[Store]:
    """Open a store for writing, and record that a run of a plan begins; a missing store is created.

    Parameters
    ----------
    location : str
        Path of a SQLite file, or a URL (postgresql://…).
    plan, path : str
        Name and file of the plan.
    details : dict
        Versions and settings of the run.
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
    DamagedError
        It is damaged. A file was moved aside.
    """
    store = None
    with closing(Database(databases.create_engine(databases.parse_url(location), is_writer=True))) as database:
        try:
            with databases.hold_lock(database, plan), _moving_damage(database):
                store = Store(database, plan, path, details, patient)
                yield store
        except LockedError:
            if store is not None:  # a connection was lost, and did not come back
                raise
            raise _build_held_error(location, plan) from None


@contextmanager
def _moving_damage(database: Database) -> Iterator[None]:
    """Rename a SQLite file, and the journal beside it, if it is damaged; the error then has the new name."""
    try:
        yield
    except DamagedError as error:
        if not database.is_sqlite:
            raise
        database.close()
        path = Path(database.where)
        aside = path.with_name(f"{path.name}.damaged-{datetime.now().astimezone():%Y%m%d-%H%M%S}")
        for ending in ("-journal", ""):
            with suppress(FileNotFoundError):
                path.with_name(f"{path.name}{ending}").rename(f"{aside}{ending}")
        raise DamagedError(error.fault, database.where, aside.name) from None


def _build_held_error(location: str, plan: str) -> HeldError:
    plan_text = f", plan {plan!r}," if "://" in location else ""
    what = f"store {databases.describe_url(databases.parse_url(location))}{plan_text}"
    who = "another process"
    with suppress(SigdaskError), open_for_reading(location) as connection:
        run = runs.read_run(connection, runs.find_latest(connection, plan))
        if run.ended is None:
            since = datetime.fromtimestamp(run.started).astimezone()
            who = f"process {run.pid} on {run.host} since {since:%Y-%m-%d %H:%M:%S}"
    return HeldError(f"{what} is being run by {who}. Wait for it, or end it if it hangs")
