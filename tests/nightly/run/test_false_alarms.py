"""The level of a gate over many nights: losses after quiet nights, repeated observations."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sigdask.api import compare_all
from sigdask.cli import commands
from sigdask.counts import Counts
from sigdask.nightly.gate.evidence import gather_evidence
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import Evidence, NonInferior, NotWorse
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.gate import render
from sigdask.nightly.store import history, open_for_reading
from sigdask.results.from_records import results_to_table

ROOT = Path(__file__).parents[3]
AT_ALPHA = (NotWorse(0.01, baseline="base"),)
PLAN = """
trials = 9999
second_run = false
pairs = { baseline = "base" }

[[test_set]]
name = "night"
systems = "scores.csv"
format = "wide"

[gate]
"""


def build_night(lost, won, n=300, n_right=240):
    """Return 0/1 scores of a baseline and of a candidate that lost and won so many items."""
    base = (np.arange(n) < n_right).astype(int)
    new = base.copy()
    new[:lost] = 0
    new[n_right : n_right + won] = 1
    return base, new


def write_scores(folder, lost, won, shift=0):
    base, new = (np.roll(scores, shift) for scores in build_night(lost, won))
    rows = (f"i{k},{a},{b}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    (folder / "scores.csv").write_text("item,base,new\n" + "\n".join(rows) + "\n")


def run_night(folder, gate="", plan="plan.toml"):
    if gate:
        (folder / plan).write_text(PLAN + gate)
    result = CliRunner().invoke(commands, ["run", str(folder / plan), "--cluster", "none"], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result.return_value, result.output


def read_runs(folder):
    with open_for_reading(str(folder / "plan.sqlite")) as connection:
        return history.list_runs(connection, "plan")[::-1]


def run_command(*arguments):
    return CliRunner().invoke(commands, [*map(str, arguments)], standalone_mode=False).output


def write_logs(folder, number, lost, won, shift):
    """Write one more night's logs of lm-evaluation-harness; production never changes."""
    for system, scores in zip(("production", "candidate"), build_night(lost, won), strict=True):
        path = folder / "logs" / system / f"samples_task_2026-03-{number + 1:02d}T01-30-00.000000.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(
                json.dumps({"doc_id": k, "doc": {}, "target": "x", "resps": [["x"]], "filter": "none",
                            "metrics": ["acc"], "doc_hash": f"d{k}", "acc": float(score)}) + "\n"
                for k, score in enumerate(np.roll(scores, shift).tolist())
            )
        )  # fmt: skip


RECIPES = {
    "deploy/github/nightly.toml": ROOT / "deploy" / "github" / "nightly.toml",
    "sigdask examples nightly": ROOT / "sigdask" / "examples" / "nightly" / "nightly.toml",
}


@pytest.mark.parametrize(
    ("recipe", "quiet"),
    [
        ("deploy/github/nightly.toml", 1),
        pytest.param("deploy/github/nightly.toml", 9, marks=pytest.mark.slow),
        ("sigdask examples nightly", 1),
    ],
)
@pytest.mark.slow
def test_the_recipes_catch_a_loss_after_quiet_nights(tmp_path, monkeypatch, recipe, quiet):
    # 14 items lost and none won of 300: p = 2 / 2^14 = 0.00012, which passed the recipe of version 0.2 in its tenth night
    monkeypatch.setenv("CHAT_WEBHOOK", "")
    (tmp_path / "plan.toml").write_text("second_run = false\n" + RECIPES[recipe].read_text())
    for number in range(quiet):
        write_logs(tmp_path, number, 3, 3, number)
        status, text = run_night(tmp_path)
        assert (status, "gate: passed" in text) == (0, True), text
    write_logs(tmp_path, quiet, 14, 0, quiet)
    status, text = run_night(tmp_path)
    assert (status, "gate: FAILED" in text) == (1, True), text
    assert "p = 0.000123 adjusted, at most the level 0.0109" in text


def judge_night(lost, won, *, rules=AT_ALPHA, **options):
    """Return the verdict on counts of 300 items."""
    base, new = build_night(lost, won)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    results = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    evidence = Evidence({"night": "base"}, **options)
    return judge_rules(rules, results.table, evidence + gather_evidence(counts, results.table, rules, baseline="base"))


