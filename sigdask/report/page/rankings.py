"""Rankings on the page: systems with scores, letters, and differences from the best as a forest plot.

Each is a dictionary for the templates: `title`, the `reference` from which the differences are, `rows`, the position
of `zero`, `ticks`, `confidence` (kind and confidence of the intervals), and in a ranking its marks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sigdask.report.comparisons import (
    GROUPINGS,
    MetricStyle,
    Setting,
    explain_group_marks,
    format_deciding_p,
    format_groups,
    name_verdict,
    turn,
)
from sigdask.report.sentences import get_ends
from sigdask.report.standings import BASELINE, SOME, Standings
from sigdask.results.columns import EMPTY
from sigdask.results.fields import iter_results
from sigdask.results.ranking import SystemRanking, build_ranking, group_rows, iter_ranked
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_score, format_signed

MAX_IN_MATRIX = 150
"""Maximum number of systems for which every pair is drawn."""

MAX_IN_RANKINGS = 5000
"""Maximum number of systems in all rankings after the first."""

WIDTH, PAD = 340, 24
"""Width of the drawing of differences, and its margins."""

MAX_FORESTS, MAX_IN_FOREST, MAX_IN_FORESTS = 3, 8, 5
"""Maximum number of forest plots at the top of the page, of systems in a single one, and of systems in each of
several.
"""

Drawing = dict[str, Any]


def build_forests(tables: Iterable[Table]) -> list[Drawing]:
    """Return forest plots for the top of the page, of the first test sets, subsets and metrics."""
    groups = [table.take(rows) for table in tables for rows in group_rows(table)]
    has_many_sets = len({group.test_set[0] for group in groups}) > 1
    most = MAX_IN_FOREST if len(groups) == 1 else MAX_IN_FORESTS
    forests = []
    for table in groups[:MAX_FORESTS]:
        c, column, value = Standings(table), table["subset.column"][0], table["subset.value"][0]
        if c.design != SOME:
            reference = c.names[int(c.b[0] if c.design == BASELINE else c.top[0])]
            sign = 1 if table.higher_is_better[0] else -1
            compared = _compare_with(table, reference)
            nearest = sorted(compared, key=lambda r: (math.isnan(r.difference), sign * r.difference))
            shown = nearest[:most] if len(nearest) > most + 1 else nearest
            place = f"{column} {value or EMPTY}" if column else ""
            title = ", ".join(filter(None, (table.metric[0], table.test_set[0] if has_many_sets else "", place)))
            forests.append(_draw(title, reference, shown, table.alpha) | {"n_more": len(nearest) - len(shown)})
    return forests


def build_sections(table: Table, n_left: int, *, is_first: bool, all_listed: bool) -> tuple[list[Drawing], int]:
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
    fitting: list[Drawing] = []
    n_left_out = 0
    for own in iter_ranked(table):
        ranking = build_ranking(own)
        if n_left < len(ranking.systems) and (fitting or not is_first):
            n_left_out += 1
            continue
        n_left -= len(ranking.systems)
        fitting.append(_draw_ranking(own, ranking, all_listed=all_listed))
    return fitting, n_left_out


def _draw_ranking(table: Table, ranking: SystemRanking, *, all_listed: bool) -> Drawing:
    best = ranking.systems[0].system
    place = f" ({ranking.subset['column']} {ranking.subset['value']})" if ranking.subset else ""
    drawing = _draw(f"{ranking.metric}{place}", best, _compare_with(table, best), table.alpha)
    blank = dict.fromkeys(("low", "high")) | dict.fromkeys(("difference", "interval", "p", "verdict"), "")
    compared = {row["system"]: row for row in drawing["rows"]} | {best: blank | {"at": drawing["zero"]}}
    ranks = ranking.clusters or [system.rank for system in ranking.systems]
    rows = [
        compared[s.system] | {"system": s.system, "rank": rank, "score": format_score(s.score), "letters": letters}
        for s, letters, rank in zip(ranking.systems, format_groups(ranking), ranks, strict=True)
    ]
    return drawing | {
        "rows": rows,
        "of": ranking,
        "meaning": explain_group_marks(ranking),
        "mark_header": GROUPINGS[ranking.grouping][0],
        "has_matrix": all_listed and len(rows) <= MAX_IN_MATRIX,
    }


def _compare_with(table: Table, reference: str) -> list[Result]:
    """Return the comparisons of the other systems with one, turned so that it is B."""
    has_it = table.a.find(lambda name: name == reference) | table.b.find(lambda name: name == reference)
    return [turn(r) if r.a == reference else r for r in iter_results(table.take(np.flatnonzero(has_it)))]


def _draw(title: str, reference: str, results: Sequence[Result], alpha: float) -> Drawing:
    """Return a drawing with a row for each comparison."""
    ends = [get_ends(r) for r in results]
    known = [pair if pair is not None and all(map(math.isfinite, pair)) else None for pair in ends]
    values = [0.0, *(r.difference for r in results), *(end for pair in known if pair for end in pair)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = (min(finite), max(finite)) if min(finite) < max(finite) else (-1.0, 1.0)

    def locate(value: float) -> float:
        return round(PAD + (WIDTH - 2 * PAD) * (value - low) / (high - low), 1)

    rows = []
    for r, pair in zip(results, known, strict=True):
        rows.append({
            "system": r.a,
            "at": locate(r.difference),
            "low": None if pair is None else locate(pair[0]),
            "high": None if pair is None else locate(pair[1]),
            "difference": format_signed(r.difference),
            "interval": MetricStyle(r.metric).format_ends(r.difference, pair),
            "p": format_deciding_p(r, alpha),
            "verdict": name_verdict(r, alpha),
        })  # fmt: skip
    return {
        "title": title,
        "reference": reference,
        "rows": rows,
        "zero": locate(0.0),
        "ticks": [(locate(value), f"{value:+.6g}" if value else "0") for value in _list_ticks(low, high)],
        "confidence": Setting(results, alpha).interval_header.removesuffix("interval").strip() if any(known) else "",
    }


def _list_ticks(low: float, high: float) -> list[float]:
    """Return about four round numbers between two."""
    width = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(width))
    step = float(next(power * k for k in (1, 2, 5, 10) if power * k >= width))
    return [k * step for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]
