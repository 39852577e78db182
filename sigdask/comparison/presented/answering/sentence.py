"""One comparison as a sentence: which is better, is it real, by how much and how sure."""

from __future__ import annotations

import math

from sigdask.comparison.found.assumptions import deciding_text, plural
from sigdask.comparison.found.result import Result
from sigdask.comparison.presented.answering.amounts import amount
from sigdask.comparison.presented.cells import confidence, how, is_bounded, score_text
from sigdask.statistics.rounding import limits_text, p_equals


def sentence(r: Result, alpha: float, *, points: bool, where: str = "") -> str:
    """Return what a comparison says, without a full stop.

    Parameters
    ----------
    r : Result
        The comparison.
    alpha : float
        Level of the verdict.
    points : bool
        Whether the difference is told in points of 100.
    where : str
        What of several test sets or subsets it is of.

    Examples
    --------
    "I is better than II on f1 by 12.3 points [1.9, 23.4]; p = 0.0296 (exact)"
    """
    metric = r.metric + where
    if math.isnan(r.difference):
        return f"{r.a} and {r.b} cannot be compared on {metric}: a score is missing"
    if r.n_trials == 0 and r.exact is None and r.method != "exact":
        return f"{r.a} and {r.b} are not compared yet on {metric}: no trial is counted"
    if r.n_discordant == 0:
        return f"{r.a} and {r.b} are the same on {metric}: no {r.unit} differs in what it counts"
    said = _not_shown if r.alternative != "two-sided" and r.decision(alpha) is False else _two_sided
    return f"{said(r, alpha, points, where)}{doubt(r, alpha, points=points)}; {chance(r, alpha)}"


def _two_sided(r: Result, alpha: float, points: bool, where: str) -> str:
    better, decision = r.better(), r.decision(alpha)
    if better is None:
        return f"{r.a} and {r.b} score the same on {r.metric}{where}, {score_text(r.score_a)}"
    other = r.b if better == r.a else r.a
    metric = r.metric + ("" if r.higher_is_better else " (lower is better)") + where
    if decision:
        return f"{better} is better than {other} on {metric} by {lead(r, points=points)}"
    ahead = f"{better} is ahead by {lead(r, points=points)}"
    if decision is None:
        return f"Whether {better} is better than {other} on {metric} is undecided at {alpha:g}: {ahead}"
    return f"{r.a} and {r.b} are not significantly different on {metric}: {ahead}"


def _not_shown(r: Result, _alpha: float, points: bool, where: str) -> str:
    """Say that the direction tested was not shown, whichever is the better one."""
    tested, other = ("higher", "lower") if r.alternative == "greater" else ("lower", "higher")
    own = (
        f"it scores {lead(r, points=points)} {tested if (r.difference > 0) == (r.alternative == 'greater') else other}"
    )
    if r.difference == 0:
        own = f"both score {score_text(r.score_a)}"
    return f"{r.a} does not score significantly {tested} than {r.b} on {r.metric}{where}: {own}"


def doubt(r: Result, alpha: float, *, points: bool) -> str:
    """Return the clause on the units that decide a comparison, on skewed differences, or on losses that none shows.

    Parameters
    ----------
    r : Result
        The comparison.
    alpha : float
        Level of the verdict.
    points : bool
        Whether the difference is told in points of 100.
    """
    found = {one.kind: one for one in r.assumptions}
    if (few := found.get("few-units-decide")) is not None and few.n_deciding:
        text = deciding_text(few.n_deciding, r.n_units, r.unit)
        return f", but {text} it" if r.decision(alpha) else f", and {text} it"
    if "skewed-differences" in found:
        return f", but the differences of {plural(r.unit)} are skewed"
    sign = found.get("one-sign")
    if sign is None or sign.unseen_rate is None or not r.decision(alpha):
        return ""
    size = sign.cancelling_size
    lost = "" if size is None else f", and {amount(size, points=points)} lost on each would cancel it"
    none = f"with none of {r.n_units:,} {plural(r.unit)} against it"
    return f", {none} (at 95 % confidence up to {100 * sign.unseen_rate:.2g} % may be{lost})"


def chance(r: Result, alpha: float) -> str:
    """Write the p that the verdict is of: the adjusted one where there is one, else p and how it was had."""
    if math.isnan(r.p_value):
        return f"p in {limits_text(*r.p_interval, alpha)} ({confidence(r)} interval; {how(r)})"
    if r.p_adjusted is not None and not math.isnan(r.p_adjusted):
        return f"adjusted {p_equals(r.p_adjusted, alpha)}"
    if is_bounded(r):
        return f"p in {limits_text(*r.p_interval, alpha)} (bounds of the exact p)"
    return f"{p_equals(r.p_value, alpha)}{_sided(r)} ({how(r)})"


def _sided(r: Result) -> str:
    return "" if r.alternative == "two-sided" else ", one-sided"


def lead(r: Result, *, points: bool) -> str:
    """Write by how much the better system is ahead; the interval is of its lead, whichever side of it is A."""
    ends = None
    if r.interval is not None:
        low, high = r.interval.low, r.interval.high
        ends = (low, high) if r.difference > 0 or r.difference == 0 else (-high, -low)
    return amount(abs(r.difference), ends, points=points)
