"""Tests of label permutation: Van Asch's glasses, all permutations, Fisher's test, and partitions."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from builders import build_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import sigdask
from sigdask.analysis.independence import build_panel, count_labels, score_labels
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.execution.run import count_jobs
from sigdask.metrics import find_metric
from sigdask.randomization.slabs import Job
from sigdask.report.analyses import independence_all
from sigdask.statistics.bounds import compute_fit_p

METRICS = [
    "accuracy",
    "kappa",
    "mcc",
    "precision[a]",
    "f1[b]",
    "f[a]:beta=2",
    "macro-f1",
    "macro-recall",
    "micro-f1(labels=a+b)",
]
SIDES = ("greater", "less", "two-sided")
LABELLING = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=2, max_size=6)


@sigdask.metric(fields=["tp[a]", "correct", "items"])
def crooked(tp, correct, items):
    return (tp * tp + correct) / items


def draw_labels(n, labels="abc", seed=0, copied=0.15):
    rng = build_rng(seed)
    gold = rng.choice(list(labels), n)
    return np.where(rng.random(n) < copied, gold, rng.choice(list(labels), n)), gold


# -- the exact p --


def test_van_aschs_glasses(oracles):
    o = oracles["vanasch_glasses"]
    result = sigdask.independence(o["inputs"]["expert"], o["inputs"]["contents"], alternative=o["alternative"])
    assert result.p_value == o["expected"] == float(Fraction(o["expected_rational"]))
    assert result.method == result.exact.guarantee == "exact"


def enumerate_permutations(a, b, metric, side):
    """Score every order of the labels of b by the metric's own form, and return p and the mean."""
    counts = Counts.from_labels(b, {"a": a})
    bound = metric.bind(counts) if not isinstance(metric, str) else find_metric(metric, counts).bind(counts)

    def sum_field(field, labels):
        kind, _, label = field[:-1].partition("[")
        return sum(
            {"items": True, "correct": x == y, "tp": x == y == label, "predicted": x == label, "gold": y == label}[
                kind if label else field
            ]
            for x, y in zip(a, labels, strict=True)
        )

    def score(labels):
        return float(bound.form.score(np.array([sum_field(field, labels) for field in bound.fields])))

    observed = score(b)
    score_by_order = {order: score(order) for order in {*permutations(b)}}
    scores = np.array([score_by_order[order] for order in permutations(b)])
    middle = sigdask.independence(a, b, metric=metric).expected
    tie = 1e-9
    extreme = {
        "greater": scores >= observed - tie,
        "less": scores <= observed + tie,
        "two-sided": np.abs(scores - middle) >= abs(observed - middle) - tie,
    }[side]
    return Fraction(int(extreme.sum()), len(scores)), scores.mean()


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=8, deadline=None)
@given(LABELLING, st.sampled_from(SIDES))
def test_the_exact_p_is_that_of_all_permutations(metric, items, side):
    a, b = ([*column, *"abc"][-5:] for column in zip(*items, strict=True))
    p, mean = enumerate_permutations(a, b, metric, side)
    result = sigdask.independence(a, b, metric=metric, alternative=side)
    assert result.method == "exact"
    assert result.p_value == pytest.approx(float(p), rel=1e-12)
    assert result.expected == pytest.approx(mean, abs=1e-9)  # of these metrics the mean over all orders
    assert result.n_extreme is result.n_trials is None


@pytest.mark.parametrize("side", SIDES)
def test_a_metric_of_another_shape_is_scored_by_its_own_function(side):
    a, b = list("aabacba"), list("aabbcca")
    p, _ = enumerate_permutations(a, b, crooked, side)
    assert sigdask.independence(a, b, metric=crooked, alternative=side).p_value == pytest.approx(float(p))


@pytest.mark.parametrize("metric", ["accuracy", "f1[a]", "kappa", "mcc", "macro-f1", "precision[b]"])
@pytest.mark.parametrize("side", ["greater", "less"])
def test_two_labels_are_fishers_exact_test(metric, side):
    a, b = draw_labels(60, "ab", seed=3)
    table = [[int(((a == x) & (b == y)).sum()) for y in "ab"] for x in "ab"]
    result = sigdask.independence(a, b, metric=metric, alternative=side)
    assert result.p_value == pytest.approx(stats.fisher_exact(table, alternative=side).pvalue, rel=1e-10)
    assert result.exact.method == "hypergeometric"


@pytest.mark.parametrize("side", SIDES)
def test_within_strata_only_labels_of_the_same_stratum_change_places(side):
    a, b, strata = list("aabba"), list("abbaa"), list("xxyyy")
    orders = [[*p, *q] for p in permutations(b[:2]) for q in permutations(b[2:])]
    n_agreeing = np.array([sum(x == y for x, y in zip(a, order, strict=True)) for order in orders])
    observed = sum(x == y for x, y in zip(a, b, strict=True))
    extreme = {"greater": n_agreeing >= observed, "less": n_agreeing <= observed,
               "two-sided": np.abs(n_agreeing - n_agreeing.mean()) >= abs(observed - n_agreeing.mean()) - 1e-9}[side]  # fmt: skip
    result = sigdask.independence(a, b, within=strata, alternative=side)
    assert result.n_strata == 2
    assert result.p_value == pytest.approx(extreme.mean(), rel=1e-12)


# -- random permutations --


