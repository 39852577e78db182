"""What a plan must count, what is counted, and in which order: breadth first, kept in the trials' order.

Comparisons are known by the digest of their content, so what two test sets, two names or two
nights share is counted once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import CountPositions
from sigdask.analysis.comparison.stopping.counted import Blocks
from sigdask.execution.tasks import TrialRange
from sigdask.identity import identity_of
from sigdask.nightly.store import Store, StoredResults, StoredTallies
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.digests import Digests, packed
from sigdask.randomization.tallies import TAILS, Tally, round_of, rounds
from sigdask.results.table import Table

NO_LIMIT = 2**62
N_TAILS = len(TAILS)
"""Tails kept of single comparisons: greater, less, two-sided."""


@dataclass(eq=False)
class LedgerEntry:
    """Comparisons that are counted together: trials `first` to `stop - 1` of one run of one panel.

    Attributes
    ----------
    panel : Panel, OutputsPanel or a family
        What is counted.
    run, first, stop : int
        The trials.
    places : int64 array, shape (n_pairs * n_metrics,)
        The ledger's comparison of each pair and metric; of a family, shape (1,).
    label : str
        For errors.
    whole : bool
        Counted as a whole.
    """

    panel: Any
    run: int
    first: int
    stop: int
    places: NDArray[np.int64]
    label: str
    whole: bool
    waiting: dict[int, tuple[int, Tally]] = field(default_factory=dict)
    left_out: bool = False

    def offer(self, first: int, tally: Tally) -> None:
        """Take what was counted, in any order."""
        self.waiting[first] = (first + tally.n_trials, tally)

    def take(self) -> Iterator[tuple[int, int, Tally]]:
        """Give up what follows on `first` without a gap: (first, stop, tally), one for each round."""
        while self.first in self.waiting:
            start, (end, total) = self.first, self.waiting.pop(self.first)
            border = round_of(start)[1]
            while end < border and end in self.waiting:
                end, more = self.waiting.pop(end)
                total += more
            self.first = end
            yield start, end, total


@dataclass(frozen=True, slots=True, eq=False)
class LedgerPositions:
    """Where counts of some results stand in a ledger: int64 arrays of shape (n,).

    Attributes
    ----------
    run
        The run that they are of.
    place
        The ledger's comparison; -1 where there are no such counts.
    wanted
        Trials that are wanted of it.
    """

    run: NDArray[np.int64]
    place: NDArray[np.int64]
    wanted: NDArray[np.int64]


class Ledger:
    """Trials and exceedances of all comparisons of a plan, beside the store.

    Attributes
    ----------
    at : mapping of Job to int64 array, shape (n_pairs, n_metrics)
        The comparison of each pair and metric of what the plan wants counted.
    n_trials : mapping of run to int64 array, shape (n_comparisons,)
        Trials that count. Where the store has more than are wanted (trials were lowered, or a stopping
        rule left out), those of whole rounds up to the wanted ones; the rest of the last round is counted
        again and not kept, so that no p is of a number of trials that earlier counts chose.
    stored : mapping of run to int64 array, shape (n_comparisons,)
        Trials that the store has.
    gap : mapping of run to int64 array, shape (n_comparisons,)
        The first trial that the store has beyond those that it lacks; 0 where it lacks none.
    """

    def __init__(self, store: Store | None, jobs: Sequence[Job]) -> None:
        """Take what a store has; with None nothing is kept, for what counting would take from scratch."""
        self.digests, self.at, kinds = _numbered(jobs)
        n = len(self.digests)
        if store is not None:
            self.store = store
        self.ids = np.arange(n) if store is None else store.ids_of(self.digests, kinds)
        self.n_trials: dict[int, NDArray[np.int64]] = {}
        self.stored: dict[int, NDArray[np.int64]] = {}
        self.gap: dict[int, NDArray[np.int64]] = {}
        self._counts: dict[int, NDArray[np.int64]] = {}
        self._whole: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._before: dict[int, NDArray[np.int64]] = {}  # of those counts, what the rounds before the last have
        self._whole_before: dict[tuple[int, int], NDArray[np.int64]] = {}
        self.wanted: dict[int, NDArray[np.int64]] = {}
        self.limit: dict[int, NDArray[np.int64]] = {}
        self.given_up: dict[int, NDArray[np.bool_]] = {}
        for run in {job.run for job in jobs}:
            self.wanted[run], self.limit[run] = np.zeros(n, np.int64), np.full(n, NO_LIMIT, np.int64)
            self.given_up[run], self.stored[run] = np.zeros(n, np.bool_), np.zeros(n, np.int64)
            self.n_trials[run], self._counts[run] = np.zeros(n, np.int64), np.zeros((n, N_TAILS), np.int64)
            self.gap[run], self._before[run] = np.zeros(n, np.int64), np.zeros((n, N_TAILS), np.int64)
        for job, at in self.at.items():
            np.maximum.at(self.wanted[job.run], at.ravel(), job.n_trials)
        if store is not None:
            self.load()

    def load(self) -> None:
        """Take what the store has."""
        for run in self.wanted:
            self._load_wholes(run, {int(at[0, 0]): job for job, at in self.at.items() if _is_whole_of(job, run)})
        for run, wanted in self.wanted.items():
            self._load(run, np.flatnonzero(wanted > 0))

    def _load(self, run: int, some: NDArray[np.int64]) -> None:
        pairs = np.setdiff1d(some, [k for k, of in self._whole if of == run], assume_unique=True)
        kept = self.store.prefixes(self.ids[pairs], run)
        self.stored[run][pairs] = kept.n_trials
        self.n_trials[run][pairs], self._counts[run][pairs] = kept.n_trials, kept.counts
        self._before[run][pairs], self.gap[run][pairs] = kept.before, kept.gap
        over = pairs[kept.n_trials > self.wanted[run][pairs]]
        if len(over):
            cut = self.store.rounds(self.ids[over], run, self.wanted[run][over])
            self.n_trials[run][over], self._counts[run][over] = cut.n_trials, cut.counts

    def _load_wholes(self, run: int, jobs: Mapping[int, Job]) -> None:
        sizes = {int(self.ids[k]): math.prod((*job.panel.shape, job.panel.manner.n_tails)) for k, job in jobs.items()}
        found = self.store.prefixes_of_wholes(sizes, run) if sizes else {}
        for k in jobs:
            number, most = int(self.ids[k]), int(self.wanted[run][k])
            kept = found[number]
            self.stored[run][k], self.gap[run][k] = kept.n_trials[0], kept.gap[0]
            if kept.n_trials[0] > most:
                kept = self.store.prefixes_of_wholes({number: sizes[number]}, run, most)[number]
            self.n_trials[run][k], self._whole[k, run] = kept.n_trials[0], kept.counts[0]
            self._whole_before[k, run] = kept.before[0]

    def take_beyond_gaps(self) -> bool:
        """Take what the store has beyond trials that it lacked until now; say whether there is any."""
        closed = any(((gap > 0) & (gap <= self.n_trials[run])).any() for run, gap in self.gap.items())
        if closed:
            self.load()
        return closed

    def tally(self, job: Job) -> Tally:
        """Return the tally of a job, as far as it is counted."""
        at = self.at[job]
        trials = self.n_trials[job.run][at]
        if job.panel.is_whole:
            counts = self._whole[int(at[0, 0]), job.run].reshape(*job.panel.shape, job.panel.manner.n_tails)
            return Tally(int(trials[0, 0]), counts)
        counts = np.zeros((*at.shape, job.panel.manner.n_tails), np.int64)
        counts[..., :N_TAILS] = self._counts[job.run][at]
        return Tally(int(trials.min(initial=job.n_trials)), counts, trials)

    def spots(self, jobs: Sequence[Job], standing: CountPositions) -> LedgerPositions:
        """Return where counts of results stand, of jobs by their places."""
        place = standing.numbered(jobs, self.at)
        run, wanted = (np.array([*(getattr(job, n) for job in jobs), 0], np.int64) for n in ("run", "n_trials"))
        return LedgerPositions(run[standing.job], place, wanted[standing.job])

    def is_complete(self, spots: LedgerPositions) -> NDArray[np.bool_]:
        """Say of each result whether all trials that are wanted of it are counted, or none stand there."""
        complete = spots.place < 0
        for run in self.wanted:
            here = np.flatnonzero((spots.run == run) & ~complete)
            places = spots.place[here]
            complete[here] = self.n_trials[run][places] >= np.minimum(spots.wanted[here], self.limit[run][places])
        return complete

    def end_at(
        self,
        run: int,
        places: NDArray[np.int64],
        upto: NDArray[np.int64],
        stopped: NDArray[np.bool_],
        n_trials: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Want trials up to `upto` of some comparisons, of which those kept count; no more of what is stopped."""
        self.wanted[run][places] = np.where(self.given_up[run][places], 0, upto)
        self.n_trials[run][places], self._counts[run][places] = n_trials, counts
        self.limit[run][places] = np.where(stopped, upto, NO_LIMIT)

    def rounds_of(self, run: int, places: NDArray[np.int64], limit: NDArray[np.int64]) -> Blocks:
        """Return the rounds that end within the trials asked for, and what was counted again of the next one."""
        starts, stops, counts = self.store.blocks(self.ids[places], run)
        inside = (stops > 0) & (stops <= limit)  # (n_rounds, n)
        n_trials, counts = np.where(inside, stops - starts[:, None], 0), counts * inside[..., None]
        again = self.n_trials[run][places] - n_trials.sum(axis=0)
        some = np.flatnonzero(again > 0)
        after = np.count_nonzero(n_trials[:, some], axis=0)
        counts[after, some] = self._counts[run][places[some]] - counts[:, some].sum(axis=0)
        n_trials[after, some] = again[some]
        if len(n_trials):
            last = np.maximum(np.count_nonzero(n_trials, axis=0) - 1, 0)
            self._before[run][places] = counts.sum(axis=0) - counts[last, np.arange(len(places))]
        return Blocks(n_trials, counts)

    def earlier(self, held: StoredResults) -> tuple[Table, NDArray[np.int64]]:
        """Return results that earlier runs have found, and the comparison of each; -1 where it is not complete."""
        order = np.argsort(self.ids)
        at = np.minimum(np.searchsorted(self.ids, held.comparison, sorter=order), len(order) - 1)
        known = held.complete & (self.ids[order[at]] == held.comparison)
        return held.table, np.where(known, order[at], -1)

    def give_up(self, line: LedgerEntry) -> None:
        """Want no more of what cannot be counted."""
        self.wanted[line.run][line.places] = 0
        self.given_up[line.run][line.places] = True

    def missing(self) -> list[LedgerEntry]:
        """Return what is still to be counted, as lines that share panels.

        A comparison that several jobs hold is in the line of the first.
        """
        taken = {run: wanted == 0 for run, wanted in self.wanted.items()}
        lines = []
        for job, at in self.at.items():
            wanted, gap = self.wanted[job.run][at], self.gap[job.run][at]
            wanted = np.where((gap > 0) & (gap < wanted), gap, wanted)  # first what the store lacks before it goes on
            n = self.n_trials[job.run][at]
            own = ~taken[job.run][at] & _first_of_each(at)
            taken[job.run][at] = True
            lines += list(_lines(job, at, n, wanted, own & (n < wanted)))
        return lines

    def add(self, line: LedgerEntry, first: int, stop: int, tally: Tally) -> Iterator[StoredTallies]:
        """Enter what was counted, of one round; give the store those rounds so far of which it has less."""
        new = self.stored[line.run][line.places] < stop
        ids = self.ids[line.places[new]]
        if line.whole:
            key = int(line.places[0]), line.run
            counts, before, more = self._whole[key], self._whole_before[key], tally.counts.ravel()
            at: Any = ...
        else:
            counts, before, more = self._counts[line.run], self._before[line.run], _flat(tally)
            at = line.places
        start, _ = round_of(first)
        if first == start:
            before[at] = counts[at]
        counts[at] += more
        self.n_trials[line.run][line.places] = stop
        self.stored[line.run][line.places[new]] = stop
        if new.any():
            own = (counts[at] - before[at]).reshape(len(new), -1)[new]
            yield StoredTallies(ids, line.run, start, stop, own, whole=line.whole)


