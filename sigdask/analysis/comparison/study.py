"""A study: the jobs of all test sets that are judged together, and how their tallies become results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import numpy as np

from sigdask.analysis.comparison.classical import compute_unit_correlations, run_tests
from sigdask.analysis.comparison.equal_scores import REASONS, explain_contested
from sigdask.analysis.comparison.families import (
    DETAILS,
    ONE_SET,
    AcrossSets,
    Adjustment,
    build_across_sets,
    build_adjustment,
    list_caveats,
    note_permutation,
)
from sigdask.analysis.comparison.intervals import IntervalJobs
from sigdask.analysis.comparison.jobs import JoinedComparisons, build_input_digests, plan_jobs
from sigdask.analysis.comparison.judge import (
    Failed,
    build_table,
    compare_all_runs,
    compute_run_scores,
    compute_scores_and_errors,
    use_recipe_intervals,
)
from sigdask.analysis.comparison.margins import MarginTests, build_margin_columns, plan_margins
from sigdask.analysis.comparison.pairs import (
    CompareSpec,
    Comparisons,
    CountedCells,
    bind_metric,
    join_cells,
    list_left_out,
    list_pairs,
)
from sigdask.counts import Counts
from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.formats.frames import as_counts
from sigdask.interface import spell, spell_in
from sigdask.options import OPTIONS, Adjust, SelectionOptions
from sigdask.randomization.families import MaxTFamily
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import Tally
from sigdask.results.columns import RECIPE, Columns, encode, join_columns, take_rows
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets, get_version
from sigdask.results.fields import note_unused
from sigdask.results.record import Note, NoteValue, drop_duplicates
from sigdask.results.signature import add_families
from sigdask.results.table import Table
from sigdask.statistics.bounds import P_VALUE_ADJUSTMENTS, choose_trials, compute_penalty
from sigdask.statistics.dependence import compute_naive_size, find_clear
from sigdask.statistics.numbering import group_rows, number_rows
from sigdask.text import format_list

Families = Sequence[tuple[Adjustment, Integers]]

MAX_NAMED = 5
"""Maximum number of skipped comparisons that are named."""

EXACT_WITHOUT_TRIALS = "{method=exact} counts no random trials. Leave out {trials}, or give {method=both}"

NO_ROWS = np.zeros(0, np.int64)

MIN_GROUPS = 6
"""Minimum number of groups for which swapping them can reach p = 0.05, two-sided."""


@dataclass(frozen=True, eq=False)
class SetAnalysis:
    """The comparisons of one test set, with all that is counted and computed about them.

    Attributes
    ----------
    main : Comparisons
        With the requested unit.
    dependences : dict of str to dict
        How differences are correlated within each coarser column.
    run_scores : float64 array, shape (n_comparisons, 2, n_runs), or None
        Scores of both systems in each run. None if the systems have one run.
    margins : list of (int64 array, MarginTests)
        Comparisons and their tests of a margin; empty if not requested.
    intervals : IntervalJobs or None
        Intervals, None if not requested.
    """

    main: Comparisons
    dependences: dict[str, Columns]
    run_scores: Floats | None
    margins: list[tuple[Integers, MarginTests]]
    intervals: IntervalJobs | None = None

    def __len__(self) -> int:
        return len(self.main)

    @property
    def layout(self) -> Hashable:
        """Key that analyses share if their results have the same groups of columns, so that one table can hold them."""
        has_further = self.intervals is None, not self.margins, self.run_scores is None
        spec = self.main.spec
        return spec.alternative, has_further, spec.tests, tuple(self.dependences), self.main.counts.unit, len(self) > 0

    @cached_property
    def notes(self) -> list[Note]:
        """Notes on omitted comparisons, and on differences that are correlated within columns coarser than the unit."""
        unit, spec = self.main.counts.unit, self.main.spec
        notes = []
        left_out = [
            f"{a} and {b} by {metric}{f' on {subset}' if subset is not None else ''}"
            for subset, a, b, metric in list_left_out(self.main.counts, self.main.pairs, self.main.metrics, spec.by)
        ]
        if left_out:
            text = f"not compared, because they have no item in common: {format_list(left_out, MAX_NAMED, '; ')}"
            notes.append(Note("missing", text, {"n_comparisons": len(left_out)}))
        if spec.method == "exact" and spec.trials is not None:
            notes.append(Note("unused-option", spell_in(EXACT_WITHOUT_TRIALS), {"option": "trials"}))
        notes += [note_unused(option, f"with {spell(*option.idle_with)}") for option in spec.unused if option.idle_with]
        notes += filter(None, (note_permutation(metric, unit) for metric in self.main.metrics))
        return [*notes, *iter_dependence_notes(self.dependences, unit)]


def iter_dependence_notes(dependences: Mapping[str, Columns], unit: str) -> Iterator[Note]:
    """Yield notes on columns within which differences are clearly correlated."""
    n_tested = sum(int(np.count_nonzero(entry["n_groups"])) for entry in dependences.values())
    for column, correlation in dependences.items():
        effects = correlation["design_effect"]
        is_clear = np.flatnonzero(find_clear(effects, correlation["p_value"], n_tested))
        if not len(is_clear):
            continue
        worst = int(is_clear[np.argmax(effects[is_clear])])
        n_groups, icc = int(correlation["n_groups"][worst]), float(correlation["icc"][worst])
        design_effect = float(effects[worst])
        remedy = (
            f"Use {spell('unit', column)}"
            if n_groups >= MIN_GROUPS
            else f"{n_groups} groups are too few to swap; {spell('by', column)} tests each separately"
        )
        text = (
            f"differences are correlated within {column} in {len(is_clear):,} of {len(effects):,} comparisons "
            f"(ICC up to {icc:.2f}, design effect {design_effect:.1f}). Swapping by {unit} ignores "
            f"this. If the groups are a sample of many, p is too small: a test at 0.05 calls up to "
            f"{100 * compute_naive_size(design_effect):.0f} % of pairs of equal systems different. {remedy}"
        )
        numbers: dict[str, NoteValue] = {"column": column, "unit": unit, "n_groups": n_groups, "icc": icc}
        numbers |= {"design_effect": design_effect, "n_comparisons": len(is_clear), "of": len(effects)}
        yield Note("dependence", text, numbers)


def plan_set(counts: Counts, spec: CompareSpec) -> SetAnalysis:
    """Return the analysis that a specification asks of a test set, ready to be counted, without intervals."""
    grouped = counts.with_unit(spec.unit or counts.unit)
    metrics = spec.find_metrics(grouped)
    spec = replace(spec, metrics=[bind_metric(metric, grouped) for metric in metrics])  # once for all units
    main = plan_jobs(grouped, spec)
    dependences = compute_unit_correlations(main) if grouped.groups else {}
    margins = [] if spec.margin is None else plan_margins(main)
    return SetAnalysis(main, dependences, compute_run_scores(main, metrics), margins)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """The jobs of all test sets that are judged together, and the results from their tallies.

    Attributes
    ----------
    analyses : list of SetAnalysis
        Analysis of each test set.
    families : list of (Adjustment, int64 array)
        Adjustments, each with the indices of the comparisons that are judged together: all those by one metric.
    across : list of AcrossSets
        Tests of each pair over all sets, by each metric. Empty if not requested.
    """

    analyses: list[SetAnalysis]
    families: list[tuple[Adjustment, Integers]]
    across: list[AcrossSets]

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count, those of intervals last."""
        return [*dict.fromkeys(part.job for part in self.cells)]

    @property
    def cells(self) -> list[CountedCells]:
        """The comparisons' counts, in the order of the jobs."""
        families = [(job, rows) for adjustment, rows in self.families for job in adjustment.jobs]
        further = [job for entry in self.across for job in entry.jobs]
        margins = [job for entry in self.analyses for _, tests in entry.margins for job in tests.jobs]
        sizes = [*map(len, self.analyses)]
        intervals = (entry.intervals.cells if entry.intervals else [] for entry in self.analyses)
        return [
            *join_cells((analysis.main.cells for analysis in self.analyses), sizes),
            *(CountedCells.from_whole(job, rows) for job, rows in families),
            *(CountedCells.from_whole(job, NO_ROWS) for job in further),
            *join_cells(intervals, sizes),
            *(CountedCells.from_whole(job, NO_ROWS) for job in margins),
        ]

    @property
    def spec(self) -> CompareSpec:
        """What was asked of the first test set; seed, level and adjustment are those of all."""
        return self.analyses[0].main.spec

    def build_results(self, tallies: Sequence[Tally], failed: Failed | None = None) -> ComparisonResults:
        """Return the results from the tallies of `jobs`, given in the same order.

        `failed` is called for metrics of whole outputs that give no score; their results then have none. Without it
        they are errors.
        """
        return judge_studies([self], dict(zip(self.jobs, tallies, strict=True)), failed)[1][0]

    @property
    def n_results(self) -> int:
        """Number of comparisons over all test sets."""
        return sum(map(len, self.analyses))

    @property
    def layout(self) -> Hashable:
        """Key that studies share if `judge_studies` can judge them together. Some studies share it with no other."""
        layouts = {analysis.layout for analysis in self.analyses}
        can_fail = any(not panel.manner.vectorised for a in self.analyses for panel in a.main.panels)
        return object() if self.across or can_fail or len(layouts) > 1 else (self.spec.alpha, self.spec.seed, *layouts)

    def _build_results(self, table: Table, families: Families, tallies: Tallies) -> ComparisonResults:
        """Return the results with their notes, from the table of results and the families with counted trials."""
        counts = [analysis.main.counts for analysis in self.analyses]
        names, scopes = zip(*((c.name, [Note("scope", text) for text in c.scope]) for c in counts), strict=True)
        notes = [*_name_notes(names, scopes), *(Note("reading", text) for c in counts for text in c.warnings)]
        for adjustment, indices in families:
            is_all = np.array_equal(indices, np.arange(len(table)))
            notes += list_caveats(adjustment, table if is_all else table.take(indices))
        notes += _name_notes(names, [analysis.notes for analysis in self.analyses])
        if len(table) > 1 and all(family.method != "none" and len(rows) == 1 for family, rows in families):
            notes.append(note_unused(OPTIONS["adjust"], "if each metric has one comparison"))
        is_chosen = self.spec.requested.get("interval") in {"bootstrap", "inversion"}
        if is_chosen and table["interval.method"].equals(RECIPE).any():
            notes.append(note_unused(OPTIONS["interval"], "on runs of systems, whose intervals are those of recipes"))
        adjusted = [entry.build_note(len(rows)) for entry, rows in _select_adjusted(table, families)]
        is_alike = len({note.adjust for note in adjusted}) == 1
        return ComparisonResults(
            table=table,
            seed=self.spec.seed,
            alpha=self.spec.alpha,
            options=self.spec.requested,
            notes=drop_duplicates(notes),
            family=max(adjusted, key=lambda note: note.n_comparisons) if is_alike else None,
            together=self._combine_sets(tallies, table),
        )

    def _combine_sets(self, tallies: Tallies, table: Table) -> tuple[ResultAcrossSets, ...]:
        if not self.across:
            return ()
        sets = [analysis.main for analysis in self.analyses]
        errors = np.concatenate([compute_scores_and_errors(comparisons)[1] for comparisons in sets])
        found = (across.build_results(tallies, table, errors) for across in self.across)
        return tuple(chain.from_iterable(found))


