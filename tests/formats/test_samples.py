"""Logs of samples from lm-evaluation-harness and Inspect: tasks, filters, epochs, missing samples."""

import json
import zipfile

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read


def compute_scores(counts, metric, **options):
    results = compare_all(counts, metrics=[metric], trials=256, second_run=False, **options)
    return {name: score for r in results for name, score in ((r.a, r.score_a), (r.b, r.score_b))}


def build_sample(doc_id, *, subject="math", filter_="none", **metrics):
    """Return a record as lm-evaluation-harness 0.4 writes it."""
    return {
        "doc_id": doc_id,
        "doc": {"question": f"q{doc_id}", "answer": 7, "subject": subject},
        "target": "7",
        "arguments": {"gen_args_0": {"arg_0": "prompt", "arg_1": {"until": ["\n"]}}},
        "resps": [["7"]],
        "filtered_resps": ["7"],
        "filter": filter_,
        "metrics": list(metrics),
        "doc_hash": f"h{subject}{doc_id}",
        "prompt_hash": "p",
        "target_hash": "t",
        **metrics,
    }


def write_samples(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


STAMP = "2024-07-01T12-00-00.123456"


@pytest.fixture
def gsm8k(tmp_path):
    for model, strict, flexible in (("m1", (1, 0, 1, 1), (1, 1, 1, 1)), ("m2", (0, 0, 1, 0), (0, 1, 1, 1))):
        write_samples(
            tmp_path / model / f"samples_gsm8k_{STAMP}.jsonl",
            [build_sample(k, filter_="strict-match", exact_match=float(v)) for k, v in enumerate(strict)]
            + [build_sample(k, filter_="flexible-extract", exact_match=float(v)) for k, v in enumerate(flexible)],
        )
        (tmp_path / model / f"results_{STAMP}.json").write_text('{"results": {}}')
    return tmp_path


def test_filters_are_metrics_of_their_own_as_in_the_harness(gsm8k):
    files = [str(gsm8k / m / f"samples_gsm8k_{STAMP}.jsonl") for m in ("m1", "m2")]
    assert detect([parse_source(f) for f in files]) == "samples"
    counts = read(*files)
    assert counts.systems == ("m1", "m2")
    assert counts.suggested == ("exact_match,strict-match", "exact_match,flexible-extract")
    assert compute_scores(counts, "exact_match,strict-match") == {"m1": 0.75, "m2": 0.25}
    assert compute_scores(counts, "exact_match,flexible-extract") == {"m1": 1, "m2": 0.75}


@pytest.fixture
def mmlu(tmp_path):
    tasks = {"mmlu_algebra": "algebra", "mmlu_law": "law"}
    correct = {
        "a": {"mmlu_algebra": (1, 1, 0), "mmlu_law": (1, 0)},
        "b": {"mmlu_algebra": (1, 0, 0), "mmlu_law": (0, 0)},
    }
    for model, correct_by_task in correct.items():
        for task, values in correct_by_task.items():
            records = [build_sample(k, subject=tasks[task], acc=v, acc_norm=1 - v) for k, v in enumerate(values)]
            write_samples(tmp_path / model / f"samples_{task}_{STAMP}.jsonl", records)
        records = [build_sample(k, subject="x", exact_match=1.0) for k in range(5)]
        write_samples(tmp_path / model / f"samples_drop_{STAMP}.jsonl", records)
    return tmp_path


def test_tasks_and_subjects_are_groups_and_metrics_keep_to_their_tasks(mmlu):
    counts = read(mmlu / "a", mmlu / "b", options=Options(groups=("subject",)))
    assert counts.n_items == 10
    assert counts.ids[0] == "drop:0"
    assert sorted(set(counts.groups["task"])) == ["drop", "mmlu_algebra", "mmlu_law"]
    assert sorted(set(counts.groups["subject"])) == ["algebra", "law", "x"]
    assert compute_scores(counts, "acc") == {"a": 0.6, "b": 0.2}
    assert compute_scores(counts, "exact_match") == {"a": 1, "b": 1}
    assert "acc is on 5 of 10 samples" in counts.notices
    results = compare_all(counts, metrics=["acc"], by="task", trials=256)
    scores_by_task = {r.subset["value"]: (r.score_a, r.score_b) for r in results}
    assert scores_by_task["mmlu_algebra"] == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    [r] = compare_all(counts, metrics=["acc"], unit="subject", trials=256)
    assert (r.n_items, r.n_units) == (5, 2)  # drop has no acc


def test_what_is_no_number_is_no_metric_and_numbers_in_text_are(tmp_path):
    records = [
        build_sample(
            k, acc="True", f1="0.5", perplexity=[-3.5, 12], bleu=["a", "b"], nested={"r1": 0.25, "r2": {"f": 1}}
        )
        for k in range(2)
    ]
    counts = read(write_samples(tmp_path / "a.jsonl", records), write_samples(tmp_path / "b.jsonl", records))
    assert counts.suggested == ("acc", "f1", "nested.r1", "nested.r2.f")
    assert compute_scores(counts, "nested.r1") == {"a": 0.25, "b": 0.25}
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    assert read(*paths, options=Options(columns={"score": "f1"})).suggested == ("f1",)
    assert read(*paths, options=Options(ignore=("acc", "f1"))).suggested == ("nested.r1", "nested.r2.f")
    with pytest.raises(InputError, match="no metric 'mcc' in these samples; metrics: acc, f1"):
        read(*paths, options=Options(columns={"score": "mcc"}))


def test_repeats_are_averaged_exactly(tmp_path):
    a = [build_sample(k, acc=v) for k, values in enumerate([(1, 0, 0), (1, 1, 1)]) for v in values]
    b = [build_sample(k, acc=v) for k, values in enumerate([(0, 1), (0, 0)]) for v in values]
    files = [write_samples(tmp_path / "a.jsonl", a), write_samples(tmp_path / "b.jsonl", b)]
    counts = read(*files)
    assert counts.field("items").tolist() == [[6], [6]]
    assert counts.field("score[acc]").tolist() == [[2, 3], [6, 0]]
    assert counts.notices == ("acc: 10 values of 4 samples taken more than once are averaged",)
    assert compute_scores(counts, "acc") == {"a": pytest.approx(2 / 3), "b": 0.25}
    write_samples(files[1], b[:-1])
    with pytest.raises(InputError, match=r"b.jsonl: sample '0' has 2 scores 'acc', but '1' 1; give each item once"):
        read(*files)


def test_ids_that_are_positions_of_reordered_documents_are_paired_by_the_hash(tmp_path):
    def write_log(name, order, has_hash=True):
        records = [build_sample(k, acc=int(d in "abc"[: 2 + (name == "x")])) for k, d in enumerate(order)]
        for record, document in zip(records, order, strict=True):
            record |= {"doc": {"question": document}, "doc_hash": f"h{document}"}
            if not has_hash:
                del record["doc_hash"]
        return write_samples(tmp_path / f"{name}.jsonl", records)

    paths = [write_log("x", "abcde"), write_log("y", "ecabd")]
    counts = read(*paths)
    assert counts.ids == ("ha", "hb", "hc", "hd", "he")
    assert counts.field("score[acc]").tolist() == [[1, 1], [1, 1], [1, 0], [0, 0], [0, 0]]
    assert any("paired by doc_hash" in note for note in counts.warnings)
    by_id = Options(columns={"item": "doc_id"})
    assert read(*paths, options=by_id).field("score[acc]").tolist() == [[1, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    assert read(*[write_log(name, "abcde") for name in "xy"]).ids == ("0", "1", "2", "3", "4")
    for orders in (("abcde", "ecabd", False), ("abcde", "fghij", True), ("abcdd", "abddc", True)):
        paths = [write_log(name, order, orders[2]) for name, order in zip("xy", orders, strict=False)]
        with pytest.raises(InputError, match=r"have other inputs in other systems.*doc_id|0 of 10 items in common"):
            read(*paths)
        assert read(*paths, options=by_id).n_items == 5
    joined = write_samples(tmp_path / "c.jsonl", [build_sample(0, acc=1), build_sample(0, subject="law", acc=1)])
    with pytest.raises(InputError, match=r"c.jsonl, line 2: sample '0' has another input than an earlier sample"):
        read(paths[0], joined)


@pytest.mark.parametrize("missing", [None, "zero", "pairwise"])
def test_a_log_without_a_score_is_no_log_of_zeros(tmp_path, missing):
    files = [tmp_path / f"{name}.json" for name in "ab"]
    write_json(files[0], build_inspect_log("t", "a", [build_inspect_sample(k, "C") for k in range(8)]))
    write_json(files[1], build_inspect_log("t", "b", [build_inspect_sample(k, None) for k in range(8)]))
    with pytest.raises(InputError, match="none of 8 samples of system 'b' have a score"):
        read(*files, options=Options(missing=missing))
    samples = [build_inspect_sample(k, "C" if k else None) for k in range(8)]
    write_json(files[1], build_inspect_log("t", "b", samples))
    if missing is None:
        with pytest.raises(
            InputError, match="b.json: only 7 of 8 samples of system 'b' have a score.*missing='pairwise'"
        ):
            read(*files)
    else:
        assert read(*files, options=Options(missing=missing)).systems == ("a", "b")
    samples = [build_inspect_sample(k, "C", scorer="other") for k in range(8)]
    write_json(files[1], build_inspect_log("t", "b", samples))
    if missing != "pairwise":
        with pytest.raises(InputError, match=r"system 'b' has no score 'match', .*ignore=\['match'\]"):
            read(*files, options=Options(missing=missing))


def test_samples_that_ended_in_an_error_are_left_out_with_their_number(tmp_path):
    samples = [build_inspect_sample(k, "C") for k in range(4)]
    broken = {**build_inspect_sample(3, "I"), "error": {"message": "timeout"}}
    files = [tmp_path / f"{name}.json" for name in "ab"]
    write_json(files[0], build_inspect_log("t", "a", samples))
    write_json(files[1], build_inspect_log("t", "b", [*samples[:3], broken]))
    with pytest.raises(InputError, match="system 'b' has no score 'match' for item '3'"):
        read(*files)
    counts = read(*files, options=Options(missing="pairwise"))
    assert compute_scores(counts, "match") == {"a": 1, "b": 1}
    assert compute_scores(read(*files, options=Options(missing="zero")), "match") == {"a": 1, "b": 0.75}
    assert any("1 sample left out (error is set)" in note for note in counts.warnings)


def test_numbers_of_a_log_that_may_be_scores_are_refused_with_both_ways(tmp_path):
    files = []
    for name in "ab":
        records = [build_sample(k, acc=k % 2) | {"latency": 3.5 + k, "quality": k} for k in range(4)]
        for record in records:
            del record["metrics"]
        files.append(write_samples(tmp_path / f"{name}.jsonl", records))
    with pytest.raises(InputError, match=r"latency, quality may be; .*acc\+latency\+quality.*ignore"):
        read(*files)
    assert read(*files, options=Options(ignore=("latency", "quality"))).suggested == ("acc",)
    chosen = read(*files, options=Options(columns={"score": "acc+latency+quality"}))
    assert chosen.suggested == ("acc", "latency", "quality")
    assert read(*files, options=Options(columns={"score": "quality"})).suggested == ("quality",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"doc_id": 0, "acc": 1}\n{"doc_id": 1, "acc"}\n', "bad.jsonl, line 2: invalid JSON"),
        ('{"doc_id": 0, "acc": 1}\n[1]\n', "bad.jsonl, line 2: found .* expected a JSON object"),
        ('{"doc_id": 0, "acc": Infinity}\n', "bad.jsonl, line 1: acc is 'inf', expected a finite number"),
        ('{"doc_id": 0, "acc": NaN}\n', "bad.jsonl: none of 1 sample of system 'bad' have a score"),
        ('{"doc_id": "", "acc": 1}\n', "bad.jsonl, line 1: no doc_id"),
        ('[{"doc_id": 0, "acc": 1}, 3]', "bad.jsonl, record 2: found 3"),
        ('[{"doc_id": 0,\n', "bad.jsonl, line 2: invalid JSON"),
    ],
)
def test_bad_samples_are_errors_that_name_the_place(tmp_path, content, message):
    good = write_samples(tmp_path / "good.jsonl", [build_sample(0, acc=1)])
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        read(good, tmp_path / "bad.jsonl", format="samples")


def test_files_of_one_name_are_named_by_their_folders_and_empty_folders_are_errors(tmp_path):
    for folder in ("x", "y"):
        write_samples(tmp_path / folder / "out.jsonl", [build_sample(0, acc=1)])
    assert read(tmp_path / "x" / "out.jsonl", tmp_path / "y" / "out.jsonl").systems == ("x", "y")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="none: no logs in this folder; .*HELM, SWE-bench, HumanEval"):
        read(tmp_path / "none", tmp_path / "x", format="samples")
    with pytest.raises(InputError, match="takes no gold file"):
        read(tmp_path / "x", gold=tmp_path / "x", format="samples")


