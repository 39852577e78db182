"""The data types of gates: rules, the evidence they need, findings and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields
from typing import Any, ClassVar, Literal, Protocol

from sigdask.identity import dataclass
from sigdask.results.record import Result
from sigdask.statistics.matched_proportions import MatchedProportions
from sigdask.text import as_json, to_plain

Fdr = Literal["none", "lord++", "lond"]

POWER = 0.8
"""Power at the smallest detectable difference."""

FALSE_ALARMS_PER_YEAR = 4.0
"""Default number of false alarms a year. The simulation behind it is in docs/error-rates/nights.md."""

ComparisonKey = tuple[str, str | None, str, str, str]
"""Test set, value of the subset, A, B, metric."""


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The rule that no system is significantly worse than the baseline.

    Passes as well where a test set is too small to show anything: the smallest difference that it
    could detect is stated.

    Attributes
    ----------
    alpha : float
        Level of the rule as a whole, or the most that it may be where there is `false_alarms_per_year`; with an online
        rule, the share of false alarms among alarms.
    adjust : {"holm", "plan", "none"}
        How the p-values of its comparisons are adjusted: by Holm over all of them, as the plan did
        (within each of its families), or not at all.
    baseline : str or None
        None uses the baseline of each test set.
    test_sets, metrics : tuple of str
        Test sets and metrics of the rule. Empty for all.
    detectable : {"normal", "simulated"}
        How the smallest loss that could be detected is found: by the normal approximation, or by samples of the
        observed units that are judged by the test itself. No verdict depends on it.
    false_alarms_per_year : float or None
        The level of each run is this number divided by the runs a year. Rules that have it share it by their numbers
        of comparisons, so that every comparison has the same part of it. The level does not depend on earlier runs.
    """

    alpha: float
    adjust: Literal["holm", "plan", "none"] = "holm"
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    detectable: Literal["normal", "simulated"] = "normal"
    false_alarms_per_year: float | None = None


@dataclass(frozen=True, slots=True)
class WithinMargin:
    """A rule that every system is within a margin of the baseline.

    Attributes
    ----------
    margin : float
        On the metric's own scale, above 0.
    alpha : float
        Level of each comparison; all must be shown, so that none needs adjusting (Berger 1982).
    baseline, test_sets, metrics
        As in `NotWorse`.
    """

    sides: ClassVar[tuple[int, ...]] = (1,)
    """Directions that are tested: 1 for "not worse by the margin", -1 for "not better"."""

    margin: float
    alpha: float
    baseline: str | None = None
    test_sets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()


class NonInferior(WithinMargin):
    """The rule that every system is shown to be worse than the baseline by less than a margin, if at all."""

    __slots__ = ()


class Equivalent(WithinMargin):
    """The rule that every system is shown to differ from the baseline by less than a margin, whichever is better.

    Two one-sided tests at level alpha, both of which must reject (Schuirmann 1987). The larger p is that of the rule.
    """

    __slots__ = ()
    sides = (1, -1)


Rule = NotWorse | WithinMargin


@dataclass(frozen=True, slots=True)
class MarginResult:
    """A test of non-inferiority or equivalence of one system.

    Attributes
    ----------
    p_value : float
        One-sided, of a difference worse than the margin or equal to it; of equivalence the larger of two.
    method : str
        The test and its limitations.
    n_trials : int or None
        Trials (or arrangements) of the shifted shuffle.
    smallest_margin : float or None
        Smallest margin that would be shown at the rule's level. Infinite if there is none, None if unknown. It is at
        most the rule's margin if and only if p is at most alpha.
    matched : MatchedProportions or None
        The items that differ, of 0/1 scores.
    is_doubtful : bool
        Whether p may be too small: few units differ, or rare differences are large.
    """

    p_value: float
    method: str
    n_trials: int | None = None
    smallest_margin: float | None = None
    matched: MatchedProportions | None = None
    is_doubtful: bool = False


class DetectableLosses(Protocol):
    """An object that finds the smallest losses that the comparisons of a test set would detect."""

    def find_losses(
        self, results: Sequence[Result], systems: Sequence[str], level: float, /
    ) -> dict[ComparisonKey, float]:
        """Return, for each comparison, the smallest loss that it would detect; unknown ones are left out."""
        ...


