"""Scores in other notations: truth values, decimal commas, JSON arrays; ambiguous ones are refused."""

import json
import random

import numpy as np
import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, Source, detect, read

LARGE = 6_000
"""Rows of a file that the reader of plain columns takes."""


def write_text(path, text):
    path.write_text(text)
    return path


def read_scores(*paths, **options):
    counts = read(*paths, options=Options(**options))
    return counts.field("score").tolist(), list(counts.warnings)


@pytest.mark.parametrize(
    ("true", "false"),
    [("True", "False"), ("TRUE", "FALSE"), ("true", "false"), ("yes", "no"), ("Yes", "No"), ("T", "F"),
     ("correct", "incorrect"), ("PASS", "FAIL")],
)  # fmt: skip
def test_truth_values_are_scores_of_1_and_0(tmp_path, true, false):
    table = write_text(tmp_path / "t.csv", f"item,a,b\nx,{true},{false}\ny,{false},{false}\nz,{true},{true}\n")
    values, notes = read_scores(table)
    assert values == [[1, 0], [0, 0], [1, 1]]
    assert f"2 columns ('a', 'b') hold {true}/{false}, read as 1/0" in notes[0]
    assert ("are they labels?" in notes[0]) is (true.lower() != "true")
    assert detect([Source(table)]) == "wide"


def test_truth_values_one_a_line_json_and_parquet_read_the_same(tmp_path):
    import pandas as pd

    for name, cells in (("a", [True, False, True]), ("b", [False, False, True])):
        write_text(tmp_path / name, "".join(f"{cell}\n" for cell in cells))
        write_text(tmp_path / f"{name}.json", json.dumps(cells))
        write_text(
            tmp_path / f"{name}.jsonl", "".join(json.dumps({"id": k, "ok": c}) + "\n" for k, c in enumerate(cells))
        )
        pd.DataFrame({"id": [0, 1, 2], "ok": cells}).to_parquet(tmp_path / f"{name}.parquet")
    for suffix in ("", ".json", ".jsonl", ".parquet"):
        assert read_scores(tmp_path / f"a{suffix}", tmp_path / f"b{suffix}")[0] == [[1, 0], [0, 0], [1, 1]]


def test_truth_values_beside_real_scores_tell_kinds_of_items(tmp_path):
    table = write_text(
        tmp_path / "t.csv", "item,hard,a,b\n" + "".join(f"i{k},{k % 2 == 0},0.{k},0.5\n" for k in range(6))
    )
    counts = read(table)
    assert counts.systems == ("a", "b")
    assert list(counts.groups["hard"]) == ["True", "False"] * 3
    table = write_text(tmp_path / "u.csv", "item,length,a,b\nx,12,True,1\ny,7,False,0\n")
    assert read(table, options=Options(ignore=("length",))).field("score").tolist() == [[1, 1], [0, 0]]


def test_a_word_among_scores_that_is_no_truth_value_is_an_error_with_its_line(tmp_path):
    table = write_text(tmp_path / "t.csv", "item,a,b\nx,True,0.1\ny,maybe,0.2\n")
    with pytest.raises(InputError, match=r"t.csv, line 2, column 'a': found 'True', expected a number"):
        read(table)
    table = write_text(tmp_path / "u.csv", "system,item,score\na,x,yes\na,y,0.3\nb,x,no\nb,y,no\n")
    with pytest.raises(InputError, match=r"u.csv, line 2, column 'score': found 'yes'"):
        read(table)


def test_a_mean_below_truth_values_is_no_item(tmp_path):
    table = write_text(tmp_path / "t.csv", "item,a,b\nx,True,False\ny,False,False\nz,True,True\nmean,0.6667,0.3333\n")
    assert read_scores(table)[0] == [[1, 0], [0, 0], [1, 1]]


def test_long_tables_and_ratings_take_truth_values_and_decimal_commas(tmp_path):
    table = write_text(tmp_path / "t.csv", "system;item;score\na;x;TRUE\nb;x;FALSE\na;y;FALSE\nb;y;FALSE\n")
    assert read_scores(table)[0] == [[1, 0], [0, 0]]
    table = write_text(tmp_path / "u.csv", "system;item;score\na;x;0,5\nb;x;0,25\na;y;1\nb;y;2,75\n")
    assert read_scores(table)[0] == [[0.5, 0.25], [1, 2.75]]
    ratings = write_text(tmp_path / "r.csv", "rater;system;seg_id;score\nr;a;1;70,5\nr;b;1;60\nr;a;2;3\nr;b;2;4\n")
    assert read_scores(ratings)[0] == [[70.5, 60], [3, 4]]


@pytest.mark.parametrize("mark", [";", "\t"])
@pytest.mark.parametrize("n_rows", [40, LARGE])
def test_decimal_commas_are_the_numbers_that_points_would_write(tmp_path, mark, n_rows):
    draw = random.Random(n_rows)
    rows = [[f"i{k}", *(repr(round(draw.uniform(-2, 2), draw.randrange(1, 9))) for _ in "ab")] for k in range(n_rows)]
    rows[0][1], rows[1][1] = "1", "-0.5e-3"
    text = "".join(f"{mark.join(row)}\n" for row in [["item", "a", "b"], *rows])
    pointed = read(write_text(tmp_path / "points", text))
    commas = read(write_text(tmp_path / "commas", text.replace(".", ",")))
    np.testing.assert_array_equal(pointed.field("score"), commas.field("score"))
    assert "decimal commas: " in commas.warnings[0]
    assert list(pointed.ids) == list(commas.ids)


