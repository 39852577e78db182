"""Tests of real-valued fields, huge counts and ties of floats, by enumeration with fractions or by hand."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sigdask import Counts, compare_all
from sigdask.errors import InputError

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


@pytest.mark.slow
def test_the_unit_of_weights_that_all_systems_share_changes_no_p():
    scores = np.random.default_rng(3).integers(0, 3, (6, 3)).astype(float)
    for adjust in ("tukey", "max-t"):
        found = set()
        for size in (1, 1.5, 1 / 3):
            counts = Counts(("a", "b", "c"), {"score": scores, "items": np.full((6, 1), size)}, 6)
            results = compare_all(counts, metrics=["mean"], adjust=adjust, cluster="none")
            found.add(tuple((r.p_value, r.p_adjusted) for r in results))
        assert len(found) == 1


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
