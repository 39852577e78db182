"""The verdicts of both rules.

`not-worse`: nothing is significantly worse by two tests, each adjusted by Holm's procedure, and the smallest detectable
loss is stated. `non-inferior`: every system is shown to be worse by less than a margin, if at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import scipy

from sigdask.analysis.comparison.margins import MarginResult
from sigdask.errors import InputError
from sigdask.nightly.gate.rules import (
    POWER,
    CoveredComparison,
    Evidence,
    NonInferior,
    NotWorse,
    RuleFinding,
    RuleVerdict,
    describe_scope,
    format_rule_name,
    get_key,
    sort_findings,
)
from sigdask.results.record import Result
from sigdask.statistics.bounds import holm
from sigdask.statistics.rounding import format_lower_limit, format_p_equals, format_upper_limit


def judge_within_margin(rule: NonInferior, covered: Sequence[CoveredComparison], evidence: Evidence) -> RuleVerdict:
    """Return whether every system is shown to be within the margin, with a finding for each."""
    tests = [evidence.margin_results[rule, get_key(c.result)] for c in covered]
    findings = [_build_finding(rule, c, test, evidence) for c, test in zip(covered, tests, strict=True)]
    powers = [
        compute_power(rule, test, c.result.n_units, evidence.get_spread(c.result))
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
        alarms_per_year=evidence.runs_per_year * (1 - power),
        notes=tuple(_describe_power(power, len(known_powers), len(powers))),
        n_doubtful=sum(f.passed and test.is_doubtful for f, test in zip(findings, tests, strict=True)),
    )


def _build_finding(rule: NonInferior, c: CoveredComparison, test: MarginResult, evidence: Evidence) -> RuleFinding:
    is_whole = test.matched is not None and rule.margin >= test.matched.worth
    passed = test.p_value <= rule.alpha and not is_whole
    equal_margin = compute_equal_margin(rule, test, c.result.n_units, evidence.get_spread(c.result))
    standing = f"{'' if passed else 'not '}shown non-inferior to {c.baseline} within {rule.margin:g}"
    p_text = format_p_equals(test.p_value, rule.alpha)
    clauses = [f"{c.system} is {standing} by {describe_scope(c)}: {c.gain:+.4g}, {p_text} ({test.method})"]
    if is_whole:
        clauses.append(
            "every system is within a margin as wide as the range of scores: give the margin on the metric's own scale"
        )
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
        text="; ".join(clauses),
        method=test.method,
        level=rule.alpha,
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


def judge_not_worse(rule: NotWorse, covered: Sequence[CoveredComparison], evidence: Evidence) -> RuleVerdict:
    """Return the verdict on whether any system is significantly worse than its baseline, with a finding for each."""
    if undefined := [c for c in covered if math.isnan(c.gain)]:
        return _fail_undefined(rule, undefined)
    for c in covered:
        r = c.result
        check_direction(r.a, r.b, c.baseline, r.alternative, r.metric, higher_is_better=r.higher_is_better)
    level = compute_run_level(rule, len(covered), evidence.n_shared, evidence.runs_per_year)
    p_values = [float(p) for p in holm([c.result.p_value for c in covered])]
    equal_scores = _adjust_equal_scores(covered, level)
    findings = [
        _build_loss_finding(c, p, p_equal, level, len(covered), evidence)
        for c, p, p_equal in zip(covered, p_values, equal_scores, strict=True)
    ]
    losses = [max(f.p_value, f.p_equal_scores or 0.0) for f in findings if f.gain < 0]
    return RuleVerdict(
        rule=rule,
        name=format_rule_name(rule),
        passed=all(f.passed for f in findings),
        p_value=min(losses, default=1.0),
        level=level,
        findings=sort_findings(findings),
        alarms_per_year=evidence.runs_per_year * level,
        notes=tuple(_list_notes(rule, evidence, level, findings)),
        n_blind=_count_blind(findings),
        n_contested=sum(f.is_contested for f in findings),
    )


def _fail_undefined(rule: NotWorse, undefined: Sequence[CoveredComparison]) -> RuleVerdict:
    """Return the verdict that the rule fails because scores are undefined, so that losses cannot be excluded."""
    c = undefined[0]
    more_text = f", and {len(undefined) - 1:,} more" if len(undefined) > 1 else ""
    note = f"no score: {c.system} or {c.baseline} has none by {describe_scope(c)}{more_text}; nothing was judged"
    return RuleVerdict(rule, format_rule_name(rule), False, 1.0, rule.alpha, (), 0.0, (note,))


def compute_run_level(rule: NotWorse, n_covered: int, n_shared: int, runs_per_year: float) -> float:
    """Return the significance level of a rule in one run, for all of its comparisons together.

    Parameters
    ----------
    rule : NotWorse
        The rule.
    n_covered, n_shared : int
        Number of its comparisons, and of those of all rules that share the false alarms of a year.
    runs_per_year : float
        Expected number of runs per year.
    """
    if rule.false_alarms_per_year is None:
        return rule.alpha
    share = n_covered / max(n_shared, n_covered, 1)
    return min(rule.alpha, rule.false_alarms_per_year / runs_per_year) * share


def check_direction(a: str, b: str, baseline: str, alternative: str, metric: str, *, higher_is_better: bool) -> None:
    """Raise if a one-sided alternative cannot show that a system is worse than the baseline.

    Parameters
    ----------
    a, b, baseline, alternative, metric : str
        Systems, baseline, alternative and metric of the comparison.
    higher_is_better : bool
        Whether more is better by the metric.
    """
    loss_is_less = (baseline == b) == higher_is_better
    if alternative == ("greater" if loss_is_less else "less"):
        raise InputError(
            f'alternative = "{alternative}" cannot show that {a if baseline == b else b} is worse than {baseline} '
            f"by {metric}",
            remedy='choose "two-sided" or the other side',
        )


def _adjust_equal_scores(covered: Sequence[CoveredComparison], level: float) -> list[float | None]:
    """Return p of each comparison's equal-score test, adjusted by Holm's procedure.

    None if there is no such test, or if no resample is as extreme and even so its p is above the level. Then the swap
    test decides alone.
    """
    tests = [c.result.equal_scores for c in covered]
    own = [None if test is None else test.p_value for test in tests]
    floors = [0.0 if test is None else 1 / (test.n_resamples + 1) for test in tests]
    adjusted = holm([c.result.p_value if p is None else p for c, p in zip(covered, own, strict=True)]).tolist()
    return [
        None if p is None or (p <= floor and p_adjusted > level) else p_adjusted
        for p, floor, p_adjusted in zip(own, floors, adjusted, strict=True)
    ]


def _build_loss_finding(
    c: CoveredComparison,
    p: float,
    p_equal: float | None,
    level: float,
    n_covered: int,
    evidence: Evidence,
) -> RuleFinding:
    rejects = c.is_worse and p <= level
    rejects_equal = rejects if p_equal is None else c.is_worse and p_equal <= level
    recipes = _describe_recipes(c.result, level) if rejects else ""
    failed = rejects and rejects_equal and not recipes
    contested = rejects != rejects_equal or bool(recipes)
    smallest = compute_detectable_loss(c.result, evidence.get_spread(c.result), level / n_covered)
    standing = "worse, contested, than" if contested else _describe_standing(c, failed=failed)
    return RuleFinding(
        key=get_key(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=p,
        passed=not failed,
        detectable=smallest,
        text=f"{c.system} is {standing} {c.baseline} by {describe_scope(c)}: "
        f"{c.gain:+.4g}, {format_p_equals(p, level, is_bound=c.result.is_bound)} adjusted, "
        f"{'at most' if p <= level else 'above'} the level {format_lower_limit(level)}"
        f"{recipes or _describe_equal_scores(c.result, p_equal, level, rejects=rejects, contested=contested)}; "
        f"{_describe_detectable(smallest)}",
        level=level,
        p_equal_scores=p_equal,
        is_contested=contested,
    )


def _describe_equal_scores(result: Result, p: float | None, level: float, *, rejects: bool, contested: bool) -> str:
    """Return a clause on the equal-score test if it confirms or contests a loss, or if a failure lacks it."""
    test = result.equal_scores
    if p is None:
        return f", without an equal-score test: {test.why}" if rejects and test and test.why else ""
    if contested:
        cause = f" ({test.cause})" if test and test.cause else ""
        return f", but {format_p_equals(p, level)} of the equal-score test{cause}: no failure"
    return f", as is {format_p_equals(p, level)} of the equal-score test" if rejects else ""


def _describe_recipes(result: Result, level: float) -> str:
    """Return a clause if a loss holds for the runs of the systems and is not significant for their recipes, or ""."""
    if result.runs is None or result.runs.p_value is None or result.runs.p_value <= level:
        return ""
    return f", but {format_p_equals(result.runs.p_value, level)} for recipes of {result.runs.n_runs} runs: no failure"


def _describe_standing(c: CoveredComparison, *, failed: bool) -> str:
    """Return words on a system's score relative to its baseline; "level with" means only equal scores."""
    if c.is_worse:
        return "significantly worse than" if failed else "worse, but not significantly, than"
    return "ahead of" if c.gain > 0 else "level with"


