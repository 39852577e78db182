"""Tests of every exact method against all arrangements in fractions, and against each other."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from arrangements import enumerate_scores, enumerate_sums, sum_quotients
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.statistics.exact import (
    TAILS,
    EnumeratedScore,
    QuotientProblem,
    SumProblem,
    choose_method,
    iter_methods,
    solve,
)

RELATIVE_ERRORS = {"exact": 0.0, "certified": 1e-12}


def check_agreement(result, truth):
    """Check that a fraction equals the truth, or that limits hold it and are as near as claimed."""
    for name in TAILS:
        low, high = getattr(result, name.replace("-", "_"))
        if result.rationals is not None:
            assert result.rationals[name] == truth[name], result
            assert low == high == float(truth[name])
        else:
            assert Fraction(low) <= truth[name] <= Fraction(high), (result, truth)
            assert result.guarantee == "bounds" or high - low <= 4 * RELATIVE_ERRORS[result.guarantee] * high + 1e-300
        assert not (result.guarantee == "exact" and result.rationals is None)


SUMS = st.lists(st.integers(-40, 40), max_size=11), st.integers(1, 50)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(*SUMS)
def test_every_method_of_sums_gives_what_all_arrangements_give(differences, factor):
    problem = SumProblem(np.array([factor * d for d in differences], np.int64))
    truth = enumerate_sums(differences)
    for method in iter_methods(problem):
        check_agreement(solve(problem, method), truth)


counts = st.integers(0, 3)
units = st.lists(st.tuples(counts, counts, counts, counts), max_size=8)
FORMS = {
    "precision": ([[1, 0, 0]], [[1, 1, 0]]),
    "f1": ([[2, 0, 0]], [[1, 1, 1]]),
    "f_half": ([[5, 0, 0]], [[4, 4, 1]]),
    "jaccard": ([[1, 0, 0]], [[0, 1, 1]]),
}
QUOTIENTS = units, st.sampled_from(sorted(FORMS)), st.integers(0, 4), st.sampled_from([0.0, 1.0, 0.5])
MACRO = units, st.sampled_from([0.0, 1.0])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(*QUOTIENTS)
@pytest.mark.slow
def test_every_method_of_quotients_gives_what_all_arrangements_give(units, form, concordant, zero_division):
    counts_by_unit = np.array(units, np.int64).reshape(-1, 4)
    gold = np.maximum(counts_by_unit[:, 0], counts_by_unit[:, 2])
    a, b = np.column_stack([counts_by_unit[:, :2], gold]), np.column_stack([counts_by_unit[:, 2:], gold])
    totals = np.array([a.sum(axis=0), b.sum(axis=0)]) + concordant * np.array([1, 1, 2])
    problem = QuotientProblem.from_counts(a, b, totals, *FORMS[form], zero_division)
    truth = enumerate_scores(problem.vectors, problem.totals, lambda sums: sum_quotients(sums, zero_division))
    for method in iter_methods(problem):
        check_agreement(solve(problem, method), truth)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(*MACRO)
def test_macro_averages_and_any_score_give_what_all_arrangements_give(units, zero_division):
    counts_by_unit = np.array(units, np.int64).reshape(-1, 4)
    a, b = counts_by_unit[:, :2], counts_by_unit[:, 2:]
    sides = [np.column_stack([s, 3 * (s > 0) - s % 2]) for s in (a, b)]
    totals = np.array([s.sum(axis=0) for s in sides])
    rows = np.eye(4, dtype=np.int64)
    problem = QuotientProblem.from_counts(*sides, totals, rows[:2], rows[2:], zero_division)
    truth = enumerate_scores(problem.vectors, problem.totals, lambda sums: sum_quotients(sums, zero_division))
    black_box = EnumeratedScore(sides[0] - sides[1], totals, problem.score)
    for variant in (problem, black_box):
        for method in iter_methods(variant):
            check_agreement(solve(variant, method), truth)


def draw_real_sums(random, n):
    """Draw fractions with many ties, and the same on a lattice with a slack of four steps a unit."""
    true = [Fraction(random.randint(-6, 6), random.choice((1, 2, 3, 5, 7))) for _ in range(n)]
    lattice = [round(d * 2**40) + random.randint(-2, 2) * (d != 0) for d in true]
    return true, SumProblem(np.array(lattice, np.int64), slack=8 * n)


@pytest.mark.slow
def test_limits_of_real_valued_sums_hold_the_truth_and_count_every_true_tie():
    random = Random(1)
    for _ in range(300):
        true, problem = draw_real_sums(random, random.randint(1, 10))
        truth = enumerate_sums(true)
        for method in iter_methods(problem):
            if method.operations > 10**8 or method.n_bytes > 10**8:
                continue
            result = solve(problem, method)
            for name in TAILS:
                low, high = map(Fraction, getattr(result, name.replace("-", "_")))
                assert low <= truth[name] <= high, (true, method, result)
                if method.guarantee == "exact":
                    assert high == truth[name], "ties of the lattice are no more than the true ones here"


def test_real_valued_sums_without_ties_are_exact():
    rng = np.random.default_rng(3)
    problem = SumProblem(np.rint(rng.normal(0.3, 1, 30) * 2**44).astype(np.int64), slack=120)
    result = solve(problem)
    assert (result.method, result.guarantee) == ("meet-in-the-middle", "exact")
    exchanged = SumProblem(-problem.differences, problem.slack)
    assert solve(exchanged).less == result.greater


def test_equal_differences_of_opposite_signs_tie_for_certain_on_any_lattice():
    d = np.array([3 * 2**40 + 1, 5 * 2**40, 9 * 2**40, -9 * 2**40, 9 * 2**40])
    result = solve(SumProblem(d, slack=20))
    assert result.rationals == solve(SumProblem(d)).rationals == enumerate_sums(d.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_methods_agree_where_no_enumeration_reaches(seed):
    rng = np.random.default_rng(seed)
    d = rng.integers(-30, 31, 400)
    d[: 20 * seed] = np.abs(d[: 20 * seed])
    problem = SumProblem(d)
    results = {method.method: solve(problem, method) for method in iter_methods(problem)}
    assert {"polynomial", "dp"} <= results.keys()
    truth = results["polynomial"].rationals
    for result in results.values():
        check_agreement(result, truth)


def test_deep_tails_keep_their_digits():
    d = np.arange(1, 301) % 7 + 1
    d[::25] *= -1
    problem = SumProblem(d)
    results = {method.method: solve(problem, method) for method in iter_methods(problem)}
    truth = results["polynomial"].rationals
    assert 1e-70 < truth["greater"] < 1e-50
    for result in results.values():
        check_agreement(result, truth)


@pytest.mark.parametrize("gain", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("form", ["precision", "f1"])
def test_a_window_of_the_grid_and_the_whole_grid_agree(form, gain):
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 5, 400)
    correct = rng.binomial(gold, [[0.65], [min(0.65 + gain, 1.0)]])
    wrong = rng.poisson(0.4, (2, 400))
    b, a = (np.column_stack([r, w, gold]) for r, w in zip(correct, wrong, strict=True))
    problem = QuotientProblem.from_counts(a, b, [a.sum(axis=0), b.sum(axis=0)], *FORMS[form])
    windowed = solve(problem)
    whole = solve(EnumeratedScore(problem.vectors, problem.totals, problem.score))
    assert (windowed.method, windowed.guarantee, whole.method) == ("grid-dp", "certified", "grid-dp")
    mirrored = solve(QuotientProblem.from_counts(b, a, [b.sum(axis=0), a.sum(axis=0)], *FORMS[form]))
    for name in TAILS:
        low, high = getattr(windowed, name.replace("-", "_"))
        assert low <= high <= low * (1 + 1e-12) + 1e-300
        assert getattr(whole, name.replace("-", "_")).p_lo <= high * (1 + 1e-12)
        assert getattr(whole, name.replace("-", "_")).p_hi >= low * (1 - 1e-12)
    assert mirrored.two_sided == pytest.approx(windowed.two_sided, rel=1e-12)


def test_a_score_of_four_sums_that_two_determine_is_counted_on_their_grid():
    """Cohen's kappa of two labels: the items and the gold labels are fixed."""
    rng = np.random.default_rng(2)
    n, gold = rng.integers(3, 9, 14), rng.integers(1, 3, 14)
    hits, given = rng.integers(0, 2, (2, 14)), rng.integers(1, 4, (2, 14))
    sides = [np.column_stack([n, gold, given[k], hits[k]]) for k in range(2)]

    def kappa(sums):
        total, right_given, given_sum, right = np.moveaxis(np.asarray(sums, np.float64), -1, 0)
        agreement = (total - right_given - given_sum + 2 * right) / total
        chance = (right_given * given_sum + (total - right_given) * (total - given_sum)) / total**2
        return (agreement - chance) / (1 - chance)

    totals = np.array([side.sum(axis=0) for side in sides])
    problem = EnumeratedScore(sides[0] - sides[1], totals, kappa)
    (method,) = (method for method in iter_methods(problem) if method.method == "grid-dp")
    found, enumerated = solve(problem, method), solve(problem)
    assert enumerated.method in ("enumeration", "collapse")
    assert found.limits.tolist() == enumerated.limits.tolist()


