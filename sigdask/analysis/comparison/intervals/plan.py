"""Choice of the interval of each comparison of a test set, and the jobs that count it.

By default scores of 0 and 1 by item have Tango's score interval, other means that of the inverted test
(with the bootstrap's of both scores beside it), everything else the paired bootstrap; a normal one where units are
very many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.intervals.bootstrap import BootstrapComparisons, ResampledOutputs
from sigdask.analysis.comparison.intervals.inversion import EnumeratedInversion, SampledInversion
from sigdask.analysis.comparison.intervals.normal import MANY_UNITS, NormalIntervals
from sigdask.analysis.comparison.intervals.proportions import BinaryIntervals, are_constant, are_matched
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.pairs import CountPositions, build_empty_positions, build_full_panels
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.columns.intervals import CONDITIONAL, FLOAT_COLUMNS, METHODS, TANGO, Intervals
from sigdask.statistics.intervals import ENUMERATED_UNITS

Integers = NDArray[np.int64]

MIN_UNITS = 2
ONE_UNIT = "one unit alone tells nothing of others"
NO_SUM = "what is scored is a set brought together over units, no sum of them, which resampled units would not give"
CONSTANT = "every unit has the same difference, so nothing shows how much differences vary"
NO_ITEM_DIFFERS = "no item differs, and the interval is conditional on how many do"
NOT_BINARY = "the conditional exact interval is of scores of 0 and 1 of single items"
COARSE = "scores are of so unequal size that sums of the small ones cannot be distinguished beside the large ones"
NO_MEAN = "the test can be inverted for means alone: what a shift of the difference does to other scores is not known"


REASONS = (COARSE, CONSTANT, NO_ITEM_DIFFERS, NOT_BINARY, NO_MEAN)
"""Why comparisons of a panel that has intervals may have none."""


class IntervalGroup(Protocol):
    """Comparisons of one panel whose intervals are computed in the same way."""

    @property
    def indices(self) -> Integers:
        """Indices of the comparisons, shape (n,)."""
        ...

    @property
    def job(self) -> Job | None:
        """The job that counts for these intervals; None if they need no job."""
        ...

    def write_intervals(self, columns: Intervals, reasons: dict[int, str], tallies: Tallies) -> None:
        """Write the intervals into the comparisons' rows of `columns`, and remarks into `reasons`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class IntervalJobs:
    """The intervals of the comparisons of one test set and unit, with their jobs.

    Attributes
    ----------
    n : int
        Comparisons.
    groups : tuple of IntervalGroup
        Those that have an interval.
    reasons : mapping of int to str
        Of the others, why they have none.
    confidence : float
        Of all intervals.
    """

    n: int
    groups: tuple[IntervalGroup, ...]
    reasons: dict[int, str]
    confidence: float

    @staticmethod
    def from_comparisons(
        comparison_jobs: ComparisonJobs, spec: IntervalSpec, alternative: Alternative = "two-sided"
    ) -> IntervalJobs:
        """Return the intervals and jobs of all comparisons, with the kind of interval chosen for each."""
        comparisons = comparison_jobs.comparisons
        panels, panel, row, column = build_full_panels(comparison_jobs.spec, comparisons)
        groups: list[IntervalGroup] = []
        reasons: dict[int, str] = {}
        for group in group_rows(number_rows(panel)):
            positions = row[group].astype(np.int64), column[group].astype(np.int64)
            group_panel = panels[int(panel[group[0]])]
            if (reason := _find_refusal(group_panel)) is not None:
                reasons |= dict.fromkeys(group.tolist(), reason)
                continue
            trials = int(comparisons.n_trials[group[0]])
            for kind, selected in _iter_kinds(group_panel, *positions, spec, is_item=comparisons.counts.unit == "item"):
                if kind in REASONS:
                    reasons |= dict.fromkeys(group[selected].tolist(), kind)
                    continue
                kind_positions = group[selected], positions[0][selected], positions[1][selected]
                groups.append(_build_group(kind, group_panel, *kind_positions, spec, trials, alternative))
        return IntervalJobs(len(comparisons), tuple(groups), reasons, spec.confidence)

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count."""
        return [group.job for group in self.groups if group.job is not None]

    @property
    def positions(self) -> tuple[CountPositions, CountPositions]:
        """Positions of the counts of each comparison's interval jobs, of which it has up to two."""
        first, second, job = build_empty_positions(self.n), build_empty_positions(self.n), 0
        for group in self.groups:
            if group.job is not None:
                is_free = first.job[group.indices] < 0
                first.job[group.indices[is_free]], second.job[group.indices[~is_free]] = job, job
                job += 1
        return first, second

    def build_columns(self, tallies: Tallies) -> Intervals:
        """Return the intervals that tallies of `jobs` give."""
        nans = {name: np.full(self.n, np.nan) for name in FLOAT_COLUMNS}
        method = CodedColumn(np.zeros(self.n, np.int32), METHODS)
        found = Intervals(
            method=method, why=CodedColumn.from_constant("", self.n), n_resamples=np.zeros(self.n, np.int64), **nans
        )  # fmt: skip
        reasons = dict(self.reasons)
        for group in self.groups:
            group.write_intervals(found, reasons, tallies)
        found.confidence[method.codes > 0] = self.confidence
        words = CodedColumn.from_values(reasons.get(k, "") for k in range(self.n))
        return Intervals(method=method, why=words, n_resamples=found.n_resamples,
                         **{name: getattr(found, name) for name in FLOAT_COLUMNS})  # fmt: skip


