"""Tests of float32, float16 and computed float64 scores against the Fractions that they stand for."""

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from sigdask import compare, compare_all, read
from sigdask.counts import Counts
from sigdask.counts.precision import SystemNumbers
from sigdask.errors import InputError
from sigdask.formats.frames import as_counts
from sigdask.metrics import metric

EXACT = {"method": "exact", "interval": "none"}


def enumerate_p(differences):
    """Return the two-sided p of integers by enumeration; those of a common denominator have the same."""
    sums = np.array(list(product((1, -1), repeat=len(differences)))) @ differences
    return np.mean(np.abs(sums) >= abs(sum(differences)))


def draw_integers(seed, n_items=10, high=60):
    """Draw the numerators of two systems' scores, and return their p as well."""
    a, b = np.random.default_rng(seed).integers(0, high, (2, n_items))
    return a, b, enumerate_p(a - b)


@pytest.mark.parametrize(("kind", "most"), [("float32", 99999), ("float32", 60), ("float16", 99), ("float16", 9)])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31))
@pytest.mark.slow
def test_tenths_of_few_bits_are_tenths(kind, most, seed):
    a, b, want = draw_integers(seed, high=most)
    result = compare((a / 10).astype(kind), (b / 10).astype(kind), **EXACT)
    assert result.p_value == want
    assert result.score_a == pytest.approx(float(Fraction(int(a.sum()), 100)), rel=1e-15)


@pytest.mark.parametrize("below", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (6, 7, 9))])
@pytest.mark.parametrize("kind", ["float32", "float16"])
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**31))
@pytest.mark.slow
def test_other_numbers_of_few_bits_miss_no_tie(kind, below, seed):
    a, b, want = draw_integers(seed, high=12)
    result = compare((a / below).astype(kind), (b / below).astype(kind), **EXACT)
    assert result.p_value == want
    formula_metric = metric(lambda score, items: score / items, name="own")
    formula = compare((a / below).astype(kind), (b / below).astype(kind), metric=formula_metric, **EXACT)
    assert formula.p_value == want
    mixed = compare((a / below).astype(kind), b / below, **EXACT)
    assert mixed.p_value == want


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), below=st.sampled_from([10, 100, 1000]))
def test_decimals_that_were_computed_are_those_decimals(seed, below):
    a, b, want = draw_integers(seed, high=300)
    computed = [
        np.array([sum([1 / below] * int(x)) if x else 0.0 for x in integers]) for integers in (a, b)
    ]  # 0.1 + 0.1 + 0.1
    assert (computed[0] != a / below).any()
    assert compare(*computed, **EXACT).p_value == want


def test_what_each_kind_of_number_is_read_as():
    third = np.array([1 / 3, 0.5])
    assert not SystemNumbers.from_values(third).note
    assert (SystemNumbers.from_values(third).numbers == third).all()
    for values in ([0.1, 37.5, 1e-7, 123456, -0.25], [16777215.0, 3.0], [1.5e20, 2e-15]):
        single = np.array(values, np.float32)
        assert SystemNumbers.from_values(single).numbers.tolist() == values
        assert SystemNumbers.from_values(single).rounding == 0
    seven = np.array([0.1234567, 0.1], np.float32)  # seven digits: kept as it is
    assert SystemNumbers.from_values(seven).numbers.tolist() == seven.astype(np.float64).tolist()
    assert SystemNumbers.from_values(seven).rounding == 2.0**-28
    near = np.array([0.1 + 0.2, 57 * 0.01, 1 / 3, 0.0])
    assert (SystemNumbers.from_values(near).numbers == near).all()  # one that is none keeps all as they are
    assert SystemNumbers.from_values(near[[0, 1, 3]]).numbers.tolist() == [0.3, 0.57, 0.0]
    for far in (0.3 * (1 + 2e-14), 0.1234567891, 1e300, 1e-300, 2.0**53 + 2, 123456789000.0001, 123456789.5):
        assert SystemNumbers.from_values(np.array([far])).numbers.tolist() == [far]
    absent = SystemNumbers.from_values(np.array([np.nan, 0.1], np.float32))
    assert str(absent.numbers.tolist()) == "[nan, 0.1]"


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_differences_far_below_the_rounding_are_ties_in_32_bits_as_well(alternative):
    # steps of 2**-49 or so: the sums of such differences fit 32 bits, the slack of float16 does not
    a = (np.arange(1, 31) / 7).astype(np.float16)
    result = compare(a, a.astype(np.float64) + 2.0**-40, trials=200, alternative=alternative)
    assert (result.n_extreme, result.difference) == (200, 0.0)


def test_fields_frames_and_replicates_are_read_alike():
    a, b, want = draw_integers(3)
    single = {"a": (a / 10).astype(np.float32), "b": (b / 10).astype(np.float32)}
    one_item_each = np.ones((10, 1), np.int64)
    counts_by_way = [
        Counts(("a", "b"), {"score": np.column_stack(list(single.values())), "items": one_item_each}, 10),
        as_counts(pd.DataFrame(single)),
        Counts.of_replicates([Counts.from_scores(single)] * 3),
    ]
    for counts in counts_by_way:
        [result] = compare_all(counts, metrics=["mean"], **EXACT)
        assert result.p_value == want


