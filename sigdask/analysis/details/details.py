"""Computation of the details of single comparisons, from the panels of a study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.study import Study
from sigdask.analysis.details.null_distribution import NullDistribution, iter_null_distributions
from sigdask.analysis.details.runs import Convergence, count_prefixes
from sigdask.analysis.details.shares import UnitShares
from sigdask.analysis.details.units import FieldNames, UnitDetails, UnitIndex, add_texts
from sigdask.counts import Counts
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.errors import InputError
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.stream.trial_differences import PairPanel
from sigdask.randomization.tallies import TAILS
from sigdask.results.table import Table

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class ComparisonDetails:
    """Details of one comparison.

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
    deciding_units : tuple of UnitDetails
        The units that decide, as `shares` lists them.
    field_names : FieldNames
        What is asked and right in these data.
    """

    row: int
    alternative: str
    null: NullDistribution
    runs: tuple[Convergence, ...]
    shares: UnitShares | None
    deciding_units: tuple[UnitDetails, ...]
    field_names: FieldNames


def compute_details(study: Study, table: Table, rows: Integers) -> tuple[ComparisonDetails, ...]:
    """Return the details of some comparisons of a study, in the order of `rows`.

    The same data, seed and trials give the same numbers on any machine. What a reader cannot be shown, as a user's
    metric fails on it, is left out.

    Parameters
    ----------
    study : Study
        What was asked, with its panels.
    table : Table
        Results of all of it, or of some.
    rows : int64 array, shape (n_rows,)
        Which rows of these to open, in the order in which they are wanted.
    """
    selected = table.take(rows)
    set_index, indices = find_positions(study, selected)
    groups: list[_PanelComparisons] = []
    for k, analysis in enumerate(study.analyses):
        inside = np.flatnonzero(set_index == k)
        groups += _iter_groups(analysis.main, selected.take(inside), rows[inside], indices[inside])
    details = [entry for group in groups for entry in group.iter_details(len(groups))]
    for analysis in study.analyses:
        details = [*_add_texts(details, table, analysis.main.spec.counts)]
    by_row = {entry.row: entry for entry in details}
    return tuple(by_row[row] for row in rows.tolist() if row in by_row)


def _add_texts(details: Sequence[ComparisonDetails], table: Table, counts: Counts) -> Iterator[ComparisonDetails]:
    """Yield the details, with item texts added for one test set whose texts can be looked up."""
    with_lookup = [
        entry for entry in details if counts.telling is not None and table.test_set[entry.row] == counts.name
    ]
    ids = {item.name for entry in with_lookup for unit in entry.deciding_units for item in unit.items}
    systems = {side[entry.row] for entry in with_lookup for side in (table.a, table.b)}
    texts = counts.telling.find_texts(ids, systems) if with_lookup and counts.telling is not None else {}
    for entry in details:
        if entry in with_lookup:
            pair = table.a[entry.row], table.b[entry.row]
            yield replace(entry, deciding_units=tuple(add_texts(unit, pair, texts) for unit in entry.deciding_units))
        else:
            yield entry


def find_positions(study: Study, table: Table) -> tuple[Integers, Integers]:
    """Return, for each result, the index of its test set and of its comparison in a study; -1 if not found."""
    set_index, indices = np.full((2, len(table)), -1, np.int64)
    for s, analysis in enumerate(study.analyses):
        comparisons = analysis.main.comparisons
        systems, metrics = comparisons.counts.systems, [metric.name for metric in comparisons.metrics]
        for k in range(len(table)):
            if table.test_set[k] == comparisons.counts.name:
                fits = _match_code(comparisons.a, systems, table.a[k]) & _match_code(comparisons.b, systems, table.b[k])
                fits &= _match_code(comparisons.metric, metrics, table.metric[k].name)
                fits &= _match_code(comparisons.subset.codes, comparisons.subset.values, table.subset[k])
                for index in np.flatnonzero(fits)[:1]:
                    set_index[k], indices[k] = s, index
    return set_index, indices


def _match_code(codes: NDArray[np.int32], values: Sequence[Any], value: Any) -> NDArray[np.bool_]:
    """Return which of the codes stand for the given value."""
    return np.asarray(codes == (values.index(value) if value in values else -1))


def _iter_groups(jobs: ComparisonJobs, table: Table, rows: Integers, indices: Integers) -> Iterator[_PanelComparisons]:
    """Yield the comparisons in groups that share a panel and a metric."""
    comparisons = jobs.comparisons
    unit_index = UnitIndex(comparisons, jobs.spec.units)
    for selected in group_rows(number_rows(comparisons.panel[indices], comparisons.column[indices])):
        yield _PanelComparisons(jobs, unit_index, table.take(selected), rows[selected], indices[selected])


@dataclass(frozen=True, slots=True, eq=False)
class _PanelComparisons:
    """Comparisons of one panel under one metric.

    Attributes
    ----------
    jobs : ComparisonJobs
        Where they were asked.
    unit_index : UnitIndex
        Its units.
    table : Table
        What was found of them.
    rows, indices : int64 array, shape (n,)
        Their rows of the whole table, and places in the exchange.
    """

    jobs: ComparisonJobs
    unit_index: UnitIndex
    table: Table
    rows: Integers
    indices: Integers

    @property
    def panel(self) -> PairPanel:
        """The panel that was counted."""
        comparisons = self.jobs.comparisons
        panel = comparisons.panels[int(comparisons.panel[self.indices[0]])]
        assert isinstance(panel, PairPanel)
        return panel

    @property
    def position(self) -> tuple[Integers, int]:
        """Rows of the comparisons in the panel, shape (n,), and their column."""
        comparisons = self.jobs.comparisons
        return comparisons.row[self.indices].astype(np.int64), int(comparisons.column[self.indices[0]])

    def iter_details(self, n_groups: int) -> Iterator[ComparisonDetails]:
        """Yield the details of each comparison; the limit of work is divided by `n_groups`."""
        (panel_rows, column), panel = self.position, self.panel
        tails = [TAILS.index(side) for side in self.table.alternative.to_list()]
        n_requested = self.jobs.comparisons.n_trials[self.indices]
        runs = self._compute_runs(tails, n_groups)
        entries = zip(
            iter_null_distributions(panel, panel_rows, column, tails, n_requested),
            panel_rows.tolist(),
            runs,
            strict=True,
        )
        try:
            for k, (null, row, convergence) in enumerate(entries):
                shares: UnitShares | None = None
                deciding: tuple[UnitDetails, ...] = ()
                if not isinstance(panel, OutputsPanel):
                    shares = UnitShares.from_panel(panel, row, column)
                    deciding = self.unit_index.list_details(int(self.indices[k]), shares.addresses, shares.scores)
                yield ComparisonDetails(
                    int(self.rows[k]),
                    self.table.alternative[k],
                    null,
                    convergence,
                    shares,
                    deciding,
                    self.unit_index.field_names,
                )
        except InputError:  # a metric of whole outputs, which gives no score: the results say so
            return

    def _compute_runs(self, tails: Sequence[int], n_groups: int) -> list[tuple[Convergence, ...]]:
        """Return, for each comparison, how p converges in its first and its second run."""
        ends = [(self.table.n_trials, self.table.n_extreme), (self.table.second_trials, self.table.second_extreme)]
        is_sampled = self.jobs.slots.first.job[self.indices] >= 0
        by_comparison: list[list[Convergence]] = [[] for _ in tails]
        for run, (n_trials, n_extreme) in enumerate(ends):
            selected = np.flatnonzero(is_sampled & (n_trials > 0))
            if not len(selected):
                continue
            (panel_rows, column), indices = self.position, np.arange(len(selected))
            subpanel = self.panel.select(panel_rows[selected], [column])
            assert isinstance(subpanel, PairPanel)
            trials, counts = count_prefixes(subpanel, run=run, max_trials=int(n_trials[selected].max()), share=n_groups)
            for k, index in zip(indices.tolist(), selected.tolist(), strict=True):
                convergence = Convergence(trials, counts[:, k, 0, tails[index]])
                by_comparison[index].append(convergence.end_at(int(n_trials[index]), int(n_extreme[index])))
        return [tuple(runs) for runs in by_comparison]
