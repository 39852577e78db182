"""Tests of compare and compare_all: invariant counts, units, subsets, gaps, JSON."""

import gc
import sys
import weakref

import numpy as np
import pytest
from builders import build_rng

from sigdask.api import compare, compare_all
from sigdask.counts import Counts, Outputs
from sigdask.counts.fields import to_object_array
from sigdask.errors import InputError

RNG = build_rng(0)
IDS = [f"i{k}" for k in range(120)]
SCORES = {name: RNG.integers(0, 5, 120) / 4 for name in "abcd"}
DOCUMENTS = [f"d{k % 30}" for k in range(120)]


def build_counts(names="abc", order=None, **options):
    order = range(120) if order is None else order
    return Counts.from_scores(
        {n: SCORES[n][list(order)] for n in names},
        ids=[IDS[k] for k in order],
        groups={"document": [DOCUMENTS[k] for k in order]},
        **options,
    )


def index_extremes(results):
    return {(r.a, r.b, r.metric): (r.n_extreme, r.second_run.n_extreme) for r in results}


def test_item_order_system_order_and_further_systems_change_no_count():
    expected = index_extremes(compare_all(build_counts("abcd"), metrics=["mean"], trials=5000))
    reordered = build_counts("abc", order=RNG.permutation(120))
    shuffled = index_extremes(compare_all(reordered, metrics=["mean"], trials=5000))
    assert shuffled.items() <= expected.items()
    mirrored = index_extremes(compare_all(build_counts("cba"), metrics=["mean"], trials=5000))
    assert {tuple(sorted(k[:2])): v for k, v in mirrored.items()} == {k[:2]: v for k, v in shuffled.items()}


def test_a_further_metric_or_pair_changes_no_count(yeh):
    expected = index_extremes(compare_all(yeh, metrics=["f1"], trials=5000))
    more = index_extremes(compare_all(yeh, metrics=["recall", "f1", "f:beta=3"], trials=5000))
    assert expected.items() <= more.items()


def test_the_test_sets_name_and_the_seed_change_the_shuffles():
    named, renamed, reseeded = (
        index_extremes(compare_all(build_counts(name=name), metrics=["mean"], trials=5000, seed=seed))
        for name, seed in (("", 0), ("x", 0), ("", 1))
    )
    assert named != renamed
    assert named != reseeded


def test_subsets_are_compared_within():
    results = compare_all(build_counts("ab"), metrics=["mean"], by="document", trials=100)
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
    results = {(r.a, r.b): r for r in compare_all(data, metrics=["mean"], trials=5000, adjust="none")}
    [full] = compare_all(build_counts("ab"), metrics=["mean"], trials=5000, adjust="none")
    assert results["a", "b"] == full.replace(dependence=())
    assert results["a", "c"].n_items == 113
    assert results["a", "c"].score_a == pytest.approx(SCORES["a"][7:].mean(), rel=1e-12)


def test_a_pair_without_a_common_item_is_not_compared_and_named():
    data = Counts.from_scores({"a": [1, np.nan, 2], "b": [np.nan, 1, np.nan], "c": [1, 2, 3]}, missing="pairwise")
    results = compare_all(data, metrics=["mean"])
    assert {(r.a, r.b): r.n_items for r in results} == {("a", "c"): 2, ("b", "c"): 1}
    assert "not compared, because they have no item in common: a and b by mean" in results.warnings
    with pytest.raises(InputError, match="no two systems have an item in common"):
        compare_all(data, metrics=["mean"], pairs=[("a", "b")])


def test_gaps_in_groups_stay_at_the_addresses_of_the_whole_test_set():
    # a pair with gaps equals the same pair with these items taken as ties by hand
    gappy = {"a": SCORES["a"].copy(), "b": SCORES["b"]}
    gappy["a"][3:9] = np.nan
    tied = {"a": np.where(np.isnan(gappy["a"]), SCORES["b"], gappy["a"]), "b": SCORES["b"]}
    one, other = (
        compare_all(Counts.from_scores(s, ids=IDS, missing="pairwise"), metrics=["mean"], trials=5000)[0]
        for s in (gappy, tied)
    )
    assert (one.n_extreme, one.n_discordant) == (other.n_extreme, other.n_discordant)
    assert (one.n_items, other.n_items) == (114, 120)


def test_r12_of_items_of_different_sizes_is_not_that_of_their_sizes():
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 40, 2000)
    n_correct = rng.binomial(sizes[:, None], [0.9, 0.8])  # two systems that have nothing in common
    counts = Counts(("a", "b"), {"correct": n_correct, "items": sizes[:, None]}, len(sizes))
    [r] = compare_all(counts, metrics=["accuracy"], trials=64)
    assert np.corrcoef(n_correct.T)[0, 1] > 0.9
    assert abs(r.r12) < 0.1


def test_units_of_one_item_each_are_the_items_by_another_name():
    r = compare(SCORES["a"], SCORES["b"], units=IDS, trials=5000)
    plain = compare(SCORES["a"], SCORES["b"], ids=IDS, trials=5000)
    assert (r.unit, r.n_extreme, r.n_units) == ("unit", plain.n_extreme, 120)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_columns_of_a_frame_are_plain_in_every_library(library, yeh, tmp_path):
    results = compare_all(yeh, trials=99, tests="t,sign", by=None)
    frame = results.to_frame(library)
    if library == "polars":
        assert not {str(kind) for kind in frame.dtypes} & {"Object"}
        for ending in ("parquet", "csv", "json"):
            getattr(frame, f"write_{ending}")(tmp_path / f"results.{ending}")
        assert frame["p_value"].to_list() == [r.p_value for r in results]
        frame = frame.to_arrow()
    assert {str(field.type) for field in frame.schema} <= {"string", "large_string", "double", "int64", "bool", "null"}
    assert frame.column("metric").to_pylist() == [r.metric for r in results]


def test_a_data_frame_library_that_is_not_there_is_named(yeh, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as where it is not installed
    with pytest.raises(InputError, match="pip install pandas"):
        compare_all(yeh, metrics=["f1"], trials=10).to_frame()
    with pytest.raises(InputError, match="no_such_library.*expected pandas, polars or pyarrow"):
        compare_all(yeh, metrics=["f1"], trials=10).to_frame("no_such_library")


def draw_terms(rng, n):
    return to_object_array([frozenset(rng.choice(50, 5).astype(str)) for _ in range(n)])


def test_sets_of_terms_are_kept_no_longer_than_their_results():
    rng = np.random.default_rng(1)
    outputs = Outputs((draw_terms(rng, 40), draw_terms(rng, 40)), draw_terms(rng, 40))
    counts = Counts(systems=("a", "b"), fields={}, n_items=40, outputs=outputs, suggested=("type-f1",))
    reference = weakref.ref(outputs)
    results = compare_all(counts, trials=500, cluster="none")
    assert results[0].n_trials == 500
    del counts, outputs, results  # which hold the data for their tables of units
    gc.collect()
    assert reference() is None
