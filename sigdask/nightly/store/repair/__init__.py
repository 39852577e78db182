"""A store that is damaged: what of it is, said row by row, and taken out, so that the next run counts it again.

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
from sigdask.nightly.store.database import Database, NoDatabaseError, open_to_read, open_to_write, url_of
from sigdask.nightly.store.lease import Lease
from sigdask.nightly.store.repair.faults import Fault, faults_in, n_rows_in
from sigdask.nightly.store.repair.remove import take_out
from sigdask.nightly.store.repair.salvage import is_readable, salvaged

__all__ = ["Fault", "StoreCondition", "check", "repair"]


@dataclass(frozen=True, slots=True)
class StoreCondition:
    """How a store is.

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


def check(where: str) -> StoreCondition:
    """Look at every row of a store, changing nothing.

    Raises
    ------
    DamagedError
        It is damaged so that it cannot be opened.
    """
    with closing(open_to_read(where)) as database, database.transaction() as connection:
        return StoreCondition(database.where, n_rows_in(connection), tuple(faults_in(connection)))


def repair(where: str) -> StoreCondition:
    """Take out what is damaged; return what was.

    Raises
    ------
    HeldError
        A driver is at work on it.
    InputError
        Nothing of it can be read.
    """
    url, set_aside = url_of(where), None
    if url.get_backend_name() == "sqlite":
        path = Path(url.database or "")
        if not (_opens(where) and is_readable(path) and all(fault.table for fault in check(where).faults)):
            try:
                set_aside = salvaged(path)
            except OSError as error:
                raise StoreError(
                    f"store {path}: cannot be repaired where it lies ({error.strerror}); two more of its "
                    "size must have room beside it"
                ) from None
    with closing(open_to_write(where)) as database, _alone(database), database.writing() as connection:
        n_rows, found = n_rows_in(connection), tuple(faults_in(connection))
        take_out(connection, found)
    return StoreCondition(database.where, n_rows, found, set_aside)


def _opens(where: str) -> bool:
    """Say whether a store can be opened; raise where a driver is at work on it."""
    try:
        open_to_read(where).close()
        with closing(open_to_write(where)) as database:
            Lease(database, "").give_back()
    except (DamagedError, NoDatabaseError):
        return False
    return True


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """Hold the leases of all plans."""
    with database.transaction() as connection:
        plans = [str(row[0]) for row in connection.execute(text("SELECT DISTINCT plan FROM runs"))]
    with ExitStack() as stack:
        for name in [""] if database.is_sqlite else plans:
            stack.callback(Lease(database, name).give_back)
        yield
