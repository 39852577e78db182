"""Comparisons as a table: scores, differences with intervals, p, and marks for the verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from sigdask.report.layout import format_table
from sigdask.report.summary.amounts import format_interval_ends
from sigdask.report.tables.cells import describe_method, format_p_cell
from sigdask.results.record import Result
from sigdask.statistics.rounding import format_limits, format_score, format_signed
from sigdask.text import make_printable

SIGNIFICANT, UNDECIDED = "*", "?"
AGREES, DISAGREES, SKEWED = "✓", "!", "§"


def format_comparisons(
    results: Sequence[Result], alpha: float, width: int | None, *, points: frozenset[str], title: str = ""
) -> list[str]:
    """Return a table of comparisons with a legend of its marks, or nothing without comparisons.

    Parameters
    ----------
    results : sequence of Result
        The comparisons.
    alpha : float
        Level of the verdicts.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    points : frozenset of str
        Metrics whose differences are written in points of 100, as `find_metrics_in_points` returns them.
    title : str
        A line above the table.
    """
    if not results:
        return []
    columns = {name: column for name, column in _build_columns(results, alpha, points) if any(column)}
    if baseline_text := _describe_baseline(results):
        title = "\n".join([*filter(None, [title]), baseline_text])
        del columns["B"], columns["score B"]
    marks = [
        [_mark_verdict(r, alpha) for r in results],
        [_mark_check(r) for r in results],
        [_mark_skewed(r) for r in results],
    ]
    marks = marks if any(marks[-1]) else marks[:-1]
    names = [*columns, *("" for _ in marks)]
    rows = [list(row) for row in zip(*columns.values(), *marks, strict=True)]
    return ["\n".join([*filter(None, [title]), format_table(names, rows, width), _format_legend(results, alpha)])]


def _describe_baseline(results: Sequence[Result]) -> str:
    """Return a line with the name and score of the common system B, or "" if there is none or few rows."""
    all_b = {(r.b, r.metric, format_score(r.score_b)) for r in results}
    if len(all_b) > 1 or len(results) < 3:
        return ""
    [(name, metric, score)] = all_b
    return make_printable(f"B is {name}, {metric} {score}")


def _build_columns(results: Sequence[Result], alpha: float, points: frozenset[str]) -> list[tuple[str, list[str]]]:
    adjusted = any(r.p_adjusted is not None for r in results)
    sets, methods, metrics = (
        {get(r) for r in results} for get in (attrgetter("test_set"), describe_method, attrgetter("metric"))
    )
    is_simultaneous = any(r.interval_simultaneous is not None for r in results)
    confidence = (
        1 - alpha if is_simultaneous else next((r.interval.confidence for r in results if r.interval is not None), 0)
    )
    kind = "simultaneous " if is_simultaneous else "unadjusted " if adjusted else ""
    return [
        ("test set", [r.test_set if len(sets) > 1 else "" for r in results]),
        ("subset", [r.subset["value"] if r.subset else "" for r in results]),
        ("A", [r.a for r in results]),
        ("B", [r.b for r in results]),
        ("metric", [r.metric if len(metrics) > 1 or len(results) == 1 else "" for r in results]),
        ("score A", [format_score(r.score_a) for r in results]),
        ("score B", [format_score(r.score_b) for r in results]),
        ("A - B", [format_signed(r.difference) for r in results]),
        (
            f"{kind}{100 * confidence:.4g} % interval",
            [_format_interval(r, points, is_simultaneous=is_simultaneous) for r in results],
        ),
        ("unadjusted p" if adjusted else "p", [_format_p(r, alpha) for r in results]),
        ("adjusted p", [format_p_cell(r.p_adjusted, alpha) for r in results]),
        ("method", [describe_method(r) if len(methods) > 1 else "" for r in results]),
    ]


def _format_interval(r: Result, points: frozenset[str], *, is_simultaneous: bool) -> str:
    unadjusted = None if r.interval is None else (r.interval.low, r.interval.high)
    ends = r.interval_simultaneous if is_simultaneous else unadjusted
    return "" if ends is None else format_interval_ends(r.difference, *ends, points=r.metric in points)


def _format_p(r: Result, alpha: float) -> str:
    """Return p as text, or its lower and upper bound if early stopping determines no single value."""
    return format_limits(*r.p_interval, alpha) if math.isnan(r.p_value) else format_p_cell(r.p_value, alpha)


def _mark_verdict(r: Result, alpha: float) -> str:
    return {True: SIGNIFICANT, False: "", None: UNDECIDED}[r.decision(alpha)]


def _mark_check(r: Result) -> str:
    if r.disagreements():
        return DISAGREES
    return AGREES if any(check.verdict == "agrees" for check in r.checks) else ""


def _mark_skewed(r: Result) -> str:
    return SKEWED if any(assumption.kind == "skewed-differences" for assumption in r.assumptions) else ""


def _format_legend(results: Sequence[Result], alpha: float) -> str:
    """Return the meaning of the table's marks, and the method of p if it is the same for all."""
    verdicts, checks = (
        {_mark_verdict(r, alpha) for r in results},
        {_mark_check(r) for r in results} | {*map(_mark_skewed, results)},
    )
    meanings = [
        (SIGNIFICANT, f"significant at {alpha:g}"), (UNDECIDED, f"undecided at {alpha:g}"),
        (AGREES, "checks agree"), (DISAGREES, "a check disagrees"),
        (SKEWED, "few units decide, or their differences are skewed"),
    ]  # fmt: skip
    entries = [f"{mark} {text}" for mark, text in meanings if mark in verdicts | checks]
    if SIGNIFICANT not in verdicts and UNDECIDED not in verdicts:
        entries = [f"none significant at {alpha:g}", *entries]
    methods = {describe_method(r) for r in results}
    if len(methods) == 1:
        [method] = methods
        method_texts = {"exact": "p exact", "bounds": "p between bounds"}
        entries.append(method_texts.get(method, method if method.startswith("stopped") else f"p of {method}"))
    return "; ".join(entries)
