"""The analysis of one test set: its comparisons, contrasts with other units, and results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.classical.tests import run_tests
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.judge import JudgementSettings, compute_p_values
from sigdask.analysis.comparison.nesting import compute_unit_correlations, find_coarsest
from sigdask.analysis.comparison.pairs import list_left_out
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.counts import Counts
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.results.messages.notes import Note
from sigdask.results.table import AlternativeUnit, Floats, Table, UnitCorrelation
from sigdask.statistics.dependence import CLEAR_LEVEL, NEGLIGIBLE_EFFECT, Dependence, compute_naive_size
from sigdask.text import format_list

MAX_NAMED = 5
"""Comparisons left out that are named."""

FEWEST_GROUPS = 6
"""Groups from which exchanging them can reach 0.05, two-sided."""


@dataclass(frozen=True, eq=False)
class SetAnalysis:
    """The comparisons of one test set, with contrasts by other units, correlations within columns and classical tests.

    Attributes
    ----------
    main : ComparisonJobs
        With the unit asked for.
    dependences : tuple of UnitCorrelation
        How differences are correlated within each coarser column.
    contrasts : tuple of ComparisonJobs
        With other units, for contrast.
    left_out : tuple of (str or None, str, str, str)
        Subset, systems and metric of what is not compared, as one of the systems has no item of it.
    tests : tuple of str
        Names of the classical tests beside.
    """

    main: ComparisonJobs
    dependences: tuple[UnitCorrelation, ...]
    contrasts: tuple[ComparisonJobs, ...]
    left_out: tuple[tuple[str | None, str, str, str], ...] = ()
    tests: tuple[str, ...] = ()

    @staticmethod
    def from_spec(counts: Counts, spec: CompareSpec, *, second_run: bool) -> SetAnalysis:
        """Return the analysis that a specification asks of a test set, ready to be counted."""
        unit = find_coarsest(counts, spec.levels) if spec.levels else counts.unit
        grouped = counts.with_unit(unit)
        spec = spec.bind_metrics(grouped)
        main = ComparisonJobs.from_spec(grouped, spec, second_run=second_run)
        dependences = compute_unit_correlations(main.comparisons, main.spec.units)
        finer = [level for level in dict.fromkeys(("item", *spec.levels)) if level != unit]
        levels = (
            [*(finer if unit != "item" else ()), *list_clear_columns(dependences, FEWEST_GROUPS)]
            if spec.has_contrasts
            else []
        )
        contrasts = tuple(ComparisonJobs.build_contrast(counts.with_unit(level), spec) for level in levels)
        omitted = list_left_out(grouped, main.spec.pairs, spec.find_metrics(grouped), spec.by)
        return SetAnalysis(main, dependences, contrasts, tuple(omitted), spec.tests)

    @property
    def comparison_jobs(self) -> tuple[ComparisonJobs, ...]:
        """Comparison jobs by the main unit, followed by those of the contrast units."""
        return self.main, *self.contrasts

    @property
    def jobs(self) -> list[Job]:
        """All jobs to count."""
        return [job for unit_jobs in self.comparison_jobs for job in unit_jobs.jobs]

    def build_table(self, settings: JudgementSettings, tallies: Tallies) -> Table:
        """Return the table of results from the tallies of `jobs`, with contrasts and classical tests."""
        result, *contrasts = (
            settings.build_table(
                unit_jobs.comparisons,
                unit_jobs.slots,
                unit_jobs.jobs,
                tallies,
                unit_jobs.get_exact_values(tallies, settings.alternative),
            )
            for unit_jobs in self.comparison_jobs
        )
        tests = run_tests(self.main.comparisons, self.tests, settings.alternative)
        return replace(
            result, dependence=self.dependences, beside=tuple(map(_extract_contrast, contrasts)), tests=tests
        )

    def compute_p_values(self, tallies: Tallies, alternative: Alternative) -> Floats:
        """Return the unadjusted p of each comparison under one alternative, shape (n,)."""
        main, exact_values = self.main, self.main.get_exact_values(tallies, alternative)
        return compute_p_values(main.comparisons, main.slots, main.jobs, tallies, alternative, exact_values)

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
            text = f"not compared, as the two have no item in common: {format_list(names, MAX_NAMED, '; ')}"
            notes.append(Note("missing", text, {"n_comparisons": len(self.left_out)}))
        n_tested, n = _count_tested(self.dependences), len(self.main.comparisons)
        for column in list_clear_columns(self.dependences):
            [correlation] = [entry for entry in self.dependences if entry.column == column]
            is_clear = np.flatnonzero(_find_clear(correlation, n_tested))
            worst = _get_dependence(correlation, int(is_clear[np.argmax(correlation.design_effect[is_clear])]))
            remedy = (
                f"use --unit {column}"
                if worst.n_groups >= FEWEST_GROUPS
                else f"{worst.n_groups} groups are too few to exchange, --by {column} judges each alone"
            )
            text = (
                f"differences are correlated within {column} in {len(is_clear):,} of {n:,} comparisons "
                f"(ICC up to {worst.icc:.2f}, design effect {worst.design_effect:.1f}: a test at 0.05 would reject "
                f"about {compute_naive_size(worst.design_effect):.0%} of true hypotheses): swapping by {unit} makes "
                "p too "
                f"small for other values of {column} than these; {remedy}"
            )
            worst_values = {"n_groups": worst.n_groups, "icc": worst.icc, "design_effect": worst.design_effect}
            shares = {"n_comparisons": len(is_clear), "of": n}
            notes.append(Note("dependence", text, {"column": column, "unit": unit, **worst_values, **shares}))
        return notes


def _extract_contrast(table: Table) -> AlternativeUnit:
    return AlternativeUnit(table.unit, table.n_units, table.exact, table.n_trials, table.n_extreme, table.p_value)


def _get_dependence(correlation: UnitCorrelation, k: int) -> Dependence:
    numbers = (correlation.n_groups, correlation.icc, correlation.design_effect, correlation.p_value)
    return Dependence(correlation.column, *(column[k].item() for column in numbers))


def list_clear_columns(dependences: Sequence[UnitCorrelation], fewest: int = 2) -> list[str]:
    """Return columns of `fewest` groups or more within which differences are clearly correlated.

    Columns are ordered by the first comparison with such a correlation.
    """
    n_tested = _count_tested(dependences)
    clear_rows = {
        entry.column: entry.rows[_find_clear(entry, n_tested) & (entry.n_groups >= fewest)] for entry in dependences
    }
    return sorted(
        (column for column, rows in clear_rows.items() if len(rows)), key=lambda column: int(clear_rows[column][0])
    )


def _count_tested(dependences: Sequence[UnitCorrelation]) -> int:
    return sum(len(entry.rows) for entry in dependences)


def _find_clear(correlation: UnitCorrelation, n_tested: int) -> NDArray[np.bool_]:
    """Return which correlations are large enough to matter and significant, corrected for `n_tested` tests."""
    return (correlation.design_effect > NEGLIGIBLE_EFFECT) & (correlation.p_value <= CLEAR_LEVEL / max(n_tested, 1))
