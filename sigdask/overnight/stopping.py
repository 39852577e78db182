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
    Hidden,
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
        self.found: dict[int, int] = {}

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
        stop = self._stops(first)
        n = ends[-1] if len(ends) else np.zeros(len(self.places), np.int64)
        upto = np.minimum(self.limit, [round_of(int(k))[1] for k in n])
        if len(ends):
            upto = np.where(stop == NOT_YET, upto, np.take_along_axis(ends, np.maximum(stop, 0)[None], axis=0)[0])
        for run, blocks in self.blocks.items():
            ledger.end_at(run, self.places, upto, stop != NOT_YET, *_prefix(blocks, upto))

    def _stops(self, first: Blocks) -> NDArray[np.int64]:
        stop = np.full(len(self.places), NOT_YET, np.int64)
        for k in range(len(self.places)):
            whole = first.n_trials[:, k] > 0
            trials = first.n_trials[whole, k]
            if len(trials) and self._is_partial(int(trials.sum()), int(self.limit[k])):
                trials = trials[:-1]  # the rule looks at the ends of rounds alone
            extreme = first.counts[: len(trials), k, self.tail[k]]
            stop[k] = int(stopping_block(self.rule, extreme, trials)) if len(trials) else NOT_YET
        return stop

    @staticmethod
    def _is_partial(n: int, limit: int) -> bool:
        return n < limit and round_of(n)[0] != n

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
            if (n_trials := seen.get((number, TAILS[tail], limit))) is not None:
                self.found[k] = n_trials

    def find(self) -> None:
        """Count again where h-th exceedances lie that are not found yet; may be interrupted, and gone on with."""
        for (job, column, first, n_trials, tail), wanted in self._groups().items():
            self.found.update(places(first, n_trials, wanted, self._recount(job, column, tail)))

    @property
    def is_settled(self) -> bool:
        """Whether every h-th exceedance that has come is found."""
        return not self._groups()

    def _groups(self) -> dict[tuple[Job, int, int, int, int], dict[int, int]]:
        """Return what is to be found, by what shares shuffles: job, column, block, tail."""
        groups: dict[tuple[Job, int, int, int, int], dict[int, int]] = {}
        if isinstance(self.rule, BesagClifford) and self.blocks:
            for k in range(len(self.places)):
                block = self._hidden(self.rule, k)
                if block is not None and k not in self.found:
                    job = self.jobs[int(self.job[k])]
                    key = (job, int(self.column[k]), block.first, block.n_trials, int(self.tail[k]))
                    groups.setdefault(key, {})[k] = block.wanted
        return groups

    def _hidden(self, rule: BesagClifford, k: int) -> Hidden | None:
        trials, extreme = self._prefix(k)
        return hidden(rule, extreme, trials) if len(trials) else None

    def _prefix(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return trials and exceedances of the rounds kept of one comparison's first run."""
        first = self.blocks[0]
        whole = int(np.count_nonzero(first.n_trials[:, k]))
        return first.n_trials[:whole, k], first.counts[:whole, k, self.tail[k]]

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
        found = np.ones(len(self.places) + 1, np.bool_)  # the last is all that the rule does not look at
        if isinstance(self.rule, BesagClifford) and self.blocks:
            for k in range(len(self.places)):
                found[k] = k in self.found or self._hidden(self.rule, k) is None
        return found[self.numbers(spots)]

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
        said = np.array([self._said(k) for k in range(len(self.places))], SAID)
        row = np.where(number >= 0, said["is_said"][number], False) if len(said) else np.zeros(len(table), np.bool_)
        if not row.any():
            return table
        own = said[number]
        own["n_asked"] = self.limit[number]

        def put(name: str, where: NDArray[np.bool_], otherwise: Any) -> NDArray[Any]:
            return np.where(where, own[name], otherwise)

        has_limits = row & ~np.isnan(own["low"])
        is_sequence = isinstance(self.rule, ConfidenceSequence)
        stops = Stops(
            rule=CONFIDENCE_SEQUENCE if is_sequence else BESAG_CLIFFORD,
            n_asked=put("n_asked", row, 0),
            is_early=row & own["is_early"],
            is_significant=put("is_significant", row, np.int8(-1)),
            epsilon=self.rule.epsilon if isinstance(self.rule, ConfidenceSequence) else None,
            h=self.rule.h if isinstance(self.rule, BesagClifford) else None,
            is_unknown=row & own["is_unknown"],
            n_counted=np.where(row, table.n_trials, 0),
            n_counted_extreme=np.where(row, table.n_extreme, 0),
        )
        return replace(
            table,
            n_trials=put("n_trials", row, table.n_trials),
            n_extreme=put("n_extreme", row, table.n_extreme),
            p_value=put("p_value", row, table.p_value),
            p_low=put("low", has_limits, table.p_low),
            p_high=put("high", has_limits, table.p_high),
            stops=(*table.stops, stops),
        )

    def _said(self, k: int) -> tuple[Any, ...]:
        """Return what the rule says of one comparison, as `SAID` has it."""
        trials, extreme = self._prefix(k)
        if isinstance(self.rule, BesagClifford):
            return self._p(self.rule, k, trials, extreme)
        limit = int(self.limit[k])
        if self._is_partial(int(trials.sum()), limit):
            trials, extreme = trials[:-1], extreme[:-1]
        decided = decide(self.rule, extreme, trials, limit=limit) if len(trials) else None
        if decided is None:
            return NOTHING
        significant = -1 if decided.is_significant is None else int(decided.is_significant)
        is_early = decided.n_trials < limit
        return True, 0, decided.n_trials, decided.n_extreme, np.nan, *decided.p_interval, is_early, significant, False

    def _p(self, rule: BesagClifford, k: int, trials: NDArray[np.int64], extreme: NDArray[np.int64]) -> tuple[Any, ...]:
        """Return Besag and Clifford's p, or its bound where the trial is not found yet."""
        place = self.found.get(k)
        said = sequential_p(rule, extreme, trials, place, limit=int(self.limit[k]))
        if said is None:
            return NOTHING
        n, early = said.n_trials, said.is_early
        limits = sequence_interval(said.n_extreme, n, INTERVAL_RISK) if early else (np.nan, np.nan)
        return True, 0, n, said.n_extreme, said.p_value, *limits, early, -1, early and place is None


SAID = np.dtype([
    ("is_said", "?"), ("n_asked", "i8"), ("n_trials", "i8"), ("n_extreme", "i8"), ("p_value", "f8"), ("low", "f8"),
    ("high", "f8"), ("is_early", "?"), ("is_significant", "i1"), ("is_unknown", "?"),
])  # fmt: skip
"""What a rule says of a comparison; limits are NaN where those of all trials stay."""

NOTHING = (False, 0, 0, 0, np.nan, np.nan, np.nan, False, -1, False)


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
