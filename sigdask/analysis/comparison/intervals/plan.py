"""Which interval each comparison of a test set has, and the jobs that must be counted for it.

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
from sigdask.analysis.comparison.intervals.inversion import InvertedByAll, InvertedComparisons
from sigdask.analysis.comparison.intervals.normal import MANY_UNITS, Normal
from sigdask.analysis.comparison.intervals.proportions import MatchedItems, are_constant, are_matched
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.pairs import CountPositions, nowhere, with_every_unit
from sigdask.analysis.comparison.spec import IntervalSpec
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.panels import ComparedPanel
from sigdask.randomization.panels.outputs import OutputsPanel
from sigdask.randomization.panels.sums import Panel
from sigdask.results.columns.coded import Coded
from sigdask.results.columns.intervals import CONDITIONAL, FLOATS, METHODS, TANGO, Intervals
from sigdask.statistics.intervals import ENUMERATED_UNITS

Integers = NDArray[np.int64]

FEWEST_UNITS = 2
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
    """Comparisons of one panel whose intervals are had in the same way."""

    @property
    def own(self) -> Integers:
        """The comparisons, shape (n_own,)."""
        ...

    @property
    def job(self) -> Job | None:
        """What must be counted for them."""
        ...

    def enter(self, columns: Intervals, why: dict[int, str], tallies: Tallies) -> None:
        """Put what was found into the rows of columns, and what is to be known of it beside."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class IntervalJobs:
    """The intervals that are sought of the comparisons of one exchange.

    Attributes
    ----------
    n : int
        Comparisons.
    groups : tuple of IntervalGroup
        Those that have an interval.
    why : mapping of int to str
        Of the others, why they have none.
    confidence : float
        Of all intervals.
    """

    n: int
    groups: tuple[IntervalGroup, ...]
    why: dict[int, str]
    confidence: float

    @staticmethod
    def of(exchange: ComparisonJobs, wanted: IntervalSpec, alternative: Alternative = "two-sided") -> IntervalJobs:
        """Decide which interval each comparison has."""
        listed = exchange.comparisons
        panels, panel, row, column = with_every_unit(exchange.asked, listed)
        groups: list[IntervalGroup] = []
        why: dict[int, str] = {}
        for own in rows_of(numbered(panel)):
            where = row[own].astype(np.int64), column[own].astype(np.int64)
            one = panels[int(panel[own[0]])]
            if (reason := _refusal(one)) is not None:
                why |= dict.fromkeys(own.tolist(), reason)
                continue
            trials = int(listed.n_trials[own[0]])
            for kind, some in _kinds(one, *where, wanted, is_item=listed.counts.unit == "item"):
                if kind in REASONS:
                    why |= dict.fromkeys(own[some].tolist(), kind)
                    continue
                here = own[some], where[0][some], where[1][some]
                groups.append(_group(kind, one, *here, wanted, trials, alternative))
        return IntervalJobs(len(listed), tuple(groups), why, wanted.confidence)

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [group.job for group in self.groups if group.job is not None]

    @property
    def standings(self) -> tuple[CountPositions, CountPositions]:
        """Where the counts of each comparison's intervals stand, one or two of each; jobs by their places in `jobs`."""
        first, second, job = nowhere(self.n), nowhere(self.n), 0
        for group in self.groups:
            if group.job is not None:
                free = first.job[group.own] < 0
                first.job[group.own[free]], second.job[group.own[~free]] = job, job
                job += 1
        return first, second

    def columns(self, tallies: Tallies) -> Intervals:
        """Return the intervals that tallies of `jobs` give."""
        nothing = {name: np.full(self.n, np.nan) for name in FLOATS}
        method = Coded(np.zeros(self.n, np.int32), METHODS)
        found = Intervals(
            method=method, why=Coded.same("", self.n), n_resamples=np.zeros(self.n, np.int64), **nothing
        )  # fmt: skip
        why = dict(self.why)
        for group in self.groups:
            group.enter(found, why, tallies)
        found.confidence[method.codes > 0] = self.confidence
        words = Coded.of(why.get(k, "") for k in range(self.n))
        return Intervals(method=method, why=words, n_resamples=found.n_resamples,
                         **{name: getattr(found, name) for name in FLOATS})  # fmt: skip


