"""One comparison as a sentence: which system is better, whether it is significant, and by how much."""

from __future__ import annotations

import math

from sigdask.report.summary.amounts import format_amount
from sigdask.report.tables.cells import describe_method, format_confidence, is_bounded
from sigdask.results.columns.assumptions import format_deciding, pluralize
from sigdask.results.record import Result
from sigdask.statistics.rounding import format_limits, format_p_equals, format_score


def describe_comparison(r: Result, alpha: float, *, points: bool, where: str = "") -> str:
    """Return the outcome of a comparison as a sentence, without a full stop.

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
    describe_difference = (
        _describe_not_shown if r.alternative != "two-sided" and r.decision(alpha) is False else _describe_two_sided
    )
    return (
        f"{describe_difference(r, alpha, points, where)}{describe_doubt(r, alpha, points=points)}; "
        f"{format_verdict_p(r, alpha)}{describe_contradiction(r, alpha)}"
    )


INTERVALS = {
    "tango": "score", "bootstrap-bca": "bootstrap", "bootstrap-percentile": "bootstrap", "inversion": "inverted",
    "normal": "normal", "conditional-exact": "conditional exact",
}  # fmt: skip


def describe_contradiction(r: Result, alpha: float) -> str:
    """Return a clause if the interval and the test disagree on whether the difference can be 0, else "".

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
    test_kind = "adjusted" if is_adjusted else "exact" if r.method == "exact" else ""
    test = " ".join(filter(None, ["one-sided" if r.alternative != "two-sided" else "", test_kind, "test"]))
    return (
        f"; the {_name_interval(r, is_adjusted=is_adjusted, is_other=is_other)} interval "
        f"{'excludes' if excludes else 'contains'} 0, the {test} {'rejects' if decision else 'does not reject'}"
        f"{f' at {alpha:g}' if is_other else ''}"
    )


def _name_interval(r: Result, *, is_adjusted: bool, is_other: bool) -> str:
    """Return words for the kind of interval, with its confidence if that is not 1 minus the test's level."""
    if r.interval_simultaneous is not None or r.interval is None:
        return "simultaneous"
    sides = "two-sided " if r.alternative != "two-sided" and r.interval.method != "conditional-exact" else ""
    percent = f"{100 * r.interval.confidence:.4g} % " if is_other else ""
    return f"{'unadjusted ' if is_adjusted else ''}{percent}{sides}{INTERVALS[r.interval.method]}"


def _describe_two_sided(r: Result, alpha: float, points: bool, where: str) -> str:
    better, decision = r.better(), r.decision(alpha)
    if better is None:
        return f"{r.a} and {r.b} score the same on {r.metric}{where}, {format_score(r.score_a)}"
    other = r.b if better == r.a else r.a
    metric = r.metric + ("" if r.higher_is_better else " (lower is better)") + where
    if decision:
        return f"{better} is better than {other} on {metric} by {format_lead(r, points=points)}"
    lead_text = f"{better} is ahead by {format_lead(r, points=points)}"
    if decision is None:
        return f"Whether {better} is better than {other} on {metric} is undecided at {alpha:g}: {lead_text}"
    return f"{r.a} and {r.b} are not significantly different on {metric}: {lead_text}"


def _describe_not_shown(r: Result, _alpha: float, points: bool, where: str) -> str:
    """Return a sentence that the system is not significantly better in the direction that was tested."""
    tested, other = ("higher", "lower") if r.alternative == "greater" else ("lower", "higher")
    scores_text = (
        f"it scores {format_lead(r, points=points)} "
        f"{tested if (r.difference > 0) == (r.alternative == 'greater') else other}"
    )
    if r.difference == 0:
        scores_text = f"both score {format_score(r.score_a)}"
    return f"{r.a} does not score significantly {tested} than {r.b} on {r.metric}{where}: {scores_text}"


def describe_doubt(r: Result, alpha: float, *, points: bool) -> str:
    """Return a clause on what makes a verdict questionable, such as few deciding units; "" if nothing does.

    Parameters
    ----------
    r : Result
        The comparison.
    alpha : float
        Level of the verdict.
    points : bool
        Whether the difference is told in points of 100.
    """
    assumptions = {assumption.kind: assumption for assumption in r.assumptions}
    if (few_units := assumptions.get("few-units-decide")) is not None and few_units.n_deciding:
        text = format_deciding(few_units.n_deciding, r.n_units, r.unit)
        return f", but {text} it" if r.decision(alpha) else f", and {text} it"
    if "skewed-differences" in assumptions:
        return f", but the differences of {pluralize(r.unit)} are skewed"
    sign = assumptions.get("one-sign")
    if sign is None or sign.unseen_rate is None or not r.decision(alpha):
        return ""
    size = sign.cancelling_size
    lost = "" if size is None else f", and {format_amount(size, points=points)} lost on each would cancel it"
    none = f"with none of {r.n_units:,} {pluralize(r.unit, r.n_units)} against it"
    return f", {none} (at 95 % confidence up to {100 * sign.unseen_rate:.2g} % may be{lost})"


def format_verdict_p(r: Result, alpha: float) -> str:
    """Return the p that the verdict uses as text: the adjusted one, else p and how it was computed."""
    if math.isnan(r.p_value):
        return f"p in {format_limits(*r.p_interval, alpha)} ({format_confidence(r)} interval; {describe_method(r)})"
    if r.p_adjusted is not None and not math.isnan(r.p_adjusted):
        return f"adjusted {format_p_equals(r.p_adjusted, alpha)}"
    if is_bounded(r) and r.method != "exact":
        return f"p in {format_limits(*r.p_interval, alpha)} (bounds of the exact p)"
    return f"{format_p_equals(r.p_value, alpha)}{_format_sidedness(r)} ({describe_method(r)})"


def _format_sidedness(r: Result) -> str:
    return "" if r.alternative == "two-sided" else ", one-sided"


def format_lead(r: Result, *, points: bool) -> str:
    """Return by how much the better system is ahead as text, with an interval of this lead.

    Beside an adjusted p it is the simultaneous one. Where there is none, the comparison's own is called unadjusted.
    """
    interval, ends = r.interval_simultaneous, None
    unadjusted_text = (
        "" if r.p_adjusted is None or interval is not None or r.interval is None else " (interval unadjusted)"
    )
    if interval is None and r.interval is not None:
        interval = r.interval.low, r.interval.high
    if interval is not None:
        low, high = interval
        ends = (low, high) if r.difference > 0 or r.difference == 0 else (-high, -low)
    return format_amount(abs(r.difference), ends, points=points) + unadjusted_text
