"""The rule that nothing is significantly worse: adjusted p-values, the smallest loss that would be found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from scipy import special

from sigdask.errors import InputError
from sigdask.nightly.gate.coverage import Basis, CoveredComparison, failures_first, where
from sigdask.nightly.gate.rules import (
    FALSE_ALARMS_PER_YEAR,
    POWER,
    Fdr,
    Key,
    NotWorse,
    RuleFinding,
    RuleVerdict,
    key_of,
    name_of,
)
from sigdask.results.record import Result
from sigdask.statistics import online_fdr
from sigdask.statistics.multiplicity import holm
from sigdask.statistics.rounding import high_text, low_text, p_equals

WEAK = 10
"""How many times lower than a steady level an online rule's is where it is said to have lost its power."""


class DirectedMetric(Protocol):
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


def not_worse(rule: NotWorse, covered: Sequence[CoveredComparison], basis: Basis) -> RuleVerdict:
    """Judge whether any system is significantly worse."""
    if undefined := [c for c in covered if math.isnan(c.gain)]:
        return _not_judged(rule, undefined)
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
    level = _level(rule, len(covered), basis)
    is_shared = basis.fdr != "none" or rule.false_alarms_per_year is not None
    each = level / n_apart if is_shared else level
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
        alarms_per_year=_alarms(rule, basis, each * n_apart),
        notes=tuple(_notes(rule, basis, level, findings)),
        fdr=basis.fdr,
        least_level=each / len(covered) if rule.adjust == "holm" else each if rule.adjust == "none" else None,
        repeats=basis.evidence.repeats.get(name_of(rule)),
        n_blind=sum(f.detectable is not None and math.isinf(f.detectable) for f in findings),
    )


def _not_judged(rule: NotWorse, undefined: Sequence[CoveredComparison]) -> RuleVerdict:
    """Fail where a score is undefined: such a comparison shows neither a loss nor that there is none."""
    c = undefined[0]
    more = f", and {len(undefined) - 1:,} more" if len(undefined) > 1 else ""
    note = f"no score: {c.system} or {c.baseline} has none by {where(c)}{more}; nothing was judged"
    return RuleVerdict(rule, name_of(rule), False, 1.0, rule.alpha, (), 0.0, (note,))


def _level(rule: NotWorse, n_covered: int, basis: Basis) -> float:
    name = name_of(rule)
    past, recorded = (own.get(name, ()) for own in (basis.evidence.history, basis.evidence.levels))
    return level_of_run(rule, n_covered, basis.n_shared, basis.fdr, basis.runs_per_year, past, recorded)


def level_of_run(
    rule: NotWorse,
    n_covered: int,
    n_shared: int,
    fdr: Fdr,
    runs_per_year: float,
    past: Sequence[float] = (),
    recorded: Sequence[float] = (),
) -> float:
    """Return the level of a run, over all comparisons of a rule.

    Parameters
    ----------
    rule : NotWorse
        Whose level it is.
    n_covered, n_shared : int
        Its comparisons, and those of all rules that share the false alarms of a year.
    fdr, runs_per_year
        Of the gate.
    past, recorded : sequence of float
        The rule's p-values in earlier runs, and their levels, for an online rule.
    """
    if fdr != "none":
        return online_fdr.levels(past, rule.alpha, fdr, recorded=recorded)[-1]
    if rule.false_alarms_per_year is None:
        return rule.alpha
    return min(rule.alpha, rule.false_alarms_per_year / runs_per_year) * n_covered / max(n_shared, n_covered, 1)


def _n_apart(rule: NotWorse, covered: Sequence[CoveredComparison], basis: Basis) -> int:
    """Return the number of families, or of comparisons, that each have a level of their own."""
    if rule.adjust == "holm":
        return 1
    return len(covered) if rule.adjust == "none" else len({basis.family_of(c.result) for c in covered})


def check_direction(a: str, b: str, baseline: str, alternative: str, metric: DirectedMetric) -> bool:
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


def _adjusted(rule: NotWorse, covered: Sequence[CoveredComparison], basis: Basis) -> list[float]:
    if rule.adjust == "plan":
        return [_as_the_plan(c, basis) for c in covered]
    p_values = [c.result.p_value for c in covered]
    return [float(p) for p in holm(p_values)] if rule.adjust == "holm" else p_values


def _as_the_plan(c: CoveredComparison, basis: Basis) -> float:
    """Return the p-value as the plan adjusted it; a family of one needs no adjusting."""
    if c.result.p_adjusted is not None:
        return c.result.p_adjusted
    if _n_in_family(c.result, basis) > 1:
        raise InputError('gate: adjust = "plan", and the results are not adjusted; choose "holm" or "none"')
    return c.result.p_value


def _n_in_family(result: Result, basis: Basis) -> int:
    return basis.sizes[basis.family_of(result)]


def _simulated(rule: NotWorse, covered: Sequence[CoveredComparison], level: float, basis: Basis) -> dict[Key, float]:
    """Return the smallest losses that samples tell would be detected, where the rule asks for them."""
    found: dict[Key, float] = {}
    if rule.detectable == "simulated":
        groups: dict[tuple[str, str, int], list[CoveredComparison]] = {}
        for c in covered:
            alike = c.result.test_set, c.result.alternative, _n_adjusted(rule, c, len(covered), basis)
            groups.setdefault(alike, []).append(c)
        for (test_set, _, n), own in groups.items():
            if (losses := basis.evidence.losses.get(test_set)) is not None:
                found |= losses.detected([c.result for c in own], [c.system for c in own], level / n)
    return found


