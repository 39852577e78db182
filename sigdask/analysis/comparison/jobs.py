"""The comparisons by exchange of one unit, the jobs that count them, and where each finds its counts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.exact.list_problems import limits_of, list_exact
from sigdask.analysis.comparison.pairs import (
    AllCountPositions,
    Comparisons,
    CountPositions,
    ResolvedSpec,
    list_comparisons,
)
from sigdask.analysis.comparison.spec import CompareSpec, pairs_of
from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.options import Alternative, Method
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels import AnyPanel, ComparedPanel
from sigdask.randomization.panels.contents import code_of, text_of
from sigdask.randomization.panels.sums import Arrangements, SwapUnits
from sigdask.randomization.tallies import TAILS
from sigdask.results.columns.coded import Coded
from sigdask.results.columns.inputs import Hashes, InputDigests, no_origins
from sigdask.results.exact import ExactValues

Integers = NDArray[np.int64]
Enumerated = tuple[Integers, AnyPanel]
"""Comparisons, and the panel whose rows are all their arrangements."""


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonJobs:
    """The comparisons by exchange of one unit, their jobs, and where each finds its counts.

    Attributes
    ----------
    asked : ResolvedSpec
        What was asked for.
    comparisons : Comparisons
        What is compared.
    jobs : list of Job
        What must be counted.
    slots : AllCountPositions
        Where the counts of each comparison stand; jobs by their places in `jobs`.
    signs : int64 array, shape (n_comparisons, 2)
        Wins and losses of those whose exact p is a binomial tail; -1 of others.
    """

    asked: ResolvedSpec
    comparisons: Comparisons
    jobs: list[Job]
    slots: AllCountPositions
    signs: Integers

    @staticmethod
    def of(counts: Counts, wanted: CompareSpec, *, second_run: bool) -> ComparisonJobs:
        """List what is compared and counted."""
        found = ComparisonJobs._sampled(counts, wanted, second_run=second_run)
        signs = list_exact(found.comparisons, wanted.method, wanted.exact_limit, found.slots.known, found.jobs)
        return replace(found, signs=signs)

    @staticmethod
    def beside(counts: Counts, wanted: CompareSpec) -> ComparisonJobs:
        """List what is counted with another unit, for contrast: all arrangements where they are few, else trials."""
        method: Method = "randomization" if wanted.method == "randomization" else "auto"
        return ComparisonJobs._sampled(counts, replace(wanted, method=method), second_run=False)

    @staticmethod
    def _sampled(counts: Counts, wanted: CompareSpec, *, second_run: bool) -> ComparisonJobs:
        asked = ResolvedSpec(
            counts=counts,
            units=SwapUnits.of(counts, wanted.seed),
            pairs=pairs_of(counts, wanted.pairs, wanted.baseline),
            method=wanted.method,
            trials=wanted.trials,
            exact_limit=wanted.exact_limit,
        )
        comparisons = list_comparisons(asked, wanted.found(counts), wanted.by)
        if len(asked.pairs) and not len(comparisons):
            raise InputError(
                f"{counts.name or 'these data'}: no two systems have an item in common, so there is nothing to compare"
            )
        none = np.full((len(comparisons), 2), -1, np.int64)
        return ComparisonJobs(asked, comparisons, *list_jobs(comparisons, second_run=second_run), none)

    def known(self, tallies: Tallies, alternative: Alternative) -> ExactValues:
        """Return the exact p-values that are known under one alternative, of those that are not enumerated."""
        return limits_of(self.signs, self.slots.known, self.jobs, tallies, TAILS.index(alternative))


def list_jobs(comparisons: Comparisons, *, second_run: bool) -> tuple[list[Job], AllCountPositions]:
    """List what must be counted, and where each comparison finds its counts."""
    slots = AllCountPositions.nowhere(len(comparisons))
    jobs: list[Job] = []
    for own in _together(np.flatnonzero(comparisons.sampled), comparisons.panel):
        _add_runs(comparisons, own, (slots.first, slots.second)[: 1 + second_run], jobs)
    for own in _together(np.flatnonzero(comparisons.enumerated), comparisons.metric):
        for some, panel in _joined(_enumerations(comparisons, own)):
            _stand(slots.exact, some, len(jobs), np.arange(len(some)), np.zeros(len(some), np.int64))
            jobs.append(Job(panel, 2 ** int(comparisons.n_discordant[some[0]]), label=_label(comparisons, some)))
    return jobs, slots


def _together(some: Integers, *columns: NDArray[np.int32]) -> list[Integers]:
    """Return some comparisons, those together that agree in columns."""
    return [some[rows] for rows in rows_of(numbered(*(column[some] for column in columns)))]


def _add_runs(comparisons: Comparisons, own: Integers, runs: Iterable[CountPositions], jobs: list[Job]) -> None:
    """Add the runs of a panel's sampled pairs."""
    rows, at = np.unique(comparisons.row[own].astype(np.int64), return_inverse=True)
    panel = _panel(comparisons, own).part(rows)
    for run, standing in enumerate(runs):
        _stand(standing, own, len(jobs), at, comparisons.column[own])
        jobs.append(Job(panel, int(comparisons.n_trials[own[0]]), run, label=_label(comparisons, own)))


