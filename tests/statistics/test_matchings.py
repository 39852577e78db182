"""Tests of the distribution of agreements over arrangements of labels, against all permutations."""

from collections import Counter
from fractions import Fraction
from itertools import permutations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sigdask.statistics.matchings import LabelMargins, compute_shares, count_arrangements

LABELS = range(3)
STRATUM = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=5)


def build_margins(items):
    labels_a, labels_b = zip(*items, strict=True)
    return LabelMargins(len(items), *(tuple(column.count(k) for k in LABELS) for column in (labels_a, labels_b)))


def enumerate_shares(strata, parts):
    counter = Counter()
    orders = [permutations([label for _, label in label_a]) for label_a in strata]
    for permuted in product(*orders):
        agreements = [
            label_a
            for labels, items in zip(permuted, strata, strict=True)
            for label_a, (label, _) in zip(labels, items, strict=True)
            if label_a == label
        ]
        counter[tuple(sum(label in part for label in agreements) for part in parts)] += 1
    total = sum(counter.values())
    return {cell: Fraction(n, total) for cell, n in counter.items()}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(STRATUM, min_size=1, max_size=2),
    st.sampled_from([[[0]], [[0, 1]], [[0, 1, 2]], [[2], [0, 1]], [[0], [1], [2]]]),
)
@pytest.mark.slow
def test_arrangements_are_those_of_all_permutations(strata, parts):
    numbers = count_arrangements([build_margins(stratum) for stratum in strata], parts)
    total = numbers.sum()
    shares = {cell: Fraction(numbers[cell], total) for cell in np.ndindex(numbers.shape) if numbers[cell]}
    assert shares == enumerate_shares(strata, parts)


def test_arrangements_of_items_that_all_differ_are_the_rencontres():
    # OEIS A008290: permutations of 6 with 0 to 6 fixed points
    margins_of_six = LabelMargins(6, (1,) * 6, (1,) * 6)
    assert count_arrangements([margins_of_six], [range(6)]).tolist() == [265, 264, 135, 40, 15, 0, 1]


def test_one_label_is_hypergeometric_in_whole_numbers_and_in_floating_point():
    margins_of_two = LabelMargins(700, (180, 520), (260, 440))
    numbers = count_arrangements([margins_of_two], [[0]])
    assert numbers.sum() == comb(700, 180)
    exact = np.array([float(Fraction(n, comb(700, 180))) for n in numbers])
    assert compute_shares(margins_of_two, 0) == pytest.approx(exact, rel=1e-12, abs=1e-300)
    assert exact == pytest.approx(stats.hypergeom.pmf(np.arange(181), 700, 260, 180), rel=1e-8, abs=1e-300)


def test_shares_of_a_million_items_keep_their_small_tails():
    margins_of_million = LabelMargins(1_000_000, (400_000, 600_000), (300_000, 700_000))
    share = compute_shares(margins_of_million, 0)
    cells = np.array([118_500, 120_000, 121_300])
    expected = np.exp(stats.hypergeom.logpmf(cells, 1_000_000, 300_000, 400_000))
    assert share[cells] == pytest.approx(expected, rel=1e-6)  # SciPy's logarithms of factorials keep nine digits
    assert share.sum() == pytest.approx(1, abs=1e-9)


def test_shares_where_both_labellings_give_a_label_to_most_items():
    assert compute_shares(LabelMargins(5, (4, 1), (4, 1)), 0).tolist() == pytest.approx([0, 0, 0, 0.8, 0.2])
    assert compute_shares(LabelMargins(5, (0, 5), (4, 1)), 0).tolist() == [1.0]
