"""A run's page opens details of what the gate looks at; a page of the store says where they are."""

import json
import re

import pytest
from command import call_sigdask
from nights import run_plan_here, write_effects

PLAN = """
trials = 4999

[[test_set]]
name = "news"
systems = "news.csv"
format = "wide"
pairs = { baseline = "base" }

[[test_set]]
name = "talks"
systems = "talks.csv"
format = "wide"

[report]
html = "night.html"

[gate]
rules = [{ rule = "not-worse", alpha = 0.01, test_sets = ["news"] }]
"""


@pytest.fixture
def folder(tmp_path):
    write_effects(tmp_path / "news.csv", {"good": 1, "bad": -1}, 1)
    write_effects(tmp_path / "talks.csv", {f"t{k}": 0.6 * k for k in range(7)}, 2)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def read_details(file):
    text = file.read_text()
    [content] = re.findall(r'<script type="application/json" id="data-details">(.*?)</script>', text)
    return text, json.loads(content)["opened"]


def test_what_the_gate_looks_at_is_opened_failures_first(folder):
    assert run_plan_here(folder)[0] == 1  # the gate fails
    text, opened = read_details(folder / "night.html")
    assert [entry["title"] for entry in opened[:2]] == ["bad and base by mean on news", "good and base by mean on news"]
    assert all("on talks" in entry["title"] for entry in opened[2:])
    assert "comparisons that the gate judges" in text
    assert "sigdask run plan.toml" in text
    assert str(folder) not in text
    results = json.loads(call_sigdask("report", "plan.toml", "--json", "-", cwd=folder).stdout)["results"]
    for entry in opened:
        r = results[entry["row"]]
        assert entry["title"] == f"{r['a']} and {r['b']} by mean on {r['test_set']}"
