"""Tests of real scores as integers: exact for decimals, rounded upwards for other reals."""

import math
from fractions import Fraction

import numpy as np
import pytest
import reference

from sigdask.api import compare, compare_all
from sigdask.counts import Counts
from sigdask.metrics import metric
from sigdask.statistics.lattice import ScoreScale, choose_lattice

TENTHS = np.array([1, 2, 3, 4, 5, 6, 7, -1, -2, 3, -4, 2])


def enumerate_p(differences):
    """Return the two-sided p by enumeration, in integers over a common denominator."""
    denominator = math.lcm(*(d.denominator for d in differences))
    numerators = np.array([int(d * denominator) for d in differences])
    assert abs(numerators).sum() < 2**62
    sums = (1 - 2 * reference.list_arrangements(len(numerators)).astype(np.int64)) @ numerators
    return Fraction(np.count_nonzero(abs(sums) >= abs(numerators.sum())), len(sums))


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9, 100.0])
@pytest.mark.parametrize("constant", [0.0, 0.1, 17.3])
def test_ties_survive_scaling_and_added_constants(scale, constant):
    # SciPy's tolerance fails when a constant is added, mlxtend's when scores are scaled by 1e-9
    want = enumerate_p([Fraction(int(d), 10) for d in TENTHS])
    p = compare((TENTHS / 10 + constant) * scale, np.full(12, constant) * scale).p_value
    assert p == pytest.approx(float(want), rel=1e-15)


