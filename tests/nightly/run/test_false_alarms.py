"""The level of a gate over many nights: losses after quiet nights, repeated observations."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from jsonschema import validate

from sigdask.api import compare_all
from sigdask.cli import commands
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.nightly.gate.evidence import gather_evidence
from sigdask.nightly.gate.judge import judge_rules
from sigdask.nightly.gate.rules import Evidence, NonInferior, NotWorse, format_rule_name
from sigdask.nightly.plan import load_plan
from sigdask.nightly.report.gate import build_record, is_alarm, list_findings, render
from sigdask.nightly.store import history, open_for_reading, open_store
from sigdask.results import fields
from sigdask.results.from_records import results_to_table
from sigdask.statistics.multiplicity import compute_levels, compute_old_levels

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


def test_the_default_catches_a_loss_after_quiet_nights_at_the_same_level_every_night(tmp_path):
    gate = 'rules = [{ rule = "not-worse" }]\n'
    for number in range(9):
        write_scores(tmp_path, 3, 3, number)
        assert run_night(tmp_path, gate)[0] == 0
    write_scores(tmp_path, 14, 0, 9)
    assert run_night(tmp_path)[0] == 1
    rules = [night_run.details["verdict"]["rules"][0] for night_run in read_runs(tmp_path)]
    assert [rule["level"] for rule in rules] == pytest.approx([4 / 365] * 10)


def judge_night(lost, won, *, fdr="none", past=(), rules=AT_ALPHA, **options):
    """Return the verdict on counts of 300 items, after earlier nights."""
    base, new = build_night(lost, won)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    results = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    evidence = Evidence({"night": "base"}, history={format_rule_name(rules[0]): past}, **options)
    return judge_rules(
        rules, results.table, evidence + gather_evidence(counts, results.table, rules, baseline="base"), fdr=fdr
    )


def test_the_loss_that_lond_misses_is_said_to_be_missed():
    # LOND at 0.01 after nine quiet nights: 0.01 * 10^-1.6 / zeta(1.6) = 0.00011 < 0.00012
    verdict = judge_night(14, 0, fdr="lond", past=[0.5] * 9)
    assert verdict.passed
    assert verdict.rules[0].level == pytest.approx(0.01 * 10**-1.6 / 2.2857656, rel=1e-6)
    notes = "; ".join(verdict.rules[0].notes)
    assert "lond has lost its power: a loss of less than" in notes
    assert "false_alarms_per_year = 4 instead of fdr judges every night at level 0.0109" in notes
    assert not any("lost its power" in note for note in judge_night(14, 0, fdr="lond").rules[0].notes)
    assert not judge_night(14, 0, rules=(NotWorse(0.05, baseline="base", false_alarms_per_year=4.0),)).passed


def test_rules_share_the_false_alarms_of_a_year_by_their_comparisons():
    base, new = build_night(14, 0)
    counts = Counts.from_scores({"base": base, "new": new, "old": base[::-1].copy()}, name="night")
    table = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none").table
    shared_rule = NotWorse(0.05, false_alarms_per_year=4.0)
    separate_rules = [NotWorse(0.05, adjust=adjust, false_alarms_per_year=4.0) for adjust in ("holm", "none")]
    evidence = Evidence({"night": "base"})
    [ruling] = judge_rules([shared_rule], table, evidence).rules
    assert (ruling.level, ruling.least_level) == pytest.approx((4 / 365, 2 / 365))
    shared = judge_rules([*separate_rules, NotWorse(0.02)], table, evidence, runs_per_year=100).rules
    assert [rule.level for rule in shared] == pytest.approx([0.02, 0.02, 0.02])
    assert [rule.least_level for rule in shared] == pytest.approx([0.01, 0.01, 0.01])
    assert [rule.alarms_per_year for rule in shared] == pytest.approx([2, 2, 2])
    assert sum(rule.alarms_per_year for rule in shared[:2]) == pytest.approx(4)  # those of the year; alpha comes on top
    assert "0.02 over 2 of the gate's 4 comparisons: 4 false alarms a year over 100 runs" in shared[0].notes[0]
    [capped] = judge_rules([NotWorse(0.05, false_alarms_per_year=4.0)], table, evidence, runs_per_year=12).rules
    assert (capped.level, capped.alarms_per_year) == pytest.approx((0.05, 0.6))
    assert "alpha 0.05, which is stricter than 4 false alarms a year over 12 runs" in capped.notes[0]


@pytest.mark.parametrize(("adjust", "systems", "alarms"), [("bh", 3, 12), ("by", 3, 12), ("holm", 3, 4), ("bh", 1, 4)])
def test_a_rate_of_false_differences_is_no_limit_of_false_alarms(tmp_path, adjust, systems, alarms):
    """By Bonferroni, three comparisons at the level 4 / 365 have at most 12 false alarms a year; one has 4.

    In simulations with 30 better and 10 equal systems a third of the nights failed at a level of 0.1 by BH.
    """
    base, new = build_night(0, 9)
    rows = (f"i{k},{a}{f',{b}' * systems}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    header = ",".join(["item", "base", *(f"new{k}" for k in range(systems))])
    (tmp_path / "scores.csv").write_text("\n".join([header, *rows]) + "\n")
    (tmp_path / "plan.toml").write_text(f'adjust = "{adjust}"\n{PLAN}rules = [{{ rule = "not-worse" }}]\n')
    assert run_night(tmp_path)[0] == 0
    [rule] = read_runs(tmp_path)[0].details["verdict"]["rules"]
    assert rule["alarms_per_year"] == pytest.approx(alarms)
    assert any("limits the share of false differences" in note for note in rule["notes"]) == (alarms == 12)


def test_more_runs_than_the_plan_says_are_told():
    rule = NotWorse(0.05, baseline="base", false_alarms_per_year=4.0)
    many_notes, few_notes = (judge_night(0, 0, rules=(rule,), n_runs=n).rules[0].notes for n in (366, 365))
    assert "366 runs with new inputs in the last 365 days, but runs_per_year is 365" in "".join(many_notes)
    assert "runs_per_year is" not in "".join(few_notes)


def test_a_loss_that_the_plan_calls_significant_and_the_gate_lets_pass_is_explained_in_its_line():
    [finding] = judge_night(8, 1).rules[0].findings  # p = 2 * (1 + 9) / 2^9 = 0.0390625
    assert finding.passed
    assert "above the level 0.01" in finding.text
    assert "; significant at the plan's alpha 0.05 (p = 0.0391), but no alarm of the gate" in finding.text


def test_a_score_that_is_undefined_does_not_pass():
    base, new = build_night(0, 3)
    counts = Counts.from_scores({"base": base, "new": new}, name="night")
    [result] = compare_all(counts, metrics=["mean"], baseline="base", second_run=False, cluster="none")
    table = results_to_table([replace(result, score_a=math.nan, difference=math.nan)], 0.05)
    verdict = judge_rules([NotWorse(0.01)], table, Evidence({"night": "base"}))
    assert not verdict.passed
    assert "no score: new or base has none by mean on night; nothing was judged" in render(verdict)


def test_a_gate_that_could_not_fail_says_so_in_its_first_line():
    verdict = judge_night(0, 0, rules=(NotWorse(1e-99, baseline="base"),))
    assert (
        render(verdict).splitlines()[0]
        == "gate: passed, but 1 comparison could not fail, for lack of data (see the notes)"
    )
    assert render(judge_night(0, 0)).splitlines()[0] == "gate: passed"


def test_outputs_that_failed_before_are_one_observation_and_no_new_alarm(tmp_path):
    gate = 'command = ["sh", "-c", "echo >> told"]\nwhen = "new"\nrules = [{ rule = "not-worse" }]\n'
    for lost in (3, 20, 20, 20, 25):
        write_scores(tmp_path, lost, 3)
        status, text = run_night(tmp_path, gate)
        assert status == (lost > 3), text
    assert len((tmp_path / "told").read_text().splitlines()) == 2
    rules = [night_run.details["verdict"]["rules"][0] for night_run in read_runs(tmp_path)]
    assert [rule["repeats"] for rule in rules] == [None, None, 2, 2, None]
    assert [rule["findings"][0]["since"] for rule in rules] == [None, None, 2, 2, None]
    history_text = run_command("history", tmp_path / "plan.toml")
    assert "the gate failed in 4 of these 5 runs, 2 of them for outputs that had not failed before" in history_text
    (tmp_path / "scores.csv").rename(tmp_path / "same.csv")  # a file of another name with the same outputs
    (tmp_path / "plan.toml").write_text((PLAN + gate).replace("scores.csv", "same.csv"))
    assert "the outputs are the same as in run 5: no new alarm" in run_night(tmp_path)[1]


def test_more_failures_than_a_record_has_texts_of_are_no_new_alarm_with_the_same_outputs(tmp_path):
    base, new = build_night(40, 0)
    header = ",".join(["item", "base", *(f"new{k}" for k in range(60))])
    rows = (f"i{k},{a},{','.join([str(b)] * 60)}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    (tmp_path / "scores.csv").write_text("\n".join([header, *rows]) + "\n")
    gate = (
        'command = ["sh", "-c", "echo >> told"]\nwhen = "new"\n'
        'rules = [{ rule = "not-worse" }, { rule = "non-inferior", margin = 0.01 }]\n'
    )
    texts = [run_night(tmp_path, gate) for _ in range(3)]
    assert [(status, text.count("no new alarm")) for status, text in texts] == [(1, 0), (1, 121), (1, 121)]
    assert len((tmp_path / "told").read_text().splitlines()) == 1
    assert "failed in 3 of these 3 runs, 1 of them" in run_command("history", tmp_path / "plan.toml")
    records = [night_run.details["verdict"] for night_run in read_runs(tmp_path)]
    assert [is_alarm(record) for record in records] == [True, False, False]
    counts = [[(rule["n_failed"], len(list_findings(rule))) for rule in record["rules"]] for record in records]
    assert counts == [[(60, 60), (60, 60)]] * 3


def test_a_rule_that_fails_as_a_whole_is_a_new_alarm_beside_an_old_failure():
    old = judge_night(40, 0)
    [rule] = old.rules
    stale = replace(rule, findings=tuple(replace(finding, since=1) for finding in rule.findings))
    whole = replace(rule, findings=(), notes=("applies to no comparison",))
    verdicts = [replace(old, rules=rules) for rules in ((stale,), (stale, whole), (stale, rule))]
    assert [verdict.is_new for verdict in verdicts] == [False, True, True]
    assert [is_alarm(build_record(verdict)) for verdict in verdicts] == [False, True, True]


def test_nights_with_the_same_outputs_count_once_for_an_online_rule_and_keep_their_level(tmp_path):
    gate = 'fdr = "lord++"\nrules = [{ rule = "not-worse", alpha = 0.05 }]\n'
    for lost in (3, 4, 4, 4, 5):
        write_scores(tmp_path, lost, 3)
        run_night(tmp_path, gate)
    verdicts = [night_run.details["verdict"]["rules"][0] for night_run in read_runs(tmp_path)]
    first, second, third = compute_levels([1.0, 1.0], 0.05, "lord++")
    assert [rule["level"] for rule in verdicts] == [first, second, second, second, third]
    assert {rule["fdr"] for rule in verdicts} == {"lord++"}


def test_levels_of_a_store_of_version_0_2_stay_and_new_nights_go_on_from_them(tmp_path):
    gate = 'fdr = "lord++"\nrules = [{ rule = "not-worse", alpha = 0.05 }]\n'
    for lost in (3, 30, 4, 5):
        write_scores(tmp_path, lost, 3)
        run_night(tmp_path, gate)
    with open_store(str(tmp_path / "plan.sqlite"), "plan") as store:
        for night_run in store.list_runs():
            [rule] = night_run.details["verdict"]["rules"]
            for name in ("level", "least_level", "fdr", "repeats", "n_blind", "alarms_per_year", "p_value"):
                del rule[name]
            store.amend_run(night_run.number, {"verdict": night_run.details["verdict"]})
    stored = [night_run.details for night_run in read_runs(tmp_path)]
    p = [next(iter(details["gate"].values())) for details in stored]
    run_night(tmp_path)  # the fourth night again: its level is that of the weights before
    write_scores(tmp_path, 6, 3)
    run_night(tmp_path)
    extended = [night_run.details for night_run in read_runs(tmp_path)]
    assert extended[:4] == stored
    before = compute_old_levels(p, 0.05, "lord++")
    new_levels = [details["verdict"]["rules"][0]["level"] for details in extended[4:]]
    assert new_levels == [before[3], compute_levels(p, 0.05, "lord++", recorded=before[:4])[-1]]


def test_nights_without_an_online_rule_are_no_part_of_its_sequence(tmp_path):
    rules = 'rules = [{ rule = "not-worse", alpha = 0.05 }]\n'
    for lost, fdr in ((3, ""), (4, ""), (5, 'fdr = "lond"\n'), (6, 'fdr = "lond"\n')):
        write_scores(tmp_path, lost, 3)
        run_night(tmp_path, fdr + rules)
    night_levels = [night_run.details["verdict"]["rules"][0]["level"] for night_run in read_runs(tmp_path)]
    assert night_levels == [0.05, 0.05, *compute_levels([1.0], 0.05, "lond")]


def test_the_level_of_each_night_stands_wherever_the_gate_does(tmp_path):
    gate = 'json = "gate.json"\nrules = [{ rule = "not-worse" }]\n[report]\nhtml = "night.html"\njson = "night.json"\n'
    write_scores(tmp_path, 3, 3)
    _, text = run_night(tmp_path, gate)
    write_scores(tmp_path, 20, 3)
    run_night(tmp_path)
    assert "this night's level is 0.0109 over 1 comparison: 4 false alarms a year over 365 runs" in text
    plan = tmp_path / "plan.toml"
    assert "level 0.0109 each night over 1 comparison" in run_command("check", plan)
    assert "gate FAILED, level 0.0109" in run_command("status", plan)
    assert json.loads(run_command("status", plan, "--json"))["gate"]["rules"][0]["level"] == pytest.approx(4 / 365)
    assert "0.0109" in run_command("history", plan).splitlines()[-1]
    assert "level 0.0109" in run_command("report", plan)
    page = (tmp_path / "night.html").read_text()
    assert "level 0.0109</h3>" in page
    assert "the gate's levels, of adjusted p: 0.0109 in runs 1 to 2" in page
    document = json.loads((tmp_path / "night.json").read_text())
    validate(document, json.loads(fields.read_schema()))
    assert document["gate"]["rules"][0]["level"] == pytest.approx(4 / 365)
    assert json.loads((tmp_path / "gate.json").read_text())["rules"][0]["level"] == pytest.approx(4 / 365)


def test_check_warns_of_a_rule_that_loses_its_power_and_of_one_that_cannot_fail(tmp_path):
    write_scores(tmp_path, 3, 3)
    (tmp_path / "plan.toml").write_text(PLAN + 'fdr = "lond"\nrules = [{ rule = "not-worse", alpha = 0.01 }]\n')
    output = run_command("check", tmp_path / "plan.toml")
    assert "lond: level 0.00437 in the first night over 1 comparison, " in output  # 0.01 / zeta(1.6)
    assert "warning: lond loses its power in quiet nights; false_alarms_per_year = 4" in output
    (tmp_path / "scores.csv").write_text("item,base,new\na,1,0\nb,1,0\nc,0,1\nd,1,1\n")
    (tmp_path / "plan.toml").write_text(PLAN + 'rules = [{ rule = "not-worse" }]\n')
    assert "can hardly fail on night: with 4 units" in run_command("check", tmp_path / "plan.toml")


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ('false_alarms_per_year = 4\nfdr = "lond"', 'found 4 and fdr = "lond", expected one of the two'),
        ("false_alarms_per_year = 0", "expected a number above 0"),
    ],
)
def test_a_number_of_false_alarms_that_cannot_be_is_refused(tmp_path, gate, said):
    write_scores(tmp_path, 3, 3)
    (tmp_path / "plan.toml").write_text(f'{PLAN}{gate}\nrules = [{{ rule = "not-worse" }}]\n')
    with pytest.raises(InputError, match=said):
        load_plan(tmp_path / "plan.toml")


def test_a_rule_keeps_its_own_alpha_unless_the_gate_says_how_many_false_alarms(tmp_path):
    write_scores(tmp_path, 3, 3)

    def load_rule(gate):
        (tmp_path / "plan.toml").write_text(PLAN + gate)
        return load_plan(tmp_path / "plan.toml").gate.rules[0]

    rule_text = 'rules = [{ rule = "not-worse", alpha = 0.02 }]\n'
    assert load_rule(rule_text).false_alarms_per_year is None
    assert load_rule("false_alarms_per_year = 2\n" + rule_text).false_alarms_per_year == 2
    assert load_rule('rules = [{ rule = "not-worse" }]\n').false_alarms_per_year == 4
    assert load_rule('fdr = "lond"\nrules = [{ rule = "not-worse" }]\n').false_alarms_per_year is None


def test_a_comparison_that_the_run_before_judged_is_missed(tmp_path):
    rules = 'rules = [{ rule = "not-worse" }]\n'
    base, new = build_night(3, 3)
    rows = "\n".join(f"i{k},{a},{b},{b}" for k, (a, b) in enumerate(zip(base, new, strict=True)))
    (tmp_path / "scores.csv").write_text(f"item,base,new,other\n{rows}\n")
    assert "gate: passed\n" in run_night(tmp_path, rules)[1]
    write_scores(tmp_path, 3, 3)
    _, text = run_night(tmp_path)
    assert (
        "gate: passed, on the same outputs as run 1, but 1 comparison of the previous run is gone (see the notes)"
        in text
    )
    assert "note: judged in the previous run, but not in this one: other and base by mean on night" in text
    assert "gate: passed, on the same outputs as run 1\n" in run_night(tmp_path)[1]


def test_a_gate_that_is_not_judged_says_so(tmp_path):
    write_scores(tmp_path, 3, 3)
    (tmp_path / "broken.py").write_text("def broken(outputs, gold):\n    return 1 / 0\n")
    plan = PLAN.replace('format = "wide"', 'format = "wide"\nmetrics = ["mean", "broken:broken"]').replace("9999", "20")
    (tmp_path / "plan.toml").write_text(plan + 'rules = [{ rule = "not-worse" }]\n')
    status, text = run_night(tmp_path)
    assert status == 3
    assert "the gate was NOT JUDGED: " in text


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
    assert render(verdict).startswith("gate: passed, but p of 1 comparison may be too small (see the notes)")