@pytest.mark.parametrize("apart", [False, True])
def test_replicates_of_other_numbers_miss_no_tie(apart):
    # each replicate for itself as an item, or their sums: of sevenths the same differences, three times over
    a, b, _ = draw_integers(5, n_items=6, high=8)
    replicate = Counts.from_scores({"a": (a / 7).astype(np.float32), "b": (b / 7).astype(np.float32)})
    [result] = compare_all(Counts.of_replicates([replicate] * 3, apart=apart), metrics=["mean"], **EXACT)
    times = 3 if apart else 1
    assert result.p_value == enumerate_p(np.tile(a - b, times))


@pytest.mark.parametrize("below", [10, 7])
@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_columns_of_parquet_keep_their_type(tmp_path, below, kind):
    a, b, want = draw_integers(11, high=12)
    ids = [f"i{k}" for k in range(len(a))]
    columns = {"id": ids, "a": (a / below).astype(kind), "b": (b / below).astype(kind)}
    parquet.write_table(pa.table(columns), tmp_path / "wide.parquet")
    long = {"id": ids * 2, "system": ["a"] * 10 + ["b"] * 10, "score": np.concatenate([columns["a"], columns["b"]])}
    parquet.write_table(pa.table(long), tmp_path / "long.parquet")
    for name in ("wide", "long"):
        counts = read(tmp_path / f"{name}.parquet", format=name)
        assert any(kind in note for note in counts.warnings)
        [result] = compare_all(counts, metrics=["mean"], **EXACT)
        assert result.p_value == want


@pytest.mark.parametrize("ids", [None, ["x", "y", "z"]])
def test_sums_beyond_float64_are_refused_by_item(ids):
    with pytest.raises(InputError, match=r"system 'A', (item 'y'|at position 2): -1\.5e\+308 .* another scale"):
        compare([1e308, -1.5e308, 3.0], [1.0, 2.0, 3.0], ids=ids)


@pytest.mark.parametrize("size", [1e-303, 5e-310, 5e-324])
def test_scores_below_the_digits_of_float64_are_refused(size):
    systems = {"a": np.array([1, 2, 3, 5]) * size, "b": np.array([0, 1, 1, 2]) * size, "c": np.array([0.5, 1, 2, 1])}
    with pytest.raises(InputError, match="system 'a', .* another scale"):
        compare_all(systems, trials=99)


@pytest.mark.parametrize(
    ("value", "what"), [(10**400, "scores of 'B': .*too large"), (float("inf"), "'B', at position 2: inf")]
)
def test_a_number_that_float64_does_not_hold_is_refused(value, what):
    with pytest.raises(InputError, match=what):
        compare([1, 2, 3], [1, value, 3])


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e300, 1e200, 1e154])
@pytest.mark.parametrize("adjust", ["none", "max-t", "tukey", "holm"])
def test_the_largest_scores_print_no_nan(size, adjust):
    rng = np.random.default_rng(2)
    counts = Counts.from_scores(
        {name: rng.random(30) * size for name in "abc"}, groups={"document": ["a", "b", "c"] * 10}
    )
    results = compare_all(counts, metrics=["mean"], trials=2000, adjust=adjust)
    assert not {"NaN", "Infinity"} & set(re.findall(r"[A-Z][A-Za-z]+", results.to_json()))


@pytest.mark.parametrize("gap", [[], [None], [np.nan]])
def test_single_numbers_held_as_objects_or_beside_a_gap_are_read_as_in_an_array_of_their_type(gap):
    a, b = [np.float32(k) / np.float32(10) for k in (1, 2, 3)], [0.3, 0.2, 0.1]
    assert compare(np.array(a, object), b).p_value == 1.0  # 0.75 with binary values: both means are 0.2
    for values in ([*a, *gap], np.array([*a, *gap], object)):
        counts = Counts.from_scores({"a": values, "b": [*b, *([0.7] * len(gap))]}, missing="pairwise")
        assert compare_all(counts, metrics=["mean"])[0].p_value == 1.0


@pytest.mark.parametrize("places", [0, 1, 3, 9])
@pytest.mark.parametrize("last", [0.5, 1 / 3, 2.0**60, 1e300, 5e-324, 0.1 + 0.2])
def test_a_long_column_is_read_as_its_numbers_one_by_one(places, last):
    decimals = np.round(np.random.default_rng(places).random(100), places)
    is_decimal = last in {0.5, 2.0**60, 0.1 + 0.2}  # otherwise the whole column is kept as it is
    for numbers in (np.r_[decimals, last], np.r_[last, decimals]):
        alone = [SystemNumbers.from_values(numbers[k : k + 1]).numbers[0] for k in range(len(numbers))]
        together = SystemNumbers.from_values(numbers).numbers.tolist()
        assert together == (alone if is_decimal else numbers.tolist())
