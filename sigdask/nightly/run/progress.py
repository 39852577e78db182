"""Progress of each test set, computed from the ledger in one pass over arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from sigdask.counts.fields import Integers
from sigdask.nightly.run.ledger import Ledger, LedgerPositions
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
    cells : mapping of run to (int64 arrays of comparisons, of trials wanted, of results)
        Where their counts stand in the ledger.
    p_positions : int64 arrays
        Run, comparison of each result's p.
    kept : int
        Trials that the store had.
    counted : mapping of run to int64 array
        Which cells its numbers of trials are of: each comparison once, in the first test set that has it. Exact
        values have no trials.
    known : Progress or None
        The progress of a test set that is not read.
    """

    name: str
    n_results: int
    cells: dict[int, tuple[Integers, Integers, Integers]]
    p_positions: tuple[Integers, Integers]
    kept: int
    counted: dict[int, Integers] = field(default_factory=dict)
    known: Progress | None = None

    @staticmethod
    def from_batch(ledger: Ledger, batch: Batch) -> Iterator[ProgressWatch]:
        """Yield the ledger positions of each test set of a batch."""
        positions = [ledger.find_positions(batch.jobs, count_positions) for count_positions in batch.positions]
        runs, numbers, wanted = (
            np.stack([getattr(kind_positions, n) for kind_positions in positions], axis=1)
            for n in LedgerPositions.__slots__
        )
        p_positions = ledger.find_positions(batch.jobs, batch.p_positions)
        ends = np.cumsum(np.bincount(batch.set_indices, minlength=len(batch.names))).tolist()
        for name, start, end in zip(batch.names, [0, *ends], ends, strict=False):
            cells = {}
            for run in ledger.wanted:
                is_counted = (runs[start:end] == run) & (numbers[start:end] >= 0)
                results = np.nonzero(is_counted)[0]
                cells[run] = numbers[start:end][is_counted], wanted[start:end][is_counted], results
            set_p_positions = p_positions.run[start:end], p_positions.numbers[start:end]
            yield ProgressWatch(name, end - start, cells, set_p_positions, 0)

    @staticmethod
    def from_progress(progress: Progress) -> ProgressWatch:
        """Return the watch of a test set that is not read, with its progress."""
        none = np.zeros(0, np.int64)
        return ProgressWatch(progress.test_set, progress.comparisons, {}, (none, none), progress.kept, known=progress)

    @staticmethod
    def divide_trials(watches: Iterable[ProgressWatch], ledger: Ledger) -> list[ProgressWatch]:
        """Return watches of which only the first counts a shared comparison, each with its number of stored trials."""
        is_taken = {run: np.zeros(len(ledger.ids), np.bool_) for run in ledger.wanted}
        divided = []
        for watch in watches:
            counted = {}
            for run, (numbers, _, _) in watch.cells.items():
                first_cells = np.unique(numbers, return_index=True)[1]
                first_numbers = numbers[first_cells]
                counted[run] = first_cells[~(is_taken[run][first_numbers] | ledger.is_exact[first_numbers])]
                is_taken[run][numbers] = True
            distinct = replace(watch, counted=counted)
            kept = watch.kept if watch.known is not None else distinct.compute_progress(ledger).counted
            divided.append(replace(distinct, kept=kept))
        return divided

    def compute_progress(self, ledger: Ledger) -> Progress:
        """Return the test set's progress, from the trials that the ledger has now."""
        if self.known is not None:
            return self.known
        n_done = n_wanted = 0
        finished = np.ones(self.n_results, np.bool_)
        for run, (numbers, wanted, results) in self.cells.items():
            wanted = np.minimum(wanted, ledger.limit[run][numbers])  # noqa: PLW2901  # less where a rule stopped
            n_counted = np.minimum(ledger.n_trials[run][numbers], wanted)
            counted_cells = self.counted[run]
            n_done, n_wanted = n_done + int(n_counted[counted_cells].sum()), n_wanted + int(wanted[counted_cells].sum())
            finished[results[n_counted < wanted]] = False
        runs, numbers = self.p_positions
        n_reached = int(np.count_nonzero(numbers < 0))  # of which p is had without counting
        n_reached += sum(
            int((ledger.n_trials[run][numbers[(runs == run) & (numbers >= 0)]] > 0).sum()) for run in self.cells
        )
        kept = min(self.kept, n_done)  # less than the store had where a rule stopped before
        return Progress(self.name, self.n_results, n_reached, int(finished.sum()), kept, n_done - kept, n_wanted)
