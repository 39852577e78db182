"""Repair of damaged stores: damaged rows are listed and removed, and the next run counts them.

Nothing else is lost: rows that are what was kept stay, and of trials that are missing between others only these are
counted. What SQLite cannot read is copied row by row, as far as rows are whole; the damaged file stays beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from sigdask.errors import DamagedError, StoreError
from sigdask.nightly.store.database import Database, NoDatabaseError, open_to_read, open_to_write, parse_url
from sigdask.nightly.store.lease import Lease
from sigdask.nightly.store.repair.faults import Fault, count_rows, iter_faults
from sigdask.nightly.store.repair.remove import remove_rows
from sigdask.nightly.store.repair.salvage import is_readable, salvage_store

__all__ = ["Fault", "StoreCondition", "check_store", "repair_store"]


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """The condition of a store.

    Attributes
    ----------
    where : str
        The file or URL, without its password.
    n_rows : int
        Rows that were looked at.
    faults : tuple of Fault
        What is damaged, or missing.
    set_aside : Path or None
        The damaged file, where a new one took its place.
    """

    where: str
    n_rows: int
    faults: tuple[Fault, ...]
    set_aside: Path | None = None


def check_store(location: str) -> StoreCondition:
    """Check every row of a store, changing nothing.

    Raises
    ------
    DamagedError
        It is damaged so that it cannot be opened.
    """
    with closing(open_to_read(location)) as database, database.transaction() as connection:
        return StoreCondition(database.where, count_rows(connection), tuple(iter_faults(connection)))


def repair_store(location: str) -> StoreCondition:
    """Remove damaged rows, and return the store's condition before that.

    Raises
    ------
    HeldError
        A driver is at work on it.
    InputError
        Nothing of it can be read.
    """
    url, set_aside = parse_url(location), None
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        if not (
            _can_open(location) and is_readable(path) and all(fault.table for fault in check_store(location).faults)
        ):
            try:
                set_aside = salvage_store(path)
            except OSError as error:
                raise StoreError(
                    f"store {path}: cannot be repaired where it lies ({error.strerror}); two more of its "
                    "size must have room beside it"
                ) from None
    with (
        closing(open_to_write(location)) as database,
        _hold_leases(database),
        database.write_transaction() as connection,
    ):
        n_rows, faults = count_rows(connection), tuple(iter_faults(connection))
        remove_rows(connection, faults)
    return StoreCondition(database.where, n_rows, faults, set_aside)


def _can_open(location: str) -> bool:
    """Return whether a store can be opened; raise if a driver is at work on it."""
    try:
        open_to_read(location).close()
        with closing(open_to_write(location)) as database:
            Lease(database, "").release()
    except (DamagedError, NoDatabaseError):
        return False
    return True


@contextmanager
def _hold_leases(database: Database) -> Iterator[None]:
    """Hold the leases of all plans in the body, so that no driver can open the store."""
    with database.transaction() as connection:
        plans = [str(row[0]) for row in connection.execute(text("SELECT DISTINCT plan FROM runs"))]
    with ExitStack() as stack:
        for name in [""] if database.is_sqlite else plans:
            stack.callback(Lease(database, name).release)
        yield
