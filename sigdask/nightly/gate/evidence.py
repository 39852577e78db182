"""Evidence that a gate needs from one test set besides results: standard deviations, margin tests, loss simulations.

The smallest losses that a test would detect are found by simulation: it is run on reweighted samples of the units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import cast

import numpy as np

from sigdask import metrics as metric_registry
from sigdask.analysis import power
from sigdask.analysis.comparison.margins import MarginResult, MarginTests, combine_sides, estimate_deviations
from sigdask.analysis.comparison.pairs import CompareSpec, ComparisonSettings, bind_metric, list_comparisons
from sigdask.counts import Counts
from sigdask.counts.checks import are_other_scales
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.nightly.gate.rules import (
    POWER,
    ComparisonKey,
    Evidence,
    NotWorse,
    Rule,
    WithinMargin,
    get_key,
    select_rows,
)
from sigdask.options import Alternative
from sigdask.randomization.panels.build import PanelGroups
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.randomization.power import SystemPairs, can_decide
from sigdask.randomization.slabs import Job
from sigdask.randomization.tallies import Tally
from sigdask.results.columns import Subset
from sigdask.results.fields import iter_results
from sigdask.results.record import Result
from sigdask.results.table import Table

Count = Callable[[Sequence[Job]], Sequence[Tally]]
"""Function that counts jobs."""


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
    """Return evidence beyond a test set's results: standard deviations, margin tests, simulations.

    Non-inferiority and equivalence are tested as `sigdask.analysis.comparison.margins` says.

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
                metric_results = [r for r in rule_results if r.metric == name]
                tested = _test_margins(counts, rule, metrics[name], metric_results, spreads, spec, count, baseline)
                margin_results |= {(rule, key): margin_result for key, margin_result in tested}
    losses = {}
    if any(isinstance(rule, NotWorse) and rule.detectable == "simulated" for rule in rules):
        losses[counts.name] = LossDetection(counts, metrics, by, seed, count, interruptible)
    suspects = {r.metric for r in covered_results if are_other_scales(r.score_a, r.score_b)}
    negative = {(counts.name, name): _has_negative_items(counts, metrics[name]) for name in suspects}
    return Evidence(baselines, spreads, margin_results, losses=losses, negative_items=negative)


def _test_margins(
    counts: Counts, rule: WithinMargin, metric: AnyBound, results: Sequence[Result],
    spreads: Mapping[ComparisonKey, float], spec: CompareSpec, count: Count, default_baseline: str | None,
) -> Iterator[tuple[ComparisonKey, MarginResult]]:  # fmt: skip
    """Yield the test of a rule's margin for every system against the baseline, by one metric."""
    baseline = str(rule.baseline or default_baseline)
    compared = [
        (r.b if r.a == baseline else r.a, baseline, None if r.subset is None else Subset(**r.subset)) for r in results
    ]
    tests = MarginTests.from_pairs(
        counts, metric, compared, spec, margin=rule.margin, alpha=rule.alpha, sides=rule.sides, finds_smallest=True
    )
    gains = [r.difference if (r.b == baseline) == r.higher_is_better else -r.difference for r in results]
    units = [(r.n_units, r.n_discordant) for r in results]
    keys = [get_key(r) for r in results]
    jobs = tests.jobs
    tallies = dict(zip(jobs, count(jobs) if jobs else (), strict=True))
    sides = tests.build_results(tallies, gains, [spreads[key] for key in keys], units)
    for key, margin_results in zip(keys, zip(*sides, strict=True), strict=True):
        yield key, combine_sides(margin_results, rule.margin, rule.alpha)


def _has_negative_items(counts: Counts, metric: AnyBound) -> bool:
    return isinstance(metric, BoundMetric) and any((metric.get_field(f, counts) < 0).any() for f in metric.fields)


