"""Scores in data frames of several libraries, in mappings and in arrays."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from builders import build_rng

from sigdask import InputError, compare, compare_all
from sigdask.counts import Counts
from sigdask.formats.frames import as_counts

polars = pytest.importorskip("polars")

SCORES = {name: build_rng(0).integers(0, 5, 60).tolist() for name in "abc"} | {
    "d": build_rng(1).normal(size=60).tolist()
}
EXPECTED = compare_all(Counts.from_scores(SCORES), metrics=["mean"], trials=2000)


def build_duckdb(columns):
    return pytest.importorskip("duckdb").from_arrow(pa.table(columns))


FRAMES = {
    "a dict of lists": dict,
    "a dict of tuples": lambda columns: {name: tuple(own) for name, own in columns.items()},
    "pandas": pd.DataFrame,
    "pandas, columns of Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars.DataFrame,
    "polars, lazy": polars.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": build_duckdb,
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_of_any_library_gives_the_results_of_its_scores(frame):
    assert compare_all(frame(SCORES), trials=2000) == EXPECTED


@pytest.mark.slow
def test_a_frame_of_dasks_gives_the_results_of_its_scores():
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(pd.DataFrame(SCORES), npartitions=3)
    assert compare_all(frame, trials=2000, cluster="none") == EXPECTED


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_what_a_frame_lacks_is_missing(frame):
    """Compare with lists of numbers that have NaN in the same places."""
    columns = {"a": [1, None, 3, 2], "b": [True, False, True, None], "c": [0.5, 1.5, None, 2.0]}
    plain = {"a": [1, np.nan, 3, 2], "b": [1, 0, 1, np.nan], "c": [0.5, 1.5, np.nan, 2.0]}
    counts, expected = as_counts(frame(columns), missing="pairwise"), Counts.from_scores(plain, missing="pairwise")
    assert counts.present.tolist() == expected.present.tolist()
    assert counts.fields["score"].tolist() == expected.fields["score"].tolist()
    with pytest.raises(InputError, match="system 'a' has no score for item at position 2"):
        compare_all(frame(columns))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_ids_and_groups_are_found_as_in_files(frame):
    columns = {"ID": [f"i{k}" for k in range(60)], **SCORES, "document": [f"d{k % 7}" for k in range(60)]}
    expected = Counts.from_scores(SCORES, ids=columns["ID"], groups={"document": columns["document"]})
    counts = as_counts(frame(columns))
    assert (counts.systems, list(counts.ids)) == (("a", "b", "c", "d"), columns["ID"])
    assert list(counts.group("document")) == columns["document"]
    assert "unit document" in counts.roles
    n_extremes = [r.n_extreme for r in compare_all(frame(columns), unit="document", trials=2000)]
    assert n_extremes == [r.n_extreme for r in compare_all(expected, unit="document", trials=2000)]


def test_columns_of_numbers_are_ids_and_groups_where_they_are_named():
    columns = {"number": [*range(60, 0, -1)], "topic": [k % 7 for k in range(60)], **SCORES}
    counts = as_counts(pd.DataFrame(columns), ids="number", groups="topic")
    assert (counts.systems, counts.ids[0], list(counts.group("topic"))[:3]) == (tuple("abcd"), "60", ["0", "1", "2"])
    without_ids = {name: columns[name] for name in columns if name != "number"}
    assert {r.unit for r in compare_all(without_ids, unit="topic", trials=100)} == {"topic"}
    assert {r.subset["value"] for r in compare_all(without_ids, by="topic", trials=100)} == {str(k) for k in range(7)}
    with pytest.raises(InputError, match="topic"):  # it names the items, and they are repeated
        as_counts(without_ids)


def test_an_array_has_a_column_a_system():
    values = np.array([*SCORES.values()]).T
    for array in (values, values.astype(object), np.ma.MaskedArray(values, mask=False)):
        results = compare_all(array, trials=2000)
        assert [r.n_extreme for r in results] == [r.n_extreme for r in EXPECTED]
        assert (results[0].a, results[0].b) == ("system 1", "system 2")
    assert as_counts(values, names="wxyz").systems == tuple("wxyz")
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    assert as_counts(masked, missing="pairwise").present.tolist() == [[True, False], [True, True]]


DATES = [dt.date(2026, 1, k) for k in (1, 2)]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (5, {}, "int holds no scores: expected counts, a mapping"),
        ([[1, 2], [3, 4]], {}, "list holds no scores: expected counts, a mapping"),
        (np.zeros(3), {}, r"an array of shape \(3,\): expected .*of shape \(n_items, n_systems\)"),
        (np.zeros((3, 1)), {}, "a comparison needs two systems or more, found only 'system 1'"),
        ({"a": [1], "b": [2]}, {"names": ["x", "y"]}, "names are of an array's systems"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "this data frame cannot be read: .*'a'"),
        ({"a": [1, 2], "b": [2, 3], "who": ["x", "y"]}, {}, "scores of 'who': could not convert"),
        ({"a": [1, 2], "b": [2, 3], "when": np.array(DATES, "M8[D]")}, {}, "scores of 'when': found values of type date"),
        ({"a": [1, 2], "b": [2, "x"]}, {}, "scores of 'b': could not convert string to float: 'x'"),
        ({"a": [1, 2], "b": [2, 3]}, {"ids": "nr"}, "no column 'nr'; columns: a, b"),
        ({}, {}, "a comparison needs two systems or more, found none"),
    ],
)  # fmt: skip
def test_what_holds_no_scores_is_said(given, options, said):
    with pytest.raises(InputError, match=said):
        as_counts(given, **options)


BLEU = {name: build_rng(k).integers(0, 100, 60).astype(float).tolist() for k, name in enumerate("abcd", 2)}
LONG = {
    "system": [name for name in SCORES for _ in range(60)],
    "item": [f"i{k}" for _ in SCORES for k in range(60)],
    "chrF": [float(score) for column in SCORES.values() for score in column],
    "BLEU": [score for column in BLEU.values() for score in column],
}
"""Rows of system and item, with a column for each metric."""


@pytest.mark.slow
def test_an_index_of_pandas_is_columns_of_ids_systems_and_groups():
    options = {"trials": 500, "second_run": False}
    long = pd.DataFrame(LONG)
    expected = [r.n_extreme for r in compare_all(long, **options)]
    assert [r.n_extreme for r in compare_all(long.set_index(["system", "item"]), **options)] == expected
    series = long.set_index(["item", "system"])["BLEU"]
    assert [r.n_extreme for r in compare_all(series, **options)] == expected[1::2]
    wide = long.pivot_table("BLEU", "item", "system")
    for frame in (wide, wide.rename_axis("segment_name"), wide.rename_axis(None)):
        results = compare_all(frame, **options)
        assert [r.score_a for r in results] == pytest.approx([np.mean(BLEU[r.a]) for r in results])
        assert {*results.unit_table("a", "b")["id"]} == {*LONG["item"]}
    documents = pd.DataFrame({**SCORES, "document": [f"d{k % 7}" for k in range(60)]}).set_index(
        "document", append=True
    )
    assert {r.unit for r in compare_all(documents.reset_index("document"), unit="document", **options)} == {"document"}


def test_samples_in_a_column_of_a_metric_have_the_exact_p_of_all_swaps():
    rng = np.random.default_rng(5)
    right = rng.random((90, 2, 3)) < [[0.5], [0.6]]
    rows = [(f"i{i}", "ab"[s], seed, int(right[i, s, seed])) for i, s, seed in np.ndindex(right.shape)]
    frame = pd.DataFrame(rows, columns=["item", "system", "seed", "correct"])
    differences = np.diff(right.sum(axis=2), axis=1).ravel().tolist()  # whole numbers: right answers of three
    ways = {0: 1}  # by the sum of differences, the number of the 2^90 swaps that give it
    for difference in differences:
        shifted = [Counter({total + sign * difference: n for total, n in ways.items()}) for sign in (1, -1)]
        ways = shifted[0] + shifted[1]
    p_value = sum(n for total, n in ways.items() if abs(total) >= abs(sum(differences))) / 2**90
    for name in ("correct", "score"):
        [result] = compare_all(as_counts(frame.rename(columns={"correct": name})), trials=999)
        assert (result.exact.p_lo, result.exact.p_hi) == pytest.approx((p_value, p_value), rel=1e-12)
        assert result.difference == pytest.approx(-sum(differences) / 270)


def test_missing_scores_of_one_metric_are_handled_as_asked():
    frame = pd.DataFrame(LONG)
    frame.loc[3, "BLEU"] = np.nan  # system a, item i3
    with pytest.raises(InputError, match="system 'a' has no score 'BLEU' for item 'i3'.*missing='pairwise'"):
        compare_all(frame)
    results = compare_all(frame, missing="pairwise", pairs=[("a", "b")], trials=99)
    assert [(r.metric, r.n_items) for r in results] == [("chrF", 60), ("BLEU", 59)]
    rest = [k for k in range(60) if k != 3]
    assert results[1].difference == pytest.approx(np.mean([BLEU["a"][k] - BLEU["b"][k] for k in rest]))
    assert [r.metric for r in compare_all(frame, ignore=["BLEU"], pairs=[("a", "b")], trials=99)] == ["chrF"]
    named = compare_all(frame, columns={"score": "chrF"}, pairs=[("a", "b")], trials=99)
    assert [(r.metric, r.n_items) for r in named] == [("chrF", 60)]


@pytest.mark.parametrize("dtype", [object, "boolean"])
def test_truth_values_are_groups_by_their_names_and_scores_of_0_and_1(dtype):
    rng = build_rng(17)
    passed = rng.random((2, 12)) < 0.5
    frame = pd.DataFrame({"a": passed[0], "b": passed[1], "long": pd.Series([True, False] * 6, dtype=dtype)})
    results = compare_all(frame.astype({"a": dtype, "b": dtype}), by="long", trials=99, interval="none")
    expected = {"true": slice(0, None, 2), "false": slice(1, None, 2)}
    assert {r.subset["value"]: (r.score_a, r.score_b) for r in results} == {
        name: (passed[0][rows].mean(), passed[1][rows].mean()) for name, rows in expected.items()
    }
    assert "long true" in str(results)


ROW = np.array([4, 1, 3, 2, 2, 5, 0, 1, 3, 2, 4, 1]) / 4
OTHER = np.array([1, 1, 0, 2, 5, 0, 0, 3, 1, 2, 1, 0]) / 4


def test_levels_that_number_samples_are_no_part_of_an_items_name():
    index = pd.MultiIndex.from_product([range(6), range(2)], names=["item", "seed"])
    result = compare_all(pd.DataFrame({"a": ROW, "b": OTHER}, index=index), columns={"run": "seed"})[0]
    expected = compare(ROW.reshape(6, 2).mean(axis=1), OTHER.reshape(6, 2).mean(axis=1))
    assert result.p_value == expected.p_value


@pytest.mark.parametrize(
    "make", [iter, lambda row: (value for value in row), lambda row: dict(enumerate(row)).values()]
)
def test_values_without_a_length_are_read_once(make):
    assert compare(make(ROW), make(OTHER)).p_value == compare(ROW, OTHER).p_value
    assert compare_all({"a": make(ROW), "b": make(OTHER)})[0].p_value == compare(ROW, OTHER).p_value


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (dict(enumerate(ROW)), "expected a sequence"),
        (set(ROW), "expected a sequence"),
        (np.array(1.0), "0 dimensions"),
        (ROW[:, None], "2 dimensions"),
        (ROW + 1j, "values of type complex128"),
        (np.arange(12).astype("m8[s]"), "values of type timedelta64"),
    ],
)
def test_values_without_order_or_of_another_kind_are_errors(values, problem):
    with pytest.raises(InputError, match=problem):
        compare(values, OTHER)


def test_labels_are_compared_as_texts():
    gold, a, b = ((row > 0.5).astype(int) for row in (ROW, OTHER, ROW - OTHER))
    with pytest.raises(InputError, match="values of all its 12 labels never occur in gold"):
        compare(a.astype(float), b, gold=gold, metric="accuracy")
    assert compare(np.array(["1", "2"]), np.array([b"1", b"1"]), gold=["1", "2"]).score_b == 0.5
    with pytest.raises(InputError, match="2 dimensions"):
        compare(np.eye(2)[a], b, gold=gold)
