"""Tests of classical tests beside comparisons: against SciPy on raw numbers, and their limits."""

from itertools import combinations

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from sigdask.api import compare, compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.metrics import metric
from sigdask.metrics.base import BoundMetric
from sigdask.metrics.forms import Ratios
from sigdask.metrics.user import black_box
from sigdask.report.sentences import turn
from sigdask.results.record import NamedValues
from sigdask.statistics import classical
from sigdask.statistics.classical import wilcoxon

SIDES = ("two-sided", "greater", "less")
DECIMALS = {name: build_rng(k).integers(0, 9, 40) / 8 for k, name in enumerate("abcd")}
IS_CORRECT = {name: (build_rng(9 + k).random(150) < 0.3 + 0.1 * k).astype(int) for k, name in enumerate("abc")}


def list_tests(scores, side="two-sided", **options):
    """Return the tests of each pair, by name."""
    counts = scores if isinstance(scores, Counts) else Counts.from_scores(scores)
    options = {"metrics": ["mean"], "trials": 99, "second_run": False, "adjust": "none", "tests": "all", **options}
    return {(r.a, r.b): {t.name: t for t in r.tests} for r in compare_all(counts, alternative=side, **options)}


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300])
@pytest.mark.filterwarnings("error")
def test_tests_do_not_depend_on_the_size_of_scores(size):
    # R: t.test(c(1, 2, 3), c(0, 1, 1), var.equal = TRUE) and with paired = TRUE
    tests = list_tests({"a": [size, 2 * size, 3 * size], "b": [0.0, size, size]})["a", "b"]
    assert (tests["two-sample-t"].statistic, tests["two-sample-t"].p_value) == pytest.approx((2, 0.1161165235168))
    assert (tests["t"].statistic, tests["t"].p_value) == pytest.approx((4, 0.0571909584179))


def test_tests_are_those_that_were_asked_for_in_their_order():
    [r] = compare_all(Counts.from_scores({"a": [1, 2, 4], "b": [0, 0, 1]}), tests=["wilcoxon", "t"])
    assert [t.name for t in r.tests] == ["t", "wilcoxon"]
    assert compare([1, 2, 4], [0, 0, 1]).tests == ()
    assert compare([1, 2, 4], [0, 0, 1], tests="sign").tests == (
        NamedValues(
            name="sign",
            statistic=3.0,
            p_value=0.25,
            n=3,
            assumes_independence=False,
            detail="exact; 0 units of equal scores left out",
        ),
    )
    with pytest.raises(InputError, match="no classical test 'zeta'; expected t, sign"):
        compare([1, 2], [0, 0], tests="zeta")


@pytest.mark.parametrize("side", SIDES)
def test_matched_tests_are_scipys_on_the_raw_scores(side):
    every = list_tests(DECIMALS, side)
    for a, b in combinations(DECIMALS, 2):
        d = DECIMALS[a] - DECIMALS[b]
        tests, t = every[a, b], stats.ttest_rel(DECIMALS[a], DECIMALS[b], alternative=side)
        assert (tests["t"].statistic, tests["t"].p_value, tests["t"].n) == (
            pytest.approx(t.statistic, rel=1e-12), pytest.approx(t.pvalue, rel=1e-11), 40
        )  # fmt: skip
        sign = stats.binomtest(int((d > 0).sum()), int((d != 0).sum()), alternative=side)
        assert (tests["sign"].statistic, tests["sign"].p_value, tests["sign"].n) == (
            (d > 0).sum(), pytest.approx(sign.pvalue, rel=1e-12), (d != 0).sum()
        )  # fmt: skip
        want, got = wilcoxon([d * 8], side), tests["wilcoxon"]
        assert (got.statistic, got.p_value) == (want.statistic[0], pytest.approx(want.p_value[0]))
        two = stats.ttest_ind(DECIMALS[a], DECIMALS[b], alternative=side)
        assert tests["two-sample-t"].p_value == pytest.approx(two.pvalue, rel=1e-11)
        assert tests["two-sample-t"].statistic == pytest.approx(two.statistic, rel=1e-12)
        assert [t.assumes_independence for t in tests.values()] == [
            name in classical.INDEPENDENT_TESTS for name in tests
        ]


