"""Tests whether labellings are independent of a reference labelling: from labels to results.

The frequency of each label is fixed in both labellings. Then precision, recall and F of a label, accuracy, micro and
macro averages, kappa and Matthews' correlation are a constant plus a weight for each agreement, and are compared in
integers. Other metrics are scored by their own form.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sigdask.analysis.comparison.pairs import AnyMetric, CompareSpec, bind_metric
from sigdask.counts import Counts
from sigdask.counts.fields import Floats, Integers, LabelFields
from sigdask.errors import InputError
from sigdask.execution.run import count_with_options
from sigdask.interface import spell
from sigdask.metrics.base import AnyBound, BoundMetric
from sigdask.metrics.forms import Form, Formula, Ratios
from sigdask.metrics.labels import compute_kappa, compute_mcc
from sigdask.options import AdjustTests, IndependenceOptions, fill_options, find_unused_options, list_options
from sigdask.randomization.panels.permuted import AgreementScore, PermutedPanel
from sigdask.randomization.panels.sums import DEFAULT_TRIALS, SwapUnits
from sigdask.randomization.slabs import Job
from sigdask.randomization.stream import SCHEME
from sigdask.randomization.tallies import TAILS
from sigdask.results.comparisons import get_version
from sigdask.results.export import ListedResults
from sigdask.results.fields import note_unused
from sigdask.results.record import Exact, SecondRun
from sigdask.statistics import bounds
from sigdask.statistics.bounds import P_VALUE_ADJUSTMENTS, Check, estimate_trials_to_decide
from sigdask.statistics.lattice import TIE
from sigdask.statistics.matchings import (
    MAX_STEPS,
    LabelMargins,
    Numbers,
    compute_shares,
    count_arrangements,
    estimate_steps,
)
from sigdask.statistics.rounding import format_p_equals
from sigdask.text import format_count, to_plain


@dataclass(frozen=True, slots=True)
class Independence:
    """Result of one test of independence: whether a score of two labellings is above or below chance.

    Attributes
    ----------
    test_set : str
        Name of the test set, empty by default.
    a, b : str
        Names of the first and the second labelling. The labels of the second are permuted.
    metric : str
        Name of the score of agreement, with its options.
    higher_is_better : bool
        Whether a higher score means more agreement.
    score, expected : float
        Observed score, and the score of independent labellings.
    alternative : {"greater", "less", "two-sided"}
        Alternative hypothesis about the score. "two-sided" counts permutations that are at least as far from the
        expected score as the observed one.
    within : str or None
        Column within whose values labels were permuted. None if over all items.
    n_items, n_strata : int
        Number of items, and of groups of items within which labels were permuted.
    method : {"approximate", "exact"}
        Whether p comes from random permutations or from all.
    n_trials, n_extreme : int or None
        Number of permutations, and of those that are at least as extreme as observed. None if p is exact.
    p_value : float
        (n_extreme + 1) / (n_trials + 1), or the exact p.
    p_interval : tuple of float
        99 % Clopper-Pearson interval of the exact p. Both ends equal p if it is exact.
    second_run : SecondRun or None
        Cross-check by a second run. None if there was none.
    exact : Exact or None
        Exact p. None if it was not computed.
    checks : tuple of Check
        Cross-checks and their verdicts.
    warnings : tuple of str
        Remarks on this test.
    p_adjusted : float or None
        p adjusted over all tests of the call. None if p was not adjusted.
    p_adjusted_interval : tuple of float or None
        Ends of `p_interval`, adjusted in the same way.
    """

    test_set: str
    a: str
    b: str
    metric: str
    higher_is_better: bool
    score: float
    expected: float
    alternative: str
    within: str | None
    n_items: int
    n_strata: int
    method: str
    n_trials: int | None
    n_extreme: int | None
    p_value: float
    p_interval: tuple[float, float]
    second_run: SecondRun | None = None
    exact: Exact | None = None
    checks: tuple[Check, ...] = ()
    warnings: tuple[str, ...] = ()
    p_adjusted: float | None = None
    p_adjusted_interval: tuple[float, float] | None = None

    def __repr__(self) -> str:
        return (
            f"Independence({self.a} - {self.b}, {self.metric} {self.score:.4f}, {self.expected:.4f} by chance, "
            f"{format_p_equals(self.p_value)})"
        )

    def disagreements(self) -> tuple[Check, ...]:
        """Return the cross-checks that disagree."""
        return tuple(check for check in self.checks if check.verdict == "disagrees")

    def verdict(self, alpha: float) -> str:
        """Return the verdict at alpha in words, by the adjusted p if p was adjusted."""
        low, high = self.p_adjusted_interval or self.p_interval
        if low <= alpha < high:
            return f"undecided at {alpha:g}"
        p = self.p_value if self.p_adjusted is None else self.p_adjusted
        return "significant" if p <= alpha else "not significant"


@dataclass(frozen=True, slots=True)
class IndependenceResults(ListedResults[Independence]):
    """Results of all tests of one call, in the order of labellings and metrics.

    Attributes
    ----------
    found : tuple of Independence
        The tests.
    seed : int
        Seed of the random stream.
    alpha : float
        Significance level.
    warnings : tuple of str
        Remarks on all tests.
    adjust : {"none", "holm", "bh"}
        How p was adjusted over all tests.
    """

    found: tuple[Independence, ...]
    seed: int
    alpha: float
    warnings: tuple[str, ...] = ()
    adjust: AdjustTests = "none"

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `--json` writes, made of plain Python values."""
        header = {"kind": "independence", "sigdask": get_version(), "scheme": SCHEME, "seed": self.seed}
        notes = {"alpha": self.alpha, "adjust": self.adjust, "warnings": list(self.warnings)}
        return header | notes | {"results": to_plain(self.found)}


