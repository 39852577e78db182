"""Classical tests beside comparisons: of which scores, against SciPy on the raw numbers, by unit, and why others do not fit."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from panel_of import rng_of
from scipy import stats

from sigdask.api import compare, compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import metric
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.metrics.user import black_box
from sigdask.results.record import ClassicalTest
from sigdask.results.table import Table
from sigdask.results.views import iter_results
from sigdask.statistics.classical import names
from sigdask.statistics.classical.student import matched_t
from sigdask.statistics.classical.wilcoxon import wilcoxon

SIDES = ("two-sided", "greater", "less")
DECIMALS = {name: rng_of(k).integers(0, 9, 40) / 8 for k, name in enumerate("abcd")}
TRUTHS = {name: (rng_of(9 + k).random(150) < 0.3 + 0.1 * k).astype(int) for k, name in enumerate("abc")}


def found(scores, side="two-sided", **options):
    """Return the tests of each pair, by name."""
    counts = scores if isinstance(scores, Counts) else Counts.from_scores(scores)
    options = {"metrics": ["mean"], "trials": 99, "second_run": False, "adjust": "none", "tests": "all", **options}
    return {(r.a, r.b): {t.name: t for t in r.tests} for r in compare_all(counts, alternative=side, **options)}


def test_tests_are_those_that_were_asked_for_in_their_order():
    [r] = compare_all(Counts.from_scores({"a": [1, 2, 4], "b": [0, 0, 1]}), tests=["wilcoxon", "t"])
    assert [t.name for t in r.tests] == ["t", "wilcoxon"]
    assert compare([1, 2, 4], [0, 0, 1]).tests == ()
    assert compare([1, 2, 4], [0, 0, 1], tests="sign").tests == (
        ClassicalTest("sign", 3.0, 0.25, 3, assumes_independence=False, detail="exact; 0 without a difference dropped"),
    )
    with pytest.raises(InputError, match="no classical test 'zeta'; expected t, sign"):
        compare([1, 2], [0, 0], tests="zeta")


@pytest.mark.parametrize("side", SIDES)
def test_matched_tests_are_scipys_on_the_raw_scores(side):
    every = found(DECIMALS, side)
    for a, b in combinations(DECIMALS, 2):
        d = DECIMALS[a] - DECIMALS[b]
        own, t = every[a, b], stats.ttest_rel(DECIMALS[a], DECIMALS[b], alternative=side)
        assert (own["t"].statistic, own["t"].p_value, own["t"].n) == (
            pytest.approx(t.statistic, rel=1e-12), pytest.approx(t.pvalue, rel=1e-11), 40
        )  # fmt: skip
        sign = stats.binomtest(int((d > 0).sum()), int((d != 0).sum()), alternative=side)
        assert (own["sign"].statistic, own["sign"].p_value, own["sign"].n) == (
            (d > 0).sum(), pytest.approx(sign.pvalue, rel=1e-12), (d != 0).sum()
        )  # fmt: skip
        for name, zeros in (("wilcoxon", "wilcox"), ("wilcoxon:pratt", "pratt")):
            want = wilcoxon([d * 8], side, zeros=zeros)
            assert (own[name].statistic, own[name].p_value) == (want.statistic[0], pytest.approx(want.p_value[0]))
        two = stats.ttest_ind(DECIMALS[a], DECIMALS[b], alternative=side)
        assert own["two-sample-t"].p_value == pytest.approx(two.pvalue, rel=1e-11)
        assert own["two-sample-t"].statistic == pytest.approx(two.statistic, rel=1e-12)
        assert [t.assumes_independence for t in own.values()] == [name in names.INDEPENDENT_TESTS for name in own]


@pytest.mark.parametrize("side", SIDES)
def test_tests_of_right_and_wrong_items(side):
    for (a, b), own in found(TRUTHS, side).items():
        wins, losses = (int((TRUTHS[x] > TRUTHS[y]).sum()) for x, y in ((a, b), (b, a)))
        assert own["mcnemar"].p_value == own["sign"].p_value
        want = stats.binomtest(wins, wins + losses, alternative=side).pvalue
        assert own["mcnemar"].p_value == pytest.approx(want, rel=1e-12)
        table = [[TRUTHS[x].sum(), 150 - TRUTHS[x].sum()] for x in (a, b)]
        chi2 = stats.chi2_contingency(table, correction=False)
        assert own["chi2"].statistic == pytest.approx(chi2.statistic)
        assert own["binomial"].statistic ** 2 == pytest.approx(chi2.statistic)
        assert own["binomial"].p_value == own["chi2"].p_value
        assert own["chi2"].n == 300
        if side == "two-sided":
            assert own["chi2"].p_value == pytest.approx(chi2.pvalue)


def test_a_test_that_takes_systems_for_independent_costs_the_factor_of_r12():
    scores = {"a": rng_of(1).normal(size=60)}
    scores["b"] = (scores["a"] - scores["a"].mean()) * 0.6 + 0.8 * rng_of(2).normal(size=60)
    scores = {name: (x - x.mean()) / x.std() for name, x in scores.items()}  # of one variance
    scores["b"] += 0.2
    [r] = compare_all(Counts.from_scores(scores), metrics=["mean"], trials=99, tests="t,two-sample-t")
    matched, two = r.tests
    assert two.statistic / matched.statistic == pytest.approx(math.sqrt(1 - r.r12))


def test_with_units_items_are_summed_and_tested_by_unit():
    documents = [f"d{k}" for k in rng_of(3).integers(0, 12, 40)]
    counts = Counts.from_scores(DECIMALS, groups={"document": documents})
    for (a, b), own in found(counts, unit="document").items():
        d = np.array([sum((DECIMALS[a] - DECIMALS[b])[np.array(documents) == u]) for u in sorted({*documents})])
        t, p = matched_t(d)
        assert (own["t"].statistic, own["t"].p_value) == (pytest.approx(float(t)), pytest.approx(float(p)))
        assert own["t"].n == len({*documents})
        assert own["t"].detail == "n - 1 degrees of freedom, by document"
        assert own["wilcoxon"].p_value == pytest.approx(wilcoxon([d.round(9)]).p_value[0])
        assert own["sign"].n == np.count_nonzero(d.round(9))
        for name in ("mcnemar", "binomial", "chi2"):
            assert own[name].p_value is None
            assert "depend on each other within a document" in own[name].detail


def test_units_of_one_size_give_the_tests_of_their_means():
    documents = np.repeat(np.arange(10), 4)
    counts = Counts.from_scores(DECIMALS, groups={"document": [str(d) for d in documents]})
    means = {name: x.reshape(10, 4).mean(axis=1) for name, x in DECIMALS.items()}
    for (a, b), own in found(counts, unit="document").items():
        assert own["t"].p_value == pytest.approx(stats.ttest_rel(means[a], means[b]).pvalue)
        assert own["two-sample-t"].p_value == pytest.approx(stats.ttest_ind(means[a], means[b]).pvalue)


def test_another_system_or_subset_changes_no_test():
    alone = found({name: DECIMALS[name] for name in "ab"})
    assert found(DECIMALS)["a", "b"] == alone["a", "b"]
    domains = ["x", "y"] * 20
    some = compare_all(
        Counts.from_scores(DECIMALS, groups={"domain": domains}), metrics=["mean"], by="domain", trials=99, tests="all"
    )
    of_x = found({name: x[::2] for name, x in DECIMALS.items()})
    for r in some:
        if r.subset["value"] == "x":
            assert {t.name: t for t in r.tests} == of_x[r.a, r.b]


def test_pairs_with_gaps_are_tested_on_the_items_that_both_have():
    scores = {name: x.copy() for name, x in DECIMALS.items()}
    scores["b"][:10] = np.nan
    counts = Counts.from_scores(scores, ids=[str(k) for k in range(40)], missing="pairwise")
    every = found(counts)
    rest = found({name: x[10:] for name, x in DECIMALS.items()})
    assert every["a", "b"]["t"].n == 30
    assert every["a", "c"]["t"].n == 40
    for name, own in every["a", "b"].items():
        other = rest["a", "b"][name]
        assert (own.p_value, own.detail) == (pytest.approx(other.p_value), other.detail)


def test_equal_differences_of_reals_are_tied_although_they_are_rounded():
    thirds = {"a": [1 / 3, 1.0, 0.7, 0.1 + 0.2], "b": [2 / 3, 2 / 3, 0.1, 0.3]}
    own = found(thirds)["a", "b"]
    assert own["wilcoxon"].statistic == 1.5 + 3  # -1/3 and 1/3 share their rank; the last is zero
    assert (own["sign"].n, own["wilcoxon"].n) == (3, 3)


def test_the_direction_of_a_metric_flips_no_difference():
    a, b = [0.5, 0.25, 0.75, 0.5, 0.5], [0.0, 0.0, 0.25, 0.25, 0.5]
    for name in ("mean", "mean:better=lower"):
        [r] = compare_all(Counts.from_scores({"a": a, "b": b}), metrics=[name], alternative="greater", tests="t,sign")
        assert all(t.p_value < 0.07 for t in r.tests)


@pytest.mark.parametrize(("first", "n"), [(1, 3), (0, 4)])
def test_units_of_no_size_count_where_the_systems_differ(first, n):
    errors = {"a": [1, 0, 1, 0, 1], "b": [first, 1, 1, 0, 0]}  # words too many where the reference has none
    words = np.array([[0], [2], [1], [0], [2]])
    rate = BoundMetric("rate", ("score", "words"), Ratios(((1, 0),), ((0, 1),)), own={"words": words})
    own = found(errors, metrics=[rate])["a", "b"]
    d = np.subtract(errors["a"], errors["b"])[[0, 1, 2, 4] if n == 4 else [1, 2, 4]]
    assert own["t"].n == n
    assert own["t"].p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert own["wilcoxon:pratt"].p_value == wilcoxon([d], zeros="pratt").p_value[0]
    assert own["wilcoxon:pratt"].detail.startswith(f"exact, ties share their ranks; {n - np.count_nonzero(d)} zeros")


def test_what_does_not_fit_says_why(yeh):
    def reasons(results):
        return [{t.name: t.detail for t in r.tests if t.p_value is None} for r in results]

    options = {"trials": 99, "tests": "all", "second_run": False}
    f1, precision = reasons(compare_all(yeh, metrics=["f1", "precision"], **options))
    assert set(f1) == {*names.NAMES}
    assert set(precision) == {*names.NAMES} - {"binomial", "chi2"}
    assert "the denominator depends on the system" in precision["t"]
    assert "no share of single items" in f1["chi2"]
    [mean] = reasons(compare_all(Counts.from_scores({"a": [0.5, 1, 2], "b": [1, 1, 0]}), metrics=["mean"], **options))
    assert set(mean) == {"mcnemar", "binomial", "chi2"}
    box = black_box(lambda outputs, _: float(max(outputs)), name="best")
    [whole] = reasons(compare_all(Counts.from_scores({"a": [0.5, 1, 2], "b": [1, 1, 0]}), metrics=[box], **options))
    assert set(whole.values()) == {"does not fit: the score is no mean or share of items"}
    own = metric(lambda score, items: score / items, name="own", fields=("score", "items"))
    [formula] = reasons(compare_all(Counts.from_scores({"a": [0.5, 1, 2], "b": [1, 1, 0]}), metrics=[own], **options))
    assert set(formula) == {*names.NAMES}


def test_what_does_not_vary_has_a_p_only_where_the_systems_are_the_same():
    same = found({"a": [1, 0, 1], "b": [1, 0, 1]})["a", "b"]
    assert all(t.p_value == 1 for t in same.values())
    assert same["t"].detail == "no unit differs"
    apart = found({"a": [0.5, 0.25, 0.75], "b": [0.25, 0.0, 0.5]})["a", "b"]
    assert (apart["t"].p_value, apart["t"].n) == (None, None)
    assert apart["t"].detail == "not defined: all differences are the same"
    assert found({"a": [1], "b": [0]})["a", "b"]["t"].detail == "fewer than 2 units"


def test_yehs_precision_is_tested_by_chi_square_as_in_the_paper(oracles, yeh):
    [r] = compare_all(yeh, metrics=["precision"], trials=99, tests="chi2")
    [chi2] = r.tests
    assert chi2.statistic == pytest.approx(oracles["yeh2000_chi2_precision"]["expected"], rel=1e-12)
    assert chi2.p_value == pytest.approx(oracles["yeh2000_chi2_precision_p"]["expected"], rel=1e-11)
    assert chi2.n == 134
    assert chi2.assumes_independence


def test_yehs_recall_is_tested_on_the_gold_relations(oracles, yeh):
    [r] = compare_all(yeh, metrics=["recall"], trials=99, tests="all")
    own = {t.name: t for t in r.tests}
    for name in ("mcnemar", "sign"):
        assert own[name].p_value == pytest.approx(oracles["yeh2000_recall_sign_test"]["expected"], rel=1e-12)
        assert (own[name].statistic, own[name].n) == (28, 34)
    assert (own["t"].n, own["two-sample-t"].n, own["chi2"].n) == (103, 206, 206)


def test_an_expected_count_below_five_is_said():
    own = found({"a": [1, 0, 0, 0, 1, 0, 0, 0], "b": [0] * 8})["a", "b"]
    assert own["chi2"].detail.endswith("a poor approximation, as fewer than 5 are expected in a cell")


def test_tables_below_each_other_have_all_tests_in_their_order():
    counts = Counts.from_scores({"a": [1, 2, 4], "b": [0, 0, 1]})
    few, all_ = (compare_all(counts, metrics=["mean"], tests=tests).table for tests in ("chi2,t", "all"))
    joined = Table.join([few, all_])
    assert [own.name for own in joined.tests] == [*names.NAMES]
    assert [[t.name for t in r.tests] for r in iter_results(joined)] == [["t", "chi2"], [*names.NAMES]]


def test_tests_are_in_json_tables_and_data_frames(tmp_path):
    pytest.importorskip("pyarrow")
    first = Counts.from_scores(DECIMALS, name="first")
    results = compare_sets([first, first.with_name("second")], metrics=["mean"], trials=99, tests="all")
    rows = json.loads(results.to_json())["results"]
    assert [*rows[0]["tests"][0]] == ["name", "statistic", "p_value", "n", "assumes_independence", "detail"]
    assert [t["name"] for t in rows[0]["tests"]] == [*names.NAMES]
    assert rows[0]["tests"][4]["p_value"] is rows[0]["tests"][4]["n"] is None
    for library in ("pandas", "pyarrow", "polars"):
        pytest.importorskip(library)
        frame = results.to_frame(library)
        assert next(iter(frame["t_p_value"])) is not None
    assert results.to_frame()["wilcoxon:pratt_statistic"].tolist() == [r.tests[3].statistic for r in results]
    results.to_csv(tmp_path / "r.csv")
    header = (tmp_path / "r.csv").read_text().splitlines()[0]
    assert "chi2_statistic,chi2_p_value" in header
    results.to_parquet(tmp_path / "r.parquet")
    without = compare_all(first, metrics=["mean"], trials=99)
    assert json.loads(without.to_json())["results"][0]["tests"] == []
    assert "t_p_value" not in without.to_frame()
