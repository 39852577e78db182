"""Stopping early: where a plan's rule ends the counting of each comparison, and what it then says.

Rules look at the ends of rounds of the first run, in the order of its trials, so that where they
stop depends on the counts alone: not on the cluster, nor on nights, nor on what more the store has.
The second run is brought as far as the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.table import Stops, Table
from sigdask.overnight.ledger import Ledger, Spots
from sigdask.overnight.work import Batch
from sigdask.randomization.jobs import Job
from sigdask.randomization.tallies import TAILS, round_of
from sigdask.statistics.stopping import (
    NOT_YET,
    BesagClifford,
    ConfidenceSequence,
    Recount,
    Stopping,
    places,
    saving,
    sequence_intervals,
    stopping_block,
)
from sigdask.store import Found

RUNS = (0, 1)
BESAG_CLIFFORD, CONFIDENCE_SEQUENCE = "besag-clifford", "confidence-sequence"
INTERVAL_RISK = 0.01
"""Of the interval beside Besag and Clifford's p, which holds however many trials the counts chose."""


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Tallies of the rounds of some comparisons in one run.

    Attributes
    ----------
    n_trials : int64 array, shape (n_rounds, n)
        Trials kept of each round.
    counts : int64 array, shape (n_rounds, n, 3)
        Their exceedances.
    """

    n_trials: NDArray[np.int64]
    counts: NDArray[np.int64]


class Early:
    """Where a rule stops each sampled comparison of a plan.

    Parameters
    ----------
    ledger : Ledger
        What is counted; told where to stop.
    rule : BesagClifford or ConfidenceSequence
        When to stop.
    batches : sequence of Batch
        What is judged; the rule looks at the first runs of its sampled results.

    Attributes
    ----------
    places : int64 array, shape (n,)
        The ledger's comparisons that the rule looks at.
    tail, limit : int64 array, shape (n,)
        The tail that is judged, and the trials asked for.
    found : int64 array, shape (n,)
        After how many trials the h-th exceedance came; 0 where that is not found.
    """

    def __init__(self, ledger: Ledger, rule: Stopping, batches: Sequence[Batch]) -> None:
        self.ledger, self.rule = ledger, rule
        self.jobs: list[Job] = []
        cells = [self._cells(batch) for batch in batches]
        place, tail, limit, *cell = np.concatenate(cells, axis=1)
        self.places, first = _as_they_come(place)
        self.number_of = np.full(len(ledger.ids), -1, np.int64)
        self.number_of[self.places] = np.arange(len(self.places))
        number = self.number_of[place]
        self.tail, self.limit = np.zeros(len(self.places), np.int64), np.zeros(len(self.places), np.int64)
        self.tail[number] = tail
        np.maximum.at(self.limit, number, limit)
        self.job, self.row, self.column = (own[first] for own in cell)
        self.blocks: dict[int, Blocks] = {}
        self.found = np.zeros(len(self.places), np.int64)

    def _cells(self, batch: Batch) -> NDArray[np.int64]:
        """Return place, tail and limit of a batch's sampled results, and job, row and column, shape (6, n)."""
        jobs, before = batch.study.jobs, len(self.jobs)
        self.jobs += jobs
        spots = self.ledger.spots(jobs, batch.of_p)
        tail = np.array([TAILS.index(side) for side in batch.study.alternatives], np.int64)[batch.set_of]
        at = batch.of_p
        whole = np.stack([spots.place, tail, spots.wanted, before + at.job, at.row, at.column])
        return np.asarray(whole[:, batch.is_sampled])

    def look(self) -> None:
        """Look at what is kept, and want the next round of what goes on and no more of what stops."""
        ledger = self.ledger
        self.blocks = {run: self._read(run) for run in RUNS if run in ledger.wanted}
        first = self.blocks[0]
        ends = np.cumsum(first.n_trials, axis=0)  # (n_rounds, n)
        stop = self._stops(self._looked_at)
        upto = np.minimum(self.limit, _round_of(first.n_trials.sum(axis=0))[1])
        if len(ends):
            upto = np.where(stop == NOT_YET, upto, np.take_along_axis(ends, np.maximum(stop, 0)[None], axis=0)[0])
        for run, blocks in self.blocks.items():
            ledger.end_at(run, self.places, upto, stop != NOT_YET, *_prefix(blocks, upto))

    @property
    def _looked_at(self) -> Looked:
        """The first run as rules look at it: at the ends of rounds alone."""
        first = self.blocks[0]
        n = first.n_trials.sum(axis=0)
        is_partial = (n < self.limit) & (_round_of(n)[0] != n)
        last = np.count_nonzero(first.n_trials, axis=0) - 1
        return self._looked((np.arange(len(first.n_trials))[:, None] < last) | ~is_partial)

    def _looked(self, some: NDArray[np.bool_] | bool = True) -> Looked:
        """Return the trials and exceedances of the first run, of all its rounds or of some."""
        first = self.blocks[0]
        n_trials = first.n_trials * some
        return Looked(n_trials, first.counts[:, np.arange(len(self.places)), self.tail] * some)

    def _stops(self, looked: Looked) -> NDArray[np.int64]:
        """Return the round in or at whose end the rule stops each comparison, -1 where it does not."""
        return stopping_block(self.rule, looked.n_extreme, looked.n_trials)

    def _read(self, run: int) -> Blocks:
        """Return the rounds that end within the trials asked for, and what was counted again of the next one."""
        starts, stops, counts = self.ledger.store.blocks(self.ledger.ids[self.places], run)
        inside = (stops > 0) & (stops <= self.limit)  # (n_rounds, n)
        n_trials, counts = np.where(inside, stops - starts[:, None], 0), counts * inside[..., None]
        again, counts_again = self.ledger.beyond(run, self.places, n_trials.sum(axis=0), counts.sum(axis=0))
        for k in np.flatnonzero(again > 0):
            after = int(np.count_nonzero(n_trials[:, k]))
            n_trials[after, k], counts[after, k] = again[k], counts_again[k]
        return Blocks(n_trials, counts)

    def recall(self, held: Found) -> None:
        """Take the places of h-th exceedances from what earlier runs have found."""
        if not isinstance(self.rule, BesagClifford):
            return
        table, seen = held.table, dict[tuple[int, str, int], int]()
        for stops in table.stops:
            if (stops.rule, stops.h) == (BESAG_CLIFFORD, self.rule.h):
                for row in np.flatnonzero(held.complete & stops.is_early & (stops.n_asked > 0)).tolist():
                    key = int(held.comparison[row]), table.alternative[row], int(stops.n_asked[row])
                    seen[key] = int(table.n_trials[row])
        ids = self.ledger.ids[self.places]
        for k, (number, tail, limit) in enumerate(zip(*map(_listed, (ids, self.tail, self.limit)), strict=True)):
            self.found[k] = seen.get((number, TAILS[tail], limit), self.found[k])

    def find(self) -> None:
        """Count again where h-th exceedances lie that are not found yet; may be interrupted, and gone on with."""
        for (job, column, first, n_trials, tail), wanted in self._groups().items():
            for k, place in places(first, n_trials, wanted, self._recount(job, column, tail)):
                self.found[k] = place

    @property
    def is_settled(self) -> bool:
        """Whether every h-th exceedance that has come is found."""
        return not self._groups()

    def _groups(self) -> dict[tuple[Job, int, int, int, int], dict[int, int]]:
        """Return what is to be found, by what shares shuffles: job, column, block, tail."""
        groups: dict[tuple[Job, int, int, int, int], dict[int, int]] = {}
        hidden = self._hidden()
        sought = np.flatnonzero((hidden.wanted > 0) & (self.found == 0))
        columns = (sought, self.job, self.column, hidden.first, hidden.n_trials, self.tail, hidden.wanted)
        for k, job, *block, wanted in zip(_listed(sought), *(_listed(own[sought]) for own in columns[1:]), strict=True):
            groups.setdefault((self.jobs[job], *block), {})[k] = wanted
        return groups

    def _hidden(self) -> Hidden:
        """Return where h-th exceedances lie, by Besag and Clifford's rule."""
        none = np.zeros(len(self.places), np.int64)
        if not isinstance(self.rule, BesagClifford) or not self.blocks:
            return Hidden(none, none, none)
        looked = self._looked()
        stop = self._stops(looked)
        before = np.arange(len(looked.n_trials))[:, None] < stop
        inside = np.arange(len(looked.n_trials))[:, None] == stop
        wanted = np.where(stop == NOT_YET, 0, self.rule.h - (looked.n_extreme * before).sum(axis=0))
        return Hidden((looked.n_trials * before).sum(axis=0), (looked.n_trials * inside).sum(axis=0), wanted)

    def _recount(self, job: Job, column: int, tail: int) -> Recount:
        whole = job.panel
        assert not whole.is_whole  # stopping rules are refused inside families

        def recount(first: int, n_trials: int, some: Sequence[int]) -> Sequence[int]:
            part = whole.part(self.row[list(some)].tolist(), [column])
            counted: list[int] = part.tally(run=0, first=first, n_trials=n_trials).counts[:, 0, tail].tolist()
            return counted

        return recount

    def is_found(self, spots: Spots) -> NDArray[np.bool_]:
        """Say of results whether what the rule says of each is final as far as it is counted."""
        is_final = (self.found > 0) | (self._hidden().wanted == 0)
        return np.append(is_final, True)[self.numbers(spots)]  # the last is all that the rule does not look at

    def numbers(self, spots: Spots) -> NDArray[np.int64]:
        """Return the numbers of results among those that the rule looks at, -1 of others."""
        return np.where(spots.place >= 0, self.number_of[spots.place], -1)

    def saving_of(self, at: NDArray[np.int64]) -> float:
        """Return the share of the trials asked of some comparisons that was left out where the rule stopped."""
        asked, places = self.limit[at], self.places[at]
        stopped = self.ledger.limit[0][places] < asked
        counted = np.where(stopped, np.minimum(self.ledger.n_trials[0][places], asked), asked)
        return saving(int(counted.sum()), int(asked.sum()))

    def revised(self, table: Table, spots: Spots) -> Table:
        """Return what the rule says of the results that it looked at."""
        if not self.blocks:
            return table
        number = self.numbers(spots)
        said = self._decided(self.rule) if isinstance(self.rule, ConfidenceSequence) else self._p(self.rule)
        row = (number >= 0) & np.append(said.is_said, False)[number]
        if not row.any():
            return table

        def put(own: NDArray[Any], otherwise: Any, where: NDArray[np.bool_] = row) -> NDArray[Any]:
            return np.where(where, own[number], otherwise)

        stops = Stops(
            rule=CONFIDENCE_SEQUENCE if isinstance(self.rule, ConfidenceSequence) else BESAG_CLIFFORD,
            n_asked=put(self.limit, 0),
            is_early=put(said.is_early, otherwise=False),
            is_significant=put(said.is_significant, np.int8(-1)),
            epsilon=self.rule.epsilon if isinstance(self.rule, ConfidenceSequence) else None,
            h=self.rule.h if isinstance(self.rule, BesagClifford) else None,
            is_unknown=put(said.is_unknown, otherwise=False),
            n_counted=np.where(row, table.n_trials, 0),
            n_counted_extreme=np.where(row, table.n_extreme, 0),
        )
        has_limits = row & put(said.has_limits, otherwise=False)
        return replace(
            table,
            n_trials=put(said.n_trials, table.n_trials),
            n_extreme=put(said.n_extreme, table.n_extreme),
            p_value=put(said.p_value, table.p_value),
            p_low=put(said.low, table.p_low, has_limits),
            p_high=put(said.high, table.p_high, has_limits),
            stops=(*table.stops, stops),
        )

    def _decided(self, rule: ConfidenceSequence) -> Said:
        """Return the decisions of a confidence sequence."""
        looked = self._looked_at
        stop = self._stops(looked)
        inside = (np.arange(len(looked.n_trials))[:, None] <= stop) | (stop == NOT_YET)
        n, k = (looked.n_trials * inside).sum(axis=0), (looked.n_extreme * inside).sum(axis=0)
        is_said = (n > 0) & ((stop != NOT_YET) | (n >= self.limit))
        low, high = sequence_intervals(k, np.maximum(n, 1), rule.epsilon)
        significant = np.where(stop == NOT_YET, -1, k < rule.alpha * n).astype(np.int8)
        no = np.zeros(len(n), np.bool_)
        return Said(is_said, n, k, np.full(len(n), np.nan), low, high, ~no, n < self.limit, significant, no)

    def _p(self, rule: BesagClifford) -> Said:
        """Return Besag and Clifford's p, or its bound where the trial is not found yet."""
        looked, hidden = self._looked(), self._hidden()
        early, n = hidden.wanted > 0, looked.n_trials.sum(axis=0)
        last = np.where(early, np.where(self.found > 0, self.found, hidden.first + hidden.wanted), n)
        k = np.where(early, rule.h, looked.n_extreme.sum(axis=0))
        p = np.where(early, rule.h / np.maximum(last, 1), (k + 1) / (n + 1))
        low, high = np.full(len(n), np.nan), np.full(len(n), np.nan)
        low[early], high[early] = sequence_intervals(k[early], last[early], INTERVAL_RISK)
        undecided = np.full(len(n), -1, np.int8)
        is_said = early | ((n > 0) & (n >= self.limit))
        return Said(is_said, last, k, p, low, high, early, early, undecided, early & (self.found == 0))


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """Trials and exceedances of the rounds of the first run, shape (n_rounds, n); 0 where none are."""

    n_trials: NDArray[np.int64]
    n_extreme: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """The rounds that h-th exceedances lie in, of which it is the wanted-th; 0 where it has not come: shape (n,)."""

    first: NDArray[np.int64]
    n_trials: NDArray[np.int64]
    wanted: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a rule says of the comparisons that it looks at: arrays of shape (n,), as in `Stops` and `Table`."""

    is_said: NDArray[np.bool_]
    n_trials: NDArray[np.int64]
    n_extreme: NDArray[np.int64]
    p_value: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    has_limits: NDArray[np.bool_]
    is_early: NDArray[np.bool_]
    is_significant: NDArray[np.int8]
    is_unknown: NDArray[np.bool_]


def _round_of(n: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rounds that trials belong to: their first trials, and the first of the next."""
    distinct, place = np.unique(n, return_inverse=True)
    found = np.array([round_of(int(k)) for k in distinct], np.int64).reshape(-1, 2)[place]
    return found[:, 0], found[:, 1]


def _listed(values: NDArray[np.int64]) -> list[int]:
    found: list[int] = values.tolist()
    return found


def _as_they_come(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct values in the order in which they come first, and where that is."""
    first = np.sort(np.unique(values, return_index=True)[1])
    return values[first], first


def _prefix(blocks: Blocks, upto: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return trials and exceedances of the rounds that begin before `upto`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < upto) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)
