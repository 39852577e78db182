"""Rankings on the page: systems with scores, letters, and differences from the best as a forest plot."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sigdask.report.summary.standings import BASELINE, SOME, Standings
from sigdask.report.tables.cells import (
    GROUPING_HEADERS,
    explain_group_marks,
    format_groups,
    format_marked_p,
    mark_bounds,
)
from sigdask.results.columns import EMPTY
from sigdask.results.fields import iter_results
from sigdask.results.ranking import SystemRanking, build_ranking, group_rows, iter_ranked
from sigdask.results.table import Table, select_intervals
from sigdask.statistics.rounding import format_score, format_signed
from sigdask.text import format_list

MAX_IN_MATRIX = 150
"""Maximum number of systems for which every pair is drawn."""

MAX_IN_RANKINGS = 5000
"""Maximum number of systems in all rankings after the first."""

WIDTH, PAD = 340, 14
"""Width of the drawing of differences, and its margins."""

MAX_FORESTS, MAX_IN_FOREST, MAX_IN_FORESTS = 3, 8, 5
"""Maximum number of forest plots at the top of the page, of systems in a single one, and of systems in each of
several.
"""


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One system of a ranking.

    Attributes
    ----------
    rank : int
        1 for the best.
    system, score, letters : str
        System, score and letters, as printed.
    difference, interval, p : str
        Difference from the best system, its interval and p, as printed. Empty for the best.
    verdict : str
        Verdict of the comparison with the best system.
    at : float
        Horizontal position of the difference in the drawing.
    low, high : float or None
        Positions of the interval's ends, if there is an interval.
    """

    rank: int
    system: str
    score: str
    letters: str
    at: float
    low: float | None = None
    high: float | None = None
    difference: str = ""
    interval: str = ""
    p: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class RankingSection:
    """A ranking with its drawing, as the page shows it.

    Attributes
    ----------
    ranking : SystemRanking
        The ranking.
    places : sequence of RankedRow
        The best first.
    zero : float
        Position of a zero difference in the drawing.
    ticks : sequence of (float, str)
        Ticks of its axis.
    has_matrix : bool
        Whether the script draws every pair.
    confidence : str
        Confidence of the intervals. Empty without intervals.
    """

    ranking: SystemRanking
    places: Sequence[RankedRow]
    zero: float
    ticks: Sequence[tuple[float, str]]
    has_matrix: bool
    confidence: str

    @property
    def meaning(self) -> str:
        """Meaning of the marks of systems, such as letters."""
        return explain_group_marks(self.ranking)

    @property
    def mark_header(self) -> str:
        """Header of the column of these marks."""
        return GROUPING_HEADERS[self.ranking.grouping]

    def explain_mark(self, place: RankedRow) -> str:
        """Return the meaning of a system's letters: from which systems it is not significantly different."""
        if self.ranking.grouping != "letters":
            return f"{place.letters}: {self.meaning}"
        letters = {ranked.system: {*ranked.letters} for ranked in self.ranking.systems}  # a letter may be "aa"
        own = letters.pop(place.system)
        alike = [system for system, others in letters.items() if others & own]
        return f"not significantly different from {format_list(alike)}" if alike else "significantly different from all"

    @property
    def title(self) -> str:
        """Metric of the ranking, with its subset."""
        subset = self.ranking.subset
        return self.ranking.metric + (f" ({subset['column']} {subset['value']})" if subset else "")


@dataclass(frozen=True, slots=True)
class Forest:
    """Forest plot of a reference against the other systems: the best system, or the baseline.

    Attributes
    ----------
    title : str
        Metric, with test set and subset where there are several.
    reference : str
        Name of the system that the differences are from.
    rows : sequence of RankedRow
        The other systems, the best first.
    n_more : int
        Systems that the plot leaves out.
    zero, ticks, confidence
        As in `RankingSection`.
    """

    title: str
    reference: str
    rows: Sequence[RankedRow]
    n_more: int
    zero: float
    ticks: Sequence[tuple[float, str]]
    confidence: str


def build_forests(tables: Iterable[Table]) -> list[Forest]:
    """Return forest plots for the top of the page, of the first test sets, subsets and metrics."""
    groups = [table.take(rows) for table in tables for rows in group_rows(table)]
    standings = [*map(Standings.from_table, groups[:MAX_FORESTS])]
    has_many_sets = len({group.test_set[0] for group in groups}) > 1
    most = MAX_IN_FOREST if len(groups) == 1 else MAX_IN_FORESTS
    shown = (pair for pair in zip(groups, standings, strict=False) if pair[1].design != SOME)
    return [_build_forest(group, c, most, has_many_sets=has_many_sets) for group, c in shown]


def _build_forest(table: Table, c: Standings, most: int, *, has_many_sets: bool) -> Forest:
    reference = c.names[int(c.b[0] if c.design == BASELINE else c.top[0])]
    compared, confidence = _compare_with_best(table, reference)
    score, subset = table.metric[0], table.subset[0]
    sign = -1 if score.higher_is_better else 1
    nearest = sorted(compared, key=lambda name: (math.isnan(compared[name][0]), sign * compared[name][0]))
    shown = nearest[:most] if len(nearest) > most + 1 else nearest
    scale = _DrawingScale.from_values(np.array([compared[name][:3] for name in shown]).ravel())
    labels = ((rank, name, "", "") for rank, name in enumerate(shown, start=1))
    rows = [_build_row(own, compared[own[1]], scale, table.alpha) for own in labels]
    names = (table.test_set[0] if has_many_sets else "", f"{subset.column} {subset.value or EMPTY}" if subset else "")
    title = ", ".join(filter(None, (score.name, *names)))
    return Forest(title, reference, rows, len(nearest) - len(shown), scale.locate(0.0), scale.list_ticks(), confidence)


