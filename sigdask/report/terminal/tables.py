"""Comparisons as a table: scores, differences with intervals, p, and marks for what that means."""

from __future__ import annotations

from collections.abc import Sequence

from sigdask.comparison.found.result import Result
from sigdask.comparison.presented.cells import how, interval_text, p_cell, score_text, signed
from sigdask.report.layout import lay_out

SIGNIFICANT, UNDECIDED = "*", "?"
AGREES, DISAGREES = "✓", "!"


def text(shown: Sequence[Result], alpha: float, width: int | None, *, title: str = "") -> list[str]:
    """Return a table of comparisons with what its marks mean; nothing of none."""
    if not shown:
        return []
    columns = {name: column for name, column in _columns(shown, alpha) if any(column)}
    marks = [[_verdict(r, alpha) for r in shown], [_check(r) for r in shown]]
    names = [*columns, *("" for _ in marks)]
    rows = [list(row) for row in zip(*columns.values(), *marks, strict=True)]
    return ["\n".join([*filter(None, [title]), lay_out(names, rows, width), _legend(shown, alpha)])]


def _columns(shown: Sequence[Result], alpha: float) -> list[tuple[str, list[str]]]:
    adjusted = any(r.p_adjusted is not None for r in shown)
    sets, methods = {r.test_set for r in shown}, {how(r) for r in shown}
    sure = next((r.interval.confidence for r in shown if r.interval is not None), 0)
    return [
        ("test set", [r.test_set if len(sets) > 1 else "" for r in shown]),
        ("subset", [r.subset["value"] if r.subset else "" for r in shown]),
        ("A", [r.a for r in shown]),
        ("B", [r.b for r in shown]),
        ("metric", [r.metric for r in shown]),
        ("score A", [score_text(r.score_a) for r in shown]),
        ("score B", [score_text(r.score_b) for r in shown]),
        ("A - B", [signed(r.difference) for r in shown]),
        (f"{100 * sure:.4g} % interval", [interval_text(r) for r in shown]),
        ("unadjusted p" if adjusted else "p", [p_cell(r.p_value, alpha) for r in shown]),
        ("adjusted p", [p_cell(r.p_adjusted, alpha) for r in shown]),
        ("method", [how(r) if len(methods) > 1 else "" for r in shown]),
    ]


def _verdict(r: Result, alpha: float) -> str:
    return {True: SIGNIFICANT, False: "", None: UNDECIDED}[r.decision(alpha)]


def _check(r: Result) -> str:
    if r.disagreements():
        return DISAGREES
    return AGREES if any(check.verdict == "agrees" for check in r.checks) else ""


def _legend(shown: Sequence[Result], alpha: float) -> str:
    """Say what the marks that stand in a table mean, and how its p were had where all were had alike."""
    verdicts, checks = {_verdict(r, alpha) for r in shown}, {_check(r) for r in shown}
    means = [
        (SIGNIFICANT, f"significant at {alpha:g}"), (UNDECIDED, f"undecided at {alpha:g}"),
        (AGREES, "checks agree"), (DISAGREES, "a check disagrees"),
    ]  # fmt: skip
    said = [f"{mark} {text}" for mark, text in means if mark in verdicts | checks]
    if SIGNIFICANT not in verdicts and UNDECIDED not in verdicts:
        said = [f"none significant at {alpha:g}", *said]
    methods = {how(r) for r in shown}
    if len(methods) == 1:
        [method] = methods
        said.append("p exact" if method == "exact" else "p between bounds" if method == "bounds" else f"p of {method}")
    return "; ".join(said)
