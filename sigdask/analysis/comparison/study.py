"""A study: the jobs of all test sets that are judged together, and how their tallies become results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from sigdask.analysis.comparison.caveats import list_caveats, note_permutation
from sigdask.analysis.comparison.classical import run_tests
from sigdask.analysis.comparison.equal_scores import explain_contested
from sigdask.analysis.comparison.exact import use_exact_p
from sigdask.analysis.comparison.families import (
    DETAILS,
    ONE_SET,
    AcrossSets,
    Adjustment,
    add_intervals,
    build_across_sets,
    build_adjustment,
    choose_adjustment,
)
from sigdask.analysis.comparison.intervals import IntervalJobs
from sigdask.analysis.comparison.jobs import (
    ComparisonJobs,
    FamilyComparisons,
    build_input_digests,
)
from sigdask.analysis.comparison.judge import Failed, JudgementSettings, judge_counts
from sigdask.analysis.comparison.margins import MarginJobs
from sigdask.analysis.comparison.nesting import compute_unit_correlations, find_coarsest
from sigdask.analysis.comparison.pairs import (
    CompareSpec,
    CountedCells,
    IntervalSpec,
    join_cells,
    list_left_out,
    list_pairs,
)
from sigdask.analysis.comparison.runs import (
    compare_all_runs,
    compute_run_scores,
    compute_scores_and_errors,
    use_recipe_intervals,
)
from sigdask.counts import Counts
from sigdask.counts.factors import group_rows, number_rows, scatter_rows
from sigdask.counts.fields import Floats, Integers
from sigdask.errors import InputError
from sigdask.formats.frames import as_counts
from sigdask.interface import spell, spell_in
from sigdask.options import OPTIONS, Adjust, Alternative, Option, SelectionOptions
from sigdask.randomization.slabs import Job, Tallies
from sigdask.randomization.tallies import Tally
from sigdask.results.columns import Columns, join_columns, take_rows
from sigdask.results.comparisons import ComparisonResults, ResultAcrossSets, get_version
from sigdask.results.fields import note_unused
from sigdask.results.record import Note, NoteValue, drop_duplicates
from sigdask.results.signature import add_families
from sigdask.results.table import Table
from sigdask.statistics.bounds import P_VALUE_ADJUSTMENTS, choose_trials, compute_penalty
from sigdask.statistics.dependence import compute_naive_size, find_clear
from sigdask.text import format_list

Families = Sequence[tuple[Adjustment, Integers]]

MAX_NAMED = 5
"""Maximum number of skipped comparisons that are named."""

EXACT_WITHOUT_TRIALS = (
    "{method=exact} counts no random trials. Leave out {trials} (it sets only the resamples of intervals by "
    "inversion), or give {method=both}"
)

MIN_GROUPS = 6
"""Minimum number of groups for which swapping them can reach p = 0.05, two-sided."""


@dataclass(frozen=True, eq=False)
class SetAnalysis:
    """The comparisons of one test set, with contrasts by other units, correlations within columns and classical tests.

    Attributes
    ----------
    main : ComparisonJobs
        With the requested unit.
    dependences : dict of str to dict
        How differences are correlated within each coarser column.
    contrasts : tuple of ComparisonJobs
        With other units, for contrast.
    left_out : tuple of (str or None, str, str, str)
        Subset, systems and metric of comparisons that are omitted because the systems have no common item there.
    tests : tuple of str
        Names of the additional classical tests.
    alternative : str
        Alternative of all comparisons.
    intervals : IntervalJobs or None
        Intervals, None if not requested.
    margins : MarginJobs or None
        Tests of a margin, None if not requested.
    unused : tuple of Option
        Options that have no effect together with the others.
    run_scores : float64 array, shape (n_comparisons, 2, n_runs), or None
        Scores of both systems in each run. None if the systems have one run.
    """

    main: ComparisonJobs
    dependences: dict[str, Columns]
    contrasts: tuple[ComparisonJobs, ...]
    left_out: tuple[tuple[str | None, str, str, str], ...] = ()
    tests: tuple[str, ...] = ()
    alternative: Alternative = "two-sided"
    intervals: IntervalJobs | None = None
    margins: MarginJobs | None = None
    unused: tuple[Option, ...] = ()
    run_scores: Floats | None = None

    @staticmethod
    def from_spec(
        counts: Counts,
        spec: CompareSpec,
        alternative: Alternative = "two-sided",
        *,
        second_run: bool,
        alpha: float = 0.05,
    ) -> SetAnalysis:
        """Return the analysis that a specification asks of a test set, ready to be counted."""
        unit = find_coarsest(counts, spec.levels) if spec.levels else counts.unit
        grouped = counts.with_unit(unit)
        bound = spec.bind_metrics(grouped)
        main = ComparisonJobs.from_spec(grouped, bound, second_run=second_run)
        run_scores, spec = compute_run_scores(main, spec), bound
        dependences = compute_unit_correlations(main.comparisons, main.spec.units) if grouped.groups else {}
        finer = [level for level in dict.fromkeys(("item", *spec.levels)) if level != unit]
        levels = [*(finer if unit != "item" else ()), *list_clear_columns(dependences, MIN_GROUPS)]
        levels = levels if spec.has_contrasts and not counts.apart else []
        contrasts = tuple(ComparisonJobs.build_contrast(counts.with_unit(level), spec) for level in levels)
        left_out = tuple(list_left_out(grouped, main.spec.pairs, spec.find_metrics(grouped), spec.by))
        margins = None if spec.margin is None else MarginJobs.from_comparisons(main, spec, spec.margin, alpha)
        return SetAnalysis(
            main,
            dependences,
            contrasts,
            left_out,
            spec.tests,
            alternative,
            margins=margins,
            unused=spec.unused,
            run_scores=run_scores,
        )

    def __len__(self) -> int:
        return len(self.main.comparisons)

    def with_intervals(self, spec: IntervalSpec | None) -> SetAnalysis:
        """Return the analysis with intervals as specified."""
        if spec is None:
            return self
        return replace(self, intervals=IntervalJobs.from_comparisons(self.main, spec))

    @property
    def comparison_jobs(self) -> tuple[ComparisonJobs, ...]:
        """Comparison jobs by the main unit, followed by those of the contrast units."""
        return self.main, *self.contrasts

    @property
    def cells(self) -> list[CountedCells]:
        """The comparisons' counts by all units, in the order of the jobs."""
        return [part for unit_jobs in self.comparison_jobs for part in unit_jobs.cells]

    @property
    def layout(self) -> Hashable:
        """Key that analyses share if their results have the same groups of columns, so that one table can hold them."""
        units = tuple(jobs.spec.counts.unit for jobs in self.comparison_jobs)
        columns = tuple(self.dependences)
        has_further = self.intervals is None, self.margins is None, self.run_scores is None
        return self.alternative, has_further, self.tests, columns, units, len(self) > 0

    @cached_property
    def notes(self) -> list[Note]:
        """Notes on omitted comparisons, and on differences that are correlated within columns coarser than the unit."""
        unit = self.main.spec.counts.unit
        notes = []
        if self.left_out:
            names = [
                f"{a} and {b} by {metric}{f' on {subset}' if subset is not None else ''}"
                for subset, a, b, metric in self.left_out
            ]
            text = f"not compared, because they have no item in common: {format_list(names, MAX_NAMED, '; ')}"
            notes.append(Note("missing", text, {"n_comparisons": len(self.left_out)}))
        if self.main.spec.method == "exact" and self.main.spec.trials is not None:
            notes.append(Note("unused-option", spell_in(EXACT_WITHOUT_TRIALS), {"option": "trials"}))
        notes += [note_unused(option, f"with {spell(*option.idle_with)}") for option in self.unused if option.idle_with]
        permuted = (note_permutation(metric, unit) for metric in self.main.comparisons.metrics)
        notes += [note for note in permuted if note is not None]
        n_tested, n = _count_tested(self.dependences), len(self)
        for column in list_clear_columns(self.dependences):
            correlation = self.dependences[column]
            effects = correlation["design_effect"]
            is_clear = np.flatnonzero(find_clear(effects, correlation["p_value"], n_tested))
            worst = int(is_clear[np.argmax(effects[is_clear])])
            n_groups, icc = int(correlation["n_groups"][worst]), float(correlation["icc"][worst])
            design_effect = float(effects[worst])
            remedy = (
                f"Use {spell('unit', column)}"
                if n_groups >= MIN_GROUPS
                else f"{n_groups} groups are too few to swap; {spell('by', column)} tests each separately"
            )
            text = (
                f"differences are correlated within {column} in {len(is_clear):,} of {n:,} comparisons "
                f"(ICC up to {icc:.2f}, design effect {design_effect:.1f}). Swapping by {unit} ignores "
                f"this, so p is too small: if the groups are a sample of many, a test at 0.05 calls about "
                f"{100 * compute_naive_size(design_effect):.0f} % of pairs of equal systems different. {remedy}"
            )
            numbers: dict[str, NoteValue] = {"column": column, "unit": unit, "n_groups": n_groups, "icc": icc}
            numbers |= {"design_effect": design_effect, "n_comparisons": len(is_clear), "of": n}
            notes.append(Note("dependence", text, numbers))
        return notes


