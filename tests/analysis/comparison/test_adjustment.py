"""Tests of families through the public functions: oracles, scales, test sets, unchanged counts."""

import math

import numpy as np
import pandas as pd
import pytest
from builders import build_rng

import sigdask
from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.report.screen import render

METHODS = ["holm", "bh", "max-t", "tukey"]


def draw_many(n_items=60, n_systems=5, seed=2, **options):
    rng = build_rng(seed)
    effects = np.linspace(0, 1.2, n_systems)
    scores = {f"s{k}": np.round(rng.standard_normal(n_items) + effects[k], 1) for k in range(n_systems)}
    return Counts.from_scores(scores, **options)


@pytest.mark.parametrize("adjust", METHODS)
@pytest.mark.slow
def test_an_adjusted_p_is_never_below_p_and_raw_counts_do_not_change(adjust):
    plain = compare_all(draw_many(), metrics=["mean"], trials=2000, adjust="none")
    adjusted = compare_all(draw_many(), metrics=["mean"], trials=2000, adjust=adjust)
    assert all(r.p_adjusted is None for r in plain)
    assert all(r.p_adjusted >= r.p_value for r in adjusted)
    names = "p_adjusted p_adjusted_interval test_signature p_adjusted_by interval_simultaneous equal_scores verdict"
    adjusted_fields = dict.fromkeys(names.split()) | {"checks": (), "notes": ()}
    assert [r.replace(**adjusted_fields) for r in adjusted] == [r.replace(**adjusted_fields) for r in plain]
    assert adjusted.family.n_comparisons == 10


def test_a_family_counts_the_first_run_of_each_pair_as_the_pair_alone_does(tmp_path):
    rng = build_rng(8)
    real = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd")).mask(rng.random((90, 4)) < 0.05)
    labels = pd.DataFrame(rng.choice(list("xyz"), (90, 4)), columns=["gold", "a", "b", "c"])
    real.to_csv(tmp_path / "real.csv")
    labels.to_csv(tmp_path / "labels.csv")
    for name, options in (
        ("real.csv", {"missing": "pairwise"}),
        ("real.csv", {"missing": "zero", "margin": 0.1}),
        ("labels.csv", {"metrics": ["f1[x]", "macro-f1", "accuracy"], "alternative": "greater"}),
    ):
        data = sigdask.read(tmp_path / name, **{k: v for k, v in options.items() if k == "missing"})
        rest = {k: v for k, v in options.items() if k != "missing"}
        together, alone = (compare_all(data, trials=3000, adjust=how, **rest) for how in ("max-t", "holm"))
        assert [r.n_extreme for r in together] == [r.n_extreme for r in alone]
        assert [r.second_run for r in together] == [r.second_run for r in alone]


@pytest.mark.parametrize("adjust", ["max-t", "tukey"])
def test_the_order_of_items_and_systems_changes_no_adjusted_p(adjust):
    ids = [f"i{k}" for k in range(60)]
    data = draw_many(ids=ids)
    order = build_rng(5).permutation(60)
    names = list(data.systems)[::-1] if adjust == "max-t" else list(data.systems)
    scores = {n: data.fields["score"][order, data.systems.index(n)] for n in names}
    reordered = Counts.from_scores(scores, ids=[ids[k] for k in order])
    want, got = (
        {frozenset((r.a, r.b)): r.p_adjusted for r in compare_all(d, metrics=["mean"], trials=999, adjust=adjust)}
        for d in (data, reordered)
    )
    assert got == want


def test_the_family_is_what_was_asked():
    all_pairs = compare_all(draw_many(), metrics=["mean"], trials=4095)
    against_baseline = compare_all(draw_many(), metrics=["mean"], trials=4095, baseline="s0")
    listed_pairs = compare_all(draw_many(), metrics=["mean"], trials=4095, pairs=[("s1", "s0"), ("s2", "s0")])
    assert [x.family.n_comparisons for x in (all_pairs, against_baseline, listed_pairs)] == [10, 4, 2]
    adjusted_p = {frozenset((r.a, r.b)): r.p_adjusted for r in all_pairs}
    assert all(r.p_adjusted <= adjusted_p[frozenset((r.a, r.b))] for r in against_baseline)
    assert compare_all(draw_many(n_systems=2), metrics=["mean"], trials=99).family is None


def test_a_black_box_falls_back_to_holm_and_refuses_max_t():
    box = sigdask.metric(lambda outputs, _: sum(outputs), name="total", of="outputs")
    results = compare_all(draw_many(), metrics=[box], trials=200, cluster="none")
    assert results.family.adjust == "holm"
    with pytest.raises(InputError, match="total is a metric of whole outputs"):
        compare_all(draw_many(), metrics=[box], trials=200, adjust="max-t")
    with pytest.raises(InputError, match="whole outputs"):
        compare_all(draw_many(groups={"g": ["x", "y"] * 30}), metrics=[box], trials=20, by="g", together=True)


def test_tukey_needs_every_item_and_two_sides():
    data = draw_many()
    gappy = {n: data.fields["score"][:, k].copy() for k, n in enumerate(data.systems)}
    gappy["s2"][3] = np.nan
    counts = Counts.from_scores(gappy, missing="pairwise")
    with pytest.raises(InputError, match="'s2' lacks items"):
        compare_all(counts, metrics=["mean"], adjust="tukey", trials=99)
    assert compare_all(counts, metrics=["mean"], adjust="max-t", trials=99).family.n_comparisons == 10
    with pytest.raises(InputError, match="two-sided"):
        compare_all(data, metrics=["mean"], adjust="tukey", alternative="less", trials=99)
    with pytest.raises(InputError, match="adjust = 'bonferroni'"):
        compare_all(data, metrics=["mean"], adjust="bonferroni", trials=99)


