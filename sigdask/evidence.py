"""What a gate needs of one test set beside its results: spreads, and tests of non-inferiority."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from sigdask import metrics as known
from sigdask.adjustment import FEW_UNITS
from sigdask.api import prepare
from sigdask.comparisons import Asked, bound, list_comparisons
from sigdask.counts import Counts
from sigdask.engine import Job, count_jobs
from sigdask.gate import Evidence, Key, NonInferior, Rule, Shown, covers, key_of
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.options import Alternative
from sigdask.panels import Units
from sigdask.questions import Wanted
from sigdask.results import Result
from sigdask.spread import normal_p, shifted, swap_sd
from sigdask.tallies import Tally

AnyBound = BoundMetric | BoundSets | BlackBox
Count = Callable[[Sequence[Job]], Sequence[Tally]]
"""Counts jobs."""


def gather(
    counts: Counts,
    results: Sequence[Result],
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

    Non-inferiority by a mean over items is tested by shuffling scores shifted by the margin, on the same
    shuffles as the comparison itself; by other metrics by the normal approximation with the swap
    standard deviation (docs/statistics.md says what each assumes).

    Parameters
    ----------
    counts : Counts
        The test set, with its unit.
    results : sequence of Result
        Of this test set.
    rules : sequence of Rule
        Of the gate.
    baseline : str, optional
        Where a rule names none.
    by, seed, trials
        As the results were counted.
    count : callable
        Counts what non-inferiority takes.
    waiting : callable
        Surrounds what may be interrupted.

    Returns
    -------
    Evidence
    """
    own = [r for r in results if r.test_set == counts.name]
    asked = [r for r in own if any(covers(rule, r, baseline) for rule in rules)]
    with waiting():
        metrics = {name: bound(known.find(name, counts), counts) for name in dict.fromkeys(r.metric for r in asked)}
        spreads = dict(_spreads(counts, asked, list(metrics.values()), by, seed)) if asked else {}
    shown: dict[tuple[NonInferior, Key], Shown] = {}
    for rule in rules:
        if isinstance(rule, NonInferior):
            covered = [r for r in own if covers(rule, r, baseline)]
            for name in dict.fromkeys(r.metric for r in covered):
                tested = _test(
                    counts,
                    rule,
                    metrics[name],
                    [r for r in covered if r.metric == name],
                    str(rule.baseline or baseline),
                    spreads,
                    Wanted(["mean"], levels=(counts.unit,), by=by, trials=trials, seed=seed, beside=False),
                    count,
                )
                shown |= {(rule, key): found for key, found in tested}
    return Evidence({counts.name: baseline}, spreads, shown)


def _spreads(
    counts: Counts, results: Sequence[Result], metrics: Sequence[AnyBound], by: str | None, seed: int
) -> Iterator[tuple[Key, float]]:
    place = {name: k for k, name in enumerate(counts.systems)}
    pairs = list(dict.fromkeys((place[r.a], place[r.b]) for r in results))
    asked = Asked(counts, Units.of(counts, seed), pairs, "randomization", None)
    wanted = {key_of(r) for r in results}
    found: dict[int, Any] = {}
    for c in list_comparisons(asked, metrics, by):
        a, b = (counts.systems[k] for k in c.pair)
        key: Key = (counts.name, c.subset["value"] if c.subset else None, a, b, c.metric.name)
        if key in wanted:
            if id(c.panel) not in found:
                found[id(c.panel)] = (c.panel, swap_sd(c.panel))  # the panel is kept, so that its id stays its own
            yield key, float(found[id(c.panel)][1][c.row, c.column])


def _test(
    counts: Counts,
    rule: NonInferior,
    metric: AnyBound,
    results: Sequence[Result],
    baseline: str,
    spreads: dict[Key, float],
    wanted: Wanted,
    count: Count,
) -> Iterator[tuple[Key, Shown]]:
    """Test one metric: every system against the baseline."""
    data = shifted(counts, metric, baseline, rule.margin) if isinstance(metric, BoundMetric) else None
    if data is None:
        for r in results:
            gain = r.difference if (r.b == baseline) == r.higher_is_better else -r.difference
            p = max(normal_p(gain + rule.margin, spreads[key_of(r)]), 2.0**-r.n_units)
            few = f", from {r.n_discordant} units that differ" if r.n_discordant < FEW_UNITS else ""
            yield key_of(r), Shown(p, f"normal approximation{few}")
        return
    names = {(r.b if r.a == baseline else r.a): None for r in results}
    asked = replace(wanted, pairs=[(name, baseline) for name in names])
    side: Alternative = "greater" if results[0].higher_is_better else "less"
    work = prepare([(data, asked, side)], adjust="none", second_run=False)
    tested = work.results(count(work.jobs))
    found = {(r.subset["value"] if r.subset else None, r.a): r for r in tested}
    for r in results:
        system = r.b if r.a == baseline else r.a
        one = found[r.subset["value"] if r.subset else None, system]
        yield key_of(r), Shown(one.p_value, "shifted shuffle", one.n_trials)