def breadth_first(lines: Sequence[LedgerEntry]) -> tuple[list[Job], list[LedgerEntry]]:
    """Return jobs that bring all lines through one round before the next, first runs first, and the line of each."""
    found = [
        ((round_of(first)[0], line.run), k, Job(line.panel, stop - first, line.run, label=line.label, first=first))
        for k, line in enumerate(lines)
        for first, stop in rounds(line.first, line.stop)
        if not line.left_out
    ]
    found.sort(key=lambda each: each[:2])
    return [job for _, _, job in found], [lines[k] for _, k, _ in found]


class CommitQueue:
    """What was counted and is not yet kept, given up in the order of its trials."""

    def __init__(self, lines_of_jobs: Sequence[LedgerEntry]) -> None:
        self._lines = lines_of_jobs
        self._touched: dict[int, LedgerEntry] = {}

    def offer(self, trials: TrialRange, tally: Tally) -> None:
        """Take what was counted of some trials."""
        line = self._lines[trials.job]
        line.offer(trials.first, tally)
        self._touched[id(line)] = line

    def take(self) -> list[tuple[LedgerEntry, int, int, Tally]]:
        """Give up all that follows without a gap on what was given up before."""
        taken = [(line, *found) for line in self._touched.values() for found in line.take()]
        self._touched.clear()
        return taken


