"""The ledger of a plan's comparisons: which trials are requested, which are counted, and which come next.

Comparisons are identified by the digest of their content, so trials that two test sets, names or nights share are
counted once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sigdask.analysis.comparison.pairs import CountedCells
from sigdask.counts.factors import group_rows
from sigdask.counts.fields import Bools, Integers
from sigdask.nightly.store import Store, StoredTallies
from sigdask.randomization.panels import AnyPanel
from sigdask.randomization.panels.digests import Digests, WholePanel, compute_pair_digests, pack_digests
from sigdask.randomization.panels.sums import EnumeratedPairs, Panel
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import TAILS, Tally, find_round, split_rounds

N_TAILS = len(TAILS)
"""Tails stored for single comparisons: greater, less, two-sided."""


@dataclass(eq=False)
class LedgerEntry:
    """Missing trials, `first` to `stop - 1`, of comparisons that are counted together on one panel.

    Attributes
    ----------
    panel : Panel, OutputsPanel or a family
        The panel.
    run, first, stop : int
        Run, first trial, and the trial after the last.
    numbers : int64 array, shape (n_pairs * n_metrics,)
        The ledger's comparison of each pair and metric; shape (1,) for a family.
    label : str
        Label for errors.
    pending : dict of int to (int, Tally)
        End and tally of trials that wait for earlier trials, by first trial.
    """

    panel: Any
    run: int
    first: int
    stop: int
    numbers: Integers
    label: str
    pending: dict[int, tuple[int, Tally]] = field(default_factory=dict)
    left_out: bool = False

    def pop_ready(self) -> Iterator[tuple[int, int, Tally]]:
        """Yield (first, stop, tally) for trials that continue the counted ones without a gap, split at rounds."""
        while self.first in self.pending:
            start, (end, total) = self.first, self.pending.pop(self.first)
            border = find_round(start)[1]
            while end < border and end in self.pending:
                end, next_tally = self.pending.pop(end)
                total += next_tally
            self.first = end
            yield start, end, total


@dataclass(frozen=True, slots=True, eq=False)
class LedgerCells:
    """Positions of the counts of results in the ledger: int64 arrays of shape (n_cells,).

    Attributes
    ----------
    run
        The run of trials: the first, or the second that checks it.
    numbers
        The comparison's number in the ledger.
    wanted
        The number of trials requested.
    results
        The result that needs the counts.
    """

    run: Integers
    numbers: Integers
    wanted: Integers
    results: Integers

    def take(self, selected: Any) -> LedgerCells:
        """Return some of the cells."""
        return LedgerCells(*(getattr(self, name)[selected] for name in LedgerCells.__slots__))


class Ledger:
    """Trials and exceedances of all comparisons of a plan, in memory and in the store.

    Attributes
    ----------
    at : mapping of Job to int64 array, shape (n_pairs, n_metrics)
        The comparison of each pair and metric in the plan's jobs.
    n_trials : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials used. If the store has more trials than requested (because `trials` was lowered), only whole
        rounds up to the requested number are used. The rest of the last round is counted again and not stored, so that
        earlier counts do not choose the number of trials of p.
    wanted : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials to count.
    stored : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials in the store.
    is_exact : bool array, shape (n_comparisons,)
        Whether the comparison is an exact value, counted in parts or arrangements instead of trials.
    gap : mapping of run to int64 array, shape (n_comparisons,)
        The first trial in the store after a gap of missing trials; 0 if there is no gap.
    """

    def __init__(self, store: Store | None, jobs: Sequence[Job]) -> None:
        """List the distinct comparisons of jobs, and load their stored trials if there is a store."""
        self.digests, self.at, kinds = _number_comparisons(jobs)
        n, runs = len(self.digests), {job.run for job in jobs}
        self.n_trials, self.wanted = ({run: np.zeros(n, np.int64) for run in runs} for _ in range(2))
        self.is_exact = np.zeros(n, np.bool_)
        for job, numbers in self.at.items():
            self.is_exact[numbers] = job.panel.enumerated
        if store is not None:
            self.store = store
        self.ids = np.arange(n) if store is None else store.fetch_ids(self.digests, kinds)
        self.stored, self.gap = ({run: np.zeros(n, np.int64) for run in runs} for _ in range(2))
        self._counts = {run: np.zeros((n, N_TAILS), np.int64) for run in runs}
        self._whole_counts: dict[tuple[int, int], Integers] = {}
        # the part of these counts from all rounds but the last
        self._earlier_counts = {run: np.zeros((n, N_TAILS), np.int64) for run in runs}
        self._earlier_whole_counts: dict[tuple[int, int], Integers] = {}
        for job, numbers in self.at.items():
            np.maximum.at(self.wanted[job.run], numbers.ravel(), job.n_trials)
        if store is not None:
            self.load()

    def load(self) -> None:
        """Load the trials and exceedances of the comparisons from the store."""
        whole_panels = [(job, int(numbers[0, 0])) for job, numbers in self.at.items() if job.panel.is_whole]
        for run in self.wanted:
            self._load_whole_panels(run, {number: job for job, number in whole_panels if job.run == run})
        for run, wanted in self.wanted.items():
            self._load_pairs(run, np.flatnonzero(wanted > 0))

    def _load_pairs(self, run: int, numbers: Integers) -> None:
        pairs = np.setdiff1d(
            numbers, [k for k, whole_run in self._whole_counts if whole_run == run], assume_unique=True
        )
        stored = self.store.fetch_prefixes(self.ids[pairs], run)
        self.stored[run][pairs] = stored.n_trials
        self.n_trials[run][pairs], self._counts[run][pairs] = stored.n_trials, stored.counts
        self._earlier_counts[run][pairs], self.gap[run][pairs] = stored.before, stored.gap
        surplus = pairs[stored.n_trials > self.wanted[run][pairs]]
        if len(surplus):
            cut = self.store.fetch_rounds(self.ids[surplus], run, self.wanted[run][surplus])
            self.n_trials[run][surplus], self._counts[run][surplus] = cut.n_trials, cut.counts

    def _load_whole_panels(self, run: int, jobs: Mapping[int, Job]) -> None:
        sizes = {int(self.ids[k]): math.prod((*job.panel.shape, job.panel.manner.n_tails)) for k, job in jobs.items()}
        prefixes = self.store.fetch_family_prefixes(sizes, run) if sizes else {}
        for k in jobs:
            number, n_wanted = int(self.ids[k]), int(self.wanted[run][k])
            stored = prefixes[number]
            self.stored[run][k], self.gap[run][k] = stored.n_trials[0], stored.gap[0]
            if stored.n_trials[0] > n_wanted:
                stored = self.store.fetch_family_prefixes({number: sizes[number]}, run, n_wanted)[number]
            self.n_trials[run][k], self._whole_counts[k, run] = stored.n_trials[0], stored.counts[0]
            self._earlier_whole_counts[k, run] = stored.before[0]

    def load_beyond_gaps(self) -> bool:
        """Reload the store's trials if gaps before some of them are now filled; return whether that was so."""
        closed = any(((gap > 0) & (gap <= self.n_trials[run])).any() for run, gap in self.gap.items())
        if closed:
            self.load()
        return closed

    def build_tally(self, job: Job) -> Tally:
        """Return the tally of a job's trials that are counted so far."""
        numbers = self.at[job]
        trials = self.n_trials[job.run][numbers]
        if job.panel.is_whole:
            counts = self._whole_counts[int(numbers[0, 0]), job.run].reshape(*job.panel.shape, job.panel.manner.n_tails)
            return Tally(int(trials[0, 0]), counts)
        counts = np.zeros((*numbers.shape, job.panel.manner.n_tails), np.int64)
        counts[..., :N_TAILS] = self._counts[job.run][numbers]
        return Tally(int(trials.min(initial=job.n_trials)), counts, trials)

    def find_cells(self, cells: Sequence[CountedCells]) -> LedgerCells:
        """Return the positions of the counts of results in the ledger."""
        sizes, none = [len(part.index) for part in cells], np.zeros(0, np.int64)
        jobs = np.array([(part.job.run, part.job.n_trials) for part in cells], np.int64).reshape(-1, 2)
        run, wanted = np.repeat(jobs, sizes, axis=0).T
        numbers = np.concatenate([none, *(self.at[part.job][part.row, part.column] for part in cells)])
        return LedgerCells(run, numbers, wanted, np.concatenate([none, *(part.index for part in cells)]))

    def is_complete(self, cells: LedgerCells, n: int) -> Bools:
        """Return for each of `n` results whether all trials requested for it are counted; true if it needs none."""
        complete = np.ones(n, np.bool_)
        for run in self.wanted:
            of_run = cells.take(cells.run == run)
            complete[of_run.results[self.n_trials[run][of_run.numbers] < of_run.wanted]] = False
        return complete

    def give_up(self, entry: LedgerEntry) -> None:
        """Request no more trials of comparisons that cannot be counted."""
        self.wanted[entry.run][entry.numbers] = 0

    def list_missing(self) -> list[LedgerEntry]:
        """Return the trials still to count, as entries of comparisons that lack the same trials.

        A comparison of several jobs is in the entry of the first job.
        """
        is_taken = {run: wanted == 0 for run, wanted in self.wanted.items()}
        entries = []
        for job, numbers in self.at.items():
            wanted, gap = self.wanted[job.run][numbers], self.gap[job.run][numbers]
            wanted = np.where((gap > 0) & (gap < wanted), gap, wanted)  # the gap in the store comes first
            n = self.n_trials[job.run][numbers]
            is_new = ~is_taken[job.run][numbers]
            if numbers.size > 1:
                is_first = np.zeros(numbers.size, np.bool_)
                is_first[np.unique(numbers, return_index=True)[1]] = True
                is_new &= is_first.reshape(numbers.shape)
            is_taken[job.run][numbers] = True
            entries += list(_iter_entries(job, numbers, n, wanted, is_new & (n < wanted)))
        return [*_join_arrangements(entries)]

    def add(self, entry: LedgerEntry, first: int, stop: int, tally: Tally) -> Iterator[StoredTallies]:
        """Add a tally to the ledger's counts; yield its round for comparisons of which the store has fewer trials."""
        new = self.stored[entry.run][entry.numbers] < stop
        ids = self.ids[entry.numbers[new]]
        index: Any = ... if entry.panel.is_whole else entry.numbers
        if entry.panel.is_whole:
            key = int(entry.numbers[0]), entry.run
            counts, earlier_counts = self._whole_counts[key], self._earlier_whole_counts[key]
            new_counts = tally.counts.ravel()
        else:
            counts, earlier_counts = self._counts[entry.run], self._earlier_counts[entry.run]
            new_counts = tally.counts.reshape(-1, tally.counts.shape[-1])[:, :N_TAILS]
        start, _ = find_round(first)
        if first == start:
            earlier_counts[index] = counts[index]
        counts[index] += new_counts
        self.n_trials[entry.run][entry.numbers] = stop
        self.stored[entry.run][entry.numbers[new]] = stop
        if new.any():
            round_counts = (counts[index] - earlier_counts[index]).reshape(len(new), -1)[new]
            yield StoredTallies(ids, entry.run, start, stop, round_counts, whole=entry.panel.is_whole)


