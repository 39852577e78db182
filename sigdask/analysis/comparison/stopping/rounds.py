"""Counting round by round, as a rule to stop early looks at it, with nothing kept beyond the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.stopping.counted import Blocks
from sigdask.analysis.comparison.stopping.early import EarlyStopping
from sigdask.randomization.jobs import Job, total_trials
from sigdask.randomization.tallies import TAILS, Tally

Integers = NDArray[np.int64]
Count = Callable[[Sequence[Job]], Sequence[Tally]]

NO_LIMIT = 2**62


class RoundCounts:
    """What is counted so far of the comparisons of some jobs, by rounds; as `Counted` describes it.

    A family has no part in it: rules to stop early are refused beside one.

    Attributes
    ----------
    at, wanted, limit, n_trials
        As in `Counted`.
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
        for job, at in self.at.items():
            self.wanted[job.run][at] = job.n_trials

    def rounds_of(self, run: int, places: Integers, limit: Integers) -> Blocks:  # noqa: ARG002  # none is beyond it
        """Return what each round has brought."""
        n = len(self._trials[run])
        trials = np.array([of_all[places] for of_all in self._trials[run]], np.int64).reshape(n, len(places))
        counts = np.array([of_all[places] for of_all in self._counts[run]], np.int64)
        return Blocks(trials, counts.reshape(n, len(places), len(TAILS)))

    def end_at(
        self,
        run: int,
        places: Integers,
        upto: Integers,
        stopped: NDArray[np.bool_],
        n_trials: Integers,
        _counts: Integers,
    ) -> None:
        """Want trials up to `upto` of some comparisons, and no more of what is stopped."""
        self.wanted[run][places], self.n_trials[run][places] = upto, n_trials
        self.limit[run][places] = np.where(stopped, upto, NO_LIMIT)

    def missing(self) -> Iterator[tuple[Job, Integers]]:
        """Yield what is still to be counted: jobs of trials to go, and the comparisons of each."""
        for job, at in self.at.items():
            n, wanted = self.n_trials[job.run][at], self.wanted[job.run][at]
            for first, stop in np.unique(np.stack([n, wanted], axis=-1)[n < wanted], axis=0).tolist():
                here = (n == first) & (wanted == stop)  # (n_pairs, n_metrics)
                patterns, of = np.unique(here, axis=0, return_inverse=True)
                for k in np.flatnonzero(patterns.any(axis=1)).tolist():
                    rows, columns = np.flatnonzero(of.ravel() == k), np.flatnonzero(patterns[k])
                    part = job.panel.part(rows.tolist(), columns.tolist())
                    yield Job(part, stop - first, job.run, job.label, first), at[np.ix_(rows, columns)]

    def count(self, count: Count) -> bool:
        """Count what is missing; say whether anything was."""
        found = list(self.missing())
        if not found:
            return False
        tallies = count([job for job, _ in found])
        self.n_counted += total_trials(job for job, _ in found)
        for run, n in self.n_trials.items():
            self._trials[run].append(np.zeros(len(n), np.int64))
            self._counts[run].append(np.zeros((len(n), len(TAILS)), np.int64))
        for (job, at), tally in zip(found, tallies, strict=True):
            self._trials[job.run][-1][at] = tally.n_trials
            self._counts[job.run][-1][at] = tally.counts[..., : len(TAILS)]
            self.n_trials[job.run][at] += tally.n_trials
        return True

    def tally(self, job: Job) -> Tally:
        """Return the tally of a job, as far as it is counted."""
        at = self.at[job]
        trials = self.n_trials[job.run][at]
        counts = np.sum([of_all[at] for of_all in self._counts[job.run]], axis=0, dtype=np.int64)
        return Tally(int(trials.min(initial=job.n_trials)), counts.reshape(*at.shape, len(TAILS)), trials)


def count_rounds(rounds: RoundCounts, early: EarlyStopping, count: Count) -> None:
    """Count until the rule has stopped each comparison, or all its trials are counted, and find where it stops."""
    early.look()
    while rounds.count(count):
        early.look()
    early.find()
