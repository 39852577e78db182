"""Tests of swap standard deviations and of tests of non-inferiority: right on average, and valid."""

import numpy as np
import pytest
from gate_helpers import gather
from scipy import stats

from sigdask.analysis.comparison.margins import shift_scores, split_mean
from sigdask.analysis.comparison.pairs import CompareSpec, list_comparisons
from sigdask.api import compare_all
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.metrics import black_box, find_metric, metric
from sigdask.nightly.gate.rules import NonInferior, get_key
from sigdask.randomization.panels import scored_sums as deviations


def list_panels(counts, *names):
    c = list_comparisons(counts, CompareSpec(names, [counts.systems[:2]], method="randomization"))
    return [(c.panels[c.panel[k]], c.row[k], c.column[k]) for k in range(len(c))]


def compute_deviation(counts, name):
    panel, row, column = list_panels(counts, name)[0]
    return panel.estimate_swap_deviations()[row, column]


def draw_responses(rng, n=300):
    gold = rng.random(n) < 0.4
    predictions = {s: np.where(gold, rng.random(n) < 0.7, rng.random(n) < 0.2) for s in "ab"}
    return Counts.from_responses(gold, predictions, ids=[f"i{k:04}" for k in range(n)])


def test_the_spread_of_a_mean_is_the_root_of_its_squared_differences():
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 100, (2, 50)) / 100
    counts = Counts.from_scores({"a": a, "b": b})
    assert compute_deviation(counts, "mean") == pytest.approx(np.sqrt(((a - b) ** 2).sum()) / 50, rel=1e-12)
    by_unit = Counts.from_scores({"a": a, "b": b}, groups={"doc": [f"d{k // 5}" for k in range(50)]}).with_unit("doc")
    sums = (a - b).reshape(10, 5).sum(axis=1)
    assert compute_deviation(by_unit, "mean") == pytest.approx(np.sqrt((sums**2).sum()) / 50, rel=1e-12)


def test_identical_systems_have_no_spread():
    counts = Counts.from_labels(list("xyx"), {"a": list("xyy"), "b": list("xyy")})
    assert compute_deviation(counts, "accuracy") == 0
    assert compute_deviation(counts, "macro-f1") == 0
    result = compare_all(counts, metrics=["macro-f1"], margin=0.5)[0]
    assert (result.margin.p_not_worse, result.margin.p_not_better) == (2**-3, 2**-3)  # of three units


def test_recall_shifts_by_its_own_denominator_and_f1_not_at_all():
    counts = draw_responses(np.random.default_rng(4))
    data = shift_scores(counts, find_metric("recall").bind(counts), ["b"], {"a": "shifted"}, 0.1)
    gold = counts.field("gold")[:, 0]
    assert np.allclose(data.field("score")[:, 1], counts.field("tp")[:, 0] + 0.1 * gold)
    assert (data.field("items")[:, 0] == gold).all()
    assert split_mean(counts, find_metric("f1").bind(counts)) is None


def compute_margin_result(counts, rule, metric, **options):
    results = compare_all(
        counts, metrics=[metric], baseline="base", trials=999, second_run=False, method="randomization"
    )
    evidence = gather(counts, results, [rule], baseline="base", trials=999, **options)
    return evidence.margin_results[rule, get_key(results[0])]


@pytest.mark.slow
def test_a_shift_to_exact_symmetry_is_an_exact_test():
    """Every arrangement of d about -margin in turn: #{p <= k / 2^n} <= k (the orbit test)."""
    margin, sizes = 0.5, [0.1, 0.2, 0.4, 0.7, 0.8, 1.6]
    rule, n = NonInferior(margin, 0.05), len([0.1, 0.2, 0.4, 0.7, 0.8, 1.6])
    p_values = []
    for arrangement in range(2**n):
        signs = [1 if arrangement >> k & 1 else -1 for k in range(n)]
        base = np.full(n, 5.0)
        counts = Counts.from_scores(
            {"new": base - margin + np.round([s * d for s, d in zip(signs, sizes, strict=True)], 1), "base": base}
        )
        results = compare_all(counts, metrics=["mean"], baseline="base", second_run=False)
        p_values.append(
            gather(counts, results, [rule], baseline="base").margin_results[rule, get_key(results[0])].p_value
        )
    for k in range(1, 2**n + 1):
        assert sum(p <= k / 2**n for p in p_values) <= k


