"""Dated logs of samples: which are read, which are left out with a note, and which are refused."""

import json
import zipfile
from pathlib import Path

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

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


def test_the_second_night_is_not_averaged_with_the_first(tmp_path):
    for stamp, new in ((FIRST_STAMP, [1, 1, 1, 0]), (SECOND_STAMP, [0, 0, 0, 0])):
        write_harness_log(tmp_path / "base" / f"samples_t_{stamp}.jsonl", [1, 1, 1, 0])
        write_harness_log(tmp_path / "new" / f"samples_t_{stamp}.jsonl", new)
    counts = read(tmp_path / "base", tmp_path / "new")
    assert compute_means(counts) == {"base": 0.75, "new": 0}
    assert [path.name for path in counts.files] == [f"samples_t_{SECOND_STAMP}.jsonl"] * 2
    [note] = counts.notices
    assert note.startswith(
        "of each system and task the newest log is taken (base 2024-05-02 02:00, new 2024-05-02 02:00); 2 older ones are "
        "left out: "
    )
    assert f"base/samples_t_{FIRST_STAMP}.jsonl" in note
    assert f"new/samples_t_{FIRST_STAMP}.jsonl" in note
    all_counts = read(tmp_path / "base", tmp_path / "new", format="samples:logs=all")
    assert compute_means(all_counts) == {"base": 0.75, "new": 0.375}
    assert len(all_counts.files) == 4


@pytest.mark.parametrize(
    "names",
    [
        (f"samples_t_{FIRST_STAMP}.jsonl", f"samples_t_{SECOND_STAMP}.jsonl"),
        (f"samples_t_{FIRST_STAMP[:19]}.jsonl", f"samples_t_{SECOND_STAMP[:19]}.jsonl"),
        ("samples_t_2024-05-01.jsonl", "samples_t_2024-05-02.jsonl"),
        ("t-20240501.jsonl", "t-20240502.jsonl"),
        ("2024-05-01.jsonl", "2024-05-02.jsonl"),
        ("2024-05-01/samples_t.jsonl", "2024-05-02/samples_t.jsonl"),
        (f"2024-05-01/samples_t_{FIRST_STAMP}.jsonl", f"2024-05-02/samples_t_{SECOND_STAMP}.jsonl"),
        (f"samples_live_2024-06-24_{FIRST_STAMP}.jsonl", f"samples_live_2024-06-24_{SECOND_STAMP}.jsonl"),
        ("samples_t_2024-05-09T02-00-00.1.jsonl", "samples_t_2024-05-10T02-00-00.1.jsonl"),
        ("samples_t_2024-05-01T09-00-00.jsonl", "samples_t_2024-05-01T10-00-00.jsonl"),
    ],
)
def test_dates_are_read_as_they_are_written(tmp_path, names):
    for night, name in enumerate(names):
        for system in ("a", "b"):
            write_harness_log(tmp_path / system / name, [night, night])
    counts = read(tmp_path / "a", tmp_path / "b")
    assert counts.n_items == 2
    assert compute_means(counts) == {"a": 1, "b": 1}


def test_folders_of_nights_hold_the_systems_and_are_none(tmp_path):
    for night, stamp in enumerate((FIRST_STAMP, SECOND_STAMP)):
        for system in ("a", "b"):
            write_harness_log(tmp_path / stamp[:10] / system / f"samples_t_{stamp}.jsonl", [night, night])
    assert compute_means(read(tmp_path)) == {"a": 1, "b": 1}


def test_tasks_with_a_day_in_their_names_stay_apart(tmp_path):
    for system in ("a", "b"):
        for day in ("2024-06-24", "2024-07-26"):
            write_harness_log(tmp_path / system / f"samples_live_{day}_{FIRST_STAMP}.jsonl", [1, 0])
    assert set(read(tmp_path).groups["task"]) == {"live_2024-06-24", "live_2024-07-26"}


@pytest.mark.parametrize("suffix", ["eval", "json"])
def test_inspect_logs_of_several_nights_and_models_in_one_folder(tmp_path, suffix):
    # the second night starts at a later clock and an earlier moment of the day, by its zone
    for stamp, values in (("2024-10-27T01-30-00+02-00", "CC"), ("2024-10-27T01-10-00+01-00", "CI")):
        for model in ("org/a", "org/b"):
            write_inspect_log(tmp_path / f"{stamp}_t_{model[-1]}{stamp[-5:]}.{suffix}", values, model)
    assert compute_means(read(tmp_path), "match") == {"org/a": 0.5, "org/b": 0.5}


