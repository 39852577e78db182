"""A plan's gate at the end of `sigdask run`: exit status, files, history of p-values."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner
from panel_of import rng_of

from sigdask.cli import commands
from sigdask.gating import earlier
from sigdask.store import Run, history, reading

PLAN = """
trials = 9999
second_run = false

[[test_set]]
name = "night"
systems = "scores.csv"
format = "wide"
pairs = { baseline = "base" }

[report]
json = "night.json"
text = "night.txt"

[gate]
rules = [{ rule = "not-worse", alpha = 0.01 }, { rule = "non-inferior", margin = 0.5 }]
junit = "gate.xml"
json = "gate.json"
"""


def scores(folder, effect, seed=3):
    rng = rng_of(seed)
    base = rng.standard_normal(80)
    table = np.column_stack([base, base + effect + 0.3 * rng.standard_normal(80)]).round(2)
    (folder / "scores.csv").write_text("base,new\n" + "\n".join(f"{a},{b}" for a, b in table) + "\n")


def run(folder):
    found = CliRunner().invoke(commands, ["run", str(folder / "plan.toml"), "--cluster", "none"], standalone_mode=False)
    if found.exception is not None:
        raise found.exception
    return found.return_value, found.output


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_gate_passes_fails_and_passes_again(folder):
    scores(folder, 0.0)
    status, text = run(folder)
    assert (status, "gate: passed" in text) == (0, True), text
    assert json.loads((folder / "night.json").read_text())["results"][0]["test_set"] == "night"
    assert "not told apart" in (folder / "night.txt").read_text() or "new" in (folder / "night.txt").read_text()
    assert json.loads((folder / "gate.json").read_text())["passed"] is True
    scores(folder, -0.9)
    status, text = run(folder)
    assert (status, "gate: FAILED" in text) == (1, True), text
    suite = ET.parse(folder / "gate.xml").getroot()
    assert int(suite.get("failures") or suite[0].get("failures")) > 0
    status, text = run(folder)  # nothing to count, the same verdict
    assert (status, "0 trials counted" in text) == (1, True)
    scores(folder, 0.0)
    assert run(folder)[0] == 0


def test_the_history_of_a_rule_has_each_night_of_other_inputs_once(folder):
    for effect in (0.0, 0.0, 0.2, 0.2, 0.1):
        scores(folder, effect)
        run(folder)
    [store] = [p for p in folder.iterdir() if p.suffix not in {".toml", ".csv", ".json", ".txt", ".xml"}]
    with reading(str(store)) as connection:
        runs = history.runs_of(connection, history.plan_of(connection, None))[::-1]
    assert len(runs) == 5
    kept = earlier(runs, runs[-1])
    assert {len(p) for p in kept.values()} == {2}
    assert [len(next(iter(earlier(runs, r).values()), [])) for r in runs] == [0, 0, 1, 1, 2]
    assert all(0 < p <= 1 for own in kept.values() for p in own)


def test_a_run_that_changed_nothing_gives_way_to_the_later_one():
    def made(number, inputs, p=None):
        details = {"inputs": {"t": inputs}} | ({} if p is None else {"gate": {"rule": p}})
        return Run(number, "plan", "", 0.0, 0.0, 0.0, "finished", "", 0, details, "")

    runs = [made(1, "a", 0.1), made(2, "a", 0.2), made(3, "b"), made(4, "b", 0.3), made(5, "c")]
    assert earlier(runs, runs[-1]) == {"rule": [0.2, 0.3]}
    assert earlier(runs, runs[1]) == {}
