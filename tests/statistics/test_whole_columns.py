"""Tests that functions of whole columns of counts give what one count gives, by other code."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact

from sigdask.statistics.bounds import (
    clopper_pearson,
    compute_agreement_p,
    compute_bound,
    compute_fit_p,
    compute_p_value,
    matches_share,
)
from sigdask.statistics.classical import compute_correlations, sign_test
from sigdask.statistics.numbering import find_distinct_rows


def compute_sign_test_p(wins: int, losses: int, alternative: str) -> Fraction:
    n = wins + losses
    below = {"two-sided": min(wins, losses), "greater": losses, "less": wins}[alternative]
    share = Fraction(sum(comb(n, i) for i in range(below + 1)), 2**n)
    return min(Fraction(1), 2 * share) if alternative == "two-sided" else share


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_sign_tests_of_many_are_the_nearest_floats_to_fractions(alternative):
    rng = np.random.default_rng(5)
    wins, losses = rng.integers(0, 60, 400), rng.integers(0, 60, 400)
    wins[:3], losses[:3] = [0, 7, 0], [0, 0, 7]
    expected = [
        float(compute_sign_test_p(w, x, alternative)) for w, x in zip(wins.tolist(), losses.tolist(), strict=True)
    ]
    assert sign_test(wins, losses, alternative).tolist() == expected


def test_sign_tests_beyond_what_is_summed_in_integers_are_scipys():
    wins, losses = np.array([400, 600, 5000, 120]), np.array([700, 600, 5200, 3])
    expected = [binomtest(w, w + x).pvalue for w, x in zip(wins.tolist(), losses.tolist(), strict=True)]
    assert sign_test(wins, losses) == pytest.approx(expected, rel=1e-11)


def test_agreement_of_many_runs_is_fishers_and_of_unlike_lengths_too():
    rng = np.random.default_rng(6)
    n1, n2 = rng.integers(1, 5000, (2, 60))
    k1, k2 = rng.integers(0, n1 + 1), rng.integers(0, n2 + 1)
    rows = [*zip(k1.tolist(), k2.tolist(), n1.tolist(), n2.tolist(), strict=True)]
    tables = [[[a, m - a], [b, n - b]] for a, b, m, n in rows]
    expected = [
        min(1, 2 * min(fisher_exact(t, alternative=side).pvalue for side in ("less", "greater"))) for t in tables
    ]
    assert compute_agreement_p(k1, k2, n1, n2) == pytest.approx(expected, rel=1e-6, abs=1e-300)
    assert compute_agreement_p(k1, k2, n1, n2).tolist() == [float(compute_agreement_p(*row)) for row in rows]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 300)), max_size=30))
def test_intervals_of_many_are_those_of_clopper_and_pearson(pairs):
    k = np.array([min(k, n) for k, n in pairs], np.int64)
    n = np.array([n for _, n in pairs], np.int64)
    low, high = clopper_pearson(k, n)
    expected = [binomtest(a, b).proportion_ci(0.99) for a, b in zip(k.tolist(), n.tolist(), strict=True)]
    assert low == pytest.approx([e.low for e in expected], rel=1e-7, abs=1e-12)
    assert high == pytest.approx([e.high for e in expected], rel=1e-7)


def test_fits_of_many_are_twice_the_smaller_tail_and_certain_ones_are_certain():
    k, n, p = np.array([3, 10, 9, 0]), np.array([10, 10, 10, 10]), np.array([0.2, 1.0, 1.0, 0.3])
    p_of_three = min(binomtest(3, 10, 0.2, alternative=side).pvalue for side in ("less", "greater"))
    assert compute_fit_p(k, n, p) == pytest.approx([2 * p_of_three, 1.0, 0.0, 2 * 0.7**10])


def test_bounds_and_shares_of_many():
    assert compute_bound([0, 99], [99, 99]).tolist() == [0.01, 1.0]
    assert compute_p_value([3, 3, 0], [16, 31, 0], exact=[True, False, False]).tolist() == [3 / 16, 4 / 32, 1.0]
    assert matches_share([3, 4], [16, 16], [3 / 16, 3 / 16]).tolist() == [True, False]


def test_nothing_gives_nothing():
    none = np.empty(0, np.int64)
    for values in (
        sign_test(none, none),
        compute_agreement_p(none, none, none, none),
        *clopper_pearson(none, none),
        compute_bound(none, none),
    ):
        assert values.shape == (0,)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=40))
def test_distinct_pairs_give_back_every_row(pairs):
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    distinct, positions = find_distinct_rows(rows)
    assert (distinct[positions] == rows).all()
    assert distinct.tolist() == sorted(map(list, set(pairs)))


def test_correlations_are_numpys_however_the_items_are_laid_out():
    rng = np.random.default_rng(7)
    values = rng.normal(size=(101, 5)) * [1, 1e-6, 1e6, 1, 0]
    values[:, 3] += values[:, 0]
    expected = np.corrcoef(values[:, :4].T)
    for size in (1, 10, 101):
        correlations = compute_correlations(lambda size=size: (values[k : k + size] for k in range(0, 101, size)))
        assert correlations[:4, :4] == pytest.approx(expected, rel=1e-11)
        assert np.isnan(correlations[4]).all()
