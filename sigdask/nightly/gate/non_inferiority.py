"""The rule of non-inferiority: every system is shown to be worse by less than a margin, if at all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import scipy

from sigdask.analysis.comparison.margins import MarginResult
from sigdask.errors import InputError
from sigdask.nightly.gate.rules import (
    POWER,
    CoveredComparison,
    GateContext,
    NonInferior,
    RuleFinding,
    RuleVerdict,
    describe_scope,
    describe_since,
    format_rule_name,
    get_key,
    sort_findings,
)
from sigdask.statistics.rounding import format_p_equals, format_upper_limit


def judge_within_margin(rule: NonInferior, covered: Sequence[CoveredComparison], basis: GateContext) -> RuleVerdict:
    """Return whether every system is shown to be within the margin, with a finding for each."""
    findings, powers = [], []
    for c in covered:
        margin_result = _get_margin_result(rule, c, basis)
        since = basis.evidence.first_failures.get((format_rule_name(rule), get_key(c.result)))
        findings.append(_build_finding(rule, c, margin_result, basis.get_spread(c.result), since))
        powers.append(compute_power(rule, margin_result, c.result.n_units, basis.get_spread(c.result)))
    known_powers = [power for power in powers if power is not None]
    power = math.prod(known_powers)
    return RuleVerdict(
        rule=rule,
        name=format_rule_name(rule),
        passed=all(f.passed for f in findings),
        p_value=max(f.p_value for f in findings),
        level=rule.alpha,
        findings=sort_findings(findings),
        alarms_per_year=basis.runs_per_year * (1 - power),
        notes=(*_describe_power(power, len(known_powers), len(powers)), *_describe_wide_margin(rule, covered)),
        n_doubtful=sum(
            f.passed and _get_margin_result(rule, c, basis).is_doubtful for f, c in zip(findings, covered, strict=True)
        ),
    )


def _get_margin_result(rule: NonInferior, c: CoveredComparison, basis: GateContext) -> MarginResult:
    margin_result = basis.evidence.margin_results.get((rule, get_key(c.result)))
    if margin_result is None:
        raise InputError(f"gate: non-inferiority of {c.system} to {c.baseline} by {describe_scope(c)} was not tested")
    return margin_result


def _describe_wide_margin(rule: NonInferior, covered: Sequence[CoveredComparison]) -> Iterator[str]:
    """Yield a warning if the margin is so wide that a system that scores 0 would be within it."""
    for c in covered:
        baseline = c.result.score_b if c.result.b == c.baseline else c.result.score_a
        if c.result.higher_is_better and 0 < baseline <= rule.margin:
            yield (
                f"the margin {rule.margin:g} is at least the score of {c.baseline}, {baseline:.4g} by "
                f"{describe_scope(c)}: a system that scores 0 would be within it"
            )
            return


def _build_finding(
    rule: NonInferior, c: CoveredComparison, margin_result: MarginResult, sd: float | None, since: int | None
) -> RuleFinding:
    is_whole = margin_result.matched is not None and rule.margin >= margin_result.matched.worth
    passed = margin_result.p_value <= rule.alpha and not is_whole
    since = None if passed else since
    range_text = ""
    if is_whole:
        words = (
            "every system is within a margin as wide as the range of scores: give the margin on the metric's own scale"
        )
        range_text = f"; {words}"
    equal_margin = compute_equal_margin(rule, margin_result, c.result.n_units, sd)
    text = (
        f"{c.system} is {'' if passed else 'not '}shown non-inferior to {c.baseline} within {rule.margin:g} by "
        f"{describe_scope(c)}: "
        f"{c.gain:+.4g}, {format_p_equals(margin_result.p_value, rule.alpha)} ({margin_result.method})"
    )
    return RuleFinding(
        key=get_key(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=margin_result.p_value,
        passed=passed,
        detectable=equal_margin,
        text=f"{text}{range_text}{_describe_smallest(rule, margin_result.smallest_margin)}"
        f"{_describe_equal(equal_margin)}{describe_since(since)}",
        method=margin_result.method,
        smallest_margin=margin_result.smallest_margin,
        n_better=None if margin_result.matched is None else margin_result.matched.wins,
        n_worse=None if margin_result.matched is None else margin_result.matched.losses,
        level=rule.alpha,
        since=since,
    )


def _describe_smallest(rule: NonInferior, smallest: float | None) -> str:
    if smallest is None or math.isinf(smallest):
        return ""
    return f"; smallest margin for which this is shown: {format_upper_limit(smallest, level=rule.margin)}"


def _describe_equal(equal_margin: float | None) -> str:
    if equal_margin is None:
        return ""
    if math.isinf(equal_margin):
        return "; with so few units or trials nothing can be shown"
    return f"; an equal system would be shown within {format_upper_limit(equal_margin)} with power {POWER:g}"


def _describe_power(power: float, n_known: int, n: int) -> Iterator[str]:
    if n_known:
        text = f"systems equal to the baseline would all pass with a probability of about {power:.3g}"
        yield f"{text}; a larger margin or more items raise it"
    if n_known < n:
        yield f"of {n - n_known} comparisons this probability is unknown, because no swap changes their scores"


def compute_equal_margin(
    rule: NonInferior, margin_result: MarginResult, n_units: int, sd: float | None
) -> float | None:
    """Return the margin within which a system equal to the baseline would be shown with power 0.8.

    Infinite if no p-value can reach the level. None if the spread of differences is unknown.
    """
    if margin_result.matched is not None:
        return margin_result.matched.find_margin_of_power(POWER, rule.alpha)
    if compute_smallest_p(margin_result, n_units) > rule.alpha:
        return math.inf
    return float(scipy.special.ndtri(1 - rule.alpha) + scipy.special.ndtri(POWER)) * sd if sd else None


def compute_power(rule: NonInferior, margin_result: MarginResult, n_units: int, sd: float | None) -> float | None:
    """Return the probability that a system equal to the baseline is shown within the margin.

    0 if no p-value can reach the level. None if the spread of differences is unknown.
    """
    if margin_result.matched is not None:
        return margin_result.matched.compute_power(rule.margin, rule.alpha)
    if compute_smallest_p(margin_result, n_units) > rule.alpha:
        return 0.0
    return float(scipy.special.ndtr(rule.margin / sd - scipy.special.ndtri(1 - rule.alpha))) if sd else None


def compute_smallest_p(margin_result: MarginResult, n_units: int) -> float:
    """Return the smallest p-value that a swap test can have with these numbers of units and trials."""
    return max(2.0**-n_units, 0.0 if margin_result.n_trials is None else 1 / (margin_result.n_trials + 1))
