"""The rule that nothing is significantly worse: adjusted p-values and the smallest detectable loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import scipy

from sigdask.errors import InputError
from sigdask.metrics.base import AnyBound
from sigdask.nightly.gate.rules import (
    POWER,
    ComparisonKey,
    CoveredComparison,
    GateContext,
    NotWorse,
    RuleFinding,
    RuleVerdict,
    describe_scope,
    describe_since,
    format_rule_name,
    get_key,
    sort_findings,
)
from sigdask.results.columns import ScoredMetric
from sigdask.results.record import Result
from sigdask.statistics.multiplicity import holm
from sigdask.statistics.rounding import format_lower_limit, format_p_equals, format_upper_limit


def judge_not_worse(rule: NotWorse, covered: Sequence[CoveredComparison], basis: GateContext) -> RuleVerdict:
    """Return the verdict on whether any system is significantly worse than its baseline, with a finding for each."""
    if undefined := [c for c in covered if math.isnan(c.gain)]:
        return _fail_undefined(rule, undefined)
    for c in covered:
        metric = ScoredMetric(c.result.metric, c.result.higher_is_better)
        check_direction(c.result.a, c.result.b, c.baseline, c.result.alternative, metric)
    adjusted = _adjust_p_values(rule, covered, basis)
    n_levels = _count_levels(rule, covered, basis)
    level = compute_run_level(rule, len(covered), basis.n_shared, basis.runs_per_year)
    family_level = level if rule.false_alarms_per_year is None else level / n_levels
    equal_scores = _adjust_equal_scores(rule, covered, family_level, basis)
    losses = [
        p if p_equal is None else max(p, p_equal)
        for c, p, p_equal in zip(covered, adjusted, equal_scores, strict=True)
        if c.is_worse
    ]
    simulated = _simulate_losses(rule, covered, family_level, basis)
    findings = [
        _build_finding(rule, c, p, p_equal, family_level, len(covered), basis, simulated.get(get_key(c.result)))
        for c, p, p_equal in zip(covered, adjusted, equal_scores, strict=True)
    ]
    return RuleVerdict(
        rule=rule,
        name=format_rule_name(rule),
        passed=all(f.passed for f in findings),
        p_value=min(1.0, n_levels * min(losses, default=1.0)),
        level=level,
        findings=sort_findings(findings),
        alarms_per_year=basis.runs_per_year
        * min(1.0, family_level * (len(covered) if basis.limits_share(rule) else n_levels)),
        notes=tuple(_list_notes(rule, basis, level, findings)),
        n_blind=sum(f.detectable is not None and math.isinf(f.detectable) for f in findings),
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
    return min(rule.alpha, rule.false_alarms_per_year / runs_per_year) * n_covered / max(n_shared, n_covered, 1)


def _count_levels(rule: NotWorse, covered: Sequence[CoveredComparison], basis: GateContext) -> int:
    """Return the number of parts into which the rule's level is divided: 1, families or single comparisons."""
    if rule.adjust == "holm":
        return 1
    return len(covered) if rule.adjust == "none" else len({basis.get_family(c.result) for c in covered})


def check_direction(a: str, b: str, baseline: str, alternative: str, metric: AnyBound | ScoredMetric) -> bool:
    """Raise if a one-sided alternative cannot show that a system is worse than the baseline; return True otherwise.

    Parameters
    ----------
    a, b, baseline, alternative : str
        Systems, baseline and alternative of the comparison.
    metric : BoundMetric, BlackBox or ScoredMetric
        Metric of the comparison.
    """
    loss_is_less = (baseline == b) == metric.higher_is_better
    if alternative == ("greater" if loss_is_less else "less"):
        raise InputError(
            f'alternative = "{alternative}" cannot show that {a if baseline == b else b} is worse than {baseline} '
            f"by {metric.name}",
            remedy='choose "two-sided" or the other side',
        )
    return True


def _adjust_p_values(rule: NotWorse, covered: Sequence[CoveredComparison], basis: GateContext) -> list[float]:
    p_values = [c.result.p_value for c in covered]
    if rule.adjust != "plan":
        return [float(p) for p in holm(p_values)] if rule.adjust == "holm" else p_values
    for k, c in enumerate(covered):
        if c.result.p_adjusted is not None:
            p_values[k] = c.result.p_adjusted
        elif basis.sizes[basis.get_family(c.result)] > 1:
            raise InputError(
                'gate: adjust = "plan", but the results are not adjusted', remedy='choose "holm" or "none"'
            )
    return p_values


