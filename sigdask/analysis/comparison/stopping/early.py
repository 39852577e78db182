"""Stopping early: where a rule ends the counting of each comparison, and what it then says.

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

from sigdask.analysis.comparison.stopping.counted import Blocks, MonitoredResults, PartialCounts, StoppingDecisions
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.stream.trial_by_trial import trial_by_trial
from sigdask.randomization.tallies import TAILS, round_bounds
from sigdask.results.table import StoppedCounts, Table
from sigdask.statistics.stopping import (
    NOT_YET,
    ONE_BY_ONE,
    BesagClifford,
    ConfidenceSequence,
    HiddenBlocks,
    Recount,
    Stopping,
    decide,
    hidden,
    places,
    saving,
    sequence_interval,
    sequential_p,
    stopping_block,
)

Integers = NDArray[np.int64]
RUNS = (0, 1)
FEWEST_ROWS, WASTED = 64, 4
"""Pairs that are counted again together, however few are looked for; beyond, times as many as are."""

BESAG_CLIFFORD, CONFIDENCE_SEQUENCE = "besag-clifford", "confidence-sequence"
INTERVAL_RISK = 0.01
"""Of the interval beside Besag and Clifford's p, which holds however many trials the counts chose."""


class EarlyStopping:
    """Where a rule stops each sampled comparison.

    Parameters
    ----------
    counted : PartialCounts
        What is counted; told where to stop.
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    looked : MonitoredResults
        What the rule looks at; a comparison that several results have is looked at once.

    Attributes
    ----------
    places : int64 array, shape (n,)
        The comparisons, by their numbers in what is counted.
    tail, limit : int64 array, shape (n,)
        The tail that is judged, and the trials asked for.
    found : int64 array, shape (n,)
        After how many trials the h-th exceedance came; NOT_YET where that is not known.
    """

    def __init__(self, counted: PartialCounts, rule: Stopping, looked: MonitoredResults) -> None:
        self.counted, self.rule, self.looked = counted, rule, looked
        every = looked.standing.numbered(looked.jobs, counted.at)
        self.places, self._first = _as_they_come(every)
        self._number_of = np.full(len(counted.n_trials[0]) + 1, -1, np.int64)  # the last is that of no comparison
        self._number_of[self.places] = np.arange(len(self.places))
        of, n = self._number_of[every], len(self.places)
        self.tail, self.limit = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.tail[of] = looked.tail
        asked = np.array([job.n_trials for job in looked.jobs], np.int64)
        np.maximum.at(self.limit, of, asked[looked.standing.job])
        self.found = np.full(n, NOT_YET, np.int64)
        self.blocks: dict[int, Blocks] = {}
        self._said: StoppingDecisions | None = None

    def look(self) -> None:
        """Look at what is kept, and want the next round of what goes on and no more of what stops."""
        self._said = None
        counted = self.counted
        self.blocks = {run: counted.rounds_of(run, self.places, self.limit) for run in RUNS if run in counted.wanted}
        first = self.blocks[0]
        ends = np.cumsum(first.n_trials, axis=0)  # (n_rounds, n)
        extreme, trials = self._whole_rounds()
        stop = stopping_block(self.rule, extreme, trials)
        n = first.n_trials.sum(axis=0)
        upto = np.minimum(self.limit, round_bounds(n)[1])
        if len(ends):
            upto = np.where(stop == NOT_YET, upto, np.take_along_axis(ends, np.maximum(stop, 0)[None], axis=0)[0])
        for run, blocks in self.blocks.items():
            counted.end_at(run, self.places, upto, stop != NOT_YET, *_prefix(blocks, upto))

    def _extreme(self) -> Integers:
        """Return the exceedances of the first run's rounds on the tail that is judged, shape (n_rounds, n)."""
        return np.take_along_axis(self.blocks[0].counts, self.tail[None, :, None], axis=2)[..., 0]

    def _whole_rounds(self) -> tuple[Integers, Integers]:
        """Return exceedances and trials of rounds that ended, at whose ends alone rules look, shape (n_rounds, n)."""
        trials, extreme = self.blocks[0].n_trials, self._extreme()
        n = trials.sum(axis=0)
        is_partial = (n < self.limit) & (round_bounds(n)[0] != n)
        last = np.count_nonzero(trials, axis=0) - 1
        kept = ~(is_partial & (np.arange(len(trials))[:, None] == last))
        return extreme * kept, trials * kept

    def recall(self, earlier: Table, places: Integers) -> None:
        """Take the places of h-th exceedances from results that earlier runs have found.

        Parameters
        ----------
        earlier : Table
            The results.
        places : int64 array, shape (n_results,)
            The comparison of each; -1 where it is none of these, or not all that it wants was counted.
        """
        if not isinstance(self.rule, BesagClifford):
            return
        self._said = None
        number = self._number_of[places]
        tail = np.array([TAILS.index(side) for side in earlier.alternative.values], np.int64)
        for stops in earlier.stops:
            if (stops.rule, stops.h) == (BESAG_CLIFFORD, self.rule.h):
                rows = np.flatnonzero((number >= 0) & stops.is_early & (stops.n_asked > 0))
                own, side = number[rows], tail[earlier.alternative.codes[rows]]
                same = (self.limit[own] == stops.n_asked[rows]) & (self.tail[own] == side)
                self.found[own[same]] = earlier.n_trials[rows[same]]

    def find(self) -> None:
        """Count again where h-th exceedances lie that are not found yet; may be interrupted, and gone on with."""
        self._said = None
        if (block := self._hidden()) is None:
            return
        for number, column, first, n_trials, tail, own in self._groups(block):
            recount = self._recount(self.looked.jobs[number], column, tail)
            for some, at in places(first, n_trials, own, block.wanted[own], recount):
                self.found[some] = at

    @property
    def is_settled(self) -> bool:
        """Whether every h-th exceedance that has come is found."""
        block = self._hidden()
        return block is None or not (block.has_come & (self.found == NOT_YET)).any()

    def _hidden(self) -> HiddenBlocks | None:
        """Return the blocks that h-th exceedances lie in; None where the rule waits for none, or nothing is seen."""
        if not isinstance(self.rule, BesagClifford) or not self.blocks:
            return None
        return hidden(self.rule, self._extreme(), self.blocks[0].n_trials)

    def _groups(self, block: HiddenBlocks) -> Iterator[tuple[int, int, int, int, int, Integers]]:
        """Yield what is to be found by what shares shuffles: job, column, first trial, trials, tail, comparisons."""
        open_ = np.flatnonzero(block.has_come & (self.found == NOT_YET))
        at, standing = self._first[open_], self.looked.standing
        keys = np.stack(
            [standing.job[at], standing.column[at], block.first[open_], block.n_trials[open_], self.tail[open_]]
        )
        groups, of = np.unique(keys, axis=1, return_inverse=True)
        for k, key in enumerate(groups.T.tolist()):
            number, column, first, n_trials, tail = key
            yield number, column, first, n_trials, tail, open_[of.ravel() == k]

    def _recount(self, job: Job, column: int, tail: int) -> Recount:
        """Return what counts some comparisons of a job again, those asked for and most often more than these.

        Arranging a panel of just these would take longer than counting some more; a part is made anew where fewer than
        a quarter of it are still looked for.
        """
        assert not job.panel.is_whole  # stopping rules are refused inside families
        panel, every = job.panel, np.arange(job.panel.shape[0])
        parts: list[tuple[Integers, AnyPanel]] = [(every, panel.part(every, [column]))]

        def recount(first: int, n_trials: int, some: Integers) -> NDArray[Any]:
            rows = self.looked.standing.row[self._first[some]].astype(np.int64)
            while not np.isin(rows, parts[-1][0]).all():
                parts.pop()
            if FEWEST_ROWS < len(parts[-1][0]) > WASTED * len(rows):
                parts.append((own := np.unique(rows), panel.part(own, [column])))
            held, part = parts[-1]
            counted: NDArray[Any]
            if n_trials <= ONE_BY_ONE:
                counted = trial_by_trial(part, run=0, first=first, n_trials=n_trials)
            else:
                counted = part.tally(run=0, first=first, n_trials=n_trials).counts[None]
            return counted[:, np.searchsorted(held, rows), 0, tail]

        return recount

    def is_found(self, places: Integers) -> NDArray[np.bool_]:
        """Say of comparisons whether what the rule says of each is final as far as it is counted."""
        unknown = self.said.is_unknown if self.blocks else np.zeros(len(self.places), np.bool_)
        return ~np.append(unknown, False)[self.numbers(places)]  # the last is all that the rule does not look at

    def numbers(self, places: Integers) -> Integers:
        """Return the numbers of comparisons among those that the rule looks at, -1 of others and of none."""
        return self._number_of[places]

    def saving_of(self, at: Integers) -> float:
        """Return the share of the trials asked of some comparisons that was left out where the rule stopped."""
        asked, places = self.limit[at], self.places[at]
        stopped = self.counted.limit[0][places] < asked
        counted = np.where(stopped, np.minimum(self.counted.n_trials[0][places], asked), asked)
        return saving(int(counted.sum()), int(asked.sum()))

    @property
    def said(self) -> StoppingDecisions:
        """What the rule says of all that it has looked at."""
        if self._said is None:
            self._said = self._of_p() if isinstance(self.rule, BesagClifford) else self._of_decision(self.rule)
        return self._said

    def _of_p(self) -> StoppingDecisions:
        """Return Besag and Clifford's p, or its bound where the trial is not found yet."""
        rule = self.rule
        assert isinstance(rule, BesagClifford)
        found = sequential_p(rule, self._extreme(), self.blocks[0].n_trials, self.found, limit=self.limit)
        low, high = sequence_interval(found.n_extreme, np.maximum(found.n_trials, 1), INTERVAL_RISK)
        early = found.is_early
        return StoppingDecisions(
            found.is_final, found.n_trials, found.n_extreme, found.p_value,
            np.where(early, low, np.nan), np.where(early, high, np.nan), early,
            np.full(len(early), -1, np.int8), early & (self.found == NOT_YET),
        )  # fmt: skip

    def _of_decision(self, rule: ConfidenceSequence) -> StoppingDecisions:
        extreme, trials = self._whole_rounds()
        found = decide(rule, extreme, trials, limit=self.limit)
        final = found.is_final & (found.n_trials > 0)
        none = np.zeros(len(final), np.bool_)
        return StoppingDecisions(
            final, found.n_trials, found.n_extreme, np.full(len(final), np.nan), found.p_low, found.p_high,
            found.n_trials < self.limit, found.is_significant, none,
        )  # fmt: skip

    def revised(self, table: Table, places: Integers) -> Table:
        """Return results with what the rule says of those that it looked at.

        Parameters
        ----------
        table : Table
            The results, judged as if the rule had not chosen how many trials there are.
        places : int64 array, shape (n_results,)
            The comparison of each; -1 where it is none of these.
        """
        if not self.blocks:
            return table
        number, said, rule = self.numbers(places), self.said, self.rule
        row = (number >= 0) & np.append(said.is_final, False)[number]
        if not row.any():
            return table

        def put(own: NDArray[Any], otherwise: Any, where: NDArray[np.bool_] = row) -> NDArray[Any]:
            return np.where(where, own[number], otherwise)

        is_decision = isinstance(rule, ConfidenceSequence)
        stops = StoppedCounts(
            rule=CONFIDENCE_SEQUENCE if is_decision else BESAG_CLIFFORD,
            n_asked=put(self.limit, 0),
            is_early=put(said.is_early, otherwise=False),
            is_significant=put(said.is_significant, np.int8(-1)),
            epsilon=rule.epsilon if isinstance(rule, ConfidenceSequence) else None,
            h=rule.h if isinstance(rule, BesagClifford) else None,
            is_unknown=put(said.is_unknown, otherwise=False),
            n_counted=np.where(row, table.n_trials, 0),
            n_counted_extreme=np.where(row, table.n_extreme, 0),
        )
        has_limits = row & put(~np.isnan(said.p_low), otherwise=False)
        return replace(
            table,
            n_trials=put(said.n_trials, table.n_trials),
            n_extreme=put(said.n_extreme, table.n_extreme),
            p_value=put(said.p_value, table.p_value),
            p_low=put(said.p_low, table.p_low, has_limits),
            p_high=put(said.p_high, table.p_high, has_limits),
            stops=(*table.stops, stops),
        )


def _as_they_come(values: Integers) -> tuple[Integers, Integers]:
    """Return distinct values in the order in which they come first, and where that is."""
    first = np.sort(np.unique(values, return_index=True)[1])
    return values[first], first


def _prefix(blocks: Blocks, upto: Integers) -> tuple[Integers, Integers]:
    """Return trials and exceedances of the rounds that begin before `upto`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < upto) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)
