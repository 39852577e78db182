"""Further data on the page: classical tests, verdicts over several sets, and the p-value curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.report.page.grids import GridColumn, PageTable
from sigdask.report.tables.cells import format_p_cell
from sigdask.report.terminal import classical
from sigdask.results.columns.coded import CodedColumn
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table
from sigdask.results.views import iter_results
from sigdask.statistics.ranking_letters import achieved_significance
from sigdask.statistics.rounding import format_signed

MOST_TESTED = 500
"""Comparisons whose classical tests are listed."""

MOST_TOGETHER = 5000
"""Verdicts over several sets that are listed."""

FEWEST_IN_CURVE, MOST_IN_CURVE = 10, 1000
"""Comparisons from which the curve is drawn, and points that it is drawn of."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassicalTestsSection:
    """Classical tests as a grid (None if there are none), and lines on tests that do not fit the scores."""

    grid: PageTable | None
    misfits: Sequence[str]


def build_tests_grid(table: Table) -> ClassicalTestsSection:
    """Return the classical tests of the first comparisons."""
    tested = [r for r in iter_results(table) if r.tests] if table.tests else []
    rows = [*classical.iter_rows(tested[:MOST_TESTED], table.alpha)]
    misfits = [*classical.iter_misfits(tested)]
    if not rows:
        return ClassicalTestsSection(None, misfits)
    results = [row.result for row in rows]
    sets, subsets = (
        CodedColumn.from_values(r.test_set for r in results),
        CodedColumn.from_values(r.subset["value"] if r.subset else "" for r in results),
    )
    columns = [
        GridColumn("test set", sets, is_filter=True, is_hidden=len(sets.values) < 2),
        GridColumn("subset", subsets, is_filter=True, is_hidden=not any(subsets.values)),
        GridColumn("A", CodedColumn.from_values(r.a for r in results)),
        GridColumn("B", CodedColumn.from_values(r.b for r in results)),
        GridColumn("metric", CodedColumn.from_values(r.metric for r in results), is_filter=True),
        GridColumn("test", CodedColumn.from_values(row.name for row in rows), is_filter=True),
        GridColumn("statistic", CodedColumn.from_values(row.statistic for row in rows), is_number=True),
        GridColumn("p", CodedColumn.from_values(row.p for row in rows), is_number=True),
        GridColumn("n", CodedColumn.from_values(row.n for row in rows), is_number=True),
        GridColumn("remark", CodedColumn.from_values(row.remark for row in rows)),
    ]
    left_out = ""
    if len(tested) > MOST_TESTED:
        left_out = f"Of {MOST_TESTED:,} comparisons of {len(tested):,}; the JSON has all."
    contrast = "".join("1" if row.is_contrast else "0" for row in rows)
    extra = {"quiet": contrast}
    return ClassicalTestsSection(
        PageTable("tests", "Classical tests of the same comparisons", columns, left_out, extra), misfits
    )


def build_sets_grid(name: str, results: ComparisonResults) -> PageTable:
    """Return a grid of the verdicts over several test sets or subsets."""
    shown = results.together[:MOST_TOGETHER]
    alpha = results.alpha
    columns = [
        GridColumn("A", CodedColumn.from_values(v.a for v in shown)),
        GridColumn("B", CodedColumn.from_values(v.b for v in shown)),
        GridColumn("metric", CodedColumn.from_values(v.metric for v in shown), is_filter=True),
        GridColumn("mean A − B", CodedColumn.from_values(format_signed(v.difference) for v in shown), is_number=True),
        GridColumn(
            "unadjusted p", CodedColumn.from_values(format_p_cell(v.p_value, alpha) for v in shown), is_number=True
        ),
        GridColumn(
            "adjusted p", CodedColumn.from_values(format_p_cell(v.p_adjusted, alpha) for v in shown), is_number=True
        ),
        GridColumn(
            "A above B in",
            CodedColumn.from_values(_format_replications(v.greater_in, v.n_sets, v.p_greater, alpha) for v in shown),
        ),
        GridColumn(
            "below in",
            CodedColumn.from_values(_format_replications(v.less_in, v.n_sets, v.p_less, alpha) for v in shown),
        ),
    ]
    left_out = ""
    if len(shown) < len(results.together):
        left_out = f"The first {len(shown):,} of {len(results.together):,}; the JSON has all."
    return PageTable(name, "Comparisons over all sets", columns, left_out)


def _format_replications(n_shown: int, n_sets: int, p: float, alpha: float) -> str:
    return f"{n_shown} of {n_sets}" + (f" (p = {format_p_cell(p, alpha)})" if n_shown else "")


WIDTH, HEIGHT = 600, 240
"""Of the curve's drawing."""


@dataclass(frozen=True, slots=True)
class SignificanceCurve:
    """A drawn curve of all p-values, the largest first (achieved significance).

    Attributes
    ----------
    points : str
        As a polyline has them, of a drawing of WIDTH by HEIGHT.
    level : float
        Where alpha stands in it.
    n : int
        Comparisons.
    """

    points: str
    level: float
    n: int


def build_curve(table: Table) -> SignificanceCurve | None:
    """Return the curve of all p-values, the largest first (Sakai 2006), or None for too few p-values."""
    ordered = np.array(achieved_significance(table.p_value))
    n = len(ordered)
    if n < FEWEST_IN_CURVE:
        return None
    indices = np.unique(np.linspace(0, n - 1, min(n, MOST_IN_CURVE)).round().astype(np.int64))
    positions, heights = WIDTH * indices / (n - 1), HEIGHT * (1 - ordered[indices])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(positions.tolist(), heights.tolist(), strict=True))
    return SignificanceCurve(points, HEIGHT * (1 - table.alpha), n)