def _build_table(analyses: Sequence[SetAnalysis], settings: JudgementSettings, tallies: Tallies) -> Table:
    """Return the table of results of analyses of one layout, with contrasts and classical tests."""
    jobs_by_unit = zip(*(analysis.comparison_jobs for analysis in analyses), strict=True)
    result, *contrasts = (settings.build_table(unit_jobs, tallies) for unit_jobs in jobs_by_unit)
    tests = [run_tests(entry.main.comparisons, entry.tests, settings.alternative) for entry in analyses]
    names = ("n_units", "method", "n_trials", "n_extreme", "p_value")
    groups = {f"beside.{t.unit[0]}": {name: t[name] for name in names} for t in contrasts if len(t)}
    for column in analyses[0].dependences:
        groups[f"dependence.{column}"] = join_columns([entry.dependences[column] for entry in analyses])
    for name, parts in zip(analyses[0].tests, zip(*tests, strict=True), strict=False):
        groups[f"tests.{name}"] = join_columns(parts)
    return result.replace(**{f"{path}.{name}": v for path, columns in groups.items() for name, v in columns.items()})


def list_clear_columns(dependences: Mapping[str, Columns], fewest: int = 2) -> list[str]:
    """Return columns of at least `fewest` groups within which differences are clearly correlated.

    Columns are ordered by the first comparison with such a correlation.
    """
    n_tested = _count_tested(dependences)
    first_rows = {}
    for column, entry in dependences.items():
        is_clear = find_clear(entry["design_effect"], entry["p_value"], n_tested) & (entry["n_groups"] >= fewest)
        if is_clear.any():
            first_rows[column] = int(np.argmax(is_clear))
    return sorted(first_rows, key=first_rows.__getitem__)


