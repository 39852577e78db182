"""Tests of the schema of the results' JSON. The fixture in conftest checks all JSON against it."""

import copy
import csv
import json

import jsonschema
import numpy as np
import pytest
from conftest import build_validator
from nights import write_plan

from sigdask.api import compare_all, compare_sets
from sigdask.counts import Counts
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.report.analyses import load_results
from sigdask.results import comparisons
from sigdask.results.columns import load_schema

RNG = np.random.default_rng(4)
SCORES = {name: RNG.integers(0, 5, 60) / 4 for name in "abc"}
GROUPS = {"genre": ["news", "web"] * 30, "document": [f"d{k // 4}" for k in range(60)]}
KINDS = {
    "plain": {},
    "by": {"by": "genre", "together": True},
    "unit": {"unit": "document"},
    "tests": {"tests": "all", "interval": "bootstrap", "resamples": 50},
    "inversion": {"interval": "inversion", "method": "randomization"},
    "tukey": {"adjust": "tukey", "method": "randomization"},
    "bootstrap": {"adjust": "max-t", "interval": "bootstrap", "resamples": 50, "alternative": "less"},
    "baseline": {"baseline": "c", "alternative": "greater", "second_run": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_result_keeps_the_schema(kind, tmp_path):
    options = {"trials": 99, "interval": "none", "metrics": ["mean"]} | KINDS[kind]
    results = compare_all(Counts.from_scores(SCORES, groups=GROUPS), **options)
    build_validator().validate(json.loads(results.to_json()))
    build_validator().validate(results.to_dict())
    (tmp_path / "r.json").write_text(results.to_json())
    assert load_results(tmp_path / "r.json").to_dict() == results.to_dict()


def test_several_sets_keep_it():
    sets = [Counts.from_scores(SCORES, name=name) for name in ("one", "two")]
    results = compare_sets(sets, metrics=["mean"], trials=99, together=True, interval="none")
    build_validator().validate(results.to_dict())


def test_the_report_of_a_plan_keeps_it_and_what_it_writes_for_papers_is_that_of_its_test_sets(tmp_path):
    report_table = '[report]\njson = "r.json"\nlatex = "r.tex"\nmarkdown = "r-{date}.md"\n'
    plan = write_plan(tmp_path / "p", sets=2, systems=3, trials=99, settings="")
    plan.write_text(plan.read_text() + report_table)
    outcome = run_plan(load_plan(plan))
    folder = tmp_path / "p"
    written_json = json.loads((folder / "r.json").read_text())
    build_validator().validate(written_json)
    assert written_json["schema_version"] == comparisons.VERSION
    expected = [results.to_markdown() for results in outcome.results.values()]
    [markdown] = folder.glob("r-*.md")
    assert markdown.read_text() == "\n".join(expected)
    tex = (folder / "r.tex").read_text()
    assert tex.count(r"\begin{tabular}") == 2
    assert r"\label{tab:sigdask-2}" in tex


def test_an_unknown_key_or_kind_of_value_is_refused():
    results = compare_all(Counts.from_scores(SCORES), metrics=["mean"], trials=19).to_dict()
    for change in ({"more": 1}, {"seed": "0"}, {"schema_version": 2}):
        with pytest.raises(jsonschema.ValidationError):
            build_validator().validate(results | change)
    for key, value in (("more", 1), ("p_value", 1.5), ("method", "guessed")):
        wrong = copy.deepcopy(results)
        wrong["results"][0][key] = value
        with pytest.raises(jsonschema.ValidationError):
            build_validator().validate(wrong)


def test_the_schema_is_one_and_names_the_keys_that_lines_have():
    schema_dict = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema_dict)
    assert schema_dict["properties"]["schema_version"]["const"] == comparisons.VERSION
    result_schema = schema_dict["$defs"]["result"]
    keys = {*compare_all(Counts.from_scores(SCORES), trials=9).to_dict()["results"][0]}
    assert result_schema["properties"].keys() == {*result_schema["required"]} == keys


FRAME_COLUMNS = {
    "test_set", "unit", "a", "b", "metric", "higher_is_better", "score_a", "score_b", "difference", "alternative",
    "n_items", "n_units", "n_discordant", "method", "n_trials", "n_extreme", "p_value", "p_adjusted", "r12", "signature",
    "test_signature", "paired_d",
}  # fmt: skip


def test_csv_parquet_and_frames_have_the_values_of_the_json(tmp_path):
    import pyarrow.parquet

    options = {"interval": "bootstrap", "resamples": 50, "tests": "t,sign", "trials": 99, "by": "genre"}
    results = compare_all(Counts.from_scores(SCORES, groups=GROUPS), metrics=["mean"], **options)
    rows = json.loads(results.to_json())["results"]
    results.write(tmp_path / "t.csv", tmp_path / "t.parquet")
    with (tmp_path / "t.csv").open(newline="") as file:
        csv_rows = [*csv.DictReader(file)]
    parquet = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist()
    frames = {name: results.to_frame(name) for name in ("pandas", "polars", "pyarrow")}
    row_lists = [
        frames["pandas"].replace({np.nan: None}).to_dict("records"), frames["polars"].to_dicts(),
        frames["pyarrow"].to_pylist(), parquet,
    ]  # fmt: skip
    for k, row in enumerate(rows):
        expected = {key: row[key] for key in FRAME_COLUMNS} | {
            f"{item['name']}_p_value": item["p_value"] for item in row["tests"]
        }
        expected |= {f"interval_{key}": row["interval"][key] for key in ("method", "confidence", "low", "high")}
        expected |= {"subset": row["subset"]["value"], "second_run_p_value": (row["second_run"] or {}).get("p_value")}
        for key, value in expected.items():
            for item in row_lists:
                assert item[k][key] == value, key
            assert csv_rows[k][key] == ("" if value is None else str(value)), key
