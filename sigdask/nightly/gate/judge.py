"""Judge results by all rules of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sigdask.nightly.gate.non_inferiority import judge_within_margin
from sigdask.nightly.gate.not_worse import judge_not_worse
from sigdask.nightly.gate.rules import (
    ComparisonKey,
    Evidence,
    GateContext,
    GateVerdict,
    NotWorse,
    Rule,
    RuleVerdict,
    covers_comparison,
    covers_metric,
    format_rule_name,
    iter_covered,
)
from sigdask.results.table import Table
from sigdask.text import format_list

MAX_NAMED = 6
"""Maximum number of systems, test sets or metrics that a note names."""


def judge_rules(
    rules: Sequence[Rule],
    table: Table,
    evidence: Evidence,
    *,
    runs_per_year: float = 365,
) -> GateVerdict:
    """Return the verdict of a gate's rules on results.

    Parameters
    ----------
    rules : sequence of Rule
        All must hold.
    table : Table
        Results of all test sets, adjusted as the plan requests.
    evidence : Evidence
        Baselines, spreads, tests of margins, earlier failures.
    runs_per_year : float
        Runs per year, for the expected number of false alarms.

    Raises
    ------
    InputError
        The results are not sufficient for a rule. The message says why.
    """
    basis = GateContext.from_rules(rules, table, evidence, runs_per_year)
    return GateVerdict(tuple(_judge_rule(rule, basis) for rule in rules))


def _judge_rule(rule: Rule, basis: GateContext) -> RuleVerdict:
    covered = list(iter_covered(rule, basis.table, basis.evidence.baselines))
    if not covered:
        notes = (f"applies to no comparison, so nothing was shown{_explain_no_comparison(rule, basis)}",)
        return RuleVerdict(rule, format_rule_name(rule), False, 1.0, rule.alpha, (), 0.0, notes)
    if isinstance(rule, NotWorse):
        verdict = judge_not_worse(rule, covered, basis)
    else:
        verdict = judge_within_margin(rule, covered, basis)
    baselines = basis.evidence.baselines
    absent = [key for key in basis.evidence.absent if covers_comparison(rule, key, baselines.get(key[0]))]
    if dropped := basis.evidence.dropped.get(verdict.name, ()):
        note = f"judged in the previous run, but not in this one: {_describe_keys(dropped)}"
        verdict = replace(verdict, notes=(*verdict.notes, note), n_gone=len(dropped))
    if absent:  # such baselines fail all rules but `NotWorse`
        note = f"not compared, because the systems have no item in common: {_describe_keys(absent)}"
        passed, n_blind = verdict.passed and isinstance(rule, NotWorse), verdict.n_blind + len(absent)
        verdict = replace(verdict, passed=passed, notes=(*verdict.notes, note), n_blind=n_blind)
    return verdict


def _explain_no_comparison(rule: Rule, basis: GateContext) -> str:
    """Return which name in a rule no comparison of the run has; nothing if there is none, or no comparison was made."""
    table, baselines = basis.table, basis.evidence.baselines
    if not len(table) or any(covers_comparison(rule, key, baselines.get(key[0])) for key in basis.evidence.absent):
        return ""
    systems, test_sets = {*table.a.values, *table.b.values}, {*table.test_set.values}
    metrics = {metric.name for metric in table.metric.values}
    for noun, names, known, is_known in (
        ("system", [rule.baseline] if rule.baseline else [], systems, rule.baseline in systems),
        ("test set", rule.test_sets, test_sets, not test_sets.isdisjoint(rule.test_sets or ())),
        ("metric", rule.metrics, metrics, any(covers_metric(rule, name) for name in metrics)),
    ):
        if names and not is_known:
            found = format_list(sorted(known), MAX_NAMED)
            return f": the run has no {noun} {' or '.join(map(repr, names))}; its {noun}s are {found}"
    return ""


def _describe_keys(keys: Sequence[ComparisonKey]) -> str:
    """Return text that names the first of some comparisons and says how many more there are."""
    test_set, subset, a, b, metric = keys[0]
    scope = f"{test_set}{f', {subset}' if subset is not None else ''}"
    return f"{a} and {b} by {metric} on {scope}{f', and {len(keys) - 1:,} more' if len(keys) > 1 else ''}"
