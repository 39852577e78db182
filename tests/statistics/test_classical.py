"""Tests of the classical tests against enumeration in fractions, SciPy and published figures."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from builders import build_rng
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sigdask.statistics.classical import (
    WILCOXON_EXACT_UP_TO,
    two_proportion_z,
    wilcoxon,
)

ALTERNATIVES = ("two-sided", "greater", "less")


def enumerate_wilcoxon(d, side):
    """Return the sum of positive ranks and its p over all signs of the ranks, by definition."""
    differences = [x for x in d if x]
    sizes = [abs(x) for x in differences]
    ranks = [Fraction(sum(s < t for s in sizes) * 2 + sum(s == t for s in sizes) + 1, 2) for t in sizes]
    signed_ranks = [(r, x > 0) for r, x in zip(ranks, differences, strict=True) if x]
    statistic = sum(r for r, is_positive in signed_ranks if is_positive)
    mean = sum(r for r, _ in signed_ranks) / 2
    sums = [
        sum(r for (r, _), is_positive in zip(signed_ranks, signs, strict=True) if is_positive)
        for signs in product((0, 1), repeat=len(signed_ranks))
    ]
    extreme = {
        "greater": lambda s: s >= statistic,
        "less": lambda s: s <= statistic,
        "two-sided": lambda s: abs(s - mean) >= abs(statistic - mean),
    }[side]
    return statistic, Fraction(sum(map(extreme, sums)), len(sums))


@settings(deadline=None)  # compiled on the first call
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=9), st.sampled_from(ALTERNATIVES))
def test_wilcoxon_is_exact_with_ties_and_zeros(d, side):
    statistic, p = enumerate_wilcoxon(d, side)
    result = wilcoxon([d], side)
    assert result.statistic[0] == statistic
    assert result.p_value[0] == pytest.approx(float(p), rel=1e-13)
    assert result.n[0] == sum(x != 0 for x in d)


@pytest.mark.parametrize("side", ALTERNATIVES)
def test_wilcoxon_of_distinct_sizes_is_scipys_exact_one_up_to_the_last_exact_size(side):
    rng = build_rng(1)
    for n in (3, 20, 50, WILCOXON_EXACT_UP_TO):
        d = rng.normal(0.2, 1, n)
        want = stats.wilcoxon(d, alternative=side, method="exact")
        assert wilcoxon([d], side).p_value[0] == pytest.approx(want.pvalue, rel=1e-11)


@pytest.mark.parametrize("side", ALTERNATIVES)
def test_wilcoxon_of_many_is_scipys_normal_approximation(side):
    d = build_rng(2).integers(-20, 23, (5, 400)).astype(float)
    result = wilcoxon(d, side)
    want = [stats.wilcoxon(x, alternative=side, method="approx", correction=False) for x in d]
    assert result.p_value == pytest.approx([w.pvalue for w in want], rel=1e-12)
    sums = [stats.wilcoxon(x, alternative="greater", method="approx").statistic for x in d]
    assert result.statistic.tolist() == sums


def test_rows_are_tested_each_on_its_own_whatever_stands_beside_them():
    d = build_rng(3).integers(-5, 6, (300, 2000)).astype(float)  # sorted in parts
    alone = [wilcoxon(d[k : k + 1]).p_value[0] for k in (0, 150, 299)]
    assert wilcoxon(d).p_value[[0, 150, 299]].tolist() == alone


@settings(deadline=None)  # compiled on the first call
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_the_square_of_z_is_scipys_chi_square(right_a, wrong_a, right_b, wrong_b):
    table = np.array([[right_a, wrong_a], [right_b, wrong_b]])
    shares = right_a, right_a + wrong_a, right_b, right_b + wrong_b
    z, p = two_proportion_z(*shares)
    if (table.sum(axis=0) == 0).any() or (table.sum(axis=1) == 0).any():
        assert np.isnan(z)
        assert p == 1 or (table.sum(axis=1) == 0).any()
        return
    want = stats.chi2_contingency(table, correction=False)
    assert [float(z**2), float(p)] == pytest.approx([want.statistic, want.pvalue], rel=1e-9, abs=1e-15)
    sides = [two_proportion_z(*shares, side)[1] for side in ("greater", "less")]
    assert sum(sides) == pytest.approx(1)
    assert min(sides) == pytest.approx(p / 2)