@dataclass(frozen=True, slots=True, eq=False)
class LabelScore:
    """A score of the agreement of two labellings, with its value under independence.

    Attributes
    ----------
    value : float
        The observed score.
    expected : float
        Expected score under independence. For the metrics named above, the mean over all arrangements.
    agreeing : AgreementScore
        How the scores of arrangements are compared with the observed score.
    is_fixed : bool
        Whether all arrangements have the same score.
    """

    value: float
    expected: float
    agreeing: AgreementScore
    is_fixed: bool


def score_labels(
    metric: AnyBound, labels: Sequence[str], strata: Sequence[LabelMargins], agreements: Sequence[int]
) -> LabelScore:
    """Return the score of the agreement of two labellings under a metric.

    Parameters
    ----------
    metric : BoundMetric
        A metric that sums counts of labels.
    labels : sequence of str
        All labels.
    strata : sequence of LabelMargins
        How often each labelling gives each label, by stratum.
    agreements : sequence of int
        Number of items with each label on which they agree.
    """
    if not isinstance(metric, BoundMetric) or metric.own:
        raise InputError(
            f"metric {metric.name!r}: independence takes metrics that sum counts of labels (accuracy, kappa, "
            "mcc, precision[LABEL], macro-f1, a @sigdask.metric of them), not metrics of whole outputs"
        )
    fixed, columns = _split_sums(metric.fields, labels, strata)
    # the expected number of items to which two independent labellings both give a label
    frequent = [math.fsum(s.given[k] * s.meant[k] / s.n_items for s in strata) for k in range(len(labels))]
    value, expected = (float(metric.form.score(fixed + columns @ np.array(x, float))) for x in (agreements, frequent))
    weights = _compute_weights(metric.form, fixed, columns)
    if weights is None:
        limits = _compute_limits(value, expected, 2 * float(TIE) * (2 * abs(expected) + abs(value)))
        agreeing = AgreementScore(columns, limits, metric.form, fixed)
    else:
        if len(weights) == 2:  # either agreement determines the other
            weights = np.array([weights.sum(), 0.0])
        tie = 4 * float(TIE) * sum(stratum.n_items for stratum in strata) * float(np.abs(weights).max())
        limits = _compute_limits(float(weights @ agreements), float(weights @ frequent), tie)
        agreeing = AgreementScore(weights[None], limits, None, np.zeros(1, np.int64))
    counting = [k for group in agreeing.parts for k in group]
    return LabelScore(
        value, expected, agreeing, is_fixed=not any(stratum.can_vary(k) for stratum in strata for k in counting)
    )


