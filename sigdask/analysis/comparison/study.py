"""A study: what must be counted for all test sets that are judged together, and the results that its tallies give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.across_sets import AcrossSets, across_sets
from sigdask.analysis.comparison.adjust import Adjustment, adjustment, chosen, is_exact
from sigdask.analysis.comparison.assumptions import check_assumptions
from sigdask.analysis.comparison.caveats import obstacles
from sigdask.analysis.comparison.intervals.plan import IntervalJobs
from sigdask.analysis.comparison.jobs import FamilyComparisons, joined, origins_of, shifted
from sigdask.analysis.comparison.judge import Failed, JudgementSettings
from sigdask.analysis.comparison.pairs import AllCountPositions, CountPositions, nowhere
from sigdask.analysis.comparison.set_analysis import SetAnalysis
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.counts import Counts
from sigdask.counts.grouping import numbered, rows_of
from sigdask.errors import InputError
from sigdask.options import Adjust, Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.tallies import Tally
from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.comparisons import ComparisonResults, FamilyNote, ResultAcrossSets, made_by
from sigdask.results.exact import with_exact
from sigdask.results.inputs import with_families
from sigdask.results.messages.intervals import beside_adjusted
from sigdask.results.messages.notes import Note, distinct
from sigdask.results.table import Table, columns_joined, columns_taken

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """What must be counted for some results, and how these are made of the counts.

    Attributes
    ----------
    analyses : list of SetAnalysis
        Of each test set.
    alternatives : list of str
        Likewise.
    families : list of (Adjustment, int64 array)
        The comparisons that are judged together, by their places among all.
    across : AcrossSets or None
        Each pair over all sets.
    alpha : float
        Level of the verdicts.
    seed : int
        Of the stream.
    intervals : list of (IntervalJobs or None)
        Of each test set; None where none are wanted.
    """

    analyses: list[SetAnalysis]
    alternatives: list[Alternative]
    families: list[tuple[Adjustment, Integers]]
    across: AcrossSets | None
    alpha: float
    seed: int
    intervals: list[IntervalJobs | None]

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [
            *(job for analysis in self.analyses for job in analysis.jobs),
            *(made.job for made, _ in self.families if made.job is not None),
            *(made.companion for made, _ in self.families if made.companion is not None),
            *([self.across.job] if self.across else []),
            *self.interval_jobs,
        ]

    @property
    def interval_jobs(self) -> list[Job]:
        """What of it is counted for intervals: the last."""
        return [job for sought in self.intervals if sought is not None for job in sought.jobs]

    @property
    def slots(self) -> AllCountPositions:
        """Where the counts of all comparisons stand, with the unit asked for; jobs by their places in `jobs`."""
        return self._slots(0)

    @property
    def beside(self) -> tuple[AllCountPositions, ...]:
        """The same with other units exchanged: as many as a test set has, and none where another has fewer."""
        return tuple(self._slots(k) for k in range(1, max(len(one.exchanges) for one in self.analyses)))

    @property
    def of_families(self) -> CountPositions:
        """Where the counts of each comparison's family stand, if it has one."""
        found = nowhere(sum(len(one.main.comparisons) for one in self.analyses))
        job = sum(len(one.jobs) for one in self.analyses)
        for made, places in self.families:
            if made.job is not None:
                found.job[places] = job
                job += 1
        return found

    @property
    def of_companions(self) -> CountPositions:
        """Where the counts of each comparison's studentised bootstrap stand, if there is one beside its family."""
        found = nowhere(sum(len(one.main.comparisons) for one in self.analyses))
        job = sum(len(one.jobs) for one in self.analyses) + sum(made.job is not None for made, _ in self.families)
        for made, places in self.families:
            if made.companion is not None:
                found.job[places] = job
                job += 1
        return found

    @property
    def of_intervals(self) -> tuple[CountPositions, CountPositions]:
        """Where the counts of each comparison's intervals stand, one or two of those that have any."""
        found, before = [], len(self.jobs) - len(self.interval_jobs)
        for analysis, sought in zip(self.analyses, self.intervals, strict=True):
            nothing = nowhere(len(analysis.main.comparisons))
            own = (nothing, nothing) if sought is None else sought.standings
            found.append([shifted(one, before) for one in own])
            before += 0 if sought is None else len(sought.jobs)
        first, second = zip(*found, strict=True)
        return joined(first), joined(second)

    def _slots(self, k: int) -> AllCountPositions:
        """Return the slots of each test set's exchange number `k`, one test set after the other."""
        found, before = [], 0
        for analysis in self.analyses:
            sizes = [len(one.jobs) for one in analysis.exchanges]
            n = len(analysis.main.comparisons)
            own = analysis.exchanges[k].slots if k < len(sizes) else AllCountPositions.nowhere(n)
            found.append([shifted(one, before + sum(sizes[:k])) for one in own.each])
            before += sum(sizes)
        return AllCountPositions(*(joined(of_kind) for of_kind in zip(*found, strict=True)))

    def results(
        self,
        tallies: Sequence[Tally],
        revised: Callable[[Table], Table] = lambda found: found,
        failed: Failed | None = None,
    ) -> ComparisonResults:
        """Judge the tallies of `jobs`, which are in the same order.

        `revised` is given all that was found before p is adjusted.
        `failed` is told of black boxes that give no score, whose results have none; without it they are errors.
        """
        counted: Tallies = dict(zip(self.jobs, tallies, strict=True))
        n_sampled = sum(int(analysis.main.comparisons.sampled.sum()) for analysis in self.analyses)
        judged = [
            analysis.table(JudgementSettings(alternative, self.alpha, n_sampled, failed), counted)
            for analysis, alternative in zip(self.analyses, self.alternatives, strict=True)
        ]
        judged = [
            replace(
                own,
                intervals=None if sought is None else sought.columns(counted),
                origins=origins_of(analysis.main, self.seed, made_by()),
            )
            for own, sought, analysis in zip(judged, self.intervals, self.analyses, strict=True)
        ]
        families = [(made.counted(counted), places) for made, places in self.families]
        found = _adjusted(with_exact(revised(Table.joined(judged))), families, counted)
        found = with_families(found, [(made.method, made.counts, places) for made, places in families])
        found = replace(found, assumptions=check_assumptions([one.main.comparisons for one in self.analyses], found))
        notes = [
            *_scopes([analysis.main.asked.counts for analysis in self.analyses]),
            *(Note("reading", w) for analysis in self.analyses for w in analysis.main.asked.counts.warnings),
            *(note for made, places in families for note in obstacles(made, _some(found, places))),
            *(note for analysis in self.analyses for note in analysis.notes),
            *beside_adjusted(found),
        ]
        return ComparisonResults(
            table=found,
            seed=self.seed,
            alpha=self.alpha,
            notes=distinct(notes),
            family=_note(families, found),
            together=self._together(counted, found),
        )

    def _together(self, tallies: Tallies, found: Table) -> tuple[ResultAcrossSets, ...]:
        if self.across is None:
            return ()
        p_greater, p_less = (
            np.concatenate([analysis.p_values(tallies, side) for analysis in self.analyses])
            for side in ("greater", "less")
        )
        return self.across.verdicts(tallies, found, p_greater, p_less)


