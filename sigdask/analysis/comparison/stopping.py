"""Early stopping: which rules fit, counting in rounds, and the trial at which each comparison ends.

Rules look at the ends of rounds of the first run, in the order of its trials. So where they stop depends only on the
counts, and not on the cluster, the night, or further counts in a store. The second run is counted as far as the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import CountedCells
from sigdask.analysis.comparison.study import Study
from sigdask.counts.fields import Bools, Integers
from sigdask.errors import InputError
from sigdask.options import Adjust
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.slabs import Job, sum_trials
from sigdask.randomization.tallies import TAILS, Tally, find_rounds
from sigdask.randomization.trials import count_by_trial
from sigdask.results.table import StoppedCounts, Table
from sigdask.statistics.stopping import (
    NOT_YET,
    SINGLE_TRIALS,
    BesagClifford,
    ConfidenceSequence,
    HiddenBlocks,
    Recount,
    Stopping,
    StoppingDecisions,
    compute_saving,
    compute_sequential_p,
    decide,
    find_hidden_blocks,
    find_stopping_block,
    locate_exceedances,
)

SHARED_TRIALS: tuple[Adjust, ...] = ("max-t", "max-t:raw", "single-step-max-t", "bootstrap-t", "tukey")
"""Adjustments that use the largest difference of each trial, so that all comparisons need the same trials."""


def default_adjustment(rule: Stopping) -> Adjust:
    """Return the default adjustment of p-values with a stopping rule."""
    return "holm" if isinstance(rule, BesagClifford) else "none"


def find_conflict(rule: Stopping, adjust: Adjust | None) -> str | None:
    """Return why a rule and an adjustment cannot be combined, or None if they can."""
    if adjust in SHARED_TRIALS:
        others = "holm, hochberg, bh or by" if isinstance(rule, BesagClifford) else "none"
        return f"{adjust} needs the same number of trials for every comparison: choose --adjust {others}"
    if isinstance(rule, ConfidenceSequence) and adjust not in {None, "none"}:
        return f"confidence gives decisions, not the p-values that {adjust} needs: choose besag-clifford, --adjust none"
    return None


def check_compatibility(rule: Stopping, adjust: Adjust | None, *, together: bool) -> None:
    """Raise if the adjustment, or verdicts over several sets, cannot be combined with the stopping rule.

    Raises
    ------
    InputError
        Another option needs p-values, or the same trials for all comparisons. The message names it.
    """
    if (problem := find_conflict(rule, adjust)) is not None:
        raise InputError(f"stop: {problem}, or leave out the stopping rule")
    if together:
        raise InputError(
            "stop: --together needs the same number of trials in all test sets; leave out --stop or --together"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RoundTallies:
    """Trials and exceedances of the rounds of some comparisons in one run.

    Attributes
    ----------
    n_trials : int64 array, shape (n_rounds, n)
        Number of counted trials in each round.
    counts : int64 array, shape (n_rounds, n, 3)
        Their exceedances.
    """

    n_trials: Integers
    counts: Integers


NO_LIMIT = 2**62


class PartialCounts:
    """Trials counted so far of numbered comparisons, and the trials still requested.

    Attributes
    ----------
    at : mapping of Job to int64 array, shape (n_pairs, n_metrics)
        The comparison of each pair and metric of a job.
    n_trials : mapping of run to int64 array, shape (n_comparisons,)
        Trials that count.
    wanted, limit : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials to count, and the number at which a rule has stopped.
    """

    def __init__(self, at: dict[Job, Integers], runs: Iterable[int], n: int) -> None:
        self.at, runs = at, list(runs)
        self.n_trials = {run: np.zeros(n, np.int64) for run in runs}
        self.wanted = {run: np.zeros(n, np.int64) for run in runs}
        self.limit = {run: np.full(n, NO_LIMIT, np.int64) for run in runs}

    def get_rounds(self, run: int, numbers: Integers, limit: Integers) -> RoundTallies:
        """Return the tallies of some comparisons' rounds up to `limit` trials, with the incomplete last round."""
        raise NotImplementedError

    def set_end(
        self, run: int, numbers: Integers, end: Integers, stopped: Bools, n_trials: Integers, _counts: Integers
    ) -> None:
        """Set the trial at which counting of some comparisons ends; stopped comparisons get no further trials."""
        self.wanted[run][numbers], self.n_trials[run][numbers] = end, n_trials
        self.limit[run][numbers] = np.where(stopped, end, NO_LIMIT)