@pytest.mark.slow
def test_samples_fit_the_exact_p():
    a, b = draw_labels(90, "abcd", seed=2)
    counts = Counts.from_labels(b, {"a": a, "shifted": np.roll(a, 1)}, groups={"part": np.arange(90) // 30})
    for side in SIDES:
        for within in (None, "part"):
            results = independence_all(
                counts, metrics=["accuracy", "f1[a]", "mcc", "micro-f1(labels=a+b)"], method="both", trials=20_000,
                alternative=side, within=within, cluster="none",
            )  # fmt: skip
            assert len(results) == 8
            for result in results:
                assert result.method == "approximate"
                assert result.p_value == (result.n_extreme + 1) / (result.n_trials + 1)
                assert compute_fit_p(result.n_extreme, result.n_trials, result.exact.p_lo) > 1e-4
                assert {check.verdict for check in result.checks} == {"agrees"}


def build_label_panel(counts, metrics, seed=0, within=None):
    panel, all_labels = build_panel(counts, seed, within), counts.fields.labels
    bound = [find_metric(m, counts).bind(counts) for m in metrics]
    labels = [count_labels(panel, s, len(all_labels)) for s in range(counts.n_systems)]
    scores = tuple(tuple(score_labels(m, all_labels, *own).agreeing for m in bound) for own in labels)
    return replace(panel, scores=scores)


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.slow
def test_counts_are_the_same_in_any_partition(blocks):
    a, b = draw_labels(200, "abcd", seed=9)
    panel = build_label_panel(Counts.from_labels(b, {"a": a, "b": np.roll(a, 3)}), ["accuracy", "macro-f1"])
    [whole] = count_jobs([Job(panel, 20_000)], cluster="none")
    [threads] = count_jobs([Job(panel, 20_000)], cluster="threads", blocks_per_task=blocks)
    summed = panel.tally(run=0, first=0, n_trials=7_777) + panel.tally(run=0, first=7_777, n_trials=12_223)
    assert np.array_equal(whole.counts, threads.counts)
    assert np.array_equal(whole.counts, summed.counts)


@pytest.mark.slow
def test_another_labelling_metric_or_order_of_the_rows_changes_no_count():
    a, b = draw_labels(80, seed=11)
    ids = np.array([f"item {k}" for k in range(80)])
    alone = build_label_panel(Counts.from_labels(b, {"a": a}, ids=ids.tolist()), ["accuracy"])
    order = build_rng(1).permutation(80)
    both = Counts.from_labels(b[order], {"z": np.roll(a, 1)[order], "a": a[order]}, ids=ids[order].tolist())
    together = build_label_panel(both, ["macro-f1", "accuracy"])
    tally_alone, tally_together = (panel.tally(run=0, first=100, n_trials=3_000) for panel in (alone, together))
    assert np.array_equal(tally_alone.counts[0, 0], tally_together.counts[1, 1])
    assert alone.compute_digests()[0, 0] == together.select([1], [1]).compute_digests()[0, 0]


# -- asked and answered --


def test_what_cannot_be_tested_is_refused():
    labels = Counts.from_labels(list("ab"), {"a": list("ab")})
    with pytest.raises(InputError, match="one label per item"):
        independence_all(Counts.from_scores({"a": [1, 2], "b": [2, 1]}))
    with pytest.raises(InputError, match="metrics that sum counts of labels"):
        independence_all(labels, metrics=[sigdask.metric(lambda outputs, gold: 0.0, of="outputs")])
    a, b = draw_labels(600, "abcdefgh")
    with pytest.raises(InputError, match="too many arrangements for an exact p"):
        sigdask.independence(a, b, metric="macro-f1", method="exact")
    with pytest.raises(InputError, match="no column 'part'"):
        independence_all(labels, within="part")
    with pytest.raises(InputError, match="must be one of two-sided, greater, less"):
        sigdask.independence(list("ab"), list("ab"), alternative="more")


def draw_labellings(n=30, seed=2):
    rng = build_rng(seed)
    gold = rng.choice([*"ab"], n)
    agree = [np.where(rng.random(n) < share, gold, rng.choice([*"ab"], n)) for share in (0.6, 0.35, 0.1)]
    return Counts.from_labels(gold, dict(zip(("one", "two", "three"), agree, strict=True)))


@pytest.mark.parametrize(("adjust", "by"), [(None, "holm"), ("holm", "holm"), ("bh", "bh")])
def test_p_of_several_labellings_is_adjusted_by_default(adjust, by):
    """BH against SciPy's; Holm's by its definition: the k-th smallest of m times m - k + 1, never falling."""
    options = {} if adjust is None else {"adjust": adjust}
    results = independence_all(draw_labellings(), metrics=["accuracy", "kappa"], **options)
    p = np.array([result.p_value for result in results])
    if by == "holm":
        order = np.argsort(p)
        expected = np.empty(len(p))
        expected[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    else:
        expected = stats.false_discovery_control(p)
    assert [result.p_adjusted for result in results] == pytest.approx(expected.tolist())
    assert [result.verdict(0.05) for result in results] == [
        "significant" if x <= 0.05 else "not significant" for x in expected
    ]
    assert results.to_dict()["adjust"] == by


def test_p_of_one_labelling_is_not_adjusted_by_default_nor_where_that_is_not_wanted():
    counts = draw_labellings()
    plain = independence_all(counts, adjust="none")
    assert {result.p_adjusted for result in plain} == {None}
    result = sigdask.independence(["a", "b"] * 5, ["a", "b"] * 5)
    assert (result.p_adjusted, result.verdict(0.05)) == (None, "significant")
    with pytest.raises(InputError, match="adjust"):
        independence_all(counts, adjust="max-t")
