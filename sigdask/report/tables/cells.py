"""Table cells: intervals, p-values, letters, and how p was computed."""

from __future__ import annotations

import math

import numpy as np

from sigdask.counts.fields import Bools, Floats
from sigdask.report.wording import INTERVAL_METHODS
from sigdask.results.ranking import SystemRanking
from sigdask.results.record import Result
from sigdask.statistics.rounding import format_p, format_signed
from sigdask.text import format_count

GROUPING_MEANINGS = {
    "letters": "systems that share a letter are not significantly different",
    "clusters": "systems have the numbers of their clusters; the ranks of different clusters do not overlap",
    "tied": "= not significantly different from the best",
    "ranks": "possible ranks contradict no significant difference; = not significantly different from the best",
}
"""Meaning of the marks of rankings, by the option `grouping`."""

GROUPING_HEADERS = {"letters": "groups", "clusters": "cluster", "tied": "tied with best", "ranks": "possible ranks"}
"""Headers of columns of marks, by the option `grouping`."""

NOISE = 1e-12
"""An interval's end is taken for 0 if it is below this share of the other end."""


def format_p_cell(p: float | None, alpha: float, *, is_bound: bool = False) -> str:
    """Return p for a table cell; empty where there is none."""
    return "" if p is None or math.isnan(p) else format_p(p, alpha, is_bound=is_bound)


def mark_bounds(p: Floats, low: Floats, exact: Bools | bool = False) -> Floats:
    """Return p-values with a negative sign where they are the smallest that the trials allow: no trial was extreme."""
    return np.where((low == 0) & np.logical_not(exact), -p, p)


def format_marked_p(p: float, alpha: float) -> str:
    """Return a p of `mark_bounds` for a table cell; empty where there is none."""
    return format_p_cell(abs(p), alpha, is_bound=p < 0)


def describe_method(result: Result) -> str:
    """Return text on how p was computed: exactly, by bounds, or from a number of trials."""
    if result.method == "exact":
        return "exact"
    return "bounds" if is_bounded(result) else format_count(result.n_trials, "trial")


def is_bounded(result: Result) -> bool:
    """Return whether a p-value was computed only as bounds, without trials."""
    return result.exact is not None and not result.n_trials


def format_interval(r: Result) -> str:
    """Return the limits of the difference's interval; empty where there is none."""
    return "" if r.interval is None else format_ends(r.interval.low, r.interval.high)


def format_ends(low: float, high: float) -> str:
    """Return interval limits as text."""
    finite = [abs(end) for end in (low, high) if math.isfinite(end)]
    low, high = (0.0 if abs(end) < NOISE * max(finite, default=0.0) else end for end in (low, high))
    return "without bound" if math.isinf(low) and math.isinf(high) else f"[{format_signed(low)}, {format_signed(high)}]"


def format_interval_cell(r: Result) -> str:
    """Return the difference's interval and its method for a table cell; empty where there is none."""
    if r.interval is None:
        return ""
    label = "" if r.p_adjusted is None else "unadjusted, "
    return (
        f"{format_interval(r)} ({label}{100 * r.interval.confidence:.4g} %, {INTERVAL_METHODS[r.interval.method].name})"
    )


def format_groups(ranking: SystemRanking) -> list[str]:
    """Return the mark of each system: its letters, cluster, "=" if tied with the best, or range of ranks."""
    systems = ranking.systems
    match ranking.grouping:
        case "letters":
            return [("" if all(len(x) == 1 for x in r.letters) else " ").join(r.letters) for r in systems]
        case "clusters":
            return [str(number) for number in ranking.clusters or [r.cluster for r in systems]]
        case "tied":
            return ["=" if r.tied_with_best else "" for r in systems]
    return [f"{r.rank_low}–{r.rank_high}{'=' if r.tied_with_best else ''}" for r in systems]


def explain_group_marks(ranking: SystemRanking) -> str:
    """Return a clause that explains the output of `format_groups`."""
    meaning = GROUPING_MEANINGS[ranking.grouping]
    return meaning if ranking.clusters is None else meaning.replace("systems", "metrics")
