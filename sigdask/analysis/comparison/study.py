"""A study: the jobs of all test sets that are judged together, and how their tallies become results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.across_sets import AcrossSets, build_across_sets
from sigdask.analysis.comparison.adjust import Adjustment, build_adjustment, choose_adjustment, is_exact
from sigdask.analysis.comparison.assumptions import diagnose_units
from sigdask.analysis.comparison.caveats import list_caveats
from sigdask.analysis.comparison.intervals.plan import IntervalJobs
from sigdask.analysis.comparison.jobs import FamilyComparisons, build_input_digests, join_positions, shift_jobs
from sigdask.analysis.comparison.judge import Failed, JudgementSettings
from sigdask.analysis.comparison.pairs import AllCountPositions, CountPositions, build_empty_positions
from sigdask.analysis.comparison.set_analysis import SetAnalysis
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.counts import Counts
from sigdask.counts.grouping import group_rows, number_rows
from sigdask.errors import InputError
from sigdask.options import Adjust, Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.randomization.tallies import Tally
from sigdask.results.columns.adjusted import AdjustmentDetails
from sigdask.results.comparisons import ComparisonResults, FamilyNote, ResultAcrossSets, get_version
from sigdask.results.exact import use_exact_p
from sigdask.results.families import add_families
from sigdask.results.messages.intervals import note_adjusted
from sigdask.results.messages.notes import Note, drop_duplicates
from sigdask.results.table import Table, join_parts, take_part_rows

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The jobs of all test sets that are judged together; makes results of their tallies.

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
        """All jobs to count, those of intervals last."""
        return [
            *(job for analysis in self.analyses for job in analysis.jobs),
            *(adjustment.job for adjustment, _ in self.families if adjustment.job is not None),
            *(adjustment.companion_job for adjustment, _ in self.families if adjustment.companion_job is not None),
            *([self.across.job] if self.across else []),
            *self.interval_jobs,
        ]

    @property
    def interval_jobs(self) -> list[Job]:
        """The jobs of intervals, which are the last of `jobs`."""
        return [job for sought in self.intervals if sought is not None for job in sought.jobs]

    @property
    def slots(self) -> AllCountPositions:
        """Positions of all comparisons' counts by the main unit, in the tallies of `jobs`."""
        return self._join_slots(0)

    @property
    def contrast_slots(self) -> tuple[AllCountPositions, ...]:
        """Positions of all comparisons' counts by each contrast unit; empty for test sets that have fewer units."""
        return tuple(
            self._join_slots(k) for k in range(1, max(len(analysis.comparison_jobs) for analysis in self.analyses))
        )

    @property
    def family_positions(self) -> CountPositions:
        """Positions of the counts of each comparison's family; -1 as job where it has no family."""
        positions = build_empty_positions(sum(len(analysis.main.comparisons) for analysis in self.analyses))
        job = sum(len(analysis.jobs) for analysis in self.analyses)
        for adjustment, indices in self.families:
            if adjustment.job is not None:
                positions.job[indices] = job
                job += 1
        return positions

    @property
    def companion_positions(self) -> CountPositions:
        """Positions of the counts of each comparison's studentised bootstrap; -1 as job where its family has none."""
        positions = build_empty_positions(sum(len(analysis.main.comparisons) for analysis in self.analyses))
        job = sum(len(analysis.jobs) for analysis in self.analyses) + sum(
            adjustment.job is not None for adjustment, _ in self.families
        )
        for adjustment, indices in self.families:
            if adjustment.companion_job is not None:
                positions.job[indices] = job
                job += 1
        return positions

    @property
    def interval_positions(self) -> tuple[CountPositions, CountPositions]:
        """Positions of the counts of each comparison's interval jobs, of which it has up to two."""
        positions, offset = [], len(self.jobs) - len(self.interval_jobs)
        for analysis, interval_jobs in zip(self.analyses, self.intervals, strict=True):
            nothing = build_empty_positions(len(analysis.main.comparisons))
            set_positions = (nothing, nothing) if interval_jobs is None else interval_jobs.positions
            positions.append([shift_jobs(part, offset) for part in set_positions])
            offset += 0 if interval_jobs is None else len(interval_jobs.jobs)
        first, second = zip(*positions, strict=True)
        return join_positions(first), join_positions(second)

    def _join_slots(self, k: int) -> AllCountPositions:
        """Return the positions of all comparisons' counts by unit number `k` of each test set."""
        parts, offset = [], 0
        for analysis in self.analyses:
            sizes = [len(entry.jobs) for entry in analysis.comparison_jobs]
            n = len(analysis.main.comparisons)
            slots = analysis.comparison_jobs[k].slots if k < len(sizes) else AllCountPositions.empty(n)
            parts.append([shift_jobs(entry, offset + sum(sizes[:k])) for entry in slots.all_kinds])
            offset += sum(sizes)
        return AllCountPositions(*(join_positions(kind_positions) for kind_positions in zip(*parts, strict=True)))

    def build_results(
        self,
        tallies: Sequence[Tally],
        revise: Callable[[Table], Table] = lambda table: table,
        failed: Failed | None = None,
    ) -> ComparisonResults:
        """Return the results from the tallies of `jobs`, given in the same order.

        `revise` is given all that was found before p is adjusted.
        `failed` is told of black boxes that give no score, whose results have none; without it they are errors.
        """
        tally_of: Tallies = dict(zip(self.jobs, tallies, strict=True))
        n_sampled = sum(int(analysis.main.comparisons.sampled.sum()) for analysis in self.analyses)
        tables = [
            analysis.build_table(JudgementSettings(alternative, self.alpha, n_sampled, failed), tally_of)
            for analysis, alternative in zip(self.analyses, self.alternatives, strict=True)
        ]
        tables = [
            replace(
                set_table,
                intervals=None if interval_jobs is None else interval_jobs.build_columns(tally_of),
                origins=build_input_digests(analysis.main, self.seed, get_version()),
            )
            for set_table, interval_jobs, analysis in zip(tables, self.intervals, self.analyses, strict=True)
        ]
        families = [(adjustment.with_counted_trials(tally_of), indices) for adjustment, indices in self.families]
        table = _add_adjusted_p(use_exact_p(revise(Table.join(tables))), families, tally_of)
        table = add_families(
            table, [(adjustment.method, adjustment.trial_counts, indices) for adjustment, indices in families]
        )
        table = replace(table, assumptions=diagnose_units([entry.main.comparisons for entry in self.analyses], table))
        notes = [
            *_iter_scopes([analysis.main.spec.counts for analysis in self.analyses]),
            *(Note("reading", w) for analysis in self.analyses for w in analysis.main.spec.counts.warnings),
            *(
                note
                for adjustment, indices in families
                for note in list_caveats(adjustment, _take_rows(table, indices))
            ),
            *(note for analysis in self.analyses for note in analysis.notes),
            *note_adjusted(table),
        ]
        return ComparisonResults(
            table=table,
            seed=self.seed,
            alpha=self.alpha,
            notes=drop_duplicates(notes),
            family=_build_family_note(families, table),
            together=self._combine_sets(tally_of, table),
        )

    def _combine_sets(self, tallies: Tallies, table: Table) -> tuple[ResultAcrossSets, ...]:
        if self.across is None:
            return ()
        p_greater, p_less = (
            np.concatenate([analysis.compute_p_values(tallies, side) for analysis in self.analyses])
            for side in ("greater", "less")
        )
        return self.across.build_results(tallies, table, p_greater, p_less)


