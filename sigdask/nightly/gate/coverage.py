"""The comparisons that a rule covers, and the data on which all rules of a run are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sigdask.identity import dataclass
from sigdask.nightly.gate.rules import ComparisonKey, Evidence, Fdr, NotWorse, Rule, RuleFinding, get_key
from sigdask.results.columns import CodedColumn
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.statistics.rounding import format_upper_limit
from sigdask.text import format_list

MAX_METRICS = 6
"""Maximum number of metrics whose largest detectable losses are listed."""


@dataclass(frozen=True, slots=True, eq=False)
class GateContext:
    """Data and settings on which all rules are judged.

    Attributes
    ----------
    table : Table
        The results.
    evidence : Evidence
        Further evidence that rules need.
    family : {"metric", "test-set", "plan"}
        Within which the plan adjusted.
    fdr : {"none", "lord++", "lond"}
        Online rule.
    runs_per_year : float
        Runs a year, for the expected number of false alarms.
    sizes : mapping of tuple of str to int
        Comparisons of each family.
    n_shared : int
        Comparisons of all rules that share the false alarms of a year.
    alpha : float or None
        The level of the plan's tables, which is not the gate's.
    """

    table: Table
    evidence: Evidence
    family: str
    fdr: Fdr
    runs_per_year: float
    sizes: Mapping[tuple[str, ...], int]
    n_shared: int = 0
    alpha: float | None = None

    @staticmethod
    def from_rules(
        rules: Sequence[Rule], table: Table, evidence: Evidence, family: str, fdr: Fdr, runs_per_year: float
    ) -> GateContext:
        """Return the context for some rules, with the numbers of comparisons that their levels depend on."""
        codes = np.column_stack([table.test_set.codes, table.metric.codes])
        distinct, n_rows = np.unique(codes, axis=0, return_counts=True)
        sizes = Counter[tuple[str, ...]]()
        for (test_set, metric), n in zip(distinct.tolist(), n_rows.tolist(), strict=True):
            sizes[_build_family_key(family, table.test_set.values[test_set], table.metric.values[metric].name)] += n
        n_shared = sum(
            len(select_rows(rule, table, evidence.baselines))
            for rule in rules
            if isinstance(rule, NotWorse) and rule.false_alarms_per_year is not None
        )
        return GateContext(table, evidence, family, fdr, runs_per_year, sizes, n_shared, table.alpha)

    def get_family(self, result: Result) -> tuple[str, ...]:
        """Return the key of the family of comparisons in which the plan adjusted a result's p-value."""
        return _build_family_key(self.family, result.test_set, result.metric)

    def get_spread(self, result: Result) -> float | None:
        """Return the standard deviation of a comparison's difference over trials, or None where it is unknown."""
        return self.evidence.spreads.get(get_key(result))


def _build_family_key(family: str, test_set: str, metric: str) -> tuple[str, ...]:
    return {"metric": (test_set, metric), "test-set": (test_set,)}.get(family, ())


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
    for code, test_set in enumerate(table.test_set.values):
        if not rule.test_sets or test_set in rule.test_sets:
            baseline = {rule.baseline or baselines.get(test_set)}
            is_covered |= (table.test_set.codes == code) & (_is_in(table.a, baseline) | _is_in(table.b, baseline))
    if rule.metrics:
        is_covered &= np.isin(
            table.metric.codes, [k for k, m in enumerate(table.metric.values) if covers_metric(rule, m.name)]
        )
    return np.flatnonzero(is_covered)


def _is_in(names: CodedColumn[str], selected: Container[str | None]) -> NDArray[np.bool_]:
    return np.isin(names.codes, [code for code, name in enumerate(names.values) if name in selected])


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
    """Return the findings with those that failed before those that passed."""
    return tuple(sorted(findings, key=lambda f: f.passed))


def find_largest_losses(findings: Sequence[RuleFinding]) -> dict[str, float]:
    """Return the largest detectable loss by each metric, because metrics differ in scale."""
    losses: dict[str, float] = {}
    for finding in findings:
        if finding.detectable is not None:
            metric = finding.key[-1]
            losses[metric] = max(losses.get(metric, 0.0), finding.detectable)
    return losses


def format_losses(losses: Mapping[str, float]) -> str:
    """Return losses as text, with the metrics' names if there are several.

    Examples
    --------
    >>> format_losses({"f1": 0.05}), format_losses({"AP": 0.07, "BLEU": 2.01})
    ('0.05', '0.07 (AP), 2.01 (BLEU)')
    """
    texts = [f"{format_upper_limit(loss)} ({metric})" for metric, loss in losses.items()]
    return format_list(texts, MAX_METRICS) if len(losses) > 1 else format_upper_limit(max(losses.values()))
