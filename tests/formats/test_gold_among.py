"""Tables of predictions whose gold labels are called `label`: `index,text,label,svm,bert`."""

import json

import pytest

from sigdask.errors import InputError
from sigdask.formats import Source, detect, read

TABLE = """index,text,label,svm,bert
0,"a fine film, really",pos,pos,pos
1,dull,neg,pos,neg
2,great,pos,neg,pos
3,awful,neg,neg,neg
4,so so,neg,pos,pos
"""


@pytest.mark.parametrize(("one", "zero"), [("pos", "neg"), ("1", "0"), ("True", "False")])
@pytest.mark.parametrize("gold", ["label", "labels", "target", "truth", "gold", "y_true"])
def test_labels_beside_texts_and_systems_are_read_whatever_gold_is_called(tmp_path, gold, one, zero):
    path = tmp_path / "t.csv"
    path.write_text(TABLE.replace("label", gold).replace("pos", one).replace("neg", zero))
    counts = read(path, format="labels")
    assert counts.systems == ("svm", "bert")
    assert counts.field("correct").tolist() == [[1, 1], [0, 1], [0, 1], [1, 1], [0, 0]]
    if gold != "gold":
        assert detect([Source(path)]) == "labels"


def test_what_was_taken_for_what_is_said(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE)
    (note,) = read(tmp_path / "t.csv").warnings
    message = "column 'label' holds gold labels, 'svm', 'bert' predictions; not a system: 1 column ('text')"
    assert note == f"{tmp_path / 't.csv'}: {message}"


def test_columns_beside_that_repeat_are_groups(tmp_path):
    rows = [{"id": k, "domain": "ab"[k % 2], "label": "pn"[k // 3], "svm": "pn"[k % 2], "bert": "p"} for k in range(6)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "t.jsonl")
    assert counts.systems == ("svm", "bert")
    assert list(counts.groups["domain"]) == ["a", "b"] * 3


def test_probabilities_beside_labels_are_refused_unless_said_to_be_scores(tmp_path):
    (tmp_path / "t.csv").write_text("index,label,svm,bert\n0,1,0.9,0.8\n1,0,0.2,0.3\n2,1,0.7,0.1\n3,1,0.6,0.3\n")
    with pytest.raises(InputError, match="column 'svm' holds real numbers.*'label' is taken for what they predict"):
        read(tmp_path / "t.csv")
    counts = read(tmp_path / "t.csv", format="wide")
    assert counts.systems == ("label", "svm", "bert")
    assert "column 'label' is taken for a system's scores; if it is none, --ignore 'label'" in counts.scope[0]


def test_labels_of_another_kind_are_still_asked_about(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "index,text,label,svm,bert\n" + "".join(f"{k},t{k},{'pn'[k % 2]},{'yx'[k % 2]},x\n" for k in range(4))
    )
    with pytest.raises(InputError, match="cannot tell the format"):
        read(path)