def _label(comparisons: Comparisons, some: Integers) -> str:
    """Return what is compared, for errors: the first, and how many more."""
    more = f" and {len(some) - 1} more" if len(some) > 1 else ""
    return comparisons.label(int(some[0])) + more


def _enumerations(comparisons: Comparisons, own: Integers) -> Iterator[Enumerated]:
    """Yield comparisons under one metric with the panels of all their arrangements, panel by panel."""
    for of_panel in _together(own, comparisons.panel):
        row = comparisons.row[of_panel].astype(np.int64)
        place = np.zeros(int(row.max()) + 1, np.int64)
        place[row] = of_panel
        panel, column = _panel(comparisons, of_panel), int(comparisons.column[of_panel[0]])
        yield from ((place[rows], arrangements) for rows, arrangements in panel.enumerations(row, column))


def _joined(enumerations: Iterable[Enumerated]) -> Iterator[Enumerated]:
    """Yield them with those together that may be: of many subsets, each has a few."""
    waiting: dict[Hashable, list[tuple[Integers, Arrangements]]] = {}
    for some, panel in enumerations:
        shared = panel.shared if isinstance(panel, Arrangements) else None
        if not isinstance(panel, Arrangements) or shared is None:
            yield some, panel
            continue
        if sum(len(own) for own, _ in waiting.get(shared, ())) + len(some) > panel.most:
            yield from _one(waiting.pop(shared, []))
        waiting.setdefault(shared, []).append((some, panel))
    for own in waiting.values():
        yield from _one(own)


def _one(parts: list[tuple[Integers, Arrangements]]) -> Iterator[Enumerated]:
    """Yield one panel of several, if there are any."""
    if parts:
        (_, first), *others = parts
        panel = first.joined([panel for _, panel in others]) if others else first
        yield np.concatenate([own for own, _ in parts]), panel


def _panel(comparisons: Comparisons, own: Integers) -> ComparedPanel:
    return comparisons.panels[int(comparisons.panel[own[0]])]


def _stand(standing: CountPositions, some: Integers, job: int, row: Integers, column: NDArray[np.integer[Any]]) -> None:
    """Say where some comparisons find their counts."""
    standing.job[some], standing.row[some], standing.column[some] = job, row, column


def shifted(standing: CountPositions, by: int) -> CountPositions:
    """Return the same counts where so many other jobs stand before theirs."""
    return replace(standing, job=np.where(standing.job < 0, standing.job, standing.job + by).astype(np.int32))


def joined(standings: Iterable[CountPositions]) -> CountPositions:
    """Return where the counts of comparisons stand that follow on one another."""
    every = list(standings)
    return CountPositions(*(np.concatenate([getattr(one, name) for one in every]) for name in ("job", "row", "column")))


