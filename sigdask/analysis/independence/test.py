"""Is one labelling independent of another: from labels to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from sigdask import metrics as known
from sigdask.analysis.comparison.spec import AnyMetric
from sigdask.analysis.independence.exact import ExactP, Parts, exact_p
from sigdask.analysis.independence.labels import Labellings
from sigdask.analysis.independence.results import Independence, IndependenceResults
from sigdask.analysis.independence.scores import LabelScore, score_of
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.metrics.base import BlackBox, BoundMetric, BoundSets, Metric
from sigdask.options import AdjustTests, HowPermuted, filled_permuted
from sigdask.randomization.jobs import Job
from sigdask.randomization.panels.permuted import PermutedPanel
from sigdask.randomization.panels.sums import DEFAULT_TRIALS
from sigdask.randomization.tallies import TAILS, Tally
from sigdask.results.record import Exact, SecondRun
from sigdask.statistics import bounds, crosscheck
from sigdask.statistics.bounds import trials_to_decide
from sigdask.statistics.crosscheck import Check
from sigdask.statistics.matchings import Numbers
from sigdask.statistics.multiplicity import OF_P_VALUES
from sigdask.text import count_noun


def independence(
    a: Sequence[Any] | NDArray[Any],
    b: Sequence[Any] | NDArray[Any],
    *,
    metric: AnyMetric = "accuracy",
    names: tuple[str, str] = ("A", "B"),
    ids: Sequence[str] | None = None,
    within: Sequence[str] | None = None,
    **options: Unpack[HowPermuted],
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
    **options: Unpack[HowPermuted],
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
    how = filled_permuted(options)
    asked = IndependenceTests.of(counts, [metrics] if isinstance(metrics, str) else metrics, reference, within, how)
    tallies = count_jobs(
        asked.jobs, cluster=how["cluster"], workers=how["workers"], progress=how["progress"],
        blocks_per_task=how["blocks_per_task"],
    ) if asked.jobs else []  # fmt: skip
    return asked.judged(tallies)


def _bound(metric: AnyMetric, counts: Counts) -> BoundMetric | BoundSets | BlackBox:
    found = known.find(metric, counts) if isinstance(metric, str) else metric
    return found.bind(counts) if isinstance(found, Metric) else found


@dataclass(frozen=True, eq=False)
class IndependenceTests:
    """What is tested: each labelling under each metric, with its exact p where that is asked for and feasible."""

    counts: Counts
    labellings: Labellings
    metrics: Sequence[BoundMetric | BoundSets | BlackBox]
    scores: tuple[tuple[LabelScore, ...], ...]
    exact: Mapping[tuple[int, int], ExactP]
    reference: str
    within: str | None
    how: HowPermuted

    @staticmethod
    def of(
        counts: Counts, metrics: Sequence[AnyMetric], reference: str, within: str | None, how: HowPermuted
    ) -> IndependenceTests:
        """Score the labellings, and find the exact p where that is asked for and feasible."""
        if not metrics:
            raise InputError("no metric given; `sigdask metrics` lists them")
        own = Labellings.of(counts, how["seed"], within)
        bound = [_bound(one, counts) for one in metrics]
        systems = range(len(own.names))
        margins, agreed = [own.margins(s) for s in systems], [own.agreed(s) for s in systems]
        scores = tuple(tuple(score_of(m, own.labels, margins[s], agreed[s]) for m in bound) for s in systems)
        exact = {}
        counted: list[dict[Parts, Numbers]] = [{} for _ in systems]
        for s, m in np.ndindex(len(systems), len(bound)) if how["method"] != "randomization" else ():
            found = exact_p(scores[s][m].agreeing, margins[s], how["alternative"], counted[s])
            if found is None and how["method"] == "exact":
                raise InputError(
                    f"{own.names[s]} under {bound[m].name}: too many arrangements for an exact p; choose method "
                    "auto, both or randomization"
                )
            if found is not None:
                exact[s, m] = found
        return IndependenceTests(counts, own, bound, scores, exact, reference, within, how)

    @property
    def sampled(self) -> list[tuple[int, int]]:
        """Which labellings and metrics are counted by random permutations."""
        everything = [*np.ndindex(len(self.scores), len(self.metrics))]
        always = self.how["method"] in {"both", "randomization"}
        return [at for at in everything if always or at not in self.exact]

    @cached_property
    def jobs(self) -> list[Job]:
        """What is counted by random permutations: one panel for all labellings and metrics."""
        if not self.sampled:
            return []
        own = self.labellings
        agreeing = tuple(tuple(score.agreeing for score in row) for row in self.scores)
        panel = PermutedPanel(own.key, own.starts, own.meant, own.given, agreeing)
        n_trials = self.how["trials"] or DEFAULT_TRIALS
        label = f"permutations of {self.reference}"
        return [Job(panel, n_trials, run, label) for run in range(1 + self.how["second_run"])]

    def judged(self, tallies: Sequence[Tally]) -> IndependenceResults:
        """Return what was found with the tallies of the jobs, in the order of labellings and metrics."""
        sampled = {*self.sampled}
        found = tuple(
            self._judged(s, m, tallies if (s, m) in sampled else (), len(sampled))
            for s, m in np.ndindex(len(self.scores), len(self.metrics))
        )
        adjust = self.how["adjust"] or ("holm" if len(self.scores) > 1 else "none")
        return IndependenceResults(
            _adjusted(found, adjust), self.how["seed"], self.how["alpha"], self.counts.notices, adjust
        )

    def _judged(self, s: int, m: int, tallies: Sequence[Tally], n_sampled: int) -> Independence:
        score, exact = self.scores[s][m], self.exact.get((s, m))
        tail = TAILS.index(self.how["alternative"])
        counted = [int(t.counts[s, m, tail]) for t in tallies if t.trials_of(s, m) == tallies[0].trials_of(s, m)]
        checks: list[Check] = []
        n_trials: int | None
        n_extreme: int | None
        if counted:
            n_trials, n_extreme = n, k = tallies[0].trials_of(s, m), counted[0]
            p = float(bounds.bound(k, n))
            low, high = map(float, bounds.interval(k, n))
            checks = [*_second(counted, n, n_sampled), *_exact_value(exact, k, n, n_sampled)]
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
            alternative=self.how["alternative"],
            within=self.within,
            n_items=self.labellings.n_items,
            n_strata=self.labellings.n_strata,
            method="approximate" if counted else "exact",
            n_trials=n_trials,
            n_extreme=n_extreme,
            p_value=p,
            p_interval=(low, high),
            second_run=_run(counted, n_trials),
            exact=None if exact is None else Exact(float(exact.p), float(exact.p), exact.method, exact.guarantee),
            checks=tuple(checks),
            warnings=tuple(self._warnings(score, low, high, p)),
        )

    def _warnings(self, score: LabelScore, low: float, high: float, p: float) -> list[str]:
        alpha = self.how["alpha"]
        if score.is_fixed:
            return ["every arrangement scores the same: p says nothing"]
        if low <= alpha < high:
            needed = trials_to_decide(p, alpha)
            more = "more trials than can be run" if needed is None else f"about {count_noun(needed, 'trial')}"
            return [f"undecided at {alpha:g}: {more} would decide"]
        return []


def _adjusted(found: tuple[Independence, ...], adjust: AdjustTests) -> tuple[Independence, ...]:
    """Return tests with p and the ends of its interval adjusted over all of them."""
    if adjust == "none":
        return found
    columns = [[one.p_value, *one.p_interval] for one in found]
    p, low, high = (OF_P_VALUES[adjust](column).tolist() for column in zip(*columns, strict=True))
    return tuple(
        replace(
            one,
            warnings=tuple(f"unadjusted p {w}" if w.startswith("undecided") else w for w in one.warnings),
            p_adjusted=own,
            p_adjusted_interval=(least, most),
        )
        for one, own, least, most in zip(found, p, low, high, strict=True)
    )


def _run(counted: Sequence[int], n_trials: int | None) -> SecondRun | None:
    if len(counted) < 2 or not n_trials:
        return None
    agreement = float(crosscheck.runs_agree(counted[0], counted[1], n_trials))
    return SecondRun(n_trials, counted[1], float(bounds.bound(counted[1], n_trials)), agreement)


def _second(counted: Sequence[int], n_trials: int, n_comparisons: int) -> list[Check]:
    again = _run(counted, n_trials)
    if again is None:
        return [Check("second run", "not applicable", None, "not asked for")]
    return [crosscheck.second_run(counted[0], counted[1], n_trials, again.agreement_p, n_comparisons)]


def _exact_value(exact: ExactP | None, n_extreme: int, n_trials: int, n_comparisons: int) -> list[Check]:
    if exact is None:
        return []
    p = float(exact.p)
    return [crosscheck.against_known("exact value", p, n_extreme, n_trials, n_comparisons, exact=False)]