def judge_studies(
    studies: Sequence[Study],
    tallies: Tallies,
    failed: Failed | None = None,
) -> tuple[Table, list[ComparisonResults]]:
    """Return the results of studies that have the same layout, in one table and for each study.

    Parameters
    ----------
    studies : sequence of Study
        One, or several of the same layout.
    tallies : mapping of Job to Tally
        Tallies of all their jobs.
    failed : callable, optional
        Called for metrics of whole outputs that give no score, whose results have none. Without it they are errors.
    """
    sizes = [study.n_results for study in studies]
    sampled = [sum(int(entry.main.sampled.sum()) for entry in study.analyses) for study in studies]
    table = _build_joint_table(studies, np.repeat(sampled, sizes), tallies, failed)
    families = [
        [(adjustment.with_counted_trials(tallies), indices) for adjustment, indices in study.families]
        for study in studies
    ]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    all_families = [
        (adjustment, indices + start)
        for start, study_families in zip(starts, families, strict=True)
        for adjustment, indices in study_families
    ]
    table = _add_adjusted_p(table, all_families, tallies)
    if adjusted := _select_adjusted(table, all_families):
        table = add_families(table, [(entry.method, (entry.n_trials,), indices) for entry, indices in adjusted])
        if table.has("runs"):
            p_adjusted = _adjust_by_family(table["runs.p_value"], [(entry.method, rows) for entry, rows in adjusted])
            # Where systems have runs, these intervals would hold for these runs only.
            columns = {path: np.where(table["runs.n_runs"] > 0, np.nan, table[path]) for path in DETAILS}
            table = table.replace(**columns, **{"runs.p_adjusted": p_adjusted})
    comparisons = [analysis.main for study in studies for analysis in study.analyses]
    table = explain_contested(table.replace(**_compute_equal_scores(all_families, tallies, failed)), comparisons)
    parts = [table] if len(studies) == 1 else table.divide(sizes)
    return table, [
        study._build_results(part, study_families, tallies)  # noqa: SLF001
        for study, part, study_families in zip(studies, parts, families, strict=True)
    ]