def test_inspect_logs_without_a_date_in_their_names_say_when_they_were_made(tmp_path):
    for name, day, value in (("x", "2024-05-02", "C"), ("y", "2024-05-01", "I")):
        for model in ("a", "b"):
            write_inspect_log(tmp_path / f"{name}{model}.json", value, model, created=f"{day}T02:00:00+00:00")
    assert compute_means(read(tmp_path), "match") == {"a": 1, "b": 1}


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
    with pytest.raises(InputError, match="sample '0' of system 'a' is in .* too, where the task had other arguments"):
        read(tmp_path)


def test_a_newest_log_with_fewer_items_is_refused(tmp_path):
    for system in ("a", "b"):
        write_harness_log(tmp_path / system / f"samples_t_{FIRST_STAMP}.jsonl", [1, 0, 1])
    write_harness_log(tmp_path / "a" / f"samples_t_{SECOND_STAMP}.jsonl", [1, 0])
    with pytest.raises(
        InputError, match=r"_2024-05-02.*system 'a' has 2 items and the one before, .*2024-05-01.* 3; run"
    ):
        read(tmp_path)
    write_harness_log(tmp_path / "a" / f"samples_t_{SECOND_STAMP}.jsonl", [1, 0, 0])
    assert compute_means(read(tmp_path))["a"] == pytest.approx(1 / 3)
    older = tmp_path / "a" / f"samples_t_{FIRST_STAMP}.jsonl"
    older.write_text(older.read_text()[:-10])  # what is not taken may be damaged
    assert compute_means(read(tmp_path))["a"] == pytest.approx(1 / 3)


def test_an_inspect_run_that_failed_tonight_does_not_give_way_to_last_night(tmp_path):
    for model in ("a", "b"):
        write_inspect_log(tmp_path / f"2024-05-01T02-00-00+00-00_t_{model}.json", "CCC", model)
    write_inspect_log(tmp_path / "2024-05-02T02-00-00+00-00_t_a.json", "C", "a", status="error")
    with pytest.raises(InputError, match=r"1 item and the one before, .* 3, and its run did not come to its end"):
        read(tmp_path)
    write_inspect_log(tmp_path / "2024-05-02T03-00-00+00-00_t_a.json", "CCI", "a")  # tried again
    assert compute_means(read(tmp_path), "match")["a"] == pytest.approx(2 / 3)


def test_runs_without_a_date_that_failed_are_left_out_and_named(tmp_path):
    for model in ("a", "b"):
        write_inspect_log(tmp_path / f"{model}.json", "CC", model)
    write_inspect_log(tmp_path / "a0.json", "I", "a", status="error")
    counts = read(tmp_path)
    assert compute_means(counts, "match")["a"] == 1
    assert any(
        w.startswith("runs that stopped before their end are left out: ") and "a0.json" in w for w in counts.notices
    )


def test_a_task_that_was_not_run_again_is_named(tmp_path):
    for system in ("a", "b"):
        for task in ("t", "u"):
            for stamp in (FIRST_STAMP, SECOND_STAMP):
                if (system, task, stamp) != ("a", "u", SECOND_STAMP):
                    write_harness_log(tmp_path / system / f"samples_{task}_{stamp}.jsonl", [1, 0])
    notes = read(tmp_path).notices
    assert "a: not run again with its other tasks, and taken as they were before: u" in notes
    assert not any(w.startswith("b: ") for w in notes)


def test_what_cannot_be_told_to_be_newer_is_refused(tmp_path):
    for system in ("a", "b"):
        write_harness_log(tmp_path / system / f"samples_t_{FIRST_STAMP}.jsonl", [1, 0])
    write_harness_log(tmp_path / "a" / "samples_t.jsonl", [1, 0])
    with pytest.raises(
        InputError, match=r"samples_t.jsonl: no date in its name, and .* so it is not known which is newer"
    ):
        read(tmp_path)
    (tmp_path / "a" / "samples_t.jsonl").unlink()
    write_harness_log(tmp_path / "a" / f"samples_t_{FIRST_STAMP}.jsonl.gz", [1, 0])
    with pytest.raises(InputError, match="and the same date; remove one of them"):
        read(tmp_path)


