"""Logs of HELM and SWE-bench, in the layouts that these tools write."""

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


def write(path, document):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))
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


@pytest.mark.parametrize("n_samples", [1, 3])
def test_logs_of_helm_are_detected_and_scored(tmp_path, n_samples):
    outcomes = draw(n_samples=n_samples)
    paths = [write_helm(tmp_path, model, items) for model, items in outcomes.items()]
    assert detect([parse_source(str(path)) for path in paths]) == "samples"
    counts = read(*paths)
    assert (counts.systems, counts.n_items) == (MODELS, 20)
    (result,) = compare_all(counts, metrics=["exact_match"], trials=500)
    expected = [mean(mean(samples) for samples in items) for items in outcomes.values()]
    assert [result.score_a, result.score_b] == pytest.approx(expected, abs=1e-12)
    if n_samples > 1:
        (result,) = compare_all(counts, metrics=["pass@3[exact_match]"], trials=500)
        assert result.score_a == pytest.approx(mean(any(samples) for samples in outcomes["acme_a"]))
    chosen = read(*paths, options=Options(columns={"score": "num_references"}))
    assert chosen.suggested == ("num_references",)
    document = json.loads(paths[0].read_text())
    with pytest.raises(InputError, match=r"per_instance_stats.json, record 2: found 7, expected a JSON object"):
        read(write(paths[0], [document[0], 7]), paths[1])


def test_reports_of_swe_bench_have_one_metric_however_they_are_named(tmp_path):
    paths = []
    for name, outcomes in {"x": [True, True, False, True], "y": [True, False, False, False]}.items():
        reports = {
            f"org__repo-{k}": {"patch_is_None": False, "patch_exists": True, "resolved": resolved}
            for k, resolved in enumerate(outcomes)
        }
        paths.append(write(tmp_path / f"{name}.json", reports))
    for sources in (paths, [f"new={paths[0]}", f"old={paths[1]}"]):
        counts = read(*sources)
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


def test_errors_in_a_report_of_a_run_of_swe_bench_are_counted_as_not_resolved(tmp_path):
    for name, resolved in {"x": ["i0", "i2"], "y": ["i1"]}.items():
        report = {"total_instances": 4, "submitted_ids": ["i0", "i1", "i2"], "resolved_ids": resolved}
        report |= {"unresolved_ids": [], "incomplete_ids": ["i3"], "error_ids": ["i1"] if name == "x" else None}
        write(tmp_path / f"{name}.json", report)
    counts = read(tmp_path / "x.json", tmp_path / "y.json")
    assert counts.field("score[resolved]").tolist() == [[1, 0], [0, 1], [1, 0], [0, 0]]
    expected = "2 instances with an error or without a submission count as not resolved"
    assert any(expected in notice for notice in counts.notices)


@pytest.mark.parametrize("key", ["submitted_ids", "error_ids"])
@pytest.mark.parametrize("ids", [5, [["i0"]]])
def test_ids_in_a_report_of_a_run_of_swe_bench_are_lists_of_texts(tmp_path, key, ids):
    report = {"submitted_ids": ["i0", "i1"], "resolved_ids": ["i0"]}
    good, bad = write(tmp_path / "x.json", report), write(tmp_path / "bad.json", {**report, key: ids})
    with pytest.raises(InputError, match=r"bad.json, line 1: submitted_ids, .* are lists of texts"):
        read(good, bad, format="samples")
    write(bad, {**report, "resolved_ids": ["i7"]})
    with pytest.raises(InputError, match=r"bad.json, line 1: resolved_ids has 'i7', which is not in submitted_ids"):
        read(good, bad)


def test_tables_of_r_with_a_header_one_name_short_are_refused(tmp_path):
    (tmp_path / "tabs.txt").write_text("x\ty\n1\t0.25\t0.5\n2\t0.5\t0.75\n")
    (tmp_path / "blanks.txt").write_text('"x" "y"\n"1" 0.25 0.5\n"2" 0.5 0.75\n')
    with pytest.raises(InputError, match="line 2: found 3 fields, expected 2"):
        read(tmp_path / "tabs.txt")
    with pytest.raises(InputError):
        read(tmp_path / "blanks.txt")
