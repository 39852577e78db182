"""Objects and lists in cells, model names inside files, and gold labels that mean "no label"."""

import json

import pandas as pd
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read

GOLD = "ABABAB"


def write_json_lines(tmp_path, name, records):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_table(tmp_path, name, kind, records):
    path = tmp_path / f"{name}.{kind}"
    if kind == "jsonl":
        return write_json_lines(tmp_path, f"{name}.{kind}", records)
    frame = pd.DataFrame(records)
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    return path


@pytest.fixture(params=["jsonl", "csv", "parquet"])
def files(request, tmp_path):
    gold = write_table(tmp_path, "gold", request.param, [{"id": i, "label": label} for i, label in enumerate(GOLD)])
    systems = [
        write_table(
            tmp_path,
            name,
            request.param,
            [{"id": i, "prediction": {"label": label, "p": [0.1 * i, 0.5]}} for i, label in enumerate(labels)],
        )
        for name, labels in (("x", "AAAAAA"), ("y", "ABABAA"))
    ]
    return gold, systems


def test_a_prediction_that_is_an_object_is_never_compared_whole(files):
    gold, systems = files
    with pytest.raises(
        InputError, match=r"'prediction' is an object.*prediction.label, prediction.p.0, prediction.p.1"
    ):
        read(*systems, gold=gold)


def test_a_name_with_dots_leads_into_the_object(files):
    gold, systems = files
    counts = read(*systems, gold=gold, options=Options(columns={"prediction": "prediction.label"}))
    assert counts.field("correct").T.tolist() == [[1, 0, 1, 0, 1, 0], [1, 1, 1, 1, 1, 0]]


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
    rows = [{"meta": {"id": f"i{k}", "doc": k // 2, "gold": "P"}, "x": "P", "y": "Q"} for k in range(4)]
    path = write_json_lines(tmp_path, "t.jsonl", rows)
    options = Options(columns={"id": "meta.id", "gold": "meta.gold"}, groups=("meta.doc",))
    counts = read(path, format="labels", options=options)
    assert counts.systems == ("x", "y")
    assert counts.ids == ("i0", "i1", "i2", "i3")
    assert counts.groups["meta.doc"] == ("0", "0", "1", "1")
    assert counts.field("correct").tolist() == [[1, 0]] * 4


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"id": 1, "gold": "A", "x": {"l": "A"}, "y": {"l": "A"}}, "'x' is an object"),
        ({"id": 1, "gold": [{"l": "A"}], "x": [{"l": "B"}], "y": [{"l": "A"}]}, "'gold' is a list"),
        ({"id": 1, "x": {"s": 1}, "y": 2}, "'x' is an object"),
        ({"id": {"doc": 1, "n": 2}, "gold": "A", "x": "A", "y": "B"}, "'id' is an object.*id.doc, id.n"),
    ],
)
def test_no_column_of_objects_or_lists_is_compared(tmp_path, record, name):
    path = write_json_lines(tmp_path, "t.jsonl", [record, {**record, "id": 2}])
    with pytest.raises(InputError, match=name):
        read(path)