@pytest.mark.parametrize("side", SIDES)
def test_tests_of_right_and_wrong_items(side):
    for (a, b), tests in list_tests(IS_CORRECT, side).items():
        wins, losses = (int((IS_CORRECT[x] > IS_CORRECT[y]).sum()) for x, y in ((a, b), (b, a)))
        assert tests["mcnemar"].p_value == tests["sign"].p_value
        want = stats.binomtest(wins, wins + losses, alternative=side).pvalue
        assert tests["mcnemar"].p_value == pytest.approx(want, rel=1e-12)
        table = [[IS_CORRECT[x].sum(), 150 - IS_CORRECT[x].sum()] for x in (a, b)]
        chi2 = stats.chi2_contingency(table, correction=False)
        assert tests["binomial"].statistic ** 2 == pytest.approx(chi2.statistic)
        assert tests["binomial"].n == 300
        if side == "two-sided":
            assert tests["binomial"].p_value == pytest.approx(chi2.pvalue)


def test_with_units_items_are_summed_and_tested_by_unit():
    documents = [f"d{k}" for k in build_rng(3).integers(0, 12, 40)]
    counts = Counts.from_scores(DECIMALS, groups={"document": documents})
    for (a, b), tests in list_tests(counts, unit="document").items():
        d = np.array([sum((DECIMALS[a] - DECIMALS[b])[np.array(documents) == u]) for u in sorted({*documents})])
        t, p = stats.ttest_1samp(d, 0)
        assert (tests["t"].statistic, tests["t"].p_value) == (pytest.approx(float(t)), pytest.approx(float(p)))
        assert tests["t"].n == len({*documents})
        assert tests["t"].detail == "n - 1 degrees of freedom, by document"
        assert tests["wilcoxon"].p_value == pytest.approx(wilcoxon([d.round(9)]).p_value[0])
        assert tests["sign"].n == np.count_nonzero(d.round(9))
        for name in ("mcnemar", "binomial"):
            assert tests[name].p_value is None
            assert "depend on each other within a document" in tests[name].detail


@pytest.mark.slow
def test_another_system_or_subset_changes_no_test():
    pair_tests = list_tests({name: DECIMALS[name] for name in "ab"})
    assert list_tests(DECIMALS)["a", "b"] == pair_tests["a", "b"]
    domains = ["x", "y"] * 20
    subset_results = compare_all(
        Counts.from_scores(DECIMALS, groups={"domain": domains}), metrics=["mean"], by="domain", trials=99, tests="all"
    )
    tests_of_x = list_tests({name: x[::2] for name, x in DECIMALS.items()})
    for r in subset_results:
        if r.subset["value"] == "x":
            assert {t.name: t for t in r.tests} == tests_of_x[r.a, r.b]


def test_pairs_with_gaps_are_tested_on_the_items_that_both_have():
    scores = {name: x.copy() for name, x in DECIMALS.items()}
    scores["b"][:10] = np.nan
    counts = Counts.from_scores(scores, ids=[str(k) for k in range(40)], missing="pairwise")
    every = list_tests(counts)
    complete = list_tests({name: x[10:] for name, x in DECIMALS.items()})
    assert every["a", "b"]["t"].n == 30
    assert every["a", "c"]["t"].n == 40
    for name, test in every["a", "b"].items():
        expected = complete["a", "b"][name]
        assert (test.p_value, test.detail) == (pytest.approx(expected.p_value), expected.detail)


def test_equal_differences_of_reals_are_tied_although_they_are_rounded():
    thirds = {"a": [1 / 3, 1.0, 0.7, 0.1 + 0.2], "b": [2 / 3, 2 / 3, 0.1, 0.3]}
    tests = list_tests(thirds)["a", "b"]
    assert tests["wilcoxon"].statistic == 1.5 + 3  # -1/3 and 1/3 share their rank; the last is zero
    assert (tests["sign"].n, tests["wilcoxon"].n) == (3, 3)


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
    tests = list_tests(errors, metrics=[rate])["a", "b"]
    d = np.subtract(errors["a"], errors["b"])[[0, 1, 2, 4] if n == 4 else [1, 2, 4]]
    assert tests["t"].n == n
    assert tests["t"].p_value == pytest.approx(stats.ttest_1samp(d, 0).pvalue)
    assert tests["wilcoxon"].p_value == wilcoxon([d]).p_value[0]
    assert tests["wilcoxon"].detail.startswith(f"exact, ties share their ranks; {n - np.count_nonzero(d)} zeros")


