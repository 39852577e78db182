"""The rules of a gate, the comparisons that they cover, the evidence that they need, findings and verdicts."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.margins import MarginResult
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.text import as_json, to_plain

POWER = 0.8
"""Power at the smallest detectable difference."""

FALSE_ALARMS_PER_YEAR = 4.0
"""Default number of false alarms a year. The simulation behind it is in benchmarks/results-error-rates.md."""

ComparisonKey = tuple[str, str | None, str, str, str]
"""Test set, value of the subset, A, B, metric."""


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The rule that no system is significantly worse than the baseline.

    A system fails if both the swap test and the equal-score test reject. The rule also passes if a test set is too
    small to show a difference, so the smallest detectable difference is stated.

    Attributes
    ----------
    alpha : float
        Level of the rule as a whole, or its maximum with `false_alarms_per_year`.
    baseline : str or None
        None uses the baseline of each test set.
    test_sets, metrics : tuple of str
        Test sets and metrics of the rule. Empty for all.
    false_alarms_per_year : float or None
        The level of each run is this number divided by the runs per year. Rules share it in proportion to their numbers
        of comparisons, so that every comparison has the same share. The level does not depend on earlier runs.
    """

    alpha: float
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    false_alarms_per_year: float | None = None


@dataclass(frozen=True, slots=True)
class NonInferior:
    """The rule that every system is shown to be worse than the baseline by less than a margin, if at all.

    Attributes
    ----------
    margin : float
        The margin on the metric's own scale, above 0.
    alpha : float
        Level of each comparison. No adjustment is needed, because all must be shown (Berger 1982).
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
class Evidence:
    """Data that rules need in addition to results, such as baselines and standard deviations.

    Attributes
    ----------
    baselines : mapping of str to str
        The baseline of each test set, for rules that name none.
    spreads : mapping of Key to float
        Swap standard deviation of each comparison.
    margin_results : mapping of (NonInferior, Key) to MarginResult
        Tests of non-inferiority.
    dropped : mapping of str to sequence of Key
        Comparisons of each rule that the run before judged, and that this run lacks.
    n_runs : int
        Number of runs in the last 365 days, including this one. Runs with the same inputs one after another are one.
    absent : tuple of Key
        Comparisons that could not be made, because one of the systems lacks the items.
    runs_per_year : float
        Runs per year, for the expected number of false alarms.
    n_shared : int
        Comparisons of all rules that share the false alarms of a year.
    """

    baselines: Mapping[str, str | None] = field(default_factory=dict)
    spreads: Mapping[ComparisonKey, float] = field(default_factory=dict)
    margin_results: Mapping[tuple[NonInferior, ComparisonKey], MarginResult] = field(default_factory=dict)
    dropped: Mapping[str, Sequence[ComparisonKey]] = field(default_factory=dict)
    n_runs: int = 0
    absent: tuple[ComparisonKey, ...] = ()
    runs_per_year: float = 365.0
    n_shared: int = 0

    def get_spread(self, result: Result) -> float | None:
        """Return the standard deviation of a comparison's difference over trials, or None where it is unknown."""
        return self.spreads.get(get_key(result))

    def __add__(self, other: Evidence) -> Evidence:
        names = ("baselines", "spreads", "margin_results", "dropped")
        merged: dict[str, Any] = {name: {**getattr(self, name), **getattr(other, name)} for name in names}
        return Evidence(**merged, n_runs=max(self.n_runs, other.n_runs), absent=(*self.absent, *other.absent))


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule concludes about one system on one test set under one metric.

    Attributes
    ----------
    key : Key
        The comparison.
    system, baseline : str
        The names of A and B, in either order.
    gain : float
        How much better the system is than the baseline. Negative if it is worse, also if lower scores are better.
    p_value : float
        P-value of the rule's test, adjusted if the rule adjusts.
    passed : bool
        Whether the system passes.
    detectable : float or None
        The smallest loss that would be detected with power 0.8, or the smallest margin that would be shown for an equal
        system with this power. Infinite if there is none, None if the data do not determine it.
    text : str
        Description in words.
    method : str or None
        How non-inferiority was tested.
    level : float or None
        Level with which p was compared.
    p_equal_scores : float or None
        P-value of the equal-score test, adjusted if the rule adjusts. None if the rule or the scores have no such test.
    is_contested : bool
        Whether only one of the two tests shows a loss, so that the system does not fail.
    """

    key: ComparisonKey
    system: str
    baseline: str
    gain: float
    p_value: float
    passed: bool
    detectable: float | None
    text: str
    method: str | None = None
    level: float | None = None
    p_equal_scores: float | None = None
    is_contested: bool = False


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Outcome of one rule.

    Attributes
    ----------
    rule : NotWorse or NonInferior
        The rule in the plan.
    name : str
        Name of the rule.
    passed : bool
        Whether the rule holds. A rule without comparisons does not.
    p_value : float
        One p-value for the whole rule: P(p <= x) <= x while nothing is worse.
    level : float
        Level with which p was compared in this run.
    findings : tuple of RuleFinding
        Failures first.
    alarms_per_year : float
        Expected number of runs a year that fail though no system is worse (at most, for NotWorse).
    notes : tuple of str
        Notes on the whole gate.
    n_blind : int
        Number of comparisons that could not fail for lack of data, or that could not be computed.
    n_gone : int
        Number of comparisons that the run before judged, and that this run lacks.
    n_doubtful : int
        Number of comparisons that pass with a p which may be too small.
    n_contested : int
        Number of comparisons in which only one of two tests shows a loss.
    """

    rule: Rule
    name: str
    passed: bool
    p_value: float
    level: float
    findings: tuple[RuleFinding, ...]
    alarms_per_year: float
    notes: tuple[str, ...]
    n_blind: int = 0
    n_gone: int = 0
    n_doubtful: int = 0
    n_contested: int = 0

    @property
    def failures(self) -> tuple[RuleFinding, ...]:
        """The comparisons that fail."""
        return tuple(finding for finding in self.findings if not finding.passed)


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Outcome of all rules.

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
        """Return plain values for JSON."""
        return {"passed": self.passed, "rules": to_plain(self.rules)}

    def to_json(self) -> str:
        """Return JSON text."""
        return as_json(self.to_dict())


