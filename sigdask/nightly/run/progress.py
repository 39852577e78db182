"""Progress of each test set, computed from the ledger in one pass over arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from sigdask.analysis.comparison.pairs import look_up_numbers
from sigdask.counts.fields import Bools, Integers
from sigdask.nightly.run.ledger import Ledger, LedgerCells
from sigdask.nightly.run.work import Batch
from sigdask.nightly.store import Progress


class PlanProgress:
    """Progress of all test sets of a plan, computed on columns.

    Parameters
    ----------
    names : sequence of str
        All test sets, in the plan's order.
    batches : sequence of Batch
        Those that were read.
    known : mapping of str to Progress
        Progress of those that were not read.
    ledger : Ledger
        The trials counted so far.
    """

    def __init__(
        self, names: Sequence[str], batches: Sequence[Batch], known: Mapping[str, Progress], ledger: Ledger
    ) -> None:
        self._names, self._known, self._ledger = names, known, ledger
        set_index = {name: k for k, name in enumerate(names)}
        starts = np.cumsum([0, *map(len, batches)])[:-1].tolist()
        # of each result: its test set, and the ledger's comparison from which its p is computed; -1 if it needs none
        self._set_of_result = np.concatenate(
            [NONE, *(np.array([set_index[name] for name in batch.names])[batch.set_indices] for batch in batches)]
        )
        self._p_numbers = np.concatenate(
            [NONE, *(look_up_numbers(batch.p_cells, ledger.at, len(batch)) for batch in batches)]
        )
        cells = []
        for start, batch in zip(starts, batches, strict=True):
            own = ledger.find_cells(batch.cells)
            own = own.take(np.argsort(own.results, kind="stable"))
            cells.append(replace(own, results=own.results + start))
        joined = LedgerCells(
            *(np.concatenate([NONE, *(getattr(own, name) for own in cells)]) for name in LedgerCells.__slots__)
        )
        self._cells = {run: self._select_cells(joined, run) for run in ledger.wanted}
        self._kept = self._count_trials()[0]

    @property
    def n_results(self) -> int:
        """Number of comparisons of all test sets."""
        return len(self._set_of_result) + sum(progress.comparisons for progress in self._known.values())

    def _select_cells(self, joined: LedgerCells, run: int) -> tuple[LedgerCells, Bools]:
        """Return the cells of one run of trials, and whether the trials of each count.

        Each comparison counts once, in the first test set that has it. Exact values have no trials.
        """
        cells = joined.take(joined.run == run)
        is_counted = np.zeros(len(cells.numbers), np.bool_)
        is_counted[np.unique(cells.numbers, return_index=True)[1]] = True
        return cells, is_counted & ~self._ledger.is_exact[cells.numbers]

    def _count_trials(self) -> tuple[Integers, Integers, Bools]:
        """Return the trials counted and requested of each test set, and whether all of each result are counted."""
        n_done, n_wanted = np.zeros((2, len(self._names)), np.int64)
        is_finished = np.ones(len(self._set_of_result), np.bool_)
        for run, (cells, is_counted) in self._cells.items():
            set_index = self._set_of_result[cells.results[is_counted]]
            n_counted = np.minimum(self._ledger.n_trials[run][cells.numbers], cells.wanted)
            np.add.at(n_done, set_index, n_counted[is_counted])
            np.add.at(n_wanted, set_index, cells.wanted[is_counted])
            is_finished[cells.results[n_counted < cells.wanted]] = False
        return n_done, n_wanted, is_finished

    def compute(self) -> list[Progress]:
        """Return the progress of each test set, from the trials that the ledger has now."""
        n_done, n_wanted, is_finished = self._count_trials()
        is_reached = self._p_numbers < 0  # results whose p needs no counting
        counted = np.flatnonzero(~is_reached)
        is_reached[counted] = self._ledger.n_trials.get(0, NONE)[self._p_numbers[counted]] > 0
        n_all, n_reached, n_finished = (
            np.bincount(self._set_of_result[selected], minlength=len(self._names))
            for selected in (slice(None), is_reached, is_finished)
        )
        kept = np.minimum(self._kept, n_done)
        columns = (n_all, n_reached, n_finished, kept, n_done - kept, n_wanted)
        return [
            self._known.get(name) or Progress(name, *numbers)
            for name, *numbers in zip(self._names, *(column.tolist() for column in columns), strict=True)
        ]


NONE = np.zeros(0, np.int64)
