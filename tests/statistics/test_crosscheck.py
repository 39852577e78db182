"""Tests of cross-checks: agreement of runs, and counts against known values."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, fisher_exact

from sigdask.statistics.bounds import ALARM, compute_agreement_p, compute_fit_p, judge_known_p, judge_second_run
from sigdask.statistics.classical import compute_correlations, compute_inflation


def test_agreement_at_a_million_trials_is_fishers():
    for k1, k2 in ((106, 90), (15534, 15100), (500_000, 501_000)):
        expected = fisher_exact([[k1, 2**20 - k1], [k2, 2**20 - k2]]).pvalue
        assert compute_agreement_p(k1, k2, 2**20, 2**20) == pytest.approx(expected, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(n=st.integers(1, 2000), p=st.floats(1e-6, 0.999), data=st.data())
def test_fit_is_twice_the_smaller_binomial_tail(n, p, data):
    k = data.draw(st.integers(0, n))
    tails = (binomtest(k, n, p, alternative=side).pvalue for side in ("less", "greater"))
    assert compute_fit_p(k, n, p) == pytest.approx(min(1, 2 * min(tails)), rel=1e-8, abs=1e-300)


def test_the_alarm_is_shared_by_the_comparisons_judged_together():
    p = ALARM / 2
    assert judge_second_run([(5, 10), (6, 10)], p, 1).verdict == "disagrees"
    assert judge_second_run([(5, 10), (6, 10)], p, 10).verdict == "agrees"


def test_false_alarms_are_as_rare_as_said():
    # over all pairs of counts of two honest runs, P(agreement p < ALARM) <= ALARM, by enumeration
    n1, n2, p = 80, 20, 0.3
    k1, k2 = np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1))
    weight = binom.pmf(k1, n1, p) * binom.pmf(k2, n2, p)
    alarms = weight[compute_agreement_p(k1, k2, n1, n2) < ALARM].sum()
    assert alarms <= ALARM


def test_an_enumeration_must_equal_the_known_value():
    assert judge_known_p("sign test", 0.25, 2, 8, 1, exact=True).verdict == "agrees"
    assert judge_known_p("sign test", 0.25, 3, 8, 1, exact=True).verdict == "disagrees"
    smallest = 2.0**-20
    assert judge_known_p("sign test", smallest, 1, 2**20, 1, exact=True).verdict == "agrees"
    assert judge_known_p("sign test", smallest, 2, 2**20, 1, exact=True).verdict == "disagrees"


def test_a_tiny_p_is_judged_by_the_binomial_not_by_z():
    # 2 exceedances where 0.1 are expected: z = 6, and yet nothing to alarm (P(X >= 2) = 0.0047)
    p = 0.1 / 2**20
    expected = 2 * binomtest(2, 2**20, p, alternative="greater").pvalue
    assert compute_fit_p(2, 2**20, p) == pytest.approx(expected, rel=1e-8)
    assert judge_known_p("exact value", p, 2, 2**20, 1, exact=False).verdict == "agrees"


@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_correlations_are_numpys_at_any_size_and_undefined_for_a_constant(scale):
    values = np.random.default_rng(1).standard_normal((40, 4)) * scale
    values[:, 3] = 0.1 * scale
    correlations = compute_correlations(values)
    assert correlations[:3, :3] == pytest.approx(np.corrcoef(values[:, :3] / scale, rowvar=False), rel=1e-12)
    assert np.isnan(correlations[3]).all()
    assert np.isnan(correlations[:, 3]).all()


def test_systems_that_go_together_wholly_inflate_without_limit():
    # Yeh 2000, section 2.1: 1 / sqrt(1 - r12)
    assert compute_inflation(1.0) == compute_inflation(1.0 + 1e-16) == math.inf
    assert (compute_inflation(0.0), compute_inflation(0.75), compute_inflation(-3.0)) == (1.0, 2.0, 0.5)


def test_a_second_run_has_the_bound_of_its_own_count():
    assert judge_second_run([(7, 3999), (3, 999)], 0.5, 1).p_value == 4 / 1000
