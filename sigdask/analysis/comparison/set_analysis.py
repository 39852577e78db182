"""The analysis of one test set: its comparisons, beside them those with other units, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.classical.tests import tested
from sigdask.analysis.comparison.jobs import ComparisonJobs
from sigdask.analysis.comparison.judge import JudgementSettings, p_values
from sigdask.analysis.comparison.nesting import hanging, highest
from sigdask.analysis.comparison.pairs import left_out
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.counts import Counts
from sigdask.options import Alternative
from sigdask.randomization.jobs import Job, Tallies
from sigdask.results.messages.notes import Note
from sigdask.results.table import AlternativeUnit, Floats, Table, UnitCorrelation
from sigdask.statistics.dependence import CLEAR, NEGLIGIBLE, Dependence, naive_size
from sigdask.text import listed

SHOWN = 5
"""Comparisons left out that are named."""

FEWEST_GROUPS = 6
"""Groups from which exchanging them can reach 0.05, two-sided."""


@dataclass(frozen=True, eq=False)
class SetAnalysis:
    """All that is asked of one test set.

    Attributes
    ----------
    main : ComparisonJobs
        With the unit asked for.
    dependences : tuple of UnitCorrelation
        How differences are correlated within each coarser column.
    others : tuple of ComparisonJobs
        With other units, for contrast.
    left_out : tuple of (str or None, str, str, str)
        Subset, systems and metric of what is not compared, as one of the systems has no item of it.
    tests : tuple of str
        Names of the classical tests beside.
    """

    main: ComparisonJobs
    dependences: tuple[UnitCorrelation, ...]
    others: tuple[ComparisonJobs, ...]
    left_out: tuple[tuple[str | None, str, str, str], ...] = ()
    tests: tuple[str, ...] = ()

    @staticmethod
    def of(counts: Counts, wanted: CompareSpec, *, second_run: bool) -> SetAnalysis:
        """Resolve what is asked of `counts`."""
        unit = highest(counts, wanted.levels) if wanted.levels else counts.unit
        grouped = counts.with_unit(unit)
        wanted = wanted.bind(grouped)
        main = ComparisonJobs.of(grouped, wanted, second_run=second_run)
        dependences = hanging(main.comparisons, main.asked.units)
        finer = [level for level in dict.fromkeys(("item", *wanted.levels)) if level != unit]
        levels = (
            [*(finer if unit != "item" else ()), *clear_columns(dependences, FEWEST_GROUPS)] if wanted.beside else []
        )
        others = tuple(ComparisonJobs.beside(counts.with_unit(level), wanted) for level in levels)
        without = left_out(grouped, main.asked.pairs, wanted.found(grouped), wanted.by)
        return SetAnalysis(main, dependences, others, tuple(without), wanted.tests)

    @property
    def exchanges(self) -> tuple[ComparisonJobs, ...]:
        """Of all units, the one asked for first."""
        return self.main, *self.others

    @property
    def jobs(self) -> list[Job]:
        """What must be counted."""
        return [job for exchange in self.exchanges for job in exchange.jobs]

    def table(self, judging: JudgementSettings, tallies: Tallies) -> Table:
        """Judge the counts of `jobs`, with the exact values that are known."""
        found, *besides = (
            judging.table(one.comparisons, one.slots, one.jobs, tallies, one.known(tallies, judging.alternative))
            for one in self.exchanges
        )
        tests = tested(self.main.comparisons, self.tests, judging.alternative)
        return replace(found, dependence=self.dependences, beside=tuple(map(_beside, besides)), tests=tests)

    def p_values(self, tallies: Tallies, alternative: Alternative) -> Floats:
        """Return p of each comparison alone, of one alternative."""
        main, known = self.main, self.main.known(tallies, alternative)
        return p_values(main.comparisons, main.slots, main.jobs, tallies, alternative, known)

    @cached_property
    def notes(self) -> list[Note]:
        """Say what could not be compared, and where differences are correlated within groups not exchanged whole."""
        unit = self.main.asked.counts.unit
        notes = []
        if self.left_out:
            names = [
                f"{a} and {b} by {metric}{f' on {subset}' if subset is not None else ''}"
                for subset, a, b, metric in self.left_out
            ]
            text = f"not compared, as the two have no item in common: {listed(names, SHOWN, '; ')}"
            notes.append(Note("missing", text, {"n_comparisons": len(self.left_out)}))
        n_tested, n = _n_tested(self.dependences), len(self.main.comparisons)
        for column in clear_columns(self.dependences):
            [found] = [one for one in self.dependences if one.column == column]
            clear = np.flatnonzero(_clear(found, n_tested))
            worst = _of_place(found, int(clear[np.argmax(found.design_effect[clear])]))
            remedy = (
                f"use --unit {column}"
                if worst.n_groups >= FEWEST_GROUPS
                else f"{worst.n_groups} groups are too few to exchange, --by {column} judges each alone"
            )
            text = (
                f"differences are correlated within {column} in {len(clear):,} of {n:,} comparisons "
                f"(ICC up to {worst.icc:.2f}, design effect {worst.design_effect:.1f}: a test at 0.05 would reject "
                f"about {naive_size(worst.design_effect):.0%} of true hypotheses): swapping by {unit} makes p too "
                f"small for other values of {column} than these; {remedy}"
            )
            of_worst = {"n_groups": worst.n_groups, "icc": worst.icc, "design_effect": worst.design_effect}
            shares = {"n_comparisons": len(clear), "of": n}
            notes.append(Note("dependence", text, {"column": column, "unit": unit, **of_worst, **shares}))
        return notes


def _beside(found: Table) -> AlternativeUnit:
    return AlternativeUnit(found.unit, found.n_units, found.exact, found.n_trials, found.n_extreme, found.p_value)


def _of_place(found: UnitCorrelation, k: int) -> Dependence:
    numbers = (found.n_groups, found.icc, found.design_effect, found.p_value)
    return Dependence(found.column, *(column[k].item() for column in numbers))


def clear_columns(dependences: Sequence[UnitCorrelation], fewest: int = 2) -> list[str]:
    """Return the columns, of `fewest` groups or more, within which differences are clearly correlated.

    That of the first such comparison comes first.
    """
    n_tested = _n_tested(dependences)
    clear = {one.column: one.rows[_clear(one, n_tested) & (one.n_groups >= fewest)] for one in dependences}
    return sorted((column for column, rows in clear.items() if len(rows)), key=lambda column: int(clear[column][0]))


def _n_tested(dependences: Sequence[UnitCorrelation]) -> int:
    return sum(len(one.rows) for one in dependences)


def _clear(found: UnitCorrelation, n_tested: int) -> NDArray[np.bool_]:
    """Say which would matter and are not chance, among `n_tested` such tests."""
    return (found.design_effect > NEGLIGIBLE) & (found.p_value <= CLEAR / max(n_tested, 1))
