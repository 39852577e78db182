"""Objects and lists in cells, model names inside files, and gold labels that mean "no label"."""

import json

import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read

GOLD = "ABABAB"


def write_json_lines(tmp_path, name, records):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_list_of_a_classification_pipeline_is_addressed_by_place(tmp_path):
    gold = write_json_lines(tmp_path, "gold.jsonl", [{"id": i, "label": label} for i, label in enumerate(GOLD)])
    answers = [{"id": i, "prediction": [{"label": "A", "score": 0.9}, {"label": "B", "score": 0.1}]} for i in range(6)]
    first = write_json_lines(tmp_path, "x.jsonl", answers)
    second = write_json_lines(
        tmp_path, "y.jsonl", [{"id": i, "prediction": [{"label": label}]} for i, label in enumerate(GOLD)]
    )
    with pytest.raises(InputError, match=r"'prediction' is a list.*prediction.0.label"):
        read(first, second, gold=gold)
    counts = read(first, second, gold=gold, options=Options(columns={"prediction": "prediction.0.label"}))
    assert counts.field("correct").sum(axis=0).tolist() == [3, 6]


def test_scores_gold_labels_ids_and_groups_may_stand_inside_objects(tmp_path):
    rows = [{"meta": {"id": f"i{k}", "doc": k // 2, "gold": "P"}, "x": "P", "y": "PQ"[k % 2]} for k in range(4)]
    path = write_json_lines(tmp_path, "t.jsonl", rows)
    options = Options(columns={"item": "meta.id", "gold": "meta.gold"}, groups=("meta.doc",))
    counts = read(path, format="labels", options=options)
    assert counts.systems == ("x", "y")
    assert counts.ids == ("i0", "i1", "i2", "i3")
    assert counts.groups["meta.doc"] == ("0", "0", "1", "1")
    assert counts.field("correct").tolist() == [[1, 1], [1, 0]] * 2


def write_long_table(tmp_path, name, model, scores):
    path = tmp_path / name
    path.write_text("model,item,score\n" + "".join(f"{model},{k},{score}\n" for k, score in enumerate(scores)))
    return path


def test_two_files_of_one_model_are_not_merged(tmp_path):
    first, second = write_long_table(tmp_path, "run1.csv", "gpt", [1, 0, 1]), tmp_path / "run2.csv"
    second.write_text("model,item,score\ngpt,7,1\ngpt,8,0\n")
    third = write_long_table(tmp_path, "other.csv", "bert", [1, 1, 1])
    with pytest.raises(InputError, match=r"run2.csv: system 'gpt' is also in .*run1.csv.*NAME=FILE"):
        read(first, second, third)


def write_ratings(tmp_path, name, score):
    path = tmp_path / name
    path.write_text("rater\tsystem\tseg_id\tscore\n" + "".join(f"r\tgpt\t{k}\t{score}\n" for k in range(3)))
    return path


def test_ratings_of_one_system_in_two_files_are_averaged_only_when_asked(tmp_path):
    first, second = write_ratings(tmp_path, "a.tsv", 50), write_ratings(tmp_path, "b.tsv", 80)
    with pytest.raises(InputError, match=r"b.tsv: system 'gpt' is also in .*a.tsv.*join the files"):
        read(first, second)
    assert read(f"a={first}", f"b={second}").systems == ("a", "b")
    third = tmp_path / "c.tsv"
    third.write_text(first.read_text().replace("gpt", "bert"))
    averaged = read(first, second, third, format="ratings:raters=mean")
    assert (averaged.field("score") / averaged.field("items")).tolist() == [[65, 50]] * 3


def test_a_list_beside_the_systems_is_left_out_as_the_error_says(tmp_path):
    records = [{"id": i, "gold_label": g, "x": g, "y": "A", "annotator_labels": [g, g]} for i, g in enumerate(GOLD)]
    path = write_json_lines(tmp_path, "snli.jsonl", records)
    with pytest.raises(InputError, match=r"'annotator_labels' is a list.*ignore=\['annotator_labels'\]"):
        read(path)
    assert read(path, options=Options(ignore=("annotator_labels",))).systems == ("x", "y")


def test_numbers_in_objects_of_objects_are_refused_as_either_may_be_items(tmp_path):
    (path := tmp_path / "t.json").write_text(json.dumps({a: {b: len(a + b) / 4 for b in "xy"} for a in ("q1", "q2")}))
    with pytest.raises(InputError, match="expected an object for each item"):
        read(path)
