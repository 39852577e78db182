"""Rules that results must hold for a run to pass: nothing worse than the baseline, or shown not to be.

Nothing is read or counted here: results, spreads and tests of non-inferiority come from elsewhere, the
p-values of earlier runs from the store.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from scipy import special

from sigdask import online
from sigdask.errors import InputError
from sigdask.multiplicity import holm
from sigdask.results import Result

Fdr = Literal["none", "lord++", "lond"]

POWER = 0.8
"""Of detecting what is stated as the smallest detectable difference."""

Key = tuple[str, str | None, str, str, str]
"""Test set, value of the subset, A, B, metric."""


@dataclass(frozen=True, slots=True)
class NotWorse:
    """No system is significantly worse than the baseline.

    Passes as well where a test set is too small to show anything: the smallest difference that it
    could detect is stated.

    Attributes
    ----------
    alpha : float
        Level of the rule as a whole; with an online rule, the share of false alarms among alarms.
    adjust : {"holm", "plan", "none"}
        How the p-values of its comparisons are adjusted: by Holm over all of them, as the plan did
        (within each of its families), or not at all.
    baseline : str or None
        None takes the baseline of each test set.
    test_sets, metrics : tuple of str
        What it speaks of; empty for all.
    """

    alpha: float
    adjust: Literal["holm", "plan", "none"] = "holm"
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NonInferior:
    """Every system is shown to be worse than the baseline by less than a margin, if at all.

    Attributes
    ----------
    margin : float
        On the metric's own scale, above 0.
    alpha : float
        Level of each comparison; all must be shown, so that none needs adjusting (Berger 1982).
    baseline, test_sets, metrics
        As in `NotWorse`.
    """

    margin: float
    alpha: float
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


Rule = NotWorse | NonInferior


@dataclass(frozen=True, slots=True)
class Shown:
    """A test of non-inferiority of one system.

    Attributes
    ----------
    p_value : float
        One-sided, of a difference worse than the margin or equal to it.
    method : str
        "shifted shuffle" or "normal approximation".
    n_trials : int or None
        Trials (or arrangements) of the shifted shuffle.
    """

    p_value: float
    method: str
    n_trials: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rules need beside results.

    Attributes
    ----------
    baselines : mapping of str to str
        The baseline of each test set, where a rule names none.
    spreads : mapping of Key to float
        Swap standard deviation of each comparison.
    shown : mapping of (NonInferior, Key) to Shown
        Tests of non-inferiority.
    history : mapping of str to sequence of float
        Rule (`name_of`) to its p-values of earlier runs, oldest first; runs whose inputs did not
        change left out.
    """

    baselines: Mapping[str, str | None] = field(default_factory=dict)
    spreads: Mapping[Key, float] = field(default_factory=dict)
    shown: Mapping[tuple[NonInferior, Key], Shown] = field(default_factory=dict)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            {**self.baselines, **other.baselines},
            {**self.spreads, **other.spreads},
            {**self.shown, **other.shown},
            {**self.history, **other.history},
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one system on one test set under one metric.

    Attributes
    ----------
    key : Key
        The comparison.
    system, baseline : str
        Whichever of A and B they are.
    gain : float
        How much better the system is than the baseline; below 0 when it is worse, whichever way the
        metric goes.
    p_value : float
        Adjusted where the rule adjusts; of non-inferiority under that rule.
    passed : bool
        Whether it holds.
    detectable : float or None
        The smallest loss that would be detected with power 0.8; infinite where none can be, None where
        the data do not say.
    text : str
        The same in words.
    """

    key: Key
    system: str
    baseline: str
    gain: float
    p_value: float
    passed: bool
    detectable: float | None
    text: str


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """What became of one rule.

    Attributes
    ----------
    rule : NotWorse or NonInferior
        As the plan has it.
    name : str
        Under which the store keeps its p-values.
    passed : bool
        Whether it holds; a rule that speaks of no comparison does not.
    p_value : float
        One for the whole rule, for the history: P(p <= x) <= x while nothing is worse.
    level : float
        What p was held against in this run.
    findings : tuple of Finding
        Failures first.
    alarms_per_year : float
        Expected number of runs a year that fail though no system is worse (at most, for NotWorse).
    notes : tuple of str
        On the whole.
    """

    rule: Rule
    name: str
    passed: bool
    p_value: float
    level: float
    findings: tuple[Finding, ...]
    alarms_per_year: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What became of all rules.

    Attributes
    ----------
    rules : tuple of RuleVerdict
        In the order of the plan.
    """

    rules: tuple[RuleVerdict, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(rule.passed for rule in self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"passed": self.passed, "rules": [_plain(asdict(rule)) for rule in self.rules]}

    def to_json(self) -> str:
        """Return JSON text."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)


class Directed(Protocol):
    """What says whether more is better."""

    @property
    def name(self) -> str:
        """As the user wrote it."""

    @property
    def higher_is_better(self) -> bool:
        """Whether more is better."""


def key_of(result: Result) -> Key:
    """Return what identifies a comparison."""
    return result.test_set, result.subset["value"] if result.subset else None, result.a, result.b, result.metric


def name_of(rule: Rule) -> str:
    """Return the text that identifies a rule in the history; another level or margin is another rule.

    Examples
    --------
    >>> name_of(NotWorse(0.01))
    'not-worse(alpha=0.01, adjust=holm)'
    """
    kind = "not-worse" if isinstance(rule, NotWorse) else "non-inferior"
    given = {k: v for k, v in asdict(rule).items() if v}
    written = [f"{k}={'+'.join(v) if isinstance(v, tuple) else v}" for k, v in given.items()]
    return f"{kind}({', '.join(written)})"


def judge(
    rules: Sequence[Rule],
    results: Sequence[Result],
    evidence: Evidence,
    *,
    family: str = "test-set",
    fdr: Fdr = "none",
    runs_per_year: float = 365,
) -> GateVerdict:
    """Hold results against rules.

    Parameters
    ----------
    rules : sequence of Rule
        All must hold.
    results : sequence of Result
        Of all test sets, adjusted as the plan says.
    evidence : Evidence
        Baselines, spreads, tests of non-inferiority, history.
    family : {"metric", "test-set", "plan"}
        Within which the plan adjusted.
    fdr : {"none", "lord++", "lond"}
        Online rule for the levels of `NotWorse`.
    runs_per_year : float
        For the expected number of false alarms.

    Raises
    ------
    InputError
        The results cannot answer a rule; it says why.
    """
    run = _Run(results, evidence, family, fdr, runs_per_year)
    return GateVerdict(tuple(_verdict(rule, run) for rule in rules))


@dataclass(frozen=True, slots=True)
class _Run:
    """What all rules are judged on."""

    results: Sequence[Result]
    evidence: Evidence
    family: str
    fdr: Fdr
    runs_per_year: float

    def family_of(self, result: Result) -> tuple[str, ...]:
        """Return what names the family that the plan adjusted a result in."""
        return {"metric": (result.test_set, result.metric), "test-set": (result.test_set,)}.get(self.family, ())

    def spread(self, result: Result) -> float | None:
        return self.evidence.spreads.get(key_of(result))


@dataclass(frozen=True, slots=True)
class _Covered:
    """A comparison of a system with the baseline, turned so that a gain is good."""

    result: Result
    system: str
    baseline: str
    gain: float

    @property
    def is_worse(self) -> bool:
        return self.gain < 0


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    higher_is_better: bool


def _verdict(rule: Rule, run: _Run) -> RuleVerdict:
    covered = list(_covered(rule, run.results, run.evidence.baselines))
    if not covered:
        notes = ("speaks of no comparison: nothing was shown",)
        return RuleVerdict(rule, name_of(rule), False, 1.0, rule.alpha, (), 0.0, notes)
    return _non_inferior(rule, covered, run) if isinstance(rule, NonInferior) else _not_worse(rule, covered, run)


def covers(rule: Rule, result: Result, baseline: str | None) -> bool:
    """Say whether a rule speaks of a result, where its test set has this baseline."""
    return (
        (not rule.test_sets or result.test_set in rule.test_sets)
        and (not rule.metrics or result.metric in rule.metrics)
        and (rule.baseline or baseline) in {result.a, result.b}
    )


def _covered(rule: Rule, results: Sequence[Result], baselines: Mapping[str, str | None]) -> Iterator[_Covered]:
    for r in results:
        if covers(rule, r, baselines.get(r.test_set)):
            baseline = rule.baseline or baselines[r.test_set]
            system = r.a if baseline == r.b else r.b
            gain = r.difference if (system == r.a) == r.higher_is_better else -r.difference
            yield _Covered(r, system, str(baseline), gain)


def _not_worse(rule: NotWorse, covered: Sequence[_Covered], run: _Run) -> RuleVerdict:
    for c in covered:
        check_direction(
            c.result.a,
            c.result.b,
            c.baseline,
            c.result.alternative,
            _Metric(c.result.metric, c.result.higher_is_better),
        )
    adjusted = _adjusted(rule, covered, run)
    losses = [p for c, p in zip(covered, adjusted, strict=True) if c.is_worse]
    n_apart = _n_apart(rule, covered, run)
    past = run.evidence.history.get(name_of(rule), ())
    level = rule.alpha if run.fdr == "none" else online.levels(past, rule.alpha, run.fdr)[-1]
    each = level if run.fdr == "none" else level / n_apart
    findings = [_loss(rule, c, p, each, len(covered), run) for c, p in zip(covered, adjusted, strict=True)]
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=min(1.0, n_apart * min(losses, default=1.0)),
        level=level,
        findings=_failures_first(findings),
        alarms_per_year=_alarms(rule, run, n_apart),
        notes=tuple(_notes(rule, run.fdr, level, len(past), findings)),
    )


def _n_apart(rule: NotWorse, covered: Sequence[_Covered], run: _Run) -> int:
    """Return the number of families, or of comparisons, that each have a level of their own."""
    if rule.adjust == "holm":
        return 1
    return len(covered) if rule.adjust == "none" else len({run.family_of(c.result) for c in covered})


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


def _adjusted(rule: NotWorse, covered: Sequence[_Covered], run: _Run) -> list[float]:
    if rule.adjust == "plan":
        return [_as_the_plan(c, run) for c in covered]
    p_values = [c.result.p_value for c in covered]
    return [float(p) for p in holm(p_values)] if rule.adjust == "holm" else p_values


def _as_the_plan(c: _Covered, run: _Run) -> float:
    """Return the p-value as the plan adjusted it; a family of one needs no adjusting."""
    if c.result.p_adjusted is not None:
        return c.result.p_adjusted
    if _n_in_family(c.result, run) > 1:
        raise InputError('gate: adjust = "plan", and the results are not adjusted; choose "holm" or "none"')
    return c.result.p_value


def _n_in_family(result: Result, run: _Run) -> int:
    own = run.family_of(result)
    return sum(run.family_of(r) == own for r in run.results)


def _loss(rule: NotWorse, c: _Covered, p: float, level: float, n_covered: int, run: _Run) -> Finding:
    failed = c.is_worse and p <= level
    smallest = detectable(c.result, run.spread(c.result), level / _n_adjusted(rule, c, n_covered, run))
    words = "significantly worse" if failed else ("worse, not significantly" if c.is_worse else "not worse")
    return Finding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=p,
        passed=not failed,
        detectable=smallest,
        text=f"{c.system} is {words} than {c.baseline} by {_where(c)}: {c.gain:+.4g}, p = {p:.3g}"
        f"{'' if rule.adjust == 'none' else ' adjusted'}; {_detectable_text(smallest)}",
    )


def _n_adjusted(rule: NotWorse, c: _Covered, n_covered: int, run: _Run) -> int:
    """Return among how many comparisons the smallest p is chosen."""
    if rule.adjust != "plan":
        return n_covered if rule.adjust == "holm" else 1
    return _n_in_family(c.result, run)


def detectable(result: Result, sd: float | None, level: float) -> float | None:
    """Return the smallest loss that would be found at a level with power 0.8.

    By the normal approximation with the swap standard deviation. Infinite where units or trials are so
    few that no p-value can reach the level; None where nothing tells how far differences spread.
    """
    sides = 2 if result.alternative == "two-sided" else 1
    smallest_p = sides * 2.0**-result.n_units
    if result.method != "exact":
        smallest_p = max(smallest_p, 1 / (result.n_trials + 1))
    if smallest_p > level:
        return math.inf
    if not sd:
        return None
    return float(special.ndtri(1 - level / sides) + special.ndtri(POWER)) * sd


def _detectable_text(smallest: float | None) -> str:
    if smallest is None:
        return "nothing tells which loss would be detected"
    if math.isinf(smallest):
        return "no difference at all could be detected with so few units or trials"
    return f"a loss of {smallest:.3g} would be detected with power {POWER:g}"


def _alarms(rule: NotWorse, run: _Run, n_apart: int) -> float:
    if run.fdr == "none":
        return run.runs_per_year * min(1.0, rule.alpha * n_apart)
    return min(run.runs_per_year, online.most_false_alarms(rule.alpha, run.fdr))


def _notes(rule: NotWorse, fdr: Fdr, level: float, n_past: int, findings: Sequence[Finding]) -> Iterator[str]:
    if fdr != "none":
        yield (
            f"{fdr}: after {n_past} earlier runs this one is held against {level:.3g}, so that of all alarms at most "
            f"{rule.alpha:g} are false"
        )
    if blind := sum(f.detectable is not None and math.isinf(f.detectable) for f in findings):
        yield f"{blind} of {len(findings)} comparisons could not fail: too few units or trials for this level"


def _non_inferior(rule: NonInferior, covered: Sequence[_Covered], run: _Run) -> RuleVerdict:
    findings, power = [], 1.0
    for c in covered:
        shown = run.evidence.shown.get((rule, key_of(c.result)))
        if shown is None:
            raise InputError(f"gate: non-inferiority of {c.system} to {c.baseline} by {_where(c)} was not tested")
        findings.append(_within(rule, c, shown, run.spread(c.result)))
        power *= power_to_show(rule, run.spread(c.result))
    return RuleVerdict(
        rule=rule,
        name=name_of(rule),
        passed=all(f.passed for f in findings),
        p_value=max(f.p_value for f in findings),
        level=rule.alpha,
        findings=_failures_first(findings),
        alarms_per_year=run.runs_per_year * (1 - power),
        notes=(f"systems equal to the baseline would all be shown with probability of about {power:.3g}",),
    )


def _within(rule: NonInferior, c: _Covered, shown: Shown, sd: float | None) -> Finding:
    passed = shown.p_value <= rule.alpha
    smallest = None if not sd else float(special.ndtri(1 - rule.alpha) + special.ndtri(POWER)) * sd
    words = "is shown to be" if passed else "is not shown to be"
    worst = "" if not sd else _worst(float(special.ndtri(1 - rule.alpha)) * sd - c.gain, rule.alpha)
    needs = "" if not smallest else f"; an equal system would be shown within {smallest:.3g} with power {POWER:g}"
    return Finding(
        key=key_of(c.result),
        system=c.system,
        baseline=c.baseline,
        gain=c.gain,
        p_value=shown.p_value,
        passed=passed,
        detectable=smallest,
        text=f"{c.system} {words} within {rule.margin:g} of {c.baseline} by {_where(c)}: {c.gain:+.4g}, "
        f"p = {shown.p_value:.3g} ({shown.method}){worst}{needs}",
    )


def _worst(loss: float, alpha: float) -> str:
    """Write the one-sided upper bound of the loss, by the normal approximation."""
    bound = f"at most {loss:.3g} worse" if loss > 0 else "no worse"
    return f"; {bound} at {1 - alpha:.3g} confidence (normal approximation)"


def power_to_show(rule: NonInferior, sd: float | None) -> float:
    """Return the probability that a system equal to the baseline is shown to be non-inferior."""
    if not sd:
        return 1.0
    return float(special.ndtr(rule.margin / sd - special.ndtri(1 - rule.alpha)))


def _where(c: _Covered) -> str:
    subset = f", {c.result.subset['column']} {c.result.subset['value']}" if c.result.subset else ""
    return f"{c.result.metric} on {c.result.test_set or 'the test set'}{subset}"


def _failures_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: f.passed))


def _plain(value: Any) -> Any:
    """Make values that JSON has: infinity becomes text."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite"
    return value
