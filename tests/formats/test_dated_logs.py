"""Dated logs of samples: which are read, which are left out with a note, and which are refused."""

import json
import zipfile

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import read

FIRST_STAMP, SECOND_STAMP = "2024-05-01T02-00-00.123456", "2024-05-02T02-00-00.654321"


def write_harness_log(path, values, metric="acc", **fields):
    """Write a log as lm-evaluation-harness does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "doc_id": k,
            "doc": {"q": k},
            "target": "1",
            "resps": [["1"]],
            "filter": "none",
            "metrics": [metric],
            metric: v,
        }
        for k, v in enumerate(values)
    ]
    path.write_text("".join(json.dumps(row | fields) + "\n" for row in rows))
    return path


def write_inspect_log(path, values, model, task="t", status="success", created="", first_id=0, **arguments):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = [
        {"id": k + first_id, "epoch": 1, "input": f"q{k}", "scores": {"match": {"value": v}}}
        for k, v in enumerate(values)
    ]
    header = {"version": 2, "status": status, "eval": {"task": task, "model": model, "created": created}}
    header["eval"]["task_args"] = arguments
    if path.suffix == ".json":
        path.write_text(json.dumps(header | {"samples": samples}))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


def compute_means(counts, metric="acc"):
    results = compare_all(counts, metrics=[metric], second_run=False)
    return {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}


def test_folders_of_nights_hold_the_systems_and_are_none(tmp_path):
    for night, stamp in enumerate((FIRST_STAMP, SECOND_STAMP)):
        for system in ("a", "b"):
            write_harness_log(tmp_path / stamp[:10] / system / f"samples_t_{stamp}.jsonl", [night, night])
    assert compute_means(read(tmp_path)) == {"a": 1, "b": 1}


def test_one_task_with_other_arguments_is_no_other_night_of_it(tmp_path):
    for model in ("a", "b"):
        for night, values in enumerate(("CC", "II"), start=1):
            for k, subject in enumerate(("algebra", "law")):
                path = tmp_path / f"2024-05-0{night}T0{k}-00-00+00-00_mmlu_{model}.json"
                write_inspect_log(path, values, model, first_id=2 * k, subject=subject)
    counts = read(tmp_path)
    assert counts.n_items == 4
    assert compute_means(counts, "match") == {"a": 0, "b": 0}
    write_inspect_log(
        tmp_path / "2024-05-03T00-00-00+00-00_mmlu_a.json", "CC", "a", shots=5
    )  # the same samples, asked otherwise
    with pytest.raises(InputError, match="sample '0' of system 'a' is in .* too; keep only one"):
        read(tmp_path)


def test_a_run_of_inspect_that_failed_tonight_does_not_give_way_to_last_night(tmp_path):
    for model in ("a", "b"):
        write_inspect_log(tmp_path / f"2024-05-01T02-00-00+00-00_t_{model}.json", "CCC", model)
    write_inspect_log(tmp_path / "2024-05-02T02-00-00+00-00_t_a.json", "C", "a", status="error")
    with pytest.raises(InputError, match=r"system 'a' has no score 'match' for item '1' \(2 missing"):
        read(tmp_path)
    write_inspect_log(tmp_path / "2024-05-02T03-00-00+00-00_t_a.json", "CCI", "a")  # tried again
    assert compute_means(read(tmp_path), "match")["a"] == pytest.approx(2 / 3)


def test_what_cannot_be_told_to_be_newer_is_refused(tmp_path):
    first, second = "gpt-4o-2024-05-13", "gpt-4o-2024-08-06"
    pairs = {
        "no date": ("samples_t.jsonl", f"samples_t_{FIRST_STAMP}.jsonl"),
        "the same date": (f"samples_t_{FIRST_STAMP}.jsonl", f"samples_t_{FIRST_STAMP}.jsonl.gz"),
        "models": (f"{first}/samples_t_{FIRST_STAMP}.jsonl", f"{second}/samples_t_{SECOND_STAMP}.jsonl"),
    }
    for kind, names in pairs.items():
        for system in ("a", "b"):
            for k, name in enumerate(names):
                write_harness_log(tmp_path / kind / system / name, [k, k])
        with pytest.raises(InputError, match="2 logs of system 'a', task 't', and it is not known which is the newest"):
            read(tmp_path / kind)
    assert compute_means(read(tmp_path / "models" / "a")) == {first: 0, second: 1}
    runs = [f"{system}={tmp_path}/models/{system}/{model}" for system in "ab" for model in (first, second)]
    assert compute_means(read(*runs)) == {"a": 0.5, "b": 0.5}


def test_two_models_that_write_into_one_folder_are_told_apart_by_their_results(tmp_path):
    # --output_path out/a.json and out/b.json: the harness writes the samples of both to out/
    for stamp, model, values in ((FIRST_STAMP, "org/a", [1, 1]), (SECOND_STAMP, "org/b", [0, 0])):
        write_harness_log(tmp_path / "out" / f"samples_t_{stamp}.jsonl", values)
        (tmp_path / "out" / f"results_{stamp}.json").write_text(json.dumps({"results": {}, "model_name": model}))
    assert compute_means(read(tmp_path / "out")) == {"org/a": 1, "org/b": 0}
    write_harness_log(tmp_path / "other" / f"samples_t_{FIRST_STAMP}.jsonl", [1, 0])
    with pytest.raises(InputError, match=r"logs of 2 models \(org/a, org/b\) for system 'out'"):
        read(tmp_path / "out", tmp_path / "other")