def test_a_score_that_is_undefined_does_not_pass():
    base, new = build_night(0, 3)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    [result] = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    table = results_to_table([replace(result, score_a=math.nan, difference=math.nan)], 0.05)
    verdict = judge_rules([NotWorse(0.01)], table, Evidence({"night": "base"}))
    assert not verdict.passed
    assert "no score: new or base has none by mean on night; nothing was judged" in render(verdict)


@pytest.mark.slow
def test_outputs_that_failed_before_are_one_observation_and_no_new_alarm(tmp_path):
    gate = 'command = ["sh", "-c", "echo >> told"]\nwhen = "new"\nrules = [{ rule = "not-worse" }]\n'
    for lost in (3, 20, 20, 20, 25):
        write_scores(tmp_path, lost, 3)
        status, text = run_night(tmp_path, gate)
        assert status == (lost > 3), text
    assert len((tmp_path / "told").read_text().splitlines()) == 2
    rules = [night_run.details["verdict"]["rules"][0] for night_run in read_runs(tmp_path)]
    assert [rule["findings"][0]["since"] for rule in rules] == [None, None, 2, 2, None]
    history_text = run_command("history", tmp_path / "plan.toml")
    assert "the gate failed in 4 of these 5 runs, 2 of them for outputs that had not failed before" in history_text
    (tmp_path / "scores.csv").rename(tmp_path / "same.csv")  # a file of another name with the same outputs
    (tmp_path / "plan.toml").write_text((PLAN + gate).replace("scores.csv", "same.csv"))
    assert "the outputs are the same as in run 5: no new alarm" in run_night(tmp_path)[1]


def test_a_rule_keeps_its_own_alpha_unless_the_gate_says_how_many_false_alarms(tmp_path):
    write_scores(tmp_path, 3, 3)

    def load_rule(gate):
        (tmp_path / "plan.toml").write_text(PLAN + gate)
        return load_plan(tmp_path / "plan.toml").gate.rules[0]

    rule_text = 'rules = [{ rule = "not-worse", alpha = 0.02 }]\n'
    assert load_rule(rule_text).false_alarms_per_year is None
    assert load_rule("false_alarms_per_year = 2\n" + rule_text).false_alarms_per_year == 2
    assert load_rule('rules = [{ rule = "not-worse" }]\n').false_alarms_per_year == 4


@pytest.mark.slow
def test_a_comparison_that_the_run_before_judged_is_missed(tmp_path):
    rules = 'rules = [{ rule = "not-worse" }]\n'
    base, new = build_night(3, 3)
    rows = "\n".join(f"i{k},{a},{b},{b}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    (tmp_path / "scores.csv").write_text(f"item,base,new,other\n{rows}\n")
    assert "gate: passed\n" in run_night(tmp_path, rules)[1]
    write_scores(tmp_path, 3, 3)
    _, text = run_night(tmp_path)
    assert "gate: passed, but 1 comparison of the previous run is gone (see below)" in text
    assert "note: judged in the previous run, but not in this one: other and base by mean on night" in text
    assert "gate: passed\n" in run_night(tmp_path)[1]


def test_a_margin_of_the_whole_range_shows_nothing():
    # margin = 5 on a scale of 0 to 1, as one who thinks of points writes it
    [wide] = judge_night(90, 0, rules=(NonInferior(5.0, 0.05, baseline="base"),)).rules
    assert not wide.passed
    assert "every system is within a margin as wide as the range of scores" in wide.findings[0].text
    [half] = judge_night(3, 3, rules=(NonInferior(0.9, 0.05, baseline="base"),)).rules
    assert (
        "the margin 0.9 is at least the score of base, 0.8 by mean on night: a system that scores 0" in half.notes[-1]
    )


def test_non_inferiority_from_few_units_is_doubted_in_the_first_line():
    gold = ["x", "y"] * 20
    new = [*gold[:-2], "y", "y"]
    counts = Counts.from_labels(gold, {"base": gold, "new": new}, name="night")
    results = compare_all(counts, metrics=["macro-f1"], baseline="base", second_run=False, cluster="none")
    rules = [NonInferior(0.2, 0.05)]
    verdict = judge_rules(rules, results.table, gather_evidence(counts, results.table, rules, baseline="base"))
    assert verdict.passed
    assert "discordant units: p may be too small" in verdict.rules[0].findings[0].text
    assert render(verdict).startswith("gate: passed, but p of 1 comparison may be too small (see below)")
