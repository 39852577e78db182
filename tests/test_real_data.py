"""Tests of real systems against published p-values and official scores."""

import json

import numpy as np
import pytest

from sigdask.api import compare, compare_all
from sigdask.formats import Options, parse_maps, read

HANS_FILES = ("bert_preds.txt", "decomp_attn_heur_preds.txt", "esim_heur_preds.txt", "spinn_preds_heur.txt")


@pytest.mark.parametrize(("alternative", "published"), [("two-sided", 0.001188), ("greater", 0.000603)])
def test_two_trec_runs_have_the_published_permutation_p(shared_data, alternative, published):
    # github.com/julian-urbano/sigir2019-statistical, README: columns 125 and 126, 1e6 permutations
    counts = read(shared_data / "matrix_trec_urbano" / "adhoc8_ap.csv")
    score = counts.field("score")
    a, b = score[:, 124], score[:, 125]
    if alternative == "greater" and a.mean() < b.mean():
        a, b = b, a
    r = compare(a, b, alternative=alternative)
    assert abs(r.p_value - published) < 5 * np.sqrt(2 * published / 1e6)


@pytest.mark.parametrize("pair", [("ngram", "fluency"), ("fluency", "reversible")])
def test_fluency_models_have_the_published_tails(shared_data, pair):
    # github.com/danieldk/approx-rand-test, README: one tail, (r + 1) / (10,000 + 1)
    folder = shared_data / "known_results_ar"
    published = json.loads((folder / "reference_scores.json").read_text())["published"][" vs ".join(pair)]
    counts = read(*(f"{name}={folder / name}.scores" for name in pair))
    side = "greater" if published["test_statistic"] > 0 else "less"
    [r] = compare_all(counts, metrics=["mean"], alternative=side, interval="none")
    assert r.difference == pytest.approx(published["test_statistic"], rel=1e-12)
    p = published["tail_p"]
    assert abs(r.p_value - p) < 5 * np.sqrt(p / 1e4) + 1e-4


@pytest.fixture(scope="module")
def hans(shared_data):
    folder = shared_data / "class_hans"
    options = Options(label_map=parse_maps(["non-entailment=neutral,contradiction"]), groups=("subcase", "heuristic"))
    return read(*(folder / f for f in HANS_FILES), gold=folder / "gold.csv", options=options)


@pytest.mark.slow
def test_hans_has_its_official_scores_under_all_six_pairs(shared_data, hans):
    official = json.loads((shared_data / "class_hans" / "reference_scores.json").read_text())["scores"]
    results = compare_all(hans, metrics=["accuracy", "macro-f1", "f1[non-entailment]"], trials=2**13, interval="none")
    assert len(results) == 18
    for r in results:
        key = {"accuracy": "accuracy", "macro-f1": "macro_f1", "f1[non-entailment]": "f1_non-entailment"}[r.metric]
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            assert round(score, 6) == official[f"{system}.txt"][key]
        assert not r.disagreements()


@pytest.mark.slow
def test_hans_by_heuristic_has_its_official_accuracies(shared_data, hans):
    official = json.loads((shared_data / "class_hans" / "reference_scores.json").read_text())["scores"]
    metrics = {f"recall[{label}]": label for label in ("entailment", "non-entailment")}  # accuracy on items of a label
    checked = set()
    for r in compare_all(hans, metrics=[*metrics, "accuracy"], by="heuristic", trials=64):
        for system, score in ((r.a, r.score_a), (r.b, r.score_b)):
            by_heuristic = official[f"{system}.txt"]["by_heuristic"]
            if r.metric == "accuracy":
                accuracies = [by_heuristic[f"{r.subset['value']}/{label}"] for label in metrics.values()]
                assert score == pytest.approx(sum(accuracies) / 2, abs=1e-6)
                continue
            key = f"{r.subset['value']}/{metrics[r.metric]}"
            assert round(score, 4) == by_heuristic[key]
            checked.add((system, key))
    assert len(checked) == sum(len(scores["by_heuristic"]) for scores in official.values())


def test_the_means_of_all_trec_matrices_are_the_official_ones(shared_data):
    folder = shared_data / "matrix_trec_urbano"
    for name, official in json.loads((folder / "reference_scores.json").read_text())["sets"].items():
        counts = read(folder / f"{name}.csv")
        means = dict(zip(counts.systems, counts.field("score").mean(0), strict=True))
        for system, mean in official["means"].items():
            assert means[system] == pytest.approx(mean, abs=1e-6)
