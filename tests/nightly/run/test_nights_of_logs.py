"""A nightly evaluation: logs of samples accumulate, and a plan is run each night."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from builders import build_rng
from nights import read_tallies, run_plan_here

from sigdask.errors import InputError
from sigdask.nightly.plan import load_plan

ROOT = Path(__file__).parents[3]
STAMPS = ("2024-05-01T02-00-00.123456", "2024-05-02T02-00-00.654321", "2024-05-03T02-00-00.000001")
TASKS = {"arc_easy": ("acc", "acc_norm"), "gsm8k": ("exact_match",), "drop": ("f1",)}
N_ITEMS = 80


def read_example_plan():
    """Return the plan of docs/plans.md."""
    text = (ROOT / "docs" / "plans.md").read_text()
    return re.search(r"## Logs of samples.*?```toml\n(.*?)```", text, re.DOTALL)[1]


def build_scores(system, night):
    """Return a night's scores: always the same, except that the candidate loses gsm8k in the second."""
    scores_by_task = {}
    for k, task in enumerate(TASKS):
        scores = build_rng(10 * k + len(system)).integers(0, 2, N_ITEMS)
        scores_by_task[task] = scores * 0 if (system, task, night) == ("candidate", "gsm8k", 1) else scores
    return scores_by_task


def write_harness_logs(folder, night, systems=("production", "candidate"), values=build_scores):
    for system in systems:
        for task, scores in values(system, night).items():
            path = folder / "logs" / system / "org__model" / f"samples_{task}_{STAMPS[night]}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(record) + "\n" for record in iter_records(task, scores)))
        (path.parent / f"results_{STAMPS[night]}.json").write_text('{"model_name": "org/model"}')


def iter_records(task, scores):
    filters = ("strict-match", "flexible-extract") if task == "gsm8k" else ("none",)
    for filter_ in filters:
        for k, score in enumerate(scores):
            record = {"doc_id": k, "doc": {"q": f"{task} {k}"}, "target": "x", "resps": [["x"]], "filter": filter_}
            scores_by_metric = dict.fromkeys(TASKS[task], float(score))
            yield {**record, "metrics": [*TASKS[task]], "doc_hash": f"{task}{k}", **scores_by_metric}


def run_night(folder):
    """Run the plan from the command line; return its exit status, JSON and output."""
    status, output = run_plan_here(folder, "--json", folder / "out.json")
    return status, json.loads((folder / "out.json").read_text()), output


def group_by_task(document):
    return {(r["subset"]["value"], r["metric"]): (r["score_a"], r["score_b"]) for r in document["results"]}


@pytest.mark.slow
def test_the_second_night_of_the_documented_plan_shows_a_regression_undiluted(tmp_path):
    (tmp_path / "plan.toml").write_text(read_example_plan())
    write_harness_logs(tmp_path, 0)
    status, first, _ = run_night(tmp_path)
    assert status == 0
    assert set(group_by_task(first)) == {
        ("arc_easy", "acc"), ("arc_easy", "acc_norm"), ("drop", "f1"),
        ("gsm8k", "exact_match,strict-match"), ("gsm8k", "exact_match,flexible-extract"),
    }  # fmt: skip
    for (task, _), (a, b) in group_by_task(first).items():
        means = [np.mean(build_scores(system, 0)[task]) for system in ("candidate", "production")]
        assert (a, b) == tuple(means)
    before = read_tallies(tmp_path / "plan.sqlite")

    write_harness_logs(tmp_path, 1)
    status, second, text = run_night(tmp_path)
    assert status == 1
    production = np.mean(build_scores("production", 1)["gsm8k"])
    expected = {key: (0.0, production) if key[0] == "gsm8k" else scores for key, scores in group_by_task(first).items()}
    assert group_by_task(second) == expected
    assert {c["subset"]["value"] for c in second["changes"]} == {"gsm8k"}
    assert "candidate is significantly worse than production by exact_match,strict-match on harness, task gsm8k" in text

    # what did not change was not counted again, and what it had is untouched
    after = read_tallies(tmp_path / "plan.sqlite")
    assert set(map(repr, before)) <= set(map(repr, after))
    digests = {row[0] for row in after} - {row[0] for row in before}
    assert len(digests) == 1  # both filters of gsm8k have the same scores, and so the same counts

    [files] = second["run"]["inputs"].values()
    assert {Path(name).name for name in files} == {f"samples_{task}_{STAMPS[1]}.jsonl" for task in TASKS}
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in files.values())
    [page] = tmp_path.glob("nightly-*.html")
    assert all(Path(name).name in page.read_text() for name in files)
    assert STAMPS[0] not in page.read_text().partition("<h2>Files</h2>")[2]
    [note] = [w for w in second["warnings"] if "left out" in w]
    assert "6 older ones are left out" in note

    status, third, _ = run_night(tmp_path)  # nothing new: the same verdict, nothing counted
    assert (status, group_by_task(third)) == (1, group_by_task(second))
    assert read_tallies(tmp_path / "plan.sqlite") == after

    write_harness_logs(tmp_path, 2)  # mended
    status, fourth, _ = run_night(tmp_path)
    assert (status, group_by_task(fourth)) == (0, group_by_task(first))
    assert {row[0] for row in read_tallies(tmp_path / "plan.sqlite")} == {row[0] for row in after}


