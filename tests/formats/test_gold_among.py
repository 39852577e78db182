"""Tables of predictions whose gold labels are called `label`: `index,text,label,svm,bert`."""

import json

import pytest

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


def test_columns_beside_that_repeat_are_groups(tmp_path):
    rows = [{"id": k, "domain": "ab"[k % 2], "label": "pn"[k // 3], "svm": "pn"[k % 2], "bert": "p"} for k in range(6)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    counts = read(tmp_path / "t.jsonl")
    assert counts.systems == ("svm", "bert")
    assert list(counts.groups["domain"]) == ["a", "b"] * 3
