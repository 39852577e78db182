"""The rules that every system is shown to be worse, or to differ, by less than a margin."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from scipy import special

from sigdask.errors import InputError
from sigdask.nightly.gate.coverage import Basis, CoveredComparison, failures_first, where
from sigdask.nightly.gate.rules import (
    POWER,
    Equivalent,
    MarginResult,
    RuleFinding,
    RuleVerdict,
    WithinMargin,
    key_of,
    name_of,
)
from sigdask.statistics.rounding import high_text, p_equals


def within_margin(rule: WithinMargin, covered: Sequence[CoveredComparison], basis: Basis) -> RuleVerdict:
    """Judge whether every system is shown to be within the margin."""
    findings, powers = [], []
    for c in covered:
        shown = _shown(rule, c, basis)
        findings.append(_within(rule, c, shown, basis.spread(c.result)))
        powers.append(power_to_show(rule, shown, c.result.n_units, basis.spread(c.result)))
    known = [power for power in powers if power is not None]
    power = math.prod(known)
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=max(f.p_value for f in findings),
        level=rule.alpha,
        findings=failures_first(findings),
        alarms_per_year=basis.runs_per_year * (1 - power),
        notes=(*_notes(power, len(known), len(powers)), *_wide(rule, covered)),
        n_doubtful=sum(f.passed and _shown(rule, c, basis).is_doubtful for f, c in zip(findings, covered, strict=True)),
    )


def _shown(rule: WithinMargin, c: CoveredComparison, basis: Basis) -> MarginResult:
    shown = basis.evidence.shown.get((rule, key_of(c.result)))
    if shown is None:
        raise InputError(f"gate: {_aim(rule)} of {c.system} to {c.baseline} by {where(c)} was not tested")
    return shown


def _wide(rule: WithinMargin, covered: Sequence[CoveredComparison]) -> Iterator[str]:
    """Say where a system that scores 0 would be within the margin."""
    for c in covered:
        baseline = c.result.score_b if c.result.b == c.baseline else c.result.score_a
        if c.result.higher_is_better and 0 < baseline <= rule.margin:
            yield (
                f"the margin {rule.margin:g} is at least the score of {c.baseline}, {baseline:.4g} by {where(c)}: "
                "a system that scores 0 would be within it"
            )
            return


def _aim(rule: WithinMargin) -> str:
    return "equivalence" if isinstance(rule, Equivalent) else "non-inferiority"


def _within(rule: WithinMargin, c: CoveredComparison, shown: MarginResult, sd: float | None) -> RuleFinding:
    is_whole = shown.matched is not None and rule.margin >= shown.matched.worth
    passed = shown.p_value <= rule.alpha and not is_whole
    whole = (
        "; every system is within a margin of the whole range: write it on the metric's own scale" if is_whole else ""
    )
    of_equal = margin_of_equal(rule, shown, c.result.n_units, sd)
    kind = "equivalent" if isinstance(rule, Equivalent) else "non-inferior"
    text = (
        f"{c.system} is {'' if passed else 'not '}shown {kind} to {c.baseline} within {rule.margin:g} by {where(c)}: "
        f"{c.gain:+.4g}, {p_equals(shown.p_value, rule.alpha)} ({shown.method})"
    )
    return RuleFinding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=shown.p_value,
        passed=passed,
        detectable=of_equal,
        text=f"{text}{whole}{_smallest_text(rule, shown.smallest_margin)}{_equal_text(of_equal)}",
        method=shown.method,
        smallest_margin=shown.smallest_margin,
        n_better=None if shown.matched is None else shown.matched.wins,
        n_worse=None if shown.matched is None else shown.matched.losses,
        level=rule.alpha,
    )


def _smallest_text(rule: WithinMargin, smallest: float | None) -> str:
    if smallest is None or math.isinf(smallest):
        return ""
    return f"; smallest margin that is shown: {high_text(smallest, level=rule.margin)}"


def _equal_text(of_equal: float | None) -> str:
    if of_equal is None:
        return ""
    if math.isinf(of_equal):
        return "; with so few units or trials nothing can be shown"
    return f"; an equal system would be shown within {high_text(of_equal)} with power {POWER:g}"


def _notes(power: float, n_known: int, n: int) -> Iterator[str]:
    if n_known:
        yield f"systems equal to the baseline would all be shown with probability of about {power:.3g}"
    if n_known < n:
        yield f"of {n - n_known} comparisons nothing tells how likely that is: no swap changes their scores"


def margin_of_equal(rule: WithinMargin, shown: MarginResult, n_units: int, sd: float | None) -> float | None:
    """Return the margin within which an equal system would be shown with power 0.8.

    Infinite where no p-value can reach the level; None where nothing tells how far differences spread.
    """
    each = (1 + POWER) / 2 if isinstance(rule, Equivalent) else POWER
    if shown.matched is not None:
        return shown.matched.margin_of_power(each, rule.alpha)
    if least_p(shown, n_units) > rule.alpha:
        return math.inf
    return float(special.ndtri(1 - rule.alpha) + special.ndtri(each)) * sd if sd else None


def power_to_show(rule: WithinMargin, shown: MarginResult, n_units: int, sd: float | None) -> float | None:
    """Return the probability that a system equal to the baseline is shown to be within the margin.

    0 where no p-value can reach the level; None where nothing tells how far differences spread.
    """
    if shown.matched is not None:
        one = shown.matched.power(rule.margin, rule.alpha)
    elif least_p(shown, n_units) > rule.alpha:
        return 0.0
    elif not sd:
        return None
    else:
        one = float(special.ndtr(rule.margin / sd - special.ndtri(1 - rule.alpha)))
    return max(0.0, 2 * one - 1) if isinstance(rule, Equivalent) else one


def least_p(shown: MarginResult, n_units: int) -> float:
    """Return the smallest p-value that a test by shuffles can have."""
    return max(2.0**-n_units, 0.0 if shown.n_trials is None else 1 / (shown.n_trials + 1))
