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
    tests = [_get_margin_result(rule, c, basis) for c in covered]
    findings = [_build_finding(rule, c, test, basis) for c, test in zip(covered, tests, strict=True)]
    powers = [
        compute_power(rule, test, c.result.n_units, basis.get_spread(c.result))
        for c, test in zip(covered, tests, strict=True)
    ]
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
        notes=tuple(_describe_power(power, len(known_powers), len(powers))),
        n_doubtful=sum(f.passed and test.is_doubtful for f, test in zip(findings, tests, strict=True)),
    )


def _get_margin_result(rule: NonInferior, c: CoveredComparison, basis: GateContext) -> MarginResult:
    margin_result = basis.evidence.margin_results.get((rule, get_key(c.result)))
    if margin_result is None:
        raise InputError(f"gate: non-inferiority of {c.system} to {c.baseline} by {describe_scope(c)} was not tested")
    return margin_result


def _build_finding(rule: NonInferior, c: CoveredComparison, test: MarginResult, basis: GateContext) -> RuleFinding:
    is_whole = test.matched is not None and rule.margin >= test.matched.worth
    passed = test.p_value <= rule.alpha and not is_whole
    since = None if passed else basis.find_first_failure(rule, c)
    equal_margin = compute_equal_margin(rule, test, c.result.n_units, basis.get_spread(c.result))
    standing = f"{'' if passed else 'not '}shown non-inferior to {c.baseline} within {rule.margin:g}"
    p_text = format_p_equals(test.p_value, rule.alpha)
    clauses = [f"{c.system} is {standing} by {describe_scope(c)}: {c.gain:+.4g}, {p_text} ({test.method})"]
    if is_whole:
        clauses.append(
            "every system is within a margin as wide as the range of scores: give the margin on the metric's own scale"
        )
    if test.smallest_margin is not None and math.isfinite(test.smallest_margin):
        smallest = format_upper_limit(test.smallest_margin, level=rule.margin)
        clauses.append(f"smallest margin for which this is shown: {smallest}")
    if equal_margin is not None and math.isinf(equal_margin):
        clauses.append("with so few units or trials nothing can be shown")
    elif equal_margin is not None:
        shown_within = format_upper_limit(equal_margin)
        clauses.append(f"an equal system would be shown within {shown_within} with power {POWER:g}")
    return RuleFinding(
        key=get_key(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=test.p_value,
        passed=passed,
        detectable=equal_margin,
        text=f"{'; '.join(clauses)}{describe_since(since)}",
        method=test.method,
        smallest_margin=test.smallest_margin,
        level=rule.alpha,
        since=since,
    )


def _describe_power(power: float, n_known: int, n: int) -> Iterator[str]:
    if n_known:
        text = f"systems equal to the baseline would all pass with a probability of about {power:.3g}"
        yield f"{text}; a larger margin or more items raise it"
    if n_known < n:
        yield f"of {n - n_known} comparisons this probability is unknown, because no swap changes their scores"


def compute_equal_margin(rule: NonInferior, test: MarginResult, n_units: int, sd: float | None) -> float | None:
    """Return the margin within which a system equal to the baseline would be shown with power 0.8.

    Infinite if no p-value can reach the level. None if the spread of differences is unknown.
    """
    if test.matched is not None:
        return test.matched.find_margin_of_power(POWER, rule.alpha)
    if compute_smallest_p(test, n_units) > rule.alpha:
        return math.inf
    return float(scipy.special.ndtri(1 - rule.alpha) + scipy.special.ndtri(POWER)) * sd if sd else None


def compute_power(rule: NonInferior, test: MarginResult, n_units: int, sd: float | None) -> float | None:
    """Return the probability that a system equal to the baseline is shown within the margin.

    0 if no p-value can reach the level. None if the spread of differences is unknown.
    """
    if test.matched is not None:
        return test.matched.compute_power(rule.margin, rule.alpha)
    if compute_smallest_p(test, n_units) > rule.alpha:
        return 0.0
    return float(scipy.special.ndtr(rule.margin / sd - scipy.special.ndtri(1 - rule.alpha))) if sd else None


def compute_smallest_p(test: MarginResult, n_units: int) -> float:
    """Return the smallest p-value that a swap test can have with these numbers of units and trials."""
    return max(2.0**-n_units, 0.0 if test.n_trials is None else 1 / (test.n_trials + 1))
