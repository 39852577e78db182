"""Tests of the intervals of comparisons: which method, and agreement with other software."""

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

import sigdask
from sigdask import Counts, compare, compare_all
from sigdask.analysis.comparison.intervals import IntervalJobs
from sigdask.analysis.comparison.jobs import plan_jobs
from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.errors import InputError
from sigdask.statistics.classical import compute_score_interval


def draw_real(n, seed=1):
    rng = build_rng(seed)
    base = rng.normal(0, 1, n)
    return (base + rng.normal(0.2, 0.6, n)).round(2), (base + rng.normal(0, 0.6, n)).round(2)


def draw_binary(n, a=0.7, b=0.6, seed=1):
    rng = build_rng(seed)
    return (rng.random(n) < a).astype(int), (rng.random(n) < b).astype(int)


@pytest.mark.parametrize(("n", "confidence"), [(39, 0.95), (1999, 0.999)])
def test_an_end_that_is_the_smallest_of_all_resamples_has_a_note(n, confidence):
    a, b = draw_real(30)
    few, enough = (
        compare(a, b, interval="bootstrap", confidence=confidence, resamples=k, trials=99) for k in (n, n + 1)
    )
    [note] = [note for note in few.notes if note.kind == "interval"]
    assert f"of so few resamples; use at least {n + 1:,}" in note.text
    assert not any(note.kind == "interval" for note in enough.notes)


def test_means_have_the_inverted_test_by_default_and_both_scores_the_bootstrap():
    a, b = draw_real(50)
    result = compare(a, b, trials=200_000)
    inverted = compare(a, b, trials=2**17, interval="inversion")
    resampled = compare(a, b, trials=1000, interval="bootstrap")
    assert result.interval == inverted.interval
    assert (result.interval.method, result.interval.n_resamples) == ("inversion", 2**17)
    assert result.score_a_interval == resampled.score_a_interval is not None
    assert result.score_b_interval == resampled.score_b_interval is not None
    assert inverted.score_a_interval is None
    assert result.paired_d == inverted.paired_d == resampled.paired_d
    result_of_12 = compare(a[:12], b[:12], trials=1000)
    assert result_of_12.interval == compare(a[:12], b[:12], trials=1000, interval="inversion").interval
    assert result_of_12.score_a_interval is not None


@pytest.mark.slow
def test_more_units_than_10_000_have_a_normal_interval_by_default():
    """A mean has z times the standard error; F1 agrees with the bootstrap within its Monte Carlo error."""
    rng = build_rng(8)
    a, b = rng.random((2, 12_000)).round(3)
    result = compare(a, b, trials=100)
    reach = 1.959963984540054 * (a - b).std(ddof=1) / np.sqrt(12_000)
    assert (result.interval.method, result.interval.n_resamples) == ("normal", None)
    assert (result.interval.low, result.interval.high) == pytest.approx(
        ((a - b).mean() - reach, (a - b).mean() + reach)
    )
    reach_of_a = 1.959963984540054 * a.std(ddof=1) / np.sqrt(12_000)
    assert result.score_a_interval == pytest.approx((a.mean() - reach_of_a, a.mean() + reach_of_a))
    gold, predicted_a, predicted_b = rng.random((3, 12_000)) < np.array([[0.3], [0.4], [0.4]])
    responses = {"gold": gold, "metric": "f1[True]", "trials": 100}
    normal, bootstrap = (
        compare(predicted_a, predicted_b, **responses, **options).interval for options in ({}, {"resamples": 2000})
    )
    assert (normal.method, bootstrap.method) == ("normal", "bootstrap-bca")
    width = normal.high - normal.low
    assert (normal.low, normal.high) == pytest.approx((bootstrap.low, bootstrap.high), abs=0.06 * width)


