"""What a plan would cost: its data read, its comparisons listed, the speed of each panel measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from sigdask import formats
from sigdask import metrics as known
from sigdask.analysis.comparison.pairs import Comparisons, bind
from sigdask.analysis.comparison.spec import pairs_of
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution import clusters, prefetch
from sigdask.execution.clusters.description import Description
from sigdask.execution.extract import ClusterExtraction
from sigdask.execution.tasks import seconds_per_trial
from sigdask.io import addresses
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets
from sigdask.metrics.extraction import ExtractionLog, StatisticsSource, Tell, at_home, extracted
from sigdask.nightly.gate import NotWorse, Rule, asks_for, check_direction
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.plan.errors import Complaint
from sigdask.nightly.plan.lines import Key
from sigdask.nightly.plan.load import refusal
from sigdask.nightly.plan.model import CANDIDATE, Cost, RankedCandidates, TestedLabels
from sigdask.nightly.run.candidate_rankings import PlanRankings
from sigdask.nightly.run.independence import PlanIndependence
from sigdask.nightly.run.ledger import Ledger, breadth_first
from sigdask.nightly.run.work import study_of
from sigdask.randomization.jobs import Job, total_trials

_T = TypeVar("_T")


def estimate(plan: Plan, tell: Tell | None = None) -> list[Cost]:
    """Read the data of every test set and return what each takes, in the order of the plan.

    One test set is in memory at a time.

    Parameters
    ----------
    plan : Plan
        What is to be run.
    tell : callable, optional
        Told how far extraction is, instead of the log.

    Raises
    ------
    InputError
        Listing everything that the data cannot give, of all test sets.
    """
    addresses.look_in(plan.path.parent)
    complaints: list[Complaint] = []
    source = StatisticsSource(at_home(), ClusterExtraction(plan.cluster, plan.workers), tell or ExtractionLog())
    found = [_of(plan, number, source, complaints) for number in range(len(plan.test_sets))]
    found += [_attempt(complaints, ("rankings", k), _ranked, one) for k, one in enumerate(plan.rankings)]
    found += [_attempt(complaints, ("independence", k), _tested, one) for k, one in enumerate(plan.independence)]
    if complaints:
        raise refusal(plan.path, complaints)
    return [cost for cost in found if cost is not None]


def n_threads(plan: Plan) -> int | None:
    """Return how many threads the plan's cluster has on this machine, None where it is another."""
    if plan.cluster == "none":
        return 1
    described = plan.cluster if isinstance(plan.cluster, Description) else None
    kind = described.kind if described else plan.cluster
    wanted = plan.workers or (described.expected if described else None)
    return wanted or clusters.cores() if kind in clusters.HERE else wanted


def _of(plan: Plan, number: int, source: StatisticsSource, complaints: list[Complaint]) -> Cost | None:
    asked, key = plan.test_sets[number], ("test_set", number)
    read = _attempt(complaints, key, _read, asked)
    if read is None:
        return None
    asked, counts = read
    before = len(complaints)
    metrics = _metrics(asked, counts, source, key, complaints)
    _attempt(complaints, (*key, "pairs"), pairs_of, counts, asked.pairs, asked.baseline)
    if len(complaints) > before:
        return None
    _check_gate(plan, asked, counts, metrics, complaints)
    return _attempt(complaints, key, _cost, plan, asked, counts, metrics)


def _attempt(complaints: list[Complaint], key: Key, call: Callable[..., _T], *arguments: Any) -> _T | None:
    try:
        return call(*arguments)
    except InputError as error:
        complaints.append(Complaint(key, str(error)))
        return None


def _metrics(
    asked: TestSet, counts: Counts, source: StatisticsSource, key: Key, complaints: list[Complaint]
) -> list[Any]:
    """Return the metrics, bound or black boxes, each refusal a complaint."""

    def found(name: str) -> BoundMetric | BoundSets | BlackBox:
        metric = known.find(name, counts)
        return bind(metric, extracted([(counts, [metric])], source)[0].counts)

    names = asked.metrics or counts.suggested
    return [_attempt(complaints, (*key, "metrics"), found, name) for name in names]