@dataclass(frozen=True, slots=True)
class Evidence:
    """Data that rules need in addition to results, such as baselines, standard deviations and p-values of earlier runs.

    Attributes
    ----------
    baselines : mapping of str to str
        The baseline of each test set, where a rule names none.
    spreads : mapping of Key to float
        Swap standard deviation of each comparison.
    margin_results : mapping of (NonInferior or Equivalent, Key) to MarginResult
        Tests of non-inferiority and equivalence.
    history : mapping of str to sequence of float
        Rule (`format_rule_name`) to its p-values of earlier runs, oldest first; runs whose comparisons did not
        change left out.
    levels : mapping of str to sequence of float
        By rule, the levels that applied to those runs, and the level of this run if it repeats one. By default those of
        the formula.
    repeats : mapping of str to int
        Rule to the earlier run with the same outputs in all of the rule's comparisons: one observation.
    first_failures : mapping of (str, Key) to int
        Rule and comparison that failed in an earlier run, to the first such run, if its outputs have not changed since.
    dropped : mapping of str to sequence of Key
        Rule to the comparisons that the run before judged, and that this one does not have.
    n_runs : int
        Runs of the last 365 days with new inputs, this one included.
    absent : tuple of Key
        Comparisons that could not be made: one of the systems has no such item.
    losses : mapping of str to DetectableLosses
        By test set, simulations of the smallest losses that would be detected.
    """

    baselines: Mapping[str, str | None] = field(default_factory=dict)
    spreads: Mapping[ComparisonKey, float] = field(default_factory=dict)
    margin_results: Mapping[tuple[WithinMargin, ComparisonKey], MarginResult] = field(default_factory=dict)
    history: Mapping[str, Sequence[float]] = field(default_factory=dict)
    levels: Mapping[str, Sequence[float]] = field(default_factory=dict)
    repeats: Mapping[str, int] = field(default_factory=dict)
    first_failures: Mapping[tuple[str, ComparisonKey], int] = field(default_factory=dict)
    dropped: Mapping[str, Sequence[ComparisonKey]] = field(default_factory=dict)
    n_runs: int = 0
    absent: tuple[ComparisonKey, ...] = ()
    losses: Mapping[str, DetectableLosses] = field(default_factory=dict)

    def __add__(self, other: Evidence) -> Evidence:
        names = [f.name for f in fields(self) if f.name not in {"n_runs", "absent"}]
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
        Whichever of A and B they are.
    gain : float
        How much better the system is than the baseline. Negative if it is worse, also if lower scores are better.
    p_value : float
        Adjusted where the rule adjusts; of non-inferiority or equivalence under these rules.
    passed : bool
        Whether it holds.
    detectable : float or None
        The smallest loss that would be detected with power 0.8, or the smallest margin that would be shown for an equal
        system with this power. Infinite if there is none, None if the data do not determine it.
    text : str
        Description in words.
    method : str or None
        How non-inferiority or equivalence was tested.
    smallest_margin : float or None
        Smallest margin that would be shown. Infinite if there is none, None if unknown.
    n_better, n_worse : int or None
        Items that only the system has right, and only the baseline, of 0/1 scores.
    level : float or None
        Level with which p was compared.
    since : int or None
        The run that raised this alarm first, where the outputs have not changed since: it is no new alarm.
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
    smallest_margin: float | None = None
    n_better: int | None = None
    n_worse: int | None = None
    level: float | None = None
    since: int | None = None


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """Outcome of one rule.

    Attributes
    ----------
    rule : NotWorse, NonInferior or Equivalent
        The rule in the plan.
    name : str
        Under which the store keeps its p-values.
    passed : bool
        Whether it holds; a rule that speaks of no comparison does not.
    p_value : float
        One for the whole rule, for the history: P(p <= x) <= x while nothing is worse.
    level : float
        Level with which p was compared in this run.
    findings : tuple of RuleFinding
        Failures first.
    alarms_per_year : float
        Expected number of runs a year that fail though no system is worse (at most, for NotWorse).
    notes : tuple of str
        Notes on the whole gate.
    fdr : {"none", "lord++", "lond"}
        The online rule that gave the level.
    least_level : float or None
        Maximum of the smallest unadjusted p of all comparisons. None if the plan adjusts.
    repeats : int or None
        The earlier run whose observation this one repeats.
    n_blind : int
        Comparisons that could not fail for lack of data, and those that could not be computed.
    n_gone : int
        Comparisons that the run before judged, and that this one does not have.
    n_doubtful : int
        Comparisons that are shown by a p which may be too small.
    """

    rule: Rule
    name: str
    passed: bool
    p_value: float
    level: float
    findings: tuple[RuleFinding, ...]
    alarms_per_year: float
    notes: tuple[str, ...]
    fdr: Fdr = "none"
    least_level: float | None = None
    repeats: int | None = None
    n_blind: int = 0
    n_gone: int = 0
    n_doubtful: int = 0

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

    @property
    def is_new(self) -> bool:
        """Whether the gate fails for a reason that no earlier run with the same outputs had."""
        failures = [finding for rule in self.rules if not rule.passed for finding in rule.failures]
        return not self.passed and (not failures or any(finding.since is None for finding in failures))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"passed": self.passed, "is_new": self.is_new, "rules": to_plain(self.rules)}

    def to_json(self) -> str:
        """Return JSON text."""
        return as_json(self.to_dict())


def get_key(result: Result) -> ComparisonKey:
    """Return the identity of a comparison: test set, subset value, A, B and metric."""
    return result.test_set, result.subset["value"] if result.subset else None, result.a, result.b, result.metric


def format_rule_name(rule: Rule) -> str:
    """Return the text that identifies a rule in the history; a different level or margin changes it.

    Examples
    --------
    >>> format_rule_name(NotWorse(0.01))
    'not-worse(alpha=0.01, adjust=holm)'
    >>> format_rule_name(NotWorse(0.05, false_alarms_per_year=4.0))
    'not-worse(alpha=0.05, adjust=holm, false_alarms_per_year=4)'
    """
    kind = {NotWorse: "not-worse", NonInferior: "non-inferior", Equivalent: "equivalent"}[type(rule)]
    settings = {k: v for k, v in asdict(rule).items() if v and k != "detectable"}
    if "false_alarms_per_year" in settings:
        settings["false_alarms_per_year"] = f"{settings['false_alarms_per_year']:g}"
    setting_texts = [f"{k}={'+'.join(v) if isinstance(v, tuple) else v}" for k, v in settings.items()]
    return f"{kind}({', '.join(setting_texts)})"