def build_inspect_log(task, model, samples, status="success", **config):
    return {
        "version": 2,
        "status": status,
        "eval": {"task": task, "model": model, "config": config},
        "samples": samples,
    }


def build_inspect_sample(item, value, epoch=1, scorer="match", **metadata):
    scores = None if value is None else {scorer: {"value": value, "answer": "a"}}
    return {"id": item, "epoch": epoch, "input": f"q{item}", "target": "t", "scores": scores, "metadata": metadata}


def write_json(path, log):
    path.write_text(json.dumps(log, indent=2))
    return path


def write_eval(path, log, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        header = {key: value for key, value in log.items() if key != "samples"}
        archive.writestr("_journal/start.json", json.dumps(header))
        for entry in log["samples"]:
            archive.writestr(f"samples/{entry['id']}_epoch_{entry['epoch']}.json", json.dumps(entry))
        archive.writestr("header.json", json.dumps(header))
    return path


@pytest.mark.parametrize("writer", [write_json, write_eval])
def test_inspect_letters_count_and_epochs_are_averaged(tmp_path, writer):
    a = [build_inspect_sample(k, v, e) for e in (1, 2, 3) for k, v in ((1, "C"), (2, "CIN"[e - 1]), (3, "P"))]
    b = [build_inspect_sample(k, "I", e) for e in (1, 2, 3) for k in (1, 2, 3)]
    suffix = "json" if writer is write_json else "eval"
    files = [
        writer(
            tmp_path / f"2025-01-0{n}_t.{suffix}",
            build_inspect_log("t", f"org/{n}", samples, epochs=3, epochs_reducer=["mean"]),
        )
        for n, samples in ((1, a), (2, b))
    ]
    assert detect([parse_source(str(files[0]))]) == "samples"
    counts = read(*files)
    assert counts.systems == ("org/1", "org/2")
    assert dict(zip(counts.ids, counts.field("score[match]")[:, 0], strict=True)) == {"1": 3, "2": 1, "3": 1.5}
    assert compute_scores(counts, "match") == {"org/1": pytest.approx((1 + 1 / 3 + 0.5) / 3), "org/2": 0}
    assert read(tmp_path).systems == ("org/1", "org/2")
    renamed = read(f"x={files[0]}", f"y={files[1]}")
    assert renamed.systems == ("x", "y")


@pytest.mark.parametrize("writer", [write_json, write_eval])
def test_a_score_twice_in_a_sample_is_refused(tmp_path, writer):
    log = build_inspect_log("t", "m", [build_inspect_sample(1, "C")])
    good, bad = (writer(tmp_path / f"{name}.{writer.__name__[6:]}", log) for name in ("good", "bad"))
    text = json.dumps(build_inspect_sample(1, "C")).replace('"epoch"', '"id": 2, "epoch"')
    if writer is write_json:
        bad.write_text(json.dumps({**log, "samples": []}).replace("[]", f"[{text}]"))
    else:
        with zipfile.ZipFile(bad, "w") as archive:
            archive.writestr("header.json", json.dumps(log))
            archive.writestr("samples/1.json", text)
    with pytest.raises(InputError, match="bad.*: key 'id' occurs twice in one JSON object; remove one"):
        read(good, bad)


def test_inspect_values_of_all_kinds(tmp_path):
    values = {"d": {"p": 1, "q": "C"}, "l": [0.5, 1], "b": True, "s": "0.25", "w": "yes", "n": float("nan"), "t": "odd"}

    def write_log(name):
        entry = build_inspect_sample(1, 0.5)
        entry["scores"] |= {key: {"value": value} for key, value in values.items()}
        return write_json(tmp_path / f"{name}.json", build_inspect_log("t", name, [entry]))

    paths = [write_log("a"), write_log("b")]
    with pytest.raises(InputError, match=r"a.json, sample 1: t is 'odd', expected a finite number; .*ignore=\['t'\]"):
        read(*paths)
    counts = read(*paths, options=Options(ignore=("t",)))
    scores = {name[6:-1]: float(counts.field(name)[0, 0]) for name in counts.fields if name.startswith("score[")}
    assert scores == {"match": 0.5, "d.p": 1, "d.q": 1, "l.0": 0.5, "l.1": 1, "b": 1, "s": 0.25, "w": 1}


def test_inspect_tasks_metadata_and_unfinished_runs(tmp_path):
    for model in ("a", "b"):
        (tmp_path / model).mkdir()
        for task in ("t1", "t2"):
            samples = [build_inspect_sample(k, "C" if k % 2 else "I", document=f"d{k // 2}") for k in range(4)]
            write_json(tmp_path / model / f"{task}.json", build_inspect_log(task, model, samples))
    failed = build_inspect_log("t1", "a", [build_inspect_sample(0, "C")], status="error")
    write_json(tmp_path / "a" / "t0.json", failed)
    with pytest.raises(InputError, match="sample '0' of system 'a' is in .* too"):
        read(tmp_path / "a", tmp_path / "b")
    (tmp_path / "a" / "t0.json").unlink()
    counts = read(tmp_path / "a", tmp_path / "b", options=Options(groups=("document",)))
    assert counts.n_items == 8
    assert counts.ids[:2] == ("t1:0", "t1:1")
    assert set(counts.groups["document"]) == {"d0", "d1"}
    with pytest.raises(InputError, match="logs of 2 models"):
        read(f"x={tmp_path}", f"y={tmp_path / 'a'}")
    sources = [f"{name}={tmp_path / 'a' / 't1.json'}" for name in ("x", "y")]
    assert read(*sources).systems == ("x", "y")


def test_inspect_logs_that_cannot_be_read_are_errors(tmp_path):
    good = write_eval(tmp_path / "good.eval", build_inspect_log("t", "a", [build_inspect_sample(1, "C")]))
    (tmp_path / "cut.eval").write_bytes(good.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"cut.eval: damaged .eval log"):
        read(good, tmp_path / "cut.eval")
    bare = write_eval(tmp_path / "bare.eval", build_inspect_log("t", "b", []))
    with pytest.raises(InputError, match=r"bare.eval: no sample with a score in this log"):
        read(good, bare)
    other = write_json(tmp_path / "other.json", {"version": 1, "status": "success", "eval": 3})
    with pytest.raises(InputError, match=r"other.json: has no key 'eval'"):
        read(good, other)
    odd = write_json(tmp_path / "odd.json", build_inspect_log("t", "b", [{"epoch": 1}]))
    with pytest.raises(InputError, match=r"odd.json, sample 1: no id, which identifies the sample; fields: epoch"):
        read(good, odd)
    pooled = write_json(
        tmp_path / "max.json", build_inspect_log("t", "b", [build_inspect_sample(1, "C")], epochs_reducer=["max"])
    )
    assert any("reduced by ['max']; here they are averaged" in w for w in read(good, pooled).notices)
