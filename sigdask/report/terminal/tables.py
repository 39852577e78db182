"""Comparisons as a table: scores, differences with intervals, p, and marks for what that means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter

from sigdask.report.layout import lay_out
from sigdask.report.summary.amounts import ends_text
from sigdask.report.tables.cells import how, p_cell
from sigdask.results.record import Result
from sigdask.statistics.rounding import limits_text, score_text, signed
from sigdask.text import printable

SIGNIFICANT, UNDECIDED = "*", "?"
AGREES, DISAGREES, SKEWED = "✓", "!", "§"


def text(
    shown: Sequence[Result], alpha: float, width: int | None, *, points: frozenset[str], title: str = ""
) -> list[str]:
    """Return a table of comparisons with what its marks mean; nothing of none.

    Parameters
    ----------
    shown : sequence of Result
        The comparisons.
    alpha : float
        Level of the verdicts.
    width : int or None
        Columns of the terminal; unlimited when None (a pipe).
    points : frozenset of str
        Metrics whose differences are told in points of 100, as `in_points` has them.
    title : str
        A line above the table.
    """
    if not shown:
        return []
    columns = {name: column for name, column in _columns(shown, alpha, points) if any(column)}
    if base := _baseline(shown):
        title = "\n".join([*filter(None, [title]), base])
        del columns["B"], columns["score B"]
    marks = [[_verdict(r, alpha) for r in shown], [_check(r) for r in shown], [_skewed(r) for r in shown]]
    marks = marks if any(marks[-1]) else marks[:-1]
    names = [*columns, *("" for _ in marks)]
    rows = [list(row) for row in zip(*columns.values(), *marks, strict=True)]
    return ["\n".join([*filter(None, [title]), lay_out(names, rows, width), _legend(shown, alpha)])]


def _baseline(shown: Sequence[Result]) -> str:
    """Return a line on the one system that all others are compared with; empty where there is none, or few others."""
    all_b = {(r.b, r.metric, score_text(r.score_b)) for r in shown}
    if len(all_b) > 1 or len(shown) < 3:
        return ""
    [(name, metric, score)] = all_b
    return printable(f"B is {name}, {metric} {score}")


def _columns(shown: Sequence[Result], alpha: float, points: frozenset[str]) -> list[tuple[str, list[str]]]:
    adjusted = any(r.p_adjusted is not None for r in shown)
    sets, methods, metrics = ({get(r) for r in shown} for get in (attrgetter("test_set"), how, attrgetter("metric")))
    together = any(r.interval_simultaneous is not None for r in shown)
    sure = 1 - alpha if together else next((r.interval.confidence for r in shown if r.interval is not None), 0)
    kind = "simultaneous " if together else "unadjusted " if adjusted else ""
    return [
        ("test set", [r.test_set if len(sets) > 1 else "" for r in shown]),
        ("subset", [r.subset["value"] if r.subset else "" for r in shown]),
        ("A", [r.a for r in shown]),
        ("B", [r.b for r in shown]),
        ("metric", [r.metric if len(metrics) > 1 or len(shown) == 1 else "" for r in shown]),
        ("score A", [score_text(r.score_a) for r in shown]),
        ("score B", [score_text(r.score_b) for r in shown]),
        ("A - B", [signed(r.difference) for r in shown]),
        (f"{kind}{100 * sure:.4g} % interval", [_interval(r, points, together=together) for r in shown]),
        ("unadjusted p" if adjusted else "p", [_p(r, alpha) for r in shown]),
        ("adjusted p", [p_cell(r.p_adjusted, alpha) for r in shown]),
        ("method", [how(r) if len(methods) > 1 else "" for r in shown]),
    ]


def _interval(r: Result, points: frozenset[str], *, together: bool) -> str:
    alone = None if r.interval is None else (r.interval.low, r.interval.high)
    own = r.interval_simultaneous if together else alone
    return "" if own is None else ends_text(r.difference, *own, points=r.metric in points)


def _p(r: Result, alpha: float) -> str:
    """Write p, or between what it lies where a rule to stop early gives no more."""
    return limits_text(*r.p_interval, alpha) if math.isnan(r.p_value) else p_cell(r.p_value, alpha)


def _verdict(r: Result, alpha: float) -> str:
    return {True: SIGNIFICANT, False: "", None: UNDECIDED}[r.decision(alpha)]


def _check(r: Result) -> str:
    if r.disagreements():
        return DISAGREES
    return AGREES if any(check.verdict == "agrees" for check in r.checks) else ""


def _skewed(r: Result) -> str:
    return SKEWED if any(one.kind == "skewed-differences" for one in r.assumptions) else ""


def _legend(shown: Sequence[Result], alpha: float) -> str:
    """Say what the marks that stand in a table mean, and how its p were had where all were had alike."""
    verdicts, checks = {_verdict(r, alpha) for r in shown}, {_check(r) for r in shown} | {*map(_skewed, shown)}
    means = [
        (SIGNIFICANT, f"significant at {alpha:g}"), (UNDECIDED, f"undecided at {alpha:g}"),
        (AGREES, "checks agree"), (DISAGREES, "a check disagrees"),
        (SKEWED, "few units decide, or their differences are skewed"),
    ]  # fmt: skip
    said = [f"{mark} {text}" for mark, text in means if mark in verdicts | checks]
    if SIGNIFICANT not in verdicts and UNDECIDED not in verdicts:
        said = [f"none significant at {alpha:g}", *said]
    methods = {how(r) for r in shown}
    if len(methods) == 1:
        [method] = methods
        known = {"exact": "p exact", "bounds": "p between bounds"}
        said.append(known.get(method, method if method.startswith("stopped") else f"p of {method}"))
    return "; ".join(said)
