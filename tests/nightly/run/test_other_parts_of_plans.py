"""Rankings and tests of independence in plans: counted once, stored, and reported with the night."""

import json

import pytest
from builders import build_rng
from command import call_sigdask

HEAD = 'report = { html = "night.html", json = "night.json", text = "night.txt" }\ncluster = "none"\nseed = 3\n'
RANKINGS = """
[[rankings]]
name = "pairs"
candidates = "candidates.tsv"
n = "10:30:10"
trials = 500
samples = 20
sample_size = 40
"""
INDEPENDENCE = """
[[independence]]
name = "annotators"
labels = ["one.csv", "two.csv"]
gold = "gold.csv"
metrics = ["accuracy", "macro-f1"]
method = "randomization"
trials = 500
within = "doc"
alternative = "two-sided"
"""
TEST_SETS = '[[test_set]]\nname = "scores"\nsystems = "scores.csv"\n'
COMMANDS = {
    "rankings": "rankings candidates.tsv --n 10:30:10 --trials 500 --samples 20 --sample-size 40 --name pairs",
    "independence": "independence one.csv two.csv --gold gold.csv -m accuracy -m macro-f1 --within doc "
    "--alternative two-sided --method randomization --trials 500 --name annotators",
}
SHOWN = {"rankings": "2 measures of 120 candidates", "independence": "permuted within 3 values of doc"}


@pytest.fixture
def folder(tmp_path):
    rng = build_rng(0)
    is_true = rng.random(120) < 0.4
    rows = [f"{int(g)}\t{g + rng.normal():.3f}\t{rng.normal():.3f}" for g in is_true]
    (tmp_path / "candidates.tsv").write_text("\n".join(["gold\tt\tMI", *rows]))
    gold = rng.choice(list("abc"), 60)
    for name in ("gold", "one", "two"):
        labels = gold if name == "gold" else [g if rng.random() < 0.2 else rng.choice(list("abc")) for g in gold]
        rows = [f"x{k},{label},d{k % 3}" for k, label in enumerate(labels)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,label,doc", *rows]))
    (tmp_path / "scores.csv").write_text("item,a,b\n1,0.5,0.25\n2,0.75,0.5\n3,1,0.5\n")
    return tmp_path


def run_night(folder, plan):
    (folder / "night.toml").write_text(HEAD + plan)
    result = call_sigdask("run", "night.toml", cwd=folder)
    assert result.returncode == 0, result.stderr
    return result


def read_results(folder):
    document = json.loads((folder / "night.json").read_text())
    return [document.get("candidates", {}).get("pairs"), document.get("independence", {}).get("annotators")]


@pytest.mark.parametrize("sets", ["", TEST_SETS], ids=["alone", "beside a test set"])
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_night_finds_what_the_command_does_and_counts_it_once(folder, kind, sets):
    plan = sets + {"rankings": RANKINGS, "independence": INDEPENDENCE}[kind]
    run_night(folder, plan)
    [found] = filter(None, read_results(folder))
    alone = call_sigdask(*COMMANDS[kind].split(), "--seed", "3", "--json", "-", cwd=folder)
    assert found == json.loads(alone.stdout)
    for name in ("night.html", "night.txt"):
        assert SHOWN[kind] in (folder / name).read_text()
    assert " 0 trials counted" in run_night(folder, plan).stderr
    assert [*filter(None, read_results(folder))] == [found]


def test_more_trials_go_on_from_those_kept(folder):
    run_night(folder, RANKINGS.replace("500", "300"))
    second = run_night(folder, RANKINGS.replace("500", "900"))
    assert "1,200 trials counted" in second.stderr  # 600 more of precision and of average precision
    found = read_results(folder)
    (folder / "night.sqlite").unlink()
    run_night(folder, RANKINGS.replace("500", "900"))
    assert read_results(folder) == found


def test_status_check_and_report_know_of_them(folder):
    run_night(folder, TEST_SETS + RANKINGS + INDEPENDENCE)
    status = json.loads(call_sigdask("status", "night.toml", "--json", cwd=folder).stdout)
    assert [test_set["test_set"] for test_set in status["test_sets"]] == ["scores", "pairs", "annotators"]
    assert status["trials"] == status["wanted"]
    report = call_sigdask("report", "night.toml", "--run", "1", "-o", "page.html", cwd=folder).stdout
    checked = call_sigdask("check", "night.toml", cwd=folder).stdout
    for words in ("n-best precision", "macro-f1"):
        assert words in report
        assert words in (folder / "page.html").read_text()
    assert all(name in checked for name in ("pairs", "annotators"))
    inputs = json.loads((folder / "night.json").read_text())["run"]["inputs"]["annotators"]
    assert {path.rpartition("/")[2] for path in inputs} == {"one.csv", "two.csv", "gold.csv"}


@pytest.mark.parametrize(
    ("plan", "old", "new", "words"),
    [
        (RANKINGS, '"candidates.tsv"', '"none.tsv"', ["candidates", "none.tsv"]),
        (RANKINGS, "trials = 500", "trials = 0", ["trials", "at least 1"]),
        (RANKINGS, "sample_size = 40", "", ["samples and sample_size belong together"]),
        (RANKINGS, 'n = "10:30:10"', 'n = "10:"', ["n = '10:'"]),
        (RANKINGS, 'name = "pairs"', 'name = "scores"', ['found "scores" twice']),
        (RANKINGS, 'name = "pairs"', 'name = "pairs"\nmetric = "t"', ["metric", "unknown key"]),
        (RANKINGS, 'name = "pairs"', 'name = "pairs"\nties = "best"', ["ties", "expected", "random"]),
        (INDEPENDENCE, '"one.csv", ', '"none.csv", ', ["none.csv"]),
        (INDEPENDENCE, 'gold = "gold.csv"', 'gold = "nowhere.csv"', ["nowhere.csv"]),
        (INDEPENDENCE, 'within = "doc"', 'within = "part"', ["part"]),
        (INDEPENDENCE, '"macro-f1"]', '"macro-f9"]', ["macro-f9"]),
        (INDEPENDENCE, "two-sided", "more", ["alternative"]),
    ],
)
def test_wrong_keys_are_named(folder, plan, old, new, words):
    assert old in plan
    (folder / "night.toml").write_text(HEAD + TEST_SETS + plan.replace(old, new))
    result = call_sigdask("check", "night.toml", cwd=folder)
    assert result.returncode == 2
    for word in (*words, "rankings" if plan is RANKINGS else "independence"):
        assert word in result.stderr
