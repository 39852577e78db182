"""What stands behind the answer: classical tests, verdicts over several sets, and all p-values as a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sigdask.report.page.grids import GridColumn, PageTable
from sigdask.report.tables.cells import p_cell
from sigdask.report.terminal import classical
from sigdask.results.columns.coded import Coded
from sigdask.results.comparisons import ComparisonResults
from sigdask.results.table import Table
from sigdask.results.views import result_views
from sigdask.statistics.letters import achieved_significance
from sigdask.statistics.rounding import signed

MOST_TESTED = 500
"""Comparisons whose classical tests are listed."""

MOST_TOGETHER = 5000
"""Verdicts over several sets that are listed."""

FEWEST_IN_CURVE, MOST_IN_CURVE = 10, 1000
"""Comparisons from which the curve is drawn, and points that it is drawn of."""


@dataclass(frozen=True, slots=True, eq=False)
class Classical:
    """Classical tests as a grid, None without any, and which do not fit which scores."""

    grid: PageTable | None
    misfits: Sequence[str]


def classical_tests(table: Table) -> Classical:
    """List the classical tests of the first comparisons."""
    tested = [r for r in result_views(table) if r.tests] if table.tests else []
    lines = [*classical.lines(tested[:MOST_TESTED], table.alpha)]
    misfits = [*classical.misfits(tested)]
    if not lines:
        return Classical(None, misfits)
    of = [line.result for line in lines]
    sets, subsets = Coded.of(r.test_set for r in of), Coded.of(r.subset["value"] if r.subset else "" for r in of)
    columns = [
        GridColumn("test set", sets, is_filter=True, is_hidden=len(sets.values) < 2),
        GridColumn("subset", subsets, is_filter=True, is_hidden=not any(subsets.values)),
        GridColumn("A", Coded.of(r.a for r in of)),
        GridColumn("B", Coded.of(r.b for r in of)),
        GridColumn("metric", Coded.of(r.metric for r in of), is_filter=True),
        GridColumn("test", Coded.of(line.name for line in lines), is_filter=True),
        GridColumn("statistic", Coded.of(line.statistic for line in lines), is_number=True),
        GridColumn("p", Coded.of(line.p for line in lines), is_number=True),
        GridColumn("n", Coded.of(line.n for line in lines), is_number=True),
        GridColumn("remark", Coded.of(line.remark for line in lines)),
    ]
    left_out = ""
    if len(tested) > MOST_TESTED:
        left_out = f"Of {MOST_TESTED:,} comparisons of {len(tested):,}; the JSON has all."
    contrast = "".join("1" if line.is_contrast else "0" for line in lines)
    more = {"quiet": contrast}
    return Classical(PageTable("tests", "Classical tests of the same comparisons", columns, left_out, more), misfits)


def over_sets(name: str, results: ComparisonResults) -> PageTable:
    """List the verdicts over several test sets or subsets."""
    own = results.together[:MOST_TOGETHER]
    alpha = results.alpha
    columns = [
        GridColumn("A", Coded.of(v.a for v in own)),
        GridColumn("B", Coded.of(v.b for v in own)),
        GridColumn("metric", Coded.of(v.metric for v in own), is_filter=True),
        GridColumn("mean A − B", Coded.of(signed(v.difference) for v in own), is_number=True),
        GridColumn("unadjusted p", Coded.of(p_cell(v.p_value, alpha) for v in own), is_number=True),
        GridColumn("adjusted p", Coded.of(p_cell(v.p_adjusted, alpha) for v in own), is_number=True),
        GridColumn("A above B in", Coded.of(_in_sets(v.greater_in, v.n_sets, v.p_greater, alpha) for v in own)),
        GridColumn("below in", Coded.of(_in_sets(v.less_in, v.n_sets, v.p_less, alpha) for v in own)),
    ]
    left_out = ""
    if len(own) < len(results.together):
        left_out = f"The first {len(own):,} of {len(results.together):,}; the JSON has all."
    return PageTable(name, "Comparisons over all sets", columns, left_out)


def _in_sets(n_found: int, n_sets: int, p: float, alpha: float) -> str:
    return f"{n_found} of {n_sets}" + (f" (p = {p_cell(p, alpha)})" if n_found else "")


WIDTH, HEIGHT = 600, 240
"""Of the curve's drawing."""


@dataclass(frozen=True, slots=True)
class SignificanceCurve:
    """The achieved-significance curve.

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


def curve(table: Table) -> SignificanceCurve | None:
    """Draw all p-values, the largest first (Sakai 2006); None of few."""
    ordered = np.array(achieved_significance(table.p_value))
    n = len(ordered)
    if n < FEWEST_IN_CURVE:
        return None
    places = np.unique(np.linspace(0, n - 1, min(n, MOST_IN_CURVE)).round().astype(np.int64))
    across, down = WIDTH * places / (n - 1), HEIGHT * (1 - ordered[places])
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across.tolist(), down.tolist(), strict=True))
    return SignificanceCurve(points, HEIGHT * (1 - table.alpha), n)
