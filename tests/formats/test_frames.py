"""Scores that Python holds already, as data frames of several libraries, mappings and arrays."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from panel_of import rng_of

from sigdask import InputError, as_counts, compare_all, compare_sets
from sigdask.counts import Counts

polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

SCORES = {name: rng_of(0).integers(0, 5, 60).tolist() for name in "abc"} | {"d": rng_of(1).normal(size=60).tolist()}
WANT = compare_all(Counts.from_scores(SCORES), metrics=["mean"], trials=2000)


class Interchanged:
    """A data frame of a library that no one knows, which speaks the protocol."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, **options):
        return self.table.__dataframe__(**options)


def of_duckdb(columns):
    return duckdb.from_arrow(pa.table(columns))


FRAMES = {
    "a dict of lists": dict,
    "a dict of tuples": lambda columns: {name: tuple(own) for name, own in columns.items()},
    "pandas": pd.DataFrame,
    "pandas, columns of Arrow": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars.DataFrame,
    "polars, lazy": polars.LazyFrame,
    "pyarrow": pa.table,
    "duckdb": of_duckdb,
    "the interchange protocol": lambda columns: Interchanged(pa.table(columns)),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_a_frame_of_any_library_gives_the_results_of_its_scores(frame):
    assert compare_all(frame(SCORES), trials=2000) == WANT


def test_a_frame_of_dasks_gives_the_results_of_its_scores():
    frames = pytest.importorskip("dask.dataframe")
    given = frames.from_pandas(pd.DataFrame(SCORES), npartitions=3)
    assert compare_all(given, trials=2000, cluster="none") == WANT


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_what_a_frame_lacks_is_missing(frame):
    """Against the same with NaN in lists of numbers."""
    given = {"a": [1, None, 3, 2], "b": [True, False, True, None], "c": [0.5, 1.5, None, 2.0]}
    plain = {"a": [1, np.nan, 3, 2], "b": [1, 0, 1, np.nan], "c": [0.5, 1.5, np.nan, 2.0]}
    found, want = as_counts(frame(given), missing="pairwise"), Counts.from_scores(plain, missing="pairwise")
    assert found.present.tolist() == want.present.tolist()
    assert found.fields["score"].tolist() == want.fields["score"].tolist()
    with pytest.raises(InputError, match="system 'a' has no score for item at position 2"):
        compare_all(frame(given))


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_ids_and_groups_are_found_as_in_files(frame):
    given = {"ID": [f"i{k}" for k in range(60)], **SCORES, "document": [f"d{k % 7}" for k in range(60)]}
    want = Counts.from_scores(SCORES, ids=given["ID"], groups={"document": given["document"]})
    found = as_counts(frame(given))
    assert (found.systems, list(found.ids)) == (("a", "b", "c", "d"), given["ID"])
    assert list(found.group("document")) == given["document"]
    assert found.warnings == ("column 'document' holds no numbers: taken as groups of items",)
    here = [r.n_extreme for r in compare_all(frame(given), unit="document", trials=2000)]
    assert here == [r.n_extreme for r in compare_all(want, unit="document", trials=2000)]


def test_columns_of_numbers_are_ids_and_groups_where_they_are_named():
    given = {"number": [*range(60, 0, -1)], "topic": [k % 7 for k in range(60)], **SCORES}
    found = as_counts(pd.DataFrame(given), ids="number", groups="topic")
    assert (found.systems, found.ids[0], list(found.group("topic"))[:3]) == (tuple("abcd"), "60", ["0", "1", "2"])
    left = {name: given[name] for name in given if name != "number"}
    assert {r.unit for r in compare_all(left, unit="topic", trials=100)} == {"topic"}
    assert {r.subset["value"] for r in compare_all(left, by="topic", trials=100)} == {str(k) for k in range(7)}
    with pytest.raises(InputError, match=r"id 0 stands in rows 0 and 7"):
        as_counts(left)


def test_an_array_has_a_column_a_system():
    values = np.array([*SCORES.values()]).T
    for given in (values, values.astype(object), np.ma.MaskedArray(values, mask=False)):
        found = compare_all(given, trials=2000)
        assert [r.n_extreme for r in found] == [r.n_extreme for r in WANT]
        assert (found[0].a, found[0].b) == ("system 1", "system 2")
    assert as_counts(values, names="wxyz").systems == tuple("wxyz")
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    assert as_counts(masked, missing="pairwise").present.tolist() == [[True, False], [True, True]]


def test_decimals_are_the_numbers_that_they_are():
    tenths = [decimal.Decimal("0.1"), decimal.Decimal("0.3"), None]
    for frame in (dict, pd.DataFrame, polars.DataFrame, pa.table):
        found = as_counts(frame({"a": tenths, "b": [1, 2, 3]}), missing="pairwise")
        assert found.fields["score"][:, 0].tolist() == [0.1, 0.3, 0.0]


def test_several_sets_may_be_frames_and_counts():
    second = Counts.from_scores(SCORES, name="second")
    assert {r.test_set for r in compare_sets([pd.DataFrame(SCORES), second], trials=100)} == {"", "second"}


DATES = [dt.date(2026, 1, k) for k in (1, 2)]


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (5, {}, "int holds no scores: expected counts, a mapping"),
        ([[1, 2], [3, 4]], {}, "list holds no scores: expected counts, a mapping"),
        (np.zeros(3), {}, r"an array of shape \(3,\): expected .*of shape \(n_items, n_systems\)"),
        (np.zeros((3, 1)), {}, "a comparison needs two systems or more, found only 'system 1'"),
        (np.zeros((3, 2)), {"names": ["a"]}, "1 names for 2 columns"),
        ({"a": [1], "b": [2]}, {"names": ["x", "y"]}, "names are of an array's systems"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "this data frame cannot be read: .*'a' 2 times"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), {}, "system name '1' occurs twice"),
        ({"a": [1, 2], "b": [2, 3], "who": ["x", "y"]}, {}, r"column 'who' holds texts, no scores: name it in ids="),
        ({"a": [1, 2], "b": [2, 3], "when": np.array(DATES, "M8[D]")}, {}, r"column 'when' holds values of type date"),
        ({"a": [1, 2], "b": [2, "x"]}, {}, "scores of 'b': could not convert string to float: 'x'"),
        ({"a": [[1], [2]], "b": [1, 2]}, {}, "scores of 'a': 2 dimensions, expected one number per item"),
        ({"a": [1, 2], "b": [2, 3]}, {"ids": "nr"}, "no column 'nr'; columns: a, b"),
        ({"id": [1, 2], "b": [2, 3]}, {}, "a comparison needs two systems or more, found only 'b'"),
        ({}, {}, "a comparison needs two systems or more, found none"),
    ],
)  # fmt: skip
def test_what_holds_no_scores_is_said(given, options, said):
    with pytest.raises(InputError, match=said):
        as_counts(given, **options)


def test_a_unit_that_a_frame_lacks_is_said():
    with pytest.raises(InputError, match="no column 'document'; columns: a, b, c, d"):
        compare_all(SCORES, unit="document")
