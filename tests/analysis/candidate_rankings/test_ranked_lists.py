"""Tests of n-best lists and their average precision, against all orders of tied candidates."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from sigdask.statistics.bounds import clopper_pearson
from sigdask.statistics.candidates import (
    RankedList,
    average_precision,
    binomial_test,
    compute_coverage,
    compute_expected_misses,
    compute_list_limits,
    compute_widened_interval,
    count_n_best,
    estimate_dispersion,
    fisher_exact,
)


def iter_orders(scores, gold):
    """Yield every order of the list that its scores allow."""
    groups = [[k for k in range(len(scores)) if scores[k] == s] for s in sorted({*scores}, reverse=True)]
    for parts in product(*map(permutations, groups)):
        yield [int(gold[k]) for part in parts for k in part]


def compute_average_precision(row):
    n_true, total = 0, Fraction(0)
    for rank, true in enumerate(row, start=1):
        n_true += true
        total += Fraction(n_true * true, rank)
    return total / n_true


@pytest.mark.parametrize("seed", range(6))
def test_ties_are_counted_as_all_their_orders_are(seed):
    rng = np.random.default_rng(seed)
    scores, gold = rng.integers(0, 3, 7).astype(float), rng.random(7) < 0.5
    gold[:2] = [True, False]
    ranked, cutoffs = RankedList.from_scores(scores, gold, np.arange(7)), np.arange(1, 8)
    orders = list(iter_orders(scores, gold))
    best = count_n_best(ranked, cutoffs)
    for n in cutoffs:
        counts = [sum(row[:n]) for row in orders]
        assert best.mean[n - 1] == pytest.approx(float(Fraction(sum(counts), len(counts))), rel=1e-12)
        assert (best.lowest[n - 1], best.highest[n - 1]) == (min(counts), max(counts))
    mean = sum(map(compute_average_precision, orders)) / len(orders)
    assert average_precision(ranked) == pytest.approx(float(mean), rel=1e-12)


def test_fishers_test_is_that_of_scipy_and_r(oracles):
    o = oracles["evert_fisher_nbest"]
    cells = [o["inputs"][side][kind] for side in ("A_only", "B_only") for kind in ("tp", "fp")]
    assert fisher_exact(*(np.array([n]) for n in cells))[0] == pytest.approx(o["expected"], abs=o["tolerance"])
    tables = np.random.default_rng(0).integers(0, 60, (150, 4))
    expected = [stats.fisher_exact(table.reshape(2, 2))[1] for table in tables]
    np.testing.assert_allclose(fisher_exact(*tables.T), expected, rtol=1e-9)
    assert fisher_exact(*(np.array([n]) for n in (0, 0, 3, 4)))[0] == 1.0


def test_the_true_candidates_of_a_list_are_those_that_no_tail_of_the_hypergeometric_rules_out():
    rng = np.random.default_rng(1)
    for n in rng.integers(1, 50, 60):
        m = rng.integers(0, n + 1)
        k = rng.integers(0, m + 1)
        fits = [
            n_true_total
            for n_true_total in range(k, n - (m - k) + 1)
            if stats.hypergeom.sf(k - 1, n, n_true_total, m) > 0.025
            and stats.hypergeom.cdf(k, n, n_true_total, m) > 0.025
        ]
        low, high = compute_list_limits(np.array([k]), np.array([m]), np.array([n]), 0.95)
        assert (low[0], high[0]) == (fits[0], fits[-1])


@pytest.mark.parametrize("name", ["cp_30_100", "cp_mc_96", "cp_zero_999"])
def test_intervals_of_precision_are_those_of_r(oracles, name):
    o = oracles[name]
    k, n = np.array([o["inputs"]["k"]]), np.array([o["inputs"]["n"]])
    for low, high in (clopper_pearson(k, n, 0.95), compute_widened_interval(k, n, 0.95)):
        assert [low[0], high[0]] == pytest.approx(o["expected"], abs=o["tolerance"])


# ---- Evert 2004, section 4


@pytest.mark.parametrize("name", ["evert_binom_12_80", "evert_binom_9_80"])
def test_everts_intervals_miss_more_often_than_they_should(oracles, name):
    # 12 of 80 is printed as p < .001; 9 of 80, twice and unremarked, is significant at 5 % as well
    o = oracles[name]
    assert binomial_test(o["inputs"]["k"], o["inputs"]["n"], o["inputs"]["p"]) == pytest.approx(
        o["expected"], abs=o["tolerance"]
    )
    low = np.where(np.arange(80) < o["inputs"]["k"], 0.5, 0.0)
    coverage = compute_coverage(low, np.ones(80), 0.3, 0.95)
    assert (coverage.n_outside, coverage.n_samples) == (o["inputs"]["k"], 80)
    assert coverage.p_value == pytest.approx(o["expected"], abs=1e-12)
    assert coverage.p_value < 0.05


# ---- repeated samples


def test_dispersion_is_that_of_pearsons_chi_squared():
    rng = np.random.default_rng(2)
    accepted = rng.integers(60, 140, 40)
    true = rng.binomial(accepted, 0.3)
    expected = stats.chi2_contingency(np.stack([true, accepted - true]), correction=False)
    dispersion = estimate_dispersion(true, accepted)
    assert (dispersion.chi2, dispersion.df) == (pytest.approx(expected.statistic, rel=1e-12), 39)
    assert dispersion.p_value == pytest.approx(expected.pvalue, rel=1e-10)


def test_exact_intervals_are_expected_to_miss_as_often_as_all_outcomes_say():
    outcomes = np.arange(101)
    low, high = clopper_pearson(outcomes, np.full(101, 100), 0.95)
    missed = (low > 0.3) | (high < 0.3)
    assert compute_expected_misses(np.full(80, 100), 0.3, 0.95) == pytest.approx(
        80 * stats.binom.pmf(outcomes, 100, 0.3)[missed].sum(), rel=1e-10
    )
