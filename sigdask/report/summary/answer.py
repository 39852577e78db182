"""One comparison as a sentence: which is better, is it real, by how much and how sure."""

from __future__ import annotations

import math

from sigdask.report.summary.amounts import amount
from sigdask.report.tables.cells import confidence, how, is_bounded
from sigdask.results.columns.assumptions import deciding_text, plural
from sigdask.results.record import Result
from sigdask.statistics.rounding import limits_text, p_equals, score_text


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
        return f"{r.a} and {r.b} do not differ on {metric}: no {r.unit} differs in what it counts"
    said = _not_shown if r.alternative != "two-sided" and r.decision(alpha) is False else _two_sided
    return (
        f"{said(r, alpha, points, where)}{doubt(r, alpha, points=points)}; {chance(r, alpha)}{contradiction(r, alpha)}"
    )


INTERVALS = {
    "tango": "score", "bootstrap-bca": "bootstrap", "bootstrap-percentile": "bootstrap", "inversion": "inverted",
    "normal": "normal", "conditional-exact": "conditional exact",
}  # fmt: skip


def contradiction(r: Result, alpha: float) -> str:
    """Say that interval and test disagree about a difference of 0; nothing where they agree.

    A one-sided test is held against the end of the interval that lies on its side.
    """
    decision, ends, is_other = r.decision(alpha), r.interval_simultaneous, False
    if ends is None and r.interval is not None:
        ends = r.interval.low, r.interval.high
        is_other = abs(r.interval.confidence - (1 - alpha)) > 1e-9  # rounding of 1 - 0.95
    if ends is None or decision is None:
        return ""
    low, high = ends
    excludes = {"two-sided": low > 0 or high < 0, "greater": low > 0, "less": high < 0}[r.alternative]
    if excludes == decision:
        return ""
    is_adjusted = r.p_adjusted is not None and not math.isnan(r.p_adjusted)
    of_test = "adjusted" if is_adjusted else "exact" if r.method == "exact" else ""
    test = " ".join(filter(None, ["one-sided" if r.alternative != "two-sided" else "", of_test, "test"]))
    return (
        f"; the {_shown_interval(r, is_adjusted=is_adjusted, is_other=is_other)} interval "
        f"{'excludes' if excludes else 'contains'} 0, the {test} {'rejects' if decision else 'does not reject'}"
        f"{f' at {alpha:g}' if is_other else ''}"
    )


def _shown_interval(r: Result, *, is_adjusted: bool, is_other: bool) -> str:
    """Name the interval that a sentence shows, with its confidence where that is not of the test's level."""
    if r.interval_simultaneous is not None or r.interval is None:
        return "simultaneous"
    sides = "two-sided " if r.alternative != "two-sided" and r.interval.method != "conditional-exact" else ""
    percent = f"{100 * r.interval.confidence:.4g} % " if is_other else ""
    return f"{'unadjusted ' if is_adjusted else ''}{percent}{sides}{INTERVALS[r.interval.method]}"


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
    none = f"with none of {r.n_units:,} {plural(r.unit, r.n_units)} against it"
    return f", {none} (at 95 % confidence up to {100 * sign.unseen_rate:.2g} % may be{lost})"


def chance(r: Result, alpha: float) -> str:
    """Write the p that the verdict is of: the adjusted one where there is one, else p and how it was had."""
    if math.isnan(r.p_value):
        return f"p in {limits_text(*r.p_interval, alpha)} ({confidence(r)} interval; {how(r)})"
    if r.p_adjusted is not None and not math.isnan(r.p_adjusted):
        return f"adjusted {p_equals(r.p_adjusted, alpha)}"
    if is_bounded(r) and r.method != "exact":
        return f"p in {limits_text(*r.p_interval, alpha)} (bounds of the exact p)"
    return f"{p_equals(r.p_value, alpha)}{_sided(r)} ({how(r)})"


def _sided(r: Result) -> str:
    return "" if r.alternative == "two-sided" else ", one-sided"


def lead(r: Result, *, points: bool) -> str:
    """Write by how much the better system is ahead; the interval is of its lead, whichever side of it is A.

    Beside an adjusted p it is the simultaneous one. Where there is none, the comparison's own is called unadjusted.
    """
    own, ends = r.interval_simultaneous, None
    alone = "" if r.p_adjusted is None or own is not None or r.interval is None else " (interval unadjusted)"
    if own is None and r.interval is not None:
        own = r.interval.low, r.interval.high
    if own is not None:
        low, high = own
        ends = (low, high) if r.difference > 0 or r.difference == 0 else (-high, -low)
    return amount(abs(r.difference), ends, points=points) + alone
