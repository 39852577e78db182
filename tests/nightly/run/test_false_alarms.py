"""The level of a gate over many nights: losses after quiet nights, repeated observations."""

import math

import numpy as np
import pytest
from builders import results_to_table
from nights import run_plan_here

from sigdask.analysis.comparison.pairs import CompareSpec
from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.nightly.gate.judge import gather_evidence, judge_rules
from sigdask.nightly.gate.rules import Evidence, NonInferior, NotWorse
from sigdask.nightly.report.gate import render
from sigdask.nightly.store import open_for_reading, runs

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


def run_night(folder, gate=""):
    if gate:
        (folder / "plan.toml").write_text(PLAN + gate)
    return run_plan_here(folder)


def read_runs(folder):
    with open_for_reading(str(folder / "plan.sqlite")) as connection:
        return runs.list_runs(connection, "plan")[::-1]


def judge_night(lost, won, *, rules=AT_ALPHA, **options):
    """Return the verdict on counts of 300 items."""
    base, new = build_night(lost, won)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    results = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    evidence = Evidence({"night": "base"}, **options)
    spec = CompareSpec(["mean"], baseline="base")
    return judge_rules(rules, results.table, evidence + gather_evidence(counts, results.table, rules, spec))


def test_a_score_that_is_undefined_does_not_pass():
    base, new = build_night(0, 3)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    [result] = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    table = results_to_table([result.replace(score_a=math.nan, difference=math.nan)], 0.05)
    verdict = judge_rules([NotWorse(0.01)], table, Evidence({"night": "base"}))
    assert not verdict.passed
    assert "no score: new or base has none by mean on night; nothing was judged" in render(verdict)


@pytest.mark.slow
def test_a_comparison_that_the_run_before_judged_is_missed(tmp_path):
    rules = 'rules = [{ rule = "not-worse" }]\n'
    base, new = build_night(3, 3)
    rows = "\n".join(f"i{k},{a},{b},{b}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    (tmp_path / "scores.csv").write_text(f"item,base,new,other\n{rows}\n")
    assert "gate: passed\n" in run_night(tmp_path, rules)[1]
    write_scores(tmp_path, 3, 3)
    _, text = run_night(tmp_path)
    assert "gate: passed, but 1 comparison gone since the previous run (see below)" in text
    assert "note: judged in the previous run, but not in this one: other and base by mean on night" in text
    assert "gate: passed\n" in run_night(tmp_path)[1]


@pytest.mark.parametrize("pairs", ["", 'pairs = { baseline = "new" }\n'])
def test_a_test_set_that_left_the_plan_is_missed_once(tmp_path, pairs):
    rules = 'rules = [{ rule = "not-worse" }]\n'
    write_scores(tmp_path, 3, 3)
    run_night(tmp_path, f'{rules}[[test_set]]\nname = "other"\nsystems = "scores.csv"\n{pairs}')
    _, text = run_night(tmp_path, rules)
    names = "base and new" if pairs else "new and base"
    assert f"note: judged in the previous run, but not in this one: {names} by mean on other" in text
    assert "judged in the previous run" not in run_night(tmp_path)[1]


def test_a_margin_of_the_whole_range_shows_nothing():
    # margin = 5 on a scale of 0 to 1, as one who thinks of points writes it
    [wide] = judge_night(90, 0, rules=(NonInferior(5.0, 0.05, baseline="base"),)).rules
    assert not wide.passed
    assert "every system is within a margin as wide as the range of scores" in wide.findings[0].text