@pytest.mark.parametrize(
    "systems",
    [
        '"logs/{system}"',
        '"logs/{system}/"',
        '"logs/{system}/**/samples_*_*.jsonl"',
        '"logs/{system}/org__model/samples_*.jsonl"',
        '"logs"',
        '{ production = "logs/production", candidate = "logs/candidate" }',
        '["logs/production", "logs/candidate"]',
        '{ production = "logs/production/**/*.jsonl", candidate = "logs/candidate/*/samples_*_*" }',
    ],
)
def test_logs_of_the_harness_are_found_however_they_are_written(tmp_path, systems):
    for k in range(2):
        write_harness_logs(tmp_path, k)
    (tmp_path / "logs" / "README.md").write_text("what these logs are")
    (tmp_path / "plan.toml").write_text(read_example_plan().replace('"logs/{system}"', systems).replace("65536", "999"))
    counts = load_plan(tmp_path / "plan.toml").test_sets[0].read()
    assert sorted(counts.systems) == ["candidate", "production"]
    assert counts.n_items == 3 * N_ITEMS
    assert {path.name for path in counts.files} == {f"samples_{task}_{STAMPS[1]}.jsonl" for task in TASKS}


@pytest.mark.slow
def test_a_night_that_was_cut_off_or_lacks_a_task_is_not_compared_silently(tmp_path):
    (tmp_path / "plan.toml").write_text(read_example_plan().replace("65536", "999"))
    write_harness_logs(tmp_path, 0)
    assert run_night(tmp_path)[0] == 0
    write_harness_logs(tmp_path, 1, ("candidate",), lambda *_: {"drop": build_scores("candidate", 1)["drop"][:-5]})
    with pytest.raises(InputError, match="system 'candidate' has no score 'f1' for item"):
        run_night(tmp_path)
    write_harness_logs(tmp_path, 1, ("candidate",), lambda *_: {"drop": build_scores("candidate", 1)["drop"]})
    _, document, _ = run_night(tmp_path)
    assert any("candidate: not run again with its other tasks" in w for w in document["warnings"])

    for path in (tmp_path / "logs" / "candidate").rglob("samples_gsm8k_*"):
        path.unlink()
    with pytest.raises(InputError, match="system 'candidate' has no score 'exact_match,strict-match'"):
        run_night(tmp_path)
    plan = read_example_plan().replace("65536", "999").replace('by = "task"', 'by = "task"\nmissing = "pairwise"')
    (tmp_path / "plan.toml").write_text(plan)
    status, document, text = run_night(tmp_path)
    assert (status, {task for task, _ in group_by_task(document)}) == (0, {"arc_easy", "drop"})
    assert "not compared, because the systems have no item in common: candidate and production by exact_match" in text
    (tmp_path / "plan.toml").write_text(plan.replace('rule = "not-worse"', 'rule = "non-inferior", margin = 0.9'))
    assert run_night(tmp_path)[0] == 1
