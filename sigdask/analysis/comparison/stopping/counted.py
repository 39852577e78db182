"""Data that stopping rules read and return: counts by round, monitored comparisons and decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.jobs import join_positions, shift_jobs
from sigdask.analysis.comparison.pairs import CountPositions
from sigdask.analysis.comparison.study import Study
from sigdask.randomization.jobs import Job
from sigdask.randomization.tallies import TAILS

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RoundTallies:
    """Trials and exceedances of the rounds of some comparisons in one run.

    Attributes
    ----------
    n_trials : int64 array, shape (n_rounds, n)
        Trials kept of each round.
    counts : int64 array, shape (n_rounds, n, 3)
        Their exceedances.
    """

    n_trials: Integers
    counts: Integers


class PartialCounts(Protocol):
    """Interface to the trials counted so far of numbered comparisons, and to the trials still requested.

    Attributes
    ----------
    at : mapping of Job to int64 array, shape (n_pairs, n_metrics)
        The comparison of each pair and metric of a job.
    n_trials : mapping of run to int64 array, shape (n_comparisons,)
        Trials that count.
    wanted, limit : mapping of run to int64 array, shape (n_comparisons,)
        Trials that are to be counted, and those after which a rule has stopped.
    """

    at: dict[Job, Integers]
    n_trials: dict[int, Integers]
    wanted: dict[int, Integers]
    limit: dict[int, Integers]

    def get_rounds(self, run: int, numbers: Integers, limit: Integers) -> RoundTallies:
        """Return the tallies of some comparisons' rounds up to `limit` trials, with the incomplete last round."""
        ...

    def set_end(
        self,
        run: int,
        numbers: Integers,
        end: Integers,
        stopped: NDArray[np.bool_],
        n_trials: Integers,
        counts: Integers,
        /,
    ) -> None:
        """Set up to which trial some comparisons are to be counted; comparisons that have stopped get no more."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MonitoredResults:
    """Sampled results that a stopping rule monitors, with the positions of their counts: arrays of shape (n,).

    Attributes
    ----------
    jobs : list of Job
        Those that hold the counts, and others.
    positions : CountPositions
        The place of each among them, the pair and the metric.
    tail : int64 array
        The tail that is judged.
    """

    jobs: list[Job]
    positions: CountPositions
    tail: Integers

    @staticmethod
    def from_studies(studies: Iterable[Study]) -> MonitoredResults:
        """Return the sampled results of some studies."""
        jobs: list[Job] = []
        standings, tails = [], []
        for study in studies:
            first_run = study.slots.first
            sampled = np.flatnonzero(first_run.job >= 0)
            sizes = [len(analysis.main.comparisons) for analysis in study.analyses]
            sides = np.array([TAILS.index(side) for side in study.alternatives], np.int64)
            standings.append(
                shift_jobs(
                    CountPositions(first_run.job[sampled], first_run.row[sampled], first_run.column[sampled]), len(jobs)
                )
            )
            tails.append(np.repeat(sides, sizes)[sampled])
            jobs += study.jobs
        return MonitoredResults(jobs, join_positions(standings), np.concatenate(tails))


@dataclass(frozen=True, slots=True, eq=False)
class StoppingDecisions:
    """Decisions of a stopping rule on the comparisons that it monitors: arrays of shape (n,).

    Attributes
    ----------
    is_final : bool
        Whether it says anything.
    n_trials, n_extreme : int64
    p_value : float64
        NaN where the rule gives a decision alone.
    p_low, p_high : float64
        Interval of p; NaN where all trials were counted, and the interval is that of any sample.
    is_early : bool
        Whether it stopped before the trials asked for.
    is_significant : int8
        1, 0, or -1 where it is undecided or the rule gives a p.
    is_unknown : bool
        Whether the trial to stop at is not looked for yet.
    """

    is_final: NDArray[np.bool_]
    n_trials: Integers
    n_extreme: Integers
    p_value: NDArray[np.float64]
    p_low: NDArray[np.float64]
    p_high: NDArray[np.float64]
    is_early: NDArray[np.bool_]
    is_significant: NDArray[np.int8]
    is_unknown: NDArray[np.bool_]
