"""Tests of exact power of sign tests, of tilted weights, and of the search for a required power."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from scipy import stats

from sigdask.statistics import power as tilting
from sigdask.statistics.power import PowerCrossing, compute_critical_wins, compute_sign_power


def is_rejected(wins, losses, alpha, sides):
    """Return whether the exact sign test rejects, by its definition in fractions."""
    n, n_more = wins + losses, max(wins, losses) if sides == 2 else wins
    tail = sum(Fraction(comb(n, k), 2**n) for k in range(n_more, n + 1))
    return min(1, tail * (sides if wins != losses or sides == 1 else 1)) <= Fraction(alpha)


@pytest.mark.parametrize("sides", [1, 2])
@pytest.mark.parametrize(("wins", "losses"), [("1/2", "1/10"), ("3/10", "3/10"), ("9/10", "1/10"), ("1/5", "0")])
def test_power_is_the_sum_over_all_numbers_of_wins_and_losses(wins, losses, sides):
    n, p, q = 13, Fraction(wins), Fraction(losses)
    expected = sum(
        comb(n, w) * comb(n - w, lost) * p**w * q**lost * (1 - p - q) ** (n - w - lost)
        for w, lost in product(range(n + 1), repeat=2)
        if w + lost <= n and is_rejected(w, lost, "1/20", sides)
    )
    assert compute_sign_power(n, float(p), float(q), 0.05, sides) == pytest.approx(float(expected), abs=1e-12)


def test_the_critical_number_of_wins_is_the_smallest_that_rejects():
    n = np.arange(0, 400)
    for alpha, sides in ((0.05, 2), (0.01, 1), (1e-4, 2)):
        wins = compute_critical_wins(n, alpha, sides)
        assert (sides * stats.binom.sf(wins - 1, n, 0.5) <= alpha)[wins <= n].all()
        assert (sides * stats.binom.sf(wins - 2, n, 0.5) > alpha)[wins > 0].all()


def compute_connor_units(p_changed, p_apart, power=0.8, alpha=0.05):
    """Units for McNemar's test: Connor 1987, "Sample size for testing differences in proportions for the
    paired-sample design", Biometrics 43, formula (3)."""
    z, w = stats.norm.isf(alpha / 2), stats.norm.ppf(power)
    return (z * np.sqrt(p_changed) + w * np.sqrt(p_changed - p_apart**2)) ** 2 / p_apart**2


@pytest.mark.parametrize(("p_changed", "p_apart"), [(0.5, 0.4), (0.3, 0.1), (0.5, 0.2), (0.2, 0.05), (0.6, 0.1)])
def test_units_of_the_exact_test_are_those_of_connor_and_some_more_for_its_conservatism(p_changed, p_apart):
    p, q = (p_changed + p_apart) / 2, (p_changed - p_apart) / 2
    search = PowerCrossing(0.8, 1.96, compute_connor_units(p_changed, p_apart), 6, 1e6, is_integer=True)
    while search.answer is None:
        search.add_power(compute_sign_power(int(search.place), p, q, 0.05, 2), 0.0)
    n, expected = search.answer.value, compute_connor_units(p_changed, p_apart)
    assert compute_sign_power(int(n), p, q, 0.05, 2) >= 0.8 > compute_sign_power(int(n) - 1, p, q, 0.05, 2)
    assert expected <= n <= 1.01 * expected + 2 / p_apart + 2  # the exact test's correction is about 1 / |p - q| units


def test_a_tilt_gives_the_difference_wanted_and_keeps_the_units():
    d = np.array([-0.5, -0.1, 0.0, 0.2, 0.4, 1.0])
    for target in (-0.49, -0.2, 0.1, 0.166, 0.99):
        strength = tilting.find_strength(d, lambda w: float(w @ d), target)
        weights = tilting.compute_weights(d, strength)
        assert float(weights @ d) == pytest.approx(target, abs=1e-12)
        assert (weights > 0).all()
        ratios = np.diff(np.log(weights)) / np.diff(d)  # exponential: log weights are linear in what units add
        assert np.ptp(ratios) < 1e-6 * max(1, abs(strength))


def test_a_difference_beyond_the_largest_is_not_reached():
    d = np.array([-0.5, 0.0, 0.4])
    assert tilting.find_strength(d, lambda w: float(w @ d), 0.41) is None
    assert tilting.find_extreme_difference(d, lambda w: float(w @ d), 1) == pytest.approx(0.4)
    assert tilting.find_extreme_difference(d, lambda w: float(w @ d), -1) == pytest.approx(-0.5)


def test_the_difference_that_all_units_have_is_reached_whatever_rounding_does():
    d = np.full(30, 0.1)
    assert tilting.find_strength(d, lambda w: float(w @ d) - 1e-17, 0.1) == 0.0
    assert tilting.find_strength(d, lambda w: float(w @ d), 0.1001) is None


def test_a_search_among_units_ends_at_the_first_that_has_the_power():
    for true in (7, 33, 420, 123_456):
        search = PowerCrossing(0.8, 1.96, 50, 6, 10**9, is_integer=True)
        looks = 0
        while search.answer is None:
            search.add_power(float(stats.norm.cdf(2.8 * np.sqrt(search.place / true) - 1.96)), 0.0)
            looks += 1
        assert search.answer.value == np.ceil(true * ((stats.norm.ppf(0.8) + 1.96) / 2.8) ** 2)
        assert looks < 40


def test_a_power_that_nothing_reaches_is_infinitely_far():
    search = PowerCrossing(0.8, 1.96, 0.1, 0.0, 0.3, is_integer=False)
    while search.answer is None:
        search.add_power(0.4, 0.01)
    assert search.answer.value == np.inf
