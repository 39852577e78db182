"""Tests of real-valued fields, huge counts and ties of floats, by enumeration with fractions or by hand."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sigdask
from sigdask import Counts, compare_all
from sigdask.counts.precision import ScoreScale
from sigdask.errors import InputError
from sigdask.nightly.gate.margin_tests import compute_normal_p
from sigdask.statistics.ranking_letters import rank_systems

N_ITEMS = 9


def enumerate_p(above, below, score, alternative="two-sided"):
    """Return p of all swaps of items, in fractions; above and below are (n_items, 2) lists of fractions."""

    def compute_score(swaps, side):
        sums = [
            sum((row[side ^ s] for row, s in zip(field, swaps, strict=True)), Fraction()) for field in (above, below)
        ]
        return score(*sums)

    differences = [compute_score(swaps, 0) - compute_score(swaps, 1) for swaps in product((0, 1), repeat=N_ITEMS)]
    t = differences[0]
    extreme = {
        "two-sided": sum(abs(d) >= abs(t) for d in differences),
        "greater": sum(d >= t for d in differences),
        "less": sum(d <= t for d in differences),
    }[alternative]
    return extreme / 2**N_ITEMS


def convert_to_fractions(field):
    return [
        [Fraction(value).limit_denominator(1000) for value in row]
        for row in np.broadcast_to(field, (N_ITEMS, 2)).tolist()
    ]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("parts", [2, 4, 10])
def test_weights_of_items_that_differ_between_systems(seed, alternative, parts):
    rng = np.random.default_rng(seed)
    scores, items = rng.integers(0, 2, (N_ITEMS, 2)), rng.integers(1, 2 * parts, (N_ITEMS, 2)) / parts
    counts = Counts(("a", "b"), {"score": scores.astype(float), "items": items}, N_ITEMS)
    how = {"metrics": ["mean"], "alternative": alternative, "interval": "none", "cluster": "none"}
    [r] = compare_all(counts, **how)
    true = enumerate_p(convert_to_fractions(scores), convert_to_fractions(items), lambda a, n: a / n, alternative)
    assert (r.method, r.p_value) == ("exact", true)
    [sampled] = compare_all(counts, method="randomization", trials=20_000, **how)
    assert abs(sampled.p_value - true) <= 5 * math.sqrt(true * (1 - true) / 20_000) + 1 / 20_000


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("metric", ["precision", "f1", "macro-f1"])
def test_predictions_with_weights(seed, metric):
    rng = np.random.default_rng(seed)
    predicted = rng.integers(1, 5, (N_ITEMS, 2)) / 2
    tp, gold = np.minimum(np.floor(predicted), rng.integers(0, 3, (N_ITEMS, 2))), rng.integers(2, 4, (N_ITEMS, 1))
    names = ("tp[x]", "predicted[x]", "gold[x]") if metric == "macro-f1" else ("tp", "predicted", "gold")
    fields = dict(zip(names, (tp.astype(int), predicted, gold), strict=True))
    counts = Counts(("a", "b"), fields, N_ITEMS, labels=("x",) if metric == "macro-f1" else ())
    [r] = compare_all(counts, metrics=[metric], interval="none", cluster="none")
    n_gold = Fraction(int(gold.sum()))

    def score(right, given):
        return right / given if metric == "precision" else 2 * right / (given + n_gold)

    assert r.p_value == enumerate_p(convert_to_fractions(tp), convert_to_fractions(predicted), score)


def test_the_unit_of_weights_that_all_systems_share_changes_no_p():
    scores = np.random.default_rng(3).integers(0, 3, (6, 3)).astype(float)
    p_values = [
        [
            (r.p_value, r.p_adjusted)
            for r in compare_all(
                Counts(("a", "b", "c"), {"score": scores, "items": items}, 6),
                metrics=["mean"], adjust=adjust, cluster="none",
            )
        ]
        for adjust in ("tukey", "max-t")
        for items in (np.ones((6, 1), np.int64), np.full((6, 1), 1.5), np.full((6, 1), 1 / 3))
    ]  # fmt: skip
    assert p_values[0] == p_values[1] == p_values[2]
    assert p_values[3] == p_values[4] == p_values[5]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_field_without_a_finite_number_is_an_error_that_names_it(value):
    scores = np.array([[0.1, 0.4]] * 3 + [[0.1, value]] * 3)
    counts = Counts(("a", "b"), {"score": scores, "items": np.ones((6, 1), int)}, 6, ids=tuple("pqrstu"))
    with pytest.raises(InputError, match="system 'b', item 's'"):
        compare_all(counts, metrics=["mean"], cluster="none")
    present = np.isfinite(scores)
    gaps = Counts(("a", "b"), {"score": scores, "items": np.ones((6, 1), int)}, 6, present=present)
    assert compare_all(gaps, metrics=["mean"], cluster="none")[0].n_items == 3


def test_counts_whose_sum_would_overflow_are_refused():
    def of(value):
        return Counts(("a", "b"), {"score": np.array([[value, 0]] * 8), "items": np.ones((8, 1), int)}, 8)

    with pytest.raises(InputError, match=r"must be below 2\*\*62"):
        compare_all(of(2**61), metrics=["mean"], cluster="none")
    assert compare_all(of(2**58), metrics=["mean"], cluster="none")[0].p_value == 2 / 256


def test_noise_in_the_last_bit_is_a_tie_to_every_check():
    rng = np.random.default_rng(0)
    a = rng.random(3000)
    [r] = compare_all(
        Counts.from_scores({"a": a, "b": a * (1 + 2.0**-52)}), metrics=["mean"], trials=10_000, cluster="none"
    )
    assert r.p_value == 1.0
    assert r.better() is None
    assert not r.disagreements()


def test_ties_of_floats_are_ties_in_words_and_ranks():
    scores = {"a": [1 / 3, 1 / 3, 1 / 3, 0.0], "b": [1.0, 0.0, 0.0, 0.0], "c": [0.0, 0.0, 0.0, 0.0]}
    results = compare_all(Counts.from_scores(scores), metrics=["mean"], cluster="none")
    result = next(r for r in results if (r.a, r.b) == ("a", "b"))
    assert (result.difference, result.better(), result.p_value) == (0.0, None, 1.0)
    ranked = rank_systems(["a", "b", "c"], np.array([0.1 + 0.2, 0.3, 0.2]), np.empty((0, 2), np.int64))
    assert [row.rank for row in ranked] == [1, 1, 3]


def zeros(outputs, _):
    return float(outputs.count(0.0))


def test_a_black_box_sees_the_zero_of_what_is_missing():
    counts = Counts.from_scores({"a": [1.0, math.nan, 0.0], "b": [1.0, 1.0, 1.0]}, missing="zero")
    [r] = compare_all(counts, metrics=[sigdask.black_box(zeros)], cluster="none")
    assert (r.score_a, r.score_b) == (2.0, 0.0)
    with pytest.raises(InputError, match="black_box"):
        compare_all(counts, metrics=[zeros], cluster="none")


def test_decimals_of_long_lists_are_exact():
    values = np.round(np.random.default_rng(0).random(100_000) * 100, 2)
    assert ScoreScale.from_scores(values).digits == 2
    assert ScoreScale.from_scores(np.array([1 / 3] * 10)).digits is None
    a, b = values.copy(), values.copy()
    a[0], b[1] = a[0] + 0.01, b[1] + 0.01
    [r] = compare_all(Counts.from_scores({"a": np.round(a, 2), "b": np.round(b, 2)}), metrics=["mean"], cluster="none")
    assert (r.p_value, r.n_discordant) == (1.0, 2)


def test_a_note_says_how_finely_scores_beside_an_outlier_are_told_apart():
    rng = np.random.default_rng(1)
    a, b = rng.random(30), rng.random(30)
    [r] = compare_all(Counts.from_scores({"a": [*a, 1e17], "b": [*b, 1e17]}), metrics=["mean"], cluster="none")
    assert r.p_value == 1.0
    assert r.warnings[0].startswith("the sampled p is an upper bound: some differences are smaller than 1.3e+02")


def test_nothing_is_shown_where_nothing_spreads():
    assert compute_normal_p(0.5, 0.0) == 1.0