def schedule_jobs(entries: Sequence[LedgerEntry]) -> tuple[list[Job], list[LedgerEntry]]:
    """Return jobs for the trials of entries, in the order of rounds, and the entry that each job belongs to."""
    ordered = [
        (
            (find_round(first)[0], entry.run),
            k,
            Job(entry.panel, stop - first, entry.run, label=entry.label, first=first),
        )
        for k, entry in enumerate(entries)
        for first, stop in split_rounds(entry.first, entry.stop)
        if not entry.left_out
    ]
    ordered.sort(key=lambda item: item[:2])
    return [job for _, _, job in ordered], [entries[k] for _, k, _ in ordered]


def _number_comparisons(jobs: Sequence[Job]) -> tuple[Digests, dict[Job, Integers], list[str]]:
    """Return distinct digests of comparisons, the numbers of each job's comparisons, and the kind of each digest."""
    panels = {id(job.panel): job.panel for job in jobs}
    sums = [panel for panel in panels.values() if isinstance(panel, Panel)]
    pair_digests = dict(zip(map(id, sums), compute_pair_digests(sums), strict=True))
    panel_digests = {
        key: pair_digests[key] if key in pair_digests else panel.compute_digests() for key, panel in panels.items()
    }
    all_digests = (
        np.concatenate([digests.ravel() for digests in panel_digests.values()]) if panel_digests else pack_digests(())
    )
    _, first, number = np.unique(all_digests, return_index=True, return_inverse=True)
    order = np.argsort(first)  # in order of occurrence
    numbers = np.argsort(order)[number]
    ends = np.cumsum([digests.size for digests in panel_digests.values()])
    panel_numbers = {
        key: numbers[end - digests.size : end].reshape(digests.shape)
        for (key, digests), end in zip(panel_digests.items(), ends, strict=True)
    }
    names = [_name_kind(panel) for panel in panels.values()]
    kinds = [names[k] for k in np.searchsorted(ends, first[order], side="right")]
    return all_digests[first[order]], {job: panel_numbers[id(job.panel)] for job in jobs}, kinds


