"""The page that a run writes opens what the gate looks at; a page of the store says where to find that."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from panel_of import rng_of

from sigdask.cli import commands

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


def write(path, effects, seed):
    rng = rng_of(seed)
    base = rng.standard_normal(60)
    names = [*effects]
    columns = [base + effect + 0.4 * rng.standard_normal(60) for effect in effects.values()]
    table = np.column_stack(columns).round(2)
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in table.tolist())]) + "\n")


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "news.csv", {"base": 0, "good": 1, "bad": -1}, 1)
    write(tmp_path / "talks.csv", {f"t{k}": 0.6 * k for k in range(7)}, 2)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def command(*words):
    return CliRunner().invoke(commands, words, standalone_mode=False)


def opened_in(file):
    text = file.read_text()
    [found] = re.findall(r'<script type="application/json" id="data-details">(.*?)</script>', text)
    return text, json.loads(found)["opened"]


def test_what_the_gate_looks_at_is_opened_failures_first(folder):
    found = command("run", str(folder / "plan.toml"), "--cluster", "none")
    assert found.return_value == 1, found.output  # the gate fails
    text, opened = opened_in(folder / "night.html")
    assert [own["title"] for own in opened[:2]] == ["bad and base by mean on news", "good and base by mean on news"]
    assert all("on talks" in own["title"] for own in opened[2:])
    assert "those that the gate looks at" in text
    assert f"sigdask run {folder / 'plan.toml'}" in text
    results = json.loads(
        command("report", str(folder / "plan.toml"), "--json", "-").output
    )["results"]  # fmt: skip
    for own in opened:
        r = results[own["row"]]
        assert own["title"] == f"{r['a']} and {r['b']} by mean on {r['test_set']}"
        assert own["runs"][0]["extreme"][-1] == r["n_extreme"]
        assert own["runs"][1]["extreme"][-1] == r["second_run"]["n_extreme"]


def test_a_second_run_opens_them_again_from_what_is_kept(folder):
    command("run", str(folder / "plan.toml"), "--cluster", "none")
    _, before = opened_in(folder / "night.html")
    command("run", str(folder / "plan.toml"), "--cluster", "none")
    _, after = opened_in(folder / "night.html")
    assert after == before


def test_a_page_of_the_store_says_where_comparisons_are_opened(folder):
    command("run", str(folder / "plan.toml"), "--cluster", "none")
    command("report", str(folder / "plan.toml"), "--html", str(folder / "later.html"))
    text = (folder / "later.html").read_text()
    assert "opened on the page that `sigdask run` itself writes" in text
    assert "data-details" not in text