def _adjust_equal_scores(
    rule: NotWorse, covered: Sequence[CoveredComparison], level: float, basis: GateContext
) -> list[float | None]:
    """Return p of each comparison's equal-score test, adjusted for the same comparisons as p of the swap test.

    Step-down p of the plan's families have no floor that grows with the number of comparisons. So Holm's procedure is
    used only where there are none, and where the plan limits the share of false differences. None where there is no
    test, or where not even its smallest possible p would reach the level: then the swap test decides.
    """
    tests = [c.result.equal_scores for c in covered]
    own = [
        c.result.p_value if t is None or t.p_value is None else t.p_value for c, t in zip(covered, tests, strict=True)
    ]
    joint = [p if t is None or t.p_adjusted is None else t.p_adjusted for p, t in zip(own, tests, strict=True)]
    has_joint = all(t is None or t.p_value is None or t.p_adjusted is not None for t in tests)
    p_values = adjusted = own
    if rule.adjust == "plan":
        p_values = adjusted = joint
    elif rule.adjust == "holm" and has_joint and basis.adjust != "bh":
        n_families = len({basis.get_family(c.result) for c in covered})
        p_values, adjusted = joint, [min(1.0, n_families * p) for p in joint]
    elif rule.adjust == "holm":
        adjusted = [float(p) for p in holm(own)]
    return [
        None if t is None or t.p_value is None or (p <= 1 / (t.n_resamples + 1) and p_adjusted > level) else p_adjusted
        for t, p, p_adjusted in zip(tests, p_values, adjusted, strict=True)
    ]


def _simulate_losses(
    rule: NotWorse, covered: Sequence[CoveredComparison], level: float, basis: GateContext
) -> dict[ComparisonKey, float]:
    """Return the smallest loss of each comparison that simulation detects; empty if the rule does not simulate."""
    detected: dict[ComparisonKey, float] = {}
    if rule.detectable == "simulated":
        groups: dict[tuple[str, str, int], list[CoveredComparison]] = {}
        for c in covered:
            group_key = c.result.test_set, c.result.alternative, _count_adjusted(rule, c, len(covered), basis)
            groups.setdefault(group_key, []).append(c)
        for (test_set, _, n), members in groups.items():
            if (losses := basis.evidence.losses.get(test_set)) is not None:
                detected |= losses.find_losses([c.result for c in members], [c.system for c in members], level / n)
    return detected


def _build_finding(
    rule: NotWorse,
    c: CoveredComparison,
    p: float,
    p_equal: float | None,
    level: float,
    n_covered: int,
    basis: GateContext,
    simulated: float | None,
) -> RuleFinding:
    rejects = c.is_worse and p <= level
    rejects_equal = rejects if p_equal is None else c.is_worse and p_equal <= level
    failed = rejects and rejects_equal
    smallest_level = level / _count_adjusted(rule, c, n_covered, basis)
    # with max-T, the largest difference may be tested at the whole level
    smallest = compute_detectable_loss(
        c.result, basis.get_spread(c.result), smallest_level, reach=level if rule.adjust == "plan" else smallest_level
    )
    is_simulated = simulated is not None and smallest != math.inf
    smallest = simulated if is_simulated else smallest
    key = get_key(c.result)
    since = basis.evidence.first_failures.get((format_rule_name(rule), key)) if failed else None
    return RuleFinding(
        key=key,
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=p,
        passed=not failed,
        detectable=smallest,
        text=f"{c.system} is {_describe_standing(c, failed=failed)} {c.baseline} by {describe_scope(c)}: "
        f"{c.gain:+.4g}, {format_p_equals(p, level)}{'' if rule.adjust == 'none' else ' adjusted'}, "
        f"{'at most' if p <= level else 'above'} the level {format_lower_limit(level)}"
        f"{_describe_equal_scores(c.result, p_equal, level, rejects=rejects, rejects_equal=rejects_equal)}; "
        f"{_describe_detectable(smallest)}"
        f"{' (simulated)' if is_simulated else ''}{_describe_plan_verdict(c, basis.alpha, failed=failed)}"
        f"{describe_since(since)}",
        level=level,
        p_equal_scores=p_equal,
        is_contested=rejects != rejects_equal,
        since=since,
    )


