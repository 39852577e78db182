"""Outputs of metrics: tables of ids and metrics, JSON lists, COMET."""

import json

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read
from sigdask.metrics import is_lower_better


def test_names_that_are_given_name_the_systems_of_metrics(tmp_path):
    for system, scores in {"a": [0.25, 0.5, 0.75], "b": [0.5, 0.5, 0.125]}.items():
        rows = [{"id": f"i{k}", "domain": "news", "bleu": score, "f1": 1 - score} for k, score in enumerate(scores)]
        (tmp_path / system).write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(f"old={tmp_path / 'a'}", f"new={tmp_path / 'b'}")
    assert (counts.systems, counts.suggested) == (("old", "new"), ("bleu", "f1"))


def test_the_lists_that_evaluate_returns_of_bertscore_are_a_table(tmp_path):
    for name, f1 in {"x": [0.79, 0.69], "y": [0.5, 1]}.items():
        lists = {"precision": f1, "recall": [1.0, 1.0], "f1": f1}
        (tmp_path / f"{name}.json").write_text(json.dumps(lists))
    counts = read(tmp_path / "x.json", tmp_path / "y.json")
    assert counts.field("score[f1]").tolist() == [[0.79, 0.5], [0.69, 1]]


# comet/cli/score.py, score_command: `data` as it is dumped with --to_json, and the lines that are printed
COMET = {"out/x.txt": [0.8123, 0.5], "out/y.txt": [0.25, 0.75]}


def build_comet_records(scores):
    return [{"src": f"s{k}", "mt": f"m{k}", "ref": f"r{k}", "COMET": score} for k, score in enumerate(scores)]


def test_comets_json_holds_a_system_a_file_of_translations(tmp_path):
    document = {file: build_comet_records(scores) for file, scores in COMET.items()}
    document["out/y.txt"][0]["errors"] = [{"text": "m", "severity": "major", "start": 0, "end": 1}]
    (tmp_path / "comet.json").write_text(json.dumps(document, indent=4))
    counts = read(tmp_path / "comet.json")
    assert (counts.systems, counts.suggested) == (("x", "y"), ("COMET",))
    np.testing.assert_array_equal(counts.field("score[COMET]").T, list(COMET.values()))
    for file, rows in document.items():
        (tmp_path / f"{file[4]}.json").write_text(json.dumps({"hyp.txt": rows}))
    without_names = read(tmp_path / "x.json", tmp_path / "y.json")
    assert without_names.systems == ("x", "y")
    np.testing.assert_array_equal(without_names.field("score[COMET]"), counts.field("score[COMET]"))
    document["out/y.txt"][1]["src"] = "another"
    (tmp_path / "bad.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="bad.json: segment 2 of system 'y' has another source than in 'x'"):
        read(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text('{"a": [{"src": "s", "mt": "m", "COMET": "x"}]}')
    with pytest.raises(InputError, match="bad.json, 'a', segment 1: found .*, expected an object with a number COMET"):
        read(tmp_path / "bad.json", tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "bad.json: expected an object with the segments"),
        ('{"a": [], "b": [{"COMET": 1}]}', "bad.json: expected an object with the segments of each file"),
        (
            '{"a": [{"mt": "m", "COMET": true}]}',
            "bad.json, 'a', segment 1: found .*expected an object with a number COMET",
        ),
        ('{"a": [{"mt": "m", "COMET": "1_0"}]}', "expected an object with a number COMET"),
        ('{"a": [{"src": "other", "mt": "m", "COMET": 1}]}', "bad.json: segment 1 of system 'bad' has another source"),
        ('{"a": [{"COMET": 1}, {"COMET": 1}]}', "bad.json: segment 1 of system 'bad' has another source"),
    ],
)
def test_damaged_files_of_comet_are_errors_that_name_the_file(tmp_path, text, message):
    (tmp_path / "x.json").write_text(json.dumps({"x": build_comet_records([0.5])}))
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "x.json", tmp_path / "bad.json", format="metrics")


def write_meta(path, *names):
    cells = [f"{s},{k},{(j + k) % 4}," + ",".join(str((i + 1) * j + k) for i in range(len(names)))
             for j, s in enumerate("abc") for k in range(4)]  # fmt: skip
    path.write_text("\n".join([",".join(["system", "segment", "human", *names]), *cells, ""]))
    return path


def test_columns_that_people_may_have_rated_are_metrics_only_if_the_user_says_so(tmp_path):
    path = write_meta(tmp_path / "s.csv", "human_fluency", "fluency", "COMET", "chrF")
    ignored = "ignore=\\['human_fluency', 'fluency'\\]"
    with pytest.raises(
        InputError, match=f"may be of people or of a metric(.|\n)*{ignored}, or .*fluency\\+COMET\\+chrF"
    ):
        read(path, format="meta")
    options = Options(ignore=("human_fluency", "fluency"))
    assert read(path, format="meta", options=options).systems == ("COMET", "chrF")
    assert read(path, format="meta:scores=fluency+COMET+chrF").n_systems == 3
    path = write_meta(tmp_path / "t.csv", "mqm", "COMET", "chrF")
    with pytest.raises(InputError, match=r"several columns may hold the human scores(.|\n)*'mqm'\} ignore=\['human'\]"):
        read(path, format="meta")
    options = Options(columns={"gold": "mqm"}, ignore=("human",))
    assert read(path, format="meta", options=options).systems == ("COMET", "chrF")


LOWER = "error|bits_per_byte|cross_entropy|wordErrorRate|WER (no LM)|acc (↓)|top-1-error|seconds"
OTHERS = "tokens|terminology|1-WER|neg_log_loss|error_free|BLEU|loss (↑)"


def test_less_is_better_in_columns_whose_name_says_so():
    assert all(map(is_lower_better, LOWER.split("|")))
    assert not any(map(is_lower_better, OTHERS.split("|")))