def _loss(
    rule: NotWorse, c: CoveredComparison, p: float, level: float, n_covered: int, basis: Basis, simulated: float | None
) -> RuleFinding:
    failed = c.is_worse and p <= level
    first = level / _n_adjusted(rule, c, n_covered, basis)
    # a plan's adjustment may let the largest difference through at the whole level, as max-T does
    smallest = detectable(c.result, basis.spread(c.result), first, reach=level if rule.adjust == "plan" else first)
    is_simulated = simulated is not None and smallest != math.inf
    smallest = simulated if is_simulated else smallest
    key = key_of(c.result)
    since = basis.evidence.known.get((name_of(rule), key)) if failed else None
    return RuleFinding(
        key=key,
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=p,
        passed=not failed,
        detectable=smallest,
        text=f"{c.system} is {_standing(c, failed=failed)} {c.baseline} by {where(c)}: {c.gain:+.4g}, "
        f"{p_equals(p, level)}{'' if rule.adjust == 'none' else ' adjusted'}, "
        f"{'at most' if p <= level else 'above'} the level {low_text(level)}; {_detectable_text(smallest)}"
        f"{' (simulated)' if is_simulated else ''}{_other_verdict(c, basis.alpha, failed=failed)}"
        f"{'' if since is None else f'; the outputs are those of run {since}: no new alarm'}",
        level=level,
        since=since,
    )


def _standing(c: CoveredComparison, *, failed: bool) -> str:
    """Say how a system stands to its baseline; that it scores as much does not show that it is not worse."""
    if c.is_worse:
        return "significantly worse than" if failed else "worse, but not significantly, than"
    return "ahead of" if c.gain > 0 else "level with"


def _other_verdict(c: CoveredComparison, alpha: float | None, *, failed: bool) -> str:
    """Say where the plan's tables call a loss significant that the gate lets pass, which has another level."""
    p = c.result.p_value if c.result.p_adjusted is None else c.result.p_adjusted
    if failed or alpha is None or not c.is_worse or p > alpha:
        return ""
    return f"; significant at the plan's alpha {alpha:g} ({p_equals(p, alpha)}), which is no alarm"


def _n_adjusted(rule: NotWorse, c: CoveredComparison, n_covered: int, basis: Basis) -> int:
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


def _alarms(rule: NotWorse, basis: Basis, level: float) -> float:
    if basis.fdr == "none":
        return basis.runs_per_year * min(1.0, level)
    return min(basis.runs_per_year, online_fdr.most_false_alarms(rule.alpha, basis.fdr))


def _notes(rule: NotWorse, basis: Basis, level: float, findings: Sequence[RuleFinding]) -> Iterator[str]:
    n_blind = sum(f.detectable is not None and math.isinf(f.detectable) for f in findings)
    if (repeated := basis.evidence.repeats.get(name_of(rule))) is not None:
        yield f"the outputs are those of run {repeated}: one observation, which counts once"
    if basis.fdr != "none":
        n_past = len(basis.evidence.history.get(name_of(rule), ()))
        yield (
            f"{basis.fdr}: after {n_past} earlier runs this one is held against {low_text(level)}, so that of all "
            f"alarms at most {rule.alpha:g} are false{'' if basis.fdr == 'lond' else ', of nights with fresh items'}"
        )
        steady = FALSE_ALARMS_PER_YEAR / basis.runs_per_year
        if level < steady / WEAK:
            yield (
                f"{basis.fdr} has lost its power: {_weakest(findings)}; false_alarms_per_year = "
                f"{FALSE_ALARMS_PER_YEAR:g} instead of fdr holds every night against {low_text(steady)}"
            )
    elif rule.false_alarms_per_year is not None:
        budget = f"{rule.false_alarms_per_year:g} false alarms a year over {basis.runs_per_year:g} runs"
        if rule.alpha <= rule.false_alarms_per_year / basis.runs_per_year:
            budget = f"alpha {rule.alpha:g}, which is stricter than {budget}"
        part = f" of the gate's {basis.n_shared:,}" if basis.n_shared > len(findings) else ""
        n = f"{len(findings):,}{part} comparison{'' if len(findings) == 1 and not part else 's'}"
        yield f"this night's level is {low_text(level)} over {n}: {budget}{_least(rule, level, len(findings))}"
        if basis.evidence.n_runs > basis.runs_per_year:
            yield (
                f"{basis.evidence.n_runs:,} runs with new inputs in the last 365 days, and runs_per_year says "
                f"{basis.runs_per_year:g}: there are more false alarms than false_alarms_per_year; set runs_per_year"
            )
    if n_blind:
        yield f"{n_blind} of {len(findings)} comparisons could not fail: too few units or trials for this level"


def _least(rule: NotWorse, level: float, n: int) -> str:
    """Say what the smallest p of several comparisons is held against."""
    if n == 1 or rule.adjust == "plan":
        return ""
    return f"; {low_text(level / n)} for {'the smallest p' if rule.adjust == 'holm' else 'each'} before adjusting"


def _weakest(findings: Sequence[RuleFinding]) -> str:
    """Say which losses pass unseen at this night's level."""
    losses = [f.detectable for f in findings if f.detectable is not None]
    if not losses:
        return "this level sees no usual loss"
    if math.isinf(max(losses)):
        return "no loss at all can be detected in some comparisons"
    return f"a loss of less than {high_text(max(losses))} passes in more than one night in five"
