"""Estimate the cost of a plan from its data and the measured speed of each panel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from sigdask import formats
from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.pairs import Comparisons, bind_metric, list_pairs
from sigdask.analysis.comparison.study import Study
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution import clusters, run
from sigdask.execution.clusters.description import ClusterDescription
from sigdask.execution.extract import ClusterExtraction
from sigdask.io import addresses
from sigdask.metrics.base import AnyBound
from sigdask.metrics.extraction import StatisticsSource, extract_statistics
from sigdask.metrics.extraction.cache import get_user_cache
from sigdask.metrics.extraction.parts import ExtractionLog, ProgressCallback
from sigdask.nightly.gate.not_worse import check_direction
from sigdask.nightly.gate.rules import NotWorse, Rule, covers_metric
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.plan.cross_checks import check_rule_metrics
from sigdask.nightly.plan.errors import Complaint, PlanKey, attempt
from sigdask.nightly.plan.load import build_late_error
from sigdask.nightly.plan.model import CANDIDATE, Cost, RankedCandidates, TestedLabels
from sigdask.nightly.run.analyses import PlanIndependence, PlanRankings
from sigdask.nightly.run.count import Speeds, measure_similar
from sigdask.nightly.run.ledger import Ledger, schedule_jobs
from sigdask.nightly.run.work import prepare_sets
from sigdask.nightly.test_sets import FamilySettings, PreparedSet, build_study, prepare_set
from sigdask.randomization.slabs import Job, sum_trials


def estimate_costs(plan: Plan, tell: ProgressCallback | None = None) -> list[Cost]:
    """Read the data of every test set and return the cost of each, in the order of the plan.

    Test sets are read as `sigdask run` reads them, many small ones in several processes. Large ones are in memory one
    at a time.

    Parameters
    ----------
    plan : Plan
        The plan.
    tell : callable, optional
        Called with the progress of extraction, which is otherwise logged.

    Raises
    ------
    InputError
        The data do not allow some requested analyses. The message lists them for all test sets.
    """
    addresses.add_folder(plan.path.parent)
    complaints: list[Complaint] = []
    source = StatisticsSource(
        get_user_cache(), ClusterExtraction(plan.cluster, plan.comparison["workers"]), tell or ExtractionLog()
    )
    compared: dict[str, Sequence[str]] = {}
    speeds: Speeds = {}
    estimate = partial(_estimate_test_set, plan, source, compared, speeds, complaints)
    with formats.remember_shapes():
        prepared_sets = prepare_sets(plan, plan.test_sets, plan.comparison["workers"], _prepare_if_valid)
        costs = [*map(estimate, range(len(plan.test_sets)), prepared_sets)]  # a loop would keep a set too long
    for number, rule in enumerate(plan.gate.rules if plan.gate else ()):
        names = {*rule.test_sets} or {test_set.name for test_set in plan.test_sets}
        if names <= compared.keys():  # all test sets could be read
            computed = {metric for name in names for metric in compared[name]}
            rule_key: PlanKey = ("gate", "rules", number)
            check_rule_metrics(rule, computed, rule_key, lambda key, text: complaints.append(Complaint(key, text)))
    costs += [
        attempt(complaints, ("rankings", k), _estimate_rankings, entry, speeds) for k, entry in enumerate(plan.rankings)
    ]
    costs += [
        attempt(complaints, ("independence", k), _estimate_independence, entry, speeds)
        for k, entry in enumerate(plan.independence)
    ]
    if complaints:
        raise build_late_error(plan.path, complaints)
    return [cost for cost in costs if cost is not None]


def count_threads(plan: Plan) -> int | None:
    """Return the number of threads of the plan's cluster on this machine, or None if it is remote."""
    if plan.cluster == "none":
        return 1
    described = plan.cluster if isinstance(plan.cluster, ClusterDescription) else None
    kind = described.kind if described else plan.cluster
    n_wanted = plan.comparison["workers"] or (described.max_workers if described else None)
    return n_wanted or clusters.count_cores() if kind in clusters.LOCAL_WORDS else n_wanted


def _prepare_if_valid(plan: FamilySettings, shared: str, test_set: TestSet) -> PreparedSet | None:
    """Return a test set as a run prepares it, or None if it has errors."""
    with suppress(InputError):
        return prepare_set(plan, shared, test_set)
    return None


def _estimate_test_set(
    plan: Plan,
    source: StatisticsSource,
    compared: dict[str, Sequence[str]],
    speeds: Speeds,
    complaints: list[Complaint],
    number: int,
    prepared: PreparedSet | None,
) -> Cost | None:
    """Return the cost of a test set. One that could not be prepared is read again, to list all its errors."""
    test_set, key = plan.test_sets[number], ("test_set", number)
    counts = prepared.counts if prepared else attempt(complaints, key, test_set.read)
    if counts is None:
        return None
    study = prepared.study if prepared else None
    n_before = len(complaints)

    def bind_by_name(name: str) -> AnyBound:
        metric = metric_registry.find_metric(name, counts)
        return bind_metric(metric, extract_statistics([(counts, [metric])], source)[0].counts)

    names = test_set.metrics or counts.suggested
    metrics: Sequence[Any] = (
        study.analyses[0].main.comparisons.metrics
        if study
        else [attempt(complaints, (*key, "metrics"), bind_by_name, name) for name in names]
    )
    attempt(
        complaints, (*key, "pairs"), list_pairs, counts, test_set.comparison["pairs"], test_set.comparison["baseline"]
    )
    if len(complaints) > n_before:
        return None
    compared[test_set.name] = [metric.name for metric in metrics]
    _check_gate(plan, test_set, counts, metrics, complaints)
    study = study or attempt(complaints, key, build_study, plan, [(test_set, counts)], metrics)
    return attempt(complaints, key, _build_cost, plan, test_set, counts, study, speeds) if study else None


