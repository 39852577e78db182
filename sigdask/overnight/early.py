"""Stopping early: where a plan's rule ends the counting of each comparison, and what it then says.

Rules look at the ends of rounds of the first run, in the order of its trials, so that where they
stop depends on the counts alone: not on the cluster, nor on nights, nor on what more the store has.
The second run is brought as far as the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.overnight.ledger import Ledger, part_of
from sigdask.questions import Cell
from sigdask.randomization import count
from sigdask.results import Result, Stopped
from sigdask.rounds import round_of
from sigdask.stopping import NOT_YET, BesagClifford, Stopping, decide, sequence_interval, sequential_p, stopping_block
from sigdask.tallies import TAILS

RUNS = (0, 1)
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
    cells : iterable of ((int, int, int), alternative)
        First-run counts of sampled results: (job, row, column), and the tail that is judged.
    """

    def __init__(self, ledger: Ledger, rule: Stopping, cells: Iterable[tuple[Cell, str]]) -> None:
        self.ledger, self.rule = ledger, rule
        found: dict[int, tuple[int, int]] = {}
        for (job, row, column), alternative in cells:
            place = int(ledger.at[job][row, column])
            found[place] = (TAILS.index(alternative), max(ledger.jobs[job].n_trials, found.get(place, (0, 0))[1]))
        self.places = np.array(list(found), np.int64)
        self.order = {place: k for k, place in enumerate(found)}
        self.tail = np.array([tail for tail, _ in found.values()], np.int64)
        self.limit = np.array([limit for _, limit in found.values()], np.int64)
        self.blocks: dict[int, Blocks] = {}

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
        starts, stops, counts = self.ledger.store.blocks(self.ledger.ids[self.places], run)
        return Blocks(np.where(stops > 0, stops - starts[:, None], 0), counts)

    def revised(self, result: Result, cell: Cell, seen: Mapping[tuple[str, str], Result]) -> Result:
        """Return what the rule says of a comparison that it looked at."""
        place = int(self.ledger.at[cell[0]][cell[1], cell[2]])
        k = self.order.get(place)
        if k is None or not self.blocks:
            return result
        first, limit = self.blocks[0], int(self.limit[k])
        whole = int(np.count_nonzero(first.n_trials[:, k]))
        trials, extreme = first.n_trials[:whole, k], first.counts[:whole, k, self.tail[k]]
        if isinstance(self.rule, BesagClifford):
            before = seen.get((self.ledger.digest(*cell), result.alternative))
            return _with_p(self.rule, result, extreme, trials, self._recount(cell, k), limit, before)
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
            warnings=tuple(w for w in result.warnings if not w.startswith("undecided")),
            stopped=Stopped("confidence-sequence", limit, decided.n_trials < limit, decided.is_significant,
                            self.rule.epsilon),
        )  # fmt: skip

    def _recount(self, cell: Cell, k: int) -> Any:
        job, row, column = cell
        panel, tail = part_of(self.ledger.jobs[job].panel, [row], [column]), int(self.tail[k])

        def recount(first: int, n_trials: int) -> int:
            return int(count(panel, run=0, first=first, n_trials=n_trials).counts[0, 0, tail])

        return recount


def _with_p(
    rule: BesagClifford,
    result: Result,
    extreme: NDArray[np.int64],
    trials: NDArray[np.int64],
    recount: Any,
    limit: int,
    before: Result | None,
) -> Result:
    """Put Besag and Clifford's p into a result; where an earlier run found the trial, it is not looked for again."""
    if before is not None and before.stopped == Stopped("besag-clifford", limit, True, None, None, rule.h):
        n_trials, n_extreme, p, early = before.n_trials, before.n_extreme, before.p_value, True
    else:
        found = sequential_p(rule, extreme, trials, recount, limit=limit)
        if found is None:
            return result
        n_trials, n_extreme, p, early = found.n_trials, found.n_extreme, found.p_value, found.is_early
    return replace(
        result,
        n_trials=n_trials,
        n_extreme=n_extreme,
        p_value=p,
        p_interval=sequence_interval(n_extreme, n_trials, INTERVAL_RISK) if early else result.p_interval,
        warnings=tuple(w for w in result.warnings if not (early and w.startswith("undecided"))),
        stopped=Stopped("besag-clifford", limit, early, None, None, rule.h),
    )


def _prefix(blocks: Blocks, upto: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return trials and exceedances of the rounds that begin before `upto`."""
    ends = np.cumsum(blocks.n_trials, axis=0)
    inside = (ends - blocks.n_trials < upto) & (blocks.n_trials > 0)  # (n_rounds, n)
    return (blocks.n_trials * inside).sum(axis=0), (blocks.counts * inside[:, :, None]).sum(axis=0)
