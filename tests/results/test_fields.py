"""Tests of the registry of result fields: a field that is added there is in all that is made of results."""

import csv
import json
from dataclasses import replace

import jsonschema
import numpy as np
import pyarrow.parquet
import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.nightly.store import StoredResults, open_for_reading, open_store, results
from sigdask.report.presentable import Results
from sigdask.results import fields
from sigdask.results.columns import CodedColumn
from sigdask.results.fields import ResultField, get_result, iter_results
from sigdask.results.from_records import results_to_table
from sigdask.results.table import Table

EFFORT = ResultField("effort", unit="hours", help="Time that annotators took.")
TEAM = ResultField("team", kind="string", help="Who annotated.")
EFFORTS = [1.5, None, 0.25]
TEAMS = ["red", "blue", "red"]


@pytest.fixture
def added_results(monkeypatch):
    monkeypatch.setattr(fields, "FIELDS", (*fields.FIELDS, EFFORT, TEAM))
    rng = np.random.default_rng(3)
    counts = Counts.from_scores({name: rng.integers(0, 5, 40) / 4 for name in "abc"})
    found = compare_all(counts, metrics=["mean"], trials=99, tests="sign")
    added = {"effort": np.array([1.5, np.nan, 0.25]), "team": CodedColumn.from_values(TEAMS)}
    return replace(found, table=replace(found.table, added=added))


def get_added(table):
    return [(r.added["effort"], r.added["team"]) for r in iter_results(table)]


def test_an_added_field_is_in_rows_taken_and_joined(added_results):
    table = added_results.table
    rows = list(zip(EFFORTS, TEAMS, strict=True))
    assert get_added(table) == rows
    assert get_result(table, 2).added == {"effort": 0.25, "team": "red"}
    assert get_added(table.take(np.array([2, 0]))) == [rows[2], rows[0]]
    assert get_added(Table.join([table.take(slice(1, 3)), table])) == [*rows[1:], *rows]
    assert get_added(Table.join([replace(table, added={}), table]))[3:] == rows
    assert get_added(results_to_table([*added_results], table.alpha)) == rows


def test_an_added_field_is_in_json_and_its_schema(added_results):
    document = json.loads(added_results.to_json())
    assert [(row["effort"], row["team"]) for row in document["results"]] == list(zip(EFFORTS, TEAMS, strict=True))
    assert document == added_results.to_dict()
    whole_schema = json.loads(fields.read_schema())
    jsonschema.Draft202012Validator(whole_schema).validate(document)
    schema = whole_schema["$defs"]["result"]
    assert schema["properties"]["effort"] == {
        "type": ["number", "null"],
        "description": "Time that annotators took. In hours.",
    }
    assert schema["required"][-2:] == ["effort", "team"]
    del document["results"][0]["effort"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole_schema).validate(document)


def test_an_added_field_is_in_frames_and_files(added_results, tmp_path):
    added_results.to_csv(tmp_path / "t.csv")
    added_results.to_parquet(tmp_path / "t.parquet")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [(row["effort"], row["team"]) for row in csv.DictReader(file)] == [
            ("1.5", "red"), ("", "blue"), ("0.25", "red"),
        ]  # fmt: skip
    parquet = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert parquet.column_names[-2:] == ["effort", "team"]
    for table in (parquet, added_results.to_frame("pyarrow")):
        assert (table["effort"].to_pylist(), table["team"].to_pylist()) == (EFFORTS, TEAMS)
    frame = added_results.to_frame()
    assert frame["effort"].tolist() == [1.5, pytest.approx(np.nan, nan_ok=True), 0.25]
    assert added_results.to_frame("polars")["effort"].to_list() == EFFORTS


def test_an_added_field_is_stored_and_a_change_of_it_is_a_change(added_results, tmp_path):
    store_path = str(tmp_path / "night.sqlite")
    table = added_results.table
    more = replace(table, added={**table.added, "effort": np.array([1.5, 2.0, 0.25])})
    none = np.full(len(table), -1), np.ones(len(table), np.bool_)
    with open_store(store_path, "plan") as store:
        for night_table, n_changed in ((replace(table, added={}), 3), (table, 3), (table, 0), (more, 1)):
            store.begin_run("plan.toml", {}, [])
            assert store.save_results([StoredResults(night_table, *none)]) == n_changed
            store.end_run("finished", "", {})
    with open_for_reading(store_path) as connection:
        stored = results.fetch_current(connection, "plan", table.alpha).table
    assert get_added(stored) == [(1.5, "red"), (2.0, "blue"), (0.25, "red")]
    assert Results(stored, 0, table.alpha) == Results(more, 0, table.alpha)
