"""Logs of HELM, promptfoo, OpenAI evals and EvalPlus, in the layouts that these tools write."""

import json
import random
from statistics import mean

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

MODELS = ("acme_a", "acme_b")


def draw(n_items=20, n_samples=1):
    generator = random.Random(4)
    return {
        model: [[generator.random() < rate for _ in range(n_samples)] for _ in range(n_items)]
        for model, rate in zip(MODELS, (0.4, 0.8), strict=True)
    }


def write(path, document, lines=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, document)) if lines else json.dumps(document, indent=2))
    return path


def write_helm(folder, model, outcomes, task="mmlu:subject=law,method=joint"):
    def describe(name, value, **further):
        return {"name": {"name": name, "split": "test", **further}, "count": 1, "sum": value, "mean": value}

    instances = [
        {"instance_id": f"id{i}", "train_trial_index": t,
         "stats": [describe("num_references", 4.0), describe("exact_match", float(right))]}
        for i, samples in enumerate(outcomes) for t, right in enumerate(samples)
    ]  # fmt: skip
    typos = {"name": "typos"}
    instances.append({"instance_id": "id0", "perturbation": typos, "train_trial_index": 0,
                      "stats": [describe("exact_match", 0.0, perturbation=typos)]})  # fmt: skip
    home = folder / f"{task},model={model}"
    write(home / "stats.json", [describe("exact_match", 0.5)])
    return write(home / "per_instance_stats.json", instances)


def write_openai(folder, model, outcomes):
    spec = {"completion_fns": [model], "eval_name": "arithmetic.s1.v0", "base_eval": "arithmetic", "split": "s1",
            "run_id": "24", "created_at": "2024-04-17 22:08:21.9"}  # fmt: skip
    events = [
        {"run_id": "24", "event_id": k, "sample_id": f"arithmetic.s1.{i}", "type": kind, "data": data, "created_by": ""}
        for i, (right,) in enumerate(outcomes)
        for k, (kind, data) in enumerate(
            [("sampling", {"prompt": "1 + 1 =", "sampled": ["2"]}), ("match", {"correct": right, "expected": "2"})]
        )
    ]
    return write(folder / f"{model}.jsonl", [{"spec": spec}, {"final_report": {"accuracy": 0.5}}, *events], lines=True)


def write_evalplus(folder, model, outcomes):
    samples = {
        f"HumanEval/{i}": [
            {"task_id": f"HumanEval/{i}", "solution": "def f(): ...", "base_status": "pass" if right else "fail",
             "plus_status": "pass" if t else "timeout", "base_fail_tests": [], "plus_fail_tests": []}
            for t, right in enumerate(item)
        ]
        for i, item in enumerate(outcomes)
    }  # fmt: skip
    return write(folder / f"{model}.json", {"date": "2024-05-01 10:00", "hash": "6f", "eval": samples,
                                            "pass_at_k": {"base": {"pass@1": 0.8}}})  # fmt: skip


def write_promptfoo(path, outcomes, *, version=3, prompts=("Q: {{q}}",)):
    results = []
    for k, (model, items) in enumerate(outcomes.items()):
        index = 0
        for i, samples in enumerate(items):
            for right in samples:
                for p, prompt in enumerate(prompts):
                    test = {"vars": {"q": i, "topic": "ab"[i % 2]}, "assert": [{"type": "equals", "value": "x"}]}
                    results.append({"success": right, "score": float(right), "failureReason": 0 if right else 1,
                                    "latencyMs": 12, "namedScores": {"tone": 0.5 + right / 4}, "promptIdx": 2 * k + p,
                                    "testIdx": index, "testCase": test, "vars": test["vars"], "response": {"output": "x"},
                                    "provider": {"id": model, "label": ""}, "prompt": {"raw": prompt, "label": prompt}})  # fmt: skip
                index += 1
    summary = {"version": version, "timestamp": "2025-10-04T00:00:00.000Z", "results": results, "stats": {}}
    return write(
        path, {"evalId": "eval-abc", "results": summary, "config": {}} if version == 3 else {"results": summary}
    )


def write_all(tool, folder, outcomes):
    if tool == "promptfoo":
        return [write_promptfoo(folder / "results.json", outcomes)]
    writers = {"HELM": write_helm, "OpenAI evals": write_openai, "EvalPlus": write_evalplus}
    return [writers[tool](folder, model, items) for model, items in outcomes.items()]


