"""Label sets in files: lists recognised as such, texts split on request, and files read as before."""

import json

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import read

METRICS = ("micro-f1", "macro-f1", "f1", "subset-accuracy", "hamming-loss", "jaccard", "samples-f1", "f1[crude]")
LABELS = ("crude", "grain", "ship", "trade")


def draw_label_sets(n=40, seed=1):
    rng = np.random.default_rng(seed)
    return {
        name: [[label for label in LABELS if rng.random() < share] for _ in range(n)]
        for name, share in (("gold", 0.3), ("svm", 0.3), ("bert", 0.4))
    }


SETS = draw_label_sets()


def join_labels(name, mark="|"):
    return [mark.join(labels) for labels in SETS[name]]


def format_csv(columns, mark="|"):
    rows = zip(*(join_labels(name, mark) for name in columns), strict=True)
    return "\n".join([",".join(["id", *columns]), *(f"x{k},{','.join(row)}" for k, row in enumerate(rows)), ""])


def format_json_lines(columns, key=None):
    return "".join(
        json.dumps({"id": f"x{k}", **{(key or name): SETS[name][k] for name in columns}}) + "\n" for k in range(40)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets")
    everything = ("gold", "svm", "bert")
    (folder / "wide.csv").write_text(format_csv(everything))
    (folder / "semicolons.tsv").write_text(format_csv(everything, " ; ").replace(",", "\t"))
    (folder / "wide.jsonl").write_text(format_json_lines(everything))
    (folder / "with_text.jsonl").write_text(
        "".join(
            json.dumps({"id": f"x{k}", "text": f"w{k} x", "labels": SETS["gold"][k], "svm": SETS["svm"][k],
                        "bert": SETS["bert"][k]}) + "\n"
            for k in range(40)
        )
    )  # fmt: skip
    for name in everything:
        (folder / f"{name}.csv").write_text(format_csv([name]).replace(f"id,{name}", "id,labels"))
        (folder / f"{name}.jsonl").write_text(format_json_lines([name], "labels"))
    return folder


@pytest.fixture(scope="module")
def expected():
    counts = Counts.from_label_sets(
        SETS["gold"], {name: SETS[name] for name in ("svm", "bert")}, ids=[f"x{k}" for k in range(40)]
    )
    return [
        (r.metric, r.score_a, r.score_b, r.n_extreme)
        for r in compare_all(counts, metrics=METRICS, trials=500, interval="none")
    ]


@pytest.mark.parametrize(
    ("files", "gold", "format_"),
    [
        (["wide.csv"], None, "labels:separator=|"),
        (["semicolons.tsv"], None, "labels:separator=semicolon"),
        (["wide.jsonl"], None, "auto"),
        (["with_text.jsonl"], None, "auto"),
        (["svm.csv", "bert.csv"], "gold.csv", "labels:separator=|"),
        (["svm.jsonl", "bert.jsonl"], "gold.jsonl", "auto"),
        (["svm.csv", "bert.jsonl"], "gold.jsonl", "labels:separator=pipe"),
    ],
)
def test_sets_read_the_same_however_they_are_written(folder, expected, files, gold, format_):
    paths = [folder / file for file in files]
    counts = read(*paths, gold=None if gold is None else folder / gold, format=format_)
    results = compare_all(counts, metrics=METRICS, trials=500)
    assert [(r.metric, r.score_a, r.score_b, r.n_extreme) for r in results] == expected


def test_an_absent_list_is_an_error_and_an_empty_one_is_none(tmp_path):
    rows = [{"gold": ["x"], "a": ["x", "x"], "b": ["x"]}, {"gold": [], "a": None, "b": []}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"a has no label for item 'line 2' .*; an item without any has \[\]"):
        read(tmp_path / "t.jsonl")
    rows[1]["a"] = []
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(tmp_path / "t.jsonl").field("correct").tolist() == [[1, 1], [1, 1]]


def test_a_metric_of_sets_asks_for_the_separator(folder):
    path = folder / "one_label.csv"
    path.write_text("id,gold,a,b\n1,x|y,x|y,x\n2,x,x,x|y\n")
    with pytest.raises(InputError, match="labels:separator"):
        compare_all(read(path), metrics=["samples-f1"])
    counts = read(path, format="labels:separator=|")
    assert compare_all(counts, metrics=["samples-f1"])[0].score_a == 1


def test_sets_without_a_label_of_gold_are_refused(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,x|y,z,x\n2,x,,y\n")
    with pytest.raises(InputError, match="values of all its 1 labels never occur in gold"):
        read(tmp_path / "t.csv", format="labels:separator=|")
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,,z,x\n2,,,y\n")
    with pytest.raises(InputError, match="no labels, so no score"):
        read(tmp_path / "t.csv", format="labels:separator=|")


@pytest.mark.parametrize("labels", ["Cause-Effect(e1,e2)+a=b", "@"])
def test_labels_of_an_average_may_contain_commas_and_equals_signs(tmp_path, labels):
    path = tmp_path / "t.csv"
    path.write_text('gold,a,b\n"Cause-Effect(e1,e2)",a=b,"Cause-Effect(e1,e2)"\na=b,a=b,a=b\nOther,Other,a=b\n')
    (tmp_path / "names").write_text("Cause-Effect(e1,e2)\na=b\n")
    names = f"@{tmp_path / 'names'}" if labels == "@" else labels
    [r] = compare_all(read(path), metrics=[f"macro-f1:labels={names}"])
    assert (r.score_a, r.score_b) == pytest.approx(((0 + 2 / 3) / 2, (1 + 2 / 3) / 2))
    with pytest.raises(InputError, match="no label 'none'"):
        compare_all(read(path), metrics=["macro-f1:labels=Other+none"])


def test_labels_that_gold_lacks_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,x|y,x|z,x\n2,x,x,y\n")
    counts = read(tmp_path / "t.csv", format="labels:separator=|")
    assert counts.notices[0].startswith("values that gold never has are never correct: a 1 of 2 (such as 'z')")


def test_an_empty_separator_is_refused(folder):
    with pytest.raises(InputError, match="separator= is empty"):
        read(folder / "wide.csv", format="labels:separator=")
