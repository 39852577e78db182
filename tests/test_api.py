"""compare and compare_all: what changes no count, units, subsets, gaps, JSON."""

import json

import numpy as np
import pandas as pd
import pytest
from panel_of import rng_of

import sigdask
from sigdask.api import as_counts, compare, compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError

RNG = rng_of(0)
IDS = [f"i{k}" for k in range(120)]
SCORES = {name: RNG.integers(0, 5, 120) / 4 for name in "abcd"}
DOCUMENTS = [f"d{k % 30}" for k in range(120)]

# DESIGN: keys of the JSON that stay
TOP_KEYS = {"sigdask", "scheme", "seed", "alpha", "warnings", "results"}
KEYS = {
    "test_set", "unit", "a", "b", "metric", "higher_is_better", "score_a", "score_b", "difference", "alternative",
    "n_items", "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_interval", "p_adjusted",
    "r12", "second_run", "exact", "checks", "warnings",
}  # fmt: skip


def counts(names="abc", order=None, **more):
    order = range(120) if order is None else order
    return Counts.from_scores(
        {n: SCORES[n][list(order)] for n in names},
        ids=[IDS[k] for k in order],
        groups={"document": [DOCUMENTS[k] for k in order]},
        **more,
    )


def extremes(results):
    return {(r.a, r.b, r.metric): (r.n_extreme, r.second_run.n_extreme) for r in results}


def test_item_order_system_order_and_further_systems_change_no_count():
    whole = extremes(compare_all(counts("abcd"), metrics=["mean"], trials=5000))
    shuffled = extremes(compare_all(counts("abc", order=RNG.permutation(120)), metrics=["mean"], trials=5000))
    assert shuffled.items() <= whole.items()
    mirrored = extremes(compare_all(counts("cba"), metrics=["mean"], trials=5000))
    assert {tuple(sorted(k[:2])): v for k, v in mirrored.items()} == {k[:2]: v for k, v in shuffled.items()}


def test_a_further_metric_or_pair_changes_no_count(yeh):
    alone = extremes(compare_all(yeh, metrics=["f1"], trials=5000))
    assert alone.items() <= extremes(compare_all(yeh, metrics=["recall", "f1", "f:beta=3"], trials=5000)).items()


def test_the_test_sets_name_and_the_seed_change_the_shuffles():
    one, two, three = (
        extremes(compare_all(counts(name=name), metrics=["mean"], trials=5000, seed=seed))
        for name, seed in (("", 0), ("x", 0), ("", 1))
    )
    assert one != two
    assert one != three


def test_documents_are_exchanged_as_wholes():
    [r] = compare_all(counts("ab"), metrics=["mean"], unit="document", trials=5000)
    sums = np.zeros((30, 2))
    for k, document in enumerate(DOCUMENTS):
        sums[int(document[1:])] += SCORES["a"][k], SCORES["b"][k]
    flat = compare(sums[:, 0], sums[:, 1], trials=5000)
    assert (r.n_units, r.n_items, r.n_discordant) == (30, 120, flat.n_discordant)
    sd = np.sqrt(2 * flat.p_value * (1 - flat.p_value) / 5000)
    assert abs(r.p_value - flat.p_value) < 5 * sd
    assert {c.name: c.verdict for c in r.checks}["sign test"] == "not applicable"


def test_subsets_are_compared_within():
    results = compare_all(counts("ab"), metrics=["mean"], by="document", trials=100)
    assert len(results) == 30
    assert results[0].subset == {"column": "document", "value": "d0"}
    assert results[0].n_items == 4
    assert results[0].score_a == SCORES["a"][::30].mean()


def test_a_pair_with_gaps_is_compared_on_its_own_items_and_no_other_pair_changes():
    gappy = {**{n: SCORES[n] for n in "ab"}, "c": SCORES["c"].copy()}
    gappy["c"][:7] = np.nan
    with pytest.raises(InputError, match="'c' has no score for item 'i0'"):
        Counts.from_scores(gappy, ids=IDS)
    data = Counts.from_scores(gappy, ids=IDS, missing="pairwise")
    results = {(r.a, r.b): r for r in compare_all(data, metrics=["mean"], trials=5000)}
    full = {(r.a, r.b): r for r in compare_all(counts("abc"), metrics=["mean"], trials=5000)}
    assert results["a", "b"] == full["a", "b"]
    assert results["a", "c"].n_items == 113
    assert results["a", "c"].score_a == pytest.approx(SCORES["a"][7:].mean(), rel=1e-12)


