"""Scores in other notations: truth values, decimal commas, JSON arrays; ambiguous ones are refused."""

import json

import pytest

from sigdask.errors import InputError
from sigdask.formats import Options, read


def write_text(path, text):
    path.write_text(text)
    return path


def read_scores(*paths, **options):
    counts = read(*paths, options=Options(**options))
    return counts.field("score").tolist(), list(counts.warnings)


def test_points_and_commas_in_one_column_are_asked_about(tmp_path):
    table = write_text(tmp_path / "t.csv", "item;a;b\nx;1.250;0\ny;0,5;1\n")
    with pytest.raises(InputError, match=r"t.csv, line 3, column 'a': found '0,5'"):
        read(table)
    table = write_text(tmp_path / "u.csv", "item;a;b\nx;1.250,5;0\ny;0,5;1.234\n")
    assert read_scores(table, own={"decimal": ","})[0] == [[1250.5, 0], [0.5, 1234]]


def test_a_list_of_decimal_commas_is_read_where_it_is_no_two_columns(tmp_path):
    first, second = write_text(tmp_path / "one", "0,25\n1\n0,5\n"), write_text(tmp_path / "two", "0,75\n0\n1,5\n")
    assert read_scores(first, second, own={"decimal": ","})[0] == [[0.25, 0.75], [1, 0], [0.5, 1.5]]
    first, second = write_text(tmp_path / "one", "0,25\n0,5\n"), write_text(tmp_path / "two", "0,75\n1,5\n")
    with pytest.raises(InputError, match=r"one, line 1: .*or say format='table:decimal=,' where commas part decimals"):
        read(first, second)
    assert read_scores(first, second, own={"decimal": ","})[0] == [[0.25, 0.75], [0.5, 1.5]]


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
