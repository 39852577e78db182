"""What a gate needs of one test set beside its results: spreads, and tests of margins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from sigdask import metrics as known
from sigdask.analysis.comparison.pairs import ResolvedSpec, bind, list_comparisons
from sigdask.analysis.comparison.spec import CompareSpec
from sigdask.counts import Counts
from sigdask.execution.run import count_jobs
from sigdask.nightly.gate import Evidence, Key, MarginResult, NotWorse, Rule, WithinMargin, key_of, rows_covered
from sigdask.nightly.gate.detectable_loss import LossDetection
from sigdask.nightly.gate.margin_tests import AnyBound, Count, margins_shown
from sigdask.randomization.panels.sums import SwapUnits
from sigdask.results.record import Result
from sigdask.results.table import Table
from sigdask.results.views import result_views


def gather(
    counts: Counts,
    found: Table,
    rules: Sequence[Rule],
    *,
    baseline: str | None = None,
    by: str | None = None,
    seed: int = 0,
    trials: int | None = None,
    count: Count = count_jobs,
    waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Evidence:
    """Return the evidence of one test set; that of several adds.

    Non-inferiority and equivalence are tested as `sigdask.nightly.gate.margin_tests` says.

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    found : Table
        Of this test set, and of others that are passed over.
    rules : sequence of Rule
        Of the gate.
    baseline : str, optional
        Where a rule names none.
    by, seed, trials
        As the results were counted.
    count : callable
        Counts what tests of margins take.
    waiting : callable
        Surrounds what may be interrupted.

    Returns
    -------
    Evidence
    """
    baselines = {counts.name: baseline}
    own = found.take(np.flatnonzero(np.array(found.test_set.values, object)[found.test_set.codes] == counts.name))
    covered = [rows_covered(rule, own, baselines) for rule in rules]
    asked = [*result_views(own.take(np.unique(np.concatenate(covered))))] if covered else []
    with waiting():
        metrics = {name: bind(known.find(name, counts), counts) for name in dict.fromkeys(r.metric for r in asked)}
        spreads = dict(_spreads(counts, asked, list(metrics.values()), by, seed)) if asked else {}
    shown: dict[tuple[WithinMargin, Key], MarginResult] = {}
    for rule, rows in zip(rules, covered, strict=True):
        if not isinstance(rule, NotWorse):
            of_rule = [*result_views(own.take(rows))]
            for name in dict.fromkeys(r.metric for r in of_rule):
                of_metric = margins_shown(
                    counts,
                    rule,
                    metrics[name],
                    [r for r in of_rule if r.metric == name],
                    str(rule.baseline or baseline),
                    spreads,
                    CompareSpec(["mean"], levels=(counts.unit,), by=by, trials=trials, seed=seed, beside=False),
                    count,
                )
                shown |= {(rule, key): one for key, one in of_metric}
    losses = {}
    if any(isinstance(rule, NotWorse) and rule.detectable == "simulated" for rule in rules):
        losses[counts.name] = LossDetection(counts, metrics, by, seed, count, waiting)
    return Evidence(baselines, spreads, shown, losses=losses)


def _spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], by: str | None, seed: int
) -> Iterator[tuple[Key, float]]:
    place = {name: k for k, name in enumerate(counts.systems)}
    pairs = np.array(list(dict.fromkeys((place[r.a], place[r.b]) for r in results)), np.int64)
    asked = ResolvedSpec(counts, SwapUnits.of(counts, seed), pairs, "randomization", None)
    wanted = {key_of(r) for r in results}
    c = list_comparisons(asked, metrics, by)
    found: dict[int, Any] = {}
    for k in range(len(c)):
        subset, panel = c.subset[k], int(c.panel[k])
        a, b = (counts.systems[int(side[k])] for side in (c.a, c.b))
        key: Key = (counts.name, subset.value if subset else None, a, b, c.metrics[int(c.metric[k])].name)
        if key in wanted:
            if panel not in found:
                found[panel] = c.panels[panel].swap_deviations()
            yield key, float(found[panel][c.row[k], c.column[k]])