def _find_refusal(panel: ComparedPanel) -> str | None:
    """Return why the comparisons of a panel have no interval, or None if they have one."""
    if panel.extent[1] < MIN_UNITS:
        return ONE_UNIT
    if not isinstance(panel, OutputsPanel):
        return None if isinstance(panel, Panel) else NO_SUM
    try:
        panel.scores  # noqa: B018  # asked for before anything is counted: a plan goes on without such a box
    except InputError as error:
        return str(error)
    return None


def _iter_kinds(
    panel: ComparedPanel, row: Integers, column: Integers, spec: IntervalSpec, *, is_item: bool
) -> Iterator[tuple[str, Integers]]:
    """Yield each kind of interval, or reason for having none, with the indices of its comparisons."""
    if not isinstance(panel, Panel):
        no_kind = {"inversion": NO_MEAN, CONDITIONAL: NOT_BINARY}
        constant = panel.n_discordant[row, column] == 0
        for kind, rows in ((CONSTANT, constant), (no_kind.get(spec.kind, "outputs"), ~constant)):
            if rows.any():
                yield kind, np.flatnonzero(rows)
        return
    kinds = _choose_kinds(panel, row, column, spec)
    if is_item and spec.kind in {"auto", CONDITIONAL}:
        is_matched = are_matched(panel)[row, column]
        kinds[is_matched] = TANGO if spec.kind == "auto" else CONDITIONAL
        if spec.kind == CONDITIONAL:
            kinds[is_matched & (panel.n_discordant[row, column] == 0)] = NO_ITEM_DIFFERS
    resampled = np.flatnonzero((kinds == "bootstrap") | (kinds == _choose_inversion(panel)))
    if spec.kind == "auto" and resampled.size:
        yield "bootstrap", resampled  # of means for the sake of both scores: that of the difference comes after
        kinds[kinds == "bootstrap"] = None
    for kind in dict.fromkeys(name for name in kinds.tolist() if name is not None):
        yield kind, np.flatnonzero(kinds == kind)


def _choose_inversion(panel: Panel) -> str:
    return "enumerated" if panel.n_units <= ENUMERATED_UNITS else "inversion"


def _choose_kinds(panel: Panel, row: Integers, column: Integers, spec: IntervalSpec) -> NDArray[np.object_]:
    """Return the kind of interval of each comparison, or the reason for having none, as if no scores were 0/1."""
    is_mean = np.array(panel.linear)[column]
    kinds = np.full(len(row), "bootstrap", object)
    if spec.kind == "auto" and panel.n_units > MANY_UNITS and spec.resamples is None:
        kinds[:] = "normal"
    elif spec.kind == "auto":
        kinds[is_mean] = _choose_inversion(panel)
    elif spec.kind == "inversion":
        kinds[:] = np.where(is_mean, _choose_inversion(panel), NO_MEAN)
    elif spec.kind == CONDITIONAL:
        kinds[:] = NOT_BINARY
    kinds[np.array([panel.is_coarse(m) for m in range(len(panel.metrics))])[column]] = COARSE
    kinds[are_constant(panel)[row, column]] = CONSTANT
    return kinds


def _build_group(
    kind: str,
    panel: ComparedPanel,
    indices: Integers,
    row: Integers,
    column: Integers,
    spec: IntervalSpec,
    trials: int,
    alternative: Alternative,
) -> IntervalGroup:
    if isinstance(panel, OutputsPanel):
        return ResampledOutputs.from_panel(panel, indices, spec)
    assert isinstance(panel, Panel)
    rows, columns = np.unique(row), np.unique(column)
    used_panel = panel.select(rows, columns.tolist())
    positions = np.searchsorted(rows, row), np.searchsorted(columns, column)
    if kind in {TANGO, CONDITIONAL}:
        return BinaryIntervals(used_panel, indices, *positions, spec.confidence, kind, alternative)
    if kind == "normal":
        return NormalIntervals(used_panel, indices, *positions, spec.confidence)
    if kind == "enumerated":
        return EnumeratedInversion(used_panel, indices, *positions, spec.confidence)
    if kind == "inversion":
        return SampledInversion.from_panel(used_panel, indices, *positions, spec, trials)
    return BootstrapComparisons.from_panel(used_panel, indices, *positions, spec)