@pytest.mark.parametrize("adjust", ["holm", "bh"])
def test_the_trials_asked_for_are_the_fewest_that_let_one_p_reach_alpha(adjust):
    rng = build_rng(3)
    scores = {f"s{k}": np.round(rng.standard_normal(60), 1) for k in range(4)}
    scores["best"] = np.round(np.max(list(scores.values()), axis=0) + 5, 1)
    pairs = [("best", "s0"), ("s0", "s1"), ("s0", "s2"), ("s0", "s3"), ("s1", "s2"), ("s1", "s3"), ("s2", "s3")]

    def compare_with(trials):
        data = Counts.from_scores(scores)
        options = {"trials": trials, "adjust": adjust, "alpha": 0.02, "method": "randomization"}
        return compare_all(data, metrics=["mean"], pairs=pairs, **options)

    [note] = [note for note in compare_with(99).notes if note.kind == "few-trials"]
    needed = note.numbers["needed"]
    assert [compare_with(n)[0].p_adjusted <= 0.02 for n in (needed - 1, needed)] == [False, True]
    assert not [note for note in compare_with(needed).notes if note.kind == "few-trials"]


@pytest.mark.parametrize(("adjust", "reaches"), [("none", True), ("max-t", True), ("holm", False), ("bh", True)])
def test_alpha_is_out_of_reach_where_the_smallest_ps_adjusted_do_not_reach_it(adjust, reaches):
    # 7 units: 2 / 128 each; times 10 comparisons is too much, which only Holm's smallest must pay
    [warning, *_] = compare_all(draw_many(n_items=7), metrics=["mean"], adjust=adjust).warnings
    assert ("p cannot be as small" not in warning) == reaches


def draw_test_sets(n_sets=3, effect=1.0):
    rng = build_rng(8)
    test_sets = []
    for k in range(n_sets):
        a = np.round(rng.standard_normal(30 + k) + (effect if k < 2 else 0), 1)
        test_sets.append(Counts.from_scores({"a": a, "b": np.round(rng.standard_normal(30 + k), 1)}, name=f"set{k}"))
    return test_sets


def test_several_sets_are_judged_together():
    results = compare_sets(draw_test_sets(), metrics=["mean"], trials=9999, together=True)
    [verdict] = results.together
    assert verdict.difference == pytest.approx(np.mean([r.difference for r in results]))
    assert verdict.n_sets == 3
    # T is a sum of independent signed differences: its normal approximation is close
    sets = draw_test_sets()
    variance = sum(((c.fields["score"][:, 0] - c.fields["score"][:, 1]) ** 2).sum() / c.n_items**2 for c in sets) / 9
    z = verdict.difference / np.sqrt(variance)
    assert verdict.p_value == pytest.approx(math.erfc(z / np.sqrt(2)), abs=0.004)
    with pytest.raises(InputError, match="only one test set"):
        compare_sets(sets[:1], metrics=["mean"], trials=9, together=True)
    with pytest.raises(InputError, match="two test sets are named"):
        compare_sets([sets[0], sets[0]], metrics=["mean"], trials=9)


def test_systems_in_another_order_are_not_taken_together():
    set_one, set_two = draw_many(n_systems=3, name="one"), draw_many(n_systems=3, seed=4)
    scores = {name: set_two.fields["score"][:, set_two.systems.index(name)] for name in ("s2", "s0", "s1")}
    sets = [set_one, Counts.from_scores(scores, name="two")]
    with pytest.raises(InputError, match="in 1 of 2 test sets.*list the pairs"):
        compare_sets(sets, metrics=["mean"], trials=9, together=True)
    against = compare_sets(sets, metrics=["mean"], trials=9, baseline="s0", together=True)
    assert {(v.a, v.b) for v in against.together} == {("s1", "s0"), ("s2", "s0")}


def test_small_subsets_are_enumerated_together():
    rng = build_rng(3)
    a, b = rng.integers(0, 5, 10), rng.integers(0, 5, 10)
    data = Counts.from_scores({"a": a, "b": b}, groups={"g": ["x"] * 4 + ["y"] * 6})
    [verdict] = compare_all(data, metrics=["mean"], by="g", together=True).together
    signs = 1 - 2 * ((np.arange(1024)[:, None] >> np.arange(10)) & 1)
    weights = np.where(np.arange(10) < 4, 3, 2)  # 1/4 and 1/6 on one denominator
    trials = signs @ (weights * (a - b))
    assert verdict.method == "exact"
    assert verdict.p_value == (np.abs(trials) >= abs((weights * (a - b)).sum())).mean()


def test_metrics_are_separate_questions():
    rng = build_rng(58)
    scores = {s: {f"m{k}": rng.random(30) for k in range(3)} for s in "abc"}
    rows = [{"system": s, "item": i} | {m: v[i] for m, v in scores[s].items()} for s in scores for i in range(30)]
    frame = pd.DataFrame(rows)
    scores_of = {"score": "m0+m1+m2"}
    together = compare_all(frame, columns=scores_of, trials=999)
    alone = compare_all(frame[["system", "item", "m1"]], columns={"score": "m1"}, trials=999)
    assert [r.p_adjusted for r in together if r.metric == "m1"] == [r.p_adjusted for r in alone]
    pair = compare_all(frame, columns=scores_of, pairs=[("a", "b")], trials=999)
    assert all(r.p_adjusted is None for r in pair)
    assert "unadjusted p" in render(pair)
