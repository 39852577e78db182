"""Label sets in files: lists recognised as such, texts split on request, and files read as before."""

import json

import numpy as np
import pytest
from command import call_sigdask

from sigdask.api import compare_all
from sigdask.counts import Counts
from sigdask.errors import InputError
from sigdask.formats import Options, detect, parse_source, read

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
            json.dumps({"id": f"x{k}", "tokens": [f"w{k}", "x"], "labels": SETS["gold"][k], "svm": SETS["svm"][k],
                        "bert": SETS["bert"][k]}) + "\n"
            for k in range(40)
        )
    )  # fmt: skip
    lists = "\n".join(f'x{k},"{SETS["gold"][k]}","{SETS["svm"][k]}","{SETS["bert"][k]}"' for k in range(40))
    (folder / "python_lists.csv").write_text(f"id,gold,svm,bert\n{lists}\n")
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
        (["python_lists.csv"], None, "auto"),
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


def test_a_metric_of_sets_tells_that_texts_hold_several_labels(folder, expected):
    counts = read(folder / "wide.csv", options=Options(metrics=METRICS))
    assert counts.warnings == (f"{folder}/wide.csv: '|' separates the labels of a cell, as the chosen metrics need",)
    results = compare_all(counts, metrics=METRICS, trials=500)
    assert [(r.metric, r.score_a, r.score_b, r.n_extreme) for r in results] == expected


def test_single_labels_with_a_bar_read_as_before(tmp_path):
    (tmp_path / "tags.csv").write_text("id,gold,a,b\n1,N|Sg,N|Sg,N\n2,N,N,V|Inf\n3,V|Inf,V,V|Inf\n")
    counts = read(tmp_path / "tags.csv", options=Options(metrics=("accuracy", "macro-f1")))
    assert counts.labels == ("N", "N|Sg", "V|Inf")
    assert counts.warnings == ()


def test_a_bar_between_labels_that_stand_alone_elsewhere_is_told(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,x|y,x|y,x\n2,x,x,y\n3,y,x,y\n")
    counts = read(tmp_path / "t.csv")
    assert counts.labels == ("x", "x|y", "y")
    assert "'x|y' is read as one label" in counts.warnings[0]
    assert "labels:separator=|" in counts.warnings[0]


def test_lists_beside_gold_labels_that_are_none_are_refused_as_before(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"gold": "x", "a": "x", "b": ["x"]}\n{"gold": "y", "a": "x", "b": ["y"]}\n')
    with pytest.raises(InputError, match="'b' is a list, which is not compared whole"):
        read(tmp_path / "t.jsonl", format="labels")


def test_an_absent_list_is_an_error_and_an_empty_one_is_none(tmp_path):
    rows = [{"gold": ["x"], "a": [], "b": ["x"]}, {"gold": [], "a": None, "b": []}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"a has no label for item 'line 2'; an item without any has \[\]"):
        read(tmp_path / "t.jsonl")
    rows[1]["a"] = []
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(tmp_path / "t.jsonl").field("correct").tolist() == [[0, 1], [1, 1]]


def test_labels_of_sets_are_mapped_trimmed_and_counted_once(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,wheat|oil,grain | oil|wheat,oil|oil\n2,,grain,\n")
    options = Options(label_map=(("grain", ("wheat",)),))
    counts = read(tmp_path / "t.csv", format="labels:separator=|", options=options)
    assert counts.labels == ("grain", "oil")
    assert counts.field("predicted").tolist() == [[2, 1], [1, 0]]
    assert counts.field("correct").tolist() == [[1, 0], [0, 1]]


def test_labels_that_gold_lacks_are_named(tmp_path):
    (tmp_path / "t.csv").write_text("id,gold,a,b\n1,x|y,x|z,x\n2,x,x,y\n")
    counts = read(tmp_path / "t.csv", format="labels:separator=|")
    assert counts.warnings[0].startswith("1 label that no item of gold has ('z')")


def test_an_empty_separator_is_refused(folder):
    with pytest.raises(InputError, match="separator= is empty"):
        read(folder / "wide.csv", format="labels:separator=")


def test_json_lists_of_labels_are_detected(folder):
    for name in ("wide.jsonl", "with_text.jsonl", "python_lists.csv"):
        assert detect([parse_source(folder / name)]) == "labels"


def test_the_command_compares_sets(folder):
    result = call_sigdask(
        *("compare", "wide.jsonl", "-m", "micro-f1", "-m", "hamming-loss", "--trials", "200"), cwd=folder
    )
    assert result.returncode == 0
    assert "hamming-loss" in result.stdout
    result = call_sigdask("compare", "wide.csv", "--format", "labels:seperator=|", cwd=folder)
    assert (result.returncode, "did you mean 'separator'?" in result.stderr) == (2, True)


def test_sets_of_thousands_are_read_by_columns(tmp_path):
    rng = np.random.default_rng(5)
    names = np.array([f"label{k}" for k in range(60)])
    rows = [f"{k},{'|'.join(names[rng.integers(0, 60, 3)])},{'|'.join(names[rng.integers(0, 60, 2)])},label1"
            for k in range(20_000)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["id,gold,a,b", *rows]))
    counts = read(tmp_path / "t.csv", format="labels:separator=|")
    sets = [set(row.split(",")[1].split("|")) for row in rows]
    assert counts.field("gold")[:, 0].tolist() == [len(labels) for labels in sets]
    assert counts.field("gold[label7]")[:, 0].tolist() == [int("label7" in labels) for labels in sets]
