"""Tests of refusing problems that are too large, of deadlines, and of splitting work into parts."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from sigdask.statistics.exact import (
    EnumeratedScore,
    MethodLimits,
    NoMethod,
    QuotientProblem,
    SumProblem,
    TooLargeError,
    choose_method,
    iter_methods,
    solve,
)
from sigdask.statistics.exact.problems import StepSizes
from sigdask.statistics.exact.sums import (
    _iter_passes,
    bound_outside,
    compute_window,
    count_pairings,
    estimate_convolution_cost,
)

RNG = np.random.default_rng(5)
REAL_PROBLEM = SumProblem(RNG.integers(-(2**45), 2**45, 40), slack=160)
LONG_PROBLEM = SumProblem(RNG.integers(-300, 301, 3000))
SENTENCES = RNG.integers(0, 4, (2, 900, 2))
COUNTS = QuotientProblem.from_counts(*SENTENCES, SENTENCES.sum(axis=1), [[1, 0]], [[1, 1]])
BLACK_BOX = EnumeratedScore(
    RNG.integers(-9, 10, (60, 10)), np.full((2, 10), 900), lambda sums: sums[..., 0] / sums[..., 1]
)


def test_a_refusal_says_what_would_be_needed():
    small = MethodLimits(operations=10**4, n_bytes=10**5)
    for problem in (REAL_PROBLEM, LONG_PROBLEM, COUNTS):
        refused = choose_method(problem, small)
        assert isinstance(refused, NoMethod)
        assert refused.needed in list(iter_methods(problem))
        assert refused.needed.method in refused.reason
        assert choose_method(problem, MethodLimits(refused.needed.operations, refused.needed.n_bytes)) == refused.needed


def test_where_there_is_no_method_that_is_said():
    refused = choose_method(BLACK_BOX)
    assert isinstance(refused, NoMethod)
    assert refused.needed is None
    assert refused.reason.startswith("the 60 units on which the systems differ")
    with pytest.raises(TooLargeError, match="the 60 units on which the systems differ"):
        solve(BLACK_BOX)


def test_numbers_larger_than_any_float_are_refused_in_words():
    fields = RNG.integers(-(10**9), 10**9, (4000, 3))
    for problem in (
        SumProblem(RNG.integers(-(2**48), 2**48, 4000)),
        EnumeratedScore(fields, fields[:2], lambda sums: sums[..., 0]),
        EnumeratedScore(RNG.integers(-9, 10, (4000, 10)), np.ones((2, 10), np.int64), lambda sums: sums[..., 0]),
    ):
        refused = choose_method(problem, MethodLimits(10**6, 10**6))
        assert isinstance(refused, NoMethod)
        assert "e+" in refused.reason


@pytest.mark.parametrize(
    "differences", [[1, 2, 2, 3, 5, 8, 40, 90, 90], [7, -7, 3, 3, 1, 60, -20], [5, 5, 5, 5, 5, -90]]
)
def test_the_largest_units_may_be_in_neither_half(monkeypatch, differences):
    """Against sums of all subsets: sometimes the largest units reach a threshold alone, sometimes nothing does."""
    monkeypatch.setattr("sigdask.statistics.exact.sums.MAX_HALF", 2)
    steps = StepSizes.from_differences(differences)
    sums = [sum(w * bit for w, bit in zip(steps.weights.tolist(), bits, strict=True))
            for bits in product((0, 1), repeat=steps.n)]  # fmt: skip
    assert count_pairings(steps) == [sum(x >= threshold for x in sums) for threshold in steps.thresholds]


@pytest.mark.parametrize(("n", "low", "high"), [(40, 0, 25), (40, 12, 40), (41, 10, 22), (7, 3, 4), (1000, 440, 1000)])
def test_what_is_left_out_of_a_binomial_is_at_most_its_bound(n, low, high):
    assert stats.binom.cdf(low - 1, n, 0.5) + stats.binom.sf(high, n, 0.5) <= bound_outside(n, low, high)


@pytest.mark.parametrize("differences", [[1] * 30 + [500], [7] * 900, [3, 4, 5]])
def test_the_estimated_bytes_hold_both_distributions_of_each_pass(differences):
    steps = StepSizes.from_differences(differences)
    widest = max(step.width for step in _iter_passes(steps, compute_window(steps)))
    assert 2 * 8 * widest <= estimate_convolution_cost(steps)[1]