def _scopes(sets: Sequence[Counts]) -> Iterator[Note]:
    """Yield which part of the files is scored; the test set is named where not all say the same."""
    together = len({counts.scope for counts in sets}) == 1
    for counts in sets:
        for text in counts.scope:
            yield Note("scope", text if together else f"{counts.name}: {text}")


Families = Sequence[tuple[Adjustment, Integers]]


def _adjusted(found: Table, families: Families, tallies: Tallies) -> Table:
    """Put the adjusted p of families beside what was found."""
    columns = [column.copy() for column in (found.p_adjusted, found.p_adjusted_low, found.p_adjusted_high)]
    low, high = (np.where(found.exact, found.p_value, limit) for limit in (found.p_low, found.p_high))
    for made, places in families:
        own = made.p_values(found.p_value[places], low[places], high[places], tallies)
        for column, values in zip(columns, own or (), strict=False):
            column[places] = values
    p, p_low, p_high = columns
    beside = _beside(found, families, tallies)
    return replace(found, p_adjusted=p, p_adjusted_low=p_low, p_adjusted_high=p_high, adjusted=beside)


def _beside(found: Table, families: Families, tallies: Tallies) -> AdjustmentDetails | None:
    """Return what stands beside the adjusted p-values of families; None where that is nothing."""
    made = [own.details(found.p_value[at], found.difference[at], tallies, found.alpha) for own, at in families]
    if not any(own.has_two.any() or own.has_interval.any() for own in made):
        return None
    rows = np.concatenate([places for _, places in families])
    return columns_taken(columns_joined(made), np.argsort(rows, kind="stable"))


def _some(found: Table, places: Integers) -> Table:
    """Return some rows: the table itself where these are all, as a large one is not held twice."""
    return found if np.array_equal(places, np.arange(len(found))) else found.take(places)


def _note(families: Families, found: Table) -> FamilyNote | None:
    """Say how p-values were adjusted: of several families alike, the largest."""
    adjusted = [(made, places) for made, places in families if not np.isnan(found.p_adjusted[places]).all()]
    if not adjusted:
        return None
    made, places = max(adjusted, key=lambda each: len(each[1]))
    return made.note(len(places))


def prepare(
    asked: Sequence[tuple[Counts, CompareSpec, Alternative]],
    *,
    alpha: float = 0.05,
    adjust: Adjust | None = None,
    by_metric: bool = False,
    together: bool = False,
    second_run: bool = True,
) -> Study:
    """List what has to be counted for some test sets, without counting it.

    Parameters
    ----------
    asked : sequence of (Counts, CompareSpec, alternative)
        Test sets of different names, and what is asked of each.
    alpha, adjust, together, second_run
        As in `compare_sets`.
    by_metric : bool
        Judge the comparisons under each metric together, instead of all.
    """
    if not asked:
        raise InputError("no test set given")
    _check_names([counts for counts, _, _ in asked])
    analyses = [SetAnalysis.of(counts, wanted, second_run=second_run) for counts, wanted, _ in asked]
    asking = FamilyComparisons.of(*(analysis.main for analysis in analyses))
    sides = [side for _, _, side in asked]
    families, wanted = [], [own.sureness for _, own, _ in asked]
    for places in rows_of(numbered(asking.metric) if by_metric else np.zeros(len(asking), np.int64)):
        own = asking.only(places)
        sure = next((w for k in np.unique(own.of_set) if (w := wanted[k]) and w.is_wanted(len(asking))), None)
        made = adjustment(chosen(adjust, own), own, sides[own.of_set[0]], sure)
        families.append((replace(made, for_exact=adjust is None and is_exact(own)), places))
    across = across_sets(asking, sides[0], raw=adjust == "max-t:raw") if together else None
    intervals = [
        IntervalJobs.of(analysis.main, own, side) if own is not None and own.is_wanted(len(asking)) else None
        for analysis, own, side in zip(analyses, wanted, sides, strict=True)
    ]
    return Study(analyses, sides, families, across, alpha, asked[0][1].seed, intervals)


def _check_names(test_sets: Sequence[Counts]) -> None:
    names = [counts.name for counts in test_sets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.with_name)")
