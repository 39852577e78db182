"""Aligning the rows of several files: by the item column, or by position if files have none."""

import random

import pytest

from sigdask import InputError, compare_all
from sigdask.formats import Options, read

ITEMS = [f"x{k * 37}" for k in range(40)]
LABELS = dict(zip(ITEMS, random.Random(5).choices("NVA", k=40), strict=True))


def write_labels(folder, name, items=ITEMS, labels=LABELS, header="id,label"):
    rows = "".join(f"{item},{labels[item]}\n" for item in items)
    (folder / name).write_text((f"{header}\n" if header else "") + rows)
    return folder / name


def shuffle(seed=3):
    return random.Random(seed).sample(ITEMS, len(ITEMS))


@pytest.mark.parametrize("name", ["id", "qid", "Question ID", "doc_id", "idx"])
def test_items_of_another_order_are_aligned_by_their_column_and_it_is_said(tmp_path, name):
    gold, x = (write_labels(tmp_path, file, header=f"{name},label") for file in ("gold", "x"))
    y = write_labels(tmp_path, "y", shuffle(), header=f"{name},label")
    counts = read(x, y, gold=gold)
    assert counts.field("correct").all()
    assert any("another order" in text for text in counts.notices)


def test_a_column_of_groups_or_texts_that_differs_asks_whether_it_names_the_items(tmp_path):
    gold, x = (write_labels(tmp_path, file, header="filename,label") for file in ("gold", "x"))
    y = write_labels(tmp_path, "y", shuffle(), header="filename,label")
    with pytest.raises(InputError, match="column 'filename' has .* no column names the items"):
        read(x, y, gold=gold)
    assert read(x, y, gold=gold, options=Options(columns={"item": "filename"})).field("correct").all()
    assert not read(x, y, gold=gold, options=Options(align="position")).field("correct").all()


def test_lists_are_aligned_by_position_and_need_as_many_rows(tmp_path):
    def write_list(name, labels):
        (tmp_path / name).write_text("\n".join(labels) + "\n")
        return tmp_path / name

    labels = [*LABELS.values()]
    gold, x, y = write_list("gold", labels), write_list("x", labels), write_list("y", ["N", *labels[1:]])
    assert read(x, y, gold=gold, format="labels").field("correct")[1:].all()
    with pytest.raises(InputError, match="39 rows, but .* has 40"):
        read(x, write_list("z", labels[1:]), gold=gold, format="labels")
    # a gold file may name its items although lists do not
    counts = read(x, y, gold=write_labels(tmp_path, "gold.csv"), format="labels")
    assert any("no item column, so rows are aligned by position" in text for text in counts.scope)
    with pytest.raises(InputError, match="no item column to align by"):
        read(x, y, gold=gold, format="labels", options=Options(align="id"))


def test_the_option_missing_says_how_often_a_prediction_is_missing(tmp_path):
    gold, x = write_labels(tmp_path, "gold"), write_labels(tmp_path, "x")
    y = write_labels(tmp_path, "y", ITEMS[5:])
    counts = read(x, y, gold=gold, options=Options(missing="zero"))
    assert counts.field("correct").sum(axis=0).tolist() == [40, 35]
    assert "Note: y lacks 5 of 40 items: scored 0" in compare_all(counts, trials=99).to_markdown()
    pairwise = read(x, y, gold=gold, options=Options(missing="pairwise"))
    assert pairwise.present[:, 1].tolist() == [False] * 5 + [True] * 35
    extra = write_labels(tmp_path, "z", [*ITEMS, "other"], {**LABELS, "other": "N"})
    with pytest.raises(InputError, match="1 id .*not among"):
        read(x, extra, gold=gold, options=Options(missing="zero"))