def test_replicates_are_shifted_by_the_margin_of_their_mean():
    rng = np.random.default_rng(10)
    base = np.round(rng.normal(0, 1, (3, 60)), 2)
    new = np.round(base + rng.normal(0, 0.1, (3, 60)), 2)
    parts = [Counts.from_scores({"new": n, "base": b}) for n, b in zip(new, base, strict=True)]
    for apart in (False, True):
        counts = Counts.of_replicates(parts, apart=apart)
        by_margin = {margin: compute_margin_result(counts, NonInferior(margin, 0.05), "mean") for margin in (0.01, 0.3)}
        assert [f.method for f in by_margin.values()] == ["shifted shuffle"] * 2
        assert by_margin[0.3].p_value <= 0.05
        assert by_margin[0.3].p_value < by_margin[0.01].p_value


def test_a_set_metric_spreads_like_the_black_box_it_copies():
    def type_f1(outputs, gold):
        output_terms, gold_terms = set().union(*outputs), set().union(*gold)
        return 2 * len(output_terms & gold_terms) / (len(output_terms) + len(gold_terms))

    rng = np.random.default_rng(11)
    gold, *columns = (
        to_object_array([frozenset(f"t{t}" for t in rng.integers(0, 60, rng.poisson(2))) for _ in range(80)])
        for _ in range(3)
    )
    outputs = Outputs(tuple(columns), gold)
    counts = Counts(("base", "new"), {"items": np.ones((80, 1), np.int8)}, 80, outputs=outputs)
    panel, row, column = list_panels(counts, black_box(type_f1))[0]
    assert compute_deviation(counts, "type-f1") == pytest.approx(
        panel.estimate_swap_deviations()[row, column], rel=0.15
    )
    assert compute_margin_result(counts, NonInferior(0.5, 0.05), "type-f1").method == "normal approximation"


@pytest.mark.slow
def test_studentised_ties_between_pairs_count_under_a_formula_as_under_the_mean():
    ratio, rng = metric(lambda score, items: score / items), np.random.default_rng(3)
    for _ in range(12):
        counts = Counts.from_scores({name: rng.integers(0, 2, 7) for name in "abcd"})
        by_mean, by_ratio = (
            [r.p_adjusted for r in compare_all(counts, metrics=[m], adjust="max-t")] for m in ("mean", ratio)
        )
        assert by_ratio == by_mean


@pytest.mark.parametrize("values", ["bits", "decimals", "large"])
def test_many_pairs_have_the_deviations_and_the_skewness_of_each_alone(values):
    rng = np.random.default_rng(8)
    x = {"bits": rng.random((300, 9)) < 0.4, "decimals": np.round(rng.lognormal(size=(300, 9)), 3) + 100,
         "large": rng.integers(0, 2**40, (300, 9))}[values]  # fmt: skip
    counts = Counts.from_scores({f"s{k}": column.tolist() for k, column in enumerate(x.astype(float).T)})
    pairs = [(f"s{i}", f"s{j}") for i in range(9) for j in range(i)]
    [panel] = list_comparisons(counts, CompareSpec(["mean"], pairs)).panels
    alone = [deviations.compute_swap_deviations(panel, 0, [row])[0] for row in range(36)]
    assert (
        deviations.compute_swap_deviations(panel, 0).tolist() == alone
    )  # to the last bit: maxima are compared by them
    expected = [stats.skew(x[:, i].astype(float) - x[:, j]) for i in range(9) for j in range(i)]
    assert deviations.compute_skewness(panel, 0) == pytest.approx(expected, rel=1e-8)
    assert deviations.compute_skewness(panel, 0)[:3] == pytest.approx(
        [deviations.compute_skewness(panel, 0, [row])[0] for row in range(3)], rel=1e-8
    )
