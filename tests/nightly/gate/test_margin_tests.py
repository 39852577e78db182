"""Tests of margins: which test is used; verdict and p-value agree."""

import math
import re

import numpy as np
import pytest
from conftest import ROOT
from gate_helpers import gather, judge
from scipy import stats

from sigdask.analysis.comparison.margins import MAX_SKEWNESS, MarginResult
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate.rules import Evidence, NonInferior, get_key
from sigdask.statistics.classical import MatchedProportions, compute_score, estimate_design_effect


def compare_with_baseline(counts, metric="mean", **options):
    return list(
        compare_all(counts, metrics=[metric], baseline="base", trials=999, second_run=False, cluster="none", **options)
    )


def compute_margin_test(counts, rule, metric="mean", **options):
    results = compare_with_baseline(counts, metric, **{k: v for k, v in options.items() if k == "by"})
    return gather(counts, results, [rule], baseline="base", trials=999, **options).margin_results[
        rule, get_key(results[0])
    ]


def build_zero_one(wins, losses, n, value=1.0):
    """Return item scores of a system and the baseline, with so many wins and losses."""
    base, new = np.zeros(n), np.zeros(n)
    base[: n // 2 + losses] = value
    new[: n // 2] = value
    new[n - wins :] = value
    return new, base


def refuse_to_count(jobs):
    raise AssertionError("0/1 scores need no trial")


def test_up_to_200_items_the_exact_test_is_taken():
    counts = [Counts.from_scores(dict(zip(("new", "base"), build_zero_one(1, 3, n), strict=True))) for n in (200, 201)]
    methods = [compute_margin_test(c, NonInferior(0.05, 0.05), count=refuse_to_count).method for c in counts]
    assert methods == ["unconditional exact test", "score test"]


def test_what_is_0_1_is_seen_by_the_values_and_not_by_the_metric():
    rule, n = NonInferior(0.05, 0.05), 240
    new, base = build_zero_one(3, 8, n)
    expected_p = compute_margin_test(Counts.from_scores({"new": new, "base": base}), rule).p_value
    gold = np.array(["x"] * n)
    labels = Counts.from_labels(gold, {"new": np.where(new, "x", "y"), "base": np.where(base, "x", "y")})
    assert compute_margin_test(labels, rule, "accuracy").p_value == expected_p
    responses = Counts.from_responses(
        [True] * n + [False] * 60,
        {"new": [*new.astype(bool)] + [True] * 60, "base": [*base.astype(bool)] + [False] * 60},
    )
    assert compute_margin_test(responses, rule, "recall").p_value == expected_p
    errors = Counts.from_scores({"new": 1 - new, "base": 1 - base})
    assert compute_margin_test(errors, rule, "mean:better=lower").p_value == expected_p
    percent = Counts.from_scores({"new": 100 * new, "base": 100 * base})
    assert compute_margin_test(percent, NonInferior(5.0, 0.05)).p_value == pytest.approx(expected_p, rel=1e-12)
    gaps = Counts.from_scores({"new": [*new, math.nan], "base": [*base, 1.0]}, missing="pairwise")
    assert compute_margin_test(gaps, rule).p_value == expected_p
    halves = Counts.from_scores({"new": [*new, 0.5], "base": [*base, 1.0]})
    assert compute_margin_test(halves, rule).method.startswith("shifted shuffle")


@pytest.mark.parametrize(("value", "is_binary"), [(0.0, True), (1.0, True), (1000.5, False), (100.0, False)])
def test_one_constant_value_is_0_1_only_where_it_is_0_or_1(value, is_binary):
    counts = Counts.from_scores({"new": [value] * 40, "base": [value] * 40})
    method = compute_margin_test(counts, NonInferior(0.05, 0.05)).method
    assert method.startswith("unconditional exact test" if is_binary else "shifted shuffle")


@pytest.mark.parametrize("metric", ["accuracy", "f1[x]", "macro-f1"])
def test_a_system_that_did_not_change_is_not_worse_by_any_metric(metric):
    labels = np.array(["x", "y", "z"] * 80)
    counts = Counts.from_labels(labels, dict.fromkeys(("new", "base"), np.roll(labels, 80)))
    assert compute_margin_test(counts, NonInferior(0.05, 0.05), metric).p_value < 0.05


def test_subsets_are_looked_at_on_their_own():
    new, base = build_zero_one(3, 8, 240)
    scores = {"new": [*new, 0.3, 0.4, 0.5], "base": [*base, 0.2, 0.5, 0.1]}
    counts = Counts.from_scores(scores, groups={"kind": ["binary"] * 240 + ["graded"] * 3}, name="t")
    rule = NonInferior(0.05, 0.05)
    margin_tests = gather(
        counts, compare_with_baseline(counts, by="kind"), [rule], baseline="base", by="kind", trials=999
    ).margin_results
    methods = {key[1]: s.method.partition(",")[0] for (_, key), s in margin_tests.items()}
    assert methods == {"binary": "score test", "graded": "shifted shuffle"}


def test_larger_units_take_the_cluster_robust_test_and_say_so():
    rng = np.random.default_rng(1)
    bad = np.repeat(rng.random(80) < 0.3, 5)
    base = np.ones(400)
    new = np.where(bad & (rng.random(400) < 0.5), 0.0, 1.0)
    counts = Counts.from_scores({"new": new, "base": base}, groups={"document": [f"d{k // 5}" for k in range(400)]})
    rule = NonInferior(0.2, 0.05)
    by_item, by_document = (
        compute_margin_test(c, rule, count=refuse_to_count) for c in (counts, counts.with_unit("document"))
    )
    effect = estimate_design_effect(new - base, np.repeat(np.arange(80), 5))
    assert effect > 1.5
    z = float(compute_score(0, int((new == 0).sum()), 400, 0.2)) / math.sqrt(effect)
    assert by_document.p_value == pytest.approx(stats.t.sf(z, 79))
    assert by_document.p_value > by_item.p_value
    assert re.fullmatch(r"cluster-robust score test, 80 units, design effect \d\.\d+", by_document.method)


def test_p_of_f1_is_that_of_the_normal_approximation():
    rng = np.random.default_rng(5)
    gold = rng.random(400) < 0.5
    responses = {
        s: np.where(gold, rng.random(400) < r, rng.random(400) < 0.2) for s, r in (("new", 0.7), ("base", 0.75))
    }
    counts = Counts.from_responses(gold, responses)
    results = compare_with_baseline(counts, "f1")
    rule = NonInferior(0.3, 0.01)
    evidence = gather(counts, results, [rule], baseline="base", trials=999)
    [(_, margin_test)], [sd] = evidence.margin_results.items(), evidence.spreads.values()
    [r] = results
    gain = r.difference if r.b == "base" else -r.difference
    assert margin_test.p_value == pytest.approx(stats.norm.sf((gain + 0.3) / sd))


@pytest.mark.parametrize("better", ["", ":better=lower"])
def test_p_of_shuffles_is_that_of_all_means_of_subsets(better):
    """Enumerated: p at a margin is the share of subsets S of units with sum over S of (d + margin) at most 0."""
    rng = np.random.default_rng(6)
    base, d = rng.integers(0, 50, 12) / 10, rng.integers(-9, 12, 12) / 10
    counts = Counts.from_scores({"new": base + d, "base": base})
    inside = np.arange(2**12)[:, None] >> np.arange(12) & 1  # (subsets, units)

    def compute_p(margin):
        signed = -d if better else d
        return np.mean(inside @ (signed + margin) <= 1e-9)

    for margin in (0.3, 0.8, 1.5):
        margin_test = compute_margin_test(counts, NonInferior(margin, 0.05), f"mean{better}")
        assert margin_test.p_value == compute_p(margin)


def test_the_margin_that_an_equal_system_is_shown_within_has_its_power():
    """That of the normal approximation, inverted."""
    results = compare_with_baseline(Counts.from_scores({"new": [0.1, 0.4] * 20, "base": [0.2, 0.1] * 20}, name="t"))
    key = get_key(results[0])
    rule = NonInferior(1.0, 0.05)
    evidence = Evidence({"t": "base"}, {key: 0.5}, {(rule, key): MarginResult(0.01, "normal approximation")})
    detectable = judge([rule], results, evidence).rules[0].findings[0].detectable
    assert stats.norm.cdf(detectable / 0.5 - stats.norm.ppf(0.95)) == pytest.approx(0.8)
    rule = NonInferior(detectable, 0.05)
    evidence = Evidence({"t": "base"}, {key: 0.5}, {(rule, key): MarginResult(0.01, "normal approximation")})
    assert judge([rule], results, evidence, runs_per_year=10).rules[0].alarms_per_year == pytest.approx(2.0)


def test_means_of_few_units_that_differ_or_skewed_differences_are_doubted():
    rng = np.random.default_rng(8)
    base = np.round(rng.random(300), 3)
    few, skewed, plain = base.copy(), base.copy(), base + np.round(rng.normal(0, 0.1, 300), 3)
    few[:7] -= 0.5
    skewed[:30] -= np.round(rng.exponential(size=30) ** 2, 3)
    methods = [
        compute_margin_test(Counts.from_scores({"new": new, "base": base}), NonInferior(0.3, 0.05)).method
        for new in (few, skewed, plain)
    ]
    assert methods[0] == "shifted shuffle, from 7 discordant units: p may be too small"
    assert re.fullmatch(r"shifted shuffle, differences of skewness -\d+(\.\d+)?: p may be too small", methods[1])
    assert -stats.skew(skewed - base) / math.sqrt(300) > MAX_SKEWNESS
    assert methods[2] == "shifted shuffle"
    mirrored = Counts.from_scores({"new": base + (base - skewed), "base": base})
    assert compute_margin_test(mirrored, NonInferior(0.3, 0.05)).method == "shifted shuffle"  # rare gains make p larger


def test_the_documents_sizes_are_those_of_all_pairs_of_wins_and_losses():
    page = (ROOT / "benchmarks" / "results-error-rates.md").read_text()
    for wins, text in ((0.0, "wins 0 %"), (0.01, "wins 1 %")):
        [row] = [line for line in page.splitlines() if line.startswith(f"| 300 items, worse by 0.01, {text} ")]
        passing = [
            (w, x)
            for w in range(30)
            for x in range(30)
            if MatchedProportions(w, x, 300).compute_p_value(0.01, 0.05) <= 0.05
        ]
        cells = [[w, x, 300 - w - x] for w, x in passing]
        size = stats.multinomial.pmf(cells, 300, [wins, wins + 0.01, 0.99 - 2 * wins]).sum()
        assert f"| {size:.3f} |" in row, row
