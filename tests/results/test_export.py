"""Tests of output files: CSV and Parquet beside JSON, and hundreds of thousands of results."""

import csv
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import results_to_table
from nights import write_plan

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import run_plan
from sigdask.report.page import render_page
from sigdask.report.presentable import Results
from sigdask.report.screen import render
from sigdask.results import export
from sigdask.results.columns import encode


def compare_systems(names="abcd", **options):
    rng = np.random.default_rng(2)
    scores = {name: (rng.random(60) < 0.5 + k / 20).astype(int) for k, name in enumerate(names)}
    return compare_all(Counts.from_scores(scores), metrics=["mean"], **{"trials": 99} | options)


def repeat_rows(results, n):
    """Repeat the same rows under other names."""
    table = results.table.take(np.arange(n) % len(results))
    names = tuple(f"s{k}" for k in range(n))
    return replace(results, table=table.replace(a=encode(names)))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(export, "PART_ROWS", 4)  # so that files are of several parts


def test_files_of_no_comparison_have_columns(tmp_path):
    import pyarrow.parquet

    none = Results(results_to_table((), 0.05), 0, 0.05)
    none.write(tmp_path / "t.csv", tmp_path / "t.parquet")
    names = (tmp_path / "t.csv").read_text().strip().split(",")
    assert names == pyarrow.parquet.read_table(tmp_path / "t.parquet").column_names
    assert json.loads(none.to_json())["results"] == []


def test_a_plan_writes_its_tables(tmp_path):
    import pyarrow.parquet

    report_option = f'report = {{ csv = "{tmp_path / "out.csv"}", parquet = "{tmp_path / "out-{date}.parquet"}" }}'
    plan = load_plan(write_plan(tmp_path / "night", sets=2, systems=3, trials=200, settings=report_option))
    outcome = run_plan(plan, cluster="none")
    assert outcome.exit_status == 0
    rows = [r for set_results in outcome.results.values() for r in set_results]
    with (tmp_path / "out.csv").open(newline="") as file:
        assert [(row["test_set"], float(row["p_value"])) for row in csv.DictReader(file)] == [
            (r.test_set, r.p_value) for r in rows
        ]
    [parquet] = tmp_path.glob("out-*.parquet")
    assert pyarrow.parquet.read_table(parquet)["p_adjusted"].to_pylist() == [r.p_adjusted for r in rows]


FORMULAS = ["=1+1", "+a", "-x", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=a,"b"', "=-1"]
HARMLESS = ["'a'", "''=1", "'", "-1", "+2.5e3", "a=1", "a\rb", "x\u2028y", "", " =1"]


def test_a_csv_file_has_the_same_names_for_whoever_reads_it_back(tmp_path):
    names = [*FORMULAS, *HARMLESS]
    results = compare_systems(names, trials=9, adjust="none")
    results.write(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    assert [(row["a"], row["b"]) for row in rows] == [(r.a, r.b) for r in results]
    assert [float(row["difference"]) for row in rows] == [r.difference for r in results]
    assert any(row["difference"].startswith("-") for row in rows)  # numbers stay numbers
    assert "-1" in {row["a"] for row in rows}


@pytest.mark.slow
def test_what_is_printed_of_many_is_the_smallest_p_and_the_number_of_all():
    results = repeat_rows(compare_systems("abcdefgh"), 30_000)
    text = render(results)
    assert "30,000 comparisons: " in text
    assert len(text.splitlines()) < 60
    html = render_page({"": results}, title="t")
    assert "The 20,000 with the smallest p of 30,000; the JSON has all." in html
    assert html.count("<tr") < 300
    assert len(html.encode()) < 15e6
    p_values = sorted(results.table.p_value[k] for k in range(len(results)))[:40]
    smallest = min(r.p_value for r in results[:28])
    assert math.isclose(p_values[0], smallest)


@pytest.mark.slow
def test_many_rankings_are_all_on_a_page_and_fewer_on_a_terminal():
    results = compare_systems("abcdefgh", adjust="none")
    rows = [r.replace(subset={"column": "kind", "value": f"k{k}"}) for k in range(50) for r in results]
    table = Results(results_to_table(rows, 0.05), 0, 0.05)
    assert render_page({"": table}, title="t").count("Discriminative power <") == 50
    assert "more rankings" in render(table)
    assert render(table, everything=True).count("ranking by mean") == 50


@pytest.mark.slow
def test_the_json_of_half_a_million_is_written_in_flat_memory(tmp_path):
    # in a process of its own, whose peak is of nothing else
    (tmp_path / "write.py").write_text(
        "import resource, test_export\n"
        "results = test_export.repeat_rows(test_export.compare_systems('abcdefgh'), 499_500)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with open('t.json', 'w') as file:\n"
        "    file.writelines(results.json_parts())\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    folders = map(str, (Path(__file__).parent, Path(__file__).parent.parent, Path(__file__).parent.parent.parent))
    env = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}
    written = subprocess.run(
        [sys.executable, "write.py"], cwd=tmp_path, env=env, check=True, stdout=subprocess.PIPE, text=True
    )
    assert (tmp_path / "t.json").stat().st_size > 400e6
    assert int(written.stdout) < 150_000  # KB
