"""Tests of independence in plans: counted once, stored, and reported with the night."""

import json

import pytest
from builders import build_rng
from command import call_sigdask

PLAN = """
report = {{ html = "night.html", json = "night.json", text = "night.txt" }}
cluster = "none"
seed = 3
trials = {trials}
{sets}
[[independence]]
name = "annotators"
labels = ["one.csv", "two.csv"]
gold = "gold.csv"
metrics = ["accuracy", "macro-f1"]
method = "{method}"
within = "doc"
alternative = "two-sided"
"""
TEST_SETS = '[[test_set]]\nname = "scores"\nsystems = "scores.csv"\n'


@pytest.fixture
def folder(tmp_path):
    rng = build_rng(4)
    gold = rng.choice(list("abc"), 60)
    for name in ("gold", "one", "two"):
        labels = gold if name == "gold" else [g if rng.random() < 0.2 else rng.choice(list("abc")) for g in gold]
        rows = [f"x{k},{label},d{k % 3}" for k, label in enumerate(labels)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,label,doc", *rows]))
    (tmp_path / "scores.csv").write_text("item,a,b\n1,0.5,0.25\n2,0.75,0.5\n3,1,0.5\n")
    return tmp_path


def run_night(folder, trials=500, sets="", method="randomization"):
    (folder / "night.toml").write_text(PLAN.format(trials=trials, sets=sets, method=method))
    result = call_sigdask("run", "night.toml", cwd=folder)
    assert result.returncode == 0, result.stderr
    return result


def read_results(folder):
    return json.loads((folder / "night.json").read_text())["independence"]["annotators"]


@pytest.mark.parametrize("sets", ["", TEST_SETS], ids=["alone", "beside a test set"])
def test_a_night_finds_what_the_command_does_and_counts_it_once(folder, sets):
    first = run_night(folder, sets=sets)
    assert "== annotators ==" in first.stdout
    command = call_sigdask(
        *("independence", "one.csv", "two.csv", "--gold", "gold.csv", "-m", "accuracy", "-m", "macro-f1"),
        *("--within", "doc", "--alternative", "two-sided", "--method", "randomization", "--trials", "500"),
        *("--seed", "3", "--name", "annotators", "--json", "-"), cwd=folder,
    )  # fmt: skip
    assert read_results(folder) == json.loads(command.stdout)
    assert "permuted within 3 values of doc" in (folder / "night.html").read_text()
    assert "permuted within 3 values of doc" in (folder / "night.txt").read_text()
    before = read_results(folder)
    assert " 0 trials counted" in run_night(folder, sets=sets).stderr
    assert read_results(folder) == before


def test_status_check_and_report_know_of_tests_of_independence(folder):
    run_night(folder, sets=TEST_SETS)
    status = json.loads(call_sigdask("status", "night.toml", "--json", cwd=folder).stdout)
    assert [row["test_set"] for row in status["test_sets"]] == ["scores", "annotators"]
    assert status["trials"] == status["wanted"]
    assert "macro-f1" in call_sigdask("report", "night.toml", "--run", "1", cwd=folder).stdout
    assert "annotators" in call_sigdask("check", "night.toml", cwd=folder).stdout
    inputs = json.loads((folder / "night.json").read_text())["run"]["inputs"]["annotators"]
    assert {path.rpartition("/")[2] for path in inputs} == {"one.csv", "two.csv", "gold.csv"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"one.csv", ', '"none.csv", ', "none.csv"),
        ('gold = "gold.csv"', 'gold = "nowhere.csv"', "nowhere.csv"),
        ('name = "annotators"', 'name = "scores"', 'found "scores" twice'),
        ('within = "doc"', 'within = "part"', "part"),
        ('"macro-f1"]', '"macro-f9"]', "macro-f9"),
        ("two-sided", "more", "alternative"),
    ],
)
def test_what_a_plan_cannot_ask_for_is_told_before_the_night(folder, old, new, said):
    text = PLAN.format(trials=500, sets=TEST_SETS, method="auto")
    assert old in text
    (folder / "night.toml").write_text(text.replace(old, new))
    result = call_sigdask("check", "night.toml", cwd=folder)
    assert result.returncode == 2
    assert said in result.stderr
    assert "independence" in result.stderr