@pytest.mark.parametrize(
    ("tool", "metric"),
    [("HELM", "exact_match"), ("promptfoo", "pass"), ("OpenAI evals", "accuracy"), ("EvalPlus", "base")],
)
@pytest.mark.parametrize("n_samples", [1, 3])
def test_logs_of_a_tool_are_detected_and_scored(tmp_path, tool, metric, n_samples):
    if tool == "OpenAI evals" and n_samples > 1:
        pytest.skip("a record has one sample of each item")
    outcomes = draw(n_samples=n_samples)
    paths = write_all(tool, tmp_path, outcomes)
    assert detect([parse_source(str(path)) for path in paths]) == "samples"
    counts = read(*paths)
    assert counts.systems == MODELS
    assert counts.n_items == 20
    (result,) = compare_all(counts, metrics=[metric], trials=500)
    expected = [mean(mean(samples) for samples in items) for items in outcomes.values()]
    assert [result.score_a, result.score_b] == pytest.approx(expected, abs=1e-12)
    if n_samples > 1:
        (result,) = compare_all(counts, metrics=[f"pass@3[{metric}]"], trials=500)
        assert result.score_a == pytest.approx(mean(any(samples) for samples in outcomes["acme_a"]))


def test_prompts_and_variables_of_promptfoo(tmp_path):
    path = write_promptfoo(tmp_path / "r.json", draw(), version=2, prompts=("Q: {{q}}", "Please: {{q}}"))
    counts = read(path, format="samples")
    assert counts.systems == tuple(f"{model} prompt {p}" for model in MODELS for p in (1, 2))
    assert set(counts.suggested) == {"pass", "score", "tone"}
    document = json.loads(path.read_text())
    document["results"]["results"][0]["failureReason"] = 2
    write(path, document)
    counts = read(path, options=Options(missing="pairwise"))
    assert any("1 sample left out (failureReason is set)" in note for note in counts.warnings)


def test_a_log_without_scores_and_a_wrong_record_are_errors(tmp_path):
    path = write_openai(tmp_path, "a", [])
    with pytest.raises(InputError, match="no sample with a score in this log of OpenAI evals"):
        read(path, f"b={path}")
    path = write_promptfoo(tmp_path / "r.json", draw(2))
    document = json.loads(path.read_text())
    document["results"]["results"][1] = 7
    with pytest.raises(InputError, match=r"r.json, result 2: found '7', expected an object"):
        read(write(path, document))


def write_swe(path, resolved, *, is_run=False):
    reports = {
        f"org__repo-{k}": {"patch_is_None": False, "patch_exists": True, "patch_successfully_applied": True,
                           "resolved": right, "tests_status": {"FAIL_TO_PASS": {"success": ["t"], "failure": []}}}
        for k, right in enumerate(resolved)
    }  # fmt: skip
    solved = [name for name, report in reports.items() if report["resolved"]]
    run = {"total_instances": 500, "resolved_instances": len(solved), "submitted_ids": [*reports],
           "resolved_ids": solved, "error_ids": [], "schema_version": 2}  # fmt: skip
    return write(path, run if is_run else reports)


@pytest.mark.parametrize("is_run", [False, True])
def test_reports_of_swe_bench_have_one_metric_however_they_are_named(tmp_path, is_run):
    outcomes = {"x": [True, True, False, True], "y": [True, False, False, False]}
    paths = [write_swe(tmp_path / f"{name}.json", values, is_run=is_run) for name, values in outcomes.items()]
    for sources in (paths, [f"new={paths[0]}", f"old={paths[1]}"]):
        counts = read(*sources, options=Options(ignore=("tests_status",)))
        assert counts.suggested == ("resolved",)
        (result,) = compare_all(counts, trials=100)
        assert (result.score_a, result.score_b, result.n_items) == (0.75, 0.25, 4)


def test_a_folder_of_reports_of_swe_bench_is_a_system(tmp_path):
    for name, values in {"x": [True, False], "y": [False, False]}.items():
        for k, right in enumerate(values):
            report = {f"i{k}": {"patch_exists": True, "patch_successfully_applied": True, "resolved": right}}
            write(tmp_path / name / f"i{k}" / "report.json", report)
    counts = read(tmp_path / "x", tmp_path / "y")
    assert counts.field("score[resolved]").tolist() == [[1, 0], [0, 0]]


def test_tables_of_r_with_a_header_one_name_short_name_the_command_to_write_them(tmp_path):
    (tmp_path / "tabs.txt").write_text("x\ty\n1\t0.25\t0.5\n2\t0.5\t0.75\n")
    (tmp_path / "blanks.txt").write_text('"x" "y"\n"1" 0.25 0.5\n"2" 0.5 0.75\n')
    with pytest.raises(InputError, match=r"line 2: found 3 fields, expected 2 .*write.table\(..., col.names = NA\)"):
        read(tmp_path / "tabs.txt")
    with pytest.raises(InputError):
        read(tmp_path / "blanks.txt")
