"""Margins of comparisons: against matched proportions and the gate, which have more oracles, and Holm's rule."""

import json

import numpy as np
import pytest
from builders import build_rng

from sigdask import Counts, compare, compare_all, load_results
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.nightly.gate.judge import gather_evidence
from sigdask.nightly.gate.rules import NonInferior
from sigdask.report.screen import render
from sigdask.statistics.classical import MatchedProportions


def test_0_1_scores_take_the_score_test_in_both_directions():
    wins, losses, n, margin = 12, 17, 300, 0.05
    b = np.r_[np.zeros(wins), np.ones(n - wins)]
    a = np.r_[np.ones(n - losses), np.zeros(losses)]
    result = compare(a, b, margin=margin)
    tests = MatchedProportions(wins, losses, n), MatchedProportions(losses, wins, n)
    expected = [test.compute_p_value(margin, 0.05) for test in tests]
    assert [result.margin.p_not_worse, result.margin.p_not_better] == pytest.approx(expected, rel=1e-12)
    assert result.margin.p_equivalent == max(result.margin.p_not_worse, result.margin.p_not_better)
    assert (result.margin.verdicts, result.margin.p_adjusted) == (("not worse", "not better", "equivalent"), None)


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("accuracy", "item"), ("accuracy", "g"), ("macro-f1", "item"), ("mean", "g"), ("mean:better=lower", "g")],
)
def test_p_is_that_of_the_gate(metric, unit):
    rng, groups = build_rng(6), {"g": [f"g{k // 10}" for k in range(260)]}
    gold = rng.integers(0, 3, 260)
    systems = {s: np.where(rng.random(260) < 0.3, (gold + 1) % 3, gold) for s in "abc"}
    counts = Counts.from_labels(gold, systems, groups=groups)
    if metric.startswith("mean"):
        counts = Counts.from_scores(systems, groups=groups)
    counts = counts.with_unit(unit)
    results = compare_all(counts, metrics=[metric], baseline="c", unit=unit, margin=0.04, trials=999, interval="none")
    rule = NonInferior(0.04, 0.05, "c")
    of_gate = gather_evidence(counts, results.table, [rule], CompareSpec(["mean"], trials=999)).margin_results
    p_values = [of_gate[rule, ("", None, r.a, r.b, metric)].p_value for r in results]
    assert p_values == [r.margin.p_not_worse for r in results]


def test_a_family_is_adjusted_by_holm():
    rng = build_rng(7)
    scores = {s: rng.integers(0, 30, 40) / 4 for s in "abcd"}
    adjusted, plain = (compare_all(scores, margin=1.5, adjust=how, trials=999) for how in (None, "none"))
    assert all(r.margin.p_adjusted is None for r in plain)
    for k, name in enumerate(("p_not_worse", "p_not_better", "p_equivalent")):
        p = np.array([getattr(r.margin, name) for r in adjusted])
        assert p.tolist() == [getattr(r.margin, name) for r in plain]
        steps = np.minimum(np.maximum.accumulate(np.sort(p) * np.arange(6, 0, -1)), 1)
        got = [r.margin.p_adjusted[k] for r in adjusted]
        assert np.sort(got).tolist() == pytest.approx(steps.tolist())
        claim = name.removeprefix("p_").replace("_", " ")
        assert [claim in r.margin.verdicts for r in adjusted] == [value <= 0.05 for value in got]


def test_sentence_table_and_file_have_it(tmp_path):
    a, b = np.r_[np.zeros(4), np.ones(396)], np.r_[np.ones(370), np.zeros(30)]
    results = compare_all({"a": a, "b": b}, gold=np.ones(400), metrics=["accuracy"], margin=0.01)
    text = render(results, verbose=True)
    p = f"{results[0].margin.p_not_worse:.3g}"
    assert "Margin 0.01 on accuracy: a against b is not worse." in text
    assert "within margin" in text
    assert f"margin 0.01: a not worse p = {p}, not better p = 1, equivalent p = 1 (score test)" in text
    path = tmp_path / "results.json"
    results.write(path)
    assert json.loads(path.read_text())["results"][0]["margin"]["verdicts"] == ["not worse"]
    assert load_results(path) == results


def test_a_claim_from_few_units_is_called_doubtful_where_it_stands():
    a = np.array([1.5, 2, 3, 4.2, 1, 2])
    results = compare_all({"a": a, "b": a + np.array([-0.5, 0.5, 0, 0.2, 0, 0])}, margin=3)
    assert results[0].margin.is_doubtful
    assert "is equivalent (p may be too small)" in render(results)
    sure = compare_all({"a": np.tile(a, 40), "b": np.tile(a[::-1], 40)}, margin=3)
    assert not sure[0].margin.is_doubtful
