"""A plan's gate at the end of `sigdask run`: exit status, files, history of p-values."""

import json
import signal
import time
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from builders import build_rng
from click.testing import CliRunner
from command import call_sigdask
from nights import read_tallies, run_plan_here, write_effects

from sigdask.cli import commands
from sigdask.nightly.plan import load_plan
from sigdask.nightly.run import count, run_plan

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
junit = "gate-{date}.xml"
json = "gate.json"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def test_a_gate_passes_fails_and_passes_again(folder):
    (folder / "plan.toml").write_text(PLAN + 'webhook = "http://127.0.0.1:9/"\nwhen = "always"')  # nobody answers
    write_effects(folder / "scores.csv", {"new": 0.0})
    status, text = run_plan_here(folder)
    assert (status, "gate: passed" in text) == (3, True), text
    followed = call_sigdask("status", "plan.toml", "--follow", cwd=folder)
    assert (followed.returncode, "finished (gate.webhook: no answer" in followed.stdout) == (3, True)
    assert json.loads((folder / "night.json").read_text())["results"][0]["test_set"] == "night"
    assert json.loads((folder / "gate.json").read_text())["passed"] is True
    (folder / "plan.toml").write_text(PLAN)
    write_effects(folder / "scores.csv", {"new": -0.9})
    status, text = run_plan_here(folder)
    assert (status, "gate: FAILED" in text) == (1, True), text
    [junit] = folder.glob("gate-????-??-??.xml")
    suite = ET.parse(junit).getroot()
    assert int(suite.get("failures") or suite[0].get("failures")) > 0
    status, text = run_plan_here(folder)  # nothing to count, the same verdict
    assert (status, "Nothing changed since run " in text) == (1, True), text
    write_effects(folder / "scores.csv", {"new": 0.0})
    assert run_plan_here(folder)[0] == 0


def test_what_non_inferiority_takes_is_counted_once(folder, monkeypatch):
    write_effects(folder / "scores.csv", {"new": 0.0})
    run_plan_here(folder)
    before = read_tallies(folder / "plan.sqlite")
    # the comparison, and the one with the margin: each with its exact value; resamples
    assert len(before) == 2 * 2 + 1
    first = json.loads((folder / "gate.json").read_text())
    monkeypatch.setattr(count, "run_tasks", None)
    assert run_plan_here(folder)[0] == 0
    assert read_tallies(folder / "plan.sqlite") == before
    second = json.loads((folder / "gate.json").read_text())
    assert second == first


def test_margins_of_0_1_scores_take_no_trials(folder):
    rng = build_rng(4)
    base = (rng.random(250) < 0.8).astype(int)
    rows = np.column_stack([base, np.where(rng.random(250) < 0.03, 1 - base, base)])
    (folder / "scores.csv").write_text("base,new\n" + "\n".join(f"{a},{b}" for a, b in rows) + "\n")
    rules = '[{ rule = "non-inferior", margin = 0.1 }]'
    (folder / "plan.toml").write_text(PLAN.partition("rules =")[0] + f'rules = {rules}\njson = "gate.json"\n')
    status, text = run_plan_here(folder)
    assert (status, text.count("(score test)")) == (0, 1), text
    assert len(read_tallies(folder / "plan.sqlite")) == 1  # the comparison alone, whose exact value is a binomial tail
    document = json.loads((folder / "gate.json").read_text())
    assert [rule["findings"][0]["p_value"] < 0.05 for rule in document["rules"]] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["signal", "deadline"])
