"""Tests of sums of fractions against an enumeration of all signs, one after the other."""

from fractions import Fraction
from itertools import product

import pytest
from builders import build_rng

from sigdask.statistics.exact.rationals import count_extreme


def count_by_enumeration(differences):
    observed = sum(differences)
    sums = [sum(s * d for s, d in zip(signs, differences, strict=True))
            for signs in product((1, -1), repeat=len(differences))]  # fmt: skip
    return (
        sum(x >= observed for x in sums),
        sum(x <= observed for x in sums),
        sum(abs(x) >= abs(observed) for x in sums),
    )


@pytest.mark.parametrize("seed", range(40))
def test_arrangements_of_any_sizes_are_counted_as_by_enumeration_ties_included(seed):
    rng = build_rng(seed)
    pool = [5e-324, -1e-323, 0.1, 0.2, -0.3, 1e300, -1e300, *(rng.normal(size=3) * 10.0 ** rng.integers(-300, 300, 3))]
    differences = [Fraction(float(x)) for x in rng.choice(pool, rng.integers(1, 9))]
    assert tuple(count_extreme(differences, [Fraction()] * len(differences))) == count_by_enumeration(differences)


def test_what_rounding_may_have_parted_counts_as_a_tie_and_what_shares_its_rounding_cancels():
    """Three floats nearest to thirds against 1, and a third against itself beside something tiny."""
    third, tolerance = Fraction(1 / 3), Fraction(1, 2**54)
    assert (
        count_extreme([third, third, third, Fraction(-1)], [tolerance, tolerance, tolerance, Fraction()]).two_sided
        == 16
    )
    tiny = Fraction(1, 10**300)
    assert (
        count_extreme([third, -third, tiny], [tolerance, tolerance, Fraction()]).two_sided
        == count_by_enumeration([third, -third, tiny])[2]
    )