def test_a_label_in_brackets_is_text(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,x,y\na,[CLS],[CLS],[SEP]\nb,[SEP],[CLS],[SEP]\n")
    assert read(tmp_path / "t.csv").field("correct").tolist() == [[1, 0], [0, 1]]


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


def test_names_that_are_given_win_over_the_model_inside(tmp_path):
    first, second = (
        write_long_table(tmp_path, "run1.csv", "gpt", [1, 0, 1]),
        write_long_table(tmp_path, "run2.csv", "gpt", [0, 0, 1]),
    )
    counts = read(f"old={first}", f"new={second}")
    assert counts.systems == ("old", "new")
    assert counts.field("score").T.tolist() == [[1, 0, 1], [0, 0, 1]]


def test_a_name_stands_before_each_of_several_systems_inside(tmp_path):
    for name, shift in (("monday", 0), ("tuesday", 1)):
        (tmp_path / name).write_text(f"system,item,score\nx,a,{shift}\ny,a,{shift + 2}\n")
        (tmp_path / f"{name}.wide").write_text(f"item,x,y\na,{shift},{shift + 2}\n")
    names = ("monday:x", "monday:y", "tuesday:x", "tuesday:y")
    for suffix in ("", ".wide"):
        counts = read(*(f"{name}={tmp_path / name}{suffix}" for name in ("monday", "tuesday")))
        assert counts.systems == names
        assert counts.field("score").tolist() == [[0, 2, 1, 3]]


def write_ratings(tmp_path, name, score):
    path = tmp_path / name
    path.write_text("rater\tsystem\tseg_id\tscore\n" + "".join(f"r\tgpt\t{k}\t{score}\n" for k in range(3)))
    return path


def test_ratings_of_one_system_in_two_files_are_averaged_only_when_asked(tmp_path):
    first, second = write_ratings(tmp_path, "a.tsv", 50), write_ratings(tmp_path, "b.tsv", 80)
    with pytest.raises(InputError, match=r"b.tsv: system 'gpt' is also in .*a.tsv.*raters=mean"):
        read(first, second)
    assert read(f"a={first}", f"b={second}").systems == ("a", "b")
    third = tmp_path / "c.tsv"
    third.write_text(first.read_text().replace("gpt", "bert"))
    averaged = read(first, second, third, format="ratings:raters=mean")
    assert (averaged.field("score") / averaged.field("items")).tolist() == [[65, 50]] * 3


def test_annotations_of_one_model_in_two_files_are_not_merged(tmp_path):
    for name, preference in (("a.json", 1), ("b.json", 2)):
        rows = [{"instruction": f"q{k}", "generator_1": "base", "generator_2": "gpt", "preference": preference}
                for k in range(3)]  # fmt: skip
        (tmp_path / name).write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"b.json: system 'gpt' is also in .*a.json"):
        read(tmp_path / "a.json", tmp_path / "b.json")
    counts = read(f"old={tmp_path / 'a.json'}", f"new={tmp_path / 'b.json'}")
    assert counts.field("score[win_rate]").T.tolist() == [[0, 0, 0], [1, 1, 1]]


def write_labels(tmp_path, gold, **systems):
    rows = zip(gold, *systems.values(), strict=True)
    text = "".join(f"i{k}\t" + "\t".join(row) + "\n" for k, row in enumerate(rows))
    (tmp_path / "t.tsv").write_text("\t".join(("pairID", "gold_label", *systems)) + "\n" + text)
    return tmp_path / "t.tsv"


def test_the_gold_hyphen_of_snli_is_no_label(tmp_path):
    gold = ["entailment", "-", "neutral", "-", "contradiction"]
    path = write_labels(tmp_path, gold, x=["entailment"] * 5, y=["neutral"] * 5)
    counts = read(path)
    assert counts.ids == ("i0", "i2", "i4")
    assert counts.field("correct").tolist() == [[1, 0], [0, 1], [0, 0]]
    assert "gold '-' on 2 items is no label" in counts.warnings[0]


def test_the_gold_hyphen_is_left_out_by_position_too(tmp_path):
    for name, column in (("gold", "en-cn"), ("x", "eeeee"), ("y", "ennnn")):
        long_names = {"e": "entailment", "n": "neutral", "c": "contradiction", "-": "-"}
        (tmp_path / name).write_text("".join(f"{long_names[label]}\n" for label in column))
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold")
    assert counts.field("correct").tolist() == [[1, 1], [0, 1], [0, 0], [0, 1]]


def test_the_gold_minus_one_of_numbered_classes_is_no_label(tmp_path):
    counts = read(write_labels(tmp_path, ["0", "1", "2", "-1", "0"], x=["0"] * 5, y=["1"] * 5))
    assert counts.n_items == 4


@pytest.mark.parametrize(
    ("gold", "x"),
    [("+-+-0", "+++++"), (["0", "1", "-1", "1", "0"], ["1"] * 5), (["word", "-", "other", "word", "-"], ["-"] * 5)],
)
def test_a_hyphen_or_minus_one_that_may_be_a_label_stays(tmp_path, gold, x):
    assert read(write_labels(tmp_path, gold, x=x, y=x)).n_items == 5


def test_a_list_beside_the_systems_is_left_out_as_the_error_says(tmp_path):
    records = [{"id": i, "gold_label": g, "x": g, "y": "A", "annotator_labels": [g, g]} for i, g in enumerate(GOLD)]
    path = write_json_lines(tmp_path, "snli.jsonl", records)
    with pytest.raises(InputError, match="'annotator_labels' is a list.*--ignore annotator_labels"):
        read(path)
    assert read(path, options=Options(ignore=("annotator_labels",))).systems == ("x", "y")


