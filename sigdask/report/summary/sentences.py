"""Sentences about a comparison, and the line that makes results reproducible.

A sentence says which system is better, whether the difference is significant, and by how much: in points of 100 for
shares, else in the metric's own units.
"""

from __future__ import annotations

import math
import re

import numpy as np

from sigdask.metrics import SHARES
from sigdask.randomization.stream import SCHEME
from sigdask.report.summary.runs import describe_scope_of_runs
from sigdask.report.tables.cells import describe_method, format_ends, format_interval, is_bounded
from sigdask.report.wording import ADJUSTMENTS, ALTERNATIVES, INTERVAL_METHODS
from sigdask.results.comparisons import ComparisonResults, FamilyNote, get_version
from sigdask.results.record import OtherUnitResult, Result
from sigdask.results.table import Table
from sigdask.statistics.bounds import clopper_pearson
from sigdask.statistics.rounding import format_limits, format_p_equals, format_score, format_signed
from sigdask.text import format_count, make_printable


def describe_standing(r: Result, alpha: float) -> str:
    """Return a sentence on which system scores better, its p (adjusted where there is one) and verdict."""
    better = r.better()
    if better is None:
        return f"{r.a} and {r.b} score the same, {format_score(r.score_a)}."
    other, score, against = (r.b, r.score_a, r.score_b) if better == r.a else (r.a, r.score_b, r.score_a)
    verdict = r.verdict(alpha)
    words, aside = "is better than", ""
    if not r.decision(alpha):
        words = f"scores {'higher' if r.higher_is_better else 'lower'} than"
        aside = "" if r.higher_is_better else " (lower is better)"
    adjusted = "" if r.p_adjusted is None else f"; adjusted {format_adjusted_p(r, alpha)}"
    return (
        f"{better} {words} {other}, {format_score(score)} against {format_score(against)}{aside}; "
        f"{_format_p(r, alpha)} "
        f"({_describe_precision(r, alpha)}; {ALTERNATIVES[r.alternative].label}; "
        f"{r.n_discordant:,} of {format_count(r.n_units, 'unit')} "
        f"discordant){adjusted}: "
        f"{verdict}{'' if r.decision(alpha) is None else f' at {alpha:g}'}."
    )


def describe_p(result: Result, alpha: float) -> str:
    """Return text on p with its interval.

    Parameters
    ----------
    result : Result
        The comparison.
    alpha : float
        Level with which p is compared.
    """
    return f"{_format_p(result, alpha)} ({_describe_precision(result, alpha)})"


def _format_p(result: Result, alpha: float) -> str:
    label = "" if result.p_adjusted is None else "unadjusted "
    return f"{label}{format_p_equals(result.p_value, alpha, is_bound=result.is_bound)}"


def _describe_precision(result: Result, alpha: float) -> str:
    if result.method == "exact":
        return "exact"
    if is_bounded(result):
        return f"exact p between {format_limits(*result.p_interval, alpha)}"
    return f"99 % interval {format_limits(*result.p_interval, alpha)}; {describe_method(result)}"


def describe_size(r: Result) -> str:
    """Return the difference with its intervals and effect size."""
    interval_shown = r.interval
    assert interval_shown is not None
    noun = "trials" if interval_shown.method == "inversion" else "resamples"
    draws_text = "" if interval_shown.n_resamples is None else f", {interval_shown.n_resamples:,} {noun}"
    d = "" if r.paired_d is None else f"; paired d {r.paired_d:+.2f}"
    label = "" if r.p_adjusted is None else "unadjusted "
    limits = r.interval_simultaneous
    simultaneous_text = (
        "" if limits is None else f"; simultaneous interval {format_ends(*limits)} (studentised bootstrap)"
    )
    return (
        f"{r.a} - {r.b} = {format_signed(r.difference)}, {label}{100 * interval_shown.confidence:.4g} % interval "
        f"{format_interval(r)} "
        f"({INTERVAL_METHODS[interval_shown.method].name} by "
        f"{r.unit}{draws_text}){simultaneous_text}{d}"
    )


def describe_alternative_unit(b: OtherUnitResult, alpha: float) -> str:
    """Return text on the p-value of the test that swaps another unit, with its interval."""
    if b.method == "exact":
        return f"{format_p_equals(b.p_value, alpha)} (exact)"
    low, high = map(float, clopper_pearson(b.n_extreme, b.n_trials))
    limits = format_limits(low, high, alpha)
    return f"{format_p_equals(b.p_value, alpha)} (99 % interval {limits}; {format_count(b.n_trials, 'trial')})"


def describe_settings(results: ComparisonResults) -> str:
    """Return a line with the settings that reproduce the results: version, seed, unit, alternative, level."""
    family = results.family
    trials = f", {family.n_trials:,} {name_trials(family)}" if family is not None and family.n_trials else ""
    return f"sigdask {get_version()}, scheme {SCHEME}, seed {results.seed}, alpha {results.alpha:g}{trials}"