def binomial_tail(n, k):
    """Return an upper tail of the binomial distribution by summing coefficients in integers."""
    terms = [math.comb(n, k)]
    for j in range(k, n):
        terms.append(terms[-1] * (n - j) // (j + 1))
    return Fraction(sum(terms), 2**n)


@pytest.mark.parametrize(
    ("n", "k"), [(5000, 2500), (5000, 2501), (5000, 2600), (5001, 3300), (6000, 5990), (5000, 5000)]
)
def test_large_binomials_are_between_their_limits(n, k):
    problem = SumProblem(np.repeat([1, -1], [k, n - k]))
    result = solve(problem)
    assert (result.method, result.guarantee) == ("binomial", "certified")
    truth = binomial_tail(n, max(k, n - k))
    assert Fraction(result.greater.p_lo) <= truth <= Fraction(result.greater.p_hi)
    assert result.greater.p_hi <= result.greater.p_lo * (1 + 1e-12) + 1e-322


def test_identical_systems_give_one():
    for problem in (
        SumProblem(np.zeros(8, np.int64)),
        QuotientProblem.from_counts(np.ones((3, 2)), np.ones((3, 2)), np.full((2, 2), 3), [[1, 0]], [[0, 1]]),
        EnumeratedScore(np.zeros((4, 2), np.int64), np.ones((2, 2), np.int64), lambda sums: sums[..., 0] / 2),
    ):
        result = solve(problem)
        assert result.limits.tolist() == [[1.0, 1.0]] * 3
        assert choose_method(problem).operations == 1