def _split_sums(
    fields: Sequence[str], labels: Sequence[str], strata: Sequence[LabelMargins]
) -> tuple[Integers, Integers]:
    """Return, for each field, the constant part of its sum, and the addend of each agreement."""
    index_of = {label: k for k, label in enumerate(labels)}
    fixed, columns = np.zeros(len(fields), np.int64), np.zeros((len(fields), len(labels)), np.int64)
    for f, field in enumerate(fields):
        kind, _, label = field.partition("[")
        k = index_of.get(label[:-1], -1)
        if kind == "items":
            fixed[f] = sum(stratum.n_items for stratum in strata)
        elif kind == "correct":
            columns[f] = 1
        elif kind == "tp":
            columns[f, k] = 1
        else:
            fixed[f] = sum((stratum.given if kind == "predicted" else stratum.meant)[k] for stratum in strata)
    return fixed, columns


def _compute_weights(form: Form, fixed: Integers, columns: Integers) -> Floats | None:
    """Return the weight in the score of an agreement on each label, up to a common factor.

    None if the weights depend on the other agreements.
    """
    n_labels = columns.shape[1]
    if isinstance(form, Formula) and form.function in {compute_kappa, compute_mcc}:  # both rise with the number right
        all_right = fixed + (np.arange(len(fixed)) == 0) * fixed[1]
        return np.full(n_labels, float(form.score(all_right) != form.score(fixed)))
    if not isinstance(form, Ratios) or (np.array(form.denominators) @ columns).any():
        return None
    above, below = np.array(form.numerators) @ columns, np.array(form.denominators) @ fixed
    return np.asarray((above[below != 0] / below[below != 0, None]).sum(axis=0))  # 0/0 is a constant


def _compute_limits(observed: Any, expected: Any, tie: Any) -> tuple[Any, Any, Any, Any]:
    """Return the thresholds from which a score is extreme: at least, at most, and, two-sided, above and below."""
    mirrored = 2 * expected - observed
    return observed - tie, observed + tie, max(observed, mirrored) - tie, min(observed, mirrored) + tie


LabelGroups = tuple[tuple[int, ...], ...]
"""Labels whose agreements are counted together."""

MAX_TERMS = 50_000_000
"""Maximum number of terms of a hypergeometric distribution that are added in floating point."""


def compute_exact_p(
    agreeing: AgreementScore, strata: Sequence[LabelMargins], alternative: str, cache: dict[LabelGroups, Numbers]
) -> Exact | None:
    """Return p over all arrangements, or None if these are too many to count.

    `cache` stores counted arrangements of the two labellings for the next score.
    """
    groups = tuple(tuple(labels.tolist()) for labels in agreeing.parts)
    is_single = len(groups) == 1 and len(groups[0]) == 1 and len(strata) == 1
    score = agreeing.select_labels([labels[0] for labels in groups])
    numbers: NDArray[Any]
    if estimate_steps(strata, groups) <= MAX_STEPS:
        if groups not in cache:
            cache[groups] = count_arrangements(strata, groups)
        numbers, guarantee = cache[groups], "exact"
    elif is_single and strata[0].count_max_agreements(groups[0]) <= MAX_TERMS:
        numbers, guarantee = compute_shares(strata[0], groups[0][0]), "numeric"
    else:
        return None
    agreements = np.argwhere(numbers != 0)  # (n_cells, n_parts)
    extreme = score.is_extreme(score.compute_values(agreements))[TAILS.index(alternative)]
    n_ways = numbers[tuple(agreements.T)]
    p = Fraction(n_ways[extreme].sum()) / Fraction(n_ways.sum())
    return Exact(float(p), float(p), "hypergeometric" if is_single else "rook-polynomials", guarantee)


