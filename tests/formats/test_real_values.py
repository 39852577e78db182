"""Real numbers are no labels by default: the error names both ways, and each works as it is written."""

import numpy as np
import pytest

from sigdask.api import compare_all
from sigdask.errors import InputError
from sigdask.formats import Options, read

N_ITEMS = 30


def format_real(k, factor):
    return f"{(k * factor % 97) / 97:.4f}"


@pytest.fixture
def lists(tmp_path):
    """Return lists of real numbers: gold, a and b."""
    paths = [tmp_path / f"{name}.txt" for name in ("gold", "a", "b")]
    for path, factor in zip(paths, (31, 37, 41), strict=True):
        path.write_text("".join(f"{format_real(k, factor)}\n" for k in range(N_ITEMS)))
    return paths


def test_lists_of_real_numbers_are_read_as_the_format_says(lists):
    gold, a, b = lists
    with pytest.raises(InputError, match="format='labels'.*format='numbers'"):
        read(a, b, gold=gold)
    assert read(a, b, gold=gold, format="numbers").systems == ("a", "b")


def test_a_table_of_real_gold_values_is_refused(tmp_path):
    rows = "".join(f"q{k},{format_real(k, 31)},{format_real(k, 37)},{format_real(k, 41)}\n" for k in range(N_ITEMS))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    with pytest.raises(InputError, match="holds real numbers"):
        read(path)
    assert read(path, format="numbers").systems == ("a", "b")


@pytest.mark.parametrize("cell", ["{k}", "class-{k}.5"])
def test_whole_numbers_and_words_are_labels_however_many(tmp_path, cell):
    rows = "".join(f"q{k},{cell.format(k=k)},{cell.format(k=k)},{cell.format(k=k // 2)}\n" for k in range(N_ITEMS))
    (path := tmp_path / "t.csv").write_text(f"id,gold,a,b\n{rows}")
    assert read(path).systems == ("a", "b")


def test_a_metric_of_numbers_reads_lists_of_numbers(lists):
    gold, a, b = lists
    both = read(a, b, gold=gold, options=Options(metrics=("MAE",)))
    (result,) = compare_all(both, metrics=["MAE"], trials=100)
    expected, predicted = (np.loadtxt(path) for path in (gold, a))
    assert result.score_a == pytest.approx(np.abs(expected - predicted).mean())