@dataclass(frozen=True, slots=True, eq=False)
class MonitoredResults:
    """Sampled results that a stopping rule monitors, with their counts: arrays of shape (n,).

    Attributes
    ----------
    cells : list of CountedCells
        Their counts.
    job, row, column : int64 array
        The cell of each result's counts in `cells`, and in the job's tally.
    tail : int64 array
        The tail that is judged.
    """

    cells: list[CountedCells]
    job: Integers
    row: Integers
    column: Integers
    tail: Integers

    @staticmethod
    def from_studies(studies: Iterable[Study]) -> MonitoredResults:
        """Return the sampled results of some studies."""
        cells, tails = [], []
        for study in studies:
            for analysis in study.analyses:
                first_run = [part for part in analysis.main.cells if part.kind == "first run"]
                cells += first_run
                tails += [TAILS.index(analysis.alternative)] * len(first_run)
        sizes = [len(part.index) for part in cells]
        row, column = (np.concatenate([NONE, *(getattr(part, name) for part in cells)]) for name in ("row", "column"))
        job, tail = (np.repeat(np.array(values, np.int64), sizes) for values in (range(len(cells)), tails))
        return MonitoredResults(cells, job, row, column, tail)

    def look_up_numbers(self, numbers: Mapping[Job, Integers]) -> Integers:
        """Return the entry of each result's counts in the array `numbers` of its job."""
        return np.concatenate([NONE, *(numbers[part.job][part.row, part.column] for part in self.cells)])


NONE = np.zeros(0, np.int64)
MIN_ROWS, MAX_WASTE = 64, 4
"""Minimum number of pairs recounted together, and for larger numbers their maximum ratio to the pairs that need it."""

BESAG_CLIFFORD, CONFIDENCE_SEQUENCE = "besag-clifford", "confidence-sequence"