def get_key(result: Result) -> ComparisonKey:
    """Return the identity of a comparison: test set, subset value, A, B and metric."""
    return result.test_set, result.subset["value"] if result.subset else None, result.a, result.b, result.metric


def format_rule_name(rule: Rule) -> str:
    """Return the text that identifies a rule; the level is stated beside it.

    Examples
    --------
    >>> format_rule_name(NotWorse(0.05, false_alarms_per_year=4.0))
    'not-worse (false_alarms_per_year=4)'
    """
    kind = "non-inferior" if isinstance(rule, NonInferior) else "not-worse"
    settings = {k: v for k, v in asdict(rule).items() if v and k != "alpha"}
    if "false_alarms_per_year" in settings:
        settings["false_alarms_per_year"] = f"{settings['false_alarms_per_year']:g}"
    setting_texts = [f"{k}={'+'.join(v) if isinstance(v, tuple) else v}" for k, v in settings.items()]
    return f"{kind} ({', '.join(setting_texts)})" if setting_texts else kind


@dataclass(frozen=True, slots=True)
class CoveredComparison:
    """A comparison with the baseline under a rule of the gate; its gain is positive if the system is better."""

    result: Result
    system: str
    baseline: str
    gain: float

    @property
    def is_worse(self) -> bool:
        """Whether the baseline scores better."""
        return self.gain < 0


def covers_metric(rule: Rule, metric: str) -> bool:
    """Return whether a rule applies to a metric, ignoring the case of its name."""
    return not rule.metrics or metric.casefold() in {name.casefold() for name in rule.metrics}


def covers_comparison(rule: Rule, key: ComparisonKey, baseline: str | None) -> bool:
    """Return whether a rule applies to a comparison, given the baseline of its test set."""
    test_set, _, a, b, metric = key
    return (
        (not rule.test_sets or test_set in rule.test_sets)
        and covers_metric(rule, metric)
        and (rule.baseline or baseline) in {a, b}
    )


def select_rows(rule: Rule, table: Table, baselines: Mapping[str, str | None]) -> NDArray[np.int64]:
    """Return the indices of the table rows that a rule covers."""
    is_covered = np.zeros(len(table), np.bool_)
    for code, test_set in enumerate(table.test_set.levels):
        if not rule.test_sets or test_set in rule.test_sets:
            is_baseline = partial(operator.eq, rule.baseline or baselines.get(test_set))
            has_baseline = table.a.find(is_baseline) | table.b.find(is_baseline)
            is_covered |= (table.test_set.codes == code) & has_baseline
    return np.flatnonzero(is_covered & table.metric.find(lambda metric: covers_metric(rule, metric)))


def iter_covered(rule: Rule, table: Table, baselines: Mapping[str, str | None]) -> Iterator[CoveredComparison]:
    """Yield the comparisons that a rule covers, each as a system against its baseline."""
    for r in iter_results(table.take(select_rows(rule, table, baselines))):
        baseline = rule.baseline or baselines[r.test_set]
        system = r.a if baseline == r.b else r.b
        gain = r.difference if (system == r.a) == r.higher_is_better else -r.difference
        yield CoveredComparison(r, system, str(baseline), gain)


def describe_scope(c: CoveredComparison) -> str:
    """Return the metric and the test set of a comparison as text."""
    subset = f", {c.result.subset['column']} {c.result.subset['value']}" if c.result.subset else ""
    return f"{c.result.metric} on {c.result.test_set or 'the test set'}{subset}"


def sort_findings(findings: Sequence[RuleFinding]) -> tuple[RuleFinding, ...]:
    """Return the findings: those that failed, those that are contested, and those that passed."""
    return tuple(sorted(findings, key=lambda f: (f.passed, not f.is_contested)))