def test_means_may_have_the_bca_interval_of_the_bootstrap():
    """Agrees with SciPy's, of as many resamples, within five Monte Carlo errors of a quantile."""
    a, b = draw_real(80)
    result = compare(a, b, trials=1000, interval="bootstrap", resamples=20_000)
    want = stats.bootstrap(
        (a, b), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), paired=True, vectorized=True,
        n_resamples=20_000, method="BCa", rng=build_rng(3),
    )  # fmt: skip
    assert (result.interval.method, result.interval.confidence, result.interval.n_resamples) == (
        "bootstrap-bca", 0.95, 20_000,
    )  # fmt: skip
    error = 5 * np.sqrt(2 * 0.025 * 0.975 / 20_000) / stats.norm.pdf(1.96) * want.standard_error
    ends = result.interval.low, result.interval.high
    assert ends == pytest.approx(tuple(want.confidence_interval), abs=error)
    assert result.paired_d == pytest.approx((a - b).mean() / (a - b).std(ddof=1))
    for values, interval in ((a, result.score_a_interval), (b, result.score_b_interval)):
        want = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=build_rng(3))
        assert interval == pytest.approx(tuple(want.confidence_interval), abs=5 * 0.018 * want.standard_error)


def test_0_1_scores_by_item_have_tangos_interval_by_default_and_scores_wilsons():
    a, b = draw_binary(300)
    result = compare(a, b, trials=1000)
    assert (result.interval.method, result.interval.n_resamples, result.interval.percentile) == ("tango", None, None)
    wilson = stats.binomtest(int(a.sum()), 300).proportion_ci(0.95, method="wilson")
    assert result.score_a_interval == pytest.approx((wilson.low, wilson.high))
    percent = compare(100 * a, 100 * b, trials=1000)
    assert percent.interval.low == pytest.approx(100 * result.interval.low)
    assert percent.score_b_interval[1] == pytest.approx(100 * result.score_b_interval[1])
    assert compare(a, b, trials=1000, interval="bootstrap").interval.method == "bootstrap-bca"
    by_cluster = compare(a, b, trials=1000, units=[f"u{k // 5}" for k in range(300)])
    assert by_cluster.interval.method == "inversion"


def test_a_system_without_a_right_item_has_tangos_interval_too():
    """Intervals of 3 losses and of 3 wins are mirrored; the bootstrap held 0 in 0.76 of such sets."""
    b = np.array([1, 1, 1] + [0] * 17)
    result, turned = compare(0 * b, b), compare(b, 0 * b)
    assert (result.interval.method, turned.interval.method) == ("tango", "tango")
    assert (result.interval.low, result.interval.high) == pytest.approx((-turned.interval.high, -turned.interval.low))
    low, high = map(float, compute_score_interval(0, 3, 20, 0.95))
    assert (result.interval.low, result.interval.high) == pytest.approx((low, high))
    assert result.score_a_interval[0] == 0 < result.score_a_interval[1]
    assert compare(0 * b, 100 * b).interval.low == pytest.approx(100 * low)
    assert compare(0 * b, 0 * b).interval.method == "tango"


@pytest.mark.parametrize(("n", "noted"), [(25, "few-units"), (100, None)])
def test_what_was_measured_to_cover_too_little_is_noted(n, noted):
    rng = build_rng(3)
    options = {"trials": 100, "interval": "bootstrap"}
    plain = compare(rng.normal(0, 1, n).round(2), rng.normal(0, 1, n).round(2), **options)
    notes = [note.numbers["shortfalls"] for note in plain.notes if note.kind == "interval-coverage"]
    assert notes == ([] if noted is None else [noted])
    skewed = compare(np.exp(rng.normal(0, 1.5, 100)).round(2), np.zeros(100), **options)
    [note] = [note for note in skewed.notes if note.kind == "interval-coverage"]
    assert note.numbers["shortfalls"] == "skewed"


def test_units_are_resampled_as_a_whole():
    """Items that are alike within a unit say no more than one of them."""
    a, b = draw_real(20)
    single = compare(a, b, trials=100)
    five = compare(np.repeat(a, 5), np.repeat(b, 5), units=np.repeat([f"u{k:02}" for k in range(20)], 5), trials=100)
    assert five.interval.high - five.interval.low == pytest.approx(single.interval.high - single.interval.low, rel=0.1)
    assert five.paired_d == pytest.approx(single.paired_d)


