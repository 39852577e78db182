"""Tests of intervals against other computations: BCa, Wilson's, Tango's, and the inverted test."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from builders import build_rng
from scipy import stats

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.statistics.bounds import compute_bca_shares, compute_level, count_rejected, invert_test, wilson
from sigdask.statistics.classical import MatchedProportions, compute_score_interval, compute_score_margins


def compute_two_sided_p(above, below, shift):
    """Return the exact p of the sign-flip test of differences shifted by so much, in fractions."""
    units = [Fraction(int(a)) - shift * int(b) for a, b in zip(above, below, strict=True)]
    extreme = sum(
        abs(sum(s * d for s, d in zip(signs, units, strict=True))) >= abs(sum(units))
        for signs in itertools.product((1, -1), repeat=len(units))
    )
    return Fraction(extreme, 2 ** len(units))


@pytest.mark.parametrize("seed", range(12))
def test_the_inverted_test_rejects_beyond_its_ends_and_not_at_them(seed):
    rng = build_rng(seed)
    n = int(rng.integers(5, 9))
    above = rng.integers(-5, 12, n)
    below = rng.integers(1, 4, n) if seed % 2 else np.ones(n, np.int64)
    low, high = (Fraction(end).limit_denominator(100) for end in invert_test(above, below, 0.9))
    beyond = Fraction(1, 10**9)
    assert compute_two_sided_p(above, below, low) > Fraction(1, 10) >= compute_two_sided_p(above, below, low - beyond)
    assert compute_two_sided_p(above, below, high) > Fraction(1, 10) >= compute_two_sided_p(above, below, high + beyond)


def test_so_few_units_reject_no_difference():
    assert invert_test(np.array([3, 4, 5]), np.ones(3, np.int64), 0.95) == (-np.inf, np.inf)


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ([-5, 0, 28, 4, 1, 0, 0], [1, 1, 4, 2, 1, 0, 0]),  # 0.0625 beyond the largest quotient, 7
        ([-21, -8, 0, 0, 0], [3, 4, 0, 0, 0]),  # two units with a weight reject nothing
        ([-3, 6, 9, 4, 8, 2, -4], [1, 2, 3, 1, 2, 0, 0]),
        ([5, 6, 9, 4, 8, 7, 3], [1, 2, 3, 1, 2, 0, 0]),
        ([5, 6, 9, 4, 8, 3, -3], [1, 2, 3, 1, 2, 0, 0]),
    ],
)
def test_units_without_weight_are_units_of_the_inverted_test(above, below):
    """The oracle enumerates all swaps in fractions, at both ends and beyond them."""
    alpha, beyond, far = Fraction(1, 10), Fraction(1, 10**9), 10**6
    for end, side in zip(invert_test(np.array(above), np.array(below), 0.9), (-1, 1), strict=True):
        if np.isfinite(end):
            exact_end = Fraction(end).limit_denominator(100)
            outside = compute_two_sided_p(above, below, exact_end + side * beyond)
            assert compute_two_sided_p(above, below, exact_end) > alpha >= outside
        else:
            assert end == side * np.inf
            assert compute_two_sided_p(above, below, side * far) > alpha


def test_units_without_weight_are_units_of_trials_too():
    """22 units without difference and weight change nothing, so the ends are those over all swaps of the rest."""
    above, below = np.array([9, -4, 6, 12, 3, 2, 3, 7]), np.array([2, 1, 3, 2, 1, 0, 0, 0])
    expected = invert_test(above, below, 0.95)
    scores, weights = np.zeros((30, 2), np.int64), np.zeros((30, 1), np.int64)
    scores[:8, 0], weights[:8, 0] = above, below
    counts = Counts(("a", "b"), {"score": scores, "items": weights}, 30, suggested=("mean",))
    interval = compare_all(counts, interval="inversion")[0].interval
    assert (interval.low, interval.high) == pytest.approx(expected, abs=0.05)
    assert np.isfinite(expected).tolist() == [True, False]


def test_an_interval_that_is_inverted_by_all_subsets_turns_with_the_signs():
    above, below = build_rng(3).integers(-9, 30, 11), np.ones(11, np.int64)
    low, high = invert_test(above, below, 0.95)
    assert invert_test(-above, below, 0.95) == (-high, -low)


def test_a_level_is_what_was_meant():
    assert (compute_level(0.95), compute_level(0.9), compute_level(0.999)) == (0.05, 0.1, 0.001)
    assert count_rejected(0.95, 19, is_exact=False) == 1  # (0 + 1) / 20 is 0.05 and is rejected, (1 + 1) / 20 is not


def test_bca_shares_are_efrons():
    """Efron & Tibshirani 1993, (14.10), by hand for z0 = 0.146 and a = 0.061 (their spatial data, page 187): 0.110 and
    0.985 at 90 %.
    """
    below = stats.norm.cdf([0.146])
    low, high = compute_bca_shares(below, np.array([0.061]), 0.9)
    assert (float(low[0]), float(high[0])) == pytest.approx((0.110, 0.985), abs=6e-4)


def test_bca_is_not_defined_where_no_resample_lies_below():
    low, high = compute_bca_shares(np.array([0.0, 1.0, 0.5]), np.zeros(3), 0.95)
    assert np.isnan(low).tolist() == np.isnan(high).tolist() == [True, True, False]


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (57, 400)])
def test_wilsons_interval_is_scipys(k, n):
    want = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
    assert np.array(wilson(k, n, 0.95)) == pytest.approx([want.low, want.high], abs=1e-12)


def test_tangos_interval_is_where_his_score_test_ceases_to_reject():
    """Tango 1998: 44 pairs, one discordant; and of many tables at once, as of each."""
    low, high = compute_score_interval(0, 1, 44, 0.9)
    assert (round(float(low), 3), round(float(high), 3)) == (-0.096, 0.037)
    wins, losses, n = np.array([0, 12, 0, 7]), np.array([0, 3, 9, 7]), np.array([20, 50, 9, 300])
    low, high = compute_score_interval(wins, losses, n, 0.95)
    limits = [(-compute_score_margins(*table, 0.025), compute_score_margins(table[1], table[0], table[2], 0.025))
            for table in zip(wins, losses, n, strict=True)]  # fmt: skip
    assert np.column_stack([low, high]) == pytest.approx(np.array(limits), abs=1e-12)
    assert low[0] == -high[0] < 0  # no discordance: still, others may differ


def test_tangos_interval_and_the_gate_are_one_function():
    proportions = MatchedProportions(wins=3, losses=9, n_items=400)
    low, _ = compute_score_interval(3, 9, 400, 0.9)
    assert proportions.compute_p_value(-float(low), 0.05) == pytest.approx(0.05, abs=1e-9)