def _build_joint_table(studies: Sequence[Study], n_sampled: Integers, tallies: Tallies, failed: Failed | None) -> Table:
    """Return the table of all results before p is adjusted, with intervals and the digests of their inputs."""
    tables, start = [], 0
    for _, group in groupby((entry for study in studies for entry in study.analyses), lambda entry: entry.layout):
        analyses = [*group]
        stop = start + sum(map(len, analyses))
        tables.append(_build_table(analyses, n_sampled[start:stop], tallies, failed))
        start = stop
    return Table.join(tables)


def _build_table(
    analyses: Sequence[SetAnalysis], n_sampled: Integers, tallies: Tallies, failed: Failed | None
) -> Table:
    """Return the table of results of analyses of one layout."""
    joined = JoinedComparisons.from_sets(*(entry.main for entry in analyses))
    table = build_table(joined, tallies, n_sampled, failed)
    groups = {
        f"dependence.{column}": join_columns([entry.dependences[column] for entry in analyses])
        for column in analyses[0].dependences
    }
    tests = [run_tests(entry.main) for entry in analyses]
    for name, parts in zip(analyses[0].main.spec.tests, zip(*tests, strict=True), strict=False):
        groups[f"tests.{name}"] = join_columns(parts)
    differences = np.split(table.difference, np.cumsum([*map(len, analyses)])[:-1])
    pairs = [(entry, d) for entry, d in zip(analyses, differences, strict=True) if entry.margins]
    margins = [build_margin_columns(entry.main, entry.margins, d, tallies) for entry, d in pairs]
    intervals = join_columns([entry.intervals.build_columns(tallies) for entry in analyses if entry.intervals])
    runs = join_columns([compare_all_runs(e.main, e.run_scores) for e in analyses if e.run_scores is not None])
    columns = {f"{path}.{name}": values for path, group in groups.items() for name, values in group.items()}
    if intervals and runs:
        intervals = use_recipe_intervals(intervals, runs, analyses[0].main.spec.confidence)
    columns |= join_columns(margins) | intervals
    return table.replace(**columns, **runs, **build_input_digests(joined, get_version()))