def compute_detectable_loss(result: Result, sd: float | None, level: float) -> float | None:
    """Return the smallest loss that the test detects with power 0.8 at a significance level.

    Uses the normal approximation with the swap standard deviation. Infinite if so few units or trials have no p-value
    of at most the level. None if the spread of differences is unknown.
    """
    sides = 2 if result.alternative == "two-sided" else 1
    smallest_p = sides * 2.0**-result.n_units
    if result.method != "exact":
        smallest_p = max(smallest_p, 1 / (result.n_trials + 1))
    if smallest_p > level:
        return math.inf
    if not sd:
        return None
    return float(scipy.special.ndtri(1 - level / sides) + scipy.special.ndtri(POWER)) * sd


def _describe_detectable(smallest: float | None) -> str:
    if smallest is None:
        return "the smallest loss that would be detected is unknown"
    if math.isinf(smallest):
        return "too few units or trials to detect any loss at this level; use more"
    return f"a loss of {format_upper_limit(smallest)} would be detected with power {POWER:g}"


def _count_blind(findings: Sequence[RuleFinding]) -> int:
    """Return the number of comparisons that could not fail."""
    return sum(f.detectable is not None and math.isinf(f.detectable) for f in findings)


def _list_notes(rule: NotWorse, evidence: Evidence, level: float, findings: Sequence[RuleFinding]) -> Iterator[str]:
    if rule.false_alarms_per_year is not None:
        alarms = "alarm" if rule.false_alarms_per_year == 1 else "alarms"
        budget = f"{rule.false_alarms_per_year:g} false {alarms} a year over {evidence.runs_per_year:g} runs"
        if rule.alpha <= rule.false_alarms_per_year / evidence.runs_per_year:
            budget = f"alpha {rule.alpha:g}, which is stricter than {budget}"
        share_text = f" of the gate's {evidence.n_shared:,}" if evidence.n_shared > len(findings) else ""
        n = f"{len(findings):,}{share_text} comparison{'' if len(findings) == 1 and not share_text else 's'}"
        least = f"; before adjustment the smallest p must be at most {format_lower_limit(level / len(findings))}"
        yield (
            f"this run's level is {format_lower_limit(level)} over {n}: {budget}{least if len(findings) > 1 else ''}"
        )
        if evidence.n_runs > evidence.runs_per_year:
            yield (
                f"{evidence.n_runs:,} runs with new inputs in the last 365 days, but runs_per_year "
                f"is {evidence.runs_per_year:g}: expect more alarms than false_alarms_per_year; correct runs_per_year"
            )
    if n_blind := _count_blind(findings):
        yield (
            f"{n_blind} of {len(findings)} comparisons could not fail: too few units or trials for p to reach this "
            "level; use more"
        )