@pytest.mark.parametrize("digits", range(10))
def test_a_decimal_of_up_to_nine_digits_is_an_integer_and_comes_back(digits):
    values = np.array([1, 123_456_789, -7]) / 10.0**digits
    assert ScoreScale.from_scores(values).digits == digits
    lattice = choose_lattice(ScoreScale.from_scores(values), ScoreScale.from_scores(values), 3)
    assert (lattice.to_integers(values) * 10**digits // 10**lattice.digits).tolist() == [1, 123_456_789, -7]
    assert lattice.to_scores(lattice.to_integers(values)).tolist() == values.tolist()
    assert lattice.step == 10.0**-lattice.digits


@pytest.mark.parametrize("n_items", [1, 3, 2**11 - 1, 2**11, 5000, 2**40])
@pytest.mark.parametrize(("a", "b"), [(0.7, 300.0), (300.0, 0.7), (1e-5, 1e-9)])
def test_a_lattice_of_reals_is_the_finest_whose_sums_stay_below_2_to_the_61(a, b, n_items):
    lattice = choose_lattice(
        ScoreScale.from_scores(np.array([a / 3])), ScoreScale.from_scores(np.array([b / 3])), n_items
    )
    size = 2.0 ** np.ceil(np.log2(max(a, b) / 3))  # a power of two that no score exceeds
    largest = size / lattice.step
    assert largest <= 2.0**50
    assert n_items * largest < 2.0**61
    assert largest == 2.0**50 or 2 * n_items * largest >= 2.0**61
    assert lattice.slack == 2
    assert lattice.to_scores(lattice.to_integers(np.array([a / 3]))) == pytest.approx([a / 3], abs=lattice.step / 2)


@pytest.mark.slow
def test_true_ties_of_reciprocal_ranks_always_count():
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b = rng.integers(1, 10, (2, 9))
        want = enumerate_p([Fraction(1, int(x)) - Fraction(1, int(y)) for x, y in zip(a, b, strict=True)])
        p = compare(1 / a, 1 / b, interval="none").p_value
        assert p == pytest.approx(float(want), rel=1e-12), "a tie was missed, or something else taken for one"


@pytest.mark.slow
def test_the_scale_of_a_pair_does_not_depend_on_other_systems():
    rng = np.random.default_rng(1)
    scores = {
        "a": rng.random(60),
        "b": rng.random(60),
        "c": np.round(rng.random(60), 2),
        "d": np.round(rng.random(60), 1),
    }
    n_extreme_alone = {}
    for pair in (("a", "b"), ("a", "c"), ("c", "d")):
        counts = Counts.from_scores({name: scores[name] for name in pair})
        n_extreme_alone[pair] = compare_all(counts, metrics=["mean"], trials=5000)[0].n_extreme
    wild = {**scores, "e": rng.random(60) * 1e12, "f": rng.random(60) * 1e-12, "g": rng.random(60).astype(np.float32)}
    for r in compare_all(Counts.from_scores(wild), metrics=["mean"], trials=5000):
        if (r.a, r.b) in n_extreme_alone:
            assert r.n_extreme == n_extreme_alone[r.a, r.b]


def test_steps_of_a_tenth_give_1696_of_4096():
    # DESIGN, what users said: n = 12, exact 1696/4096 = 0.4141 where six tools print 0.23 to 0.37;
    # the differences are ours, found to have that value by enumeration in integers
    d = np.array([5, 3, 2, 9, -4, 9, 6, 5, -7, -8, -8, 8])
    assert enumerate_p([Fraction(int(x), 10) for x in d]) == Fraction(1696, 4096)
    b = np.array([4, 5, 7, 9, 0, 1, 8, 9, 2, 3, 8, 4])
    a = b + d
    result = compare(a / 10, b / 10)
    assert (result.n_extreme, result.n_trials) == (1696, 4096)


@pytest.mark.parametrize(
    ("large", "small"),
    [
        ([3e12, 1e12, 2e12, 5e12, 1e12, 4e12], [0.123456789, 0.2, 0.3, 0.111111111, 0.7, 0.25]),
        ([1e14, 2e14, 3e14, 1e14], [0.1234, 2.0, 3.5, 1.25]),
        ([2e15, 1e15, 1.5e15], [0.1, 0.2, 0.3]),
    ],
)
def test_large_integers_beside_small_decimals_do_not_overflow(large, small):
    r = compare(large, small)
    assert r.score_a == pytest.approx(np.mean(large), rel=1e-12)
    assert r.p_value == 2 / 2 ** len(large)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_the_largest_and_smallest_numbers_are_compared_without_a_warning(scale):
    r = compare(np.array([1, 2, 3, 4]) * scale, np.array([2, 1, 1, 1]) * scale)
    assert r.p_value == float(enumerate_p([-1, 1, 2, 3]))


def test_integers_are_exact_while_their_sum_is_below_2_to_the_53():
    assert ScoreScale.from_scores(np.array([2.0**51, 1, 1])).digits == 0
    assert ScoreScale.from_scores(np.array([2.0**52 + 1, 1, 1])).digits is None
    a, b = np.array([2.0**49, 3, 1, 0]), np.array([2.0**49 - 1, 0, 0, 2])
    assert compare(a, b).p_value == float(enumerate_p([1, 3, 1, -2]))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_black_box_of_floats_misses_no_tie_either(alternative):
    # the same tenths, added up as floats: no lattice, only the tolerance of 64 eps (|A| + |B|)
    b = np.array([4, 5, 7, 9, 0, 1, 8, 9, 2, 3, 8, 4])
    d = np.array([5, 3, 2, 9, -4, 9, 6, 5, -7, -8, -8, 8])
    box_metric = metric(lambda o, _: sum(o), of="outputs")
    options = {"alternative": alternative, "interval": "none", "cluster": "none"}
    box = compare((b + d) / 10, b / 10, metric=box_metric, **options)
    sums = (1 - 2 * (np.arange(4096)[:, None] >> np.arange(12) & 1)) @ d
    t = d.sum()
    exact = {"two-sided": abs(sums) >= abs(t), "greater": sums >= t, "less": sums <= t}[alternative].sum()
    assert (box.method, box.n_trials, box.n_extreme) == ("exact", 4096, exact)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_a_formula_of_counts_misses_no_tie_either(alternative):
    # tp / 10 as a float times 3 rounds; the count of the plain sum is exact
    gold, a, b = (np.random.default_rng(4).integers(0, 2, (3, 300)) > 0).tolist()
    counts = Counts.from_responses(gold, {"a": a, "b": b})
    rounded = metric(lambda tp, predicted: tp * 0.1 + predicted * 0.7 - predicted * 0.3 - predicted * 0.4, name="r")
    integers, floats = compare_all(
        counts, metrics=[metric(lambda tp: tp, name="tp"), rounded], alternative=alternative, trials=20_000
    )
    assert floats.n_extreme == integers.n_extreme