def test_a_gate_that_is_stopped_is_judged_by_the_next_run(folder, monkeypatch, how):
    write_effects(folder / "scores.csv", {"new": 0.0})
    (folder / "plan.toml").write_text(PLAN.partition("[report]")[0])
    run_plan(load_plan(folder / "plan.toml"), cluster="none")
    (folder / "plan.toml").write_text(PLAN)
    plan = load_plan(folder / "plan.toml")
    run_tasks = count.run_tasks

    def stop_and_run(*arguments):
        if how == "signal":
            signal.raise_signal(signal.SIGTERM)
        else:
            time.sleep(10)
        return run_tasks(*arguments)

    monkeypatch.setattr(count, "run_tasks", lambda *arguments: call_lazily(stop_and_run, arguments))
    deadline = time.time() + 2 if how == "deadline" else None
    outcome = run_plan(plan, cluster="none", deadline=deadline)
    assert "before the gate was judged" in str(outcome.unjudged)
    assert (outcome.exit_status, outcome.gate, len(outcome.results["night"])) == (3, None, 1)
    assert (folder / "night.json").is_file()
    monkeypatch.undo()
    status, text = run_plan_here(folder)
    assert (status, "gate: passed" in text) == (0, True)


@pytest.mark.parametrize(("effect", "status"), [(0.0, 3), (-0.9, 1)])
def test_a_report_that_cannot_be_written_does_not_keep_the_gate_from_its_verdict(folder, effect, status, monkeypatch):
    write_effects(folder / "scores.csv", {"new": effect})
    plan = load_plan(folder / "plan.toml")
    monkeypatch.setattr("sigdask.cli.run.load_plan", lambda _: plan)
    (folder / "night.json").mkdir()  # after the plan was read
    exit_status, text = run_plan_here(folder)
    assert exit_status == status
    assert "night.json: cannot be written" in text
    assert ("gate: FAILED" if status == 1 else "gate: passed") in text
    assert "A - B" in (folder / "night.txt").read_text()  # the others are written
    assert json.loads((folder / "gate.json").read_text())["passed"] is (status == 3)


def call_lazily(call, arguments):
    """Yield what a call yields; the call is made when the first value is asked for."""
    yield from call(*arguments)


def test_a_plan_can_be_looked_at_when_its_inputs_are_gone(folder):
    write_effects(folder / "scores.csv", {"new": 0.0})
    run_plan_here(folder)
    (folder / "scores.csv").unlink()
    for command in ("status", "history", "report"):
        result = CliRunner().invoke(commands, [command, str(folder / "plan.toml")])
        assert result.exit_code == 0, result.output
    (folder / "plan.toml").write_text("not TOML")
    result = CliRunner().invoke(commands, ["status", str(folder / "plan.toml")])
    assert "not TOML" in str(result.exception)


def test_a_gate_with_more_failures_than_are_told_keeps_the_schema_and_counts_all(folder):
    write_effects(folder / "scores.csv", {f"new{k}": -0.9 for k in range(60)})
    assert run_plan_here(folder)[0] == 1
    for rule in json.loads((folder / "night.json").read_text())["gate"]["rules"]:  # conftest validates it
        told = [finding for finding in rule["findings"] if not finding["passed"]]
        assert (rule["n_failed"], len(told), len(rule["further_failures"])) == (60, 50, 10)


def test_a_run_that_fails_leaves_no_verdict_of_an_earlier_run(tmp_path):
    (tmp_path / "s.csv").write_text("item,new,old\n" + "".join(f"{k},{k % 3},{k % 2}\n" for k in range(30)))
    plan = tmp_path / "night.toml"
    plan.write_text(
        'trials = 500\nstore = "night.sqlite"\n[[test_set]]\nname = "news"\nsystems = "s.csv"\n'
        '[gate]\njunit = "gate.xml"\njson = "gate.json"\nrules = [{ rule = "not-worse", baseline = "old" }]\n'
    )
    call_sigdask("run", plan, cwd=tmp_path)
    files = tmp_path / "gate.xml", tmp_path / "gate.json"
    assert all(file.exists() for file in files)
    (tmp_path / "s.csv").write_text("item,new\n1,2\n")
    failed = call_sigdask("run", plan, cwd=tmp_path)
    assert failed.returncode == 2
    assert "s.csv" in failed.stderr
    assert not any(file.exists() for file in files)
