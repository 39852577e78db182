"""Counting in rounds for stopping rules, with all counts in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.stopping.counted import RoundTallies
from sigdask.analysis.comparison.stopping.early import EarlyStopping
from sigdask.randomization.jobs import Job, sum_trials
from sigdask.randomization.tallies import TAILS, Tally

Integers = NDArray[np.int64]
Count = Callable[[Sequence[Job]], Sequence[Tally]]

NO_LIMIT = 2**62


class RoundCounts:
    """Counts of the comparisons of some jobs by rounds; implements `PartialCounts`.

    A family has no part in it: rules to stop early are refused beside one.

    Attributes
    ----------
    at, wanted, limit, n_trials
        As in `PartialCounts`.
    n_counted : int
        Trials counted, summed over comparisons.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.at: dict[Job, Integers] = {}
        numbers: dict[int, Integers] = {}
        n = 0
        for job in jobs:
            if id(job.panel) not in numbers:
                shape = job.panel.shape
                numbers[id(job.panel)] = np.arange(n, n + shape[0] * shape[1]).reshape(shape)
                n += shape[0] * shape[1]
            self.at[job] = numbers[id(job.panel)]
        runs = {0, *(job.run for job in jobs)}
        self.wanted = {run: np.zeros(n, np.int64) for run in runs}
        self.limit = {run: np.full(n, NO_LIMIT, np.int64) for run in runs}
        self.n_trials = {run: np.zeros(n, np.int64) for run in runs}
        self.n_counted = 0
        self._trials: dict[int, list[Integers]] = {run: [] for run in runs}
        self._counts: dict[int, list[Integers]] = {run: [] for run in runs}
        for job, numbers_of_job in self.at.items():
            self.wanted[job.run][numbers_of_job] = job.n_trials

    def get_rounds(self, run: int, numbers: Integers, limit: Integers) -> RoundTallies:  # noqa: ARG002  # none is beyond it
        """Return the trials and exceedances of some comparisons in each round."""
        n = len(self._trials[run])
        trials = np.array([values[numbers] for values in self._trials[run]], np.int64).reshape(n, len(numbers))
        counts = np.array([values[numbers] for values in self._counts[run]], np.int64)
        return RoundTallies(trials, counts.reshape(n, len(numbers), len(TAILS)))

    def set_end(
        self,
        run: int,
        numbers: Integers,
        end: Integers,
        stopped: NDArray[np.bool_],
        n_trials: Integers,
        _counts: Integers,
    ) -> None:
        """Set up to which trial some comparisons are to be counted; comparisons that have stopped get no more."""
        self.wanted[run][numbers], self.n_trials[run][numbers] = end, n_trials
        self.limit[run][numbers] = np.where(stopped, end, NO_LIMIT)

    def list_missing(self) -> Iterator[tuple[Job, Integers]]:
        """Yield jobs that count the missing trials, each with the numbers of its comparisons."""
        for job, numbers in self.at.items():
            n, targets = self.n_trials[job.run][numbers], self.wanted[job.run][numbers]
            for start, stop in np.unique(np.stack([n, targets], axis=-1)[n < targets], axis=0).tolist():
                is_missing = (n == start) & (targets == stop)  # (n_pairs, n_metrics)
                patterns, pattern_of = np.unique(is_missing, axis=0, return_inverse=True)
                for k in np.flatnonzero(patterns.any(axis=1)).tolist():
                    rows, columns = np.flatnonzero(pattern_of.ravel() == k), np.flatnonzero(patterns[k])
                    subpanel = job.panel.select(rows.tolist(), columns.tolist())
                    yield Job(subpanel, stop - start, job.run, job.label, start), numbers[np.ix_(rows, columns)]

    def count_missing(self, count: Count) -> bool:
        """Count all missing trials as one more round, and return whether there were any."""
        missing = list(self.list_missing())
        if not missing:
            return False
        tallies = count([job for job, _ in missing])
        self.n_counted += sum_trials(job for job, _ in missing)
        for run, n in self.n_trials.items():
            self._trials[run].append(np.zeros(len(n), np.int64))
            self._counts[run].append(np.zeros((len(n), len(TAILS)), np.int64))
        for (job, numbers), tally in zip(missing, tallies, strict=True):
            self._trials[job.run][-1][numbers] = tally.n_trials
            self._counts[job.run][-1][numbers] = tally.counts[..., : len(TAILS)]
            self.n_trials[job.run][numbers] += tally.n_trials
        return True

    def build_tally(self, job: Job) -> Tally:
        """Return the tally of all trials of a job that are counted so far."""
        numbers = self.at[job]
        trials = self.n_trials[job.run][numbers]
        counts = np.sum([values[numbers] for values in self._counts[job.run]], axis=0, dtype=np.int64)
        return Tally(int(trials.min(initial=job.n_trials)), counts.reshape(*numbers.shape, len(TAILS)), trials)


def count_rounds(rounds: RoundCounts, stopping: EarlyStopping, count: Count) -> None:
    """Count rounds until each comparison has stopped or has all its trials, and find the trials of the stops."""
    stopping.update()
    while rounds.count_missing(count):
        stopping.update()
    stopping.find_stop_trials()
