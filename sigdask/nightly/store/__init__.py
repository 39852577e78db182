"""The store of counts, results and history: SQLite by default, PostgreSQL by URL.

A `Store` is open for writing by one driver at a time. When a method that writes returns, the data are on disk. An
interrupted write leaves no trace.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection

from sigdask.errors import DamagedError, StoreError
from sigdask.nightly.store import history, results, tallies
from sigdask.nightly.store.checksums import compute_keys
from sigdask.nightly.store.database import Database, open_to_read, open_to_write
from sigdask.nightly.store.extraction_cache import StoredExtractionCache
from sigdask.nightly.store.history import PlanRun, Progress
from sigdask.nightly.store.lease import Lease
from sigdask.nightly.store.results import StoredResults
from sigdask.nightly.store.tallies import StoredPrefixes, StoredTallies
from sigdask.results.table import Table
from sigdask.statistics.bounds import MAX_TRIALS

__all__ = [
    "PlanRun", "Progress", "Store", "StoredPrefixes", "StoredResults", "StoredTallies", "open_for_reading",
    "open_store",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 30.0
"""Seconds for which a lost database connection is retried."""


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
    extraction_cache : StoredExtractionCache
        Cache of statistics extracted from outputs.
    """

    def __init__(self, database: Database, plan: str, patient: Callable[[], bool] = lambda: True) -> None:
        self.database = database
        self.plan = plan
        self.where = database.where
        self.location = database.location
        self.notes = database.notes
        self._patient = patient
        self._run = 0
        self._known_keys = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        self.extraction_cache = StoredExtractionCache(database, self._commit_once)
        lease_name = "" if database.is_sqlite else plan  # a file takes one writer at a time
        self._lease = Lease(database, lease_name)

    def close(self) -> None:
        """Give back the lease, so that another process can open the store."""
        self._lease.release()

    def fetch_ids(self, digests: NDArray[np.void], labels: Sequence[str]) -> NDArray[np.int64]:
        """Return the numbers of comparisons, inserting new ones."""
        with self.database.write_transaction() as connection:
            self._lease.renew(connection)
            ids = tallies.fetch_ids(connection, digests, labels)
        numbers, keys = (
            np.concatenate(pair) for pair in zip(self._known_keys, (ids, compute_keys(digests.tolist())), strict=True)
        )
        numbers, first_indices = np.unique(numbers, return_index=True)
        self._known_keys = numbers, keys[first_indices]
        return ids

    def fetch_prefixes(self, ids: NDArray[np.int64], run: int) -> StoredPrefixes:
        """Return the stored counts of pair comparisons, from the first trial to the first gap."""
        return self._read(tallies.read, ids, self._get_keys(ids), run)

    def fetch_rounds(self, ids: NDArray[np.int64], run: int, max_stop: NDArray[np.int64]) -> StoredPrefixes:
        """Return the stored counts of comparisons, summed over the whole rounds that end by `max_stop`."""
        return self._read(tallies.read_rounds, ids, self._get_keys(ids), run, max_stop)

    def fetch_family_prefixes(
        self, sizes: Mapping[int, int], run: int, max_stop: int = MAX_TRIALS
    ) -> dict[int, StoredPrefixes]:
        """Return the stored counts of families (number: size), summed over rounds that end by `max_stop`."""
        return self._read(tallies.read_families, sizes, run, max_stop)

    def begin_run(self, path: str, details: dict[str, Any], sets: Sequence[Progress]) -> int:
        """Record that a run began; return its number."""
        with self.database.write_transaction() as connection:
            self._lease.renew(connection)
            self._run = history.begin_run(connection, self.plan, path, details, sets)
        return self._run

    def commit(
        self,
        new_tallies: Sequence[StoredTallies],
        sets: Iterable[tuple[int, Progress]] = (),
        seconds_left: float | None = None,
    ) -> None:
        """Save tallies and progress in one transaction, retrying if the connection is lost."""
        progress, keys = list(sets), [self._get_keys(entry.ids) for entry in new_tallies]

        def write(connection: Any) -> None:
            tallies.write_tallies(connection, new_tallies, keys)
            history.update_run(connection, self._run, progress, seconds_left)

        self._commit_once(write)

    def save_results(self, new_results: Sequence[StoredResults]) -> int:
        """Save the run's results; return how many are new, changed or gone."""
        return self._commit_once(lambda c: results.save_results(c, self.plan, self._run, new_results))

    def end_run(
        self, state: str, message: str, details: dict[str, Any], sets: Sequence[tuple[int, Progress]] = ()
    ) -> None:
        """Record how the run ended, and the progress of the test sets that advanced, with their positions."""

        def write(connection: Any) -> None:
            history.update_run(connection, self._run, sets)
            history.end_run(connection, self._run, state, message, details)

        self._commit_once(write)

    def amend_run(self, number: int, added: dict[str, Any]) -> None:
        """Add details to a run that has ended."""
        self._commit_once(lambda connection: history.amend_run(connection, number, added))

    def fetch_first_looks(self, comparisons: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each comparison, the fewest trials at which a complete result was recorded, or 0."""
        return self._read(results.find_first_looks, self.plan, comparisons)

    def list_runs(self) -> list[PlanRun]:
        """Return the plan's runs, earliest first."""
        return self._read(history.list_runs, self.plan)[::-1]

    def find_finished_run(self) -> PlanRun | None:
        """Return the plan's latest run if it counted all trials; None otherwise, or if it cannot be read."""
        try:
            run = self._read(history.find_run, self.plan, None)
        except DamagedError:
            return None
        return run if run is not None and run.state == "finished" else None

    def fetch_results(self, alpha: float = math.nan) -> StoredResults:
        """Return the current results, with a significance level for their verdicts."""
        return self._read(results.fetch_current, self.plan, alpha)

    def fetch_unchanged(self, earlier_run: int) -> Table:
        """Return the current results whose system outputs are the same as after an earlier run."""
        return self._read(results.find_unchanged, self.plan, earlier_run)

    def fetch_results_after(self, number: int) -> Table:
        """Return the results that were current after a run."""
        return self._read(results.fetch_results_at, self.plan, number)

    def _read(self, read: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what a function reads in one transaction."""
        with self.database.transaction() as connection:
            return read(connection, *args, **kwargs)

    def _get_keys(self, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the numbers that represent comparisons in the checksums of their rows."""
        numbers, keys = self._known_keys
        return keys[np.searchsorted(numbers, ids)]

    def _commit_once(self, write: Callable[[Any], T]) -> T:
        """Commit one transaction exactly once, even if a lost connection hides it; return the value of `write`."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with self.database.write_transaction() as connection:
                    self._lease.renew(connection, commits=1)
                    result = write(connection)
            except StoreError as error:
                if not error.lost or time.monotonic() > until or not self._patient():
                    raise
                with suppress(StoreError):
                    if self._lease.count_commits() == self._lease.commits + 1:
                        break
                time.sleep(0.5)
            else:
                break
        self._lease.commits += 1
        return result


@contextmanager
def open_store(location: str, plan: str, patient: Callable[[], bool] = lambda: True) -> Iterator[Store]:
    """Open a store for writing, for the driver of one plan.

    Parameters
    ----------
    location : str
        Path of a SQLite file, or a URL.
    plan : str
        Name of the plan.
    patient : callable
        Whether to wait for a database that is unavailable.

    Raises
    ------
    HeldError
        Another driver uses the store.
    """
    with closing(open_to_write(location)) as database, closing(Store(database, plan, patient)) as store:
        yield store


@contextmanager
def open_for_reading(location: str) -> Iterator[Any]:
    """Open an existing store and yield a connection."""
    with closing(open_to_read(location)) as database, database.transaction() as connection:
        yield connection
