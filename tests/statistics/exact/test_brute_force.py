"""Every method against all arrangements in fractions, and against others where there are too many."""

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from arrangements import of_scores, of_sums, quotient
from hypothesis import given, settings
from hypothesis import strategies as st

from sigdask.statistics.exact import (
    TAILS,
    EnumeratedScore,
    QuotientProblem,
    SumProblem,
    approximate_p_values,
    choose_method,
    solve,
)
from sigdask.statistics.exact.planning import iter_methods
from sigdask.statistics.exact.sums import lattice_bounds

RELATIVE = {"exact": 0.0, "certified": 1e-12, "numeric": 1e-10}


def agrees(found, truth):
    """A fraction is the truth; limits hold it and are as near as is claimed."""
    for name in TAILS:
        low, high = found.get_limits(name)
        if found.rationals is not None:
            assert found.rationals[name] == truth[name], found
            assert low == high == float(truth[name])
        else:
            assert Fraction(low) <= truth[name] <= Fraction(high), (found, truth)
            assert found.guarantee == "bounds" or high - low <= 4 * RELATIVE[found.guarantee] * high + 1e-300
        assert not (found.guarantee == "exact" and found.rationals is None)


SUMS = st.lists(st.integers(-40, 40), max_size=11), st.integers(1, 50)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(*SUMS)
def test_every_method_of_sums_gives_what_all_arrangements_give(differences, factor):
    problem = SumProblem(np.array([factor * d for d in differences], np.int64))
    truth = of_sums(differences)
    for way in iter_methods(problem):
        agrees(solve(problem, way), truth)


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
def test_every_method_of_quotients_gives_what_all_arrangements_give(units, form, concordant, zero_division):
    own = np.array(units, np.int64).reshape(-1, 4)
    gold = np.maximum(own[:, 0], own[:, 2])
    a, b = np.column_stack([own[:, :2], gold]), np.column_stack([own[:, 2:], gold])
    totals = np.array([a.sum(axis=0), b.sum(axis=0)]) + concordant * np.array([1, 1, 2])
    problem = QuotientProblem.from_counts(a, b, totals, *FORMS[form], zero_division)
    truth = of_scores(problem.vectors, problem.totals, lambda sums: quotient(sums, zero_division))
    for way in iter_methods(problem):
        agrees(solve(problem, way), truth)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(*MACRO)
def test_macro_averages_and_any_score_give_what_all_arrangements_give(units, zero_division):
    own = np.array(units, np.int64).reshape(-1, 4)
    a, b = own[:, :2], own[:, 2:]
    sides = [np.column_stack([s, 3 * (s > 0) - s % 2]) for s in (a, b)]
    totals = np.array([s.sum(axis=0) for s in sides])
    rows = np.eye(4, dtype=np.int64)
    problem = QuotientProblem.from_counts(*sides, totals, rows[:2], rows[2:], zero_division)
    truth = of_scores(problem.vectors, problem.totals, lambda sums: quotient(sums, zero_division))
    black_box = EnumeratedScore(sides[0] - sides[1], totals, problem.score)
    for asked in (problem, black_box):
        for way in iter_methods(asked):
            agrees(solve(asked, way), truth)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "cases"),
    [
        (test_every_method_of_sums_gives_what_all_arrangements_give, SUMS),
        (test_every_method_of_quotients_gives_what_all_arrangements_give, QUOTIENTS),
        (test_macro_averages_and_any_score_give_what_all_arrangements_give, MACRO),
    ],
    ids=["sums", "quotients", "macro"],
)
def test_the_same_of_a_thousand_cases_more(test, cases):
    settings(max_examples=1000, deadline=None)(given(*cases)(test.hypothesis.inner_test))()


def real_valued(random, n):
    """Fractions with many true ties, and the same on a lattice with a slack of four steps a unit."""
    true = [Fraction(random.randint(-6, 6), random.choice((1, 2, 3, 5, 7))) for _ in range(n)]
    lattice = [round(d * 2**40) + random.randint(-2, 2) * (d != 0) for d in true]
    return true, SumProblem(np.array(lattice, np.int64), slack=8 * n)


def test_limits_of_real_valued_sums_hold_the_truth_and_count_every_true_tie():
    random = Random(1)
    for _ in range(300):
        true, problem = real_valued(random, random.randint(1, 10))
        truth = of_sums(true)
        for way in iter_methods(problem):
            if way.operations > 10**8 or way.n_bytes > 10**8:
                continue
            found = solve(problem, way)
            for name in TAILS:
                low, high = map(Fraction, found.get_limits(name))
                assert low <= truth[name] <= high, (true, way, found)
                if way.guarantee == "exact":
                    assert high == truth[name], "ties of the lattice are no more than the true ones here"


def test_real_valued_sums_without_ties_are_exact():
    rng = np.random.default_rng(3)
    problem = SumProblem(np.rint(rng.normal(0.3, 1, 30) * 2**44).astype(np.int64), slack=120)
    found = solve(problem)
    assert (found.method, found.guarantee) == ("meet-in-the-middle", "exact")
    exchanged = SumProblem(-problem.differences, problem.slack)
    assert solve(exchanged).less == found.greater


def test_equal_differences_of_opposite_signs_tie_for_certain_on_any_lattice():
    d = np.array([3 * 2**40 + 1, 5 * 2**40, 9 * 2**40, -9 * 2**40, 9 * 2**40])
    found = solve(SumProblem(d, slack=20))
    assert found.rationals == solve(SumProblem(d)).rationals == of_sums(d.tolist())


