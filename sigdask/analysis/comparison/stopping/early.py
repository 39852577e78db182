"""Early stopping: the trial at which a rule stops each comparison, and the resulting p or decision.

Rules look at the ends of rounds of the first run, in the order of its trials, so that where they
stop depends on the counts alone: not on the cluster, nor on nights, nor on what more a store has.
The second run is brought as far as the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.stopping.counted import (
    MonitoredResults,
    PartialCounts,
    RoundTallies,
    StoppingDecisions,
)
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.stream.trial_by_trial import count_by_trial
from sigdask.randomization.tallies import TAILS, find_rounds
from sigdask.results.table import StoppedCounts, Table
from sigdask.statistics.stopping import (
    NOT_YET,
    SINGLE_TRIALS,
    BesagClifford,
    ConfidenceSequence,
    HiddenBlocks,
    Recount,
    Stopping,
    compute_saving,
    compute_sequence_interval,
    compute_sequential_p,
    decide,
    find_hidden_blocks,
    find_stopping_block,
    locate_exceedances,
)

Integers = NDArray[np.int64]
RUNS = (0, 1)
MIN_ROWS, MAX_WASTE = 64, 4
"""Pairs that are counted again together, however few are looked for; beyond, times as many as are."""

BESAG_CLIFFORD, CONFIDENCE_SEQUENCE = "besag-clifford", "confidence-sequence"
INTERVAL_RISK = 0.01
"""Of the interval beside Besag and Clifford's p, which holds however many trials the counts chose."""


