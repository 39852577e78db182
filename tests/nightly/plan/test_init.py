"""`sigdask init` writes a plan of the files at hand that passes `check`, or asks what is missing."""

import json
import re
import shutil
import tomllib

import numpy as np
import pytest
from command import call_sigdask

from sigdask.nightly.plan import load_plan


def write_scores(folder, names, n=30, seed=0):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name in names:
        (folder / name).write_text("".join(f"{x:.2f}\n" for x in rng.random(n)))


def write_texts(folder, names, n=12):
    folder.mkdir(parents=True, exist_ok=True)
    for k, name in enumerate(names):
        (folder / name).write_text("".join(f"line {i} of a text with word {(i * (k + 1)) % 7}\n" for i in range(n)))


def init_plan(folder, *arguments):
    """Run `sigdask init`; return its output and the plan, which must pass `check`."""
    result = call_sigdask("init", *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    plan = folder / "night.toml"
    checked = call_sigdask("check", plan, cwd=folder)
    assert checked.returncode == 0, checked.stderr
    return result.stdout, tomllib.loads(plan.read_text())


def test_a_folder_of_scores_becomes_a_pattern(tmp_path):
    write_scores(tmp_path, ["bm25.txt", "bert.txt", "t5.txt"])
    (tmp_path / "README.md").write_text("no data\n")
    output, plan = init_plan(tmp_path)
    [test_set] = plan["test_set"]
    assert (test_set["systems"], test_set["format"], test_set["metrics"]) == ("{system}.txt", "wide", ["mean"])
    assert "systems     {system}.txt" in output
    assert "next: sigdask check night.toml, then sigdask run night.toml" in output


def test_systems_references_and_documents_are_told_by_their_names_and_read(tmp_path):
    write_texts(tmp_path / "systems", ["A.txt", "B.txt"])
    write_texts(tmp_path, ["en-de.refA.txt", "en-de.refB.txt", "en-de.src.txt"])
    (tmp_path / "en-de.docs").write_text("".join(f"news\td{k // 2}\n" for k in range(12)))
    output, plan = init_plan(tmp_path)
    [test_set] = plan["test_set"]
    expected = {"systems": "systems/{system}.txt", "gold": "en-de.refA.txt", "references": ["en-de.refB.txt"],
                "documents": "en-de.docs", "unit": "document", "format": "segments", "metrics": ["BLEU", "chrF"]}  # fmt: skip
    assert expected.items() <= test_set.items()
    assert "not used: en-de.src.txt" in output


def test_documents_in_a_folder_are_those_of_the_test_set_of_their_name(tmp_path):
    for system in ("teams/A", "teams/B", "gold"):
        write_texts(tmp_path / system, ["de.txt", "fr.txt", "it.txt"])
    (tmp_path / "docs").mkdir()
    for name in ("de", "fr"):
        (tmp_path / "docs" / f"{name}.docs").write_text("".join(f"d{k // 2}\n" for k in range(12)))
    output, plan = init_plan(tmp_path, "--format", "segments")
    documents = {test_set["name"]: test_set.get("documents") for test_set in plan["test_set"]}
    assert documents == {"de": "docs/de.docs", "fr": "docs/fr.docs", "it": None}
    assert "not used" not in output


def test_what_a_run_leaves_beside_a_plan_is_no_system(tmp_path):
    write_scores(tmp_path, ["a.txt", "b.txt"])
    for name in ("night.sqlite", "night.sqlite-lock", "night.sqlite-journal", "night.sqlite.damaged-20260101T000000"):
        (tmp_path / name).touch()
    assert init_plan(tmp_path)[1]["test_set"][0]["systems"] == "{system}.txt"


def test_each_table_of_systems_is_a_test_set_of_its_own(tmp_path):
    for name in ("ap", "p10"):
        (tmp_path / f"{name}.csv").write_text("topic,x,y\n" + "".join(f"t{k},0.{k},0.{9 - k}\n" for k in range(1, 9)))
    _, plan = init_plan(tmp_path)
    assert {t["name"]: t["systems"] for t in plan["test_set"]} == {"ap": "ap.csv", "p10": "p10.csv"}


def test_a_plan_that_is_there_is_kept_unless_told_otherwise(tmp_path):
    write_scores(tmp_path, ["a.txt", "b.txt"])
    (tmp_path / "night.toml").write_text("# mine\n")
    result = call_sigdask("init", cwd=tmp_path)
    assert (result.returncode, "the file exists" in result.stderr) == (2, True)
    assert (tmp_path / "night.toml").read_text() == "# mine\n"
    assert call_sigdask("init", "--force", cwd=tmp_path).returncode == 0
    assert call_sigdask("init", "-o", "other.toml", cwd=tmp_path).returncode == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_is_commented_out_is_right_as_well(tmp_path):
    write_scores(tmp_path, ["a.txt", "b.txt", "c.txt"])
    init_plan(tmp_path)
    plan = tmp_path / "night.toml"
    text = plan.read_text().replace('pairs = "all"\n', "")
    plan.write_text(re.sub(r"^# (pairs|adjust|\[gate\]|rules)", r"\1", text, flags=re.MULTILINE))
    loaded = load_plan(plan)
    assert (loaded.comparison["adjust"], len(loaded.gate.rules)) == ("holm", 1)
    assert call_sigdask("run", plan, "-q", cwd=tmp_path).returncode in {0, 1}


@pytest.mark.parametrize(
    ("lay", "said"),
    [
        (lambda f: None, "no files of outputs or scores found"),
        (lambda f: write_scores(f, ["only.txt"]), "a comparison needs two systems or more"),
        (lambda f: (write_scores(f, ["a.txt"]), write_scores(f, ["b.txt"], n=20)), "a.txt, b.txt: taken for systems"),
        (lambda f: [write_texts(f / d, n) for d, n in (("runs/x", "ab"), ("gold", "xy"))], "no system has a file 'x'"),
        (lambda f: (f / "t.csv").write_text("item,x,y\ni,1,\nj,1,2\n"), "--missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_asked_for(tmp_path, lay, said):
    lay(tmp_path)
    result = call_sigdask("init", cwd=tmp_path)
    assert result.returncode == 2
    assert said in result.stderr
    assert not (tmp_path / "night.toml").exists()


def test_the_baseline_is_given(tmp_path):
    write_scores(tmp_path, ["domain.txt", "new.txt", "prod-2.txt"])
    output, plan = init_plan(tmp_path, "--baseline", "new")
    assert plan["pairs"] == {"baseline": "new"}
    assert 'compared: all systems with the baseline new; with each other, write pairs = "all"' in output
    refused = call_sigdask("init", "--force", "--baseline", "old", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--baseline old: not among the systems of test set" in refused.stderr
    output, plan = init_plan(tmp_path, "--force")
    assert plan["pairs"] == "all"
    assert 'or write pairs = { baseline = "NAME" }' in output


def test_logs_of_several_tasks_are_compared_by_task(tmp_path):
    for model, correct in (("org__a", "10"), ("org__b", "01")):
        for task in ("t1", "t2"):
            rows = [{"doc_id": k, "acc": int(correct[k % 2]), "target": "x", "filtered_resps": ["x"],
                     "arguments": {}, "resps": [["x"]], "doc": {"q": k}} for k in range(12)]  # fmt: skip
            path = tmp_path / model / f"samples_{task}_2026-01-01T00-00-00.000000.jsonl"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    _, plan = init_plan(tmp_path)
    [test_set] = plan["test_set"]
    assert test_set["by"] == "task"
    assert test_set["systems"] == "{system}"  # which finds models of other organisations, too


def test_folders_of_teams_are_systems_and_gold_is_a_folder_too(tmp_path):
    for team, step in (("teamA", 2), ("teamB", 3), ("gold", 1)):
        for language in ("ces", "mon"):
            (path := tmp_path / team / f"{language}.csv").parent.mkdir(exist_ok=True)
            path.write_text("id,label\n" + "".join(f"{i},{'ab'[i * step % 4 % 2]}\n" for i in range(20)))
    _, plan = init_plan(tmp_path)
    first, second = plan["test_set"]  # one for each language
    assert (first["systems"], first["gold"]) == (["teamA/ces.csv", "teamB/ces.csv"], "gold/ces.csv")
    assert (second["name"], second["format"]) == ("mon", "labels")
    (tmp_path / "teams").mkdir()
    for team in ("teamA", "teamB"):
        (tmp_path / team).rename(tmp_path / "teams" / team)
    (tmp_path / "teams" / "teamC").mkdir()
    shutil.copy(tmp_path / "teams/teamA/mon.csv", tmp_path / "teams/teamC")  # it lacks the other language
    for folder in ("teams", "Teilnehmer"):
        for arguments in ([folder, "--gold", "gold"], ["."]):
            output, plan = init_plan(tmp_path, *arguments, "--force")
            assert [found["systems"] for found in plan["test_set"]] == [
                f"{folder}/{{system}}/{n}.csv" for n in ("ces", "mon")
            ]
            assert "ces: 2 systems" in output
            assert "mon: 3 systems" in output
        if folder == "teams":
            (tmp_path / "teams").rename(tmp_path / "Teilnehmer")  # a single folder beside the gold standard


@pytest.mark.parametrize("below", ["", "systems"])
def test_folders_with_a_gold_standard_each_are_test_sets_though_their_systems_have_the_same_names(tmp_path, below):
    for n, test_set in enumerate(("news", "talks")):
        (folder := tmp_path / test_set / below).mkdir(parents=True)
        for k, name in enumerate(("prod.csv", "new.csv", "../gold.csv" if below else "gold.csv")):
            rows = "".join(f"{i},{'ab'[i * (k + 1) % 3 % 2]}\n" for i in range(20 + n))
            (folder / name).write_text("id,label\n" + rows)
    output, plan = init_plan(tmp_path)
    assert [(found["name"], found["gold"]) for found in plan["test_set"]] == [
        ("news", "news/gold.csv"), ("talks", "talks/gold.csv")
    ]  # fmt: skip
    assert "test set talks: 2 systems, 21 items, read as labels" in output


def test_a_run_of_rankings_may_lack_topics_as_in_compare(tmp_path):
    for name, topics in (("a", "123"), ("b", "12")):
        (tmp_path / f"{name}.run").write_text("".join(f"{t} Q0 d{t} 1 0.5 {name}\n" for t in topics))
    (tmp_path / "qrels.txt").write_text("".join(f"{t} 0 d{t} 1\n" for t in "123"))
    _, plan = init_plan(tmp_path)
    assert plan["test_set"][0]["gold"] == "qrels.txt"