def _iter_scopes(sets: Sequence[Counts]) -> Iterator[Note]:
    """Yield notes on which part of the files is scored, naming test sets if their scopes differ."""
    is_same = len({counts.scope for counts in sets}) == 1
    for counts in sets:
        for text in counts.scope:
            yield Note("scope", text if is_same else f"{counts.name}: {text}")


Families = Sequence[tuple[Adjustment, Integers]]


def _add_adjusted_p(table: Table, families: Families, tallies: Tallies) -> Table:
    """Return the table with adjusted p-values, each family adjusted on its own."""
    columns = [column.copy() for column in (table.p_adjusted, table.p_adjusted_low, table.p_adjusted_high)]
    low, high = (np.where(table.exact, table.p_value, limit) for limit in (table.p_low, table.p_high))
    for adjustment, indices in families:
        adjusted = adjustment.compute_p_values(table.p_value[indices], low[indices], high[indices], tallies)
        for column, values in zip(columns, adjusted or (), strict=False):
            column[indices] = values
    p, p_low, p_high = columns
    details = _compute_details(table, families, tallies)
    return replace(table, p_adjusted=p, p_adjusted_low=p_low, p_adjusted_high=p_high, adjusted=details)


def _compute_details(table: Table, families: Families, tallies: Tallies) -> AdjustmentDetails | None:
    """Return the details of adjusted p-values in row order; None if no family has any."""
    details = [
        entry.compute_details(table.p_value[indices], table.difference[indices], tallies, table.alpha)
        for entry, indices in families
    ]
    if not any(entry.has_two_methods.any() or entry.has_interval.any() for entry in details):
        return None
    rows = np.concatenate([family_rows for _, family_rows in families])
    return take_part_rows(join_parts(details), np.argsort(rows, kind="stable"))