def _count_tested(dependences: Mapping[str, Columns]) -> int:
    return sum(int(np.count_nonzero(entry["n_groups"])) for entry in dependences.values())


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
    alpha : float
        Level of the verdicts.
    seed : int
        Seed of the random stream.
    requested : mapping of str to value
        The options that results record.
    """

    analyses: list[SetAnalysis]
    families: list[tuple[Adjustment, Integers]]
    across: list[AcrossSets]
    alpha: float
    seed: int
    requested: Mapping[str, Any] = field(default_factory=dict)

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count, those of intervals last."""
        return [part.job for part in self.cells]

    @property
    def cells(self) -> list[CountedCells]:
        """The comparisons' counts, in the order of the jobs."""
        across = [job for entry in self.across for job in (entry.job, entry.equal_scores.job)]
        families = [(job, rows) for adjustment, rows in self.families for job in adjustment.jobs]
        families += [(job, np.zeros(0, np.int64)) for job in across if job is not None]
        return [
            *join_cells((analysis.cells for analysis in self.analyses), self._sizes),
            *(CountedCells.from_whole(job, rows) for job, rows in families),
            *join_cells((entry.intervals.cells if entry.intervals else [] for entry in self.analyses), self._sizes),
            *(part for entry in self.analyses if entry.margins for part in entry.margins.cells),
        ]

    @property
    def main_cells(self) -> list[CountedCells]:
        """The comparisons' counts by the main unit, for single comparisons."""
        return [*join_cells((analysis.main.cells for analysis in self.analyses), self._sizes)]

    @property
    def _sizes(self) -> list[int]:
        return [*map(len, self.analyses)]

    def build_results(
        self,
        tallies: Sequence[Tally],
        failed: Failed | None = None,
    ) -> ComparisonResults:
        """Return the results from the tallies of `jobs`, given in the same order.

        `failed` is called for metrics of whole outputs that give no score; their results then have none. Without it
        they are errors.
        """
        _, [results] = judge_studies([self], dict(zip(self.jobs, tallies, strict=True)), failed)
        return results

    @property
    def n_results(self) -> int:
        """Number of comparisons over all test sets."""
        return sum(self._sizes)

    @property
    def layout(self) -> Hashable:
        """Key that studies share if `judge_studies` can judge them together. Some studies share it with no other."""
        layouts = {analysis.layout for analysis in self.analyses}
        can_fail = any(not panel.manner.vectorised for a in self.analyses for panel in a.main.comparisons.panels)
        return object() if self.across or can_fail or len(layouts) > 1 else (self.alpha, self.seed, *layouts)

    def _build_results(self, table: Table, families: Families, tallies: Tallies) -> ComparisonResults:
        """Return the results with their notes, from the table of results and the families with counted trials."""
        counts = [analysis.main.spec.counts for analysis in self.analyses]
        notes = [*_iter_scopes(counts), *(Note("reading", text) for each_set in counts for text in each_set.warnings)]
        for adjustment, indices in families:
            is_all = np.array_equal(indices, np.arange(len(table)))
            notes += list_caveats(adjustment, table if is_all else table.take(indices))
        notes += [note for analysis in self.analyses for note in analysis.notes]
        if len(table) > 1 and all(family.method != "none" and len(rows) == 1 for family, rows in families):
            notes.append(note_unused(OPTIONS["adjust"], "if each metric has one comparison"))
        adjusted = _select_adjusted(table, families)
        largest = max(adjusted, key=lambda family: len(family[1]), default=None)
        return ComparisonResults(
            table=table,
            seed=self.seed,
            alpha=self.alpha,
            options=self.requested,
            notes=drop_duplicates(notes),
            family=None if largest is None else largest[0].build_note(len(largest[1])),
            together=self._combine_sets(tallies, table),
        )

    def _combine_sets(self, tallies: Tallies, table: Table) -> tuple[ResultAcrossSets, ...]:
        if not self.across:
            return ()
        jobs = [analysis.main for analysis in self.analyses]
        p_greater, p_less = (judge_counts(jobs, tallies, side)[0] for side in ("greater", "less"))
        errors = np.concatenate([compute_scores_and_errors(main.spec, main.comparisons)[1] for main in jobs])
        by_metric = [
            add_intervals(across, across.build_results(tallies, table, p_greater, p_less), table, errors)
            for across in self.across
        ]
        return tuple(verdict for verdicts in by_metric for verdict in verdicts)


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
    sampled = [sum(int(entry.main.comparisons.sampled.sum()) for entry in study.analyses) for study in studies]
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
    table = _add_adjusted_p(use_exact_p(table), all_families, tallies)
    if adjusted := _select_adjusted(table, all_families):
        table = add_families(table, [(entry.method, (entry.n_trials,), indices) for entry, indices in adjusted])
        if table.has("runs"):
            p_adjusted = _adjust_by_family(table["runs.p_value"], [(entry.method, rows) for entry, rows in adjusted])
            columns = dict.fromkeys(DETAILS, np.full(len(table), np.nan))  # these intervals hold for these runs only
            table = table.replace(**columns, **{"runs.p_adjusted": p_adjusted})
    comparisons = [analysis.main.comparisons for study in studies for analysis in study.analyses]
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
        judgement = JudgementSettings(analyses[0].alternative, studies[0].alpha, n_sampled[start:stop], failed)
        intervals = [entry.intervals.build_columns(tallies) for entry in analyses if entry.intervals is not None]
        table = _build_table(analyses, judgement, tallies)
        differences = np.split(table.difference, np.cumsum([*map(len, analyses)])[:-1])
        pairs = [(entry.margins, d) for entry, d in zip(analyses, differences, strict=True) if entry.margins]
        margins = [jobs.build_columns(difference, tallies) for jobs, difference in pairs]
        joined, runs = join_columns(intervals), _compare_runs(analyses, studies[0].alpha)
        joined = use_recipe_intervals(joined, runs) if joined and runs else joined
        origins = build_input_digests([a.main for a in analyses], studies[0].seed, get_version())
        tables.append(table.replace(**join_columns(margins), **joined, **runs, **origins))
        start = stop
    return Table.join(tables)