def _refusal(panel: ComparedPanel) -> str | None:
    """Return why the comparisons of a panel have no interval, if they have none."""
    if panel.extent[1] < FEWEST_UNITS:
        return ONE_UNIT
    if not isinstance(panel, OutputsPanel):
        return None if isinstance(panel, Panel) else NO_SUM
    try:
        panel.scores  # noqa: B018  # asked for before anything is counted: a plan goes on without such a box
    except InputError as error:
        return str(error)
    return None


def _kinds(
    panel: ComparedPanel, row: Integers, column: Integers, wanted: IntervalSpec, *, is_item: bool
) -> Iterator[tuple[str, Integers]]:
    """Yield kinds of interval, or reasons for none, with the comparisons that have them, by their places."""
    if not isinstance(panel, Panel):
        no_kind = {"inversion": NO_MEAN, CONDITIONAL: NOT_BINARY}
        constant = panel.n_discordant[row, column] == 0
        for kind, rows in ((CONSTANT, constant), (no_kind.get(wanted.kind, "outputs"), ~constant)):
            if rows.any():
                yield kind, np.flatnonzero(rows)
        return
    kinds = _kinds_of_sums(panel, row, column, wanted)
    if is_item and wanted.kind in {"auto", CONDITIONAL}:
        is_matched = are_matched(panel)[row, column]
        kinds[is_matched] = TANGO if wanted.kind == "auto" else CONDITIONAL
        if wanted.kind == CONDITIONAL:
            kinds[is_matched & (panel.n_discordant[row, column] == 0)] = NO_ITEM_DIFFERS
    resampled = np.flatnonzero((kinds == "bootstrap") | (kinds == _inverted(panel)))
    if wanted.kind == "auto" and resampled.size:
        yield "bootstrap", resampled  # of means for the sake of both scores: that of the difference comes after
        kinds[kinds == "bootstrap"] = None
    for kind in dict.fromkeys(each for each in kinds.tolist() if each is not None):
        yield kind, np.flatnonzero(kinds == kind)


def _inverted(panel: Panel) -> str:
    return "enumerated" if panel.n_units <= ENUMERATED_UNITS else "inversion"


def _kinds_of_sums(panel: Panel, row: Integers, column: Integers, wanted: IntervalSpec) -> NDArray[np.object_]:
    """Return kinds of interval, or reasons for none, but for scores of 0 and 1."""
    is_mean = np.array(panel.linear)[column]
    kinds = np.full(len(row), "bootstrap", object)
    if wanted.kind == "auto" and panel.n_units > MANY_UNITS and wanted.resamples is None:
        kinds[:] = "normal"
    elif wanted.kind == "auto":
        kinds[is_mean] = _inverted(panel)
    elif wanted.kind == "inversion":
        kinds[:] = np.where(is_mean, _inverted(panel), NO_MEAN)
    elif wanted.kind == CONDITIONAL:
        kinds[:] = NOT_BINARY
    kinds[np.array([panel.is_coarse(m) for m in range(len(panel.metrics))])[column]] = COARSE
    kinds[are_constant(panel)[row, column]] = CONSTANT
    return kinds


def _group(
    kind: str,
    panel: ComparedPanel,
    own: Integers,
    row: Integers,
    column: Integers,
    wanted: IntervalSpec,
    trials: int,
    alternative: Alternative,
) -> IntervalGroup:
    if isinstance(panel, OutputsPanel):
        return ResampledOutputs.of(panel, own, wanted)
    assert isinstance(panel, Panel)
    rows, columns = np.unique(row), np.unique(column)
    part = panel.part(rows, columns.tolist())
    at = np.searchsorted(rows, row), np.searchsorted(columns, column)
    if kind in {TANGO, CONDITIONAL}:
        return MatchedItems(part, own, *at, wanted.confidence, kind, alternative)
    if kind == "normal":
        return Normal(part, own, *at, wanted.confidence)
    if kind == "enumerated":
        return InvertedByAll(part, own, *at, wanted.confidence)
    if kind == "inversion":
        return InvertedComparisons.of(part, own, *at, wanted, trials)
    return BootstrapComparisons.of(part, own, *at, wanted)