@pytest.mark.parametrize("seed", range(4))
def test_methods_agree_where_no_enumeration_reaches(seed):
    rng = np.random.default_rng(seed)
    d = rng.integers(-30, 31, 400)
    d[: 20 * seed] = np.abs(d[: 20 * seed])
    problem = SumProblem(d)
    found = {way.method: solve(problem, way) for way in iter_methods(problem)}
    assert {"polynomial", "dp", "tilted-fft"} <= found.keys()
    truth = found["polynomial"].rationals
    for one in found.values():
        agrees(one, truth)


def test_deep_tails_keep_their_digits():
    d = np.arange(1, 301) % 7 + 1
    d[::25] *= -1
    problem = SumProblem(d)
    found = {way.method: solve(problem, way) for way in iter_methods(problem)}
    truth = found["polynomial"].rationals
    assert 1e-70 < truth["greater"] < 1e-50
    for one in found.values():
        agrees(one, truth)


@pytest.mark.parametrize("gain", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("form", ["precision", "f1"])
def test_a_grid_and_its_transform_agree(form, gain):
    rng = np.random.default_rng(7)
    gold = rng.integers(0, 5, 700)
    right = rng.binomial(gold, [[0.65], [min(0.65 + gain, 1.0)]])
    wrong = rng.poisson(0.4, (2, 700))
    b, a = (np.column_stack([r, w, gold]) for r, w in zip(right, wrong, strict=True))
    problem = QuotientProblem.from_counts(a, b, [a.sum(axis=0), b.sum(axis=0)], *FORMS[form])
    found = {way.method: solve(problem, way) for way in iter_methods(problem) if way.method.startswith("grid")}
    grid, transform = found["grid-dp"], found["grid-fft"]
    assert (grid.guarantee, transform.guarantee) == ("certified", "numeric")
    for name in TAILS:
        assert grid.get_limits(name).p_hi <= grid.get_limits(name).p_lo * (1 + 1e-12) + 1e-300
        assert sum(transform.get_limits(name)) == pytest.approx(sum(grid.get_limits(name)), rel=1e-12)
    mirrored = QuotientProblem.from_counts(b, a, [b.sum(axis=0), a.sum(axis=0)], *FORMS[form])
    for way in iter_methods(mirrored):
        if way.method in found:
            assert solve(mirrored, way).two_sided == pytest.approx(found[way.method].two_sided, rel=1e-12)


@pytest.mark.parametrize("gain", [0, 12, 45])
def test_a_coarse_lattice_holds_p_between_its_limits(monkeypatch, gain):
    rng = np.random.default_rng(8)
    problem = SumProblem(rng.integers(-300, 301, 300) + gain)
    truth = solve(problem)
    assert truth.guarantee == "certified"
    widths = []
    for target in (5 * 10**4, 2 * 10**5, 10**6):
        monkeypatch.setattr(lattice_bounds, "TARGET", target)
        (way,) = (way for way in iter_methods(problem) if way.method == "lattice-bounds")
        found = solve(problem, way)
        assert found.guarantee == "bounds"
        for name in TAILS:
            assert (
                found.get_limits(name).p_lo
                <= truth.get_limits(name).p_lo
                <= truth.get_limits(name).p_hi
                <= found.get_limits(name).p_hi
            )
        widths.append(found.two_sided.p_hi - found.two_sided.p_lo)
    assert widths[0] > widths[1] > widths[2]


@pytest.mark.parametrize("gain", [0.2, 1, 3, 6])
def test_a_saddlepoint_is_near_and_is_called_approximate(gain):
    d = np.rint(np.random.default_rng(9).normal(gain, 8, 200)).astype(np.int64)
    exact, near = solve(SumProblem(d)), approximate_p_values(SumProblem(d))
    assert (near.method, near.guarantee, near.rationals) == ("saddlepoint", "approximate", None)
    assert near.two_sided.p_hi == pytest.approx(exact.two_sided.p_hi, rel=0.02)
    assert near.two_sided == approximate_p_values(SumProblem(-d)).two_sided


def test_a_saddlepoint_of_no_difference_is_one():
    assert approximate_p_values(SumProblem(np.array([3, -3, 0]))).two_sided.p_hi == 1.0


def binomial_tail(n, k):
    """A sum of binomial coefficients in integers."""
    terms = [math.comb(n, k)]
    for j in range(k, n):
        terms.append(terms[-1] * (n - j) // (j + 1))
    return Fraction(sum(terms), 2**n)


@pytest.mark.parametrize(
    ("n", "k"), [(5000, 2500), (5000, 2501), (5000, 2600), (5001, 3300), (6000, 5990), (5000, 5000)]
)
def test_large_binomials_are_between_their_limits(n, k):
    problem = SumProblem(np.repeat([1, -1], [k, n - k]))
    found = solve(problem)
    assert (found.method, found.guarantee) == ("binomial", "certified")
    truth = binomial_tail(n, max(k, n - k))
    assert Fraction(found.greater.p_lo) <= truth <= Fraction(found.greater.p_hi)
    assert found.greater.p_hi <= found.greater.p_lo * (1 + 1e-12) + 1e-322


def test_identical_systems_give_one():
    for problem in (
        SumProblem(np.zeros(8, np.int64)),
        QuotientProblem.from_counts(np.ones((3, 2)), np.ones((3, 2)), np.full((2, 2), 3), [[1, 0]], [[0, 1]]),
        EnumeratedScore(np.zeros((4, 2), np.int64), np.ones((2, 2), np.int64), lambda sums: sums[..., 0] / 2),
    ):
        found = solve(problem)
        assert found.limits.tolist() == [[1.0, 1.0]] * 3
        assert choose_method(problem).operations == 1
