"""Results held against all rules of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sigdask.nightly.gate.coverage import Basis, covered_by, speaks_of
from sigdask.nightly.gate.non_inferiority import within_margin
from sigdask.nightly.gate.not_worse import not_worse
from sigdask.nightly.gate.rules import Evidence, Fdr, GateVerdict, Key, NotWorse, Rule, RuleVerdict, name_of
from sigdask.results.table import Table


def judge(
    rules: Sequence[Rule],
    found: Table,
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
    found : Table
        Of all test sets, adjusted as the plan says.
    evidence : Evidence
        Baselines, spreads, tests of margins, history.
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
    basis = Basis.of(rules, found, evidence, family, fdr, runs_per_year)
    return GateVerdict(tuple(_verdict(rule, basis) for rule in rules))


def _verdict(rule: Rule, basis: Basis) -> RuleVerdict:
    covered = list(covered_by(rule, basis.table, basis.evidence.baselines))
    if not covered:
        notes: tuple[str, ...] = ("speaks of no comparison: nothing was shown",)
        return RuleVerdict(rule, name_of(rule), False, 1.0, rule.alpha, (), 0.0, notes)
    verdict = not_worse(rule, covered, basis) if isinstance(rule, NotWorse) else within_margin(rule, covered, basis)
    baselines = basis.evidence.baselines
    absent = [key for key in basis.evidence.absent if speaks_of(rule, key, baselines.get(key[0]))]
    if gone := basis.evidence.gone.get(verdict.name, ()):
        note = f"judged in the run before, and not in this one: {_listed(gone)}"
        verdict = replace(verdict, notes=(*verdict.notes, note), n_gone=len(gone))
    return _without(verdict, absent) if absent else verdict


def _without(verdict: RuleVerdict, absent: Sequence[Key]) -> RuleVerdict:
    """Say what could not be compared: of such nothing is shown, and nothing is found worse."""
    note = f"not compared, no item in common: {_listed(absent)}"
    passed = verdict.passed and isinstance(verdict.rule, NotWorse)
    return replace(verdict, passed=passed, notes=(*verdict.notes, note), n_blind=verdict.n_blind + len(absent))


def _listed(keys: Sequence[Key]) -> str:
    """Name the first of some comparisons, and count the others."""
    test_set, subset, a, b, metric = keys[0]
    where = f"{test_set}{f', {subset}' if subset is not None else ''}"
    return f"{a} and {b} by {metric} on {where}{f', and {len(keys) - 1:,} more' if len(keys) > 1 else ''}"