def _check_gate(
    plan: Plan, asked: TestSet, counts: Counts, metrics: Iterable[Any], complaints: list[Complaint]
) -> None:
    """Complain where a rule could not be judged in the morning."""
    for number, rule in enumerate(plan.gate.rules if plan.gate else ()):
        baseline = rule.baseline or asked.baseline
        if (rule.test_sets and asked.name not in rule.test_sets) or baseline is None:
            continue
        key: Key = ("gate", "rules", number)
        if baseline not in counts.systems:
            text = f"no system {baseline!r} on test set {asked.name!r}; systems: {', '.join(counts.systems)}"
            complaints.append(Complaint((*key, "baseline"), text))
            continue
        if not isinstance(rule, NotWorse):
            continue
        for metric in metrics:
            if not asks_for(rule, metric.name):
                continue
            for i, j in pairs_of(counts, asked.pairs, asked.baseline):
                a, b = counts.systems[i], counts.systems[j]
                if baseline in {a, b} and not _attempt(
                    complaints, key, check_direction, a, b, baseline, asked.alternative, metric
                ):
                    return


def _cost(plan: Plan, asked: TestSet, counts: Counts, metrics: Sequence[Any]) -> Cost:
    study = study_of(plan, [(asked, counts)], metrics)
    [analysis] = study.analyses
    comparisons = analysis.main.comparisons
    sampled = comparisons.n_trials[comparisons.sampled]
    total, seconds = _work(study.jobs)
    return Cost(
        test_set=asked.name,
        format=asked.format,
        unit=counts.unit,
        n_systems=counts.n_systems,
        n_items=counts.n_items,
        n_units=analysis.main.asked.units.n_units,
        n_comparisons=len(comparisons),
        n_enumerated=len(comparisons) - len(sampled),
        n_trials=int(sampled.max(initial=0)),
        total=total,
        seconds=seconds,
        n_gated=tuple(_n_gated(rule, asked, counts, comparisons) for rule in (plan.gate.rules if plan.gate else ())),
        warnings=counts.notices,
    )


def _n_gated(rule: Rule, asked: TestSet, counts: Counts, comparisons: Comparisons) -> int:
    """Return how many comparisons of a test set a rule speaks of."""
    baseline = rule.baseline or asked.baseline
    if (rule.test_sets and asked.name not in rule.test_sets) or baseline not in counts.systems:
        return 0
    place = counts.systems.index(baseline)
    asks = np.array([asks_for(rule, metric.name) for metric in comparisons.metrics], np.bool_)
    speaks = ((comparisons.a == place) | (comparisons.b == place)) & asks[comparisons.metric]
    return int(np.count_nonzero(speaks))


def _ranked(asked: RankedCandidates) -> Cost:
    """Return what a list of candidates takes."""
    one = PlanRankings.of(asked)
    given, jobs = one.lists.candidates, one.jobs
    return Cost(
        test_set=asked.name,
        format="candidates",
        unit=CANDIDATE,
        n_systems=len(given.measures),
        n_items=len(given),
        n_units=len(given),
        n_comparisons=sum(job.panel.shape[0] for job in jobs),
        n_enumerated=0,
        n_trials=asked.asked.trials if jobs else 0,
        total=_work(jobs)[0],
        seconds=_work(one.lists.jobs)[1],
        warnings=given.notes,
    )


def _tested(asked: TestedLabels) -> Cost:
    """Return what tests of independence take."""
    one = PlanIndependence.of(asked)
    own, n = one.tests.labellings, len(one.tests.scores) * len(one.tests.metrics)
    total, seconds = _work(one.jobs)
    return Cost(
        test_set=asked.name,
        format=asked.format,
        unit="item",
        n_systems=len(own.names),
        n_items=own.n_items,
        n_units=own.n_items,
        n_comparisons=n,
        n_enumerated=n - len(one.tests.sampled),
        n_trials=max((job.n_trials for job in one.jobs), default=0),
        total=total,
        seconds=seconds,
        warnings=one.tests.counts.notices,
    )


def _work(jobs: Sequence[Job]) -> tuple[int, float]:
    """Return what a run would count: trials summed over comparisons, and seconds of one core, as the run states both.

    What several jobs hold in common is counted once.
    """
    work, _ = breadth_first(Ledger(None, jobs).missing())
    rates = {panel: seconds_per_trial(panel) for panel in {job.panel: None for job in work}}
    return total_trials(work), prefetch.predict(work, [rates[job.panel] for job in work], 1).seconds


def _read(asked: TestSet) -> tuple[TestSet, Counts]:
    """Return a test set with the format that its files are in, and what they hold."""
    with formats.reading_once():
        if asked.format == "auto":
            chosen = formats.detect(asked.sources, asked.gold, asked.options)
            asked = replace(asked, format=chosen, options=replace(asked.options, is_detected=True))
        return asked, asked.read()