def _numbered(jobs: Sequence[Job]) -> tuple[Digests, dict[Job, NDArray[np.int64]], list[str]]:
    """Return distinct digests, the number of each job's pairs and metrics among them, and what each is."""
    panels = {id(job.panel): job.panel for job in jobs}
    own = {key: panel.digests() for key, panel in panels.items()}
    listed = np.concatenate([found.ravel() for found in own.values()]) if own else packed(())
    _, first, number = np.unique(listed, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they come
    numbers = np.argsort(order)[number]
    ends = np.cumsum([found.size for found in own.values()])
    at = {
        key: numbers[end - found.size : end].reshape(found.shape)
        for (key, found), end in zip(own.items(), ends, strict=True)
    }
    names = [_kind(panel) for panel in panels.values()]
    kinds = [names[k] for k in np.searchsorted(ends, first[order], side="right")]
    return listed[first[order]], {job: at[id(job.panel)] for job in jobs}, kinds


def _is_whole_of(job: Job, run: int) -> bool:
    return job.panel.is_whole and job.run == run


def _kind(panel: AnyPanel) -> str:
    if panel.is_whole:
        known = identity_of(type(panel))
        assert known is not None
        return known.tag.lower()
    return "all arrangements" if panel.enumerated else "pair"


def _first_of_each(at: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which cells hold a comparison for the first time."""
    first = np.zeros(at.size, np.bool_)
    first[np.unique(at.ravel(), return_index=True)[1]] = True
    return first.reshape(at.shape)


def _lines(
    job: Job, at: NDArray[np.int64], n: NDArray[np.int64], wanted: NDArray[np.int64], open_: NDArray[np.bool_]
) -> Iterator[LedgerEntry]:
    """Yield lines of one job: pairs and metrics that have the same trials to go."""
    if job.panel.is_whole:
        if open_[0, 0]:
            yield LedgerEntry(job.panel, job.run, int(n[0, 0]), int(wanted[0, 0]), at[0, :1], job.label, whole=True)
        return
    for first, stop in np.unique(np.stack([n[open_], wanted[open_]]), axis=1).T.tolist():
        here = open_ & (n == first) & (wanted == stop)
        some = np.flatnonzero(here.any(axis=1))
        patterns, of_row = np.unique(here[some], axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            rows, columns = some[of_row.ravel() == k], np.flatnonzero(pattern)
            panel = job.panel.part(rows.tolist(), columns.tolist())
            yield LedgerEntry(panel, job.run, first, stop, at[np.ix_(rows, columns)].ravel(), job.label, whole=False)


def trials_of(lines: Iterable[LedgerEntry]) -> int:
    """Return the trials that lines have to go, of all their comparisons."""
    return sum((line.stop - line.first) * len(line.places) for line in lines)


def _flat(tally: Tally) -> NDArray[np.int64]:
    return tally.counts.reshape(-1, tally.counts.shape[-1])[:, :N_TAILS]