def build_sections(table: Table, n_left: int, *, is_first: bool, all_listed: bool) -> tuple[list[RankingSection], int]:
    """Return the rankings of a test set for which the page has room, and the number of other rankings.

    Parameters
    ----------
    table : Table
        Results of the test set.
    n_left : int
        Number of systems for which there is room.
    is_first : bool
        Whether this is the first ranking of the page, which always has room.
    all_listed : bool
        Whether the page has every comparison, which matrices need.
    """
    fitting: list[RankingSection] = []
    n_left_out = 0
    for ranking_table in iter_ranked(table):
        ranking = build_ranking(ranking_table)
        if n_left < len(ranking.systems) and not is_first:
            n_left_out += 1
        else:
            compared, confidence = _compare_with_best(ranking_table, ranking.systems[0].system)
            scale = _DrawingScale.from_values(np.array([values[:3] for values in compared.values()]).ravel())
            rows = []
            for ranked, groups in zip(ranking.systems, format_groups(ranking), strict=True):
                labels = (ranked.rank, ranked.system, format_score(ranked.score), groups)
                rows.append(_build_row(labels, compared.get(ranked.system), scale, ranking_table.alpha))
            fits = all_listed and len(rows) <= MAX_IN_MATRIX
            fitting.append(RankingSection(ranking, rows, scale.locate(0.0), scale.list_ticks(), fits, confidence))
            n_left -= len(ranking.systems)
        is_first = False
    return fitting, n_left_out


BestComparison = tuple[float, float, float, float, str]
"""Difference from the best, the ends of its interval, p of `mark_bounds` (adjusted if that is), and verdict."""


def _compare_with_best(table: Table, best: str) -> tuple[dict[str, BestComparison], str]:
    """Return the other systems' comparisons with a ranking's best one, and the intervals' confidence as text.

    Differences are other minus best. The ends of intervals are NaN where there is none, or no bound.
    """
    a, b = (column.find(lambda name: name == best) for column in (table.a, table.b))
    best_table = table.take(np.flatnonzero(a | b))
    is_a = a[a | b]
    names = [best_table.b[k] if is_best_a else best_table.a[k] for k, is_best_a in enumerate(is_a.tolist())]
    low, high, confidence = _get_ends(best_table)
    columns = (
        np.where(is_a, -best_table.difference, best_table.difference),
        np.where(is_a, -high, low),
        np.where(is_a, -low, high),
        np.where(
            np.isnan(best_table.p_adjusted),
            mark_bounds(best_table.p_value, best_table.p_low, best_table.exact),
            mark_bounds(best_table.p_adjusted, best_table.p_adjusted_low),
        ),
    )
    verdicts = [r.verdict(table.alpha) for r in iter_results(best_table)]
    rows = zip(*(column.tolist() for column in columns), verdicts, strict=True)
    return dict(zip(names, rows, strict=True)), confidence


def _get_ends(table: Table) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Return the low and high ends of intervals that have both (else NaN), and their confidence as text."""
    intervals, kind = select_intervals(table)
    if intervals is None:
        nothing = np.full(len(table), np.nan)
        return nothing, nothing, ""
    has_both = np.isfinite(intervals.low) & np.isfinite(intervals.high)
    levels = np.unique(intervals.confidence[has_both])
    confidence = f"{kind}{100 * levels[0]:.4g} %" if len(levels) else ""
    return np.where(has_both, intervals.low, np.nan), np.where(has_both, intervals.high, np.nan), confidence


def _build_row(
    labels: tuple[int, str, str, str], compared: BestComparison | None, scale: _DrawingScale, alpha: float
) -> RankedRow:
    if compared is None:
        return RankedRow(*labels, scale.locate(0.0))
    difference, low, high, p, verdict = compared
    has_interval = not math.isnan(low)
    interval = f"[{format_signed(low)}, {format_signed(high)}]" if has_interval else ""
    ends: tuple[float | None, float | None] = (scale.locate(low), scale.locate(high)) if has_interval else (None, None)
    texts = format_signed(difference), interval, format_marked_p(p, alpha), verdict
    return RankedRow(*labels, scale.locate(difference), *ends, *texts)


@dataclass(frozen=True, slots=True)
class _DrawingScale:
    """A linear scale from differences to horizontal positions."""

    low: float
    high: float

    @staticmethod
    def from_values(values: NDArray[np.float64]) -> _DrawingScale:
        """Build a scale that includes all values and zero."""
        finite = np.append(values[np.isfinite(values)], 0.0)
        low, high = float(finite.min()), float(finite.max())
        return _DrawingScale(low, high) if high > low else _DrawingScale(-1.0, 1.0)

    def locate(self, value: float) -> float:
        """Return the horizontal position of a difference."""
        return round(PAD + (WIDTH - 2 * PAD) * (value - self.low) / (self.high - self.low), 1)

    def list_ticks(self) -> list[tuple[float, str]]:
        """Return positions and labels of about four round differences."""
        width = (self.high - self.low) / 4
        power = 10.0 ** np.floor(np.log10(width))
        step = float(next(power * k for k in (1, 2, 5, 10) if power * k >= width))
        first, last = int(np.ceil(self.low / step)), int(np.floor(self.high / step))
        return [(self.locate(k * step), f"{k * step:+.6g}" if k else "0") for k in range(first, last + 1)]