def build_panel(counts: Counts, seed: int, within: str | None = None) -> PermutedPanel:
    """Return the labellings of a test set, not scored yet; each value of the column `within` is a stratum."""
    fields = counts.fields
    if not isinstance(fields, LabelFields) or counts.replicates:
        found_fields = counts.warnings[0] if counts.replicates else ", ".join([*fields][:6])
        raise InputError(
            f"independence needs two labellings with one label per item, without replicates; found {found_fields}"
        )
    units = SwapUnits.from_counts(counts.with_unit("item"), seed)
    strata = np.zeros(counts.n_items, np.int64) if within is None else counts.group(within).ranks
    order, sizes = np.lexsort((units.index, strata)), np.bincount(strata)
    return PermutedPanel(
        key=units.key,
        starts=np.concatenate([[0], np.cumsum(sizes[sizes > 0])]),
        meant=np.ascontiguousarray(fields.gold[order, 0]),
        given=np.ascontiguousarray(fields.predicted[order].T),
        scores=(),
    )


def count_labels(panel: PermutedPanel, system: int, n_labels: int) -> tuple[list[LabelMargins], list[int]]:
    """Return, by stratum, how often a labelling and the reference give each label; and on how many items both do."""
    given, meant = panel.given[system], panel.meant
    strata = [
        LabelMargins(
            stop - start, *(tuple(np.bincount(x[start:stop], minlength=n_labels).tolist()) for x in (given, meant))
        )
        for start, stop in pairwise(panel.starts.tolist())
    ]
    return strata, np.bincount(meant[given == meant], minlength=n_labels).tolist()


def compute_independence(
    counts: Counts,
    metrics: str | Sequence[AnyMetric],
    reference: str,
    within: str | None,
    options: IndependenceOptions,
) -> IndependenceResults:
    """Test whether labellings are independent of the gold labels, under any number of metrics.

    `sigdask.independence` describes the options.
    """
    settings = fill_options(IndependenceOptions, options)
    if not metrics:
        raise InputError("no metric given", remedy="name one (`sigdask list metrics` lists them)")
    spec = CompareSpec([metrics] if isinstance(metrics, str) else metrics)
    panel = build_panel(counts, settings["seed"], within)
    bound = [bind_metric(metric, counts) for metric in spec.find_metrics(counts)]
    scores, exact = _score_all(counts, panel, bound, settings)
    tests = [*np.ndindex(len(scores), len(bound))]
    sampled = [test for test in tests if settings["method"] in {"both", "randomization"} or test not in exact]
    panel = replace(panel, scores=tuple(tuple(score.agreeing for score in row) for row in scores))
    n_trials, label = settings["trials"] or DEFAULT_TRIALS, f"permutations of {reference}"
    sizes = [n_trials, *([bounds.count_second_trials(n_trials)] if settings["second_run"] else [])]
    jobs = [Job(panel, n, run, label=label) for run, n in enumerate(sizes)] if sampled else []
    tallies = count_with_options(jobs, settings) if jobs else []
    alpha, tail = settings["alpha"], TAILS.index(settings["alternative"])
    judged = []
    for s, m in tests:
        runs = [(int(tally.counts[s, m, tail]), tally.get_n_trials(s, m)) for tally in tallies]
        exact_p = exact.get((s, m))
        judged.append(_judge_sampled(runs, exact_p, len(sampled)) if (s, m) in sampled else _judge_exact(exact_p))
    adjust = settings["adjust"] or ("holm" if len(scores) > 1 else "none")
    results = tuple(
        Independence(
            test_set=counts.name,
            a=counts.systems[s],
            b=reference,
            metric=bound[m].name,
            higher_is_better=bound[m].higher_is_better,
            score=scores[s][m].value,
            expected=scores[s][m].expected,
            alternative=settings["alternative"],
            within=within,
            n_items=counts.n_items,
            n_strata=len(panel.starts) - 1,
            exact=exact.get((s, m)),
            warnings=tuple(_list_warnings(scores[s][m], fields, alpha, "" if adjust == "none" else "unadjusted p ")),
            **fields,
            **adjusted,
        )
        for (s, m), fields, adjusted in zip(tests, judged, _adjust_p(judged, adjust), strict=True)
    )
    unused = find_unused_options(settings, list_options(IndependenceOptions))
    notes = [note_unused(option, f"with {spell(*option.idle_with)}").text for option in unused if option.idle_with]
    return IndependenceResults(results, settings["seed"], alpha, (*counts.notices, *notes), adjust)


