"""From a study and what it found to comparisons opened: what is drawn of each, made of the panels that were counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.study import Study
from sigdask.analysis.details.null_distribution import NullDistribution, nulls
from sigdask.analysis.details.runs import Convergence, prefixes
from sigdask.analysis.details.shares import UnitShares
from sigdask.analysis.details.units import FieldNames, UnitDetails, UnitIndex, with_texts
from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.stream.shuffled_differences import Whole
from sigdask.randomization.tallies import TAILS
from sigdask.results.table import Table

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDetails:
    """One comparison, opened.

    Attributes
    ----------
    row : int
        Of the table of results.
    alternative : str
        Which differences are extreme.
    null : NullDistribution
        What shuffling makes of the difference.
    runs : tuple of Convergence
        The first run and, where there is one, the second; none where no trials were counted.
    shares : UnitShares or None
        What units contribute; None of a metric of whole outputs, which scores no unit.
    named : tuple of UnitDetails
        The units that decide, as `shares` lists them.
    called : FieldNames
        What is asked and right in these data.
    """

    row: int
    alternative: str
    null: NullDistribution
    runs: tuple[Convergence, ...]
    shares: UnitShares | None
    named: tuple[UnitDetails, ...]
    called: FieldNames


def opened(study: Study, found: Table, rows: Integers) -> tuple[ComparisonDetails, ...]:
    """Open some comparisons of a study.

    The same data, seed and trials give the same numbers on any machine. What a reader cannot be shown, as a user's
    metric fails on it, is left out.

    Parameters
    ----------
    study : Study
        What was asked, with its panels.
    found : Table
        Results of all of it, or of some.
    rows : int64 array, shape (n_rows,)
        Which rows of these to open, in the order in which they are wanted.
    """
    own = found.take(rows)
    of_set, place = places(study, own)
    parts: list[_PanelComparisons] = []
    for k, analysis in enumerate(study.analyses):
        inside = np.flatnonzero(of_set == k)
        parts += _parts(analysis.main, own.take(inside), rows[inside], place[inside])
    every = [one for part in parts for one in part.opened(len(parts))]
    for analysis in study.analyses:
        every = [*_told(every, found, analysis.main.asked.counts)]
    by_row = {one.row: one for one in every}
    return tuple(by_row[row] for row in rows.tolist() if row in by_row)


def _told(every: Sequence[ComparisonDetails], found: Table, counts: Counts) -> Iterator[ComparisonDetails]:
    """Yield what is opened, with the texts of its items where those of a test set are looked up: all in one go."""
    own = [one for one in every if counts.telling is not None and found.test_set[one.row] == counts.name]
    ids = {item.name for one in own for unit in one.named for item in unit.items}
    systems = {side[one.row] for one in own for side in (found.a, found.b)}
    texts = counts.telling.told(ids, systems) if own and counts.telling is not None else {}
    for one in every:
        if one in own:
            pair = found.a[one.row], found.b[one.row]
            yield replace(one, named=tuple(with_texts(unit, pair, texts) for unit in one.named))
        else:
            yield one


def places(study: Study, found: Table) -> tuple[Integers, Integers]:
    """Return where results stand in a study: places of test sets and of comparisons in these; -1 of what it lacks."""
    of_set, place = np.full((2, len(found)), -1, np.int64)
    for s, analysis in enumerate(study.analyses):
        listed = analysis.main.comparisons
        systems, metrics = listed.counts.systems, [own.name for own in listed.metrics]
        for k in range(len(found)):
            if found.test_set[k] == listed.counts.name:
                fits = _is(listed.a, systems, found.a[k]) & _is(listed.b, systems, found.b[k])
                fits &= _is(listed.metric, metrics, found.metric[k].name)
                fits &= _is(listed.subset.codes, listed.subset.values, found.subset[k])
                for at in np.flatnonzero(fits)[:1]:
                    of_set[k], place[k] = s, at
    return of_set, place


def _is(codes: NDArray[np.int32], values: Sequence[Any], value: Any) -> NDArray[np.bool_]:
    """Say which rows of a column have a value."""
    return np.asarray(codes == (values.index(value) if value in values else -1))


def _parts(exchange: ComparisonJobs, found: Table, rows: Integers, own: Integers) -> Iterator[_PanelComparisons]:
    """Yield the comparisons of one exchange that share a panel and a metric."""
    listed = exchange.comparisons
    known = UnitIndex(listed, exchange.asked.units)
    for some in rows_of(numbered(listed.panel[own], listed.column[own])):
        yield _PanelComparisons(exchange, known, found.take(some), rows[some], own[some])


@dataclass(frozen=True, slots=True, eq=False)
class _PanelComparisons:
    """Comparisons of one panel under one metric.

    Attributes
    ----------
    exchange : ComparisonJobs
        Where they were asked.
    known : UnitIndex
        Its units.
    found : Table
        What was found of them.
    rows, own : int64 array, shape (n,)
        Their rows of the whole table, and places in the exchange.
    """

    exchange: ComparisonJobs
    known: UnitIndex
    found: Table
    rows: Integers
    own: Integers

    @property
    def panel(self) -> Whole:
        """What was counted."""
        listed = self.exchange.comparisons
        panel = listed.panels[int(listed.panel[self.own[0]])]
        assert isinstance(panel, Whole)
        return panel

    @property
    def at(self) -> tuple[Integers, int]:
        """Where they stand in it: rows, shape (n,), and a column."""
        listed = self.exchange.comparisons
        return listed.row[self.own].astype(np.int64), int(listed.column[self.own[0]])

    def opened(self, n_parts: int) -> Iterator[ComparisonDetails]:
        """Yield what is to be drawn of each; work is shared by so many such parts."""
        (at, column), panel = self.at, self.panel
        tails = [TAILS.index(side) for side in self.found.alternative.listed()]
        asked = self.exchange.comparisons.n_trials[self.own]
        runs = self._runs(tails, n_parts)
        drawn = zip(nulls(panel, at, column, tails, asked), at.tolist(), runs, strict=True)
        try:
            for k, (null, row, own) in enumerate(drawn):
                shares: UnitShares | None = None
                named: tuple[UnitDetails, ...] = ()
                if not isinstance(panel, OutputsPanel):
                    shares = UnitShares.of(panel, row, column)
                    named = self.known.named(int(self.own[k]), shares.addresses, shares.scores)
                yield ComparisonDetails(
                    int(self.rows[k]), self.found.alternative[k], null, own, shares, named, self.known.called
                )
        except InputError:  # a metric of whole outputs, which gives no score: the results say so
            return

    def _runs(self, tails: Sequence[int], n_parts: int) -> list[tuple[Convergence, ...]]:
        """Return how p of each came about, by run."""
        ends = [(self.found.n_trials, self.found.n_extreme), (self.found.second_trials, self.found.second_extreme)]
        sampled = self.exchange.slots.first.job[self.own] >= 0
        found: list[list[Convergence]] = [[] for _ in tails]
        for run, (n_trials, n_extreme) in enumerate(ends):
            some = np.flatnonzero(sampled & (n_trials > 0))
            if not len(some):
                continue
            (at, column), each = self.at, np.arange(len(some))
            part = self.panel.part(at[some], [column])
            assert isinstance(part, Whole)
            trials, counts = prefixes(part, run=run, most=int(n_trials[some].max()), share=n_parts)
            for k, place in zip(each.tolist(), some.tolist(), strict=True):
                whole = Convergence(trials, counts[:, k, 0, tails[place]])
                found[place].append(whole.ended(int(n_trials[place]), int(n_extreme[place])))
        return [tuple(own) for own in found]
