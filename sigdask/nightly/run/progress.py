"""Progress of each test set, computed from the ledger in one pass over arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sigdask.analysis.comparison.pairs import CountedCells, look_up_numbers
from sigdask.counts.fields import Bools, Integers
from sigdask.nightly.run.ledger import Ledger, LedgerCells
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store import Progress


@dataclass(frozen=True, slots=True, eq=False)
class ProgressWatch:
    """The ledger positions from which the progress of some test sets is computed.

    Attributes
    ----------
    names : tuple of str
        The test sets.
    sizes : int64 array
        Number of comparisons of each.
    cells : LedgerCells
        Positions of their counts in the ledger.
    p_numbers : int64 array
        The ledger's comparison from which each result's p is computed; -1 if it needs none.
    known : Progress or None
        Progress, if the test set is not read.
    """

    names: tuple[str, ...]
    sizes: Integers
    cells: LedgerCells
    p_numbers: Integers
    known: Progress | None = None

    @staticmethod
    def from_batch(ledger: Ledger, batch: Batch) -> ProgressWatch:
        """Return the ledger positions of all test sets of a batch."""
        cells, p_numbers = ledger.find_cells(batch.cells), look_up_numbers(batch.p_cells, ledger.at, len(batch))
        cells = cells.take(np.argsort(cells.results, kind="stable"))
        sizes = np.bincount(batch.set_indices, minlength=len(batch.names))
        return ProgressWatch(batch.names, sizes, cells, p_numbers)

    @staticmethod
    def from_cells(ledger: Ledger, name: str, n_results: int, cells: Sequence[CountedCells]) -> ProgressWatch:
        """Return the ledger positions of an analysis that is not a comparison of a test set."""
        p_numbers = look_up_numbers(cells, ledger.at, n_results)
        return ProgressWatch((name,), np.array([n_results]), ledger.find_cells(cells), p_numbers)

    @staticmethod
    def from_progress(progress: Progress) -> ProgressWatch:
        """Return the watch of a test set that is not read, with its progress."""
        sizes = np.array([progress.comparisons])
        return ProgressWatch((progress.test_set,), sizes, LedgerCells(*[NONE] * 4), NONE, progress)


class PlanProgress:
    """Progress of all test sets of a plan, computed on columns.

    Parameters
    ----------
    watches : sequence of ProgressWatch
        Watches of all test sets, in the plan's order.
    ledger : Ledger
        The trials counted so far.
    """

    def __init__(self, watches: Sequence[ProgressWatch], ledger: Ledger) -> None:
        self._watches, self._ledger = watches, ledger
        self._sizes = np.concatenate([NONE, *(watch.sizes for watch in watches)])
        self._starts = np.cumsum([0, *(watch.sizes.sum() for watch in watches)])[:-1]
        self._set_of_result = np.repeat(np.arange(len(self._sizes)), self._sizes)
        self._cells = {run: self._join_cells(run) for run in ledger.wanted}
        self._p_numbers = np.concatenate([NONE, *(watch.p_numbers for watch in watches)])
        pairs = zip(self._starts.tolist(), watches, strict=True)
        results = [np.arange(start, start + len(watch.p_numbers)) for start, watch in pairs]
        self._p_sets = self._set_of_result[np.concatenate([NONE, *results])]
        self._kept = self._count_trials()[0]

    @property
    def n_results(self) -> int:
        """Number of comparisons of all test sets."""
        return int(self._sizes.sum())

    def _join_cells(self, run: int) -> tuple[LedgerCells, Integers, Bools]:
        """Return the cells of all test sets in one run of trials, the test set of each, and whether its trials count.

        Each comparison counts once, in the first test set that has it. Exact values have no trials.
        """
        parts = [watch.cells.take(watch.cells.run == run) for watch in self._watches]
        starts = np.repeat(self._starts, [len(part.run) for part in parts])
        names = LedgerCells.__slots__
        cells = LedgerCells(*(np.concatenate([NONE, *(getattr(part, name) for part in parts)]) for name in names))
        is_counted = np.zeros(len(cells.numbers), np.bool_)
        is_counted[np.unique(cells.numbers, return_index=True)[1]] = True
        is_counted &= ~self._ledger.is_exact[cells.numbers]
        results = cells.results + starts
        return replace(cells, results=results), self._set_of_result[results], is_counted

    def _count_trials(self) -> tuple[Integers, Integers, Bools]:
        """Return the trials counted and requested of each test set, and whether all of each result are counted."""
        n_done, n_wanted = np.zeros((2, len(self._sizes)), np.int64)
        is_finished = np.ones(self.n_results, np.bool_)
        for run, (cells, set_index, is_counted) in self._cells.items():
            n_counted = np.minimum(self._ledger.n_trials[run][cells.numbers], cells.wanted)
            np.add.at(n_done, set_index[is_counted], n_counted[is_counted])
            np.add.at(n_wanted, set_index[is_counted], cells.wanted[is_counted])
            is_finished[cells.results[n_counted < cells.wanted]] = False
        return n_done, n_wanted, is_finished

    def compute(self) -> list[Progress]:
        """Return the progress of each test set, from the trials that the ledger has now."""
        n_done, n_wanted, is_finished = self._count_trials()
        is_reached = self._p_numbers < 0  # results whose p needs no counting
        counted = np.flatnonzero(~is_reached)
        is_reached[counted] = self._ledger.n_trials.get(0, NONE)[self._p_numbers[counted]] > 0
        n_reached = np.bincount(self._p_sets[is_reached], minlength=len(self._sizes))
        n_finished = np.bincount(self._set_of_result[is_finished], minlength=len(self._sizes))
        kept = np.minimum(self._kept, n_done)
        names = [(watch, name) for watch in self._watches for name in watch.names]
        columns = (self._sizes, n_reached, n_finished, kept, n_done - kept, n_wanted)
        return [
            Progress(name, *numbers) if watch.known is None else watch.known
            for (watch, name), *numbers in zip(names, *(column.tolist() for column in columns), strict=True)
        ]


NONE = np.zeros(0, np.int64)
