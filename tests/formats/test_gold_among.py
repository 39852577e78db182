"""Tables of gold labels and predictions: `index,text,label,svm,bert`. Roles are those of the columns' names."""

import re

import pytest

from sigdask import InputError
from sigdask.formats import Options, read

TABLE = """index,text,label,svm,bert
0,"a fine film, really",pos,pos,pos
1,dull,neg,pos,neg
2,great,pos,neg,pos
3,awful,neg,neg,neg
4,so so,neg,pos,pos
"""
CORRECT = [[1, 1], [0, 1], [0, 1], [1, 1], [0, 0]]


@pytest.mark.parametrize(("one", "zero"), [("pos", "neg"), ("1", "0"), ("True", "False")])
@pytest.mark.parametrize("gold", ["label", "labels", "target", "truth", "gold", "y_true"])
def test_labels_beside_texts_and_systems_are_read_whatever_gold_is_called(tmp_path, gold, one, zero):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("label", gold).replace("pos", one).replace("neg", zero))
    counts = read(path, format="labels")
    assert counts.systems == ("svm", "bert")
    assert counts.field("correct").tolist() == CORRECT


def test_columns_beside_predictions_are_asked_about(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("svm,bert", "prediction,confidence").replace("label", "gold"))
    with pytest.raises(InputError, match="'confidence' beside predictions") as refusal:
        read(path, format="labels")
    ignored = re.search(r"ignore=\['(\w+)'\]", refusal.value.remedy)[1]
    both = re.search(r"'prediction': '([^']+)'", refusal.value.remedy)[1]
    assert read(path, format="labels", options=Options(ignore=(ignored,))).systems == ("prediction",)
    named = read(path, format="labels", options=Options(columns={"prediction": both}))
    assert named.systems == ("prediction", "confidence")


def test_a_gold_column_of_another_name_is_asked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("label", "human"))
    with pytest.raises(InputError, match="no column is the gold standard") as refusal:
        read(path, format="labels")
    names = re.findall(r"'gold': '(\w+)'", refusal.value.remedy)
    assert names == ["human", "svm", "bert"]
    counts = read(path, format="labels", options=Options(columns={"gold": "human"}))
    assert counts.field("correct").tolist() == CORRECT


def test_rows_of_systems_are_predictions_of_the_same_items(tmp_path):
    rows = [line.rsplit(",", 3) for line in TABLE.splitlines()[1:]]
    lines = [f"{k},{name},{row[1]},{row[s]}" for s, name in ((2, "svm"), (3, "bert")) for k, row in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["id,model,gold,prediction", *lines]) + "\n")
    counts = read(tmp_path / "t.csv", format="labels")
    assert sorted(counts.systems) == ["bert", "svm"]
    order = [counts.systems.index(name) for name in ("svm", "bert")]
    assert counts.field("correct")[:, order].tolist() == CORRECT


def test_files_of_systems_may_call_their_labels_gold_as_hans_does(tmp_path):
    for name, column in (("gold", 1), ("x", 2), ("y", 3)):
        rows = [line.rsplit(",", 3) for line in TABLE.splitlines()[1:]]
        body = "".join(f"e{k},{row[column]}\n" for k, row in enumerate(rows))
        (tmp_path / name).write_text(f"pairID,gold_label\n{body}")
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold", format="labels")
    assert counts.field("correct").tolist() == CORRECT


def test_a_column_of_another_kind_is_no_group_unless_it_is_named(tmp_path):
    (tmp_path / "gold.csv").write_text("id,gold,domain,outcome\n1,x,a,0\n2,y,b,1\n")
    for name in "xy":
        (tmp_path / name).write_text("id,label\n1,x\n2,y\n")
    paths = [tmp_path / "x", tmp_path / "y"]
    for options in (Options(), Options(groups=("domain",))):
        counts = read(*paths, gold=tmp_path / "gold.csv", format="labels", options=options)
        assert [*counts.groups] == ["domain"]  # a subset by its name; `outcome` has no role
        assert list(counts.groups["domain"]) == ["a", "b"]


@pytest.mark.parametrize(("cell", "is_label"), [("0.{k}", False), ("{k}", True), ("class-{k}.5", True)])
def test_real_numbers_are_no_labels_unless_the_format_says_so(tmp_path, cell, is_label):
    rows = "".join(f"q{k},{cell.format(k=k)},{cell.format(k=k)},{cell.format(k=k // 2)}\n" for k in range(30))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    if not is_label:
        with pytest.raises(InputError, match="holds real numbers"):
            read(path)
    assert read(path, format="auto" if is_label else "labels").systems == ("a", "b")


def test_one_table_of_labels_by_annotators_is_read_beside_a_gold_file_and_refused_without_one(tmp_path):
    rows = "".join(f"{k},x,{'AB'[k % 2]}\n{k},y,{'AB'[k % 3 % 2]}\n" for k in range(6))
    for name in ("system", "annotator"):
        (tmp_path / name).write_text(f"item,{name},label\n{rows}")
    (tmp_path / "gold").write_text("item,label\n" + "".join(f"{k},{'AB'[k % 2]}\n" for k in range(6)))
    counts = read(tmp_path / "system", gold=tmp_path / "gold")
    assert (counts.systems, counts.field("correct").sum(axis=0).tolist()) == (("x", "y"), [6, 3])
    for name, way in (("system", "gold=FILE, or a column `gold`"), ("annotator", "one file for each annotator")):
        with pytest.raises(InputError, match=way):
            read(tmp_path / name, format="labels")
