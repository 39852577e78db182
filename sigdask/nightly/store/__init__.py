"""Where counts, results and history are kept: SQLite by default, PostgreSQL by URL.

A `Store` is open for writing by one driver at a time. What it says it has kept is on disk; what was
interrupted leaves no trace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.errors import DamagedError, SigdaskError, StoreError
from sigdask.nightly.store import history, results, tallies
from sigdask.nightly.store.checksums import keys_of
from sigdask.nightly.store.database import Database, open_to_read, open_to_write, shown
from sigdask.nightly.store.extraction_cache import StoredExtractionCache
from sigdask.nightly.store.history import PlanRun, Progress
from sigdask.nightly.store.lease import Lease
from sigdask.nightly.store.repair import check
from sigdask.nightly.store.results import StoredResults
from sigdask.nightly.store.tallies import StoredPrefixes, StoredTallies
from sigdask.report.presentable import Evaluation, Independences
from sigdask.results.table import Table
from sigdask.statistics.bounds import MAX_TRIALS

__all__ = ["PlanRun", "Progress", "Store", "StoredPrefixes", "StoredResults", "StoredTallies", "open_store", "reading"]

PATIENCE = 30.0
"""Seconds to try again for, when the connection to a database is lost."""


class Store:
    """A store open for writing, by this driver alone.

    Attributes
    ----------
    where : str
        The file or URL, for messages.
    location : str
        What opens it again.
    notes : tuple of str
        What the user should know of it.
    shelf : StoredExtractionCache
        What metrics took from outputs.
    """

    def __init__(self, database: Database, plan: str, patient: Callable[[], bool] = lambda: True) -> None:
        self.database = database
        self.plan = plan
        self.where = database.where
        self.location = database.location
        self.notes = database.notes
        self._patient = patient
        self._run = 0
        self._known = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        self.shelf = StoredExtractionCache(database, self._surely)
        what = "" if database.is_sqlite else plan  # a file takes one writer at a time
        self._lease = Lease(database, what)

    def close(self) -> None:
        """Let another driver at it."""
        self._lease.give_back()

    def ids_of(self, digests: NDArray[np.void], labels: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of comparisons, entering those that are new."""
        with self.database.writing() as connection:
            self._lease.renew(connection)
            ids = tallies.ids_of(connection, digests, labels)
        numbers, keys = (
            np.concatenate(both) for both in zip(self._known, (ids, keys_of(digests.tolist())), strict=True)
        )
        numbers, first = np.unique(numbers, return_index=True)
        self._known = numbers, keys[first]
        return ids

    def prefixes(self, ids: NDArray[np.int64], run: int) -> StoredPrefixes:
        """Return what is kept of comparisons of pairs."""
        with self.database.transaction() as connection:
            return tallies.read(connection, ids, self._keys_of(ids), run)

    def blocks(
        self, ids: NDArray[np.int64], run: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return what is kept round by round: first trials (n_rounds,), ends (n_rounds, n), counts (n_rounds, n, 3)."""
        with self.database.transaction() as connection:
            return tallies.read_blocks(connection, ids, self._keys_of(ids), run)

    def rounds(self, ids: NDArray[np.int64], run: int, most: NDArray[np.int64]) -> StoredPrefixes:
        """Return what is kept of comparisons in whole rounds up to trial `most`."""
        with self.database.transaction() as connection:
            return tallies.read_rounds(connection, ids, self._keys_of(ids), run, most)

    def prefixes_of_wholes(
        self, sizes: Mapping[int, int], run: int, most: int = MAX_TRIALS
    ) -> dict[int, StoredPrefixes]:
        """Return what is kept of what is counted as a whole, so many counts by number, in rounds up to trial `most`."""
        with self.database.transaction() as connection:
            return tallies.read_whole(connection, sizes, run, most)

    def begin(self, path: str, details: dict[str, Any], sets: Sequence[Progress]) -> int:
        """Record that a run began; return its number."""
        with self.database.writing() as connection:
            self._lease.renew(connection)
            self._run = history.begin(connection, self.plan, path, details, sets)
        return self._run

    def evaluations(self, found: Mapping[str, Evaluation | Independences]) -> dict[str, Any]:
        """Return what this run keeps of evaluations of rankings and tests of independence."""
        with self.database.transaction() as connection:
            return history.recorded(connection, self.plan, found)

    def commit(
        self,
        kept: Sequence[StoredTallies],
        sets: Iterable[tuple[int, Progress]] = (),
        seconds_left: float | None = None,
    ) -> None:
        """Keep tallies and progress in one transaction; where the connection is lost, try again."""
        listed, keys = list(sets), [self._keys_of(one.ids) for one in kept]

        def write(connection: Any) -> None:
            tallies.write(connection, kept, keys)
            history.update(connection, self._run, listed, seconds_left)

        self._surely(write)

    def record(self, found: Sequence[StoredResults]) -> int:
        """Keep what the run found; return how many results are new or otherwise."""
        changed = 0

        def write(connection: Any) -> None:
            nonlocal changed
            changed = results.record(connection, self.plan, self._run, found)

        self._surely(write)
        return changed

    def end(self, state: str, message: str, details: dict[str, Any], sets: Sequence[Progress] = ()) -> None:
        """Record how the run ended, and how far it came."""

        def write(connection: Any) -> None:
            history.update(connection, self._run, enumerate(sets))
            history.end(connection, self._run, state, message, details)

        self._surely(write)

    def amend(self, number: int, more: dict[str, Any]) -> None:
        """Add details to a run that has ended."""
        self._surely(lambda connection: history.amend(connection, number, more))

    def first_looks(self, comparisons: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the smallest number of trials that a complete result of each was had with; 0 where none was."""
        with self.database.transaction() as connection:
            return results.first_looks(connection, self.plan, comparisons)

    def runs(self) -> list[PlanRun]:
        """Return the plan's runs, the first first."""
        with self.database.transaction() as connection:
            return history.runs_of(connection, self.plan)[::-1]

    def results(self, alpha: float = math.nan) -> StoredResults:
        """Return the results that hold, with a level for their words."""
        with self.database.transaction() as connection:
            return results.found_at(connection, self.plan, alpha)

    def unchanged(self, before: int) -> Table:
        """Return the results that hold now whose outputs are those of an earlier run."""
        with self.database.transaction() as connection:
            return results.results_of(results.unchanged(connection, self.plan, before), math.nan)

    def results_after(self, number: int) -> Table:
        """Return the results that held after a run."""
        with self.database.transaction() as connection:
            return results.results_of(results.results_at(connection, self.plan, number), math.nan)

    def _keys_of(self, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return what checksums know comparisons by."""
        numbers, keys = self._known
        return keys[np.searchsorted(numbers, ids)]

    def _surely(self, write: Callable[[Any], None]) -> None:
        """Make one transaction, once: a lost connection may have lost only the answer."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.database.writing() as connection:
                    self._lease.renew(connection, commits=1)
                    write(connection)
            except StoreError as error:
                if not error.lost or time.monotonic() > until or not self._patient():
                    raise
                if self._was_made():
                    break
                time.sleep(0.5)
            else:
                break
        self._lease.commits += 1

    def _was_made(self) -> bool:
        try:
            return self._lease.commits_made() == self._lease.commits + 1
        except StoreError:
            return False


@contextmanager
def open_store(where: str, plan: str, patient: Callable[[], bool] = lambda: True) -> Iterator[Store]:
    """Open a store for one plan's driver.

    Parameters
    ----------
    where : str
        Path of a SQLite file, or a URL.
    plan : str
        Name of the plan.
    patient : callable
        Whether to wait for a database that went away.

    Raises
    ------
    HeldError
        Another driver is at work.
    """
    with (
        _damage_told(where),
        closing(open_to_write(where)) as database,
        closing(Store(database, plan, patient)) as store,
    ):
        yield store


@contextmanager
def reading(where: str) -> Iterator[Any]:
    """Open a store to look at it: a connection."""
    with _damage_told(where), closing(open_to_read(where)) as database, database.transaction() as connection:
        yield connection


@contextmanager
def _damage_told(where: str) -> Iterator[None]:
    """Say of what fails for no reason of its own whether the store is damaged."""
    try:
        yield
    except SigdaskError:
        raise
    except Exception as error:
        if found := _faults(where):
            raise DamagedError(found, shown(where)) from error
        raise


def _faults(where: str) -> list[str]:
    try:
        return [fault.text for fault in check(where).faults]
    except DamagedError as error:
        return list(error.faults)
    except SigdaskError:
        return []
