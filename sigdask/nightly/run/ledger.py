"""The ledger of a plan's comparisons: which trials are requested, which are counted, and which come next.

Comparisons are identified by the digest of their content, so trials that two test sets, names or nights share are
counted once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sigdask.analysis.comparison.pairs import CountedCells
from sigdask.counts.fields import Bools, Integers
from sigdask.nightly.store import NewTallies, Store
from sigdask.nightly.store.tallies import read_tallies
from sigdask.randomization.panels.digests import Digests, compute_pair_digests, pack_digests
from sigdask.randomization.panels.sums import EnumeratedPairs, Panel
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import TAILS, Tally, find_round, list_round_ends, split_rounds
from sigdask.statistics.numbering import group_rows

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


class Ledger:
    """Trials and exceedances of all comparisons of a plan, in memory and in the store.

    Attributes
    ----------
    at : mapping of Job to int64 array, shape (n_pairs, n_metrics)
        The comparison of each pair and metric in the plan's jobs.
    ids : int64 array, shape (n_comparisons,)
        Numbers made of the digests, which identify comparisons in stored results.
    n_trials : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials used. If the store has more trials than requested (because `trials` was lowered), only whole
        rounds up to the requested number are used. The rest of the last round is counted again and not stored, so that
        earlier counts do not choose the number of trials of p.
    wanted : mapping of run to int64 array, shape (n_comparisons,)
        Number of trials to count.
    is_exact : bool array, shape (n_comparisons,)
        Whether the comparison is an exact value, counted in parts or arrangements instead of trials.
    """

    def __init__(self, store: Store, jobs: Sequence[Job]) -> None:
        """List the distinct comparisons of jobs, and load their stored trials."""
        self.store = store
        digests, self.at = _number_comparisons(jobs)
        self._digests = digests.tolist()
        n = len(digests)
        leading = np.array([digest[:8] for digest in self._digests], "V8").view("<u8")
        self.ids = (leading >> 1).astype(np.int64)  # never negative
        self.is_exact, sizes = np.zeros(n, np.bool_), np.full(n, N_TAILS)
        self.wanted = {job.run: np.zeros(n, np.int64) for job in jobs}
        for job, numbers in self.at.items():
            self.is_exact[numbers] = job.panel.enumerated
            if job.panel.is_whole:
                sizes[numbers] = math.prod((*job.panel.shape, job.panel.manner.n_tails))
            np.maximum.at(self.wanted[job.run], numbers.ravel(), job.n_trials)
        self._starts, self._sizes = np.cumsum(sizes) - sizes, sizes
        self.n_trials, self._counts = store.read(read_tallies, self._digests, sizes, self.wanted)

    def _locate(self, numbers: Integers) -> Integers:
        """Return the places of the counts of comparisons of equal size, shape (n, size)."""
        return np.asarray(self._starts[numbers, None] + np.arange(self._sizes[numbers[0]]))

    def build_tally(self, job: Job) -> Tally:
        """Return the tally of a job's trials that are counted so far."""
        numbers = self.at[job]
        trials = self.n_trials[job.run][numbers]
        summed = self._counts[job.run][:, self._locate(numbers.ravel())].sum(axis=0)
        if job.panel.is_whole:
            return Tally(int(trials[0, 0]), summed.reshape(*job.panel.shape, job.panel.manner.n_tails))
        counts = np.zeros((*numbers.shape, job.panel.manner.n_tails), np.int64)
        counts[..., :N_TAILS] = summed.reshape(*numbers.shape, N_TAILS)
        return Tally(int(trials.min(initial=job.n_trials)), counts, trials)

    def is_complete(self, cells: Sequence[CountedCells], n: int) -> Bools:
        """Return for each of `n` results whether all trials of its counts are there; true if it needs none."""
        complete = np.ones(n, np.bool_)
        for part in cells:
            n_trials = self.n_trials[part.job.run][part.look_up(self.at)]
            complete[part.index[n_trials < part.job.n_trials]] = False
        return complete

    def sum_trials(self) -> tuple[int, int]:
        """Return how many trials are counted, and how many are requested, of all comparisons without an exact value."""
        is_sampled = ~self.is_exact
        wanted = {run: wanted[is_sampled] for run, wanted in self.wanted.items()}
        counted = sum(np.minimum(self.n_trials[run][is_sampled], n).sum() for run, n in wanted.items())
        return int(counted), int(sum(n.sum() for n in wanted.values()))

    def list_missing(self) -> list[LedgerEntry]:
        """Return the trials still to count, as entries of comparisons that lack the same trials.

        A comparison of several jobs is in the entry of the first job.
        """
        is_taken = {run: wanted == 0 for run, wanted in self.wanted.items()}
        entries = []
        for job, numbers in self.at.items():
            wanted, n = self.wanted[job.run][numbers], self.n_trials[job.run][numbers]
            is_new = ~is_taken[job.run][numbers]
            if numbers.size > 1:
                is_first = np.zeros(numbers.size, np.bool_)
                is_first[np.unique(numbers, return_index=True)[1]] = True
                is_new &= is_first.reshape(numbers.shape)
            is_taken[job.run][numbers] = True
            entries += list(_iter_entries(job, numbers, n, wanted, is_new & (n < wanted)))
        return [*_join_arrangements(entries)]

    def add(self, entry: LedgerEntry, first: int, stop: int, tally: Tally) -> None:
        """Add the tally of an entry's next trials, which are in one round, to the ledger's counts."""
        counts = tally.counts.reshape(len(entry.numbers), -1)
        places = self._locate(entry.numbers)
        self._counts[entry.run][len(list_round_ends(first + 1)) - 1, places] += counts[:, : places.shape[1]]
        self.n_trials[entry.run][entry.numbers] = stop

    def list_new(self, entries: Iterable[LedgerEntry]) -> list[NewTallies]:
        """Return the counts of entries that have the same trials in the ledger; those that the store has do no harm."""
        new_tallies = []
        for entry in entries:
            n_trials = int(self.n_trials[entry.run][entry.numbers[0]])
            counts = self._counts[entry.run][: len(list_round_ends(n_trials)), self._locate(entry.numbers)]
            digests = [self._digests[k] for k in entry.numbers.tolist()]
            new_tallies.append(NewTallies(digests, entry.run, n_trials, counts))
        return new_tallies


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


def _number_comparisons(jobs: Sequence[Job]) -> tuple[Digests, dict[Job, Integers]]:
    """Return the distinct digests of comparisons in order of occurrence, and the numbers of each job's comparisons."""
    panels = {id(job.panel): job.panel for job in jobs}
    sums = [panel for panel in panels.values() if isinstance(panel, Panel)]
    panel_digests = dict(zip(map(id, sums), compute_pair_digests(sums), strict=True))
    for key, panel in panels.items():
        if not isinstance(panel, Panel):
            panel_digests[key] = panel.compute_digests()
    all_digests = np.concatenate([pack_digests(()), *(digests.ravel() for digests in panel_digests.values())])
    _, first, number = np.unique(all_digests, return_index=True, return_inverse=True)
    order = np.argsort(first)
    numbers = np.split(np.argsort(order)[number], np.cumsum([digests.size for digests in panel_digests.values()])[:-1])
    panel_numbers = {
        key: part.reshape(digests.shape)
        for (key, digests), part in zip(panel_digests.items(), numbers, strict=bool(panel_digests))
    }
    return all_digests[first[order]], {job: panel_numbers[id(job.panel)] for job in jobs}


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
