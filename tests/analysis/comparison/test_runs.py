"""Several runs of each system: tests over runs and of recipes, against SciPy, enumeration and NumPy."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import scipy
from builders import build_rng

from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.report.sentences import build_verdict
from sigdask.statistics.dependence import compare_runs


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize(("n_runs", "is_paired"), [(3, True), (3, False), (9, True), (6, False)])
def test_p_over_runs_is_that_of_scipy_or_of_all_arrangements(n_runs, is_paired, alternative):
    a, b = build_rng(n_runs).normal([[0.8], [0]], 1, (2, n_runs)).round(2)
    test = compare_runs(np.array([[a, b]]), np.array([0.1]), 50, is_paired=is_paired, alternative=alternative)
    if n_runs == 3:
        method = scipy.stats.ttest_rel if is_paired else scipy.stats.ttest_ind
        expected = method(a, b, alternative=alternative, **({} if is_paired else {"equal_var": False})).pvalue
        assert test.p_runs[0] == pytest.approx(expected, rel=1e-9)
        return
    if is_paired:
        differences = [np.dot(signs, a - b) for signs in product((1, -1), repeat=n_runs)]
    else:
        values = [*a, *b]
        differences = [2 * sum(values[k] for k in chosen) - sum(values) for chosen in combinations(range(12), 6)]
    tail = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}[alternative]
    extreme = tail(np.array(differences)) >= tail(sum(a) - sum(b)) - 1e-9
    assert (test.method, test.p_runs[0]) == ("permutation", pytest.approx(extreme.mean(), rel=1e-12))


def write_runs(folder, n_items=300, n_runs=4, gain=0.3):
    """Write a long table of two systems with seeds, and return the scores, shape (2, n_runs, n_items)."""
    rng = build_rng(5)
    latent = rng.normal(0, 1, n_items) + rng.normal(0, 0.05, (2, n_runs, 1)) + [[[gain]], [[0]]]
    scores = (latent + rng.normal(0, 1, latent.shape) > 0).astype(int)
    rows = (f"q{k},{'ab'[s]},{r},{scores[s, r, k]}\n" for k in range(n_items) for s in range(2) for r in range(n_runs))
    (folder / "long.csv").write_text("item,system,seed,score\n" + "".join(rows))
    return scores


def compute_recipe_test(scores, *, is_paired):
    """Return t, its degrees of freedom and standard error by the formulas of STATISTICS, without sigdask."""
    runs, n = scores.mean(axis=2), scores.shape[1]
    by_item = scores.mean(axis=1)
    items = np.var(by_item[0] - by_item[1], ddof=1) / scores.shape[2]
    samples = [runs[0] - runs[1]] if is_paired else runs
    parts = [np.var(sample, ddof=1) / n for sample in samples]
    total = items + sum(parts)
    df = total**2 / (items**2 / (scores.shape[2] - 1) + sum(v**2 for v in parts) / (n - 1))
    df = min(df, (n - 1) * total / sum(parts)) if is_paired and n < 5 else df
    df = min(df, (scores.shape[2] - 1) * total / items) if scores.shape[2] < 5 else df
    return (runs[0].mean() - runs[1].mean()) / np.sqrt(total), df, np.sqrt(total)


@pytest.mark.parametrize("n_items", [300, 4])
def test_a_column_of_seeds_gives_three_p_and_an_interval_that_inverts_the_test_of_recipes(tmp_path, n_items):
    scores = write_runs(tmp_path, n_items)
    counts = read(tmp_path / "long.csv")
    assert (counts.runs.column, counts.runs.names, counts.runs.is_shared) == ("seed", ("0", "1", "2", "3"), True)
    results = compare_all(counts, metrics=["mean"])
    [r] = results
    t, df, error = compute_recipe_test(scores, is_paired=True)
    assert r.runs.p_value == pytest.approx(2 * scipy.stats.t.sf(abs(t), df), rel=1e-6)
    assert r.runs.p_runs == pytest.approx(scipy.stats.ttest_rel(*scores.mean(axis=2)).pvalue, rel=1e-9)
    reach = scipy.stats.t.ppf(0.975, df) * error
    assert [r.interval.low, r.interval.high] == pytest.approx([r.difference - reach, r.difference + reach], rel=1e-6)
    assert (r.interval.method, r.runs.interval) == ("recipe-t", (r.interval.low, r.interval.high))
    once = compare_all(Counts.from_scores(dict(zip("ab", scores.mean(axis=1), strict=True)), ids=counts.ids))[0]
    assert r.p_value == once.p_value  # over items: that of the averaged scores
    assert ", for the recipes p = " in build_verdict(results).headline
    assert "95 % intervals of recipes\n" in results.plot().axes[0].get_xlabel()


def test_a_difference_of_these_runs_only_says_so(tmp_path):
    scores = write_runs(tmp_path, n_runs=2)
    parts = [Counts.from_scores({"a": scores[0, r], "b": scores[1, r]}) for r in range(2)]
    results = compare_all(Counts.of_replicates(parts), metrics=["mean"])
    assert (results[0].runs.verdict, results[0].runs.p_value) == ("too few runs", None)
    welch = scipy.stats.ttest_ind(*scores.mean(axis=2), equal_var=False)
    assert results[0].runs.p_runs == pytest.approx(welch.pvalue, rel=1e-9)
    words = ", averaged over 2 runs each: shown for these runs, for the recipes not tested; for these runs p = "
    assert words in build_verdict(results).headline


def test_the_lead_of_several_systems_and_margins_are_of_these_runs():
    scores = build_rng(3).normal(0, 1, (2, 3, 60)).round(2)
    parts = [Counts.from_scores({"a": part[0], "b": part[1], "c": part[2] - 2}) for part in scores]
    results = compare_all(Counts.of_replicates(parts), metrics=["mean"], margin=1, interval="none", trials=999)
    headline = build_verdict(results).headline
    assert "; for these runs adjusted p" in headline
    assert headline.count("Margin 1 on mean, for these runs: ") == 3
    assert results.cite().text.index("within a margin") < results.cite().text.index("the p-values above")


def test_runs_of_a_ratio_of_sums_have_scores_of_their_own_and_items_are_jackknifed():
    rng = build_rng(8)
    gold = rng.integers(0, 2, 200).astype(str)
    labels = [{s: np.where(rng.random(200) < p, gold, "0") for s, p in (("a", 0.9), ("b", 0.7))} for _ in range(3)]
    [r] = compare_all(Counts.of_replicates([Counts.from_labels(gold, part) for part in labels]), metrics=["f1[1]"])

    def compute_f1(predictions, kept):
        right = ((predictions == "1") & (gold == "1"))[kept].sum()
        return 2 * right / ((predictions == "1")[kept].sum() + (gold == "1")[kept].sum())

    def compute_difference(kept):
        return np.mean([compute_f1(part["a"], kept) - compute_f1(part["b"], kept) for part in labels])

    runs = [[compute_f1(part[s], slice(None)) for part in labels] for s in "ab"]
    assert r.runs.p_runs == pytest.approx(scipy.stats.ttest_ind(*runs, equal_var=False).pvalue, rel=1e-9)
    left_out = np.array([compute_difference(np.arange(200) != k) for k in range(200)])
    assert r.runs.se_items == pytest.approx(np.sqrt(199 * left_out.var()), rel=1e-6)


@pytest.mark.slow
def test_whole_runs_are_units_and_families_adjust_the_p_of_recipes_by_holm(tmp_path):
    scores = write_runs(tmp_path)
    frame = pd.read_csv(tmp_path / "long.csv")
    assert compare_all(frame, metrics=["mean"])[0].runs == compare_all(read(tmp_path / "long.csv"))[0].runs
    for unit in ("seed", "run"):
        [r] = compare_all(read(tmp_path / "long.csv", options=Options(groups=(unit,))), metrics=["mean"], unit=unit)
        differences = scores.mean(axis=2)[0] - scores.mean(axis=2)[1]
        signs = np.array([*product((1, -1), repeat=4)])
        assert (r.n_units, r.runs) == (4, None)
        assert r.p_value == (np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9).mean()
    parts = [Counts.from_scores({"a": s[0], "b": s[1], "c": s[0] * s[1]}) for s in scores.transpose(1, 0, 2)]
    results = compare_all(Counts.of_replicates(parts), metrics=["mean"])
    p = sorted((r.runs.p_value, r.runs.p_adjusted) for r in results)
    holm = np.maximum.accumulate([(3 - k) * value for k, (value, _) in enumerate(p)]).clip(max=1)
    assert [adjusted for _, adjusted in p] == pytest.approx(holm)
    found = f"(the recipes; unpaired runs), {sum(holm <= 0.05)} of 3 "
    assert found in build_verdict(results).headline
    for text in (results.to_markdown(), results.to_latex()):  # letters too are of these runs only
        assert found in text
        assert "not significantly different for these runs" in text


@pytest.mark.slow
def test_the_mean_over_sets_has_a_t_interval_of_the_sets_standard_errors():
    rng = build_rng(9)
    sets = [Counts.from_scores(dict(zip("ab", rng.random((2, n)), strict=True)), name=f"s{n}") for n in (20, 50)]
    results = compare_sets(sets, metrics=["mean"], together=True)
    differences = [counts.field("score")[:, 0] - counts.field("score")[:, 1] for counts in sets]
    variances = np.array([d.var(ddof=1) / len(d) for d in differences]) / 4
    df = variances.sum() ** 2 / sum(v**2 / (len(d) - 1) for v, d in zip(variances, differences, strict=True))
    reach = scipy.stats.t.ppf(0.975, df) * np.sqrt(variances.sum())
    mean = np.mean([d.mean() for d in differences])
    assert results.together[0].interval == pytest.approx((mean - reach, mean + reach), rel=1e-6)
    assert "the mean difference, each with its own 95 % confidence interval by Student's t" in results.cite().text


def test_a_subset_of_one_item_has_no_p_of_recipes_and_no_interval():
    rows = [
        (s, run, item, item[0], k + run / 10)
        for k, s in enumerate("ab")
        for run in range(3)
        for item in ("p1", "p2", "q1")
    ]
    frame = pd.DataFrame(rows, columns=["system", "seed", "item", "lang", "score"])
    frame.loc[0, "score"] = frame.loc[2, "score"] = 0.5
    results = compare_all(frame, by="lang")
    assert [r.runs.best_p is None for r in results] == [False, True]  # one item shows no variance over items
    assert [r.interval and r.interval.confidence for r in results] == [0.95, None]
    assert "3 paired seeds" in str(results)


def test_a_column_of_runs_that_some_items_lack_is_an_error(tmp_path):
    (tmp_path / "t.csv").write_text("id,system,version,score\na,x,1,1\na,x,2,1\nb,x,1,0\nb,x,1,1\n")
    with pytest.raises(InputError, match="version"):
        read(tmp_path / "t.csv", options=Options(columns={"run": "version"}))


def test_a_unit_item_of_joined_ids_with_a_column_item_is_refused_with_both_ways():
    rows = list(product("ab", ("p1", "p2"), range(8)))
    scores = np.random.default_rng(3).integers(0, 2, len(rows))
    frame = pd.DataFrame(rows, columns=["system", "prompt", "item"]).assign(score=scores)
    with pytest.raises(InputError, match=r"prompt\+item"):
        compare_all(frame, columns={"item": "prompt+item"}, unit="item")
    [by_ids] = compare_all(frame, columns={"item": "prompt+item"})
    renamed = frame.rename(columns={"item": "question"})
    [by_question] = compare_all(renamed, columns={"item": "prompt+question"}, unit="question")
    assert (by_ids.n_units, by_question.n_units) == (16, 8)


@pytest.mark.parametrize("by", ["seed", "run"])
def test_each_run_may_be_compared_by_itself(by):
    rows = list(product("ab", (1, 2, 3), range(8)))
    scores = np.random.default_rng(4).random(len(rows))
    frame = pd.DataFrame(rows, columns=["system", "seed", "item"]).assign(score=scores)
    results = compare_all(frame, by=by)
    assert [r.subset["value"] for r in results] == ["1", "2", "3"]
    assert [r.score_a for r in results] == pytest.approx(scores.reshape(2, 3, 8).mean(axis=2)[0])


def test_a_test_set_without_runs_stands_beside_one_with_runs(tmp_path):
    write_runs(tmp_path)
    sets = [read(tmp_path / "long.csv"), Counts.from_scores({"a": [1, 0, 1, 1], "b": [0, 0, 1, 0]}, name="none")]
    results = compare_sets(sets, trials=99)
    assert str(results).startswith("long.csv: ")  # the test set has no name to begin with
    for text in (str(results), results.to_markdown(), results.to_latex()):
        assert "For new runs of the systems (the recipes; paired seeds), 1 of 1 differences are significant." in text