def describe_test(results: ComparisonResults) -> str:
    """Return a line with the test, its unit and alternative, and the adjustment of p."""
    table, note = results.table, results.family
    n = format_count(len(table), "comparison")
    adjustment = f"; p not adjusted for {n}" if len(table) > 1 else ""
    if note is not None:
        n = format_count(note.n_comparisons, "comparison")
        adjustment = f"; p adjusted by {ADJUSTMENTS[note.adjust].label} over {n}"
    return make_printable(
        f"test: stratified shuffling by {table.unit[0]}, {ALTERNATIVES[table.alternative[0]].label}{adjustment}"
    )


def describe_family_size(results: ComparisonResults, note: FamilyNote) -> str:
    """Return the number of comparisons that are adjusted together, as text."""
    by_metric = " by each metric" * (len(np.unique(results.table.metric.codes)) > 1)
    return f"{format_count(note.n_comparisons, 'comparison')}{by_metric}"


def name_trials(note: FamilyNote) -> str:
    """Return the word for what a family's p-values count: arrangements or trials."""
    return "arrangements" if note.exact else "trials"


def is_adjusted(table: Table) -> bool:
    """Return whether any p was adjusted."""
    return not bool(np.isnan(table.p_adjusted).all())


MAX_DECIMALS = 10

MAX_PLAIN = 1e16
"""Larger numbers are written in scientific notation."""


def find_metrics_in_points(table: Table) -> frozenset[str]:
    """Return the names of the metrics whose differences are written in points of 100.

    A column of scores may be called accuracy and be in per cent: a score above 1 is not a share.
    """
    largest = np.zeros(len(table.metric.values))
    for scores in (table.score_a, table.score_b):
        np.fmax.at(largest, table.metric.codes, np.abs(scores))
    large = {
        score.name for score, max_score in zip(table.metric.values, largest.tolist(), strict=True) if max_score > 1
    }
    return frozenset(score.name for score in table.metric.values if _is_share(score.name)) - large


def _is_share(name: str) -> bool:
    base = re.split(r"[\[:]", name, maxsplit=1)[0].casefold()
    return base in SHARES or base.startswith("pass@")


def format_amount(difference: float, ends: tuple[float, float] | None = None, *, points: bool) -> str:
    """Return the size of a difference as text, with its interval.

    Parameters
    ----------
    difference : float
        In the metric's units.
    ends : tuple of float, optional
        The interval's.
    points : bool
        Whether it is told in points of 100.

    Examples
    --------
    >>> format_amount(0.1226, (0.019, 0.2338), points=True), format_amount(0.6172, points=False)
    ('12.3 points [1.9, 23.4]', '0.62')
    >>> format_amount(1e300, points=False), format_amount(1e-300, (-1e-300, 3e-300), points=False)
    ('1e+300', '1e-300 [-1e-300, 3e-300]')
    """
    scale = 100 if points else 1
    low, high = ends or (math.nan, math.nan)
    n_decimals = _count_decimals(scale * difference, scale * (high - low))
    size = _format_decimals(scale * difference, n_decimals)
    size += "" if not points else " point" if float(size) == 1 else " points"
    if ends is not None and math.isinf(low) and math.isinf(high):
        return f"{size} (interval without bounds)"
    return size if ends is None else f"{size} {_format_bracketed(scale * low, scale * high, n_decimals)}"


def format_interval_ends(difference: float, low: float, high: float, *, points: bool) -> str:
    """Return the ends of an interval in the metric's units, with as many digits as `format_amount`.

    Examples
    --------
    >>> (format_interval_ends(0.1226, 0.019, 0.2338, points=True),
    ...  format_interval_ends(-1.5, -math.inf, math.inf, points=False))
    ('[0.019, 0.234]', '[no bounds]')
    """
    scale, extra_decimals = (100, 2) if points else (1, 0)
    return _format_bracketed(low, high, _count_decimals(scale * difference, scale * (high - low)) + extra_decimals)


def _format_bracketed(low: float, high: float, n_decimals: int) -> str:
    if math.isinf(low) and math.isinf(high):
        return "[no bounds]"
    return f"[{_format_end(low, n_decimals)}, {_format_end(high, n_decimals)}]"


def _format_end(value: float, n_decimals: int) -> str:
    """Return an end of an interval as text, with more decimals if it would otherwise be written as 0."""
    if math.isinf(value) or value == 0 or round(value, n_decimals) != 0:
        return _format_decimals(value, n_decimals)
    return _format_decimals(value, min(-math.floor(math.log10(abs(value))), MAX_DECIMALS))


