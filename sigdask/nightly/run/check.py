"""Check a plan with its data: every analysis that it asks for must be possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.pairs import bind_metric, list_pairs
from sigdask.analysis.comparison.study import Study
from sigdask.counts import Counts
from sigdask.counts.texts import check_unique
from sigdask.execution import clusters
from sigdask.execution.run import ClusterExtraction
from sigdask.interface import use_interface
from sigdask.io import addresses
from sigdask.metrics.base import AnyBound
from sigdask.metrics.extraction import (
    ExtractionLog,
    ProgressCallback,
    StatisticsSource,
    extract_statistics,
    get_user_cache,
)
from sigdask.nightly.gate.judge import check_margin
from sigdask.nightly.gate.rules import NonInferior, Rule, covers_metric
from sigdask.nightly.gate.verdicts import check_direction
from sigdask.nightly.plan import Plan, TestSet
from sigdask.nightly.plan.lines import PlanKey
from sigdask.nightly.plan.load import Complaint, attempt, build_error, check_rule_metrics
from sigdask.nightly.test_sets import build_study


@dataclass(frozen=True, slots=True)
class PlanEntrySize:
    """Size of a test set.

    Attributes
    ----------
    name, format, unit : str
        Its name, detected format and swapped unit.
    n_systems, n_items, n_units, n_comparisons : int
        Numbers of systems, items, units and comparisons.
    warnings : tuple of str
        Warnings of the reader.
    """

    name: str
    format: str
    unit: str
    n_systems: int
    n_items: int
    n_units: int
    n_comparisons: int
    warnings: tuple[str, ...]


@use_interface("plan")
def check_plan_data(plan: Plan, tell: ProgressCallback | None = None) -> list[PlanEntrySize]:
    """Read the data of every test set and return the size of each, in the order of the plan.

    Test sets are in memory one at a time.

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
    attempt(complaints, ("cluster",), clusters.check_cluster, plan.cluster)
    source = StatisticsSource(
        get_user_cache(), ClusterExtraction(plan.cluster, plan.comparison["workers"]), tell or ExtractionLog()
    )
    compared: dict[str, Sequence[str]] = {}
    check = partial(_check_test_set, plan, source, compared, complaints)
    sizes = [*map(check, range(len(plan.test_sets)))]
    for number, rule in enumerate(plan.rules):
        names = {*rule.test_sets} or {test_set.name for test_set in plan.test_sets}
        if names <= compared.keys():  # all test sets could be read
            computed = {metric for name in names for metric in compared[name]}
            complaints += check_rule_metrics(rule, computed, ("gate", "rules", number))
    if complaints:
        raise build_error(plan.path, complaints)
    return [size for size in sizes if size is not None]


def _check_test_set(
    plan: Plan,
    source: StatisticsSource,
    compared: dict[str, Sequence[str]],
    complaints: list[Complaint],
    number: int,
) -> PlanEntrySize | None:
    """Return the size of a test set, or None if it has errors."""
    test_set, key = plan.test_sets[number], ("test_set", number)
    counts = attempt(complaints, key, test_set.read)
    if counts is None:
        return None
    n_before = len(complaints)

    def bind_by_name(name: str) -> AnyBound:
        metric = metric_registry.find_metric(name, counts)
        return bind_metric(metric, extract_statistics([(counts, [metric])], source)[0].counts)

    names = test_set.metrics or counts.suggested
    attempt(complaints, (*key, "metrics"), check_unique, names, "metric")
    metrics: Sequence[Any] = [attempt(complaints, (*key, "metrics"), bind_by_name, name) for name in names]
    chosen = test_set.comparison["pairs"], test_set.comparison["baseline"]
    attempt(complaints, (*key, "pairs"), list_pairs, counts, *chosen)
    if len(complaints) > n_before:
        return None
    compared[test_set.name] = [metric.name for metric in metrics]
    _check_gate(plan, test_set, counts, metrics, complaints)
    study = attempt(complaints, key, build_study, plan.comparison, test_set, counts, metrics)
    return attempt(complaints, key, _build_size, test_set, counts, study) if study else None


def _check_gate(
    plan: Plan, test_set: TestSet, counts: Counts, metrics: Iterable[Any], complaints: list[Complaint]
) -> None:
    """Add a complaint for each rule that could not be judged at the end of the run."""
    for number, rule in enumerate(plan.rules):
        baseline = rule.baseline or test_set.comparison["baseline"]
        if (rule.test_sets and test_set.name not in rule.test_sets) or baseline is None:
            continue
        key: PlanKey = ("gate", "rules", number)
        if baseline not in counts.systems:
            text = f"no system {baseline!r} on test set {test_set.name!r}; systems: {', '.join(counts.systems)}"
            complaints.append(Complaint((*key, "baseline"), text))
            continue
        pairs = list_pairs(counts, test_set.comparison["pairs"], test_set.comparison["baseline"])
        compared = [pair for i, j in pairs if baseline in (pair := (counts.systems[i], counts.systems[j]))]
        for metric in metrics:
            if covers_metric(rule, metric.name):
                attempt(complaints, key, _check_rule, rule, counts, metric, baseline, compared, test_set)


def _check_rule(
    rule: Rule, counts: Counts, metric: Any, baseline: str, pairs: Sequence[tuple[str, str]], test_set: TestSet
) -> None:
    """Raise if a rule could not be judged by the comparisons of some pairs by one metric."""
    if isinstance(rule, NonInferior):
        check_margin(rule, counts, metric, [(b if a == baseline else a, baseline) for a, b in pairs])
        return
    for a, b in pairs:
        alternative = test_set.comparison["alternative"]
        check_direction(a, b, baseline, alternative, metric.name, higher_is_better=metric.higher_is_better)


def _build_size(test_set: TestSet, counts: Counts, study: Study) -> PlanEntrySize:
    [analysis] = study.analyses
    return PlanEntrySize(
        name=test_set.name,
        format=counts.format if test_set.format == "auto" else test_set.format,
        unit=counts.unit,
        n_systems=counts.n_systems,
        n_items=counts.n_items,
        n_units=analysis.main.units.n_units,
        n_comparisons=len(analysis.main),
        warnings=counts.notices,
    )