def _name_notes(names: Sequence[str], notes_by_set: Sequence[Sequence[Note]]) -> Iterator[Note]:
    """Yield the notes of test sets; those that do not hold for all test sets name theirs."""
    n_sets = Counter(text for notes in notes_by_set for text in {note.text for note in notes})
    for name, notes in zip(names, notes_by_set, strict=True):
        for note in notes:
            is_shared = n_sets[note.text] == len(names) or not name
            yield note if is_shared else replace(note, text=f"{name}: {note.text}")


def _add_adjusted_p(table: Table, families: Families, tallies: Tallies) -> Table:
    """Return the table with adjusted p-values, each family adjusted on its own."""
    limits = (np.where(table.is_exact, table.p_value, table[f"p_interval.{end}"]) for end in (0, 1))
    unadjusted = table.p_value, *limits
    columns = [
        adjustment.compute_columns(tuple(x[rows] for x in unadjusted), table.difference[rows], tallies, table.alpha)
        for adjustment, rows in families
    ]
    margins = _adjust_margins(table, families) if table.has("margin") else {}
    return table.replace(**_join_by_row(columns, families) if families else {}, **margins)


def _adjust_margins(table: Table, families: Families) -> Columns:
    """Return p of the tests of a margin, adjusted by Holm over each family that is adjusted."""
    worse, better = table["margin.p_not_worse"], table["margin.p_not_better"]
    by_holm = [("none" if adjustment.method == "none" else "holm", rows) for adjustment, rows in families]
    p_values = (worse, better, np.maximum(worse, better))
    return {f"margin.p_adjusted.{k}": _adjust_by_family(p, by_holm) for k, p in enumerate(p_values)}