def test_logs_of_several_folders_are_not_taken_for_nights(tmp_path):
    for system in ("a", "b"):
        for k, stamp in enumerate((FIRST_STAMP, SECOND_STAMP)):
            write_harness_log(tmp_path / system / f"seed{k}" / f"samples_t_{stamp}.jsonl", [k, k])
    with pytest.raises(InputError, match=r"system 'a', task 't' has logs in 2 folders \(seed0, seed1\)"):
        read(tmp_path)
    assert compute_means(read(tmp_path, format="samples:logs=newest")) == {"a": 1, "b": 1}
    assert compute_means(read(tmp_path, format="samples:logs=all")) == {"a": 0.5, "b": 0.5}
    replicates = [f"{s}={tmp_path / s / f'seed{k}'}" for s in "ab" for k in range(2)]
    assert compute_means(read(*replicates)) == {"a": 0.5, "b": 0.5}


def test_models_with_dates_in_their_names_are_not_taken_for_nights(tmp_path):
    for system in ("a", "b"):
        for k, model in enumerate(("gpt-4o-2024-05-13", "gpt-4o-2024-08-06")):
            write_harness_log(tmp_path / system / model / f"samples_t_{(FIRST_STAMP, SECOND_STAMP)[k]}.jsonl", [k, k])
    with pytest.raises(InputError, match=r"has logs in 2 folders \(gpt-4o-2024-05-13, gpt-4o-2024-08-06\)"):
        read(tmp_path)
    assert compute_means(read(tmp_path / "a")) == {"gpt-4o-2024-05-13": 0, "gpt-4o-2024-08-06": 1}


def test_two_models_that_write_into_one_folder_are_told_apart_by_their_results(tmp_path):
    # --output_path out/a.json and out/b.json: the harness writes the samples of both to out/
    for stamp, model, values in ((FIRST_STAMP, "org/a", [1, 1]), (SECOND_STAMP, "org/b", [0, 0])):
        write_harness_log(tmp_path / "out" / f"samples_t_{stamp}.jsonl", values)
        (tmp_path / "out" / f"results_{stamp}.json").write_text(json.dumps({"results": {}, "model_name": model}))
    assert compute_means(read(tmp_path / "out")) == {"org/a": 1, "org/b": 0}
    write_harness_log(tmp_path / "other" / f"samples_t_{FIRST_STAMP}.jsonl", [1, 0])
    with pytest.raises(InputError, match="is of the model org/b, and .* of the same system 'out', task 't' of org/a"):
        read(tmp_path / "out", tmp_path / "other")
    assert compute_means(read(tmp_path / "out", tmp_path / "other", format="samples:logs=newest"))["out"] == 0


def test_files_given_one_by_one_without_names_are_nights_of_their_folders(tmp_path):
    for k, stamp in enumerate((FIRST_STAMP, SECOND_STAMP)):
        for system in ("a", "b"):
            write_harness_log(tmp_path / system / f"samples_t_{stamp}.jsonl", [k, k])
    files = sorted(tmp_path.glob("*/*.jsonl"))  # as a shell spreads them
    assert compute_means(read(*files)) == {"a": 1, "b": 1}
    first, second = sorted((tmp_path / "a").glob("*.jsonl"))  # two nights of one system: these are compared
    assert compute_means(read(first, second)) == {Path(first).stem: 0, Path(second).stem: 1}


def test_repeats_go_on_governing_what_is_repeated_within_a_log(tmp_path):
    for system in ("a", "b"):
        write_harness_log(tmp_path / system / f"samples_t_{FIRST_STAMP}.jsonl", [1, 0])
        path = write_harness_log(tmp_path / system / f"samples_t_{SECOND_STAMP}.jsonl", [1, 0])
        path.write_text(path.read_text() * 2)
    with pytest.raises(InputError, match="2024-05-02.*sample '0' of system 'a' has a score already"):
        read(tmp_path, format="samples:repeats=error")
    assert any("averaged" in w for w in read(tmp_path).notices)


def test_an_unknown_choice_is_refused(tmp_path):
    write_harness_log(tmp_path / "a" / f"samples_t_{FIRST_STAMP}.jsonl", [1])
    with pytest.raises(InputError, match="format samples: logs = 'latest': must be one of newest, all"):
        read(tmp_path, format="samples:logs=latest", options=Options())