def test_what_does_not_fit_has_no_p_and_says_why(yeh):
    scores = Counts.from_scores({"a": [0.5, 1, 2], "b": [1, 1, 0]})
    box = black_box(lambda outputs, _: float(max(outputs)), name="best")
    formula = metric(lambda score, items: score / items, name="own", fields=("score", "items"))
    every = {*classical.NAMES}
    for counts, of, without in (
        (yeh, "f1", every), (yeh, "precision", every - {"binomial"}), (scores, "mean", {"mcnemar", "binomial"}),
        (scores, box, every), (scores, formula, every),
    ):  # fmt: skip
        [r] = compare_all(counts, metrics=[of], trials=99, tests="all", second_run=False)
        assert {t.name for t in r.tests if t.p_value is None} == without
        assert all(t.detail for t in r.tests if t.p_value is None)


def test_what_does_not_vary_has_a_p_only_where_the_systems_are_the_same():
    equal_tests = list_tests({"a": [1, 0, 1], "b": [1, 0, 1]})["a", "b"]
    assert all(t.p_value == 1 for t in equal_tests.values())
    assert equal_tests["t"].detail == "no unit is discordant"
    constant_tests = list_tests({"a": [0.4, 0.3, 0.7], "b": [0.3, 0.2, 0.6]})["a", "b"]  # but for their rounding
    assert (constant_tests["t"].p_value, constant_tests["t"].n) == (None, None)
    assert constant_tests["t"].detail == "not defined: all differences are the same"
    assert list_tests({"a": [1], "b": [0]})["a", "b"]["t"].detail == "fewer than 2 units"


def test_yehs_precision_is_tested_as_in_the_paper(oracles, yeh):
    [r] = compare_all(yeh, metrics=["precision"], trials=99, tests="binomial")
    [shares] = r.tests
    assert shares.statistic**2 == pytest.approx(oracles["yeh2000_chi2_precision"]["expected"], rel=1e-12)
    assert shares.p_value == pytest.approx(oracles["yeh2000_chi2_precision_p"]["expected"], rel=1e-11)
    assert shares.n == 134
    assert shares.assumes_independence


def test_yehs_recall_is_tested_on_the_gold_relations(oracles, yeh):
    [r] = compare_all(yeh, metrics=["recall"], trials=99, tests="all")
    tests = {t.name: t for t in r.tests}
    for name in ("mcnemar", "sign"):
        assert tests[name].p_value == pytest.approx(oracles["yeh2000_recall_sign_test"]["expected"], rel=1e-12)
        assert (tests[name].statistic, tests[name].n) == (28, 34)
    assert (tests["t"].n, tests["two-sample-t"].n, tests["binomial"].n) == (103, 206, 206)


def test_r12_of_several_metrics_is_numpys_for_each_of_them():
    rng = np.random.default_rng(4)
    gold = rng.normal(size=40)
    outputs = {name: gold + rng.normal(size=40) for name in ("a", "b", "c")}
    counts = [Counts.from_numbers(gold, outputs, name=name) for name in ("first", "second")]
    results = compare_sets(counts, metrics=["MAE", "MSE"], trials=99, progress=None)
    for r in results:
        losses = [np.abs(outputs[name] - gold) ** (1 + (r.metric == "MSE")) for name in (r.a, r.b)]
        assert r.r12 == pytest.approx(np.corrcoef(losses)[0, 1], rel=1e-9)
    assert len(results) == 12
    assert compare([1, 1, 1], [0, 1, 0]).r12 is None  # a constant has no correlation


def test_tests_that_drop_every_item_are_shown_with_an_n_of_0():
    scores = {"new": [0.1, 0.2, 0.3], "old": [0.1, 0.2, 0.3], "best": [0.2, 0.3, 0.5]}
    results = compare_all(scores, metrics=["mean"], tests=["sign", "wilcoxon", "t"], interval="none")
    [line] = [line.split() for line in str(results).splitlines() if {"new", "old", "sign"} <= {*line.split()}]
    assert line[line.index("sign") :][:4] == ["sign", "0", "1", "0"]
    [same] = [r for r in results if {r.a, r.b} == {"new", "old"}]
    assert [test.statistic for test in turn(same).tests] == [test.statistic for test in same.tests]
