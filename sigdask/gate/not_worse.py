"""The rule that nothing is significantly worse: adjusted p-values, the smallest loss that would be found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scipy import special

from sigdask.comparison.found.result import Result
from sigdask.errors import InputError
from sigdask.gate.coverage import Basis, Covered, failures_first, where
from sigdask.gate.rules import POWER, Fdr, Finding, Key, NotWorse, RuleVerdict, key_of, name_of
from sigdask.statistics import online_fdr
from sigdask.statistics.multiplicity import holm
from sigdask.statistics.rounding import high_text, low_text, p_equals


class Directed(Protocol):
    """What says whether more is better."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better."""


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    higher_is_better: bool


def not_worse(rule: NotWorse, covered: Sequence[Covered], basis: Basis) -> RuleVerdict:
    """Judge whether any system is significantly worse."""
    for c in covered:
        check_direction(
            c.result.a,
            c.result.b,
            c.baseline,
            c.result.alternative,
            _Metric(c.result.metric, c.result.higher_is_better),
        )
    adjusted = _adjusted(rule, covered, basis)
    losses = [p for c, p in zip(covered, adjusted, strict=True) if c.is_worse]
    n_apart = _n_apart(rule, covered, basis)
    past = basis.evidence.history.get(name_of(rule), ())
    level = rule.alpha if basis.fdr == "none" else online_fdr.levels(past, rule.alpha, basis.fdr)[-1]
    each = level if basis.fdr == "none" else level / n_apart
    simulated = _simulated(rule, covered, each, basis)
    findings = [
        _loss(rule, c, p, each, len(covered), basis, simulated.get(key_of(c.result)))
        for c, p in zip(covered, adjusted, strict=True)
    ]
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=min(1.0, n_apart * min(losses, default=1.0)),
        level=level,
        findings=failures_first(findings),
        alarms_per_year=_alarms(rule, basis, n_apart),
        notes=tuple(_notes(rule, basis.fdr, level, len(past), findings)),
    )


def _n_apart(rule: NotWorse, covered: Sequence[Covered], basis: Basis) -> int:
    """Return the number of families, or of comparisons, that each have a level of their own."""
    if rule.adjust == "holm":
        return 1
    return len(covered) if rule.adjust == "none" else len({basis.family_of(c.result) for c in covered})


def check_direction(a: str, b: str, baseline: str, alternative: str, metric: Directed) -> bool:
    """Refuse a one-sided alternative that cannot show that a system is worse than the baseline.

    Parameters
    ----------
    a, b, baseline, alternative : str
        Of the comparison.
    metric : BoundMetric, BlackBox or any other that says whether more is better
        By which it is compared.
    """
    loss_is_less = (baseline == b) == metric.higher_is_better
    if alternative == ("greater" if loss_is_less else "less"):
        raise InputError(
            f'alternative = "{alternative}" cannot show that {a if baseline == b else b} is worse than {baseline} '
            f'by {metric.name}; choose "two-sided" or the other side'
        )
    return True


def _adjusted(rule: NotWorse, covered: Sequence[Covered], basis: Basis) -> list[float]:
    if rule.adjust == "plan":
        return [_as_the_plan(c, basis) for c in covered]
    p_values = [c.result.p_value for c in covered]
    return [float(p) for p in holm(p_values)] if rule.adjust == "holm" else p_values


def _as_the_plan(c: Covered, basis: Basis) -> float:
    """Return the p-value as the plan adjusted it; a family of one needs no adjusting."""
    if c.result.p_adjusted is not None:
        return c.result.p_adjusted
    if _n_in_family(c.result, basis) > 1:
        raise InputError('gate: adjust = "plan", and the results are not adjusted; choose "holm" or "none"')
    return c.result.p_value


def _n_in_family(result: Result, basis: Basis) -> int:
    return basis.sizes[basis.family_of(result)]


