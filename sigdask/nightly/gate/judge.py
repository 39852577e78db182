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
    format_rule_name,
    iter_covered,
)
from sigdask.results.table import Table


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
        note = "applies to no comparison, so nothing was shown; `sigdask check` names what the plan's data lack"
        return RuleVerdict(rule, format_rule_name(rule), False, 1.0, rule.alpha, (), 0.0, (note,))
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


def _describe_keys(keys: Sequence[ComparisonKey]) -> str:
    """Return text that names the first of some comparisons and says how many more there are."""
    test_set, subset, a, b, metric = keys[0]
    scope = f"{test_set}{f', {subset}' if subset is not None else ''}"
    return f"{a} and {b} by {metric} on {scope}{f', and {len(keys) - 1:,} more' if len(keys) > 1 else ''}"