@pytest.mark.parametrize("n", [16, 60])
@pytest.mark.parametrize("shift", [0.0, 0.3, 0.6])
def test_the_inverted_test_holds_0_just_where_the_test_does_not_reject(n, shift):
    for seed in range(4):
        a, b = draw_real(n, seed)
        result = compare(a + shift, b, interval="inversion", trials=4999)
        assert result.interval.method == "inversion"
        assert (result.interval.low <= 0 <= result.interval.high) == (result.p_value > 0.05)
        assert result.interval.n_resamples == (None if n == 16 else 4999)
        assert result.score_a_interval is None


def test_intervals_are_those_of_100_comparisons_or_fewer_unless_asked_for():
    scores = {f"s{k}": build_rng(k).random(12).round(2) for k in range(15)}  # 105 pairs
    assert all(r.interval is None and r.paired_d is None for r in compare_all(scores, trials=10))
    assert all(r.interval for r in compare_all(scores, trials=10, interval="auto", resamples=50))
    three_systems = {name: scores[name] for name in ("s0", "s1", "s2")}
    assert all(
        r.interval.n_resamples == 70 for r in compare_all(three_systems, trials=10, interval="bootstrap", resamples=70)
    )
    assert all(r.interval is None for r in compare_all(three_systems, trials=10, interval="none"))
    with pytest.raises(InputError, match="interval = 'bayes': must be one of auto, bootstrap, inversion, none"):
        compare_all(three_systems, interval="bayes")
    with pytest.raises(InputError, match="confidence = 95"):
        compare_all(three_systems, confidence=95)


def test_systems_that_agree_have_no_difference_to_be_sure_of():
    a, _ = draw_real(30)
    result = compare(a, a)
    assert (result.interval, result.paired_d) == (None, None)  # [0, 0] would say that no other item can differ
    binary_scores, _ = draw_binary(30)
    assert compare(binary_scores, binary_scores).interval.high == pytest.approx(
        -compare(binary_scores, binary_scores).interval.low
    )


def test_black_boxes_have_the_percentiles_of_fewer_resamples():
    a, b = draw_binary(40)

    def accuracy(outputs, gold):
        return sum(x == y for x, y in zip(outputs, gold, strict=True)) / len(outputs)

    def labels(x):
        return ["right" if is_correct else "wrong" for is_correct in x]

    gold = ["right"] * 40
    box = compare(labels(a), labels(b), gold=gold, metric=sigdask.metric(accuracy, of="outputs"), trials=50)
    assert (box.interval.method, box.interval.n_resamples) == ("bootstrap-percentile", 1000)
    sums = compare(labels(a), labels(b), gold=gold, metric="accuracy", interval="bootstrap", resamples=1000, trials=50)
    assert (box.interval.low, box.interval.high) == pytest.approx(sums.interval.percentile, abs=0.01)
    assert any("whole outputs" in text for text in box.warnings)


def test_a_black_box_without_a_score_has_no_interval_and_a_plan_goes_on_without_it():
    def never(_outputs, _gold):
        raise ValueError("no")

    a, b = draw_binary(10)
    counts = Counts.from_labels(["1"] * 10, {"a": [str(x) for x in a], "b": [str(x) for x in b]})
    spec = CompareSpec([sigdask.metric(never, of="outputs")], interval="auto")
    interval_jobs = IntervalJobs.from_comparisons(plan_jobs(counts, spec))
    assert interval_jobs.cells == []
    assert "ValueError: no" in interval_jobs.build_columns({})["interval.why"][0]


@pytest.mark.parametrize(("a", "b"), [(1000.5, 1000.5), (100, 0), (0.5, 0.3), (1 / 3, 1 / 7), (7, 7)])
def test_a_constant_difference_of_other_scores_than_0_and_1_has_no_interval_and_says_why(a, b):
    """Tango's interval of 20 scores of 1000.5 against themselves reached 161 to either side."""
    result = compare([a] * 20, [b] * 20)
    assert result.interval is None
    assert any("every unit has the same difference" in text for text in result.warnings)


def test_results_without_the_interval_that_was_asked_for_say_so():
    gold, metric = ["x", "y"] * 12, "macro-f1"
    counts = Counts.from_labels(gold, {"a": [*gold[1:], "x"], "b": gold[:12] + ["x"] * 12})
    [result] = compare_all(counts, metrics=[metric], interval="inversion")
    assert any(text.startswith("no interval: the test can be inverted only for means") for text in result.warnings)
