"""Judge results by all rules of a gate, with standard deviations and margin tests as further evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import numpy as np

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.margins import NOT_WORSE, MarginResult, MarginTests, estimate_deviations
from sigdask.analysis.comparison.pairs import CompareSpec, bind_metric, list_comparisons
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import AnyBound
from sigdask.nightly.gate.rules import (
    ComparisonKey,
    Evidence,
    GateVerdict,
    NonInferior,
    NotWorse,
    Rule,
    RuleVerdict,
    covers_comparison,
    format_rule_name,
    get_key,
    iter_covered,
    select_rows,
)
from sigdask.nightly.gate.verdicts import judge_not_worse, judge_within_margin
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results.columns import Subset
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
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
    sharing = [rule for rule in rules if isinstance(rule, NotWorse) and rule.false_alarms_per_year is not None]
    n_shared = sum(len(select_rows(rule, table, evidence.baselines)) for rule in sharing)
    evidence = replace(evidence, runs_per_year=runs_per_year, n_shared=n_shared)
    return GateVerdict(tuple(_judge_rule(rule, table, evidence) for rule in rules))


def _judge_rule(rule: Rule, table: Table, evidence: Evidence) -> RuleVerdict:
    covered = list(iter_covered(rule, table, evidence.baselines))
    if not covered:
        note = "applies to no comparison, so nothing was shown; `sigdask check` names what the plan's data lack"
        return RuleVerdict(rule, format_rule_name(rule), False, 1.0, rule.alpha, (), 0.0, (note,))
    if isinstance(rule, NotWorse):
        verdict = judge_not_worse(rule, covered, evidence)
    else:
        verdict = judge_within_margin(rule, covered, evidence)
    absent = [key for key in evidence.absent if covers_comparison(rule, key, evidence.baselines.get(key[0]))]
    if dropped := evidence.dropped.get(verdict.name, ()):
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


Count = Callable[[Sequence[Job]], Sequence[Tally]]
"""Function that counts jobs."""


def gather_evidence(
    counts: Counts,
    table: Table,
    rules: Sequence[Rule],
    spec: CompareSpec,
    *,
    count: Count = count_jobs,
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Evidence:
    """Return evidence beyond a test set's results: standard deviations and margin tests.

    Non-inferiority is tested as `sigdask.analysis.comparison.margins` says.

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    table : Table
        Results of this test set. Rows of other test sets are ignored.
    rules : sequence of Rule
        Rules of the gate.
    spec : CompareSpec
        Settings with which the results were counted, and the baseline of rules that name none.
    count : callable
        Counts the jobs of margin tests.
    interruptible : callable
        Context manager for work that may be interrupted.

    Returns
    -------
    Evidence
    """
    baselines = {counts.name: spec.baseline}
    own_rows = table.take(np.flatnonzero(table.test_set.equals(counts.name)))
    covered = [select_rows(rule, own_rows, baselines) for rule in rules]
    covered_results = [*iter_results(own_rows.take(np.unique(np.concatenate(covered))))] if covered else []
    with interruptible():
        metrics = {
            name: bind_metric(metric_registry.find_metric(name, counts), counts)
            for name in dict.fromkeys(r.metric for r in covered_results)
        }
        found = _iter_spreads(counts, covered_results, list(metrics.values()), spec) if covered_results else ()
        spreads = dict(found)
    margin_results: dict[tuple[NonInferior, ComparisonKey], MarginResult] = {}
    for rule, rows in zip(rules, covered, strict=True):
        if not isinstance(rule, NotWorse):
            rule_results = [*iter_results(own_rows.take(rows))]
            for name in dict.fromkeys(r.metric for r in rule_results):
                metric_results = [r for r in rule_results if r.metric == name]
                tested = _test_margins(counts, rule, metrics[name], metric_results, spreads, spec, count)
                margin_results |= {(rule, key): margin_result for key, margin_result in tested}
    return Evidence(baselines, spreads, margin_results)


def _test_margins(
    counts: Counts, rule: NonInferior, metric: AnyBound, results: Sequence[Result],
    spreads: Mapping[ComparisonKey, float], spec: CompareSpec, count: Count,
) -> Iterator[tuple[ComparisonKey, MarginResult]]:  # fmt: skip
    """Yield the test of a rule's margin for every system against the baseline, by one metric."""
    baseline = str(rule.baseline or spec.baseline)
    compared = [
        (r.b if r.a == baseline else r.a, baseline, None if r.subset is None else Subset(**r.subset)) for r in results
    ]
    asked = CompareSpec(["mean"], by=spec.by, trials=spec.trials, seed=spec.seed, margin=rule.margin, alpha=rule.alpha)
    tests = MarginTests.from_pairs(counts, metric, compared, asked, (NOT_WORSE,))
    gains = [r.difference if (r.b == baseline) == r.higher_is_better else -r.difference for r in results]
    units = [(r.n_units, r.n_discordant) for r in results]
    keys = [get_key(r) for r in results]
    jobs = tests.jobs
    tallies = dict(zip(jobs, count(jobs) if jobs else (), strict=True))
    [tested] = tests.build_results(tallies, gains, [spreads[key] for key in keys], units)
    yield from zip(keys, tested, strict=True)


def check_margin(rule: NonInferior, counts: Counts, metric: AnyBound, compared: Sequence[tuple[str, str]]) -> None:
    """Raise if every system is within a margin, because no scores can differ by more.

    `compared` are pairs of a system and its baseline.
    """
    spec = CompareSpec(["mean"], margin=rule.margin, alpha=rule.alpha)
    tests = MarginTests.from_pairs(counts, metric, [(*pair, None) for pair in compared], spec, (NOT_WORSE,))
    for pair in tests.pairs or ():
        matched = pair.match_proportions(NOT_WORSE)
        if matched is not None and rule.margin >= matched.worth:
            raise InputError(
                f"found margin = {rule.margin:g}, expected less than {matched.worth:g}, the range of {metric.name} on "
                f"test set {counts.name!r}"
            )


def _iter_spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], spec: CompareSpec
) -> Iterator[tuple[ComparisonKey, float]]:
    pairs = [*dict.fromkeys((r.a, r.b) for r in results)]
    wanted_keys = {get_key(r) for r in results}
    c = list_comparisons(counts, CompareSpec(metrics, pairs, by=spec.by, method="randomization", seed=spec.seed))
    values = [subset.value if subset else None for subset in c.subsets]
    keys: list[ComparisonKey] = [
        (counts.name, values[subset], counts.systems[a], counts.systems[b], c.get_metric(k).name)
        for k, (subset, a, b) in enumerate(zip(c.subset.tolist(), c.a.tolist(), c.b.tolist(), strict=True))
    ]
    rows = np.array([k for k, key in enumerate(keys) if key in wanted_keys], np.int64)
    yield from zip([keys[k] for k in rows], estimate_deviations(c, rows), strict=True)
