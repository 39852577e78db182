"""Tests whether labellings are independent of a reference labelling: from labels to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics as metric_registry
from sigdask.analysis.comparison.spec import AnyMetric
from sigdask.analysis.independence.exact import ExactP, LabelGroups, compute_exact_p
from sigdask.analysis.independence.labels import Labellings
from sigdask.analysis.independence.results import Independence, IndependenceResults
from sigdask.analysis.independence.scores import LabelScore, score_labels
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import AdjustTests, IndependenceOptions, fill_permutation_options
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels.permuted import PermutedPanel
from sigdask.randomization.panels.sums import DEFAULT_TRIALS
from sigdask.randomization.tallies import TAILS, Tally
from sigdask.results.record import Exact, SecondRun
from sigdask.statistics import bounds, crosscheck
from sigdask.statistics.bounds import estimate_trials_to_decide
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.matchings import Numbers
from sigdask.statistics.multiplicity import P_VALUE_ADJUSTMENTS
from sigdask.text import format_count


def independence(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    metric: AnyMetric = "accuracy",
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    within: Sequence[str] | None = None,
    **options: Unpack[IndependenceOptions],
) -> Independence:
    """Test whether one labelling is independent of another, both given as arrays.

    Parameters
    ----------
    a, b : sequence of str, length n_items
        The labelling, and the one that it is held against: precision is of the labels of `a`, recall of those of `b`.
    metric : str or Metric
        A score of labels.
    names : tuple of str
        What to call the two.
    ids : sequence of str, optional
        Item ids; without them items are known by position.
    within : sequence of str, optional
        Of each item the group within which labels are permuted.
    **options
        As in `independence_all`.

    Returns
    -------
    Independence

    Examples
    --------
    What four glasses hold, and what an expert says (Van Asch): 2 of 4 right.

    >>> contents, expert = ["Polish", "Premium", "Russian", "Budget"], ["Polish", "Premium", "Budget", "Russian"]
    >>> found = independence(expert, contents)
    >>> found
    Independence(A - B, accuracy 0.5000, 0.2500 by chance, p = 0.292)
    >>> found.n_extreme, found.n_trials, found.exact.guarantee
    (7, 24, 'exact')
    """
    groups = None if within is None else {"within": within}
    counts = Counts.from_labels(b, {names[0]: a}, ids=ids, groups=groups)
    column = None if within is None else "within"
    return independence_all(counts, metrics=[metric], reference=names[1], within=column, **options)[0]


def independence_all(
    counts: Counts,
    *,
    metrics: str | Sequence[AnyMetric] = "accuracy",
    reference: str = "gold",
    within: str | None = None,
    **options: Unpack[IndependenceOptions],
) -> IndependenceResults:
    """Test whether labellings are independent of the gold labels, under any number of metrics.

    The labels that all are held against are permuted over the items. Every labelling and metric sees the same
    permutations; the same data, seed and number of trials give the same counts on any machine, cluster and partition.

    Parameters
    ----------
    counts : Counts
        Labelled items, from `sigdask.read` or `Counts.from_labels`.
    metrics : str, or sequence of str or Metric
        Scores of labels.
    reference : str
        What to call the gold labels.
    within : str, optional
        A grouping column: labels are permuted within each of its values alone.
    alternative : {"greater", "less", "two-sided"}
        Of the score; two-sided counts arrangements that are at least as far from the score that independence leads
        to expect.
    method : {"auto", "randomization", "exact", "both"}
        auto: all arrangements, by their agreements, where that takes no more than seconds; else random permutations.
    adjust : {"holm", "hochberg", "bh", "by", "none"}, optional
        How p is adjusted for the number of tests; by default Holm's procedure over all labellings and metrics where
        there are several labellings, else none.
    trials : int, optional
        Random permutations; 1,048,576 by default.
    seed, alpha, second_run, cluster, workers, progress, blocks_per_task
        As in `compare_sets`.

    Raises
    ------
    InputError
        The data are not labels, or a metric is not one of labels; it says what and why.
    """
    settings = fill_permutation_options(options)
    tests = IndependenceTests.from_counts(
        counts, [metrics] if isinstance(metrics, str) else metrics, reference, within, settings
    )
    tallies = count_jobs(
        tests.jobs, cluster=settings["cluster"], workers=settings["workers"], progress=settings["progress"],
        blocks_per_task=settings["blocks_per_task"],
    ) if tests.jobs else []  # fmt: skip
    return tests.build_results(tallies)


def _bind_metric(metric: AnyMetric, counts: Counts) -> BoundMetric | BoundSets | BlackBox:
    bound = metric_registry.find_metric(metric, counts) if isinstance(metric, str) else metric
    return bound.bind(counts) if isinstance(bound, Metric) else bound


@dataclass(frozen=True, eq=False)
class IndependenceTests:
    """Tests of independence of each labelling under each metric, with the jobs of random permutations."""

    counts: Counts
    labellings: Labellings
    metrics: Sequence[BoundMetric | BoundSets | BlackBox]
    scores: tuple[tuple[LabelScore, ...], ...]
    exact: Mapping[tuple[int, int], ExactP]
    reference: str
    within: str | None
    settings: IndependenceOptions

    @staticmethod
    def from_counts(
        counts: Counts, metrics: Sequence[AnyMetric], reference: str, within: str | None, settings: IndependenceOptions
    ) -> IndependenceTests:
        """Return the tests with the labellings scored, and with exact p-values where requested and feasible."""
        if not metrics:
            raise InputError("no metric given; `sigdask metrics` lists them")
        labellings = Labellings.from_counts(counts, settings["seed"], within)
        bound = [_bind_metric(metric, counts) for metric in metrics]
        systems = range(len(labellings.names))
        margins, agreements = (
            [labellings.count_margins(s) for s in systems],
            [labellings.count_agreements(s) for s in systems],
        )
        scores = tuple(
            tuple(score_labels(m, labellings.labels, margins[s], agreements[s]) for m in bound) for s in systems
        )
        exact = {}
        caches: list[dict[LabelGroups, Numbers]] = [{} for _ in systems]
        for s, m in np.ndindex(len(systems), len(bound)) if settings["method"] != "randomization" else ():
            exact_value = compute_exact_p(scores[s][m].agreeing, margins[s], settings["alternative"], caches[s])
            if exact_value is None and settings["method"] == "exact":
                raise InputError(
                    f"{labellings.names[s]} under {bound[m].name}: too many arrangements for an exact p; choose method "
                    "auto, both or randomization"
                )
            if exact_value is not None:
                exact[s, m] = exact_value
        return IndependenceTests(counts, labellings, bound, scores, exact, reference, within, settings)

    @property
    def sampled(self) -> list[tuple[int, int]]:
        """The (labelling, metric) indices of the tests that are counted by random permutations."""
        everything = [*np.ndindex(len(self.scores), len(self.metrics))]
        always = self.settings["method"] in {"both", "randomization"}
        return [pair for pair in everything if always or pair not in self.exact]

    @cached_property
    def jobs(self) -> list[Job]:
        """Jobs of random permutations, with one panel for all labellings and metrics."""
        if not self.sampled:
            return []
        labellings = self.labellings
        agreeing = tuple(tuple(score.agreeing for score in row) for row in self.scores)
        panel = PermutedPanel(labellings.key, labellings.starts, labellings.reference, labellings.predicted, agreeing)
        n_trials = self.settings["trials"] or DEFAULT_TRIALS
        label = f"permutations of {self.reference}"
        return [Job(panel, n_trials, run, label) for run in range(1 + self.settings["second_run"])]

    def build_results(self, tallies: Sequence[Tally]) -> IndependenceResults:
        """Return the results from the tallies of `jobs`, in the order of labellings and metrics."""
        sampled_pairs = {*self.sampled}
        results = tuple(
            self._build_result(s, m, tallies if (s, m) in sampled_pairs else (), len(sampled_pairs))
            for s, m in np.ndindex(len(self.scores), len(self.metrics))
        )
        adjust = self.settings["adjust"] or ("holm" if len(self.scores) > 1 else "none")
        return IndependenceResults(
            _adjust_results(results, adjust), self.settings["seed"], self.settings["alpha"], self.counts.notices, adjust
        )

    def _build_result(self, s: int, m: int, tallies: Sequence[Tally], n_sampled: int) -> Independence:
        score, exact = self.scores[s][m], self.exact.get((s, m))
        tail = TAILS.index(self.settings["alternative"])
        exceedances = [
            int(t.counts[s, m, tail]) for t in tallies if t.get_n_trials(s, m) == tallies[0].get_n_trials(s, m)
        ]
        checks: list[Check] = []
        n_trials: int | None
        n_extreme: int | None
        if exceedances:
            n_trials, n_extreme = n, k = tallies[0].get_n_trials(s, m), exceedances[0]
            p = float(bounds.compute_bound(k, n))
            low, high = map(float, bounds.clopper_pearson(k, n))
            checks = [*_check_second_run(exceedances, n, n_sampled), *_check_exact_value(exact, k, n, n_sampled)]
        else:
            assert exact is not None
            n_trials, n_extreme = exact.n_arrangements, exact.n_extreme
            low = high = p = float(exact.p)
        return Independence(
            test_set=self.counts.name,
            a=self.labellings.names[s],
            b=self.reference,
            metric=self.metrics[m].name,
            higher_is_better=self.metrics[m].higher_is_better,
            score=score.value,
            expected=score.expected,
            alternative=self.settings["alternative"],
            within=self.within,
            n_items=self.labellings.n_items,
            n_strata=self.labellings.n_strata,
            method="approximate" if exceedances else "exact",
            n_trials=n_trials,
            n_extreme=n_extreme,
            p_value=p,
            p_interval=(low, high),
            second_run=_build_second_run(exceedances, n_trials),
            exact=None if exact is None else Exact(float(exact.p), float(exact.p), exact.method, exact.guarantee),
            checks=tuple(checks),
            warnings=tuple(self._list_warnings(score, low, high, p)),
        )

    def _list_warnings(self, score: LabelScore, low: float, high: float, p: float) -> list[str]:
        alpha = self.settings["alpha"]
        if score.is_fixed:
            return ["every arrangement scores the same: p says nothing"]
        if low <= alpha < high:
            needed = estimate_trials_to_decide(p, alpha)
            effort = "more trials than can be run" if needed is None else f"about {format_count(needed, 'trial')}"
            return [f"undecided at {alpha:g}: {effort} would decide"]
        return []


def _adjust_results(results: tuple[Independence, ...], adjust: AdjustTests) -> tuple[Independence, ...]:
    """Return the results with p-values and their intervals adjusted for the number of tests."""
    if adjust == "none":
        return results
    columns = [[result.p_value, *result.p_interval] for result in results]
    p, low, high = (P_VALUE_ADJUSTMENTS[adjust](column).tolist() for column in zip(*columns, strict=True))
    return tuple(
        replace(
            result,
            warnings=tuple(f"unadjusted p {w}" if w.startswith("undecided") else w for w in result.warnings),
            p_adjusted=adjusted,
            p_adjusted_interval=(p_low, p_high),
        )
        for result, adjusted, p_low, p_high in zip(results, p, low, high, strict=True)
    )


def _build_second_run(exceedances: Sequence[int], n_trials: int | None) -> SecondRun | None:
    if len(exceedances) < 2 or not n_trials:
        return None
    agreement = float(crosscheck.compute_agreement_p(exceedances[0], exceedances[1], n_trials))
    return SecondRun(n_trials, exceedances[1], float(bounds.compute_bound(exceedances[1], n_trials)), agreement)


def _check_second_run(exceedances: Sequence[int], n_trials: int, n_comparisons: int) -> list[Check]:
    second = _build_second_run(exceedances, n_trials)
    if second is None:
        return [Check("second run", "not applicable", None, "not asked for")]
    return [crosscheck.judge_second_run(exceedances[0], exceedances[1], n_trials, second.agreement_p, n_comparisons)]


def _check_exact_value(exact: ExactP | None, n_extreme: int, n_trials: int, n_comparisons: int) -> list[Check]:
    if exact is None:
        return []
    p = float(exact.p)
    return [crosscheck.judge_known_p("exact value", p, n_extreme, n_trials, n_comparisons, exact=False)]