@dataclass(frozen=True, slots=True, eq=False)
class FamilyComparisons:
    """Comparisons that are judged together, of one exchange or of several: arrays of shape (n,).

    Attributes
    ----------
    exchanges : tuple of ComparisonJobs
        Of each test set.
    of_set : int64
        Places among `exchanges`.
    row : int64
        Places in the comparisons there.
    """

    exchanges: tuple[ComparisonJobs, ...]
    of_set: Integers
    row: Integers

    @staticmethod
    def of(*exchanges: ComparisonJobs) -> FamilyComparisons:
        """Take all comparisons of some exchanges, one exchange after the other."""
        sizes = [len(one.comparisons) for one in exchanges]
        row = np.concatenate([np.arange(n) for n in (0, *sizes)])
        return FamilyComparisons(exchanges, np.repeat(np.arange(len(sizes)), sizes), row)

    def __len__(self) -> int:
        return len(self.row)

    def only(self, some: Integers) -> FamilyComparisons:
        """Take some of them, by their places."""
        return self if len(some) == len(self) else replace(self, of_set=self.of_set[some], row=self.row[some])

    def column(self, name: str) -> NDArray[np.int64]:
        """Return a column of `Comparisons` of each."""
        found = np.zeros(len(self), np.int64)
        for k, one in enumerate(self.exchanges):
            here = self.of_set == k
            found[here] = getattr(one.comparisons, name)[self.row[here]]
        return found

    @property
    def subset(self) -> Integers:
        """Codes of subsets; within one test set alone they tell them apart."""
        found = np.zeros(len(self), np.int64)
        for k, one in enumerate(self.exchanges):
            here = self.of_set == k
            found[here] = one.comparisons.subset.codes[self.row[here]]
        return found

    @property
    def panel(self) -> Integers:
        """Places among `panels`."""
        before = np.cumsum([0, *(len(one.comparisons.panels) for one in self.exchanges)])
        return np.asarray(self.column("panel") + before[self.of_set])

    @property
    def panels(self) -> list[ComparedPanel]:
        """Panels of all exchanges, one exchange after the other."""
        return [panel for one in self.exchanges for panel in one.comparisons.panels]

    @property
    def metric(self) -> Integers:
        """Codes of the names of metrics."""
        return self._named([[m.name for m in one.comparisons.metrics] for one in self.exchanges], "metric")

    def systems(self, side: str) -> Integers:
        """Return codes of the names of the systems `a` or `b`, the same for both."""
        return self._named([list(one.asked.counts.systems) for one in self.exchanges], side)

    def _named(self, names: list[list[str]], column: str) -> Integers:
        """Return a code of the name that each has in a column of places."""
        codes: dict[str, int] = {}
        listed = [codes.setdefault(name, len(codes)) for own in names for name in own]
        before = np.cumsum([0, *map(len, names)])
        return np.asarray(np.array(listed, np.int64)[self.column(column) + before[self.of_set]])

    def metric_of(self, k: int) -> str:
        """Return the name of a comparison's metric."""
        comparisons = self.exchanges[int(self.of_set[k])].comparisons
        return comparisons.metrics[int(comparisons.metric[self.row[k]])].name

    def systems_of(self, k: int) -> tuple[str, str]:
        """Return the names of a comparison's systems."""
        comparisons, row = self.exchanges[int(self.of_set[k])].comparisons, self.row[k]
        systems = comparisons.counts.systems
        return systems[int(comparisons.a[row])], systems[int(comparisons.b[row])]


def origins_of(exchange: ComparisonJobs, seed: int, version: str) -> InputDigests:
    """Return where the results of an exchange come from; families are told later.

    Parameters
    ----------
    exchange : ComparisonJobs
        What is compared.
    seed : int
        Of the stream.
    version : str
        Of the program.
    """
    asked, own = exchange.asked, exchange.comparisons
    n = len(own)
    data = np.zeros((n, 2), np.uint64)
    for rows in rows_of(numbered(own.panel, own.column)):
        panel = own.panels[int(own.panel[rows[0]])]
        data[rows] = panel.contents_of(int(own.column[rows[0]]))[own.row[rows]]
    data_a, data_b = (_texts(side) for side in data.T)
    return replace(
        no_origins(n),
        seed=np.full(n, seed, np.int64),
        method=Coded.same(asked.method_and_limit, n),
        units=Coded.same(text_of(asked.units.content), n),
        data_a=data_a,
        data_b=data_b,
        code=Coded(own.metric, tuple(map(code_of, own.metrics))),
        version=Coded.same(version, n),
    )


def _texts(bits: Hashes) -> Coded[str]:
    distinct, places = np.unique(bits, return_inverse=True)
    return Coded(places.astype(np.int32), tuple(map(text_of, distinct.tolist())))