def _take_rows(table: Table, indices: Integers) -> Table:
    """Return the table's rows at some indices; the table itself, not a copy, if these are all rows."""
    return table if np.array_equal(indices, np.arange(len(table))) else table.take(indices)


def _build_family_note(families: Families, table: Table) -> FamilyNote | None:
    """Return a note on how p-values were adjusted in the largest family; None if none were adjusted."""
    adjusted = [
        (adjustment, indices) for adjustment, indices in families if not np.isnan(table.p_adjusted[indices]).all()
    ]
    if not adjusted:
        return None
    adjustment, indices = max(adjusted, key=lambda family: len(family[1]))
    return adjustment.build_note(len(indices))


def prepare_study(
    specs: Sequence[tuple[Counts, CompareSpec, Alternative]],
    *,
    alpha: float = 0.05,
    adjust: Adjust | None = None,
    by_metric: bool = False,
    together: bool = False,
    second_run: bool = True,
) -> Study:
    """Return the study of some test sets, with all jobs listed and none counted.

    Parameters
    ----------
    specs : sequence of (Counts, CompareSpec, alternative)
        Test sets of different names, and what is asked of each.
    alpha, adjust, together, second_run
        As in `compare_sets`.
    by_metric : bool
        Judge the comparisons under each metric together, instead of all.
    """
    if not specs:
        raise InputError("no test set given")
    _check_names([counts for counts, _, _ in specs])
    analyses = [
        SetAnalysis.from_spec(counts, interval_specs, second_run=second_run) for counts, interval_specs, _ in specs
    ]
    comparisons = FamilyComparisons.from_jobs(*(analysis.main for analysis in analyses))
    sides = [side for _, _, side in specs]
    families, interval_specs = [], [members.interval_spec for _, members, _ in specs]
    for indices in group_rows(number_rows(comparisons.metric) if by_metric else np.zeros(len(comparisons), np.int64)):
        members = comparisons.select(indices)
        interval_spec = next(
            (w for k in np.unique(members.set_index) if (w := interval_specs[k]) and w.covers(len(comparisons))),
            None,
        )
        family_adjustment = build_adjustment(
            choose_adjustment(adjust, members), members, sides[members.set_index[0]], interval_spec
        )
        families.append((replace(family_adjustment, for_exact=adjust is None and is_exact(members)), indices))
    across = build_across_sets(comparisons, sides[0], raw=adjust == "max-t:raw") if together else None
    intervals = [
        IntervalJobs.from_comparisons(analysis.main, members, side)
        if members is not None and members.covers(len(comparisons))
        else None
        for analysis, members, side in zip(analyses, interval_specs, sides, strict=True)
    ]
    return Study(analyses, sides, families, across, alpha, specs[0][1].seed, intervals)


def _check_names(test_sets: Sequence[Counts]) -> None:
    names = [counts.name for counts in test_sets]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.with_name)")
