"""Evidence that a gate needs from one test set besides results: standard deviations and margin tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.pairs import CompareSpec, ComparisonSettings, bind_metric, list_comparisons
from sigdask.counts import Counts
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import AnyBound
from sigdask.nightly.gate.margin_tests import Count, MarginTests
from sigdask.nightly.gate.rules import (
    ComparisonKey,
    Evidence,
    MarginResult,
    NotWorse,
    Rule,
    WithinMargin,
    get_key,
    select_rows,
)
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
    """Return evidence beyond a test set's results: standard deviations and margin tests.

    Non-inferiority and equivalence are tested as `sigdask.nightly.gate.margin_tests` says.

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    table : Table
        Results of this test set. Rows of other test sets are ignored.
    rules : sequence of Rule
        Rules of the gate.
    baseline : str, optional
        Baseline of rules that name none.
    by, seed, trials
        Settings with which the results were counted.
    count : callable
        Counts the jobs of margin tests.
    interruptible : callable
        Context manager for work that may be interrupted.

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
                spec = CompareSpec(
                    ["mean"], levels=(counts.unit,), by=by, trials=trials, seed=seed, has_contrasts=False
                )
                tests = MarginTests(counts, rule, metrics[name], str(rule.baseline or baseline), spec, count)
                metric_results = tests.compute([r for r in rule_results if r.metric == name], spreads)
                margin_results |= {(rule, key): margin_result for key, margin_result in metric_results}
    return Evidence(baselines, spreads, margin_results)


def _iter_spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], by: str | None, seed: int
) -> Iterator[tuple[ComparisonKey, float]]:
    system_index = {name: k for k, name in enumerate(counts.systems)}
    pairs = np.array(list(dict.fromkeys((system_index[r.a], system_index[r.b]) for r in results)), np.int64)
    spec = ComparisonSettings(counts, SwapUnits.from_counts(counts, seed), pairs, "randomization", None)
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