class EarlyStopping:
    """Search for the trial at which a stopping rule ends each sampled comparison.

    Parameters
    ----------
    counted : PartialCounts
        What is counted; told where to stop.
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    monitored : MonitoredResults
        What the rule looks at; a comparison that several results have is looked at once.

    Attributes
    ----------
    comparisons : int64 array, shape (n,)
        The comparisons, by their numbers in what is counted.
    tail, limit : int64 array, shape (n,)
        The tail that is judged, and the trials asked for.
    stop_trials : int64 array, shape (n,)
        After how many trials the h-th exceedance came; NOT_YET where that is not known.
    """

    def __init__(self, counted: PartialCounts, rule: Stopping, looked: MonitoredResults) -> None:
        self.counted, self.rule, self.monitored = counted, rule, looked
        result_numbers = looked.positions.look_up_numbers(looked.jobs, counted.at)
        self.comparisons, self._first_result = _find_distinct(result_numbers)
        self._index_of = np.full(len(counted.n_trials[0]) + 1, -1, np.int64)  # the last is that of no comparison
        self._index_of[self.comparisons] = np.arange(len(self.comparisons))
        result_index, n = self._index_of[result_numbers], len(self.comparisons)
        self.tail, self.limit = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.tail[result_index] = looked.tail
        job_trials = np.array([job.n_trials for job in looked.jobs], np.int64)
        np.maximum.at(self.limit, result_index, job_trials[looked.positions.job])
        self.stop_trials = np.full(n, NOT_YET, np.int64)
        self.blocks: dict[int, RoundTallies] = {}
        self._decisions: StoppingDecisions | None = None

    def update(self) -> None:
        """Apply the rule to the counts so far, and request the next round of each comparison that continues."""
        self._decisions = None
        counts = self.counted
        self.blocks = {
            run: counts.get_rounds(run, self.comparisons, self.limit) for run in RUNS if run in counts.wanted
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
            The comparison of each; -1 where it is none of these, or not all that it wants was counted.
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
            recount = self._build_recount(self.monitored.jobs[number], column, tail)
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
        results, standing = self._first_result[open_], self.monitored.positions
        keys = np.stack(
            [
                standing.job[results],
                standing.column[results],
                block.first[open_],
                block.n_trials[open_],
                self.tail[open_],
            ]
        )
        groups, group_of = np.unique(keys, axis=1, return_inverse=True)
        for k, key in enumerate(groups.T.tolist()):
            number, column, first_trial, n_trials, tail = key
            yield number, column, first_trial, n_trials, tail, open_[group_of.ravel() == k]

    def _build_recount(self, job: Job, column: int, tail: int) -> Recount:
        """Return a function that counts a range of trials again, for some comparisons of a job.

        Arranging a panel of just these would take longer than counting some more; a part is made anew where fewer than
        a quarter of it are still looked for.
        """
        assert not job.panel.is_whole  # stopping rules are refused inside families
        panel, every = job.panel, np.arange(job.panel.shape[0])
        panels: list[tuple[Integers, AnyPanel]] = [(every, panel.select(every, [column]))]

        def recount(first: int, n_trials: int, indices: Integers) -> NDArray[Any]:
            rows = self.monitored.positions.row[self._first_result[indices]].astype(np.int64)
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

    def is_resolved(self, numbers: Integers) -> NDArray[np.bool_]:
        """Return for which comparisons no trial of an h-th exceedance remains to be found."""
        is_unknown = self.decisions.is_unknown if self.blocks else np.zeros(len(self.comparisons), np.bool_)
        return ~np.append(is_unknown, False)[
            self.get_indices(numbers)
        ]  # the last is all that the rule does not look at

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
        if self._decisions is None:
            self._decisions = (
                self._decide_by_p() if isinstance(self.rule, BesagClifford) else self._decide_by_sequence(self.rule)
            )
        return self._decisions

    def _decide_by_p(self) -> StoppingDecisions:
        """Return decisions with Besag and Clifford's p, or with a bound of p until the trial of the stop is found."""
        rule = self.rule
        assert isinstance(rule, BesagClifford)
        result = compute_sequential_p(
            rule, self._get_exceedances(), self.blocks[0].n_trials, self.stop_trials, limit=self.limit
        )
        low, high = compute_sequence_interval(result.n_extreme, np.maximum(result.n_trials, 1), INTERVAL_RISK)
        is_early = result.is_early
        return StoppingDecisions(
            result.is_final, result.n_trials, result.n_extreme, result.p_value,
            np.where(is_early, low, np.nan), np.where(is_early, high, np.nan), is_early,
            np.full(len(is_early), -1, np.int8), is_early & (self.stop_trials == NOT_YET),
        )  # fmt: skip

    def _decide_by_sequence(self, rule: ConfidenceSequence) -> StoppingDecisions:
        exceedances, trials = self._get_whole_rounds()
        result = decide(rule, exceedances, trials, limit=self.limit)
        is_final = result.is_final & (result.n_trials > 0)
        no_unknown = np.zeros(len(is_final), np.bool_)
        return StoppingDecisions(
            is_final, result.n_trials, result.n_extreme, np.full(len(is_final), np.nan), result.p_low, result.p_high,
            result.n_trials < self.limit, result.is_significant, no_unknown,
        )  # fmt: skip

    def revise_table(self, table: Table, numbers: Integers) -> Table:
        """Return the table with the rule's p-values and trials in the rows of monitored comparisons.

        Parameters
        ----------
        table : Table
            The results, judged as if the rule had not chosen how many trials there are.
        numbers : int64 array, shape (n_results,)
            The comparison of each; -1 where it is none of these.
        """
        if not self.blocks:
            return table
        index, decisions, rule = self.get_indices(numbers), self.decisions, self.rule
        is_monitored = (index >= 0) & np.append(decisions.is_final, False)[index]
        if not is_monitored.any():
            return table

        def put(own: NDArray[Any], otherwise: Any, where: NDArray[np.bool_] = is_monitored) -> NDArray[Any]:
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


def _find_distinct(values: Integers) -> tuple[Integers, Integers]:
    """Return distinct values in order of first appearance, and their first indices."""
    first_indices = np.sort(np.unique(values, return_index=True)[1])
    return values[first_indices], first_indices


def _sum_rounds(blocks: RoundTallies, end: Integers) -> tuple[Integers, Integers]:
    """Return each comparison's trials and exceedances, summed over the rounds that begin before `end`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < end) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)