def _adjust_by_family(p: Floats, families: Sequence[tuple[str, Integers]]) -> Floats:
    """Return p adjusted over each adjusted family: by bh where that is the method, else by Holm; NaN elsewhere."""
    adjusted = np.full(len(p), np.nan)
    for method, rows in families:
        known = rows[~np.isnan(p[rows])]
        if method != "none" and len(rows) > 1 and len(known):
            adjusted[known] = P_VALUE_ADJUSTMENTS["bh" if method == "bh" else "holm"](p[known])
    return adjusted


def _compute_equal_scores(families: Families, tallies: Tallies, failed: Failed | None) -> Columns:
    """Return the equal-score tests of all comparisons in row order; nothing without comparisons.

    They have no p if a metric of whole outputs fails, as its scores do.
    """
    columns = []
    for test in (adjustment.equal_scores for adjustment, _ in families):
        if test is not None:
            try:
                columns.append(test.compute_columns(tallies))
            except InputError:
                if failed is None:
                    raise
                columns.append(replace(test, job=None).compute_columns(tallies))
    if not columns:
        return {}
    joined = _join_by_row(columns, families)
    return joined | {"equal_scores.why": encode(REASONS, joined["equal_scores.why"])}


def _join_by_row(columns: Sequence[Columns], families: Families) -> Columns:
    """Return the columns of all families in the order of the table's rows."""
    rows = np.concatenate([family_rows for _, family_rows in families])
    return columns[0] if len(columns) == 1 else take_rows(join_columns(columns), np.argsort(rows, kind="stable"))


def _select_adjusted(table: Table, families: Families) -> Families:
    """Return the families that have adjusted p-values."""
    return [family for family in families if not np.isnan(table.p_adjusted[family[1]]).all()]