def _iter_spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], by: str | None, seed: int
) -> Iterator[tuple[ComparisonKey, float]]:
    system_index = {name: k for k, name in enumerate(counts.systems)}
    pairs = np.array(list(dict.fromkeys((system_index[r.a], system_index[r.b]) for r in results)), np.int64)
    spec = ComparisonSettings(counts, SwapUnits.from_counts(counts, seed), pairs, "randomization", None)
    wanted_keys = {get_key(r) for r in results}
    c = list_comparisons(spec, metrics, by)
    keys: list[ComparisonKey] = [
        (counts.name, subset.value if subset else None, counts.systems[a], counts.systems[b], c.get_metric(k).name)
        for k, (subset, a, b) in enumerate(zip(c.subset.to_list(), c.a.tolist(), c.b.tolist(), strict=True))
    ]
    rows = np.array([k for k, key in enumerate(keys) if key in wanted_keys], np.int64)
    yield from zip([keys[k] for k in rows], estimate_deviations(c, rows), strict=True)


SAMPLES = 2_000
"""Samples of each accurate estimate of power."""


@dataclass(frozen=True, slots=True, eq=False)
class LossDetection:
    """Simulation of the smallest losses that the comparisons of one test set would detect.

    Attributes
    ----------
    counts : Counts
        The test set, with its unit.
    metrics : mapping of str to BoundMetric, BoundSets or BlackBox
        Metrics by name.
    by : str or None
        Column of subsets.
    seed : int
        Seed of the random stream.
    count : callable
        Counts jobs.
    interruptible : callable
        Context manager for work that may be interrupted.
    """

    counts: Counts
    metrics: Mapping[str, AnyBound]
    by: str | None
    seed: int
    count: Count
    interruptible: Callable[[], AbstractContextManager[None]]

    def find_losses(
        self, results: Sequence[Result], systems: Sequence[str], level: float
    ) -> dict[ComparisonKey, float]:
        """Return the smallest loss that the test detects with power 0.8, for each comparison that samples can judge.

        Parameters
        ----------
        results : sequence of Result
            The comparisons, all of one alternative.
        systems : sequence of str
            The system in each comparison that would be worse.
        level : float
            Level with which p is compared.
        """
        if not results or not can_decide(level):
            return {}
        rejection = power.RejectionRule(cast("Alternative", results[0].alternative), level, SAMPLES)
        searches: dict[ComparisonKey, power.PowerSearch] = {}
        groups: dict[tuple[str, str | None], list[int]] = {}
        for k, result in enumerate(results):
            groups.setdefault((result.metric, get_key(result)[1]), []).append(k)
        for (metric, subset), members in groups.items():
            bound = self.metrics[metric]
            if isinstance(bound, BoundMetric):
                better = 1 if bound.higher_is_better else -1
                locations = self._locate_units(bound, subset, [results[k] for k in members])
                for k, (pairs, row) in zip(members, locations, strict=True):
                    side = -better if systems[k] == results[k].a else better
                    searches[get_key(results[k])] = power.PowerSearch(
                        power.PowerTarget(pairs, row, side), power.PowerQuestion(POWER), rejection
                    )
        with self.interruptible():
            power.run_searches([*searches.values()], rejection, self.count, with_first=False)
        return {key: loss for key, search in searches.items() if (loss := search.detectable_difference) is not None}

    def _locate_units(
        self, metric: BoundMetric, subset: str | None, results: Sequence[Result]
    ) -> list[tuple[SystemPairs, int]]:
        """Return, for each comparison under one metric, the panel with its units and its row in that panel."""
        system_index = {name: k for k, name in enumerate(self.counts.systems)}
        pairs = np.array([(system_index[r.a], system_index[r.b]) for r in results], np.int64)
        mask = None
        if subset is not None and self.by is not None:
            mask = np.array([value == subset for value in self.counts.group(self.by)])
        locations: dict[int, tuple[SystemPairs, int]] = {}
        units = SwapUnits.from_counts(self.counts, self.seed)
        for placed in PanelGroups.from_metrics(self.counts, [metric], pairs).build(units, mask, every_unit=True):
            system_pairs = SystemPairs(placed.panel)
            locations |= {k: (system_pairs, row) for row, k in enumerate(placed.pair_indices.tolist())}
        return [locations[k] for k in range(len(results))]