class EarlyStopping:
    """Search for the trial at which a stopping rule ends each sampled comparison.

    Parameters
    ----------
    counted : PartialCounts
        The running counts, which this class stops.
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    monitored : MonitoredResults
        The results that the rule monitors. A comparison of several results is monitored once.

    Attributes
    ----------
    comparisons : int64 array, shape (n,)
        Numbers of the comparisons in `counted`.
    tail, limit : int64 array, shape (n,)
        The tail that is judged, and the requested trials.
    stop_trials : int64 array, shape (n,)
        Number of trials at the h-th exceedance, or NOT_YET if unknown.
    """

    def __init__(self, counted: PartialCounts, rule: Stopping, looked: MonitoredResults) -> None:
        self.counted, self.rule, self.monitored = counted, rule, looked
        result_numbers = looked.look_up_numbers(counted.at)
        first_indices = np.sort(np.unique(result_numbers, return_index=True)[1])
        self.comparisons, self._first_result = result_numbers[first_indices], first_indices
        self._index_of = np.full(len(counted.n_trials[0]) + 1, -1, np.int64)  # the last entry belongs to no comparison
        self._index_of[self.comparisons] = np.arange(len(self.comparisons))
        result_index, n = self._index_of[result_numbers], len(self.comparisons)
        self.tail, self.limit = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.tail[result_index] = looked.tail
        job_trials = np.array([part.job.n_trials for part in looked.cells], np.int64)
        np.maximum.at(self.limit, result_index, job_trials[looked.job])
        self.stop_trials = np.full(n, NOT_YET, np.int64)
        self.blocks: dict[int, RoundTallies] = {}
        self._decisions: StoppingDecisions | None = None

    def update(self) -> None:
        """Apply the rule to the counts so far, and request the next round of each comparison that continues."""
        self._decisions = None
        counts = self.counted
        self.blocks = {
            run: counts.get_rounds(run, self.comparisons, self.limit) for run in (0, 1) if run in counts.wanted
        }
        first_run = self.blocks[0]
        ends = np.cumsum(first_run.n_trials, axis=0)  # (n_rounds, n)
        exceedances, trials = self._get_whole_rounds()
        stop = find_stopping_block(self.rule, exceedances, trials)
        n = first_run.n_trials.sum(axis=0)
        end = np.minimum(self.limit, find_rounds(n)[1])
        if len(ends):
            end = np.where(stop == NOT_YET, end, np.take_along_axis(ends, np.maximum(stop, 0)[None], axis=0)[0])
        for run, blocks in self.blocks.items():
            counts.set_end(run, self.comparisons, end, stop != NOT_YET, *_sum_rounds(blocks, end))

    def _get_exceedances(self) -> Integers:
        """Return the first run's exceedances in the tested tail, by round and comparison, shape (n_rounds, n)."""
        return np.take_along_axis(self.blocks[0].counts, self.tail[None, :, None], axis=2)[..., 0]

    def _get_whole_rounds(self) -> tuple[Integers, Integers]:
        """Return the first run's exceedances and trials, with 0 for rounds that are incomplete, shape (n_rounds, n)."""
        trials, exceedances = self.blocks[0].n_trials, self._get_exceedances()
        n = trials.sum(axis=0)
        is_partial = (n < self.limit) & (find_rounds(n)[0] != n)
        last_round = np.count_nonzero(trials, axis=0) - 1
        is_whole = ~(is_partial & (np.arange(len(trials))[:, None] == last_round))
        return exceedances * is_whole, trials * is_whole

    def restore(self, earlier: Table, numbers: Integers) -> None:
        """Take the trial numbers of h-th exceedances from earlier results, instead of counting them again.

        Parameters
        ----------
        earlier : Table
            The results.
        numbers : int64 array, shape (n_results,)
            The comparison of each result; -1 if it is none of these, or if not all its requested trials were counted.
        """
        if not isinstance(self.rule, BesagClifford):
            return
        self._decisions = None
        index = self._index_of[numbers]
        tail = np.array([TAILS.index(side) for side in earlier.alternative.values], np.int64)
        for stops in earlier.stops:
            if (stops.rule, stops.h) == (BESAG_CLIFFORD, self.rule.h):
                rows = np.flatnonzero((index >= 0) & stops.is_early & (stops.n_asked > 0))
                indices, side = index[rows], tail[earlier.alternative.codes[rows]]
                is_same = (self.limit[indices] == stops.n_asked[rows]) & (self.tail[indices] == side)
                self.stop_trials[indices[is_same]] = earlier.n_trials[rows[is_same]]

    def find_stop_trials(self) -> None:
        """Find the trial of each comparison's h-th exceedance by counting its round again; may be interrupted."""
        self._decisions = None
        if (block := self._find_blocks()) is None:
            return
        for number, column, first_trial, n_trials, tail, indices in self._iter_groups(block):
            recount = self._build_recount(self.monitored.cells[number].job, column, tail)
            for solved, trials in locate_exceedances(first_trial, n_trials, indices, block.ordinals[indices], recount):
                self.stop_trials[solved] = trials

    @property
    def is_settled(self) -> bool:
        """Whether the trials of all h-th exceedances in the counts are known."""
        block = self._find_blocks()
        return block is None or not (block.has_come & (self.stop_trials == NOT_YET)).any()

    def _find_blocks(self) -> HiddenBlocks | None:
        """Return the round of each comparison's h-th exceedance; None if the rule needs none or nothing is counted."""
        if not isinstance(self.rule, BesagClifford) or not self.blocks:
            return None
        return find_hidden_blocks(self.rule, self._get_exceedances(), self.blocks[0].n_trials)

    def _iter_groups(self, block: HiddenBlocks) -> Iterator[tuple[int, int, int, int, int, Integers]]:
        """Yield groups to count again: job, column, first trial, number of trials, tail and comparisons."""
        open_ = np.flatnonzero(block.has_come & (self.stop_trials == NOT_YET))
        results, standing = self._first_result[open_], self.monitored
        of_blocks = (values[open_] for values in (block.first, block.n_trials, self.tail))
        keys = np.stack([standing.job[results], standing.column[results], *of_blocks])
        groups, group_of = np.unique(keys, axis=1, return_inverse=True)
        for k, (number, column, first_trial, n_trials, tail) in enumerate(groups.T.tolist()):
            yield number, column, first_trial, n_trials, tail, open_[group_of.ravel() == k]

    def _build_recount(self, job: Job, column: int, tail: int) -> Recount:
        """Return a function that counts a range of trials again, for some comparisons of a job.

        The panel is rebuilt only when fewer than a quarter of its comparisons are still needed, because building one
        takes longer than counting a few more.
        """
        assert not job.panel.is_whole  # stopping rules are refused inside families
        panel, every = job.panel, np.arange(job.panel.shape[0])
        panels: list[tuple[Integers, AnyPanel]] = [(every, panel.select(every, [column]))]

        def recount(first: int, n_trials: int, indices: Integers) -> NDArray[Any]:
            rows = self.monitored.row[self._first_result[indices]]
            while not np.isin(rows, panels[-1][0]).all():
                panels.pop()
            if MIN_ROWS < len(panels[-1][0]) > MAX_WASTE * len(rows):
                panels.append((wanted_rows := np.unique(rows), panel.select(wanted_rows, [column])))
            panel_rows, subpanel = panels[-1]
            counts: NDArray[Any]
            if n_trials <= SINGLE_TRIALS:
                counts = count_by_trial(subpanel, run=0, first=first, n_trials=n_trials)
            else:
                counts = subpanel.tally(run=0, first=first, n_trials=n_trials).counts[None]
            return counts[:, np.searchsorted(panel_rows, rows), 0, tail]

        return recount

    def is_resolved(self, numbers: Integers) -> Bools:
        """Return for which comparisons no trial of an h-th exceedance remains to be found."""
        is_unknown = self.decisions.is_unknown if self.blocks else np.zeros(len(self.comparisons), np.bool_)
        return ~np.append(is_unknown, False)[self.get_indices(numbers)]  # the last is for ignored ones

    def get_indices(self, numbers: Integers) -> Integers:
        """Return the index of each comparison number among the monitored comparisons; -1 if it is not monitored."""
        return self._index_of[numbers]

    def compute_saving(self, indices: Integers) -> float:
        """Return the share of some comparisons' requested trials that early stopping saved."""
        n_requested, numbers = self.limit[indices], self.comparisons[indices]
        stopped = self.counted.limit[0][numbers] < n_requested
        n_counted = np.where(stopped, np.minimum(self.counted.n_trials[0][numbers], n_requested), n_requested)
        return compute_saving(int(n_counted.sum()), int(n_requested.sum()))

    @property
    def decisions(self) -> StoppingDecisions:
        """Decisions of the rule on all monitored comparisons."""
        rule = self.rule
        if self._decisions is None and isinstance(rule, ConfidenceSequence):
            self._decisions = decide(rule, *self._get_whole_rounds(), limit=self.limit)
        elif self._decisions is None:
            assert isinstance(rule, BesagClifford)
            counts = self._get_exceedances(), self.blocks[0].n_trials
            self._decisions = compute_sequential_p(rule, *counts, self.stop_trials, limit=self.limit)
        return self._decisions

    def revise_table(self, table: Table, numbers: Integers) -> Table:
        """Return the table with the rule's p-values and trials in the rows of monitored comparisons.

        Parameters
        ----------
        table : Table
            The results, judged as if the number of trials had been fixed in advance.
        numbers : int64 array, shape (n_results,)
            The comparison of each result; -1 if it is none of these.
        """
        if not self.blocks:
            return table
        index, decisions, rule = self.get_indices(numbers), self.decisions, self.rule
        is_monitored = (index >= 0) & np.append(decisions.is_final, False)[index]
        if not is_monitored.any():
            return table

        def put(own: NDArray[Any], otherwise: Any, where: Bools = is_monitored) -> NDArray[Any]:
            return np.where(where, own[index], otherwise)

        is_decision = isinstance(rule, ConfidenceSequence)
        stops = StoppedCounts(
            rule=CONFIDENCE_SEQUENCE if is_decision else BESAG_CLIFFORD,
            n_asked=put(self.limit, 0),
            is_early=put(decisions.is_early, otherwise=False),
            is_significant=put(decisions.is_significant, np.int8(-1)),
            epsilon=rule.epsilon if isinstance(rule, ConfidenceSequence) else None,
            h=rule.h if isinstance(rule, BesagClifford) else None,
            is_unknown=put(decisions.is_unknown, otherwise=False),
            n_counted=np.where(is_monitored, table.n_trials, 0),
            n_counted_extreme=np.where(is_monitored, table.n_extreme, 0),
        )
        has_limits = is_monitored & put(~np.isnan(decisions.p_low), otherwise=False)
        return replace(
            table,
            n_trials=put(decisions.n_trials, table.n_trials),
            n_extreme=put(decisions.n_extreme, table.n_extreme),
            p_value=put(decisions.p_value, table.p_value),
            p_low=put(decisions.p_low, table.p_low, has_limits),
            p_high=put(decisions.p_high, table.p_high, has_limits),
            stops=(*table.stops, stops),
        )


