"""Tests of rankings in plans: counted once, kept, and reported with the night."""

import json

import numpy as np
import pytest
from command import call_sigdask

PLAN = """
report = {{ html = "night.html", json = "night.json", text = "night.txt" }}
cluster = "none"
seed = 3
{sets}
[[rankings]]
name = "pairs"
candidates = "candidates.tsv"
n = "10:30:10"
trials = {trials}
samples = 20
sample_size = 40
"""
SETS = '[[test_set]]\nname = "scores"\nsystems = "scores.csv"\n'


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    gold = rng.random(120) < 0.4
    rows = [f"{int(g)}\t{g + rng.normal():.3f}\t{rng.normal():.3f}" for g in gold]
    (tmp_path / "candidates.tsv").write_text("\n".join(["gold\tt\tMI", *rows]))
    (tmp_path / "scores.csv").write_text("item,a,b\n1,0.5,0.25\n2,0.75,0.5\n3,1,0.5\n")
    return tmp_path


def run_night(folder, plan, *arguments):
    (folder / "night.toml").write_text(plan)
    result = call_sigdask("run", "night.toml", *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.parametrize("sets", ["", SETS], ids=["alone", "beside a test set"])
def test_a_night_finds_what_the_command_does_and_counts_it_once(folder, sets):
    first = run_night(folder, PLAN.format(sets=sets, trials=500))
    assert "== pairs ==" in first.stdout
    pairs = json.loads((folder / "night.json").read_text())["candidates"]["pairs"]
    alone = call_sigdask(
        "rankings", "candidates.tsv", "--n", "10:30:10", "--trials", "500", "--samples", "20", "--sample-size", "40",
        "--seed", "3", "--name", "pairs", "--json", "-", cwd=folder,
    )  # fmt: skip
    assert pairs == json.loads(alone.stdout)
    assert "2 measures of 120 candidates" in (folder / "night.html").read_text()
    assert "2 measures of 120 candidates" in (folder / "night.txt").read_text()
    second = run_night(folder, PLAN.format(sets=sets, trials=500))
    assert " 0 trials counted" in second.stderr
    assert json.loads((folder / "night.json").read_text())["candidates"]["pairs"] == pairs


def test_more_trials_go_on_from_those_kept(folder):
    run_night(folder, PLAN.format(sets="", trials=300))
    second = run_night(folder, PLAN.format(sets="", trials=900))
    assert "1,200 trials counted" in second.stderr  # 600 more of precision and of average precision
    pairs = json.loads((folder / "night.json").read_text())["candidates"]["pairs"]
    (folder / "night.sqlite").unlink()
    run_night(folder, PLAN.format(sets="", trials=900))
    assert json.loads((folder / "night.json").read_text())["candidates"]["pairs"] == pairs


def test_status_history_check_and_report_know_of_rankings(folder):
    run_night(folder, PLAN.format(sets=SETS, trials=300))
    run_night(folder, PLAN.format(sets=SETS, trials=300))
    status = json.loads(call_sigdask("status", "night.toml", "--json", cwd=folder).stdout)
    assert [test_set["test_set"] for test_set in status["test_sets"]] == ["scores", "pairs"]
    assert status["trials"] == status["wanted"]
    report = call_sigdask("report", "night.toml", "-o", "page.html", cwd=folder)
    assert "n-best precision" in report.stdout
    assert "n-best precision" in (folder / "page.html").read_text()
    assert "n-best precision" in call_sigdask("report", "night.toml", "--run", "1", cwd=folder).stdout
    assert "candidates" in call_sigdask("check", "night.toml", cwd=folder).stdout


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"candidates.tsv"', '"none.tsv"', ["rankings", "candidates", "none.tsv"]),
        ("trials = 300", "trials = 0", ["rankings", "trials", "at least 1"]),
        ("sample_size = 40", "", ["samples and sample_size belong together"]),
        ('n = "10:30:10"', 'n = "10:"', ["n = '10:'"]),
        ('name = "pairs"', 'name = "scores"', ['found "scores" twice']),
        ('name = "pairs"', 'name = "pairs"\nmetric = "t"', ["metric", "unknown key"]),
        ('name = "pairs"', 'name = "pairs"\nties = "best"', ["ties", "expected", "random"]),
    ],
)
def test_wrong_keys_are_named(folder, old, new, words):
    (folder / "night.toml").write_text(PLAN.format(sets=SETS, trials=300).replace(old, new))
    result = call_sigdask("check", "night.toml", cwd=folder)
    assert result.returncode == 2
    for word in words:
        assert word in result.stderr