def _compare_runs(analyses: Sequence[SetAnalysis], alpha: float) -> Columns:
    """Return the tests over runs and of recipes; nothing if systems have one run."""
    results = []
    for entry in analyses:
        if entry.run_scores is not None:
            confidence = 1 - alpha if entry.intervals is None else entry.intervals.confidence
            results.append(compare_all_runs(entry.main, entry.run_scores, entry.alternative, alpha, confidence))
    return join_columns(results)


def _iter_scopes(sets: Sequence[Counts]) -> Iterator[Note]:
    """Yield notes on which part of the files is scored, naming test sets if their scopes differ."""
    is_same = len({counts.scope for counts in sets}) == 1
    for counts in sets:
        for text in counts.scope:
            yield Note("scope", text if is_same else f"{counts.name}: {text}")


def _add_adjusted_p(table: Table, families: Families, tallies: Tallies) -> Table:
    """Return the table with adjusted p-values, each family adjusted on its own."""
    paths = "p_adjusted", "p_adjusted_interval.0", "p_adjusted_interval.1"
    columns = [table[path] for path in paths]  # read-only, copied before changes
    low, high = (
        np.where(table.is_exact, table.p_value, limit) if table.is_exact.any() else limit
        for limit in (table["p_interval.0"], table["p_interval.1"])
    )
    for adjustment, indices in families:
        is_all = len(indices) == len(table)
        p, p_low, p_high = (limit if is_all else limit[indices] for limit in (table.p_value, low, high))
        if adjusted := adjustment.compute_p_values(p, p_low, p_high, tallies):
            pairs = zip(columns, adjusted, strict=True)
            columns = [scatter_rows(column, indices, values) for column, values in pairs]
    details = _compute_details(table, families, tallies)
    margins = _adjust_margins(table, families) if table.has("margin") else {}
    return table.replace(**dict(zip(paths, columns, strict=True)), **details, **margins)


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
    return _join_by_row(columns, families) if columns else {}