def plan_study(
    specs: Sequence[tuple[Counts, CompareSpec]], *, adjust: Adjust | None = None, together: bool = False
) -> Study:
    """Return the study of some test sets, with all jobs listed and none counted.

    Parameters
    ----------
    specs : sequence of (Counts, CompareSpec)
        Test sets with different names, and what is asked of each; seed, level and alternative are those of all.
    adjust, together
        As in `compare_sets`.
    """
    if not specs:
        raise InputError("no test set given")
    names = [counts.name for counts, _ in specs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.name)")
    specs = [(counts.with_runs_as_units(*filter(None, [spec.unit, spec.by])), spec) for counts, spec in specs]
    family_trials = _choose_family_trials(specs, adjust)
    analyses = [plan_set(counts, replace(spec, family_trials=family_trials)) for counts, spec in specs]
    comparisons = JoinedComparisons.from_sets(*(analysis.main for analysis in analyses))
    n, families, across, shared = len(comparisons), [], [], list[tuple[int, CountedCells]]()
    analyses = [replace(entry, intervals=IntervalJobs.from_comparisons(entry.main, n)) for entry in analyses]
    for indices in group_rows(number_rows(comparisons.encode_names("metric"))):  # metrics are separate questions
        members = comparisons.select(indices)
        with_intervals = any(analyses[k].intervals for k in np.unique(members.set_index))
        families.append((build_adjustment(adjust, members, with_intervals=with_intervals), indices))
        shared += _list_shared(families[-1][0], members)
        if together:
            of_metric = build_across_sets(members)
            across.append(replace(of_metric, members=indices[of_metric.members]))
    if together and all(of_metric.members.shape[1] < 2 for of_metric in across):
        raise InputError(spell_in(ONE_SET))
    for k, entry in enumerate(analyses):
        own = [part for in_set, part in shared if in_set == k]
        covered = np.concatenate([NO_ROWS, *(part.index for part in own)])
        # first runs that families count are taken from these, which halves the sums
        cells = [p for p in entry.main.cells if p.kind != "first run" or not np.isin(p.index, covered).all()]
        analyses[k] = replace(entry, main=replace(entry.main, cells=[*cells, *own]))
    return Study(analyses, families, across)


def _list_shared(adjustment: Adjustment, members: JoinedComparisons) -> Iterator[tuple[int, CountedCells]]:
    """Yield test sets, and the cells of those of their first runs that a max-T family counts, from the same swaps."""
    family, job = adjustment.family, adjustment.job
    if job is None or not isinstance(family, MaxTFamily) or family.enumerated:
        return
    is_shared = members.get_column("sampled") & (members.get_column("n_trials") == job.n_trials)
    for k in np.unique(members.set_index[is_shared]).tolist():
        rows = np.flatnonzero(is_shared & (members.set_index == k))
        yield k, CountedCells("first run", job, members.row[rows], rows, np.zeros(len(rows), np.int64))


def _choose_family_trials(specs: Sequence[tuple[Counts, CompareSpec]], adjust: Adjust | None) -> dict[str, int]:
    """Return the most trials that are counted by default, for each metric with several comparisons."""
    sizes: Counter[str] = Counter()
    for counts, spec in specs:
        n_subsets = 1 if spec.by is None else len(set(counts.group(spec.by)))
        n = n_subsets * len(list_pairs(counts, spec.pairs, spec.baseline))
        sizes.update({metric.name: n for metric in spec.find_metrics(counts)})
    alpha = specs[0][1].alpha
    return {name: choose_trials(compute_penalty(adjust or "", n), alpha) for name, n in sizes.items() if n > 1}


def build_specs(test_sets: Sequence[Counts | Any], options: SelectionOptions) -> list[tuple[Counts, CompareSpec]]:
    """Return the counts of each test set, and its specification."""
    value = options["metrics"]
    metrics = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    if value is not None and not metrics:
        raise InputError("no metric given", remedy="name one (`sigdask list metrics` lists them)")
    spec = CompareSpec.from_options(options, metrics)
    grouping = [name for name in (spec.unit, spec.by) if name not in {"item", None}]
    names = [metric for metric in metrics if isinstance(metric, str)]
    specs = []
    for data in test_sets:
        counts = data if isinstance(data, Counts) else as_counts(data, groups=grouping, metrics=names)
        if not metrics and not counts.suggested:
            raise InputError(
                "no metric given, and these data have no usual one",
                remedy="name a metric (`sigdask list metrics` lists them)",
            )
        specs.append((counts, spec if metrics else replace(spec, metrics=counts.suggested)))
    return specs