def test_commas_that_may_part_thousands_are_asked_about(tmp_path):
    table = write_text(tmp_path / "t.csv", "item;a;b\nx;1,250;2,500\ny;3;1,875\n")
    with pytest.raises(
        InputError,
        match=r"t.csv, line 2, column 'a': found '1,250'. .* Say --format table:decimal=, or --format table:decimal=\.",
    ):
        read(table)
    assert read_scores(table, own={"decimal": ","})[0] == [[1.25, 2.5], [3, 1.875]]
    assert read_scores(table, own={"decimal": "."})[0] == [[1250, 2500], [3, 1875]]


def test_one_clear_decimal_comma_tells_of_the_whole_table(tmp_path):
    table = write_text(tmp_path / "t.csv", "item;a;b\nx;1,250;2,500\ny;3;1,87\n")
    values, notes = read_scores(table)
    assert values == [[1.25, 2.5], [3, 1.87]]
    assert "decimal commas: '1,87' (line 3, column 'b') is read as 1.87" in notes[0]


def test_points_and_commas_in_one_column_are_asked_about(tmp_path):
    table = write_text(tmp_path / "t.csv", "item;a;b\nx;1.250;0\ny;0,5;1\n")
    with pytest.raises(InputError, match=r"t.csv, line 3, column 'a': found '0,5'"):
        read(table)
    table = write_text(tmp_path / "u.csv", "item;a;b\nx;1.250,5;0\ny;0,5;1.234\n")
    assert read_scores(table, own={"decimal": ","})[0] == [[1250.5, 0], [0.5, 1234]]


def test_a_list_of_decimal_commas_is_read_where_it_is_no_two_columns(tmp_path):
    first, second = write_text(tmp_path / "one", "0,25\n1\n0,5\n"), write_text(tmp_path / "two", "0,75\n0\n1,5\n")
    assert read_scores(first, second)[0] == [[0.25, 0.75], [1, 0], [0.5, 1.5]]
    first, second = write_text(tmp_path / "one", "0,25\n0,5\n"), write_text(tmp_path / "two", "0,75\n1,5\n")
    with pytest.raises(InputError, match=r"one, line 1: .*or say --format table:decimal=, where commas part decimals"):
        read(first, second)
    assert read_scores(first, second, own={"decimal": ","})[0] == [[0.25, 0.75], [0.5, 1.5]]


def test_formats_without_columns_of_scores_take_no_decimal_mark(tmp_path):
    table = write_text(tmp_path / "t.csv", "item,gold,a,b\nx,P,Q,P\ny,Q,Q,P\n")
    with pytest.raises(InputError, match=r"decimal=,: format labels has no columns of scores"):
        read(table, format="labels", options=Options(own={"decimal": ","}))


def test_json_arrays_of_numbers_or_labels_are_lists(tmp_path):
    first, second = (
        write_text(tmp_path / "one.json", "[0.5, 1, null]"),
        write_text(tmp_path / "two.json", "[\n 1,\n 0.25,\n 2\n]"),
    )
    assert read_scores(first, second, missing="zero")[0] == [[0.5, 1], [1, 0.25], [0, 2]]
    for name, labels in {"gold": "PQP", "x": "PQQ", "y": "QQQ"}.items():
        write_text(tmp_path / name, json.dumps([*labels]))
    counts = read(tmp_path / "x", tmp_path / "y", gold=tmp_path / "gold")
    assert counts.field("correct").tolist() == [[1, 0], [1, 1], [0, 0]]
    with pytest.raises(InputError, match=r"bad.json, value 2: found \{'score': 1\}, expected a single value"):
        read(write_text(tmp_path / "bad.json", '[1, {"score": 1}]'), second)


PERCENT = {
    "id,a,b\nq1,45.3%,41%\nq2,44 %,40%\n": "column 'a': found '45.3%'",
    "id,a,b\nq1,0.4,41%\nq2,0.3,40%\n": "column 'b': found '41%'",
    "system,item,score\na,q1,45.3%\nb,q1,40%\n": "column 'score': found '45.3%'",
    "45.3%\n41%\n40%\n": "found '45.3%'",
}


@pytest.mark.parametrize("text", PERCENT)
def test_percent_signs_are_named_and_are_to_be_removed(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match="remove the percent signs in all columns and files") as error:
        read(tmp_path / "t.csv")
    assert PERCENT[text] in str(error.value)


def test_one_column_of_scores_says_which_columns_there_are_and_what_may_be_done(tmp_path):
    rows = "".join(f"{system},{k},{k * 7 % 5 / 5}\n" for system in "ab" for k in range(20))
    (tmp_path / "t.csv").write_text(f"mt,item,quality\n{rows}")
    with pytest.raises(InputError, match=r"columns: mt, item, quality. Are systems named in 'mt'\?.*--columns system="):
        read(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("id,acc,latency\n" + "".join(f"q{k},{k % 2},{k * 7 % 5}\n" for k in range(20)))
    with pytest.raises(InputError, match=r"found only 'acc'.*left out as no scores of systems: 1 column \('latency'\)"):
        read(tmp_path / "t.csv")
