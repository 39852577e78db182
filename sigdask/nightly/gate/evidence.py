"""Evidence that a gate needs from one test set besides results: standard deviations, margin tests, loss simulations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.pairs import CompareSpec, ResolvedSpec, bind_metric, list_comparisons
from sigdask.counts import Counts
from sigdask.execution.run import count_jobs
from sigdask.nightly.gate import (
    ComparisonKey,
    Evidence,
    MarginResult,
    NotWorse,
    Rule,
    WithinMargin,
    get_key,
    select_rows,
)
from sigdask.nightly.gate.detectable_loss import LossDetection
from sigdask.nightly.gate.margin_tests import AnyBound, Count, compute_margins
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table


def gather_evidence(
    counts: Counts,
    table: Table,
    rules: Sequence[Rule],
    *,
    baseline: str | None = None,
    by: str | None = None,
    seed: int = 0,
    trials: int | None = None,
    count: Count = count_jobs,
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Evidence:
    """Return what the rules need besides results for one test set: standard deviations, margin tests, simulations.

    Non-inferiority and equivalence are tested as `sigdask.nightly.gate.margin_tests` says.

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    table : Table
        Of this test set, and of others that are passed over.
    rules : sequence of Rule
        Of the gate.
    baseline : str, optional
        Where a rule names none.
    by, seed, trials
        As the results were counted.
    count : callable
        Counts what tests of margins take.
    interruptible : callable
        Surrounds what may be interrupted.

    Returns
    -------
    Evidence
    """
    baselines = {counts.name: baseline}
    own_rows = table.take(np.flatnonzero(np.array(table.test_set.values, object)[table.test_set.codes] == counts.name))
    covered = [select_rows(rule, own_rows, baselines) for rule in rules]
    covered_results = [*iter_results(own_rows.take(np.unique(np.concatenate(covered))))] if covered else []
    with interruptible():
        metrics = {
            name: bind_metric(metric_registry.find_metric(name, counts), counts)
            for name in dict.fromkeys(r.metric for r in covered_results)
        }
        spreads = (
            dict(_iter_spreads(counts, covered_results, list(metrics.values()), by, seed)) if covered_results else {}
        )
    margin_results: dict[tuple[WithinMargin, ComparisonKey], MarginResult] = {}
    for rule, rows in zip(rules, covered, strict=True):
        if not isinstance(rule, NotWorse):
            rule_results = [*iter_results(own_rows.take(rows))]
            for name in dict.fromkeys(r.metric for r in rule_results):
                metric_results = compute_margins(
                    counts,
                    rule,
                    metrics[name],
                    [r for r in rule_results if r.metric == name],
                    str(rule.baseline or baseline),
                    spreads,
                    CompareSpec(["mean"], levels=(counts.unit,), by=by, trials=trials, seed=seed, has_contrasts=False),
                    count,
                )
                margin_results |= {(rule, key): margin_result for key, margin_result in metric_results}
    losses = {}
    if any(isinstance(rule, NotWorse) and rule.detectable == "simulated" for rule in rules):
        losses[counts.name] = LossDetection(counts, metrics, by, seed, count, interruptible)
    return Evidence(baselines, spreads, margin_results, losses=losses)


def _iter_spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], by: str | None, seed: int
) -> Iterator[tuple[ComparisonKey, float]]:
    system_index = {name: k for k, name in enumerate(counts.systems)}
    pairs = np.array(list(dict.fromkeys((system_index[r.a], system_index[r.b]) for r in results)), np.int64)
    spec = ResolvedSpec(counts, SwapUnits.from_counts(counts, seed), pairs, "randomization", None)
    wanted_keys = {get_key(r) for r in results}
    c = list_comparisons(spec, metrics, by)
    deviations: dict[int, Any] = {}
    for k in range(len(c)):
        subset, panel = c.subset[k], int(c.panel[k])
        a, b = (counts.systems[int(side[k])] for side in (c.a, c.b))
        key: ComparisonKey = (counts.name, subset.value if subset else None, a, b, c.metrics[int(c.metric[k])].name)
        if key in wanted_keys:
            if panel not in deviations:
                deviations[panel] = c.panels[panel].estimate_swap_deviations()
            yield key, float(deviations[panel][c.row[k], c.column[k]])
