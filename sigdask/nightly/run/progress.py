"""Progress of each test set, computed from the ledger in one pass over arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from sigdask.analysis.comparison.pairs import CountedCells, look_up_numbers
from sigdask.counts.fields import Bools, Integers
from sigdask.identity import dataclass
from sigdask.nightly.run.ledger import Ledger, LedgerCells
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store import Progress


@dataclass(frozen=True, slots=True, eq=False)
class ProgressWatch:
    """The ledger positions from which a test set's progress is computed.

    Attributes
    ----------
    name : str
        The test set.
    n_results : int
        Comparisons.
    cells : LedgerCells
        Positions of their counts in the ledger.
    p_numbers : int64 array
        The ledger's comparison from which each result's p is computed; -1 if it needs none.
    known : Progress or None
        Progress, if the test set is not read.
    """

    name: str
    n_results: int
    cells: LedgerCells
    p_numbers: Integers
    known: Progress | None = None

    @staticmethod
    def from_batch(ledger: Ledger, batch: Batch) -> Iterator[ProgressWatch]:
        """Yield the ledger positions of each test set of a batch."""
        cells, p_numbers = ledger.find_cells(batch.cells), look_up_numbers(batch.p_cells, ledger.at, len(batch))
        cells = cells.take(np.argsort(cells.results, kind="stable"))
        ends = np.cumsum(np.bincount(batch.set_indices, minlength=len(batch.names)))
        borders = zip([0, *ends.tolist()], [0, *np.searchsorted(cells.results, ends).tolist()], strict=True)
        for name, ((start, first), (end, last)) in zip(batch.names, pairwise(borders), strict=True):
            set_cells = cells.take(slice(first, last))
            set_cells = replace(set_cells, results=set_cells.results - start)
            yield ProgressWatch(name, end - start, set_cells, p_numbers[start:end])

    @staticmethod
    def from_cells(ledger: Ledger, name: str, n_results: int, cells: Sequence[CountedCells]) -> ProgressWatch:
        """Return the ledger positions of an analysis that is not a comparison of a test set."""
        return ProgressWatch(name, n_results, ledger.find_cells(cells), look_up_numbers(cells, ledger.at, n_results))

    @staticmethod
    def from_progress(progress: Progress) -> ProgressWatch:
        """Return the watch of a test set that is not read, with its progress."""
        return ProgressWatch(progress.test_set, progress.comparisons, LedgerCells(*[NONE] * 4), NONE, progress)


class PlanProgress:
    """Progress of all test sets of a plan, computed on columns.

    Parameters
    ----------
    watches : sequence of ProgressWatch
        Watch of each test set, in the plan's order.
    ledger : Ledger
        The trials counted so far.
    """

    def __init__(self, watches: Sequence[ProgressWatch], ledger: Ledger) -> None:
        self._watches, self._ledger = watches, ledger
        self._sizes = np.array([watch.n_results for watch in watches], np.int64)
        self._starts = np.cumsum([0, *self._sizes.tolist()])[:-1]
        self._cells = {run: self._join_cells(run) for run in ledger.wanted}
        self._p_numbers = np.concatenate([NONE, *(watch.p_numbers for watch in watches)])
        self._p_sets = np.repeat(np.arange(len(watches)), [len(watch.p_numbers) for watch in watches])
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
        set_index = np.repeat(np.arange(len(parts)), [len(part.run) for part in parts])
        names = LedgerCells.__slots__
        cells = LedgerCells(*(np.concatenate([NONE, *(getattr(part, name) for part in parts)]) for name in names))
        is_counted = np.zeros(len(cells.numbers), np.bool_)
        is_counted[np.unique(cells.numbers, return_index=True)[1]] = True
        is_counted &= ~self._ledger.is_exact[cells.numbers]
        return replace(cells, results=cells.results + self._starts[set_index]), set_index, is_counted

    def _count_trials(self) -> tuple[Integers, Integers, Bools]:
        """Return the trials counted and requested of each test set, and whether all of each result are counted."""
        n_done, n_wanted = np.zeros((2, len(self._watches)), np.int64)
        is_finished = np.ones(self.n_results, np.bool_)
        for run, (cells, set_index, is_counted) in self._cells.items():
            wanted = np.minimum(cells.wanted, self._ledger.limit[run][cells.numbers])  # fewer if a rule stopped
            n_counted = np.minimum(self._ledger.n_trials[run][cells.numbers], wanted)
            np.add.at(n_done, set_index[is_counted], n_counted[is_counted])
            np.add.at(n_wanted, set_index[is_counted], wanted[is_counted])
            is_finished[cells.results[n_counted < wanted]] = False
        return n_done, n_wanted, is_finished

    def compute(self) -> list[Progress]:
        """Return the progress of each test set, from the trials that the ledger has now."""
        n_done, n_wanted, is_finished = self._count_trials()
        is_reached = self._p_numbers < 0  # results whose p needs no counting
        counted = np.flatnonzero(~is_reached)
        is_reached[counted] = self._ledger.n_trials.get(0, NONE)[self._p_numbers[counted]] > 0
        n_reached = np.bincount(self._p_sets[is_reached], minlength=len(self._watches))
        set_of_result = np.repeat(np.arange(len(self._watches)), self._sizes)
        n_finished = np.bincount(set_of_result[is_finished], minlength=len(self._watches))
        kept = np.minimum(self._kept, n_done)  # fewer than in the store if a rule stopped earlier
        columns = (self._sizes, n_reached, n_finished, kept, n_done - kept, n_wanted)
        return [
            Progress(watch.name, *numbers) if watch.known is None else watch.known
            for watch, *numbers in zip(self._watches, *(column.tolist() for column in columns), strict=True)
        ]


NONE = np.zeros(0, np.int64)