def test_a_baseline_is_b():
    results = compare_all(counts("abc"), metrics=["mean"], baseline="a", trials=10)
    assert [(r.a, r.b) for r in results] == [("b", "a"), ("c", "a")]


def test_the_json_has_the_keys_that_stay(yeh):
    results = compare_all(yeh, metrics=["recall"], trials=1000)
    written = json.loads(results.to_json())
    assert set(written) == TOP_KEYS
    row = written["results"][0]
    assert set(row) >= KEYS
    assert set(row["second_run"]) == {"n_trials", "n_extreme", "p_value", "agreement_p"}
    assert set(row["checks"][0]) == {"name", "verdict", "p_value", "detail"}
    assert set(compare([1, 2], [0, 0]).exact.__slots__) == {"p_lo", "p_hi", "method", "guarantee"}


def test_results_become_a_data_frame(yeh):
    frame = compare_all(yeh, metrics=["recall", "f1"], trials=1000).to_frame()
    assert list(frame["metric"]) == ["recall", "f1"]


def test_data_frames_of_scores_are_taken():
    assert as_counts(pd.DataFrame(SCORES)).systems == tuple("abcd")


def test_undecided_is_said_with_the_trials_that_would_decide():
    rng = rng_of(3)
    for shift in np.linspace(0.1, 0.4, 30):
        a = np.round(rng.normal(shift, 1, 60), 2)
        r = compare(a, np.zeros(60), trials=300)
        if r.is_undecided(0.05):
            assert any("undecided at 0.05" in w and "trials would decide" in w for w in r.warnings)
            return
    pytest.fail("no shift was undecided")


def test_0_over_0_scores_0_with_a_note():
    r = compare(["A", "A"], ["B", "B"], gold=["A", "B"], metric="precision[B]")
    assert r.score_a == 0.0
    assert "A: 0/0 scored 0" in r.warnings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials = 0: must be at least 1"),
        ({"trials": -5}, "trials = -5"),
        ({"alpha": 1.5}, "alpha = 1.5"),
        ({"seed": -1}, "seed = -1"),
        ({"alternative": "bigger"}, "alternative = 'bigger'"),
        ({"method": "magic"}, "method = 'magic'"),
        ({"unit": "paragraph"}, "no column 'paragraph'.*document"),
        ({"by": "paragraph"}, "no column 'paragraph'"),
        ({"baseline": "z"}, "no system 'z'"),
        ({"pairs": [("a", "z")]}, "no system 'z'"),
        ({"cluster": "nowhere"}, "expected auto, none"),
        ({"cluster": "local", "workers": 0}, "workers = 0"),
        ({"metrics": []}, "no metric"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        compare_all(counts(), **{"metrics": ["mean"], **options})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Counts.from_scores({"a": [1, 2]}), "two systems or more"),
        (lambda: Counts.from_scores({"a": [1], "b": [1, 2]}), "a: 1, b: 2"),
        (lambda: Counts.from_scores({"a": [1, np.inf], "b": [1, 2]}), "item 1 is infinite"),
        (lambda: Counts.from_scores({"a": [1], "b": [1]}, ids=["x", "y"]), "2 ids for 1 items"),
        (lambda: Counts.from_scores({"a": [1, 2], "b": [1, 2]}, ids=["x", "x"]), "'x' occurs twice"),
        (lambda: Counts.from_scores({"a": ["p", "q"], "b": [1, 2]}), "scores of 'a'"),
        (lambda: Counts.from_scores({"a": [], "b": []}), "no items"),
    ],
)
def test_bad_data_are_named(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_public_names_are_there():
    for name in sigdask.__all__:
        assert getattr(sigdask, name) is not None
    with pytest.raises(AttributeError):
        _ = sigdask.nothing
