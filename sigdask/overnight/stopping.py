"""Stopping early: where a plan's rule ends the counting of each comparison, and what it then says.

Rules look at the ends of rounds of the first run, in the order of its trials, so that where they
stop depends on the counts alone: not on the cluster, nor on nights, nor on what more the store has.
The second run is brought as far as the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.comparison.notes import Note, without
from sigdask.comparison.results import Result, Stopped
from sigdask.overnight.ledger import Ledger
from sigdask.randomization.jobs import Cell, Job
from sigdask.randomization.tallies import TAILS, round_of
from sigdask.statistics.stopping import (
    NOT_YET,
    BesagClifford,
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
from sigdask.store import Recorded

RUNS = (0, 1)
NOT_FOUND = Note("stop-unknown", "the trial to stop at is not looked for yet: p is the largest that it can be")
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
    cells : iterable of (Cell, alternative)
        First-run counts of sampled results, and the tail that is judged.
    """

    def __init__(self, ledger: Ledger, rule: Stopping, cells: Iterable[tuple[Cell, str]]) -> None:
        self.ledger, self.rule = ledger, rule
        found: dict[int, tuple[int, int]] = {}
        self.cells: dict[int, Cell] = {}
        for cell, alternative in cells:
            place = ledger.place(cell)
            self.cells.setdefault(place, cell)
            found[place] = (TAILS.index(alternative), max(cell.job.n_trials, found.get(place, (0, 0))[1]))
        self.places = np.array(list(found), np.int64)
        self.order = {place: k for k, place in enumerate(found)}
        self.tail = np.array([tail for tail, _ in found.values()], np.int64)
        self.limit = np.array([limit for _, limit in found.values()], np.int64)
        self.blocks: dict[int, Blocks] = {}
        self.found: dict[int, int] = {}

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

    def recall(self, recorded: Iterable[Recorded]) -> None:
        """Take the places of h-th exceedances from what earlier runs have found."""
        if not isinstance(self.rule, BesagClifford):
            return
        seen = {(one.digest, one.result.alternative): one.result for one in recorded if one.complete}
        for k, place in enumerate(self.order):
            before = seen.get((self.ledger.digests[place].tobytes().hex(), TAILS[self.tail[k]]))
            if before is not None and before.stopped == self._stopped(self.rule, k, is_early=True):
                self.found[k] = before.n_trials

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
            for k, place in enumerate(self.order):
                block = self._hidden(self.rule, k)
                if block is not None and k not in self.found:
                    cell = self.cells[place]
                    key = (cell.job, cell.column, block.first, block.n_trials, int(self.tail[k]))
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
        rows = {k: self.cells[place].row for k, place in enumerate(self.order) if self.cells[place].job is job}

        def recount(first: int, n_trials: int, some: Sequence[int]) -> Sequence[int]:
            part = whole.part([rows[k] for k in some], [column])
            counted: list[int] = part.tally(run=0, first=first, n_trials=n_trials).counts[:, 0, tail].tolist()
            return counted

        return recount

    def _stopped(self, rule: BesagClifford, k: int, *, is_early: bool) -> Stopped:
        return Stopped("besag-clifford", int(self.limit[k]), is_early, None, None, rule.h)

    def is_found(self, cell: Cell) -> bool:
        """Whether what the rule says of a comparison is final as far as it is counted."""
        k = self.number_of(cell)
        if k is None or not isinstance(self.rule, BesagClifford) or not self.blocks:
            return True
        return k in self.found or self._hidden(self.rule, k) is None

    def number_of(self, cell: Cell) -> int | None:
        """Return the number of a comparison among those that the rule looks at."""
        return self.order.get(self.ledger.place(cell))

    def saving_of(self, some: Sequence[int]) -> float:
        """Return the share of the trials asked of some comparisons that was left out where the rule stopped."""
        at = np.array(some, np.int64)
        asked, places = self.limit[at], self.places[at]
        stopped = self.ledger.limit[0][places] < asked
        counted = np.where(stopped, np.minimum(self.ledger.n_trials[0][places], asked), asked)
        return saving(int(counted.sum()), int(asked.sum()))

    def revised(self, result: Result, cell: Cell) -> Result:
        """Return what the rule says of a comparison that it looked at."""
        k = self.number_of(cell)
        if k is None or not self.blocks:
            return result
        if isinstance(self.rule, BesagClifford):
            return self._with_p(self.rule, result, k)
        limit = int(self.limit[k])
        trials, extreme = self._prefix(k)
        if self._is_partial(int(trials.sum()), limit):
            trials, extreme = trials[:-1], extreme[:-1]
        decided = decide(self.rule, extreme, trials, limit=limit) if len(trials) else None
        if decided is None:
            return result
        return replace(
            result,
            n_trials=decided.n_trials,
            n_extreme=decided.n_extreme,
            p_value=float("nan"),
            p_interval=decided.p_interval,
            notes=without(result.notes, "undecided"),
            stopped=Stopped("confidence-sequence", limit, decided.n_trials < limit, decided.is_significant,
                            self.rule.epsilon),
        )  # fmt: skip

    def _with_p(self, rule: BesagClifford, result: Result, k: int) -> Result:
        """Put Besag and Clifford's p into a result, or its bound where the trial is not found yet."""
        trials, extreme = self._prefix(k)
        place = self.found.get(k)
        said = sequential_p(rule, extreme, trials, place, limit=int(self.limit[k]))
        if said is None:
            return result
        early = said.is_early
        revised = replace(
            result,
            n_trials=said.n_trials,
            n_extreme=said.n_extreme,
            p_value=said.p_value,
            p_interval=sequence_interval(said.n_extreme, said.n_trials, INTERVAL_RISK) if early else result.p_interval,
            stopped=self._stopped(rule, k, is_early=early),
        )
        notes = without(result.notes, "undecided") if revised.is_settled else result.notes
        return replace(revised, notes=(*notes, NOT_FOUND) if early and place is None else notes)


def _prefix(blocks: Blocks, upto: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return trials and exceedances of the rounds that begin before `upto`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < upto) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)