def _describe_equal_scores(result: Result, p: float | None, level: float, *, rejects: bool, rejects_equal: bool) -> str:
    """Return a clause on the equal-score test if it confirms or contests a loss, or if a failure lacks it."""
    test = result.equal_scores
    if p is None:
        return f", without an equal-score test: {test.why}" if rejects and test and test.why else ""
    if rejects != rejects_equal:
        cause = f" ({test.cause})" if test and test.cause else ""
        return f", but {format_p_equals(p, level)} of the equal-score test: contested{cause}, no failure"
    return f", as is {format_p_equals(p, level)} of the equal-score test" if rejects else ""


def _describe_standing(c: CoveredComparison, *, failed: bool) -> str:
    """Return words on a system's score relative to its baseline; "level with" means only equal scores."""
    if c.is_worse:
        return "significantly worse than" if failed else "worse, but not significantly, than"
    return "ahead of" if c.gain > 0 else "level with"


def _describe_plan_verdict(c: CoveredComparison, alpha: float | None, *, failed: bool) -> str:
    """Return a clause on a loss that is significant at the plan's alpha but passes the gate, or ""."""
    p = c.result.p_value if c.result.p_adjusted is None else c.result.p_adjusted
    if failed or alpha is None or not c.is_worse or p > alpha:
        return ""
    return f"; significant at the plan's alpha {alpha:g} ({format_p_equals(p, alpha)}), but no alarm of the gate"


def _count_adjusted(rule: NotWorse, c: CoveredComparison, n_covered: int, basis: GateContext) -> int:
    """Return the number of comparisons among which a comparison's p-value is adjusted."""
    if rule.adjust != "plan":
        return n_covered if rule.adjust == "holm" else 1
    return basis.sizes[basis.get_family(c.result)]


def compute_detectable_loss(
    result: Result, sd: float | None, level: float, *, reach: float | None = None
) -> float | None:
    """Return the smallest loss that the test detects with power 0.8 at a significance level.

    Uses the normal approximation with the swap standard deviation. Infinite if so few units or trials have no p-value
    of at most `reach` (by default the level). None if the spread of differences is unknown.
    """
    sides = 2 if result.alternative == "two-sided" else 1
    smallest_p = sides * 2.0**-result.n_units
    if result.method != "exact":
        smallest_p = max(smallest_p, 1 / (result.n_trials + 1))
    if smallest_p > (level if reach is None else reach):
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


def _list_notes(rule: NotWorse, basis: GateContext, level: float, findings: Sequence[RuleFinding]) -> Iterator[str]:
    n_blind = sum(f.detectable is not None and math.isinf(f.detectable) for f in findings)
    if rule.false_alarms_per_year is not None:
        budget = f"{rule.false_alarms_per_year:g} false alarms a year over {basis.runs_per_year:g} runs"
        if rule.alpha <= rule.false_alarms_per_year / basis.runs_per_year:
            budget = f"alpha {rule.alpha:g}, which is stricter than {budget}"
        share_text = f" of the gate's {basis.n_shared:,}" if basis.n_shared > len(findings) else ""
        n = f"{len(findings):,}{share_text} comparison{'' if len(findings) == 1 and not share_text else 's'}"
        yield (
            f"this night's level is {format_lower_limit(level)} over {n}: "
            f"{budget}{_describe_smallest_level(rule, level, len(findings))}"
        )
        if basis.evidence.n_runs > basis.runs_per_year:
            yield (
                f"{basis.evidence.n_runs:,} runs with new inputs in the last 365 days, but runs_per_year is "
                f"{basis.runs_per_year:g}: expect more false alarms than false_alarms_per_year; correct runs_per_year"
            )
    if basis.limits_share(rule):
        yield (
            f'the plan\'s adjust = "{basis.adjust}" limits the share of false differences: a false alarm is likelier '
            'than this level if other systems differ from the baseline; adjust = "holm" in the rule keeps to it'
        )
    if n_blind:
        yield (
            f"{n_blind} of {len(findings)} comparisons could not fail: too few units or trials for p to reach this "
            "level; use more"
        )


def _describe_smallest_level(rule: NotWorse, level: float, n: int) -> str:
    """Return a clause with the level that p must reach before adjustment, or "" if it is the rule's level."""
    if n == 1 or rule.adjust == "plan":
        return ""
    return (
        f"; before adjustment {'the smallest' if rule.adjust == 'holm' else 'each'} p must be at most "
        f"{format_lower_limit(level / n)}"
    )
