"""What a plan asks of its test sets, as comparisons to count and judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sigdask.comparison import comparisons
from sigdask.comparison.request import Wanted, pairs_of
from sigdask.comparison.study import Work, prepare
from sigdask.counts import Counts
from sigdask.gate import Key
from sigdask.plan import Plan, TestSet


def work(plan: Plan, read: Sequence[tuple[TestSet, Counts]], metrics: Sequence[Any] = ()) -> Work:
    """List what must be counted for some test sets of a plan, judged together as the plan wants.

    Parameters
    ----------
    plan : Plan
        Its seed, level and adjustment.
    read : sequence of (TestSet, Counts)
        Test sets and what they read.
    metrics : sequence, optional
        Metrics, instead of the test sets' own.
    """
    return prepare(
        [(counts, _wanted(plan, test_set, counts, metrics), test_set.alternative) for test_set, counts in read],
        alpha=plan.alpha,
        adjust=plan.adjust,
        by_metric=plan.family == "metric",
        second_run=plan.second_run,
    )


def left_out(plan: Plan, test_set: TestSet, counts: Counts) -> Iterator[Key]:
    """Yield what a plan asks of a test set and its data do not have: the systems have no such item in common."""
    wanted = _wanted(plan, test_set, counts, ())
    pairs = pairs_of(counts, wanted.pairs, wanted.baseline)
    for subset, a, b, metric in comparisons.left_out(counts, pairs, wanted.found(counts), wanted.by):
        yield counts.name, subset, a, b, metric


def _wanted(plan: Plan, test_set: TestSet, counts: Counts, metrics: Sequence[Any]) -> Wanted:
    return Wanted(
        metrics=metrics or test_set.metrics or counts.suggested,
        pairs=test_set.pairs,
        baseline=test_set.baseline,
        levels=(test_set.unit,),
        by=test_set.by,
        method=test_set.method,
        trials=test_set.trials,
        seed=plan.seed,
    )