def _score_all(
    counts: Counts, panel: PermutedPanel, metrics: Sequence[AnyBound], settings: IndependenceOptions
) -> tuple[list[list[LabelScore]], dict[tuple[int, int], Exact]]:
    """Return the scores of each labelling under each metric, and the exact p-values that are requested and feasible."""
    assert isinstance(counts.fields, LabelFields)
    labels = counts.fields.labels  # of gold and systems
    scores, exact = [], {}
    for s, name in enumerate(counts.systems):
        margins, agreements = count_labels(panel, s, len(labels))
        scores.append([score_labels(metric, labels, margins, agreements) for metric in metrics])
        cache: dict[LabelGroups, Numbers] = {}
        for m, score in enumerate(scores[s]) if settings["method"] != "randomization" else ():
            exact_p = compute_exact_p(score.agreeing, margins, settings["alternative"], cache)
            if exact_p is not None:
                exact[s, m] = exact_p
            elif settings["method"] == "exact":
                raise InputError(
                    f"{name} under {metrics[m].name}: there are too many arrangements for an exact p",
                    remedy=f"choose {spell('method', 'auto')}, both or randomization",
                )
    return scores, exact


def _judge_exact(exact: Exact | None) -> dict[str, Any]:
    """Return the fields of a result whose p is of all arrangements."""
    assert exact is not None
    p = exact.p_lo
    return {"method": "exact", "n_trials": None, "n_extreme": None, "p_value": p, "p_interval": (p, p)}


def _judge_sampled(runs: Sequence[tuple[int, int]], exact: Exact | None, n_tests: int) -> dict[str, Any]:
    """Return the fields of a result whose p is of random permutations, checked by a second run and the exact p.

    `runs` has exceedances and trials of each run.
    """
    k, n = runs[0]
    second, checks = None, [Check("second run", "not applicable", None, "not requested")]
    if len(runs) > 1 and all(n_trials for _, n_trials in runs):
        k2, n2 = runs[1]
        second = SecondRun(n2, k2, float(bounds.compute_bound(k2, n2)), float(bounds.compute_agreement_p(k, k2, n, n2)))
        checks = [bounds.judge_second_run((runs[0], runs[1]), second.agreement_p, n_tests)]
    if exact is not None:
        checks.append(bounds.judge_known_p("exact value", exact.p_lo, k, n, n_tests, exact=False))
    return {
        "method": "approximate",
        "n_trials": n,
        "n_extreme": k,
        "p_value": float(bounds.compute_bound(k, n)),
        "p_interval": tuple(map(float, bounds.clopper_pearson(k, n))),
        "second_run": second,
        "checks": tuple(checks),
    }


def _list_warnings(score: LabelScore, judged: Mapping[str, Any], alpha: float, prefix: str) -> Iterator[str]:
    low, high = judged["p_interval"]
    if score.is_fixed:
        yield "every arrangement has the same score, so p has no meaning"
    elif low <= alpha < high:
        needed = estimate_trials_to_decide(judged["p_value"], alpha)
        effort = "more trials than are possible" if needed is None else f"about {format_count(needed, 'trial')}"
        yield f"{prefix}undecided at {alpha:g}: {effort} would decide"


def _adjust_p(judged: Sequence[Mapping[str, Any]], adjust: AdjustTests) -> list[dict[str, Any]]:
    """Return the p-values and their intervals adjusted for the number of tests, as fields of each result."""
    if adjust == "none":
        return [{}] * len(judged)
    columns = zip(*([fields["p_value"], *fields["p_interval"]] for fields in judged), strict=True)
    rows = zip(*(P_VALUE_ADJUSTMENTS[adjust](column).tolist() for column in columns), strict=True)
    return [{"p_adjusted": p, "p_adjusted_interval": (low, high)} for p, low, high in rows]