def _format_decimals(value: float, n_decimals: int) -> str:
    is_hidden = value != 0 and n_decimals >= MAX_DECIMALS and round(value, n_decimals) == 0
    if not math.isfinite(value) or abs(value) >= MAX_PLAIN or is_hidden:
        return f"{value:.3g}"
    return f"{round(value, n_decimals) + 0.0:.{n_decimals}f}"


def _count_decimals(difference: float, width: float) -> int:
    """Return the number of decimals that shows two digits of a difference, or fewer if its interval is wide."""
    size = abs(difference)
    tenth = width / 10 if math.isfinite(width) else 0.0
    large = max(size, tenth)
    needed = 1 - math.floor(math.log10(large)) if large > 0 else 1
    if 0 < size < tenth:
        needed = max(needed, -math.floor(math.log10(size)))  # it is not written as 0
    return min(max(needed, 1), MAX_DECIMALS)


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
        Test set and subset, if there are several.

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
        return f"{r.a} and {r.b} do not differ on {metric}: the metric counts both alike on every {r.unit}"
    describe_difference = (
        _describe_not_shown
        if r.alternative != "two-sided" and r.decision(alpha) is False and not r.is_contested(alpha)
        else _describe_two_sided
    )
    standing = f"{describe_difference(r, alpha, points, where)}{describe_scope_of_runs(r, alpha)}"
    these_runs = "for these runs " if r.runs else ""
    return f"{standing}; {these_runs}{format_verdict_p(r, alpha)}{describe_contradiction(r, alpha)}"


def describe_contradiction(r: Result, alpha: float) -> str:
    """Return a clause if the interval and the test disagree on whether the difference can be 0, else "".

    A one-sided test is compared with the end of the interval on its side. A contested verdict says that there is doubt.
    """
    decision, ends, is_other = r.decision(alpha), r.interval_simultaneous, False
    if ends is None and r.interval is not None:
        ends = r.interval.low, r.interval.high
        is_other = abs(r.interval.confidence - (1 - alpha)) > 1e-9  # rounding of 1 - 0.95
    if ends is None or decision is None or r.runs is not None or r.is_contested(alpha):
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
    return f"{'unadjusted ' if is_adjusted else ''}{percent}{sides}{INTERVAL_METHODS[r.interval.method].kind}"


def _describe_two_sided(r: Result, alpha: float, points: bool, where: str) -> str:
    better, decision = r.better(), r.decision(alpha)
    if better is None:
        return f"{r.a} and {r.b} score the same on {r.metric}{where}, {format_score(r.score_a)}"
    other = r.b if better == r.a else r.a
    metric = r.metric + ("" if r.higher_is_better else " (lower is better)") + where
    if decision and not r.is_contested(alpha):
        return f"{better} is better than {other} on {metric} by {format_lead(r, points=points)}"
    lead_text = f"{better} is ahead by {format_lead(r, points=points)}"
    if r.is_contested(alpha):
        return f"Whether {better} is better than {other} on {metric} is contested: {lead_text}"
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


def format_verdict_p(r: Result, alpha: float) -> str:
    """Return the p that the verdict uses as text: the adjusted one, else p and how it was computed.

    If the verdict is contested, the p of the equal-score test and the cause follow.
    """
    contested = _format_equal_score_p(r, alpha) if r.is_contested(alpha) else ""
    if r.p_adjusted is not None and not math.isnan(r.p_adjusted):
        return f"adjusted {format_adjusted_p(r, alpha)}{contested}"
    if is_bounded(r) and r.method != "exact":
        return f"p in {format_limits(*r.p_interval, alpha)} (bounds of the exact p){contested}"
    p_text = format_p_equals(r.p_value, alpha, is_bound=r.is_bound)
    return f"{p_text}{_format_sidedness(r)} ({describe_method(r)}){contested}"


def format_adjusted_p(r: Result, alpha: float) -> str:
    """Return the adjusted p as text."""
    assert r.p_adjusted is not None
    return format_p_equals(r.p_adjusted, alpha, is_bound=r.is_adjusted_bound)


def _format_equal_score_p(r: Result, alpha: float) -> str:
    """Return the p of the equal-score test of a contested comparison, and why the two tests differ."""
    test = r.equal_scores
    assert test is not None
    p = test.p_value if r.p_adjusted is None or test.p_adjusted is None else test.p_adjusted
    assert p is not None
    cause = f" ({test.cause})" if test.cause else ""
    return f", but {format_p_equals(p, alpha)} in the equal-score test{cause}"


def _format_sidedness(r: Result) -> str:
    return "" if r.alternative == "two-sided" else ", one-sided"


def format_lead(r: Result, *, points: bool) -> str:
    """Return by how much the better system is ahead as text, with an interval of this lead.

    Next to an adjusted p, the interval is simultaneous. If there is none, the comparison's own interval is called
    unadjusted.
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