ITEMS = [{"id": f"t{k}", "latency": 1.5 + k} for k in range(12)]
TRACE_SCORES = {
    "scores.em": lambda k, right: {"scores": {"em": right, "comment": "ok"}},  # Braintrust
    "scores.help": lambda k, right: {"scores": [{"name": "help", "value": right}, {"name": "why", "value": "x"}]},
    "feedback_stats.em": lambda k, right: {"feedback_stats": {"em": {"n": 1, "avg": right}}},  # LangSmith
    "metrics_data.Bias": lambda k, right: {"metrics_data": [{"name": "Bias", "score": right, "reason": "x"}]},
    "metrics.acc": lambda k, right: {
        "gold": ["A"],
        "predictions": ["AB"[k % 2]],
        "metrics": {"acc": right},
    },  # lighteval
}


@pytest.mark.parametrize("metric", TRACE_SCORES)
def test_scores_in_objects_of_each_item_are_columns(tmp_path, metric):
    for name, every in (("a", 2), ("b", 3)):
        rows = [item | TRACE_SCORES[metric](k, k % every) for k, item in enumerate(ITEMS)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert counts.field(f"score[{metric}]").tolist() == [[k % 2, k % 3] for k in range(12)]


def test_scores_written_as_text_in_parquet_are_columns(tmp_path):
    for name, every in (("a", 2), ("b", 3)):
        rows = [{"gold": "['A']", "predictions": "['A']", "metrics": f"{{'acc': {k % every}}}"} for k in range(12)]
        pd.DataFrame(rows).to_parquet(tmp_path / f"{name}.parquet")
    assert read(tmp_path / "a.parquet", tmp_path / "b.parquet").field("score").sum() == 6 + 12


@pytest.mark.parametrize(("metric", "has_labels"), [("macro-f1", True), ("metrics.acc", False), (None, False)])
def test_gold_labels_beside_metrics_are_compared_if_a_metric_of_labels_is_requested(tmp_path, metric, has_labels):
    for name, every in (("a", 2), ("b", 3)):
        rows = [
            {"id": k, "gold": "AB"[k % 2], "prediction": "AB"[k % every % 2], "metrics": {"acc": k % every, "time": 1}}
            for k in range(12)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl", options=Options(metrics=(metric,) * bool(metric)))
    assert ("correct" in counts.fields) == has_labels


def test_costs_in_objects_do_not_replace_gold_labels(tmp_path):
    for name, every in (("a", 2), ("b", 3)):
        rows = [{"gold": "AB"[k % 2], "pred": "AB"[k % every % 2], "metrics": {"latency_ms": k}} for k in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert "correct" in read(tmp_path / "a.jsonl", tmp_path / "b.jsonl").fields


def test_several_scores_of_one_name_are_not_chosen_from(tmp_path):
    scores = [{"name": "em", "value": 1}, {"name": "em", "value": 0}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row | {"scores": scores}) + "\n" for row in ITEMS))
    with pytest.raises(InputError, match="'scores' is a list, which is not compared"):
        read(tmp_path / "t.jsonl")


@pytest.mark.parametrize("name", ["input", "meta.item"])
def test_ids_of_traces_that_no_other_file_has_name_the_column_of_items(tmp_path, name):
    for system in "ab":
        rows = [
            {"id": f"{system}{k}", "input": f"Q{k}" if name == "input" else "", "meta": {"item": f"m{k}"}, "f1": k % 5}
            for k in range(12)
        ]
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=f"Then --columns id={name}"):
        read(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    counts = read(tmp_path / "a.jsonl", tmp_path / "b.jsonl", options=Options(columns={"id": name}))
    assert counts.n_items == 12


@pytest.mark.parametrize("name", ["prompt", "item"])
def test_unique_names_of_responses_are_ids_where_prompts_repeat(tmp_path, name):
    rows = [f"p{k // 4},r{k},{k % 2},{k % 3}\n" for k in range(12)]
    (tmp_path / "t.csv").write_text(f"{name},response,x,y\n{''.join(rows)}")
    assert read(tmp_path / "t.csv").ids == tuple(f"r{k}" for k in range(12))


def test_responses_are_no_ids_beside_questions(tmp_path):
    for system in "ab":
        rows = [{"response": f"{system} {k % 3}", "question": f"Q{k}", "em": k % 2} for k in range(12)]
        (tmp_path / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(tmp_path / "a.jsonl", tmp_path / "b.jsonl").ids == tuple(f"Q{k}" for k in range(12))