def _name_kind(panel: AnyPanel) -> str:
    if isinstance(panel, WholePanel):
        return str(panel.digest_parts()[0])
    return "all arrangements" if panel.enumerated else "pair"


def _iter_entries(job: Job, numbers: Integers, n: Integers, wanted: Integers, is_open: Bools) -> Iterator[LedgerEntry]:
    """Yield entries for a job's missing trials; pairs and metrics that lack the same trials share an entry."""
    first, stop = int(n[0, 0]), int(wanted[0, 0])
    if is_open.all() and (n == first).all() and (wanted == stop).all():
        yield LedgerEntry(job.panel, job.run, first, stop, numbers.ravel(), job.label)
        return
    for first, stop, rows, columns in _iter_missing_trials(n, wanted, is_open):
        panel, covered = job.panel.select(rows.tolist(), columns.tolist()), numbers[np.ix_(rows, columns)].ravel()
        yield LedgerEntry(panel, job.run, first, stop, covered, job.label)


def _iter_missing_trials(
    n: Integers, wanted: Integers, is_open: Bools
) -> Iterator[tuple[int, int, Integers, Integers]]:
    """Yield first and last trial, rows and columns for groups of pairs and metrics that lack the same trials.

    Parameters
    ----------
    n, wanted : int64 array, shape (n_pairs, n_metrics)
        Number of counted trials, and of trials to count.
    is_open : bool array, shape (n_pairs, n_metrics)
        Whether each of them lacks trials.
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


def _join_arrangements(entries: Iterable[LedgerEntry]) -> Iterator[LedgerEntry]:
    """Yield entries; those of the same arrangements of many small panels are joined, because each call takes time."""
    alike: dict[Hashable, list[LedgerEntry]] = {}
    for entry in entries:
        key = entry.panel.counting_key if isinstance(entry.panel, EnumeratedPairs) else None
        if key is None:
            yield entry
        else:
            alike.setdefault((key, entry.run, entry.first, entry.stop), []).append(entry)
    for group in alike.values():
        n_before = np.cumsum([0, *(len(entry.numbers) for entry in group)])[:-1]
        for part in group_rows(n_before // group[0].panel.max_pairs):
            first, *rest = (group[k] for k in part.tolist())
            if rest:
                panel = first.panel.join([entry.panel for entry in rest])
                numbers = np.concatenate([first.numbers, *(entry.numbers for entry in rest)])
                first = replace(first, panel=panel, numbers=numbers, label=f"{first.label} and others")
            yield first


def count_trials(entries: Iterable[LedgerEntry]) -> int:
    """Return the number of trials to count over all comparisons of the entries."""
    return sum((entry.stop - entry.first) * len(entry.numbers) for entry in entries)