def _join_by_row(columns: Sequence[Columns], families: Families) -> Columns:
    """Return the columns of all families in the order of the table's rows."""
    rows = np.concatenate([family_rows for _, family_rows in families])
    return take_rows(join_columns(columns), np.argsort(rows, kind="stable"))


def _select_adjusted(table: Table, families: Families) -> Families:
    """Return the families that have adjusted p-values."""
    return [family for family in families if not np.isnan(table.p_adjusted[family[1]]).all()]


def _compute_details(table: Table, families: Families, tallies: Tallies) -> Columns:
    """Return the details of adjusted p-values in row order; nothing if no family has any."""
    if all(not adjustment.jobs for adjustment, _ in families):
        return {}
    details = [entry.compute_details(table.difference[indices], tallies, table.alpha) for entry, indices in families]
    return _join_by_row(details, families)


def prepare_study(
    specs: Sequence[tuple[Counts, CompareSpec, Alternative]],
    *,
    alpha: float = 0.05,
    adjust: Adjust | None = None,
    together: bool = False,
    second_run: bool = True,
) -> Study:
    """Return the study of some test sets, with all jobs listed and none counted.

    Parameters
    ----------
    specs : sequence of (Counts, CompareSpec, alternative)
        Test sets with different names, and the comparisons requested for each.
    alpha, adjust, together, second_run
        As in `compare_sets`.
    """
    if not specs:
        raise InputError("no test set given")
    names = [counts.name for counts, _, _ in specs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two test sets are named {name!r}; each needs a name of its own (Counts.with_name)")
    specs = [
        (counts.with_runs_as_units(*spec.levels, *filter(None, [spec.by])), spec, side) for counts, spec, side in specs
    ]
    family_trials = _choose_family_trials(specs, adjust, alpha)
    specs = [(counts, replace(spec, family_trials=family_trials), side) for counts, spec, side in specs]
    analyses = [SetAnalysis.from_spec(*request, alpha=alpha, second_run=second_run) for request in specs]
    comparisons = FamilyComparisons.from_jobs(*(analysis.main for analysis in analyses))
    families, across, n = [], [], len(comparisons)
    interval_specs = [
        spec.interval_spec if spec.interval_spec and spec.interval_spec.covers(n) else None for _, spec, _ in specs
    ]
    for indices in group_rows(number_rows(comparisons.metric)):  # metrics are separate questions
        members = comparisons.select(indices)
        method, alternative = choose_adjustment(adjust, members), analyses[members.set_index[0]].alternative
        with_intervals = any(interval_specs[k] for k in np.unique(members.set_index))
        families.append((build_adjustment(method, members, alternative, with_intervals=with_intervals), indices))
        if together:
            of_metric = build_across_sets(members, specs[0][2])
            across.append(replace(of_metric, members=indices[of_metric.members]))
    if together and all(of_metric.members.shape[1] < 2 for of_metric in across):
        raise InputError(spell_in(ONE_SET))
    analyses = [analysis.with_intervals(spec) for analysis, spec in zip(analyses, interval_specs, strict=True)]
    return Study(analyses, families, across, alpha, specs[0][1].seed, specs[0][1].requested)


def _choose_family_trials(
    specs: Sequence[tuple[Counts, CompareSpec, Alternative]], adjust: Adjust | None, alpha: float
) -> dict[str, int]:
    """Return the most trials that are counted by default, for each metric with several comparisons."""
    sizes: Counter[str] = Counter()
    for counts, spec, _ in specs:
        n_subsets = 1 if spec.by is None else len(set(counts.group(spec.by)))
        n = n_subsets * len(list_pairs(counts, spec.pairs, spec.baseline))
        sizes.update({metric.name: n for metric in spec.find_metrics(counts)})
    return {name: choose_trials(compute_penalty(adjust or "", n), alpha) for name, n in sizes.items() if n > 1}


def build_specs(test_sets: Sequence[Counts | Any], options: SelectionOptions) -> list[tuple[Counts, CompareSpec]]:
    """Return the counts of each test set, and its specification."""
    value = options["metrics"]
    metrics = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    if value is not None and not metrics:
        raise InputError("no metric given", remedy="name one (`sigdask list metrics` lists them)")
    spec = CompareSpec.from_options(options, metrics)
    grouping = [name for name in (*spec.levels, spec.by) if name not in {"item", None}]
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
