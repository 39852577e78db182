"""How far a test set has come, told from the ledger in one sweep over arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.nightly.run.ledger import Ledger, LedgerPositions
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store import Progress


@dataclass(frozen=True, slots=True, eq=False)
class ProgressWatch:
    """What a test set's progress is told by: the cells of its results, flat.

    Attributes
    ----------
    name : str
        The test set.
    n_results : int
        Comparisons.
    cells : mapping of run to (int64 arrays of comparisons, of trials wanted, of results)
        Where their counts stand in the ledger.
    first : int64 arrays
        Run, comparison of each result's p.
    kept : int
        Trials that the store had.
    counted : mapping of run to int64 array
        Which cells its numbers of trials are of: each comparison once, in the first test set that has it.
    """

    name: str
    n_results: int
    cells: dict[int, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    first: tuple[NDArray[np.int64], NDArray[np.int64]]
    kept: int
    counted: dict[int, NDArray[np.int64]] = field(default_factory=dict)

    @staticmethod
    def of(ledger: Ledger, batch: Batch, of_set: int) -> ProgressWatch:
        """Watch one of the test sets of a batch."""
        own = np.flatnonzero(batch.set_of == of_set)
        jobs = batch.study.jobs
        spots = [ledger.spots(jobs, standing) for standing in batch.standings]
        run, place, wanted = (
            np.concatenate([getattr(each, n)[own] for each in spots]) for n in LedgerPositions.__slots__
        )
        result = np.tile(np.arange(len(own)), len(spots))
        cells = {}
        for number in ledger.wanted:
            here = np.flatnonzero((run == number) & (place >= 0))
            here = here[np.argsort(result[here], kind="stable")]
            cells[number] = place[here], wanted[here], result[here]
        of_p = ledger.spots(jobs, batch.of_p)
        return ProgressWatch(batch.names[of_set], len(own), cells, (of_p.run[own], of_p.place[own]), 0)

    @staticmethod
    def all_of(watches: Iterable[ProgressWatch], ledger: Ledger) -> list[ProgressWatch]:
        """Return watches whose trials add up to those of the ledger, with what it has now as what the store had."""
        taken = {run: np.zeros(len(ledger.ids), np.bool_) for run in ledger.wanted}
        found = []
        for watch in watches:
            counted = {}
            for run, (places, _, _) in watch.cells.items():
                once = np.unique(places, return_index=True)[1]
                counted[run] = once[~taken[run][places[once]]]
                taken[run][places] = True
            own = replace(watch, counted=counted)
            found.append(replace(own, kept=own.now(ledger).counted))
        return found

    def now(self, ledger: Ledger) -> Progress:
        """Return how far it is."""
        done = wanted_all = 0
        finished = np.ones(self.n_results, np.bool_)
        for run, (places, wanted, results) in self.cells.items():
            wanted = np.minimum(wanted, ledger.limit[run][places])  # noqa: PLW2901  # less where a rule stopped
            have = np.minimum(ledger.n_trials[run][places], wanted)
            once = self.counted[run]
            done, wanted_all = done + int(have[once].sum()), wanted_all + int(wanted[once].sum())
            finished[results[have < wanted]] = False
        runs, places = self.first
        reached = int(np.count_nonzero(places < 0))  # of which p is had without counting
        reached += sum(
            int((ledger.n_trials[run][places[(runs == run) & (places >= 0)]] > 0).sum()) for run in self.cells
        )
        kept = min(self.kept, done)  # less than the store had where a rule stopped before
        return Progress(self.name, self.n_results, reached, int(finished.sum()), kept, done - kept, wanted_all)