def _simulated(rule: NotWorse, covered: Sequence[Covered], level: float, basis: Basis) -> dict[Key, float]:
    """Return the smallest losses that samples tell would be detected, where the rule asks for them."""
    found: dict[Key, float] = {}
    if rule.detectable == "simulated":
        groups: dict[tuple[str, str, int], list[Covered]] = {}
        for c in covered:
            alike = c.result.test_set, c.result.alternative, _n_adjusted(rule, c, len(covered), basis)
            groups.setdefault(alike, []).append(c)
        for (test_set, _, n), own in groups.items():
            if (losses := basis.evidence.losses.get(test_set)) is not None:
                found |= losses.detected([c.result for c in own], [c.system for c in own], level / n)
    return found


def _loss(
    rule: NotWorse, c: Covered, p: float, level: float, n_covered: int, basis: Basis, simulated: float | None
) -> Finding:
    failed = c.is_worse and p <= level
    first = level / _n_adjusted(rule, c, n_covered, basis)
    # a plan's adjustment may let the largest difference through at the whole level, as max-T does
    smallest = detectable(c.result, basis.spread(c.result), first, reach=level if rule.adjust == "plan" else first)
    is_simulated = simulated is not None and smallest != math.inf
    smallest = simulated if is_simulated else smallest
    words = "significantly worse" if failed else ("worse, but not significantly," if c.is_worse else "not worse")
    return Finding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=p,
        passed=not failed,
        detectable=smallest,
        text=f"{c.system} is {words} than {c.baseline} by {where(c)}: {c.gain:+.4g}, {p_equals(p, level)}"
        f"{'' if rule.adjust == 'none' else ' adjusted'}; {_detectable_text(smallest)}"
        f"{' (simulated)' if is_simulated else ''}",
    )


def _n_adjusted(rule: NotWorse, c: Covered, n_covered: int, basis: Basis) -> int:
    """Return among how many comparisons the smallest p is chosen."""
    if rule.adjust != "plan":
        return n_covered if rule.adjust == "holm" else 1
    return _n_in_family(c.result, basis)


def detectable(result: Result, sd: float | None, level: float, *, reach: float | None = None) -> float | None:
    """Return the smallest loss that would be found at a level with power 0.8.

    By the normal approximation with the swap standard deviation. Infinite where units or trials are so
    few that no p-value can be `reach` (by default the level) or less; None where nothing tells how far
    differences spread.
    """
    sides = 2 if result.alternative == "two-sided" else 1
    smallest_p = sides * 2.0**-result.n_units
    if result.method != "exact":
        smallest_p = max(smallest_p, 1 / (result.n_asked + 1))
    if smallest_p > (level if reach is None else reach):
        return math.inf
    if not sd:
        return None
    return float(special.ndtri(1 - level / sides) + special.ndtri(POWER)) * sd


def _detectable_text(smallest: float | None) -> str:
    if smallest is None:
        return "nothing tells which loss would be detected"
    if math.isinf(smallest):
        return "no difference at all could be detected with so few units or trials"
    return f"a loss of {high_text(smallest)} would be detected with power {POWER:g}"


def _alarms(rule: NotWorse, basis: Basis, n_apart: int) -> float:
    if basis.fdr == "none":
        return basis.runs_per_year * min(1.0, rule.alpha * n_apart)
    return min(basis.runs_per_year, online_fdr.most_false_alarms(rule.alpha, basis.fdr))


def _notes(rule: NotWorse, fdr: Fdr, level: float, n_past: int, findings: Sequence[Finding]) -> Iterator[str]:
    if fdr != "none":
        yield (
            f"{fdr}: after {n_past} earlier runs this one is held against {low_text(level)}, so that of all alarms "
            f"at most {rule.alpha:g} are false"
        )
    if blind := sum(f.detectable is not None and math.isinf(f.detectable) for f in findings):
        yield f"{blind} of {len(findings)} comparisons could not fail: too few units or trials for this level"