def _sum_rounds(blocks: RoundTallies, end: Integers) -> tuple[Integers, Integers]:
    """Return each comparison's trials and exceedances, summed over the rounds that begin before `end`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < end) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)


Count = Callable[[Sequence[Job]], Sequence[Tally]]


def iter_missing_trials(n: Integers, wanted: Integers, is_open: Bools) -> Iterator[tuple[int, int, Integers, Integers]]:
    """Yield first and last trial, rows and columns for groups of pairs and metrics that lack the same trials.

    Parameters
    ----------
    n, wanted : int64 array, shape (n_pairs, n_metrics)
        Number of counted trials, and of trials to count.
    is_open : bool array, shape (n_pairs, n_metrics)
        Whether each of them is monitored.
    """
    for first, stop in sorted(set(zip(n[is_open].tolist(), wanted[is_open].tolist(), strict=True))):
        is_selected = is_open & (n == first) & (wanted == stop)
        open_rows = np.flatnonzero(is_selected.any(axis=1))
        is_selected = is_selected[open_rows]
        if (is_selected == is_selected[0]).all():
            yield first, stop, open_rows, np.flatnonzero(is_selected[0])
            continue
        patterns, pattern_of_row = np.unique(is_selected, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            yield first, stop, open_rows[pattern_of_row.ravel() == k], np.flatnonzero(pattern)


class RoundCounts(PartialCounts):
    """Counts of the comparisons of some jobs by rounds.

    Families are not included, because early stopping cannot be combined with them.

    Attributes
    ----------
    at, wanted, limit, n_trials
        As in `PartialCounts`.
    n_counted : int
        Trials counted, summed over comparisons.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        numbers: dict[int, Integers] = {}
        n = 0
        for panel in (job.panel for job in jobs):
            if id(panel) not in numbers:
                numbers[id(panel)] = np.arange(n, n := n + math.prod(panel.shape)).reshape(panel.shape)
        runs = {0, *(job.run for job in jobs)}
        super().__init__({job: numbers[id(job.panel)] for job in jobs}, runs, n)
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

    def list_missing(self) -> Iterator[tuple[Job, Integers]]:
        """Yield jobs that count the missing trials, each with the numbers of its comparisons."""
        for job, numbers in self.at.items():
            n, targets = self.n_trials[job.run][numbers], self.wanted[job.run][numbers]
            for start, stop, rows, columns in iter_missing_trials(n, targets, n < targets):
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