def _check_gate(
    plan: Plan, test_set: TestSet, counts: Counts, metrics: Iterable[Any], complaints: list[Complaint]
) -> None:
    """Add a complaint for each rule that could not be judged at the end of the run."""
    for number, rule in enumerate(plan.gate.rules if plan.gate else ()):
        baseline = rule.baseline or test_set.comparison["baseline"]
        if (rule.test_sets and test_set.name not in rule.test_sets) or baseline is None:
            continue
        key: PlanKey = ("gate", "rules", number)
        if baseline not in counts.systems:
            text = f"no system {baseline!r} on test set {test_set.name!r}; systems: {', '.join(counts.systems)}"
            complaints.append(Complaint((*key, "baseline"), text))
            continue
        if not isinstance(rule, NotWorse):
            continue
        for metric in metrics:
            if not covers_metric(rule, metric.name):
                continue
            for i, j in list_pairs(counts, test_set.comparison["pairs"], test_set.comparison["baseline"]):
                a, b = counts.systems[i], counts.systems[j]
                if baseline in {a, b} and not attempt(
                    complaints, key, check_direction, a, b, baseline, test_set.comparison["alternative"], metric
                ):
                    return


def _build_cost(plan: Plan, test_set: TestSet, counts: Counts, study: Study, speeds: Speeds) -> Cost:
    [analysis] = study.analyses
    comparisons = analysis.main.comparisons
    sampled = comparisons.n_trials[comparisons.sampled]
    total, seconds = _measure_work(study.jobs, speeds)
    return Cost(
        test_set=test_set.name,
        format=counts.format if test_set.format == "auto" else test_set.format,
        unit=counts.unit,
        n_systems=counts.n_systems,
        n_items=counts.n_items,
        n_units=analysis.main.spec.units.n_units,
        n_comparisons=len(comparisons),
        n_enumerated=len(comparisons) - len(sampled),
        n_trials=int(sampled.max(initial=0)),
        total=total,
        seconds=seconds,
        n_gated=tuple(
            _count_gated(rule, test_set, counts, comparisons) for rule in (plan.gate.rules if plan.gate else ())
        ),
        warnings=counts.notices,
    )


def _count_gated(rule: Rule, test_set: TestSet, counts: Counts, comparisons: Comparisons) -> int:
    """Return the number of comparisons of a test set that a rule covers."""
    baseline = rule.baseline or test_set.comparison["baseline"]
    if (rule.test_sets and test_set.name not in rule.test_sets) or baseline not in counts.systems:
        return 0
    index = counts.systems.index(baseline)
    is_asked = np.array([covers_metric(rule, metric.name) for metric in comparisons.metrics], np.bool_)
    is_covered = ((comparisons.a == index) | (comparisons.b == index)) & is_asked[comparisons.metric]
    return int(np.count_nonzero(is_covered))


def _estimate_rankings(entry: RankedCandidates, speeds: Speeds) -> Cost:
    """Return the cost of a candidate list."""
    rankings = PlanRankings.from_entry(entry)
    candidates, jobs = rankings.lists.candidates, rankings.jobs
    return Cost(
        test_set=entry.name,
        format="candidates",
        unit=CANDIDATE,
        n_systems=len(candidates.measures),
        n_items=len(candidates),
        n_units=len(candidates),
        n_comparisons=sum(job.panel.shape[0] for job in jobs),
        n_enumerated=0,
        n_trials=entry.spec.trials if jobs else 0,
        total=_measure_work(jobs, speeds)[0],
        seconds=_measure_work(rankings.lists.jobs, speeds)[1],
        warnings=candidates.notes,
    )


def _estimate_independence(entry: TestedLabels, speeds: Speeds) -> Cost:
    """Return the cost of tests of independence."""
    independence = PlanIndependence.from_entry(entry)
    labellings, n = independence.tests.labellings, len(independence.tests.scores) * len(independence.tests.metrics)
    total, seconds = _measure_work(independence.jobs, speeds)
    return Cost(
        test_set=entry.name,
        format=entry.format,
        unit="item",
        n_systems=len(labellings.names),
        n_items=labellings.n_items,
        n_units=labellings.n_items,
        n_comparisons=n,
        n_enumerated=n - len(independence.tests.sampled),
        n_trials=max((job.n_trials for job in independence.jobs), default=0),
        total=total,
        seconds=seconds,
        warnings=independence.tests.counts.notices,
    )


def _measure_work(jobs: Sequence[Job], speeds: Speeds) -> tuple[int, float]:
    """Return the number of trials of jobs over all comparisons, and the seconds that they take on one core.

    Comparisons in several jobs count once.
    """
    work, _ = schedule_jobs(Ledger(None, jobs).list_missing())
    panels = {job.panel: job.n_trials for job in work}
    rates = {panel: measure_similar(panel, n_trials, speeds) for panel, n_trials in panels.items()}
    n_trials = sum_trials(job for job in work if not job.panel.enumerated)
    return n_trials, run.estimate_work(work, [rates[job.panel] for job in work], 1).seconds
