"""Wins, ties and losses: Arena, evalscope and AlpacaEval layouts; several judgements of a question."""

import json

import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read


def compare_pairs(counts, **options):
    results = compare_all(counts, metrics=["win_rate"], trials=256, second_run=False, **options)
    return {(r.a, r.b): r for r in results}


def build_battle(question, a, b, winner, **fields):
    return {"question_id": question, "model_a": a, "model_b": b, "winner": winner, **fields}


ARENA = [
    build_battle("q1", "x", "y", "model_a", judge="j1", turn=1),
    build_battle("q2", "y", "x", "tie", judge="j1", turn=1),
    build_battle("q3", "x", "y", "model_b", judge="j2", turn=1),
    build_battle("q4", "y", "x", "model_b", judge="j2", turn=1),
    build_battle("q5", "x", "z", "tie (bothbad)", judge="j2", turn=1),
    build_battle("q6", "z", "x", "model_a", judge="j1", turn=1),
]


def write_json_lines(path, records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def write_csv(path, records):
    header = list(records[0])
    path.write_text("\n".join([",".join(header), *(",".join(str(r[k]) for k in header) for r in records)]) + "\n")
    return path


@pytest.mark.parametrize("kind", ["lines", "csv", "parquet", "array"])
def test_models_are_compared_on_the_battles_they_fought(tmp_path, kind):
    path = write_json_lines(tmp_path / "battles.jsonl", ARENA)
    if kind == "csv":
        write_csv(path, ARENA)
    if kind == "array":
        path.write_text(json.dumps(ARENA, indent=1))
    if kind == "parquet":
        import pandas as pd

        talk = [[{"role": "user", "content": "q"}]] * len(ARENA)
        pd.DataFrame(ARENA).assign(conversation_a=talk).to_parquet(path)
    assert detect([parse_source(str(path))]) == "battles"
    counts = read(path)
    assert counts.suggested == ("win_rate",)
    results = compare_pairs(counts)
    assert (results["x", "y"].score_a, results["x", "y"].score_b, results["x", "y"].n_items) == (0.625, 0.375, 4)
    assert (results["x", "z"].score_a, results["x", "z"].score_b, results["x", "z"].n_items) == (0.25, 0.75, 2)
    assert ("y", "z") not in results  # they never met


def test_several_judgements_of_a_question_are_averaged_or_told_apart_by_their_judge(tmp_path):
    battles = [
        build_battle("q1", "x", "y", w, judge=j) for w, j in (("model_a", "j1"), ("model_a", "j2"), ("tie", "j3"))
    ]
    battles += [
        build_battle("q2", "y", "x", "model_a", judge="j1"),
        build_battle("q2", "x", "y", "model_a", judge="j2"),
    ]
    counts = read(write_json_lines(tmp_path / "h.jsonl", battles))
    assert counts.ids == ("q1", "q2")
    assert counts.field("items").tolist() == [[6], [6]]
    assert counts.field("score[win_rate]").tolist() == [[5, 1], [3, 3]]
    by_judge = read(tmp_path / "h.jsonl", options=Options(groups=("judge",)))
    assert by_judge.n_items == 5
    assert compare_pairs(by_judge, unit="judge")["x", "y"].n_units == 3


@pytest.mark.parametrize(
    ("fields", "scores"),
    [
        ("model_a model_b win_1 win_2", [1, 0.5, 0.25, 0.5]),
        (
            "model_1 model_2 g1_winner g2_winner",
            [1, 0.5, 0.5, 0.5],
        ),  # show_result.py of MT-bench: a tie unless they agree
    ],
)
def test_two_games_of_a_question_have_the_models_in_both_orders(tmp_path, fields, scores):
    a, b, *games_of = fields.split()
    games = [(a, a), (a, b), ("tie", b), ("tie", "tie"), ("error", a)]
    rows = [
        {a: "x", b: "y", **dict(zip(games_of, verdicts, strict=True)), "question_id": k, "tstamp": 1.5 * k}
        for k, verdicts in enumerate(games)
    ]
    path = write_json_lines(tmp_path / "review.jsonl", rows)
    assert detect([parse_source(str(path))]) == "battles"
    counts = read(path)
    assert counts.field("score[win_rate]")[:, 0].tolist() == scores
    assert counts.notices == ("1 judgements without a verdict are left out",)


def test_unknown_layouts_are_refused_with_the_fields_that_are_known(tmp_path):
    path = write_json_lines(tmp_path / "b.jsonl", [{"model_a": "x", "model_b": "y", "choice": "A"}])
    with pytest.raises(
        InputError, match="fields: model_a, model_b, choice; name the columns model_a, model_b, winner, or"
    ):
        read(path, format="battles")
    with pytest.raises(InputError, match="b.jsonl"):
        read(path)


@pytest.mark.parametrize(
    ("verdict", "score"),
    [("x", 1), ("y", 0), ("A", 1), ("[[B]]", 0), ("Tie", 0.5), ("bothbad_vote", 0.5), (1, 1), ("2", 0)],
)
def test_verdicts_as_they_are_written(tmp_path, verdict, score):
    counts = read(write_json_lines(tmp_path / "v.jsonl", [build_battle(1, "x", "y", verdict)]))
    assert counts.field("score[win_rate]").tolist() == [[score, 1 - score]]


def build_annotation(instruction, model, preference):
    return {
        "instruction": instruction, "output_1": "o", "generator_1": "base", "dataset": f"set {len(instruction) % 2}",
        "output_2": "p", "generator_2": model, "annotator": "gpt", "preference": preference,
    }  # fmt: skip


def test_alpaca_annotations_of_several_models_are_compared_over_the_baseline(tmp_path):
    long = "Tell me\n" + "a very long story " * 10
    preferences = {"x": (2, 1.5, 1.9999), "y": (1.0, 0, 1.25), "z": (2, None, 1)}
    for name, values in preferences.items():
        annotations = [build_annotation(i, name, p) for i, p in zip(("i1", "i22", long), values, strict=True)]
        (tmp_path / f"{name}.json").write_text(json.dumps(annotations, indent=2))
    files = [tmp_path / f"{name}.json" for name in preferences]
    assert detect([parse_source(str(files[0]))]) == "battles"
    counts = read(*files, options=Options(groups=("dataset",), missing="pairwise"))
    assert counts.systems == ("x", "y", "z")
    assert counts.ids[:2] == ("i1", "i22")
    assert counts.ids[2].startswith("Tell me a very")
    results = compare_pairs(counts)
    assert results["x", "y"].score_a == pytest.approx(2.4999 / 3)
    assert results["x", "y"].score_b == pytest.approx(0.75 / 3)
    assert (results["y", "z"].n_items, results["y", "z"].score_b) == (2, 0.5)
    with pytest.raises(InputError, match="system 'z' has no score 'win_rate' for item 'i22'"):
        read(*files)
    renamed = read(f"new={files[0]}", files[1])
    assert renamed.systems == ("new", "y")
    result = compare_pairs(read(files[0]))["base", "x"]
    assert result.score_b == pytest.approx(2.4999 / 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("model_a,model_b,winner\n", "bad.csv: has a header and no rows"),
        ("model_a,model_b,winner\nx,y,model_a\nx,y\n", "bad.csv, line 3: found 2 fields"),
        ("model_a,model_b,winner\nx,y,nobody\n", "'nobody', expected model_a.*; leave the cell empty"),
        ("model_a,model_b,winner\nB,A,A\n", "bad.csv, line 2: found the verdict 'A'"),
        ("model_a,model_b,winner\nx,x,tie\n", "bad.csv, line 2: model_a is 'x' and model_b 'x', expected two different"),
        ("model_a,model_b,winner\nx,y,error\n", "bad.csv: none of 1 judgements has a winner or a tie"),
        ("model_a,model_a,winner\nx,y,tie\n", "bad.csv, line 1: column 'model_a' occurs twice in the header"),
        ("item,a,b\n1,x,y\n", "bad.csv, line 2: expected two models and a winner"),
        ("generator_1,generator_2,preference\nx,y,3\n", "line 2: found the verdict '3', expected a preference from 1 to 2"),
    ],
)  # fmt: skip
def test_bad_battles_are_errors_that_name_the_place(tmp_path, content, message):
    (tmp_path / "bad.csv").write_text(content)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "bad.csv", format="battles")


def test_a_name_for_a_file_of_many_models_is_an_error(tmp_path):
    path = write_json_lines(tmp_path / "b.jsonl", ARENA)
    with pytest.raises(
        InputError, match="the models are named in the fields model_a and model_b; give the file without"
    ):
        read(f"x={path}")
    with pytest.raises(InputError, match="no field 'language'"):
        read(path, options=Options(groups=("language",)))
    with pytest.raises(InputError, match="no field 'key'"):
        read(path, options=Options(columns={"item": "key"}))
